#include <cmath>
#include <cstdlib>
#include <cstring>

#include "app/json.h"
#include "core/base/text.h"

namespace pmaptrain::app {
namespace {

Json element(DType dtype, std::span<const std::byte> value, std::size_t index) {
  return dispatch(dtype, [&]<class T>() -> Json {
    T number{};
    std::memcpy(&number, value.data() + index * sizeof number, sizeof number);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
      // As the nearest short decimal: 0.1 and not 0.10000000149. What is not finite prints as null.
      const auto wide = static_cast<float>(number);
      return std::isfinite(wide) ? Json(std::strtod(exact(wide).c_str(), nullptr)) : Json(wide);
    } else {
      return number;
    }
  });
}

Json nested(DType dtype, const Shape& shape, std::span<const std::byte> value, std::size_t dimension,
            std::size_t& index) {
  if (dimension == shape.size()) return element(dtype, value, index++);
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[dimension]; ++i) list.push_back(nested(dtype, shape, value, dimension + 1, index));
  return list;
}

}  // namespace

Json value_json(DType dtype, const Shape& shape, std::span<const std::byte> value) {
  std::size_t index = 0;
  return nested(dtype, shape, value, 0, index);
}

bool all_finite(DType dtype, std::span<const std::byte> value) {
  return dispatch(dtype, [&]<class T>() {
    if constexpr (FloatingElement<T>) {
      for (std::size_t i = 0; i < value.size(); i += sizeof(T)) {
        T number{};
        std::memcpy(&number, value.data() + i, sizeof number);
        if (!std::isfinite(number)) return false;
      }
    }
    return true;
  });
}

}  // namespace pmaptrain::app
