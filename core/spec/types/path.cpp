#include "core/spec/types/path.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "core/spec/types/leaf.h"
#include "core/spec/types/schema_text.h"
#include "core/spec/types/text.h"

namespace pmaptrain::spec {
namespace {

using Kind = Node::Kind;

std::string path_text(const Key& /*key*/) { return "a path"; }
std::string path_schema(const Key& /*key*/, Definitions& /*named*/) { return schema::text(); }

// Paths in a file are relative to its folder, paths in an option to the current directory.
Node check_path(const Key& key, const Node& value, const Reporter& reporter) {
  if (!value.is(Kind::scalar) || value.text.empty()) return wrong_value(key, value, reporter);
  std::filesystem::path path(value.text);
  if (path.is_relative()) {
    const std::string base = value.source ? value.source->directory : std::string{};
    path = std::filesystem::absolute(base.empty() ? path : std::filesystem::path(base) / path);
  }
  Node result = with_text(value, path.lexically_normal().string());
  result.quoted = true;
  return result;
}

std::string paths_text(const Key& /*key*/) { return "a list of two paths"; }
std::string paths_schema(const Key& /*key*/, Definitions& /*named*/) { return schema::list_of(schema::text(), 2, 2); }

Node check_paths(const Key& key, const Node& value, const Reporter& reporter) {
  return check_list(key, value, 2, reporter, [&](const Node& item) { return check_path(key, item, reporter); });
}

std::string files_text(const Key& /*key*/) { return "a path, or a list of paths"; }

std::string files_schema(const Key& /*key*/, Definitions& /*named*/) {
  return schema::any_of({schema::text(), schema::list_of(schema::text(), 1)});
}

Node check_files(const Key& key, const Node& value, const Reporter& reporter) {
  Node result =
      check_list_or_one(key, value, reporter, [&](const Node& item) { return check_path(key, item, reporter); });
  return result.is(Kind::sequence) && result.items.empty() ? empty_value(key, value, reporter) : result;
}

std::string file_or_arrays_text(const Key& /*key*/) {
  return "a path, a list of two names, or a map of inputs, targets and lengths to names";
}

std::string file_or_arrays_schema(const Key& /*key*/, Definitions& /*named*/) {
  const std::string name = schema::text();
  const std::string in_one = R"({"type": "object", "additionalProperties": false, "required": ["inputs", "targets"], )"
                             R"("properties": {"inputs": )" +
                             name + R"(, "targets": )" + name + R"(, "lengths": )" + name + "}}";
  return schema::any_of({schema::text(), schema::list_of(schema::text(), 2, 2), in_one});
}

Node check_names_of_arrays(const Key& key, const Node& value, const Reporter& reporter) {
  static constexpr std::string_view known[] = {"inputs", "targets", "lengths"};
  Node result = empty_at(value, Kind::map);
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    const Node& name = value.keys[i];
    if (std::find(std::begin(known), std::end(known), name.text) == std::end(known)) {
      return reporter.report(name, std::string(key.name()) + " has no array '" + name.text + "'",
                             "it names the arrays of inputs, targets and lengths: {inputs: x, targets: y, lengths: n}");
    }
    Node checked = value.items[i].valid() ? check_text(key, value.items[i], reporter) : value.items[i];
    if (!checked.valid()) result.kind = Kind::invalid;
    result.add(name, std::move(checked));
  }
  for (const char* const needed : {"inputs", "targets"}) {
    if (value.find(needed) != nullptr) continue;
    return reporter.report(value, std::string(key.name()) + " does not name the array of " + needed,
                           "for example {inputs: x, targets: y, lengths: n}");
  }
  return result;
}

Node check_file_or_arrays(const Key& key, const Node& value, const Reporter& reporter) {
  if (value.is(Kind::scalar)) return check_path(key, value, reporter);
  if (value.is(Kind::map)) return check_names_of_arrays(key, value, reporter);
  return check_list(key, value, 2, reporter, [&](const Node& item) { return check_text(key, item, reporter); });
}

}  // namespace

constinit const Type Type::path{path_text, path_schema, check_path};
constinit const Type Takes<declare::FilePair>::type{paths_text, paths_schema, check_paths};
constinit const Type Takes<std::vector<std::string>>::type{files_text, files_schema, check_files};
constinit const Type Takes<declare::FileOrArrays>::type{file_or_arrays_text, file_or_arrays_schema,
                                                        check_file_or_arrays};

void Takes<std::vector<std::string>>::store(const Node& value, std::vector<std::string>& out) {
  store_items<Takes<std::string>>(value, out);
}

void Takes<declare::FileOrArrays>::store(const Node& value, declare::FileOrArrays& out) {
  const auto named = [&](const char* array) {
    const Node* const name = value.find(array);
    return name != nullptr ? name->text : std::string();
  };
  if (value.is(Kind::map)) {
    out = {"", named("inputs"), named("targets"), named("lengths")};
  } else if (value.is(Kind::sequence)) {
    out = {"", value.items[0].text, value.items[1].text};
  } else {
    out = {value.text, "", ""};
  }
}

}  // namespace pmaptrain::spec
