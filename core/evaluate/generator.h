// Continues a text with the model of a run.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluate/sampling.h"
#include "core/run/checkpoint.h"
#include "core/runtime/backend.h"
#include "core/spec/load.h"

namespace pmaptrain::tokenizers {
class Tokenizer;
}  // namespace pmaptrain::tokenizers

namespace pmaptrain::evaluate {

// How many of the first of `size` tokens a model of so many positions no longer sees: once there are more than
// positions, the oldest are dropped, half of the positions at a time.
std::int64_t forgotten(std::int64_t size, std::int64_t positions);

class Generator {
 public:
  // Opens the checkpoint. Throws Error: usage for a model that does not predict the next token of a sequence from those
  // before it, and for an ensemble without a member.
  Generator(const spec::Loaded& loaded, const std::filesystem::path& run_dir, const std::string& checkpoint,
            spec::Weights weights, run::MemberNumber member);

  const std::string& checkpoint() const { return checkpoint_; }
  std::int64_t positions() const { return positions_; }
  // The number of tokens that the model reads and writes: the rows of its table, or its outputs if these are fewer.
  std::int64_t vocabulary() const { return vocabulary_; }

  // Of texts; null where bytes or numbers are tokens.
  const tokenizers::Tokenizer* tokenizer() const { return tokenizer_.get(); }

  // Throws Error (usage) for an empty prompt, or a token that the model does not know.
  void check(std::span<const std::int32_t> prompt) const;

  // Appends `count` tokens to the prompt, and gives each to `take` as soon as it is known. The end token of the run's
  // texts ends this early, and is not given to `take`; so does a signal in `stop`. Returns the signal, or 0. Throws
  // what check() and `take` throw.
  int run(std::vector<std::int32_t> prompt, std::int64_t count, const Sampling& sampling,
          const std::function<void(std::int32_t token)>& take, const std::atomic<int>* stop = nullptr);

  // The logits of the token that follows `tokens`, which has at least one element. They are valid until the next call.
  // Where `tokens` is one token longer than at the last call, only this one is computed; the logits are the same but
  // for rounding, and depend on the tokens that were in memory.
  std::span<const float> logits_after(std::span<const std::int32_t> tokens);

 private:
  void run_whole(std::span<const std::int32_t> seen);
  void run_next(std::int32_t token, std::size_t position);
  void read_logits(std::size_t entry, std::size_t row);
  std::string checkpoint_;
  std::int64_t positions_ = 0, outputs_ = 0, vocabulary_ = 0;
  std::optional<std::int64_t> end_token_;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer_;
  std::unique_ptr<Module> module_;
  bool has_memory_ = false;              // whether all that layers read of positions before is in the module
  std::vector<std::int32_t> in_memory_;  // the tokens whose keys and values are in the module, from position 0 on
  std::vector<float> logits_;
};

}  // namespace pmaptrain::evaluate
