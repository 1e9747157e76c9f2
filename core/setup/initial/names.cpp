#include "core/setup/initial/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/layout.h"

namespace pmaptrain::setup {
namespace {

// What each * of `pattern` stands for in `text`, the first ones as short as possible; none if it does not match.
std::optional<std::vector<std::string_view>> parts_of(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == text ? std::optional(std::vector<std::string_view>()) : std::nullopt;
  }
  if (!text.starts_with(pattern.substr(0, star)) || !matches(pattern, text)) return std::nullopt;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    auto rest = parts_of(pattern, text.substr(length));
    if (!rest) continue;
    rest->insert(rest->begin(), text.substr(0, length));
    return rest;
  }
  return std::nullopt;
}

// `pattern` with these texts in place of its stars.
std::string filled(std::string_view pattern, const std::vector<std::string_view>& parts) {
  std::string text;
  std::size_t next = 0;
  for (const char c : pattern) {
    if (c == '*') {
      text += parts[next++];
    } else {
      text += c;
    }
  }
  return text;
}

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
      const std::string name = model::stored(parameter, from.layout).name;
      const bool is_part = name == parameter.torch.whole;
      parameters_[name] = is_part ? name : parameter.name;
      if (is_part && !parameter.torch.added.empty()) parameters_[parameter.torch.added] = parameter.torch.added;
    }
    for (const std::string& name : names_) parameters_[name] = name;
  }

  std::string renamed(const std::string& name) {
    std::string given = name;
    for (std::size_t i = 0; i < from_.rename.size(); ++i) {
      const spec::Rename& rename = from_.rename[i];
      const auto parts = parts_of(rename.from.text, name);
      if (!parts) continue;
      used_.insert(i);
      given = filled(rename.to, *parts);
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

data::Bytes sum_of_elements(const run::TensorView& a, const run::TensorView& b) {
  auto sum = std::make_shared<std::vector<std::byte>>(a.bytes.size());
  dispatch_floating(a.dtype, [&]<class T>() {
    for (std::size_t at = 0; at < sum->size(); at += sizeof(T)) {
      T x, y;
      std::memcpy(&x, a.bytes.data() + at, sizeof(T));
      std::memcpy(&y, b.bytes.data() + at, sizeof(T));
      const T added = static_cast<T>(x + y);
      std::memcpy(sum->data() + at, &added, sizeof(T));
    }
  });
  const std::span<const std::byte> view = *sum;
  return {std::move(sum), view};
}

}  // namespace

std::map<std::string, std::string> rename_tensors(std::vector<run::TensorView>& tensors, const model::Model& model,
                                                  const spec::InitialFrom& from, const std::string& path) {
  Renamer renamer(model, from);
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

void divide_arrays(std::vector<run::TensorView>& tensors, const model::Model& model,
                   std::map<std::string, std::string>& in_file, std::vector<data::Bytes>& sums) {
  std::map<std::string, run::TensorView> whole;
  for (const run::TensorView& tensor : tensors) whole.emplace(tensor.name, tensor);
  std::vector<run::TensorView> parts;
  std::set<std::string> divided;
  for (const model::Parameter& parameter : model.parameters) {
    const model::TorchParameter& torch = parameter.torch;
    const auto range_of = [&](const std::string& name) -> std::optional<run::TensorView> {
      const auto found = whole.find(name);
      if (found == whole.end()) return std::nullopt;
      run::TensorView range{parameter.name, found->second.dtype, found->second.shape, found->second.bytes};
      if (range.shape.empty() || range.shape.front() % torch.parts != 0) return std::nullopt;
      range.shape.front() /= torch.parts;
      const std::size_t size = range.bytes.size() / static_cast<std::size_t>(torch.parts);
      range.bytes = range.bytes.subspan(static_cast<std::size_t>(torch.part) * size, size);
      return range;
    };
    std::optional<run::TensorView> range = torch.whole.empty() ? std::nullopt : range_of(torch.whole);
    if (range && !torch.added.empty()) {
      const std::optional<run::TensorView> other = range_of(torch.added);
      if (!other || other->dtype != range->dtype || other->shape != range->shape || !is_floating(range->dtype))
        continue;
      range->bytes = sums.emplace_back(sum_of_elements(*range, *other)).view();
      divided.insert(torch.added);
    }
    if (!range) continue;
    divided.insert(torch.whole);
    const auto renamed = in_file.find(torch.whole);
    in_file[parameter.name] = renamed == in_file.end() ? torch.whole : renamed->second;
    parts.push_back(*range);
  }
  std::erase_if(tensors, [&](const run::TensorView& tensor) { return divided.contains(tensor.name); });
  tensors.insert(tensors.end(), parts.begin(), parts.end());
}

}  // namespace pmaptrain::setup
