// How a block of threads reduces parts of columns (ColumnOrder in core/ops/reduce/loops.h). Compiled kernels include
// this file, and generated ones begin with its text.
namespace pmaptrain::ops {

// An array in shared memory, which is the same one for all callers.
template <class V, unsigned count>
__device__ V* shared_array() {
  SHARED(V, array, count);
  return array;
}

// Combines `sum` with `count` elements in order for each lane, at most `most` in any lane; `at(row)` computes one. All
// threads compute elements, so loads of many rows are under way at once; the first thread of a lane combines them, and
// has the result. All threads of the block must call this.
template <class Reducer, class V, class F>
__device__ V reduce_part(V sum, unsigned count, unsigned most, F&& at) {
  constexpr unsigned helpers = part_threads / part_lanes;
  constexpr unsigned rows = sizeof(V) <= 16 ? 32 : sizeof(V) <= 32 ? 16 : sizeof(V) <= 64 ? 8 : helpers;  // 32 KiB
  V* const tile = shared_array<V, rows * part_lanes>();
  const unsigned lane = threadIdx.x % part_lanes, helper = threadIdx.x / part_lanes;
  for (unsigned begin = 0; begin < most; begin += rows) {
    V next[rows / helpers] = {};
    UNROLL for (unsigned j = 0; j < rows / helpers; ++j) {
      const unsigned row = begin + helper + j * helpers;
      if (row < count) next[j] = at(row);
    }
    UNROLL for (unsigned j = 0; j < rows / helpers; ++j) tile[(helper + j * helpers) * part_lanes + lane] = next[j];
    __syncthreads();
    const unsigned left = helper > 0 || count < begin ? 0 : count - begin;
    for (unsigned j = 0; j < (left < rows ? left : rows); ++j) {
      sum = Reducer::combine(sum, tile[j * part_lanes + lane]);
    }
    __syncthreads();
  }
  return sum;
}

// Combines `reduced` with the parts of a column, each lane with its own: `own(i)` gives the one that is i parts after
// the first, of a matrix with `blocks` blocks of wide rows of `group` rows each, and a part of what is left after the
// last wide row if `has_left`. The first thread of a lane has the result. All threads of the block must call this.
template <class Reducer, class V, class F>
__device__ V combine_parts(V reduced, unsigned columns, unsigned group, unsigned blocks, bool has_left, F&& own) {
  const auto reduce_member = [&](V sum, unsigned member) {
    return reduce_part<Reducer, V>(sum, blocks, blocks, [&](unsigned block) {
      return own((static_cast<std::size_t>(block) * group + member) * columns);
    });
  };
  if (group == 1) return reduce_member(reduced, 0);
  V sum{};
  for (unsigned member = 0; member < group; ++member) {
    const V total = reduce_member(Reducer::template identity<V>(), member);
    sum = member == 0 ? total : Reducer::combine(sum, total);
  }
  reduced = Reducer::combine(reduced, sum);
  if (has_left) reduced = Reducer::combine(reduced, own(static_cast<std::size_t>(blocks) * group * columns));
  return reduced;
}

}  // namespace pmaptrain::ops
