// Graphs as files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/onnx/graph.h"

namespace pmaptrain::onnx {

// The largest file that readers of protocol buffers take.
inline constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 31) - 1;

// The bytes of the file.
std::uint64_t file_bytes(const Graph& graph);

// Passes the file to `put`, part by part. The elements of initializers are not copied.
void write_file(const Graph& graph, const std::function<void(std::span<const std::byte>)>& put);

}  // namespace pmaptrain::onnx
