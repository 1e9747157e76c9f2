// The table of keys as text: `pmaptrain help KEY` and docs/config.md.
#include "core/spec/keys/help.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/hints/hints.h"
#include "core/spec/keys.h"
#include "core/spec/keys/check.h"
#include "core/spec/types/duration.h"

namespace pmaptrain::spec {
namespace {

std::string indented(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out += std::string(indent, ' ') + std::string(text.substr(start, end - start)) + "\n";
    start = end + 1;
  }
  return out;
}

// The options of an alternative: "features (required), strides (default [1, 1])".
std::string options_of(const Key& key) {
  std::vector<std::string> options;
  for (const Key* option : children(key)) {
    if (option->need == Need::alternative) return "";  // too many for a line
    options.push_back(std::string(option->name()) + " (" + fallback_of(*option) + ")");
  }
  return join(options, ", ");
}

std::string description_of(const Key& key) {
  std::string what = std::string(key.meaning);
  if (key.need != Need::alternative) {
    what += " (" + takes(key) + "; " + fallback_of(key) + ")";
  } else if (const std::string options = options_of(key); !options.empty()) {
    what += " Options: " + options + ".";
  }
  return what;
}

std::string list_of(const std::vector<const Key*>& keys, int width) {
  std::vector<Definition> all;
  all.reserve(keys.size());
  for (const Key* key : keys) all.push_back({std::string(key->name()), description_of(*key)});
  return definitions(all, width);
}

// The paths of the keys that an ensemble may vary, each with the values that it may not have.
std::vector<std::string> lines_of_variables() {
  std::vector<std::string> lines;
  for (const Key& key : keys()) {
    if (!key.varies) continue;
    std::string line = "`" + key.path + (key.type == Type::scales ? ".0.1` (the scale of the first pair)" : "`");
    if (key.structural) line += " (not " + exact(key.structural->value) + ": " + std::string(key.structural->why) + ")";
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string help_of(const Key& key, int width) {
  std::string out = std::string(key.path) + "\n  " + filled(key.meaning, width, 2) + "\n";
  std::vector<const Key*> options = alternatives(key);
  std::vector<const Key*> others = children(key);
  std::erase_if(others, [](const Key* other) { return other->need == Need::alternative; });
  if (options.empty() && (others.empty() || key.need != Need::alternative)) {
    out += "\n  takes " + filled(takes(key), width, 8) + "\n";
  }
  if (const std::string bare = bare_number_text(key); !bare.empty()) out += "  " + filled(bare, width, 2) + "\n";
  const std::string fallback = fallback_of(key);
  if (!fallback.empty()) out += (options.empty() ? "  " : "\n  ") + fallback + "\n";
  if (key.varies) out += "  may vary between the members of an ensemble\n";
  if (may_change(key)) out += "  may change within a run: run RUN --resume --change\n";
  if (!options.empty()) {
    out += key.type == Type::choices ? "\neach " + std::string(key.item) + " is one of\n"
                                     : std::string(key.or_number ? "\na number, or one of\n" : "\none of\n");
    out += list_of(options, width);
  }
  if (!others.empty()) {
    out += options.empty() ? "\nkeys\n" : "\nkeys beside it\n";
    out += list_of(others, width);
  }
  if (key.type == Type::varied) {
    const std::string rule =
        "keys that may vary; items of lists are written by index or name, as in model.layers.2.dropout.rate";
    out += '\n' + (width < text_width ? filled(rule, width) : rule) + '\n';
    for (std::string line : lines_of_variables()) {
      std::erase(line, '`');
      out += "  " + filled(line, width, 4) + "\n";
    }
  }
  if (!key.example.empty()) out += "\nexample\n" + indented(key.example, 2);
  return out;
}

std::string overview(int width) {
  std::string first =
      "The keys of a config. `pmaptrain help KEY` describes one of them, for example `pmaptrain help "
      "optimizer.adam`.\n";
  std::string last =
      "Every key can be set on the command line: --set data.batch_size=64. Top-level keys that begin with x-\n"
      "are ignored; they may hold YAML anchors.\n";
  if (width < text_width) {
    first = refilled(first, width);
    last = refilled(last, width);
  }
  return first + '\n' + list_of(children(root_key()), width) + '\n' + last;
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string default_cell(const Key& key) {
  if (key.need == Need::required) return "**required**";
  if (!key.fallback.empty()) return "`" + std::string(key.fallback) + "`";
  return cell(key.fallback_text);
}

void section(const Key& key, int level, std::string& out) {
  out += "\n" + std::string(static_cast<std::size_t>(std::min(level, 5)), '#') + " `" + std::string(key.path) + "`\n\n";
  out += std::string(key.meaning);
  if (key.need == Need::required) out += " Required.";
  out += "\n";
  if (!key.example.empty()) out += "\n```yaml\n" + std::string(key.example) + "\n```\n";
  if (!key.like.empty()) return;  // the keys below are described there
  const auto below = children(key);
  std::vector<const Key*> leaves;
  std::vector<const Key*> groups;
  for (const Key* other : below) {
    const bool is_described_elsewhere = other->type == Type::choice && !other->like.empty();
    const bool group = (!children(*other).empty() && !is_described_elsewhere) || other->need == Need::alternative;
    (group ? groups : leaves).push_back(other);
  }
  if (!leaves.empty()) {
    out += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
    for (const Key* leaf : leaves) {
      out += "| `" + std::string(leaf->name()) + "` | " + cell(takes(*leaf)) + " | " + default_cell(*leaf) + " | " +
             cell(leaf->meaning) + " |\n";
    }
  }
  if (std::any_of(leaves.begin(), leaves.end(), [](const Key* leaf) { return leaf->type == Type::varied; })) {
    out +=
        "\nKeys that may vary; items of lists are written by index or name, as in `model.layers.2.dropout.rate`:\n\n";
    for (const std::string& line : lines_of_variables()) out += "- " + line + "\n";
  }
  for (const Key* group : groups) section(*group, level + 1, out);
}

// The key with this path, and the paths of other keys that end in it; without such a key, all keys that end in it.
std::string help_of_all(const std::string& path, int width) {
  const Key* exact = find_key(path);
  std::string out = exact != nullptr ? help_of(*exact, width) : "";
  std::vector<std::string> others;
  for (const Key* found : find_ending(path)) {
    if (found == exact) continue;
    if (exact == nullptr) out += (out.empty() ? "" : "\n") + help_of(*found, width);
    others.emplace_back(found->path);
  }
  if (exact != nullptr && !others.empty()) {
    out += "\nother keys of the same name\n";
    for (const std::string& other : others) out += "  pmaptrain help " + other + "\n";
  }
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_of_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Whether `text` contains `word` as a whole word, ignoring case.
bool has_word(std::string_view text, const std::string& word) {
  const std::string lower = lowercase(text);
  for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_word(lower[at - 1])) && (end == lower.size() || !is_of_word(lower[end]))) return true;
  }
  return false;
}

// The keys with the word in their name or meaning, one per line; empty if there are none. `hint` is the meaning of the
// word in other frameworks, if known.
std::string list_with(const std::string& word, const std::string& hint, int width) {
  std::vector<const Key*> found;
  for (const Key& key : keys()) {
    if (!key.path.empty() && (has_word(key.name(), word) || has_word(key.meaning, word))) found.push_back(&key);
  }
  if (found.empty()) return "";
  std::string out = "no key is named '" + word + "'" + (hint.empty() ? "" : ": " + hint) +
                    (hint.empty() ? "; " : "\n") + "these have the word in their name or meaning\n";
  if (width < text_width) out = refilled(out, width);
  std::vector<Definition> all;
  all.reserve(found.size());
  for (const Key* key : found) all.push_back({key->path, std::string(key->meaning)});
  out += definitions(all, width);
  return out + "\n`pmaptrain help KEY` describes one of them.\n";
}

// The key that an unknown word may mean.
std::string near_key(const std::string& word) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    names.emplace_back(key.path);
    names.emplace_back(key.name());
  }
  const std::string last = word.substr(word.rfind('.') + 1);
  if (const std::optional<Hint> hint = hint_in_config(last); hint && !same_letters(word, names)) {
    const bool is_value = hint->is_supported() && find_ending(hint->meant).empty();
    return hint->help + (is_value ? " pmaptrain help " + hint->path : "");
  }
  const std::string near = nearest(word, names);
  return near.empty() ? "pmaptrain help lists all keys" : "did you mean '" + near + "'?";
}

std::string without(const std::string& word, std::string_view ending) {
  return word.ends_with(ending) ? word.substr(0, word.size() - ending.size()) : word;
}

}  // namespace

std::string help(const std::string& key, int columns) {
  const int width = columns > 0 ? std::min(columns, text_width) : text_width;
  if (key.empty()) return overview(width);
  // Also finds plural and singular forms, such as "losses" and "metric".
  for (const std::string& name : {key, key + "s", without(key, "s"), without(key, "es")}) {
    std::string out = help_of_all(name, width);
    if (!out.empty()) return out;
  }
  // If another program uses the word for a key, the help names the equivalent here as well.
  if (std::string out = list_with(lowercase(key), hint_in_config(key) ? near_key(key) : "", width); !out.empty())
    return out;
  fail_usage("there is no config key '" + key + "'", near_key(key));
}

std::string reference_markdown() {
  std::string out =
      "# Config keys\n\n"
      "This page is generated from the table of keys that also validates a config; do not edit it. On the command\n"
      "line, `pmaptrain help KEY` prints the same descriptions.\n\n"
      "A **choice** is written as a bare name, or as one key with its options: `relu`, `{dense: 10}`,\n"
      "`{conv: {features: 32, kernel_size: [3, 3]}}`. Durations and intervals are written as `100` or `100 steps`,\n"
      "`2 epochs`, `50000 examples`. A relative path in a config is relative to the folder of the config; a relative\n"
      "path in an option is relative to the current directory. Numbers are decimal; quoted values are text. `null`\n"
      "means the default. Top-level keys that begin with `x-` are ignored; they may hold YAML anchors. An alias\n"
      "(`*base`) repeats a value, and `<<: *base` or `<<: [*first, *second]` merges maps into another one, as in\n"
      "YAML 1.1: a key of the map itself counts, else that of the first of the merged maps that has it. `${` is\n"
      "reserved: there is no substitution. Write these characters as `\"\\x24{\"` in a path.\n\n"
      "| key | value | default | meaning |\n|---|---|---|---|\n";
  const auto top = children(root_key());
  for (const Key* key : top) {
    out += "| `" + std::string(key->name()) + "` | " + cell(takes(*key)) + " | " + default_cell(*key) + " | " +
           cell(key->meaning) + " |\n";
  }
  for (const Key* key : top) {
    if (!children(*key).empty()) section(*key, 2, out);
  }
  return out;
}

}  // namespace pmaptrain::spec
