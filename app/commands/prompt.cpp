#include "app/commands/prompt.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "app/display/terminal.h"
#include "app/signals.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/data/texts/text_source.h"
#include "core/data/texts/token_store.h"
#include "core/evaluate/generator.h"
#include "core/evaluate/prediction_file.h"
#include "core/spec/load.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::app {
namespace {

constexpr std::int64_t default_tokens = 200;

// The value of an option that takes a number from `low` to `high`; `open` without `low` itself. `range` is that in
// words.
double number_of(const std::string& option, const std::optional<std::string>& text, double otherwise, double low,
                 double high, bool open, const std::string& range, std::string help = {}) {
  if (!text) return otherwise;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool is_number = error == std::errc() && end == text->data() + text->size() && std::isfinite(number);
  if (!is_number || number < low || number > high || (open && number == low)) {
    fail_option(option, *text, option + " '" + *text + "' is not a number " + range, std::move(help));
  }
  return number;
}

evaluate::Sampling sampling_of(const PromptOptions& options, std::uint64_t seed) {
  evaluate::Sampling sampling;
  sampling.temperature = number_of("--temperature", options.temperature, 0, 0, 1e6, false, "from 0 to 1,000,000",
                                   "0 takes the most probable token each time, 1 draws tokens by their probabilities");
  sampling.top_p = number_of("--top-p", options.top_p, 1, 0, 1, true, "greater than 0 and of at most 1");
  sampling.top_k = options.top_k;
  sampling.seed = seed;
  if (sampling.temperature == 0 && (options.top_k || options.top_p)) {
    fail_usage(std::string(options.top_k ? "--top-k" : "--top-p") +
                   " chooses between tokens, and without --temperature the most probable one is taken",
               "--temperature 1 draws tokens by their probabilities");
  }
  return sampling;
}

// What continues, and what its tokens are.
struct Prompt {
  std::string bytes;
  data::Tokens tokens = data::Tokens::bytes;
  const tokenizers::Tokenizer* tokenizer = nullptr;  // of a text; null: bytes, or tokens as a file has them
  bool are_numbers() const { return tokenizer == nullptr && tokens != data::Tokens::bytes; }
};

// The file of --prompt @FILE.
data::Bytes map_prompt(const std::string& text) {
  try {
    return data::map_file(text.substr(1));
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      diagnostic.place = place_of("--prompt", text);
      diagnostic.help = "@ names a file, relative to the current directory; the text '" + text + "' is --prompt " +
                        shell_quoted("@" + text);
    }
    throw Error(error.status(), std::move(diagnostics));
  }
}

// A text as it is given to --prompt. @@ stands for an @ at its beginning.
Prompt read_prompt(const std::string& text, data::Tokens tokens, const tokenizers::Tokenizer* tokenizer) {
  const bool is_escaped = text.starts_with("@@");
  Prompt prompt{is_escaped ? text.substr(1) : text, tokens, tokenizer};
  const std::size_t width = data::bytes_of(tokens);
  if (text.starts_with('@') && !is_escaped) {
    const data::Bytes file = map_prompt(text);
    prompt.bytes.assign(reinterpret_cast<const char*>(file.data()), file.size());
    file.check_intact();
    if (prompt.are_numbers() && prompt.bytes.size() % width != 0) {
      fail_data(fmt::format("'{}' has {} bytes, which are no whole tokens of {} bits", text.substr(1),
                            prompt.bytes.size(), 8 * width),
                "write it as the files of data.source.text are written");
    }
  } else if (prompt.are_numbers()) {
    fail_option("--prompt", text,
                fmt::format("this model takes tokens of {} bits, which a text does not say", 8 * width),
                "--prompt @FILE reads a file of such tokens, in little-endian order; with --set "
                "'data.tokenizer.file=tokenizer.json' the tokenizer that made them reads the text");
  }
  return prompt;
}

std::vector<std::int32_t> tokens_of(const Prompt& prompt) {
  if (prompt.tokenizer != nullptr) {
    const std::vector<tokenizers::Id> ids = tokenizers::Encoder(*prompt.tokenizer).encode(prompt.bytes, false);
    return {ids.begin(), ids.end()};
  }
  std::vector<std::int32_t> tokens(prompt.bytes.size() / data::bytes_of(prompt.tokens));
  data::decode_tokens(std::as_bytes(std::span(prompt.bytes)), prompt.tokens,
                      reinterpret_cast<std::byte*>(tokens.data()));
  return tokens;
}

}  // namespace

void PromptOptions::add_to(Arguments& arguments) {
  arguments.text(
      "--prompt", "TEXT|@FILE", prompt,
      "continue this text, or that of a file, in place of --input and --output; for models of sequences; @@ begins a "
      "text that begins with @");
  arguments.integer("--tokens", "N", 1, tokens, "with --prompt, how many tokens to add; default: 200");
  arguments.text(
      "--temperature", "T", temperature,
      "with --prompt, what logits are divided by before a token is drawn; default: 0, the most probable one");
  arguments.integer("--top-k", "N", 1, top_k, "with --temperature, draw from the N most probable tokens");
  arguments.text("--top-p", "P", top_p,
                 "with --temperature, draw from the most probable tokens that have the share P together");
}

void PromptOptions::check_alone() const {
  const std::pair<const char*, bool> given[] = {{"--tokens", tokens.has_value()},
                                                {"--temperature", temperature.has_value()},
                                                {"--top-k", top_k.has_value()},
                                                {"--top-p", top_p.has_value()}};
  for (const auto& [option, is_given] : given) {
    if (is_given && !prompt) fail_usage(std::string(option) + " belongs to --prompt", "give a text: --prompt TEXT");
  }
}

int continue_text(const PromptOptions& options, ConfigOptions config, const std::optional<std::string>& checkpoint,
                  const evaluate::PredictionRequest& request, const Streams& streams) {
  if (streams.job != nullptr) {
    fail_usage("--prompt continues a text in one process, and a launcher has started several",
               "start it without the launcher");
  }
  const evaluate::Sampling sampling = sampling_of(options, config.overrides.seed.value_or(0));
  config.overrides.seed.reset();  // it is that of the draws, not of the run
  const spec::Loaded loaded = spec::load(config.config, config.overrides);
  print_notes(loaded.facts_and_notes(), streams);
  const std::string chosen =
      checkpoint ? *checkpoint : run::default_checkpoint(loaded.spec, config.config, request.member);
  evaluate::Generator generator(loaded, config.config, chosen, request.weights, request.member);
  if (!checkpoint && generator.checkpoint() != "best") {
    print_notes(notes_of_default(config.config, chosen, {generator.checkpoint()}), streams);
  }
  const Prompt prompt =
      read_prompt(*options.prompt, loaded.spec.data.source.as<data::TextFiles>()->tokens, generator.tokenizer());
  const std::vector<std::int32_t> tokens = tokens_of(prompt);
  std::optional<tokenizers::StreamDecoder> decoder;
  if (prompt.tokenizer != nullptr) {
    const std::vector<tokenizers::Id> ids(tokens.begin(), tokens.end());
    decoder.emplace(*prompt.tokenizer, ids);
  }
  bool is_first = true;
  const bool is_terminal = display::text_columns(streams.out_fd) > 0;
  const auto flush = [&] {
    if (!streams.out.flush()) throw evaluate::StreamRefused();
  };
  const auto write = [&](std::int32_t token) {
    if (decoder) {
      const std::string text = decoder->next(static_cast<tokenizers::Id>(token));
      streams.out << (is_terminal ? printable(text) : text);
    } else if (prompt.are_numbers()) {
      streams.out << (is_first ? "" : " ") << token;
    } else {
      // A model may write any byte, and a terminal obeys some.
      const std::string byte(1, static_cast<char>(token));
      streams.out << (is_terminal ? printable(byte) : byte);
    }
    is_first = false;
    flush();
  };
  generator.check(tokens);
  const auto size = static_cast<std::int64_t>(tokens.size());
  if (const std::int64_t lost = evaluate::forgotten(size, generator.positions()); lost > 0) {
    print_notes(
        {fmt::format("the prompt has {} tokens, and the model sees at most {}: it continues the last {} of them", size,
                     generator.positions(), size - lost)},
        streams);
  }
  int signal = 0;
  {
    const StopSignals signals;
    try {
      if (!prompt.are_numbers()) streams.out << prompt.bytes;
      flush();
      signal = generator.run(tokens, options.tokens.value_or(default_tokens), sampling, write, StopSignals::flag());
      if (decoder) {
        const std::string rest = decoder->rest();
        streams.out << (is_terminal ? printable(rest) : rest);
      }
      streams.out << "\n";
      flush();
    } catch (const evaluate::StreamRefused&) {  // main() tells a failure from a reader that went away
    }
    if (signal == 0) signal = *StopSignals::flag();
  }
  if (signal != 0) raise_by_default(signal);
  return 0;
}

}  // namespace pmaptrain::app
