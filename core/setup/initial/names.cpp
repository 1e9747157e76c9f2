#include "core/setup/initial/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wildcards.h"
#include "core/model/layout.h"
#include "core/model/other_names.h"

namespace pmaptrain::setup {
namespace {

[[noreturn]] void refuse_rename(const spec::Rename& rename, std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"config", rename.from.place, std::move(message), std::move(help), {}});
}

// "a, b, c, ..."
std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  if (names.size() <= most) return join(names, ", ");
  return join({names.begin(), names.begin() + most}, ", ") + ", ...";
}

class Renamer {
 public:
  Renamer(const model::Model& model, const spec::InitialFrom& from) : from_(from) {
    for (const model::Parameter& parameter : model.parameters) {
      names_.push_back(parameter.name);
      const model::StoredParameter stored = model::stored(parameter, from.layout);
      for (const std::string& name : model::spellings(from.layout, stored.name)) {
        parameters_[name] = stored.is_part() ? stored.name : parameter.name;
      }
      if (!stored.added.empty()) parameters_[stored.added] = stored.added;
    }
    for (const std::string& name : names_) parameters_[name] = name;
  }

  // Whether the tensor is a parameter, or is to be called like one.
  bool knows(const std::string& name) const {
    return parameters_.contains(name) ||
           std::any_of(from_.rename.begin(), from_.rename.end(),
                       [&](const spec::Rename& rename) { return matches(rename.from.text, name); });
  }

  std::string renamed(const std::string& name) {
    std::string given = name;
    for (std::size_t i = 0; i < from_.rename.size(); ++i) {
      const spec::Rename& rename = from_.rename[i];
      const auto parts = wildcards(rename.from.text, name);
      if (!parts) continue;
      used_.insert(i);
      given = with_wildcards(rename.to, *parts);
      const bool is_exact = rename.to.find('*') == std::string::npos;
      if (is_exact && !parameters_.contains(given)) refuse_name(rename, name, given);
      break;
    }
    const auto found = parameters_.find(given);
    return found == parameters_.end() ? given : found->second;
  }

  // Throws for a rename that has matched nothing.
  void check_used(const std::vector<std::string>& in_file, const std::string& path) const {
    for (std::size_t i = 0; i < from_.rename.size(); ++i) {
      if (used_.contains(i)) continue;
      const spec::Rename& rename = from_.rename[i];
      const bool is_shadowed = std::any_of(in_file.begin(), in_file.end(),
                                           [&](const std::string& name) { return matches(rename.from.text, name); });
      const std::string near = nearest(rename.from.text, in_file);
      refuse_rename(rename,
                    fmt::format("rename: '{}' matches no tensor of {}{}", rename.from.text, path,
                                is_shadowed ? " that no other one before it matches" : ""),
                    is_shadowed    ? "move it in front of that"
                    : near.empty() ? "its tensors are " + first_of(in_file)
                                   : "did you mean '" + near + "'?");
    }
  }

 private:
  [[noreturn]] void refuse_name(const spec::Rename& rename, const std::string& name, const std::string& given) const {
    const std::string near = nearest(given, names_);
    refuse_rename(rename,
                  fmt::format("rename gives '{}' the name '{}', which is no parameter of this model", name, given),
                  near.empty() ? "its parameters are " + first_of(names_) : "did you mean '" + near + "'?");
  }

  const spec::InitialFrom& from_;
  std::vector<std::string> names_;  // of parameters
  // By the names that files of the layout have for them; names of arrays that have several of them stay.
  std::map<std::string, std::string> parameters_;
  std::set<std::size_t> used_;  // indices of the renames that have matched a tensor
};

// The table of which a model with a tied head has a copy.
std::optional<run::TensorView> tied_table(const std::vector<run::TensorView>& tensors, model::ParameterLayout layout) {
  if (!model::has_other_names(layout) || model::other_names(layout).copy.empty()) return std::nullopt;
  const std::vector<std::string> names =
      model::spellings(layout, std::string(model::other_names(layout).names.front().theirs));
  for (const run::TensorView& tensor : tensors) {
    if (std::find(names.begin(), names.end(), tensor.name) != names.end()) return tensor;
  }
  return std::nullopt;
}

bool is_same(const run::TensorView& a, const run::TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

}  // namespace

std::map<std::string, std::string> rename_tensors(std::vector<run::TensorView>& tensors, const model::Model& model,
                                                  const spec::InitialFrom& from, const std::string& path) {
  Renamer renamer(model, from);
  const std::optional<run::TensorView> table = tied_table(tensors, from.layout);
  std::erase_if(tensors, [&](const run::TensorView& tensor) {
    const bool is_copy = table && model::other_names(from.layout).copy == tensor.name && is_same(*table, tensor);
    return (is_copy || model::is_ignored(from.layout, tensor.name)) && !renamer.knows(tensor.name);
  });
  std::map<std::string, std::string> in_file;
  std::vector<std::string> names;
  for (run::TensorView& tensor : tensors) {
    const std::string& name = names.emplace_back(std::exchange(tensor.name, renamer.renamed(tensor.name)));
    const auto [first, is_new] = in_file.emplace(tensor.name, name);
    if (!is_new) {
      fail_data(fmt::format("{} has '{}' and '{}', which would both be '{}'", path, first->second, name, tensor.name),
                "name one of them otherwise in init.from.rename");
    }
  }
  renamer.check_used(names, path);
  std::erase_if(in_file, [](const auto& names_of) { return names_of.first == names_of.second; });
  return in_file;
}

void name_ranges(std::vector<run::TensorView>& tensors, const model::Model& model, const spec::InitialFrom& from,
                 std::map<std::string, std::string>& in_file, std::map<std::string, run::TensorView>& added) {
  std::map<std::string, run::TensorView> arrays;
  for (const run::TensorView& tensor : tensors) arrays.emplace(tensor.name, tensor);
  std::set<std::string> taken;
  for (const model::Parameter& parameter : model.parameters) {
    const model::StoredParameter stored = model::stored(parameter, from.layout);
    const auto found = arrays.find(stored.name);
    if (!stored.is_part() || found == arrays.end()) continue;
    run::TensorView array = found->second;
    if (arrays.contains(parameter.name)) {
      fail_data(fmt::format("the file has '{}' twice: under this name, and in '{}'", parameter.name, stored.name),
                "leave out one of them");
    }
    if (!stored.added.empty()) {
      const auto other = arrays.find(stored.added);
      const bool fits = other != arrays.end() && other->second.dtype == array.dtype &&
                        other->second.is_half == array.is_half && other->second.shape == array.shape;
      if (!fits || !is_floating(array.dtype)) continue;
      added[parameter.name] = other->second;
      taken.insert(stored.added);
    }
    taken.insert(stored.name);
    const auto renamed = in_file.find(stored.name);
    in_file[parameter.name] = renamed == in_file.end() ? stored.name : renamed->second;
    array.name = parameter.name;
    tensors.push_back(std::move(array));
  }
  std::erase_if(tensors, [&](const run::TensorView& tensor) { return taken.contains(tensor.name); });
}

}  // namespace pmaptrain::setup
