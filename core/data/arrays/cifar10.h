// CIFAR-10 in its binary version (https://www.cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include <string>

#include "core/data/opening.h"

namespace pmaptrain::data {

// Train is data_batch_1.bin to data_batch_5.bin, test is test_batch.bin. The names of the classes are those of
// batches.meta.txt.
struct Cifar10 {
  static constexpr bool has_test = true;
  std::string dir;  // absolute

  static Declaration<Cifar10> declaration();
  Source open(const Opening& opening) const;
};

}  // namespace pmaptrain::data
