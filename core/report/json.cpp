#include "core/report/json.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/base/json.h"
#include "core/base/text.h"

namespace pmaptrain::report {
namespace {

Json element(DType dtype, std::span<const std::byte> value, std::size_t index) {
  return dispatch(dtype, [&]<class T>() -> Json {
    T number{};
    std::memcpy(&number, value.data() + index * sizeof number, sizeof number);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
      // The nearest short decimal: 0.1 and not 0.10000000149. A value that is not finite prints as null.
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

Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json known(int number) { return number > 0 ? Json(number) : Json(nullptr); }

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

Json errors_json(const std::vector<Diagnostic>& diagnostics) {
  Json errors = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    const Place& place = diagnostic.place;
    Json error;
    error["kind"] = diagnostic.kind;
    error["file"] = known(place.file);
    error["line"] = known(place.line);
    error["column"] = known(place.line > 0 ? place.column : 0);
    error["message"] = diagnostic.message;
    error["help"] = known(diagnostic.help);
    if (!diagnostic.notes.empty()) error["notes"] = diagnostic.notes;
    errors.push_back(std::move(error));
  }
  return errors;
}

std::string to_text(const Json& document) { return json_text(document, 2) + "\n"; }

}  // namespace pmaptrain::report
