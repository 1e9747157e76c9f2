#include "core/setup/initialize.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/data/arrays/array.h"
#include "core/kernel/vector_normal.h"
#include "core/model/layout.h"
#include "core/run/files/safetensors.h"
#include "core/setup/initial/file.h"
#include "core/setup/initial/layout.h"
#include "core/setup/initial/names.h"
#include "core/setup/initial/orthogonal.h"
#include "core/setup/initial/patterns.h"
#include "core/setup/initial/ranges.h"
#include "core/setup/initial/word_vectors.h"

namespace pmaptrain::setup {
namespace {

constexpr std::size_t least_elements = 1 << 15;  // of a thread: takes much longer than starting one

template <class Get>
void fill(std::span<std::byte> bytes, DType dtype, Get get) {
  dispatch_floating(dtype, [&]<class T>() {
    for_ranges(bytes.size() / sizeof(T), least_elements, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const T value = static_cast<T>(get(i));
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
    });
  });
}

// Elements of a stream of truncated normals from number `first` on, times `scale`.
void fill_normal(std::span<std::byte> bytes, DType dtype, PhiloxKey key, double scale, std::size_t first) {
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  if (dtype == DType::f32) {
    auto* const values = reinterpret_cast<float*>(bytes.data());
    for_ranges(bytes.size() / sizeof(float), least_elements, [&](std::size_t begin, std::size_t end) {
      vector_truncated_normals(key, first + begin, end - begin, scale, values + begin);
    });
    return;
  }
#endif
  fill(bytes, dtype, [&](std::size_t i) { return scale * truncated_normal(key, first + i); });
}

std::size_t bytes_of(const model::Parameter& parameter, DType dtype) {
  return static_cast<std::size_t>(numel(parameter.shape)) * size_of(dtype);
}

bool is_taken(const spec::InitialFrom& from, std::string_view name) {
  const auto any = [&](const std::vector<declare::Pattern>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const declare::Pattern& pattern) { return matches(pattern.text, name); });
  };
  return any(from.include) && !any(from.exclude);
}

std::string same_layers(const std::string& renamed) {
  return "these are the same layers under another name: init: {from: {path: ..., rename: {" + renamed + "}}}";
}

std::string shown(DType dtype, const Shape& shape) { return std::string(to_string(dtype)) + to_string(shape); }
std::string shown(const run::TensorView& tensor) {
  return tensor.is_half ? "f16" + to_string(tensor.shape) : shown(tensor.dtype, tensor.shape);
}

// The number of members in the file: the size of the dimension that all tensors have before the dimensions of their
// parameters. None if they have no such dimension.
std::optional<std::int64_t> leading_dimension(const model::Model& model, const std::vector<run::TensorView>& tensors) {
  std::optional<std::int64_t> members;
  for (const run::TensorView& tensor : tensors) {
    const auto found = std::find_if(model.parameters.begin(), model.parameters.end(),
                                    [&](const model::Parameter& parameter) { return parameter.name == tensor.name; });
    if (found == model.parameters.end()) continue;
    const Shape& shape = tensor.shape;
    const bool leads = shape.size() == found->shape.size() + 1 && shape.front() > 0 &&
                       std::equal(found->shape.begin(), found->shape.end(), shape.begin() + 1);
    if (!leads || (members && *members != shape.front())) return std::nullopt;
    members = shape.front();
  }
  return members;
}

}  // namespace

namespace {

void draw_all(const model::Parameter& parameter, std::uint64_t seed, DType dtype, std::span<std::byte> into,
              std::size_t first) {
  const auto& [kind, scale, low, columns, zeros] = parameter.initializer;
  const PhiloxKey key = stream_key(seed, "init/" + parameter.name);
  switch (kind) {
    case model::InitializerKind::constant: return fill(into, dtype, [value = scale](std::size_t) { return value; });
    case model::InitializerKind::normal:
      return fill(into, dtype, [&, by = scale](std::size_t i) { return by * standard_normal(key, first + i); });
    case model::InitializerKind::truncated_normal: return fill_normal(into, dtype, key, scale, first);
    case model::InitializerKind::uniform:
      return fill(into, dtype,
                  [&, by = scale, from = low](std::size_t i) { return from + by * standard_uniform(key, first + i); });
    case model::InitializerKind::orthogonal: break;
  }
  const std::vector<double> values = orthogonal(key, numel(parameter.shape) / columns, columns);
  fill(into, dtype, [&, by = scale](std::size_t i) { return by * values[first + i]; });
}

}  // namespace

void draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype, std::span<std::byte> into,
          std::size_t first) {
  draw_all(parameter, seed, dtype, into, first);
  const auto zeros = static_cast<std::size_t>(parameter.initializer.zeros);
  if (zeros > first) std::fill_n(into.begin(), std::min(into.size(), (zeros - first) * size_of(dtype)), std::byte{0});
}

std::vector<std::byte> draw(const model::Parameter& parameter, std::uint64_t seed, DType dtype) {
  std::vector<std::byte> values(bytes_of(parameter, dtype));
  draw(parameter, seed, dtype, values);
  return values;
}

InitialValues::InitialValues(const model::Model& model, const spec::ModelSpec& spec, std::uint64_t seed,
                             Membership membership, const InitialFile* opened)
    : model_(model), spec_(spec), seed_(seed) {
  if (!spec.initial_from) return;
  InitialFile found = opened != nullptr ? *opened : open_initial_file(spec);
  file_ = std::move(found.file);
  shards_ = std::move(found.shards);
  run_ = std::move(found.run);
  is_checkpoint_of_run_ = found.state.has_value();
  vectors_ = std::move(found.vectors);
  if (found.is_text) return;
  if (spec.initial_from->checkpoint == "best") best_ = std::move(found.state);
  try {
    in_file_as_ = rename_tensors(file_.tensors, model, *spec.initial_from, file_.path);
    if (!is_flax()) name_ranges(file_.tensors, model, *spec.initial_from, in_file_as_, added_);
    if (!is_checkpoint_of_run_ && is_flax()) file_.members = leading_dimension(model, file_.tensors);
    choose_member(membership);
    check_intact();
  } catch (const Error& error) {
    data::throw_at(spec.init_place, error);
  }
  check_patterns();
  for (const run::TensorView& tensor : file_.tensors) {
    if (!is_taken(*spec.initial_from, tensor.name)) continue;
    FileArray& array = in_file_[tensor.name] = {tensor};
    if (const auto other = added_.find(tensor.name); other != added_.end()) array.added = other->second;
  }
  check_tensors();
}

bool InitialValues::is_flax() const { return spec_.initial_from->layout == model::ParameterLayout::flax; }

void InitialValues::check_intact() const {
  file_.file.check_intact();
  for (const data::Bytes& shard : shards_) shard.check_intact();
}

model::StoredParameter InitialValues::stored(const model::Parameter& parameter) const {
  const auto& transpose = spec_.initial_from->transpose;
  std::optional<bool> transposed;
  if (transpose) {
    transposed = std::any_of(transpose->begin(), transpose->end(),
                             [&](const declare::Pattern& pattern) { return matches(pattern.text, parameter.name); });
  }
  return model::stored(parameter, spec_.initial_from->layout, transposed);
}

// "'features.0.weight', the parameter 'conv_0.kernel'," for a tensor that was renamed.
std::string InitialValues::shown_name(const std::string& name) const {
  const auto found = in_file_as_.find(name);
  return found == in_file_as_.end() ? fmt::format("'{}'", name)
                                    : fmt::format("'{}', the parameter '{}',", found->second, name);
}

// From here on, in_file_ has the tensors of one member.
void InitialValues::choose_member(Membership membership) {
  const std::optional<std::int64_t>& asked = spec_.initial_from->member;
  const auto refuse_member = [&](std::string message, std::string help) {
    throw Error(ExitStatus::usage, Diagnostic{"config", spec_.init_place, std::move(message), std::move(help), {}});
  };
  if (!file_.members) {
    if (asked)
      refuse_member(file_.path + " is not of an ensemble, and has no members", "leave out model.init.from.member");
    return;
  }
  const std::string all = "the " + counted(*file_.members, "member") + " of an ensemble";
  const std::string choice = "model.init.from.member: 0" +
                             (*file_.members > 1 ? " to " + std::to_string(*file_.members - 1) : std::string()) +
                             " chooses one";
  if (asked && *asked >= *file_.members) {
    refuse_member(fmt::format("{} has {}, and no member {}", file_.path, all, *asked),
                  "members count from 0: " + choice);
  }
  if (!asked && !membership.ensemble_size) refuse_member(fmt::format("{} has {}", file_.path, all), choice);
  if (!asked && *membership.ensemble_size != *file_.members) {
    refuse_member(fmt::format("{} has {}, and this ensemble has {}", file_.path, all, *membership.ensemble_size),
                  choice + ", from which every member starts");
  }
  const std::int64_t chosen = asked.value_or(membership.member);
  if (best_) {
    run::check_has_best(*best_, chosen,
                        "model.init.from.member chooses a member that has one; model.init.from.checkpoint: last");
  }
  whose_ = asked ? ", member " + std::to_string(*asked) : ", each member its own";
  file_.tensors = file_.of_member(chosen);
}

void InitialValues::refuse(std::string message, std::string help) const {
  throw Error(ExitStatus::data,
              Diagnostic{"data", spec_.init_place, file_.path + " " + std::move(message), std::move(help), {}});
}

void InitialValues::check_patterns() const {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model_.parameters) names.push_back(parameter.name);
  for (const run::TensorView& tensor : file_.tensors) {
    if (std::find(names.begin(), names.end(), tensor.name) == names.end()) names.push_back(tensor.name);
  }
  const std::vector<declare::Pattern> none;
  const auto& transpose = spec_.initial_from->transpose;
  for (const auto* patterns :
       {&spec_.initial_from->include, &spec_.initial_from->exclude, transpose ? &*transpose : &none}) {
    for (const declare::Pattern& pattern : *patterns) {
      if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return matches(pattern.text, name); })) {
        continue;
      }
      const std::string near = nearest(pattern.text, names);
      throw Error(ExitStatus::usage,
                  Diagnostic{"config",
                             pattern.place,
                             "the pattern '" + pattern.text + "' matches no parameter of the model or of " + file_.path,
                             near.empty() ? "the parameters are " + some_of(names) : "did you mean '" + near + "'?",
                             {}});
    }
  }
}

// Checks that the file has all parameters that model.init.from selects, in their shapes, and tells all mismatches at
// once. A file or a run may have further tensors, which note() lists.
void InitialValues::check_tensors() {
  std::map<std::string, const model::Parameter*> parameters;
  std::vector<std::string> names, others;
  for (const model::Parameter& parameter : model_.parameters) {
    if (!is_taken(*spec_.initial_from, parameter.name)) continue;
    // Files of others have no adapters.
    if (parameter.lora == layers::LoraRole::adapter && !in_file_.contains(parameter.name)) continue;
    parameters[parameter.name] = &parameter;
    names.push_back(parameter.name);
  }
  Mismatches found;
  for (const auto& [name, from] : in_file_) {
    const auto entry = parameters.find(name);
    if (entry == parameters.end()) {
      // PyTorch's batch norms count their batches, which no norm here does.
      if (is_flax() || !name.ends_with(".num_batches_tracked")) others.push_back(name);
      continue;
    }
    check_tensor(*entry->second, from.array, found);
    parameters.erase(entry);
  }
  std::erase_if(parameters, [](const auto& entry) { return entry.second->is_state; });  // these begin at 0 and 1
  std::string renamed;
  if (!others.empty() && !parameters.empty()) {  // one of them may be a parameter under another name
    std::vector<std::string> tensors;
    std::map<std::string, Shape> missing, unknown;
    for (const auto& [name, parameter] : parameters) missing[name] = stored(*parameter).shape;
    for (const std::string& name : others) unknown[name] = in_file_.at(name).array.shape;
    renamed = renaming(missing, unknown);
    for (const std::string& name : others) {
      const run::TensorView& tensor = in_file_.at(name).array;
      tensors.push_back(shown_name(name) + " " + shown(tensor));
    }
    const bool one = others.size() == 1;
    const std::string near = one ? nearest(others.front(), names) : "";
    found.add(
        fmt::format("has {} {}, which {} of this model", one ? "a tensor" : "tensors", some_of(tensors),
                    one ? "is no parameter" : "are no parameters"),
        near.empty() ? "its parameters are " + some_of(names) : fmt::format("the nearest parameter is '{}'", near),
        others);
  }
  for (const std::string& name : others) in_file_.erase(name);
  if (!parameters.empty()) {
    std::vector<std::string> missing, drawn;
    for (const auto& [name, parameter] : parameters) {
      drawn.push_back(name);
      missing.push_back("'" + name + "' " + shown(model_.dtype, parameter->shape));
    }
    if (found.texts.empty()) found.help_leaves_out = false;  // the help below says it
    found.add(
        "lacks " + some_of(missing) + (missing.size() == 1 ? ", a parameter" : ", parameters") + " of this model",
        found.texts.empty() ? "write every parameter, or name those that are to be drawn in init.from.exclude" : "",
        drawn);
  }
  if (found.texts.empty()) {
    check_takes_any();
    if (is_checkpoint_of_run_) return;
    std::vector<TakenParameter> taken;
    for (const model::Parameter& parameter : model_.parameters) {
      if (!in_file_.contains(parameter.name)) continue;
      const auto in_file = in_file_as_.find(parameter.name);
      taken.push_back({&parameter, in_file == in_file_as_.end() ? parameter.name : in_file->second});
    }
    if (const auto other = other_layout(taken, *spec_.initial_from, file_)) refuse(other->what, other->help);
    return;
  }
  std::string help = torch_help();
  constexpr std::size_t most = 8;
  if (found.texts.size() > most) {
    const std::string more = fmt::format("has {} more that do not fit", found.texts.size() - most);
    found.texts.resize(most);
    found.texts.push_back(more);
  }
  if (help.empty() && !renamed.empty()) {
    refuse(join(found.texts, "; it "), same_layers(renamed));
  }
  if (help.empty()) help = found.help;
  std::vector<std::string> fitting;
  bool fits_any = false;  // statistics alone would be refused
  for (const model::Parameter& parameter : model_.parameters) {
    const std::string& name = parameter.name;
    const bool is_found = std::find(found.names.begin(), found.names.end(), name) != found.names.end();
    if (!in_file_.contains(name) || is_found) continue;
    fitting.push_back(name);
    fits_any = fits_any || !parameter.is_state;
  }
  if (found.help_leaves_out && fits_any)
    help += (help.empty() ? "" : "; or ") + keys_that_take(fitting, found.names, *spec_.initial_from, model_);
  refuse(join(found.texts, "; it "), help);
}

// If no parameter is taken from the file, then include, exclude or the names are wrong.
void InitialValues::check_takes_any() const {
  const auto is_taken = [&](const model::Parameter& parameter) {
    return !parameter.is_state && in_file_.contains(parameter.name);
  };
  if (std::any_of(model_.parameters.begin(), model_.parameters.end(), is_taken)) return;
  std::map<std::string, Shape> tensors, missing;
  for (const run::TensorView& tensor : file_.tensors) tensors[tensor.name] = tensor.shape;
  std::string in_both;
  for (const model::Parameter& parameter : model_.parameters) {
    if (parameter.is_state) continue;
    if (!tensors.contains(parameter.name)) {
      missing[parameter.name] = stored(parameter).shape;
    } else if (in_both.empty()) {
      in_both = parameter.name;
    }
  }
  for (const model::Parameter& parameter : model_.parameters) tensors.erase(parameter.name);
  std::string help = torch_help();
  if (const std::string renamed = renaming(missing, tensors); help.empty() && !renamed.empty()) {
    help = same_layers(renamed);
  } else if (help.empty() && !in_both.empty()) {
    help = "include and exclude choose by the names of this model, such as '" + in_both + "'";
  } else if (help.empty()) {
    std::vector<std::string> parameters, names;
    for (const auto& [name, shape] : missing) parameters.push_back(name);
    for (const auto& [name, shape] : tensors) names.push_back(name);
    help = "rename: {TENSOR: PARAMETER} says which tensor is which parameter: the parameters are " +
           some_of(parameters) + (names.empty() ? "" : "; the tensors are " + some_of(names));
  }
  throw Error(ExitStatus::usage,
              Diagnostic{"config",
                         spec_.init_place,
                         "model.init.from takes none of the parameters of this model from " + file_.path,
                         std::move(help),
                         {}});
}

std::string InitialValues::torch_help() const {
  return is_checkpoint_of_run_ || !is_flax() ? "" : names_of_torch_help(file_.tensors, model_);
}

void InitialValues::check_tensor(const model::Parameter& parameter, const run::TensorView& tensor,
                                 Mismatches& found) const {
  const model::StoredParameter expected = stored(parameter);
  if (tensor.shape == expected.array_shape() && is_floating(tensor.dtype)) return;
  if (expected.is_part()) return check_array(expected, tensor, found);
  const bool is_changed = expected.shape != parameter.shape;
  const bool is_torch = spec_.initial_from->layout == model::ParameterLayout::torch;
  const model::StoredParameter otherwise = model::stored(parameter, model::ParameterLayout::flax, !is_changed);
  const bool would_fit = (is_flax() || is_torch) && tensor.shape == otherwise.shape && is_floating(tensor.dtype);
  std::string help;
  if (would_fit && !is_changed && is_flax()) {
    help = "layout: torch reads kernels as PyTorch stores them";
  } else if (would_fit && is_torch && !spec_.initial_from->transpose) {
    help =
        "layout: flax reads kernels as they are in Flax and in runs; or init.from.transpose lists the parameters that "
        "the file has transposed";
  } else if (would_fit) {
    help = "init.from.transpose lists the parameters that the file has transposed";
  }
  found.help_leaves_out = found.help_leaves_out && help.empty();
  found.add(fmt::format("has {} as {}; the parameter is {}{}", shown_name(parameter.name), shown(tensor),
                        shown(model_.dtype, parameter.shape),
                        is_changed ? fmt::format(", {} {}", expected.is_reordered() ? "transposed" : "in a file",
                                                 to_string(expected.shape))
                                   : ""),
            help.empty() ? "change the layer's sizes" : help, {parameter.name});
}

// Tells once that an array of several parameters has another shape.
void InitialValues::check_array(const model::StoredParameter& part, const run::TensorView& tensor,
                                Mismatches& found) const {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model_.parameters) {
    if (in_file_.contains(parameter.name) && stored(parameter).name == part.name) names.push_back(parameter.name);
  }
  const auto in_file = in_file_as_.find(tensor.name);
  if (in_file == in_file_as_.end()) {
    const std::string layout = declare::word_of(spec_.initial_from->layout);
    return found.add(fmt::format("has '{}' under the name that it has here, and in the layout {} it is a range of '{}'",
                                 tensor.name, layout, part.name),
                     "leave out layout: it is for files of others", {tensor.name});
  }
  if (tensor.name != names.front()) return;
  found.add(fmt::format("has '{}', the parameters {}, as {}; together they are {}", in_file->second, some_of(names),
                        shown(tensor), shown(model_.dtype, part.array_shape())),
            "change the layer's sizes", names);
}

// Converts what the file has of a parameter to its type. The values must be finite in that type.
void InitialValues::convert(const model::Parameter& parameter, const FileArray& from, std::span<std::byte> into) const {
  const model::StoredParameter order = stored(parameter);
  const std::optional<std::size_t> refused = read_elements(order, from, model_.dtype, into);
  if (!refused) return;
  const double value = element_of(order, from, *refused);
  const Shape index = data::index_of(static_cast<std::int64_t>(*refused), parameter.shape);
  refuse("has " + exact(value) + " in '" + parameter.name + "' at " + to_string(index) +
             (std::isfinite(value) ? ", which float32 cannot hold" : ", where a run cannot begin"),
         "give every parameter finite numbers of at most about 3.4e38");
}

std::vector<std::byte> InitialValues::of(const model::Parameter& parameter) const {
  std::vector<std::byte> values(bytes_of(parameter, model_.dtype));
  write(parameter, values);
  return values;
}

void InitialValues::write(const model::Parameter& parameter, std::span<std::byte> into) const {
  // make_model has checked names and shapes.
  if (const auto given = spec_.initial_values.find(parameter.name); given != spec_.initial_values.end()) {
    const auto& tensor = given->second;
    return fill(into, model_.dtype, [&](std::size_t i) { return tensor.values[i]; });
  }
  const auto found = in_file_.find(parameter.name);
  if (found == in_file_.end()) {
    draw(parameter, seed_, model_.dtype, into);
    if (!vectors_ || parameter.name != vectors_->parameter) return;
    const std::size_t bytes = static_cast<std::size_t>(parameter.shape.back()) * size_of(model_.dtype);
    for (const auto& entry : vectors_->rows) {
      const std::vector<float>& row = entry.second;
      fill(into.subspan(entry.first * bytes, bytes), model_.dtype, [&](std::size_t i) { return row[i]; });
    }
    return;
  }
  convert(parameter, found->second, into);
  try {
    check_intact();
  } catch (const Error& error) {
    data::throw_at(spec_.init_place, error);
  }
}

void InitialValues::release(const model::Parameter& parameter) const {
  const auto found = in_file_.find(parameter.name);
  if (found == in_file_.end()) return;
#ifdef MADV_PAGEOUT
  const model::StoredParameter order = stored(parameter);
  if (order.part + 1 < order.parts) return;                             // the array is read again for its other ranges
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));  // only whole pages are given back
  const std::span<const std::byte> bytes = found->second.array.bytes;
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(bytes.data()) % page) % page;
  if (bytes.size() < before + page) return;
  auto* const first = const_cast<std::byte*>(bytes.data() + before);  // madvise() takes no const, and writes nothing
  ::madvise(first, (bytes.size() - before) / page * page, MADV_PAGEOUT);
#endif
}

bool InitialValues::draws() const {
  return std::any_of(model_.parameters.begin(), model_.parameters.end(),
                     [&](const model::Parameter& parameter) { return draws(parameter); });
}

bool InitialValues::draws(const model::Parameter& parameter) const {
  return parameter.initializer.draws() && !spec_.initial_values.contains(parameter.name) &&
         !in_file_.contains(parameter.name) && (!vectors_ || parameter.name != vectors_->parameter);
}

std::string InitialValues::note() const {
  if (!spec_.initial_from) return {};
  if (vectors_) {
    const auto table = std::find_if(model_.parameters.begin(), model_.parameters.end(),
                                    [&](const model::Parameter& one) { return one.name == vectors_->parameter; });
    return fmt::format("model.init.from took {} of the {} rows of '{}' from {}; the others are drawn",
                       with_commas(std::ssize(vectors_->rows)), with_commas(table->shape.front()), vectors_->parameter,
                       file_.path);
  }
  std::vector<std::string> drawn, anew, ignored;
  std::size_t all = 0;
  for (const model::Parameter& parameter : model_.parameters) {
    if (parameter.lora == layers::LoraRole::adapter && !in_file_.contains(parameter.name)) continue;
    if (!parameter.is_state) ++all;
    if (!in_file_.contains(parameter.name)) (parameter.is_state ? anew : drawn).push_back(parameter.name);
  }
  std::string text = fmt::format("model.init.from took {} of the {} parameters from {}{}", all - drawn.size(), all,
                                 file_.path, whose_);
  if (!drawn.empty()) text += "; drawn: " + some_of(drawn);
  if (!anew.empty()) text += "; running statistics that begin at mean 0 and var 1: " + some_of(anew);
  for (const run::TensorView& tensor : file_.tensors) {
    if (in_file_.contains(tensor.name)) continue;
    if (!is_flax() && tensor.name.ends_with(".num_batches_tracked")) continue;
    const auto name = in_file_as_.find(tensor.name);
    ignored.push_back(name == in_file_as_.end() ? tensor.name : name->second);
  }
  if (!ignored.empty()) text += "; left in the file: " + some_of(ignored);
  return text;
}

void take_word_vectors(Setup& setup) {
  const spec::ModelSpec& spec = setup.spec().model;
  std::error_code ignored;
  if (!spec.initial_from || std::filesystem::is_directory(spec.initial_from->path, ignored)) return;
  if (!setup.initial_file) {
    try {
      if (!has_word_vectors(data::map_file(spec.initial_from->path))) return;
    } catch (const Error& error) {
      data::throw_at(spec.init_place, error);
    }
    setup.initial_file = std::make_shared<InitialFile>(open_initial_file(spec));
  }
  const std::shared_ptr<InitialFile>& file = setup.initial_file;
  if (!file->is_text) return;
  const spec::InitialFrom plain{spec.initial_from->path}, &from = *spec.initial_from;
  const bool chooses = from.include.size() != 1 || from.include.front().text != "*" || !from.exclude.empty() ||
                       !from.rename.empty() || from.transpose || from.member || from.layout != plain.layout;
  try {
    if (chooses) {
      fail_usage(fmt::format("'{}' has vectors of words, which become rows of one table", from.path),
                 "leave out the other keys of model.init.from, which choose among tensors");
    }
    file->vectors = std::make_shared<const WordVectors>(
        read_word_vectors(file->file.file, from.path, setup.source.tokenizer.get(), setup.model));
  } catch (const Error& error) {
    data::throw_at(spec.init_place, error);
  }
}

std::string check_initial_file(const model::Model& model, const spec::ModelSpec& spec,
                               std::optional<std::int64_t> members, const InitialFile* opened) {
  if (!spec.initial_from) return {};
  std::string note;
  for (std::int64_t member = 0; member < members.value_or(1); ++member) {
    const InitialValues values(model, spec, 0, {member, members}, opened);
    for (const model::Parameter& parameter : model.parameters) values.of(parameter);
    note = values.note();
  }
  return note;
}

}  // namespace pmaptrain::setup
