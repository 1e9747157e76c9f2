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

// Neighbouring elements of an array, which are read and written together.
template <class T, unsigned n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Pack {
  T at[n];
};
template <unsigned n, class T, class Index>
Pack<T, n> pack_at(const T* array, Index pack) {
  return reinterpret_cast<const Pack<T, n>*>(array)[pack];
}
template <unsigned n, class T>
Pack<T, n> empty_pack(const T*) {
  return {};
}
template <unsigned n, class T, class Index>
void store_pack(T* array, Index pack, const Pack<T, n>& elements) {
  reinterpret_cast<Pack<T, n>*>(array)[pack] = elements;
}

// A view of some elements of an array. An index counts from the beginning of the array; the view begins at `first`.
template <class T, class Index>
struct Window {
  T* at;
  Index first;
  T& operator[](Index e) const { return at[e - first]; }
};
template <class T, class Index>
Window(T*, Index) -> Window<T, Index>;

template <class... T>
bool are_aligned(const T*... arrays) {
  return ((reinterpret_cast<std::uint64_t>(arrays) | ...) & 15) == 0;
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
