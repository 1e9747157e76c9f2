// tokenize: makes tokenizers from texts, and shows what they do.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/commands/commands.h"
#include "app/deliver.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/output_file.h"
#include "app/signals.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/data/file.h"
#include "core/data/texts/encode.h"
#include "core/data/texts/text_files.h"
#include "core/data/tokenizer.h"
#include "core/run/files/file_writer.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/tokenizer.h"
#include "core/tokenizers/train.h"

namespace pmaptrain::app {
namespace {

using tokenizers::Encoder;
using tokenizers::Id;
using tokenizers::Tokenizer;

constexpr const char* files_meaning =
    "files and folders of text, as data.source.text.train takes them; also gzip and JSON lines; '-' is standard input";

std::string standard_input() { return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()}; }

void check_is_there(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) || error) return;  // whoever opens it says what is wrong
  fail_data("there is no '" + path + "'", "FILE is relative to the current directory");
}

// Calls `take` with each document of the files.
void each_document(const std::vector<std::string>& paths, const std::optional<std::string>& field,
                   const std::function<void(std::string_view)>& take) {
  for (const std::string& path : paths) {
    if (path == "-") {
      take(standard_input());
      continue;
    }
    check_is_there(path);
    std::vector<data::TextFile> files = data::list_text_files({path});
    std::vector<std::string> notes;
    data::look_into(files, {}, notes);
    for (const data::TextFile& file : files) {
      if (StopSignals::flag()->load() != 0) return;
      if (file.size == 0) {
        take("");
      } else {
        data::about_file(file.path, [&] { data::each_document(file, field, take); });
      }
    }
  }
}

std::shared_ptr<const Tokenizer> tokenizer_of(const std::optional<std::string>& path, const std::string& command) {
  if (!path) {
    fail_usage(fmt::format("tokenize {} needs --tokenizer FILE", command),
               "a tokenizer.json, such as `pmaptrain tokenize train FILE... --output tokenizer.json` writes");
  }
  return data::at_place(place_of("--tokenizer", *path), [&] { return data::open_tokenizer(*path); });
}

void add_tokenizer_to(Arguments& a, std::optional<std::string>& tokenizer) {
  a.text("--tokenizer", "FILE", tokenizer, "the tokenizer: a file tokenizer.json");
}
void add_field_to(Arguments& a, std::optional<std::string>& field) {
  a.text("--field", "NAME", field, "of JSON lines, the field of each object that is the text; default: text");
}

// Writes a file by `write`, which a signal stops and removes.
int write_file(const std::string& output, const std::function<void(run::Replacement& file)>& write) {
  int signal = 0;
  {
    const StopSignals signals;
    run::remove_abandoned(output);
    run::Replacement file(output);
    write(file);
    file.close();
    signal = *StopSignals::flag();
    if (signal == 0) file.take_place();
  }
  if (signal != 0) raise_by_default(signal);
  return 0;
}

int train(CommandArguments arguments, const Streams& streams) {
  std::vector<std::string> files;
  tokenizers::Training training;
  std::optional<std::int64_t> size, min_count;
  std::optional<std::string> output, field;
  bool overwrite = false;
  Arguments a("tokenize train", "Makes a tokenizer of byte pairs from texts, and writes it as tokenizer.json.");
  a.positionals("FILE", files, files_meaning, "train.txt --size 8192 --output tokenizer.json");
  a.integer("--size", "N", 1, size, "the number of tokens; default: 8192");
  a.text("--output", "FILE", output, "the file to write");
  a.word(
      "--style", {"llama3", "gpt2", "llama2"},
      [&](std::size_t i) {
        training.style = std::array{tokenizers::Style::llama3, tokenizers::Style::gpt2, tokenizers::Style::llama2}[i];
      },
      "whose way of dividing texts it has: bytes and the regular expression of Llama 3 (default) or GPT-2; or "
      "characters, with bytes for rare ones, as Llama 2");
  a.list("--special-token", "TEXT", training.special_tokens,
         "a token that stands for itself wherever the text has it, and has one of the first ids; may repeat; default: "
         "<|endoftext|>, but of llama2 none beside its <unk>, <s> and </s>");
  a.integer("--min-count", "N", 1, min_count, "merge only pairs that occur at least N times; default: 2");
  add_field_to(a, field);
  a.flag("--overwrite", overwrite, "replace the output if it exists");
  if (!a.parse(arguments, streams)) return 0;
  if (!output) fail_usage("tokenize train needs --output FILE", "what to write, such as --output tokenizer.json");
  for (const std::string& token : training.special_tokens) {
    if (token.empty() || !is_utf8(token)) fail_option("--special-token", token, "a special token is a text in UTF-8");
  }
  check_output_file(*output, overwrite);
  training.size = size.value_or(training.size);
  training.min_count = min_count.value_or(training.min_count);
  if (training.special_tokens.empty()) {
    training.special_tokens = tokenizers::default_special_tokens(training.style);
  }
  tokenizers::Definition made;
  std::uint64_t bytes = 0;
  const int status = write_file(*output, [&](run::Replacement& file) {
    tokenizers::BpeTrainer trainer(training);
    each_document(files, field, [&](std::string_view document) {
      bytes += document.size();
      trainer.add(document);
    });
    if (StopSignals::flag()->load() != 0) return;
    made = trainer.finish();
    const std::string text = tokenizers::definition_text(made);
    file.write(std::as_bytes(std::span(text)));
  });
  const auto tokens = static_cast<std::int64_t>(made.model.tokens.size());
  streams.out << for_reader(fmt::format("{}: {} from {} of text\n", shell_quoted(printable(*output)),
                                        counted(tokens, "token"), human_bytes(bytes)),
                            streams);
  if (tokens < training.size) {
    print_notes({fmt::format("it has {} tokens and not {}: no other pair occurs at least {} times", with_commas(tokens),
                             with_commas(training.size), training.min_count)},
                streams);
  }
  return status;
}

int encode(CommandArguments arguments, const Streams& streams) {
  std::vector<std::string> files;
  std::optional<std::string> path, output, field;
  bool overwrite = false, plain = false;
  Arguments a("tokenize encode", "Writes the ids of texts: separated by spaces, a line for each document.");
  a.positionals("FILE", files, files_meaning, "--tokenizer tokenizer.json train.txt");
  add_tokenizer_to(a, path);
  a.text("--output", "FILE", output,
         "write them to FILE instead, one after another: as uint16 where the tokenizer has at most 65,536 tokens, else "
         "as uint32, little-endian");
  a.flag("--no-special-tokens", plain, "without the tokens that the tokenizer puts around each text");
  add_field_to(a, field);
  a.flag("--overwrite", overwrite, "replace the output if it exists");
  if (!a.parse(arguments, streams)) return 0;
  if (output) check_output_file(*output, overwrite);
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(path, "encode");
  const tokenizers::Definition& definition = tokenizer->definition();
  Encoder encoder(*tokenizer);
  std::int64_t count = 0;
  const auto each = [&](const Encoder::Take& take, const std::function<void()>& end) {
    each_document(files, field, [&](std::string_view document) {
      if (!plain && !definition.before.empty()) take(definition.before);
      encoder.encode(document, take);
      if (!plain && !definition.after.empty()) take(definition.after);
      end();
    });
  };
  if (!output) {
    bool begins = true;
    each(
        [&](std::span<const Id> ids) {
          std::string text;
          for (const Id id : ids) {
            if (!begins) text += ' ';
            begins = false;
            fmt::format_to(std::back_inserter(text), "{}", id);
          }
          streams.out << text;
        },
        [&] {
          streams.out << '\n';
          begins = true;
        });
    streams.out.flush();
    return 0;
  }
  const data::Tokens tokens = data::tokens_for(tokenizer->size());
  const std::size_t width = data::bytes_of(tokens);
  std::uint64_t bytes = 0;
  const int status = write_file(*output, [&](run::Replacement& file) {
    each(
        [&](std::span<const Id> ids) {
          count += std::ssize(ids);
          file.write(data::encode_tokens(ids, tokens));
        },
        [] {});
    bytes = static_cast<std::uint64_t>(count) * width;
  });
  streams.out << for_reader(fmt::format("{}: {} as uint{} ({})\n", shell_quoted(printable(*output)),
                                        counted(count, "id"), 8 * width, human_bytes(bytes)),
                            streams);
  return status;
}

// ---- decode ----

enum class Stored { text, uint16, uint32 };

std::vector<Id> ids_of(std::string_view bytes, Stored stored, const std::string& name) {
  std::vector<Id> ids;
  if (stored != Stored::text) {
    const std::size_t width = stored == Stored::uint16 ? 2 : 4;
    if (bytes.size() % width != 0) {
      fail_data(fmt::format("'{}' has {} bytes, which are not whole ids of {} bytes", name, bytes.size(), width));
    }
    const auto whole = std::as_bytes(std::span(bytes));
    for (std::size_t at = 0; at < whole.size(); at += width) {
      ids.push_back(static_cast<Id>(data::read_little(whole, at, width)));
    }
    return ids;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    if (std::string_view(" \t\r\n").find(bytes[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    Id id = 0;
    const auto [end, error] = std::from_chars(bytes.data() + at, bytes.data() + bytes.size(), id);
    if (error != std::errc()) {
      fail_data(fmt::format("'{}' has no id at byte {}", name, at),
                "ids are numbers, separated by spaces; --tokens uint16 or uint32 reads files that `tokenize encode "
                "--output` writes");
    }
    at = static_cast<std::size_t>(end - bytes.data());
    ids.push_back(id);
  }
  return ids;
}

void check_ids(std::span<const Id> ids, const Tokenizer& tokenizer, const std::string& name) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (static_cast<std::int64_t>(ids[i]) < tokenizer.size()) continue;
    fail_data(fmt::format("id {} of '{}' is {}, and the tokenizer has ids from 0 to {}", i, name, ids[i],
                          tokenizer.size() - 1),
              "the ids were made by another tokenizer");
  }
}

int decode(CommandArguments arguments, const Streams& streams) {
  std::vector<std::string> files;
  std::optional<std::string> path;
  Stored stored = Stored::text;
  bool special = false;
  Arguments a("tokenize decode", "Writes the text of ids.");
  a.positionals("FILE", files, "files of ids; '-' is standard input", "--tokenizer tokenizer.json ids.txt");
  add_tokenizer_to(a, path);
  a.word(
      "--tokens", {"text", "uint16", "uint32"}, [&](std::size_t i) { stored = static_cast<Stored>(i); },
      "how the files have ids: as numbers, separated by spaces (default), or as `tokenize encode --output` writes "
      "them");
  a.flag("--special-tokens", special, "also write special tokens, such as <|endoftext|>");
  if (!a.parse(arguments, streams)) return 0;
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(path, "decode");
  for (const std::string& name : files) {
    std::vector<Id> ids;
    if (name == "-") {
      ids = ids_of(standard_input(), stored, "standard input");
    } else {
      check_is_there(name);
      const data::Bytes bytes = data::map_file(name);
      ids = ids_of(data::as_chars(bytes.view()), stored, name);
      bytes.check_intact();
    }
    check_ids(ids, *tokenizer, name);
    const std::string text = tokenizer->decode(ids, special);
    deliver(streams.out, display::text_columns(streams.out_fd) > 0 ? printable(text) : text);
  }
  return 0;
}

// ---- show ----

std::string name_of(const tokenizers::Normalizer& part) {
  constexpr std::array names = {"NFC", "Lowercase", "Prepend", "Replace"};
  return names[part.index()];
}

std::string name_of(const tokenizers::PreTokenizer& part) {
  if (const auto* split = std::get_if<tokenizers::Split>(&part)) {
    constexpr std::array names = {"the expression of GPT-2", "the expression of Llama 3", "words"};
    return names[static_cast<std::size_t>(split->expression)];
  }
  if (const auto* level = std::get_if<tokenizers::ByteLevel>(&part)) {
    return level->use_regex ? "the expression of GPT-2, bytes" : "bytes";
  }
  return "spaces (Metaspace)";
}

template <class Part>
std::string names_of(const std::vector<Part>& parts, const char* none) {
  std::vector<std::string> names;
  names.reserve(parts.size());
  for (const Part& part : parts) names.push_back(name_of(part));
  return names.empty() ? none : join(names, ", ");
}

std::string summary_of(const Tokenizer& tokenizer, int columns) {
  const tokenizers::Definition& definition = tokenizer.definition();
  const tokenizers::Model& model = definition.model;
  std::vector<std::string> specials;
  for (const tokenizers::AddedToken& added : definition.added) {
    specials.push_back(fmt::format("{} {}", added.id, shown_name(added.content)));
  }
  return definitions({{"model", model.is_bpe ? fmt::format("BPE, {}", counted(std::ssize(model.merges), "merge"))
                                             : std::string("WordLevel: a token for each word")},
                      {"ids", fmt::format("0 to {}", with_commas(tokenizer.size() - 1))},
                      {"changes of the text", names_of(definition.normalizers, "none")},
                      {"divided by", names_of(definition.pre_tokenizers, "nothing")},
                      {"added tokens", specials.empty() ? "none" : shown_list(specials)}},
                     columns);
}

int show(CommandArguments arguments, const Streams& streams) {
  std::optional<std::string> path, text;
  Arguments a("tokenize show", "Shows what a tokenizer is made of, and the tokens of a text.");
  add_tokenizer_to(a, path);
  a.optional_positional("TEXT", text, "show the tokens of this text, a line for each: its id, and what it stands for");
  if (!a.parse(arguments, streams)) return 0;
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(path, "show");
  if (!text) {
    deliver(streams.out, summary_of(*tokenizer, display::text_columns(streams.out_fd)));
    return 0;
  }
  std::string lines;
  for (const Id id : Encoder(*tokenizer).encode(*text, true)) {
    const std::string own = tokenizer->decode(std::array{id}, true);
    lines += fmt::format("{:>7} {}\n", id, json_string(own.empty() ? tokenizer->token(id) : own));
  }
  deliver(streams.out, lines);
  return 0;
}

struct Subcommand {
  std::string_view name, usage, summary;
  int (*call)(CommandArguments arguments, const Streams& streams);
};
constexpr auto subcommands = std::to_array<Subcommand>({
    {"train", "train FILE...", "make a tokenizer from texts", train},
    {"encode", "encode FILE...", "write the ids of texts", encode},
    {"decode", "decode FILE...", "write the text of ids", decode},
    {"show", "show [TEXT]", "show what a tokenizer is made of, or the tokens of a text", show},
});

}  // namespace

int command_tokenize(CommandArguments arguments, const Streams& streams) {
  const std::string what = arguments.empty() ? "--help" : arguments.front();
  for (const Subcommand& sub : subcommands) {
    if (what == sub.name) return sub.call(arguments.subspan(1), streams);
  }
  std::vector<std::string> names;
  std::vector<Definition> lines;
  for (const Subcommand& sub : subcommands) {
    names.emplace_back(sub.name);
    lines.push_back({std::string(sub.usage), std::string(sub.summary)});
  }
  if (what == "--help" || what == "-h") {
    const std::string usage =
        "usage: pmaptrain tokenize train|encode|decode|show\n\n"
        "Makes tokenizers from texts, and turns texts into ids and back.\n\n" +
        definitions(lines, display::text_columns(streams.out_fd)) +
        "\n`pmaptrain tokenize train --help` lists the options of each; docs/training.md has an example.\n";
    streams.out << for_reader(usage, streams);
    return 0;
  }
  const std::string near = nearest(what, names);
  fail_usage("pmaptrain tokenize has no '" + what + "'",
             near.empty() ? "it is one of train, encode, decode and show" : "did you mean '" + near + "'?");
}

}  // namespace pmaptrain::app
