// Graphs as files.
#include "core/onnx/file.h"

#include <fmt/format.h>

#include "core/base/version.h"
#include "tests/catch.h"

using namespace pmaptrain;
using onnx::ElementType;

namespace {

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string file_of(const onnx::Graph& graph) {
  std::string file;
  onnx::write_file(graph, [&](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  CHECK(onnx::file_bytes(graph) == file.size());
  return file;
}

// What the Python package onnx 1.16.2 writes for the graph below, with the version VERSION.
std::string expected() {
  std::string hex =
      "08081209706d6170747261696e1a0756455253494f4e3aae030a6c0a04636974"
      "79120f612f4f6e65486f74456e636f6465721a0f612f4f6e65486f74456e636f"
      "646572220d4f6e65486f74456e636f6465722a190a0c636174735f737472696e"
      "67734a044f736c6f4a00a001082a0c0a057a65726f731801a001023a0a61692e"
      "6f6e6e782e6d6c0a400a01780a08612f6b65726e656c1206612f436f6e761a06"
      "612f436f6e762204436f6e762a1b0a04706164734000400140ffffffffffffff"
      "ffff0140ac02a001070a2c0a06612f436f6e761205612f456c751a05612f456c"
      "752203456c752a0f0a05616c706861150000003fa001010a210a05612f456c75"
      "12066c6f676974731a066c6f6769747322084964656e7469747912056d6f6465"
      "6c2a1a0801080210014208612f6b65726e656c4a080000c03f000000c02a1610"
      "0b4208612f6e756d6265724a089a9999999999b93f2a2208021007420a612f69"
      "6e7465676572734a100000000000000000ffffffffffffffff5a170a04636974"
      "79120f0a0d080812090a0312014e0a0208015a180a017812130a110802120d0a"
      "0312014e0a0208020a02080362190a066c6f67697473120f0a0d080112090a03"
      "12014e0a02080542040a001011420e0a0a61692e6f6e6e782e6d6c100372100a"
      "07636c617373657312055b2261225d";
  const std::string theirs = hex_of("\x1a\x07VERSION");
  const std::string ours = "1a" + fmt::format("{:02x}", version.size()) + hex_of(version);
  return hex.replace(hex.find(theirs), theirs.size(), ours);
}

}  // namespace

TEST_CASE("a graph is written as the messages of protocol buffers that ONNX's own package writes", "[onnx]") {
  onnx::Graph graph;
  const std::string city = graph.input("city", ElementType::text, {1}), x = graph.input("x", ElementType::u8, {2, 3});
  graph.name_after("a");
  const std::vector<std::string> categories{"Oslo", ""};
  graph.node("OneHotEncoder", {city}, {{"cats_strings", categories}, {"zeros", std::int64_t{1}}},
             std::string(onnx::ml_domain));
  const float kernel[] = {1.5F, -2.0F};
  const std::string initializer = graph.initializer("kernel", {1, 2}, std::as_bytes(std::span(kernel)));
  const std::string conv = graph.node("Conv", {x, initializer}, {{"pads", std::vector<std::int64_t>{0, 1, -1, 300}}});
  const std::string elu = graph.node("Elu", {conv}, {{"alpha", 0.5F}});
  graph.number(0.1, ElementType::f64);
  graph.integers({0, -1});
  graph.output("logits", elu, {5});
  graph.metadata("classes", "[\"a\"]");
  CHECK(hex_of(file_of(graph)) == expected());
}

TEST_CASE("names in a graph are unique", "[onnx]") {
  onnx::Graph graph;
  const std::string x = graph.input("x", ElementType::f32, {4, 4, 3});
  CHECK(graph.input("x", ElementType::f32, {1}) == "x_2");
  graph.name_after("a");
  CHECK(graph.node("Relu", {x}) == "a/Relu");
  CHECK(graph.node("Relu", {x}) == "a/Relu_2");
  CHECK(graph.node("Relu", {x}) == "a/Relu_3");
}

TEST_CASE("the size of a file is known without its elements, and operators on tables are imported where they are used",
          "[onnx]") {
  onnx::Graph graph;
  const std::string x = graph.input("x", ElementType::f32, {1});
  const std::uint64_t without = onnx::file_bytes(graph);
  CHECK(file_of(graph).find(onnx::ml_domain) == std::string::npos);
  // 3 GiB that nobody reads.
  const std::byte some{};
  graph.initializer("large", {3 << 8, 1 << 20}, std::span(&some, std::size_t{3} << 30));
  CHECK(onnx::file_bytes(graph) > without + (std::uint64_t{3} << 30));
  CHECK(onnx::file_bytes(graph) > onnx::most_bytes);
}
