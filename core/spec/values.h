// Converts checked nodes to plain values, and places errors about them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/spec/node.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

// The value of a key of a checked map; null if it is missing or invalid.
const Node* get(const Node* map, std::string_view key);
// The value at a dotted path; `map` itself for an empty path.
const Node* get_path(const Node* map, std::string_view path);

// Converts a checked node; null leaves `out` unchanged.
void store(const Node* node, std::int64_t& out);
void store(const Node* node, double& out);
void store(const Node* node, bool& out);
void store(const Node* node, std::uint64_t& out);
void store(const Node* node, std::string& out);
void store(const Node* node, std::vector<std::int64_t>& out);
void store(const Node* node, std::vector<double>& out);
void store(const Node* node, std::vector<std::vector<double>>& out);
void store(const Node* node, std::optional<int>& out);  // none for `auto`
void store(const Node* node, Range& out);
void store(const Node* node, Spread& out);
void store(const Node* node, FilePair& out);
void store(const Node* node, Npz::Split& out);
void store(const Node* node, ColumnName& out);
void store(const Node* node, std::vector<ColumnName>& out);
void store(const Node* node, MissingCells& out);
void store(const Node* node, ClassWeights& out);
void store(const Node* node, Csv::Files& out);
void store(const Node* node, Padding& out);
void store(const Node* node, Mesh& out);
void store(const Node* node, Duration& out);
void store(const Node* node, Interval& out);
void store(const Node* node, std::optional<MemorySize>& out);
void store(const Node* node, std::vector<Pattern>& out);
void store(const Node* node, Amount& out);
void store(const Node* node, std::vector<Duration>& out);
void store(const Node* node, std::vector<schedule::Scale>& out);
void store(const Node* node, std::map<std::string, Tensor>& out);  // by path; of duplicates the first

// The chosen alternative of a choice: its name and its options; null if there is no valid one.
struct Chosen {
  const Node* name = nullptr;
  const Node* options = nullptr;
};

// The first node set by an option: `node` itself or a node below it; null if there is none.
const Node* overridden(const Node& node);

// The place of errors about a value: the part set by an option, or else the value itself.
Place error_place(const Node& node);
Place error_place(const Chosen& chosen);
// The same for the value of a key, valid or not.
Place error_place(const Node* map, std::string_view key);

}  // namespace pmaptrain::spec
