// The largest element of a row and the sum of exp(x - largest), found in one pass over the row, in generated kernels.
namespace pmaptrain::ops {

// Of some elements: the largest, and the sum of their exponentials after it has been subtracted (Milakov and Gimelshein
// 2018). One element x is {x, 1}, whatever it is.
template <class T>
struct Softmax {
  T largest, sum;

  // The sum over the whole row. As in two passes, NaN if the largest element is infinite or NaN.
  __device__ T total() const { return sum + (largest - largest); }
};

struct SoftmaxReducer {
  template <class S>
  static constexpr S identity() {
    return {MaxReducer::identity<decltype(S::largest)>(), 0};
  }
  // An exponential for both: that of the larger one is 1. Equal ones may be infinite.
  template <class S>
  static __device__ S combine(S a, S b) {
    const auto apart = a.largest == b.largest ? 0 : a.largest - b.largest;
    const auto more = apart > 0 ? a.sum : b.sum, less = apart > 0 ? b.sum : a.sum;
    return {larger(a.largest, b.largest), more + less * ExpOf{}(-std::abs(apart))};
  }
};

struct MinReducer {
  template <class T>
  static constexpr T identity() {
    return std::numeric_limits<T>::infinity();
  }
  // Takes no care of NaN, which the largest element is then.
  template <class T>
  static constexpr T combine(T acc, T x) {
    return x < acc ? x : acc;
  }
};

// Combines several elements with `acc`, one after another.
template <class Reducer>
struct Several {
  template <class C, unsigned count>
  static __device__ C combine(C acc, const C (&x)[count]) {
    UNROLL for (unsigned k = 0; k < count; ++k) acc = Reducer::combine(acc, x[k]);
    return acc;
  }
};
template <class First, class Second>
struct Several<PairReducer<First, Second>> {
  template <class C, unsigned count>
  static __device__ C combine(C acc, const C (&x)[count]) {
    decltype(C::first) first[count];
    decltype(C::second) second[count];
    UNROLL for (unsigned k = 0; k < count; ++k) {
      first[k] = x[k].first;
      second[k] = x[k].second;
    }
    return {Several<First>::combine(acc.first, first), Several<Second>::combine(acc.second, second)};
  }
};
// An exponential for each element, and one for `acc`; none waits for another.
template <>
struct Several<SoftmaxReducer> {
  template <class S, unsigned count>
  static __device__ S combine(S acc, const S (&x)[count]) {
    using T = decltype(S::largest);
    T largest = acc.largest;
    UNROLL for (unsigned k = 0; k < count; ++k) largest = larger(largest, x[k].largest);
    // The exponential of -inf is 0 where all are -inf.
    const T from = largest == -std::numeric_limits<T>::infinity() ? 0 : largest;
    T sum = x[0].sum * ExpOf{}(x[0].largest - from);
    UNROLL for (unsigned k = 1; k < count; ++k) sum += x[k].sum * ExpOf{}(x[k].largest - from);
    return {largest, acc.sum * ExpOf{}(acc.largest - from) + sum};
  }
};

// Where the label's element is in a row of n elements; n if it has none.
template <unsigned n, class Label>
__device__ std::uint32_t place_of(Label label) {
  const auto place = static_cast<std::int64_t>(label);
  return place < 0 || place >= n ? n : static_cast<std::uint32_t>(place);
}

// The sum of (x - largest) · one_hot(label) over a row of n elements x; at(j) computes element j. All products but
// one are 0, or NaN if their difference is infinite or NaN, as that of the least of these elements is first.
template <unsigned n, class T, class F>
__device__ T picked(std::uint32_t place, T largest, T least, F&& at) {
  const T others = 0 + (least - largest) * 0;
  return place < n ? others + (at(place) - largest) : others;
}

}  // namespace pmaptrain::ops
