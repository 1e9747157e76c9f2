// The messages of onnx.proto, written by hand. The classes that libonnx has for them would hold a second copy of all
// parameters, and loading it takes 4 ms of each start of the program, whatever the command.
#include "core/onnx/file.h"

#include <algorithm>
#include <string>

#include "core/base/protobuf.h"
#include "core/base/version.h"

namespace pmaptrain::onnx {
namespace {

using namespace protobuf;

constexpr std::int64_t ir_version = 8, operator_set = 17;
constexpr std::int64_t ml_operator_set = 3;
constexpr std::string_view batch_dimension = "N", length_dimension = "length";

// AttributeProto { string name = 1; float f = 2; int64 i = 3; bytes s = 4; repeated int64 ints = 8; repeated bytes
// strings = 9; AttributeType type = 20; }
enum AttributeType : std::uint8_t { is_float = 1, is_int = 2, is_string = 3, is_ints = 7, is_strings = 8 };

struct AppendAttribute {
  std::string& to;
  void operator()(std::int64_t value) const {
    append_integer(to, 3, value);
    append_integer(to, 20, is_int);
  }
  void operator()(float value) const {
    append_float(to, 2, value);
    append_integer(to, 20, is_float);
  }
  void operator()(const std::string& value) const {
    append_bytes(to, 4, value);
    append_integer(to, 20, is_string);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    for (const std::int64_t value : values) append_integer(to, 8, value);
    append_integer(to, 20, is_ints);
  }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) append_bytes(to, 9, value);
    append_integer(to, 20, is_strings);
  }
};

// NodeProto { repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4; repeated
// AttributeProto attribute = 5; string domain = 7; }
std::string message_of(const Node& node) {
  std::string message;
  for (const std::string& input : node.inputs) append_bytes(message, 1, input);
  append_bytes(message, 2, node.output);
  append_bytes(message, 3, node.name);
  append_bytes(message, 4, node.op);
  for (const Attribute& attribute : node.attributes) {
    std::string inner;
    append_bytes(inner, 1, attribute.name);
    std::visit(AppendAttribute{inner}, attribute.value);
    append_bytes(message, 5, inner);
  }
  if (!node.domain.empty()) append_bytes(message, 7, node.domain);
  return message;
}

// ValueInfoProto { string name = 1; TypeProto type = 2; }, TypeProto { Tensor tensor_type = 1; }, Tensor { int32
// elem_type = 1; TensorShapeProto shape = 2; }, TensorShapeProto { repeated Dimension dim = 1; }, Dimension { int64
// dim_value = 1; string dim_param = 2; }
std::string message_of(const Port& port) {
  std::string shape, dimension;
  append_bytes(dimension, 2, batch_dimension);
  append_bytes(shape, 1, dimension);
  for (const std::int64_t size : port.shape) {
    dimension.clear();
    if (size == any_length) {
      append_bytes(dimension, 2, length_dimension);
    } else {
      append_integer(dimension, 1, size);
    }
    append_bytes(shape, 1, dimension);
  }
  std::string tensor, type, message;
  append_integer(tensor, 1, static_cast<std::int64_t>(port.type));
  append_bytes(tensor, 2, shape);
  append_bytes(type, 1, tensor);
  append_bytes(message, 1, port.name);
  append_bytes(message, 2, type);
  return message;
}

// Of TensorProto { repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9; } all but the
// elements, which follow.
std::string head_of(const Initializer& initializer) {
  std::string message;
  for (const std::int64_t size : initializer.shape) append_integer(message, 1, size);
  append_integer(message, 2, static_cast<std::int64_t>(initializer.type));
  append_bytes(message, 8, initializer.name);
  append_head(message, 9, initializer.bytes.size());
  return message;
}

// StringStringEntryProto { string key = 1; string value = 2; }, OperatorSetIdProto { string domain = 1; int64 version =
// 2; }
std::string pair_of(std::string_view key, std::string_view value) {
  std::string message;
  append_bytes(message, 1, key);
  append_bytes(message, 2, value);
  return message;
}
std::string operators(std::string_view domain, std::int64_t version) {
  std::string message;
  append_bytes(message, 1, domain);
  append_integer(message, 2, version);
  return message;
}

// What precedes the elements of each initializer, and the rest of the file.
struct Parts {
  std::vector<std::string> heads;  // by initializer
  std::string before, after;
  std::uint64_t bytes = 0;
};

// ModelProto { int64 ir_version = 1; string producer_name = 2; string producer_version = 3; GraphProto graph = 7;
// repeated OperatorSetIdProto opset_import = 8; repeated StringStringEntryProto metadata_props = 14; }
// GraphProto { repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5; repeated
// ValueInfoProto input = 11; repeated ValueInfoProto output = 12; }
Parts parts_of(const Graph& graph) {
  Parts parts;
  std::string before;
  for (const Node& node : graph.nodes()) append_bytes(before, 1, message_of(node));
  append_bytes(before, 2, "model");
  std::uint64_t bytes = before.size();
  for (const Initializer& initializer : graph.initializers()) {
    const std::string tensor = head_of(initializer);
    std::string& head = parts.heads.emplace_back();
    append_head(head, 5, tensor.size() + initializer.bytes.size());
    head += tensor;
    bytes += head.size() + initializer.bytes.size();
  }
  std::string ports;
  for (const Port& port : graph.inputs()) append_bytes(ports, 11, message_of(port));
  for (const Port& port : graph.outputs()) append_bytes(ports, 12, message_of(port));
  bytes += ports.size();

  append_integer(parts.before, 1, ir_version);
  append_bytes(parts.before, 2, "pmaptrain");
  append_bytes(parts.before, 3, version);
  append_head(parts.before, 7, bytes);
  parts.bytes = parts.before.size() + bytes;
  parts.before += before;

  std::string rest;
  append_bytes(rest, 8, operators("", operator_set));
  const bool has_ml = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                  [](const Node& node) { return node.domain == ml_domain; });
  if (has_ml) append_bytes(rest, 8, operators(ml_domain, ml_operator_set));
  for (const auto& [key, value] : graph.metadata()) append_bytes(rest, 14, pair_of(key, value));
  parts.bytes += rest.size();
  parts.after = ports + rest;
  return parts;
}

}  // namespace

std::uint64_t file_bytes(const Graph& graph) { return parts_of(graph).bytes; }

void write_file(const Graph& graph, const std::function<void(std::span<const std::byte>)>& put) {
  const Parts parts = parts_of(graph);
  put(std::as_bytes(std::span(parts.before)));
  for (std::size_t i = 0; i < parts.heads.size(); ++i) {
    put(std::as_bytes(std::span(parts.heads[i])));
    put(graph.initializers()[i].bytes);
  }
  put(std::as_bytes(std::span(parts.after)));
}

}  // namespace pmaptrain::onnx
