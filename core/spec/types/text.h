// Texts, lists of texts, and names.
#pragma once

#include <string>
#include <vector>

#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<std::string> {
  static constexpr const Type& type = Type::text;
  static void store(const Node& value, std::string& out) { out = value.text; }
  static std::string written(const std::string& value) { return value; }
};

template <>
struct Takes<ColumnName> {
  static constexpr const Type& type = Type::text;
  static void store(const Node& value, ColumnName& out) { out = {value.text, place_of(value)}; }
};

// A list of texts; one text is a list of one.
struct TakesTexts {
  static const Type type;
};

template <>
struct Takes<std::vector<declare::Pattern>> : TakesTexts {
  static void store(const Node& value, std::vector<declare::Pattern>& out);
};

template <>
struct Takes<std::vector<ColumnName>> : TakesTexts {
  static void store(const Node& value, std::vector<ColumnName>& out);
};

// Checks a value as one of a key of type text.
Node check_text(const Key& key, const Node& value, const Reporter& reporter);

}  // namespace pmaptrain::spec
