#include "core/data/dataset.h"

namespace pmaptrain::data {

std::string_view name_of(Split split) {
  switch (split) {
    case Split::train: return "train";
    case Split::validation: return "validation";
    case Split::test: break;
  }
  return "test";
}

std::optional<Split> split_named(std::string_view name) {
  for (const Split split : all_splits) {
    if (name_of(split) == name) return split;
  }
  return std::nullopt;
}

std::shared_ptr<const Dataset>& Source::of(Split split) {
  return split == Split::train ? train : split == Split::validation ? validation : test;
}
const std::shared_ptr<const Dataset>& Source::of(Split split) const {
  return split == Split::train ? train : split == Split::validation ? validation : test;
}

}  // namespace pmaptrain::data
