// Sources of IDX files, MNIST's format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/data/opening.h"

namespace pmaptrain::data {

using declare::FilePair;

struct Idx {
  FilePair train;
  std::optional<FilePair> validation, test;

  static Declaration<Idx> declaration();
  Source open(const Opening& opening) const;
  std::string assignment(std::string_view split) const { return std::string(split) + "='[INPUTS, TARGETS]'"; }
};

// The IDX files of Debian's dataset-fashion-mnist. The resolved config keeps the name `fashion_mnist`.
struct FashionMnist {
  static constexpr bool has_test = true;
  std::string dir = "/usr/share/datasets/fashion-mnist";

  static Declaration<FashionMnist> declaration();
  Source open(const Opening& opening) const;
};

}  // namespace pmaptrain::data
