#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/split.h"

namespace pmaptrain::tokenizers {
namespace {

using Json = nlohmann::json;

constexpr const char* other_tokenizers =
    "another tokenizer, such as one that `pmaptrain tokenize train` writes, or files of ids that the package "
    "tokenizers makes (data.source.text.tokens: uint32)";

class Reader {
 public:
  Reader(const Json& file, const std::string& name) : file_(file), name_(name) {}

  Definition read() const {
    if (!file_.is_object() || !file_.contains("model")) {
      fail("", "is no tokenizer.json: it has no `model`",
           "`pmaptrain tokenize train FILE... --output tokenizer.json` makes one; so does save() of the package "
           "tokenizers");
    }
    only(file_, "",
         {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
          "decoder", "model"});
    for (const char* const key : {"truncation", "padding"}) {
      if (file_.contains(key) && !file_[key].is_null()) {
        fail(key, "is not supported: it would change the ids of each text",
             fmt::format("in Python: tokenizer.no_{}() before save()", key));
      }
    }
    Definition definition;
    definition.model = read_model();
    definition.added = read_added(definition.model);
    if (const Json* const part = given(file_, "normalizer"))
      add_normalizers(*part, "normalizer", definition.normalizers);
    check_growth(definition.normalizers);
    if (const Json* const part = given(file_, "pre_tokenizer")) {
      add_pre_tokenizers(*part, "pre_tokenizer", definition.pre_tokenizers);
      check_order(definition);
    }
    if (const Json* const part = given(file_, "decoder")) add_decoders(*part, "decoder", definition.decoders);
    if (const Json* const part = given(file_, "post_processor")) read_template(*part, "post_processor", definition);
    check_ids(definition);
    return definition;
  }

 private:
  // ---- parts of the file ----

  [[noreturn]] void fail(const std::string& at, const std::string& what, std::string help = {}) const {
    fail_data(fmt::format("'{}'{}{} {}", name_, at.empty() ? "" : ": ", at, what), std::move(help));
  }
  [[noreturn]] void fail_kind(const std::string& at, const Json& kind, const std::string& known) const {
    fail(at,
         fmt::format("is {}, which is not supported: {}",
                     kind.is_string() ? shown_name(kind.get<std::string>()) : shown_name(kind.dump()), known),
         other_tokenizers);
  }

  static const Json* given(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  // What would be read over has an effect on ids.
  void only(const Json& object, const std::string& at, const std::set<std::string>& keys) const {
    for (const auto& [key, value] : object.items()) {
      if (!keys.contains(key) && !value.is_null()) {
        fail(inside(at, key), "is not supported", other_tokenizers);
      }
    }
  }
  static std::string inside(const std::string& at, const std::string& key) {
    return at.empty() ? shown_name(key) : at + "." + shown_name(key);
  }

  std::string kind_of(const Json& part, const std::string& at) const {
    const Json* const kind = part.is_object() ? given(part, "type") : nullptr;
    if (kind == nullptr || !kind->is_string()) fail(at, "has no `type`");
    return kind->get<std::string>();
  }
  bool flag(const Json& part, const char* key, const std::string& at, bool otherwise) const {
    const Json* const value = given(part, key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(inside(at, key), "is neither true nor false");
    return value->get<bool>();
  }
  std::string text(const Json& part, const char* key, const std::string& at, const char* otherwise = nullptr) const {
    const Json* const value = given(part, key);
    if (value == nullptr && otherwise != nullptr) return otherwise;
    if (value == nullptr || !value->is_string()) fail(inside(at, key), "is no text");
    return value->get<std::string>();
  }
  std::uint64_t count(const Json& part, const char* key, const std::string& at) const {
    const Json* const value = given(part, key);
    if (value == nullptr || !value->is_number_unsigned()) fail(inside(at, key), "is no number of 0 or more");
    return value->get<std::uint64_t>();
  }
  Id id(const Json& value, const std::string& at) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= most_ids) {
      fail(at,
           fmt::format("is {}, and ids are numbers from 0 to {}", shown_name(value.dump()), with_commas(most_ids - 1)));
    }
    return value.get<Id>();
  }
  const Json& list(const Json& part, const char* key, const std::string& at) const {
    const Json* const value = given(part, key);
    if (value == nullptr || !value->is_array()) fail(inside(at, key), "is no list");
    return *value;
  }

  // ---- the model ----

  Model read_model() const {
    const Json& part = file_["model"];
    if (!part.is_object()) fail("model", "is no object");
    // Files of old versions do not say the type.
    const std::string kind = part.contains("type") ? kind_of(part, "model") : "BPE";
    Model model;
    model.is_bpe = kind == "BPE";
    if (kind != "BPE" && kind != "WordLevel") fail_kind("model.type", part["type"], "BPE and WordLevel are");
    only(part, "model",
         {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
          "byte_fallback", "ignore_merges", "vocab", "merges"});
    for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text(part, key, "model", "").empty()) fail(inside("model", key), "is not supported", other_tokenizers);
    }
    if (const Json* const dropout = given(part, "dropout"); dropout != nullptr && *dropout != 0.0) {
      fail("model.dropout", "is not supported: texts would have other ids each time", "set it to null in the file");
    }
    model.fuse_unk = flag(part, "fuse_unk", "model", false);
    model.byte_fallback = flag(part, "byte_fallback", "model", false);
    model.ignore_merges = flag(part, "ignore_merges", "model", false);
    const Json* const vocabulary = given(part, "vocab");
    if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty()) {
      fail("model.vocab", "is no object of tokens with their ids");
    }
    std::unordered_map<std::string_view, Id> ids;
    ids.reserve(vocabulary->size());
    for (auto entry = vocabulary->begin(); entry != vocabulary->end(); ++entry) {
      const std::string at = fmt::format("model.vocab: the id of {}", shown_name(entry.key()));
      const Id own = id(entry.value(), at);
      if (own >= model.tokens.size()) model.tokens.resize(own + std::size_t{1});
      if (entry.key().empty()) fail("model.vocab", "has an empty token");
      if (!model.tokens[own].empty()) {
        fail(at, fmt::format("is {}, which {} has too", own, shown_name(model.tokens[own])));
      }
      model.tokens[own] = entry.key();
      ids.emplace(entry.key(), own);
    }
    if (const Json* const unknown = given(part, "unk_token")) {
      if (!unknown->is_string() || !ids.contains(unknown->get_ref<const std::string&>())) {
        // A model that never needs it may name one.
        if (!unknown->is_string() || !model.is_bpe) fail("model.unk_token", "is no token of model.vocab");
      } else {
        model.unknown = unknown->get<std::string>();
      }
    }
    if (model.is_bpe) read_merges(part, ids, model);
    return model;
  }

  void read_merges(const Json& part, const std::unordered_map<std::string_view, Id>& ids, Model& model) const {
    const Json& merges = list(part, "merges", "model");
    model.merges.reserve(merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const Json& merge = merges[i];
      std::string_view left, right;
      if (merge.is_string()) {
        const std::string_view both = merge.get_ref<const std::string&>();
        if (both.starts_with("#version")) continue;
        const std::size_t space = both.find(' ');
        left = both.substr(0, space);
        right = space == std::string_view::npos ? std::string_view() : both.substr(space + 1);
        if (right.find(' ') != std::string_view::npos) right = {};
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        left = merge[0].get_ref<const std::string&>();
        right = merge[1].get_ref<const std::string&>();
      }
      const auto token = [&](std::string_view text) {
        const auto found = ids.find(text);
        if (found == ids.end()) {
          fail(fmt::format("model.merges[{}]", i),
               text.empty() ? "is no pair of tokens"
                            : fmt::format("has {}, which is no token of model.vocab", shown_name(text)),
               "the file is damaged: write it again");
        }
        return found->second;
      };
      const std::pair<Id, Id> pair{token(left), token(right)};
      token(std::string(left) + std::string(right));
      model.merges.push_back(pair);
    }
  }

  // ---- added tokens ----

  std::vector<AddedToken> read_added(const Model& model) const {
    std::vector<AddedToken> added;
    const Json* const part = given(file_, "added_tokens");
    if (part == nullptr) return added;
    if (!part->is_array()) fail("added_tokens", "is no list");
    std::unordered_map<std::string_view, Id> ids;  // of model.vocab
    for (Id id = 0; id < model.tokens.size(); ++id) {
      if (!model.tokens[id].empty()) ids.emplace(model.tokens[id], id);
    }
    std::set<std::string> contents;
    std::optional<Id> last;
    for (std::size_t i = 0; i < part->size(); ++i) {
      const std::string at = fmt::format("added_tokens[{}]", i);
      AddedToken token = read_added_token((*part)[i], at);
      if (!contents.insert(token.content).second) fail(at, "has the content of another one");
      // The package gives ids itself: that of the vocabulary, or the next one behind all.
      const auto known = ids.find(token.content);
      const auto size = static_cast<Id>(ids.size());
      const Id next = last && *last >= size ? *last + 1 : size;
      const Id expected = known != ids.end() ? known->second : next;
      if (token.id != expected) {
        fail(inside(at, "id"),
             fmt::format("is {}, and the package tokenizers gives {} the id {}", token.id, shown_name(token.content),
                         expected),
             "that of its vocabulary, or the next one behind all: let the package write the file again");
      }
      last = std::max(last.value_or(0), token.id);
      added.push_back(std::move(token));
    }
    return added;
  }

  AddedToken read_added_token(const Json& one, const std::string& at) const {
    constexpr std::size_t longest = 1024;
    if (!one.is_object()) fail(at, "is no object");
    only(one, at, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token;
    token.content = text(one, "content", at);
    token.id = id(one.contains("id") ? one["id"] : Json(), inside(at, "id"));
    token.single_word = flag(one, "single_word", at, false);
    token.lstrip = flag(one, "lstrip", at, false);
    token.rstrip = flag(one, "rstrip", at, false);
    token.special = flag(one, "special", at, false);
    token.normalized = flag(one, "normalized", at, !token.special);
    if (token.content.empty()) fail(at, "has an empty content");
    if (token.content.size() > longest) fail(at, fmt::format("has a content of more than {} bytes", longest));
    return token;
  }

  // ---- steps ----

  // Calls `take` for a part, or for those of a sequence.
  template <class Take>
  void each(const Json& part, const std::string& at, const char* key, const Take& take, int depth = 0) const {
    const std::string kind = kind_of(part, at);
    if (kind != "Sequence") {
      take(part, at, kind);
      return;
    }
    constexpr int deepest = 8;
    if (depth == deepest) fail(at, "is nested too deeply");
    only(part, at, {"type", key});
    const Json& parts = list(part, key, at);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      each(parts[i], fmt::format("{}.{}[{}]", at, key, i), key, take, depth + 1);
    }
  }

  Replace read_replace(const Json& part, const std::string& at) const {
    only(part, at, {"type", "pattern", "content"});
    const Json* const pattern = given(part, "pattern");
    if (pattern == nullptr || !pattern->is_object() || !pattern->contains("String")) {
      fail(inside(at, "pattern"), "is no {\"String\": TEXT}; regular expressions are not supported here",
           other_tokenizers);
    }
    Replace replace{text(*pattern, "String", inside(at, "pattern")), text(part, "content", at)};
    if (replace.pattern.empty()) fail(inside(at, "pattern"), "is empty");
    return replace;
  }

  void add_normalizers(const Json& whole, const std::string& begin, std::vector<Normalizer>& to) const {
    each(whole, begin, "normalizers", [&](const Json& part, const std::string& at, const std::string& kind) {
      if (kind == "NFC") {
        to.emplace_back(Nfc());
      } else if (kind == "Lowercase") {
        to.emplace_back(Lowercase());
      } else if (kind == "Prepend") {
        to.emplace_back(Prepend{text(part, "prepend", at)});
      } else if (kind == "Replace") {
        to.emplace_back(read_replace(part, at));
      } else {
        fail_kind(at, kind, "NFC, Lowercase, Prepend, Replace and Sequence are");
      }
    });
  }

  // A few normalizers could make a text of a byte one of terabytes.
  void check_growth(const std::vector<Normalizer>& steps) const {
    constexpr std::size_t most = 64;
    std::size_t growth = 1;
    for (const Normalizer& step : steps) {
      std::size_t own = 1;
      if (const auto* replace = std::get_if<Replace>(&step)) {
        own = (replace->content.size() + replace->pattern.size() - 1) / replace->pattern.size();
      }
      growth *= std::max<std::size_t>(own, 1);
      if (growth > most) fail("normalizer", fmt::format("makes texts more than {} times as long", most));
    }
  }

  Metaspace read_metaspace(const Json& part, const std::string& at) const {
    only(part, at, {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    Metaspace meta;
    meta.replacement = text(part, "replacement", at, meta.replacement.c_str());
    if (meta.replacement.empty() || utf8_at(meta.replacement, 0).bytes != meta.replacement.size()) {
      fail(inside(at, "replacement"), "is not one character");
    }
    const bool adds = flag(part, "add_prefix_space", at, true);  // of older files
    const std::string scheme = text(part, "prepend_scheme", at, adds ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      fail_kind(inside(at, "prepend_scheme"), scheme, "always, first and never are");
    }
    meta.prepend = scheme == "always"  ? Metaspace::Scheme::always
                   : scheme == "first" ? Metaspace::Scheme::first
                                       : Metaspace::Scheme::never;
    meta.split = flag(part, "split", at, true);
    return meta;
  }

  Split read_split(const Json& part, const std::string& at) const {
    only(part, at, {"type", "pattern", "behavior", "invert"});
    const Json* const pattern = given(part, "pattern");
    const bool is_expression = pattern != nullptr && pattern->is_object() && pattern->contains("Regex");
    if (text(part, "behavior", at) != "Isolated" || flag(part, "invert", at, false) || !is_expression) {
      fail(at, "is a Split that is not supported: `behavior` Isolated with a `pattern` of {\"Regex\": TEXT} is",
           other_tokenizers);
    }
    const std::string expression = text(*pattern, "Regex", inside(at, "pattern"));
    for (const Expression known : {Expression::gpt2, Expression::llama3}) {
      if (expression == text_of(known)) return {known};
    }
    fail(inside(at, "pattern.Regex"),
         fmt::format("is {}, which is not supported: the expressions of GPT-2 and Llama 3 are",
                     shown_name(expression, 60)),
         other_tokenizers);
  }

  void add_pre_tokenizers(const Json& whole, const std::string& begin, std::vector<PreTokenizer>& to) const {
    each(whole, begin, "pretokenizers", [&](const Json& part, const std::string& at, const std::string& kind) {
      if (kind == "ByteLevel") {
        only(part, at, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
        to.emplace_back(ByteLevel{flag(part, "add_prefix_space", at, true), flag(part, "use_regex", at, true)});
      } else if (kind == "Split") {
        to.emplace_back(read_split(part, at));
      } else if (kind == "Whitespace") {
        to.emplace_back(Split{Expression::words});
      } else if (kind == "Metaspace") {
        to.emplace_back(read_metaspace(part, at));
      } else {
        fail_kind(at, kind, "ByteLevel, Split, Metaspace, Whitespace and Sequence are");
      }
    });
  }

  void check_order(const Definition& definition) const {
    const std::vector<PreTokenizer>& steps = definition.pre_tokenizers;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      if (std::holds_alternative<ByteLevel>(steps[i])) {
        fail("pre_tokenizer", "has a step after ByteLevel, which is not supported", other_tokenizers);
      }
    }
    if (definition.is_byte_level() && !definition.model.is_bpe) {
      fail("pre_tokenizer", "is ByteLevel beside a model of type WordLevel, which is not supported", other_tokenizers);
    }
  }

  void add_decoders(const Json& whole, const std::string& begin, std::vector<Decoder>& to) const {
    each(whole, begin, "decoders", [&](const Json& part, const std::string& at, const std::string& kind) {
      if (kind == "ByteLevel") {
        to.emplace_back(ByteLevel());
      } else if (kind == "Metaspace") {
        to.emplace_back(read_metaspace(part, at));
      } else if (kind == "Replace") {
        to.emplace_back(read_replace(part, at));
      } else if (kind == "ByteFallback") {
        to.emplace_back(ByteFallback());
      } else if (kind == "Fuse") {
        to.emplace_back(Fuse());
      } else if (kind == "Strip") {
        Strip strip{text(part, "content", at), count(part, "start", at), count(part, "stop", at)};
        if (strip.content.empty()) fail(inside(at, "content"), "is empty");
        to.emplace_back(std::move(strip));
      } else {
        fail_kind(at, kind, "ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip and Sequence are");
      }
    });
  }

  // ---- special tokens around a text ----

  void read_template(const Json& whole, const std::string& begin, Definition& definition) const {
    each(whole, begin, "processors", [&](const Json& part, const std::string& at, const std::string& kind) {
      if (kind == "ByteLevel") return;  // changes offsets alone
      if (kind != "TemplateProcessing") fail_kind(at, kind, "TemplateProcessing, ByteLevel and Sequence are");
      only(part, at, {"type", "single", "pair", "special_tokens"});
      bool is_after = false;
      const Json& pieces = list(part, "single", at);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::string here = fmt::format("{}.single[{}]", at, i);
        if (pieces[i].is_object() && pieces[i].contains("Sequence")) {
          if (is_after) fail(here, "is a second Sequence, and a text is one");
          is_after = true;
          continue;
        }
        const Json* const special = pieces[i].is_object() ? given(pieces[i], "SpecialToken") : nullptr;
        if (special == nullptr || !special->is_object()) fail(here, "is neither a Sequence nor a SpecialToken");
        const std::string name = text(*special, "id", here);
        const Json* const known = given(part, "special_tokens");
        const Json* const own = known != nullptr && known->is_object() ? given(*known, name.c_str()) : nullptr;
        if (own == nullptr || !own->is_object())
          fail(here, fmt::format("is {}, which special_tokens lacks", shown_name(name)));
        for (const Json& one : list(*own, "ids", at + ".special_tokens")) {
          (is_after ? definition.after : definition.before).push_back(id(one, here));
        }
      }
      if (!is_after) fail(inside(at, "single"), "has no Sequence, which stands for the text");
    });
  }

  // Special tokens around a text are tokens.
  void check_ids(const Definition& definition) const {
    const std::vector<std::string>& tokens = definition.model.tokens;
    const auto is_token = [&](Id one) {
      const auto has_id = [&](const AddedToken& added) { return added.id == one; };
      return (one < tokens.size() && !tokens[one].empty()) ||
             std::any_of(definition.added.begin(), definition.added.end(), has_id);
    };
    for (const std::vector<Id>& ids : {definition.before, definition.after}) {
      for (const Id one : ids) {
        if (!is_token(one)) fail("post_processor", fmt::format("has the id {}, which no token has", one));
      }
    }
  }

  static constexpr std::uint64_t most_ids = std::uint64_t{1} << 21;
  const Json& file_;
  const std::string& name_;
};

}  // namespace

Definition read_definition(std::string_view text, const std::string& name) {
  Json file;
  constexpr int deepest = 32;
  if (is_nested_deeper(text, deepest))
    fail_data(fmt::format("'{}' is no tokenizer.json: it is nested too deeply", name));
  try {
    file = parse_unordered_json(text);
  } catch (const Json::exception&) {
    fail_data(fmt::format("'{}' is no JSON", name),
              "a tokenizer is a file tokenizer.json; vocab.json and merges.txt, or tokenizer.model, are read by the "
              "package tokenizers or transformers, whose save() or save_pretrained() writes it");
  }
  return Reader(file, name).read();
}

}  // namespace pmaptrain::tokenizers
