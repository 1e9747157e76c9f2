// Sums of squared differences from a mean that is known only after all elements have been read, in generated kernels.
namespace pmaptrain::ops {

// Of some elements: their number, the first of them, and the sums of their differences from it and of the squares of
// these. Because the shift is one of the elements, the rounding error of squares_about() is at most that of a sum in
// two passes times the number of elements, however large their mean is.
template <class T>
struct Shifted {
  T count, shift, sum, squares;

  __device__ void add(bool is_inside, T x) {
    if (!is_inside) return;
    if (count == 0) shift = x;
    const T difference = x - shift;
    count += 1;
    sum += difference;
    squares += difference * difference;
  }

  // Adds other elements.
  __device__ void add(const Shifted& other) {
    if (other.count == 0) return;
    if (count == 0) {
      *this = other;
      return;
    }
    const T by = other.shift - shift, moved = other.count * by;
    count += other.count;
    sum += other.sum + moved;
    squares += other.squares + by * (2 * other.sum + moved);
  }

  // The sum of (x - mean)².
  __device__ T squares_about(T mean) const {
    if (count == 0) return 0;
    const T by = mean - shift, result = squares - by * (2 * sum - count * by);
    return result < 0 ? 0 : result;
  }
};

// What the threads of a lane have found, joined in their order, for the first of them. All threads of the block must
// call this.
template <class T>
__device__ Shifted<T> joined_in_lane(const Shifted<T>& own) {
  SHARED(Shifted<T>, all, part_threads);
  all[threadIdx.x] = own;
  __syncthreads();
  Shifted<T> joined = own;
  for (unsigned i = threadIdx.x + part_lanes; i < part_threads && threadIdx.x < part_lanes; i += part_lanes) {
    joined.add(all[i]);
  }
  __syncthreads();
  return joined;
}

// The value that the first thread of the lane has. All threads of the block must call this.
template <class T>
__device__ T first_of_lane(T value) {
  SHARED(T, all, part_lanes);
  if (threadIdx.x < part_lanes) all[threadIdx.x] = value;
  __syncthreads();
  const T first = all[threadIdx.x % part_lanes];
  __syncthreads();
  return first;
}

}  // namespace pmaptrain::ops
