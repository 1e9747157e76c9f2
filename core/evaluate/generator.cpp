#include "core/evaluate/generator.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "core/base/error.h"
#include "core/data/texts/text_source.h"
#include "core/evaluate/trained_members.h"
#include "core/input/open.h"
#include "core/model/prediction.h"
#include "core/ops/all.h"
#include "core/setup/base.h"
#include "core/setup/looking_ahead.h"
#include "core/setup/options.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/setup/restore.h"
#include "core/setup/setup.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::evaluate {
namespace {

// The entries of the module.
constexpr std::size_t whole_entry = 0, next_entry = 1;

void check_continues_texts(const spec::Spec& spec, const model::Model& model) {
  if (spec.data.source.as<data::TextFiles>() == nullptr || model.input.dtype != DType::i32) {
    fail_usage("--prompt continues texts, and this run was trained on " + spec.data.source->name(),
               "it needs a run on data.source.text, as `pmaptrain init gpt` has it; --input predicts for a file");
  }
  const bool predicts_each = model.has_sequences() && model.classes() > 0 && model.output.size() == 2;
  if (!model.takes_tokens() || !predicts_each || model.output.front() != model.input.shape.front()) {
    fail_usage("--prompt continues texts, and this model takes " + std::string(to_string(model.input.dtype)) +
                   to_string(model.input.shape) + " and gives " + to_string(model.output),
               "it needs a model that takes tokens [T] and gives logits [T, V] for the token after each, as "
               "`pmaptrain init gpt` has it; --input predicts for a file");
  }
  if (const layers::Layer* const layer = setup::first_that_looks_ahead(spec.model.layers)) {
    throw Error(ExitStatus::usage, Diagnostic{"config",
                                              layer->place,
                                              "--prompt continues texts, and in this model " + layer->name +
                                                  " shows a position the tokens after it",
                                              "attention: {causal: true} sees no token ahead; train such a model",
                                              {}});
  }
}

}  // namespace

std::int64_t forgotten(std::int64_t size, std::int64_t positions) {
  if (size <= positions) return 0;
  const std::int64_t step = positions - positions / 2;
  return (size - positions + step - 1) / step * step;
}

Generator::Generator(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const std::string& checkpoint,
                     spec::Weights weights, run::MemberNumber member) {
  if (loaded.spec.ensemble && !member) {
    fail_usage(
        "--prompt continues a text with one model, and the run has " + std::to_string(spec::members(loaded.spec)),
        "choose one of them: --member 0");
  }
  const TrainedMembers found = load_members(loaded, run_dir, checkpoint, weights, member);
  const run::RunState& state = found.trained.state;
  checkpoint_ = found.checkpoint;
  const spec::Spec& spec = spec::member_spec(loaded.spec, found.members.front());
  const model::Model model = setup::undivided_model_of(spec, state.input, state.target, state.encoding);
  check_continues_texts(spec, model);
  positions_ = model.input.shape.front();
  const auto& text = *spec.data.source.as<data::TextFiles>();
  tokenizer_ = input::tokenizer_of(loaded.spec.data, state.encoding);
  end_token_ = text.end_id(tokenizer_.get());
  outputs_ = model.output.back();
  vocabulary_ = std::min(outputs_, model::first_layer(model.layers)->parameters.front().shape.front());
  const std::int64_t kinds = tokenizer_ != nullptr                ? tokenizer_->size()
                             : text.tokens == data::Tokens::bytes ? 256
                                                                  : vocabulary_;
  vocabulary_ = std::min(vocabulary_, kinds);

  // Attention keeps keys and values of the positions before; other layers would have to read them again.
  const auto reads_before = [](const layers::Layer& layer) { return layer.kind->reads_before(); };
  has_memory_ = layers::find_layer(spec.model.layers, reads_before) == nullptr;

  spec::MeshSpec mesh = spec.mesh;  // of one device
  mesh.mesh = Mesh();
  mesh.blocks.reset();
  model::Continuation programs = model::continuation(model, mesh.mesh, all_ops());
  const auto entry = [](const char* name, Program&& program) {
    return Entry{name, std::make_shared<const Program>(setup::optimize(std::move(program)))};
  };
  const Source source{{entry("whole", std::move(programs.whole)), entry("next", std::move(programs.next))}};
  module_ = std::move(*setup::plan_source(mesh, source, KernelChoice::best).planned).load();
  setup::write_base(*module_, model, spec, state.base);
  setup::write_group(*module_, 0, 0, Group::params, found.trained.parameters.of_member(found.members.front()),
                     found.trained.parameters.path);
  found.trained.parameters.file.check_intact();
  logits_.resize(static_cast<std::size_t>(vocabulary_));
}

void Generator::read_logits(std::size_t entry, std::size_t row) {
  const std::size_t bytes = static_cast<std::size_t>(outputs_) * sizeof(float);
  module_->wait(
      module_->read(module_->output(entry, "predictions"), 0, std::as_writable_bytes(std::span(logits_)), row * bytes));
}

void Generator::run_whole(std::span<const std::int32_t> seen) {
  const std::span<std::byte> inputs = module_->batch(whole_entry, 0, "inputs");
  std::fill(inputs.begin(), inputs.end(), std::byte{0});  // what follows is not seen
  std::memcpy(inputs.data(), seen.data(), seen.size_bytes());
  module_->submit(whole_entry, 0);
  read_logits(whole_entry, seen.size() - 1);
}

void Generator::run_next(std::int32_t token, std::size_t position) {
  const auto at = static_cast<std::int32_t>(position);
  std::memcpy(module_->batch(next_entry, 0, "inputs").data(), &token, sizeof(token));
  std::memcpy(module_->batch(next_entry, 0, "position").data(), &at, sizeof(at));
  module_->submit(next_entry, 0);
  read_logits(next_entry, 0);
}

std::span<const float> Generator::logits_after(std::span<const std::int32_t> tokens) {
  const std::span<const std::int32_t> seen =
      tokens.subspan(static_cast<std::size_t>(forgotten(std::ssize(tokens), positions_)));
  const std::size_t known = in_memory_.size();
  const bool continues = has_memory_ && known > 0 && seen.size() == known + 1 &&
                         std::equal(in_memory_.begin(), in_memory_.end(), seen.begin());
  in_memory_.clear();  // until the module has run
  if (continues) {
    run_next(seen.back(), known);
  } else {
    run_whole(seen);
  }
  in_memory_.assign(seen.begin(), seen.end());
  return logits_;
}

void Generator::check(std::span<const std::int32_t> prompt) const {
  if (prompt.empty()) fail_usage("--prompt is empty", "it has at least one token, from which the text goes on");
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < vocabulary_) continue;
    fail_usage("token " + std::to_string(i) + " of --prompt is " + std::to_string(prompt[i]) +
                   "; the model knows the " + "tokens 0 to " + std::to_string(vocabulary_ - 1),
               "the model continues texts of the tokens that it was trained on");
  }
}

int Generator::run(std::vector<std::int32_t> prompt, std::int64_t count, const Sampling& sampling,
                   const std::function<void(std::int32_t token)>& take, const std::atomic<int>* stop) {
  check(prompt);
  for (std::int64_t number = 0; number < count; ++number) {
    if (const int signal = stop != nullptr ? stop->load() : 0; signal != 0) return signal;
    const std::int32_t token = next_token(logits_after(prompt), sampling, number);
    if (token == end_token_) break;
    prompt.push_back(token);
    take(token);
  }
  return 0;
}

}  // namespace pmaptrain::evaluate
