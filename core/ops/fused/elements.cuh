// Functions that generated kernels call in addition to the functors. This text is inserted after the functors.
namespace pmaptrain::ops {

template <class F, class T, class... More>
auto apply(T x, More... more) {
  return OnElements<F, T>{}(x, more...);
}

template <class T>
T select(bool predicate, T on_true, T on_false) {
  return predicate ? on_true : on_false;
}

// The element of type T with these bits.
template <class T>
T element(std::uint64_t bits) {
  using Small = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
  using Large = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<T>(static_cast<std::conditional_t<(sizeof(T) < 4), Small, Large>>(bits));
}

template <class Index>
Index first_element() {
  return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
}
template <class Index>
Index all_threads() {
  return static_cast<Index>(gridDim.x) * blockDim.x;
}

}  // namespace pmaptrain::ops

using namespace pmaptrain;
using namespace pmaptrain::ops;
