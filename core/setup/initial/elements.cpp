#include "core/setup/initial/elements.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/half.h"
#include "core/model/element_walk.h"
#include "core/setup/initial/ranges.h"

namespace pmaptrain::setup {
namespace {

// An element of f16.
struct Half {
  std::uint16_t bits;
  explicit operator float() const { return widened_half(bits); }
  explicit operator double() const { return static_cast<double>(widened_half(bits)); }
};

template <class T>
T element_at(const run::TensorView& array, std::size_t place) {
  T element;
  std::memcpy(&element, array.bytes.data() + place * sizeof(T), sizeof(T));
  return element;
}

template <class T, class F>
void read_as(const model::StoredParameter& stored, const FileArray& from, const F& take) {
  constexpr std::size_t least = 4;  // of tasks, which take much longer than starting a thread
  const model::ElementWalk walk(stored);
  for_ranges(walk.tasks(), least, [&](std::size_t begin, std::size_t end) {
    for (std::size_t task = begin; task < end; ++task) {
      if (from.added) {
        walk.run(task, [&](std::size_t element, std::size_t place) {
          using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
          take(element, static_cast<Sum>(element_at<T>(from.array, place)) +
                            static_cast<Sum>(element_at<T>(*from.added, place)));
        });
      } else {
        walk.run(task,
                 [&](std::size_t element, std::size_t place) { take(element, element_at<T>(from.array, place)); });
      }
    }
  });
}

template <class F>
void with_element_type(const run::TensorView& array, const F& f) {
  if (array.is_half) return f.template operator()<Half>();
  dispatch_floating(array.dtype, f);
}

}  // namespace

std::optional<std::size_t> read_elements(const model::StoredParameter& stored, const FileArray& from, DType dtype,
                                         std::span<std::byte> into) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::atomic<std::size_t> first = none;
  with_element_type(from.array, [&]<class T>() {
    dispatch_floating_arithmetic(dtype, [&]<class To>() {
      read_as<T>(stored, from, [&](std::size_t element, auto value) {
        const To converted = static_cast<To>(value);
        std::memcpy(into.data() + element * sizeof(To), &converted, sizeof(To));
        if (std::isfinite(static_cast<double>(converted))) return;
        std::size_t known = first;
        while (element < known && !first.compare_exchange_weak(known, element)) {
        }
      });
    });
  });
  return first == none ? std::nullopt : std::optional(first.load());
}

double element_of(const model::StoredParameter& stored, const FileArray& from, std::size_t element) {
  double found = 0;
  with_element_type(from.array, [&]<class T>() {
    read_as<T>(stored, from, [&](std::size_t each, auto value) {
      if (each == element) found = static_cast<double>(value);
    });
  });
  return found;
}

}  // namespace pmaptrain::setup
