// Reductions of a row in generated kernels, in the order of core/ops/reduce/loops.h. `at(k, j)` computes element j of
// the row, which is the thread's element k, of the type in which elements are combined. A block has wide_group threads,
// which have neighbouring elements; a thread alone has all elements of its row.
namespace pmaptrain::ops {

// Adds the elements after the last wide group of a row to `total`.
template <class Reducer, unsigned n, class C, class F>
C reduce_rest(C total, F&& at) {
  constexpr unsigned narrow = narrow_group, groups = n / narrow;
  if constexpr (groups > 0) {
    C lanes[narrow];
    for (unsigned j = 0; j < narrow; ++j) lanes[j] = at(j, j);
    for (unsigned i = 1; i < groups; ++i) {
      for (unsigned j = 0; j < narrow; ++j) lanes[j] = Reducer::combine(lanes[j], at(i * narrow + j, i * narrow + j));
    }
    for (unsigned half = narrow / 2; half > 0; half /= 2) {
      for (unsigned j = 0; j < half; ++j) lanes[j] = Reducer::combine(lanes[j], lanes[j + half]);
    }
    total = Reducer::combine(total, lanes[0]);
  }
  for (unsigned i = groups * narrow; i < n; ++i) total = Reducer::combine(total, at(i, i));
  return total;
}

// Reduction of a row by a single thread.
template <class Reducer, unsigned n, class F>
auto reduce_by_thread(F&& at) {
  return reduce_rest<Reducer, n>(Reducer::template identity<decltype(at(0U, 0U))>(), at);
}

// Reduction of a row by a block of wide_group threads, all of which get the result.
template <class Reducer, unsigned n, class F>
auto reduce_by_block(F&& at) {
  using C = decltype(at(0U, 0U));
  constexpr unsigned wide = wide_group, all = n / wide;
  SHARED(C, lanes, wide);
  C total = Reducer::template identity<C>();
  for (unsigned done = 0; done < all; done += reduce_block) {
    const unsigned rounds = all - done < reduce_block ? all - done : reduce_block;
    const auto next = [&](unsigned i) { return at(done + i, (done + i) * wide + threadIdx.x); };
    C sum = next(0);
    if constexpr (all <= kept_elements) {
      UNROLL for (unsigned i = 1; i < all; ++i) sum = Reducer::combine(sum, next(i));
    } else {
      // Reads do not wait for one another: those of eight elements are under way before the first is combined.
      constexpr unsigned ahead = 8;
      unsigned i = 1;
      for (; i + ahead <= rounds; i += ahead) {
        C read[ahead];
        UNROLL for (unsigned k = 0; k < ahead; ++k) read[k] = next(i + k);
        sum = Several<Reducer>::combine(sum, read);
      }
      for (; i < rounds; ++i) sum = Reducer::combine(sum, next(i));
    }
    lanes[threadIdx.x] = sum;
    for (unsigned half = wide / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) lanes[threadIdx.x] = Reducer::combine(lanes[threadIdx.x], lanes[threadIdx.x + half]);
    }
    __syncthreads();
    total = Reducer::combine(total, lanes[0]);
    __syncthreads();  // until all threads have read it
  }
  if constexpr (n % wide > 0) {
    if (threadIdx.x < n % wide) lanes[threadIdx.x] = at(all, all * wide + threadIdx.x);
    __syncthreads();
    total = reduce_rest<Reducer, n % wide>(total, [&](unsigned, unsigned j) { return lanes[j]; });
    __syncthreads();
  }
  return total;
}

// The index of the first largest element.
template <unsigned n, class F>
std::int32_t argmax_by_thread(F&& at) {
  unsigned place = 0;
  auto best = at(0U, 0U);
  for (unsigned j = 1; j < n; ++j) {
    const auto x = at(j, j);
    if (!is_larger(x, best)) continue;
    best = x;
    place = j;
  }
  return static_cast<std::int32_t>(place);
}

template <unsigned n, class F>
std::int32_t argmax_by_block(F&& at) {
  using T = decltype(at(0U, 0U));
  constexpr unsigned wide = wide_group;
  SHARED(T, values, wide);
  SHARED(unsigned, places, wide);
  T best = at(0, threadIdx.x);
  unsigned place = threadIdx.x;
  for (unsigned j = threadIdx.x + wide; j < n; j += wide) {
    const T x = at(j / wide, j);
    if (!is_larger(x, best)) continue;
    best = x;
    place = j;
  }
  values[threadIdx.x] = best;
  places[threadIdx.x] = place;
  for (unsigned half = wide / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const T x = values[threadIdx.x + half], own = values[threadIdx.x];
    const unsigned from = places[threadIdx.x + half];
    if (!is_larger(x, own) && (is_larger(own, x) || from > places[threadIdx.x])) continue;
    values[threadIdx.x] = x;
    places[threadIdx.x] = from;
  }
  __syncthreads();
  const unsigned found = places[0];
  __syncthreads();
  return static_cast<std::int32_t>(found);
}

}  // namespace pmaptrain::ops
