// How a block of threads reduces parts of columns (ColumnOrder in core/ops/reduce/loops.h). Compiled kernels include
// this file, and generated ones begin with its text.
namespace pmaptrain::ops {

// Reduces `count` elements in order for each lane, at most `most` in any lane; `at(row)` computes one. All threads
// compute elements, so loads of many rows are under way at once; the first thread of a lane combines them, and has the
// result. All threads of the block must call this.
template <class Reducer, class V, class F>
__device__ V reduce_part(unsigned count, unsigned most, F&& at) {
  constexpr unsigned rows = 32, helpers = part_threads / part_lanes;
  SHARED(V, tile, rows * part_lanes);
  const unsigned lane = threadIdx.x % part_lanes, helper = threadIdx.x / part_lanes;
  V sum = Reducer::template identity<V>();
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

}  // namespace pmaptrain::ops
