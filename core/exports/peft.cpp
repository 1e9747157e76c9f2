#include "core/exports/peft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/exports/arrays.h"
#include "core/model/layout.h"
#include "core/model/other_names.h"
#include "core/setup/base.h"
#include "core/setup/options.h"

namespace pmaptrain::exports {
namespace {

using Json = nlohmann::ordered_json;
using model::Adapter;
using model::LoraRole;
using model::Node;
using model::Parameter;

// What peft puts before the names of the model that it adapts.
constexpr std::string_view prefix = "base_model.model.";

std::string without_last_part(const std::string& name) { return name.substr(0, name.rfind('.')); }
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// An adapter among those of a module.
struct Adapted {
  const Node* node = nullptr;
  const Adapter* adapter = nullptr;
  std::int64_t part = 0, parts = 1;  // the columns of b are this range of the module's

  const Parameter& kernel() const { return node->parameters[adapter->kernel]; }
  const Parameter& a() const { return node->parameters[adapter->a]; }
  const Parameter& b() const { return node->parameters[adapter->b]; }
};

// A number as Python writes it: 16, not 16.0.
Json number(double value) {
  const bool is_whole = std::floor(value) == value && std::abs(value) < 1e15;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

class Writer {
 public:
  Writer(const spec::Spec& spec, const model::Model& model, const evaluate::TrainedMembers& found, std::int64_t member)
      : spec_(spec), model_(model), state_(found.trained.state), file_(found.trained.parameters.path) {
    for (run::TensorView& tensor : found.trained.parameters.of_member(member)) tensors_.emplace(tensor.name, tensor);
    layout_ = layout_of_base();
  }

  PeftAdapters run() {
    find_modules();
    for (const auto& [module, adapted] : modules_) add_adapter(module, adapted);
    add_saved_modules();
    out_.config = config();
    return std::move(out_);
  }

 private:
  model::ParameterLayout layout_of_base() const {
    const auto& from = spec_.model.initial_from;
    if (from && !from->rename.empty()) {
      refuse("--layout peft needs the names that the base has in PyTorch, and model.init.from.rename gives it others",
             spec_.model.init_place);
    }
    if (from && from->layout != model::ParameterLayout::flax) return from->layout;
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           from ? spec_.model.init_place : spec_.lora->place,
                           "--layout peft needs the names that the base has in PyTorch, and this base has none",
                           "model.init.from.layout says them, for a file of another project; export without --layout "
                           "writes the model with its adapters in it",
                           {}});
  }

  [[noreturn]] static void refuse(std::string message, const Place& place) {
    throw Error(ExitStatus::usage, Diagnostic{"config",
                                              place,
                                              std::move(message),
                                              "export without --layout writes the model with its adapters in it",
                                              {}});
  }

  std::span<const std::byte> own(const Parameter& parameter) const { return tensor_of(tensors_, parameter, file_); }

  // "model.layers.0.self_attn.q_proj"
  std::string module_of(const Parameter& parameter) const {
    return without_last_part(model::stored(parameter, layout_).name);
  }
  // Throws for a parameter for which the layout of a kind of model has no name.
  void check_name(const Parameter& parameter) const {
    if (!model::has_other_names(layout_) || model::find_other_name(layout_, parameter.name) != nullptr) return;
    refuse(fmt::format("the layout {} has no name for '{}'", declare::word_of(layout_), parameter.name),
           spec_.lora->place);
  }

  void find_modules() {
    model::for_each_node(model_.layers, [&](const Node& node) {
      for (const Parameter& parameter : node.parameters) {
        if (parameter.matrix.empty()) continue;
        const std::string module = module_of(parameter);
        (is_adapted(node, parameter) ? adapted_ends_ : other_ends_).insert(last_part(module));
      }
      for (const Adapter& adapter : node.adapters) {
        const Parameter& kernel = node.parameters[adapter.kernel];
        check_name(kernel);
        const model::StoredParameter stored = model::stored(kernel, layout_);
        check_ranges(node, stored);
        modules_[without_last_part(stored.name)].push_back({&node, &adapter, stored.part, stored.parts});
      }
    });
  }
  // Adapters of a module have the ranges of its kernel: equal ones.
  void check_ranges(const Node& node, const model::StoredParameter& of) const {
    for (const Parameter& parameter : node.parameters) {
      const model::StoredParameter other = model::stored(parameter, layout_);
      if (other.name != of.name || other.array_shape() == of.array_shape()) continue;
      refuse(fmt::format("'{}' and others are no equal ranges of '{}'", parameter.name, of.name), spec_.lora->place);
    }
  }
  static bool is_adapted(const Node& node, const Parameter& parameter) {
    return std::any_of(node.adapters.begin(), node.adapters.end(),
                       [&](const Adapter& adapter) { return node.parameters[adapter.kernel].name == parameter.name; });
  }

  // A parameter (in, out) as (out, in), with the rows of a kernel behind a flattened image in PyTorch's order.
  std::vector<float> transposed(const Parameter& parameter, const Shape& image) const {
    Parameter as{parameter.name, parameter.shape, {}, {}};
    as.torch.axes = {1, 0};
    as.image = image;
    const std::vector<std::byte> bytes =
        model::to_stored(model::stored(as, model::ParameterLayout::torch), own(parameter), sizeof(float));
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  void add(std::string name, Shape shape, std::span<const std::byte> bytes) {
    out_.memory.emplace_back(bytes.begin(), bytes.end());
    out_.parameters += numel(shape);
    out_.tensors.push_back({std::string(prefix) + std::move(name), DType::f32, std::move(shape), out_.memory.back()});
  }
  void add(std::string name, Shape shape, const std::vector<float>& values) {
    add(std::move(name), std::move(shape), std::as_bytes(std::span(values)));
  }

  // Rows of a one after another; the rows of b in blocks, each of its own columns.
  void add_adapter(const std::string& module, const std::vector<Adapted>& adapted) {
    const std::int64_t rank = spec_.lora->rank, all = rank * std::ssize(adapted);
    const std::int64_t in = adapted.front().a().shape[0], out = adapted.front().b().shape[1];
    std::vector<float> a, b(static_cast<std::size_t>(out * adapted.front().parts * all), 0.0F);
    for (std::size_t i = 0; i < adapted.size(); ++i) {
      const std::vector<float> rows = transposed(adapted[i].a(), adapted[i].kernel().image);
      a.insert(a.end(), rows.begin(), rows.end());
      const std::vector<float> block = transposed(adapted[i].b(), {});
      for (std::int64_t row = 0; row < out; ++row) {
        const std::int64_t at = (adapted[i].part * out + row) * all + static_cast<std::int64_t>(i) * rank;
        std::copy_n(block.begin() + row * rank, rank, b.begin() + at);
      }
    }
    add(module + ".lora_A.weight", {all, in}, a);
    add(module + ".lora_B.weight", {out * adapted.front().parts, all}, b);
  }

  // Modules of also_train, whole: of what is not trained in them, the values of the base.
  void add_saved_modules() {
    for (const Parameter& parameter : model_.parameters) {
      if (parameter.lora != LoraRole::none || parameter.is_state) continue;
      check_name(parameter);
      const std::string module = module_of(parameter);
      saved_.insert(module);
      if (modules_.contains(module)) {
        refuse("peft trains whole modules beside adapters, and '" + parameter.name +
                   "' is beside an adapter in its module",
               spec_.lora->place);
      }
      model::for_each_node(model_.layers, [&](const Node& node) {
        if (node.shared_name != parameter.name) return;
        refuse("peft copies a module that it trains, and '" + parameter.name + "' is also read by '" + node.name + "'",
               spec_.lora->place);
      });
    }
    if (saved_.empty()) return;
    std::map<std::string, std::vector<std::byte>> kept;
    setup::read_base(model_, spec_, state_.base,
                     [&](const Parameter& parameter, std::size_t /*first*/, std::span<const std::byte> slice) {
                       if (!saved_.contains(module_of(parameter))) return;
                       std::vector<std::byte>& values = kept[parameter.name];
                       values.insert(values.end(), slice.begin(), slice.end());
                     });
    for (const Parameter& parameter : model_.parameters) {
      if (const auto values = kept.find(parameter.name); values != kept.end()) add_saved(parameter, values->second);
    }
    for (const Parameter& parameter : model_.parameters) {
      const bool is_base = parameter.lora != LoraRole::none;
      if (is_base || !saved_.contains(module_of(parameter))) continue;
      add_saved(parameter, own(parameter));
    }
    for (const auto& [name, array] : arrays_) add(name, array.shape, array.bytes);
  }
  void add_saved(const Parameter& parameter, std::span<const std::byte> values) {
    write_to_array(arrays_, model::stored(parameter, layout_), values, parameter.name);
  }

  std::string config() const {
    const model::Lora& lora = *spec_.lora;
    // The ends of names, where these mean no other kernel: "q_proj".
    const bool by_ends = std::none_of(adapted_ends_.begin(), adapted_ends_.end(),
                                      [&](const std::string& end) { return other_ends_.contains(end); });
    Json targets = Json::array(), ranks = Json::object(), alphas = Json::object();
    if (by_ends) {
      for (const std::string& end : adapted_ends_) targets.push_back(end);
    }
    for (const auto& [module, adapted] : modules_) {
      if (!by_ends) targets.push_back(module);
      if (adapted.size() == 1) continue;
      const auto count = std::ssize(adapted);
      ranks[module] = lora.rank * count;
      alphas[module] = number(lora.alpha * static_cast<double>(count));
    }
    Json json{{"peft_type", "LORA"}};
    json["task_type"] = is_causal() ? Json("CAUSAL_LM") : Json();
    json["base_model_name_or_path"] = spec_.model.initial_from->path;
    json["inference_mode"] = true;
    json["r"] = lora.rank;
    json["lora_alpha"] = number(lora.alpha);
    json["lora_dropout"] = lora.dropout;
    json["target_modules"] = std::move(targets);
    json["modules_to_save"] = saved_.empty() ? Json() : Json(saved_);
    json["rank_pattern"] = std::move(ranks);
    json["alpha_pattern"] = std::move(alphas);
    json["bias"] = "none";
    json["fan_in_fan_out"] = keeps_kernels();
    json["init_lora_weights"] = true;
    json["use_rslora"] = false;
    json["use_dora"] = false;
    return json_text(json, 2) + "\n";
  }
  bool is_causal() const {
    return layout_ == model::ParameterLayout::hf_gpt2 || layout_ == model::ParameterLayout::hf_llama;
  }
  // Whether the modules have their kernels as they are here, (in, out): transformers' Conv1D.
  bool keeps_kernels() const { return layout_ == model::ParameterLayout::hf_gpt2; }

  const spec::Spec& spec_;
  const model::Model& model_;
  const run::RunState& state_;
  const std::string file_;
  model::ParameterLayout layout_ = model::ParameterLayout::torch;
  std::map<std::string, run::TensorView> tensors_;
  std::map<std::string, std::vector<Adapted>> modules_;  // by their paths
  std::set<std::string> adapted_ends_, other_ends_, saved_;
  run::Tensors arrays_;  // of the modules that are saved
  PeftAdapters out_;
};

}  // namespace

void PeftAdapters::write_tensors(run::ByteSink& sink) const {
  run::write_safetensors(sink, tensors, [&](const run::TensorView& tensor) { sink.write(tensor.bytes); },
                         {{"format", "pt"}});
}

PeftAdapters peft_adapters(const spec::Loaded& loaded, const std::filesystem::path& run_dir,
                           const ExportRequest& request) {
  if (!loaded.spec.lora) {
    fail_usage("--layout peft writes adapters, and the run has none",
               "runs of a config with lora have some; export without --layout writes the parameters");
  }
  if (loaded.spec.ensemble && !request.member) {
    fail_usage("--layout peft takes one member of an ensemble", "choose one, such as --member 0");
  }
  const evaluate::TrainedMembers found =
      evaluate::load_members(loaded, run_dir, request.checkpoint, request.weights, request.member);
  const run::RunState& state = found.trained.state;
  const spec::Spec& spec = spec::member_spec(loaded.spec, found.members.front());
  const model::Model model = setup::undivided_model_of(spec, state.input, state.target, state.encoding);
  PeftAdapters adapters = Writer(spec, model, found, found.members.front()).run();
  found.trained.parameters.file.check_intact();
  adapters.checkpoint = found.checkpoint;
  adapters.source = found.trained.parameters.path;
  return adapters;
}

}  // namespace pmaptrain::exports
