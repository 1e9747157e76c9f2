// Keys that several schedules have.
#pragma once

#include <string>
#include <string_view>

#include "core/schedules/making.h"

namespace pmaptrain::schedules {

using declare::Declaration;
using declare::field;
using declare::Key;
using declare::Need;

inline Key rate_key(std::string_view name, Need need, std::string_view meaning, std::string_view example) {
  return {.path = std::string(name),
          .need = need,
          .high = declare::unbounded,
          .varies = true,
          .meaning = meaning,
          .example = example};
}
inline Key init_value_key(Need need = Need::required) {
  return rate_key("init_value", need, "The learning rate of the first update.", "init_value: 0.1");
}
inline Key end_value_key() {
  return rate_key("end_value", Need::optional, "The learning rate at the end, and from then on.", "end_value: 1.0e-5");
}
inline Key peak_value_key(std::string_view meaning, std::string_view example) {
  return rate_key("peak_value", Need::required, meaning, example);
}
inline Key length_key(std::string_view name, std::string_view meaning) {
  static constexpr std::string_view transition = "transition: 10 epochs", decay = "decay: 10 epochs";
  return {.path = std::string(name),
          .meaning = meaning,
          .example = name == "decay" ? decay : transition,
          .fallback_text = "what is left of the run's duration"};
}

}  // namespace pmaptrain::schedules
