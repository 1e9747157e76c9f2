// Checked nodes as plain values, and the place where an error about them is shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/spec/node.h"

namespace pmaptrain::spec {

// The value of a key of a checked map; null where it is missing or wrong.
const Node* get(const Node* map, std::string_view key);

// Converts a checked node; leaves `out` as it is for null.
void store(const Node* node, std::int64_t& out);
void store(const Node* node, double& out);
void store(const Node* node, bool& out);
void store(const Node* node, std::string& out);
void store(const Node* node, std::vector<std::int64_t>& out);
void store(const Node* node, std::vector<double>& out);
void store(const Node* node, std::vector<std::vector<double>>& out);

// The alternative of a choice that was taken: its name and its options; null where none is valid.
struct Chosen {
  const Node* name = nullptr;
  const Node* options = nullptr;
};
Chosen chosen(const Node* node, std::string_view path);

// The first node in `node` that an option wrote, itself or below it; null if there is none.
const Node* overridden(const Node& node);

// Where an error about a value is shown: what an option changed in it, else the value itself.
Place error_place(const Node& node);
Place error_place(const Chosen& chosen);
// The same of a key's value, invalid ones included.
Place error_place(const Node* map, std::string_view key);

}  // namespace pmaptrain::spec
