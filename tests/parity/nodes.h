// The node tests of ONNX that onnx_nodes.py translated and wrote down, on any backend: what NumPy says that the ops
// give.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/run/files/safetensors.h"
#include "core/runtime/backend.h"

namespace pmaptrain::parity {

// Programs by the name of their test.
std::map<std::string, std::shared_ptr<const Program>> node_tests();

// Inputs and expected outputs, each as "test/name".
run::Tensors node_tensors();

// The outputs that are not as the test says, of a module of its program.
std::vector<std::string> mistakes(const std::string& name, const run::Tensors& tensors, Module& module);

}  // namespace pmaptrain::parity
