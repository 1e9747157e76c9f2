// Checked nodes as plain values, and the place where an error about them is shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/spec/node.h"
#include "core/spec/spec.h"

namespace pmaptrain::spec {

// The value of a key of a checked map; null where it is missing or wrong.
const Node* get(const Node* map, std::string_view key);
// The same of a dotted path; all of `map` for an empty one.
const Node* get_path(const Node* map, std::string_view path);

// Converts a checked node; leaves `out` as it is for null.
void store(const Node* node, std::int64_t& out);
void store(const Node* node, double& out);
void store(const Node* node, bool& out);
void store(const Node* node, std::uint64_t& out);
void store(const Node* node, std::string& out);
void store(const Node* node, std::vector<std::int64_t>& out);
void store(const Node* node, std::vector<double>& out);
void store(const Node* node, std::vector<std::vector<double>>& out);
void store(const Node* node, std::optional<int>& out);  // none for `auto`
void store(const Node* node, FilePair& out);
void store(const Node* node, Npz::Split& out);
void store(const Node* node, Padding& out);
void store(const Node* node, Mesh& out);
void store(const Node* node, Duration& out);
void store(const Node* node, Interval& out);
void store(const Node* node, std::map<std::string, Tensor>& out);  // by path; the first of several of one path

// The alternative of a choice that was taken: its name and its options; null where none is valid.
struct Chosen {
  const Node* name = nullptr;
  const Node* options = nullptr;
};

// The first node in `node` that an option wrote, itself or below it; null if there is none.
const Node* overridden(const Node& node);

// Where an error about a value is shown: what an option changed in it, else the value itself.
Place error_place(const Node& node);
Place error_place(const Chosen& chosen);
// The same of a key's value, invalid ones included.
Place error_place(const Node* map, std::string_view key);

}  // namespace pmaptrain::spec
