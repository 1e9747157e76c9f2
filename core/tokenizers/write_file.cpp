#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "core/base/json.h"
#include "core/tokenizers/file.h"
#include "core/tokenizers/split.h"

namespace pmaptrain::tokenizers {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered json_of(const Nfc&) { return {{"type", "NFC"}}; }
Ordered json_of(const Lowercase&) { return {{"type", "Lowercase"}}; }
Ordered json_of(const Prepend& step) { return {{"type", "Prepend"}, {"prepend", step.text}}; }
Ordered json_of(const Replace& step) {
  return {{"type", "Replace"}, {"pattern", {{"String", step.pattern}}}, {"content", step.content}};
}
Ordered json_of(const Split& step) {
  if (step.expression == Expression::words) return {{"type", "Whitespace"}};
  return {{"type", "Split"},
          {"pattern", {{"Regex", text_of(step.expression)}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}
Ordered json_of(const ByteLevel& step) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", step.add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", step.use_regex}};
}
Ordered json_of(const Metaspace& step) {
  const char* const scheme = step.prepend == Metaspace::Scheme::always  ? "always"
                             : step.prepend == Metaspace::Scheme::first ? "first"
                                                                        : "never";
  return {{"type", "Metaspace"}, {"replacement", step.replacement}, {"prepend_scheme", scheme}, {"split", step.split}};
}
Ordered json_of(const ByteFallback&) { return {{"type", "ByteFallback"}}; }
Ordered json_of(const Fuse&) { return {{"type", "Fuse"}}; }
Ordered json_of(const Strip& step) {
  return {{"type", "Strip"}, {"content", step.content}, {"start", step.start}, {"stop", step.stop}};
}

// null, a step, or a Sequence of them under `key`.
template <class Step>
Ordered json_of(const std::vector<Step>& steps, const char* key) {
  const auto one = [](const Step& step) { return std::visit([](const auto& kind) { return json_of(kind); }, step); };
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return one(steps.front());
  Ordered list = Ordered::array();
  for (const Step& step : steps) list.push_back(one(step));
  return {{"type", "Sequence"}, {key, std::move(list)}};
}

Ordered json_of(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

const std::string& token_of(const Definition& definition, Id id) {
  for (const AddedToken& added : definition.added) {
    if (added.id == id) return added.content;
  }
  return definition.model.tokens[id];
}

Ordered template_of(const Definition& definition) {
  if (definition.before.empty() && definition.after.empty()) return nullptr;
  Ordered single = Ordered::array(), pair = Ordered::array(), tokens = Ordered::object();
  const auto add = [&](Id id) {
    const std::string& name = token_of(definition, id);
    single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    tokens[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  for (const Id id : definition.before) add(id);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  for (const Id id : definition.after) add(id);
  pair.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

// The vocabulary is written by hand: an ordered object looks for each key among those before it.
std::string vocabulary_text(const Model& model) {
  std::string text = "{";
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty()) continue;
    text += text.size() == 1 ? "\n      " : ",\n      ";
    text += json_string(model.tokens[id]) + ": " + std::to_string(id);
  }
  return text + "\n    }";
}

std::string model_text(const Model& model) {
  const std::string unknown = model.unknown ? json_string(*model.unknown) : "null";
  if (!model.is_bpe) {
    return "{\n    \"type\": \"WordLevel\",\n    \"vocab\": " + vocabulary_text(model) +
           ",\n    \"unk_token\": " + unknown + "\n  }";
  }
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  std::string text =
      "{\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": " + unknown +
      ",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": " +
      flag(model.fuse_unk) + ",\n    \"byte_fallback\": " + flag(model.byte_fallback) +
      ",\n    \"ignore_merges\": " + flag(model.ignore_merges) + ",\n    \"vocab\": " + vocabulary_text(model) +
      ",\n    \"merges\": [";
  bool is_first = true;
  for (const auto& [left, right] : model.merges) {
    text += is_first ? "\n      [" : ",\n      [";
    text += json_string(model.tokens[left]) + ", " + json_string(model.tokens[right]) + "]";
    is_first = false;
  }
  return text + "\n    ]\n  }";
}

}  // namespace

std::string definition_text(const Definition& definition) {
  Ordered added = Ordered::array();
  for (const AddedToken& token : definition.added) added.push_back(json_of(token));
  std::string text = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null";
  const auto add = [&](const char* key, const Ordered& value) {
    text += ",\n  \"" + std::string(key) + "\": " + json_text(value);
  };
  add("added_tokens", added);
  add("normalizer", json_of(definition.normalizers, "normalizers"));
  add("pre_tokenizer", json_of(definition.pre_tokenizers, "pretokenizers"));
  add("post_processor", template_of(definition));
  add("decoder", json_of(definition.decoders, "decoders"));
  return text + ",\n  \"model\": " + model_text(definition.model) + "\n}\n";
}

}  // namespace pmaptrain::tokenizers
