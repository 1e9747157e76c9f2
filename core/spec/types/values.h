// Converts checked nodes to plain values, and places errors about them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/spec/spec.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

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

}  // namespace pmaptrain::spec
