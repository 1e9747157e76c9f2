// CIFAR-10 in its binary version (https://www.cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include <functional>

#include "core/data/dataset.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// Opens the splits that are wanted: train is data_batch_1.bin to data_batch_5.bin, test is test_batch.bin. The
// names of the classes are those of batches.meta.txt, if it is there. Throws Error (data), which names the file.
Source open_cifar10(const spec::Cifar10& cifar, const std::function<bool(Split)>& wants);

}  // namespace pmaptrain::data
