// tokenizer.json: what is read, written and refused.
#include "core/tokenizers/file.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/tokenizers/tokenizer.h"
#include "tests/catch.h"
#include "tests/tokenizers/fixtures.h"
#include "tests/words.h"

using namespace pmaptrain;
using nlohmann::json;
using tokenizers::read_definition;

namespace {

// What is said of a tokenizer in which the value at a place is another one.
std::string said_of(const std::string& name, const std::string& pointer, const json& value) {
  json file = json::parse(tests::tokenizer_text(name));
  file[json::json_pointer(pointer)] = value;
  return test::refusal([&] { read_definition(file.dump(), "t.json"); }, ExitStatus::data);
}

}  // namespace

TEST_CASE("a tokenizer that is written is the same tokenizer when it is read", "[tokenizers]") {
  for (const auto& [name, fixture] : tests::tokenizer_fixtures()["tokenizers"].items()) {
    const std::string text = tokenizers::definition_text(tests::tokenizer_named(name));
    INFO(name);
    CHECK(tokenizers::definition_text(read_definition(text, "t.json")) == text);
    const tokenizers::Tokenizer tokenizer(read_definition(text, "t.json"));
    tokenizers::Encoder encoder(tokenizer);
    for (const auto& one : fixture["cases"]) {
      CHECK(encoder.encode(one["text"].get<std::string>(), true) == one["ids"].get<std::vector<tokenizers::Id>>());
    }
  }
}

TEST_CASE("files of older versions are read: merges as texts, metaspaces by add_prefix_space", "[tokenizers]") {
  json file = json::parse(tests::tokenizer_text("llama2_pieces"));
  for (json& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  file["model"]["merges"].insert(file["model"]["merges"].begin(), "#version: 0.2");
  file["model"].erase("type");
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", true}};
  CHECK(tokenizers::definition_text(read_definition(file.dump(), "t.json")) ==
        tokenizers::definition_text(tests::tokenizer_named("llama2_pieces")));
}

TEST_CASE("parts of a tokenizer that are not supported are named by their place", "[tokenizers]") {
  const auto is = [](const std::string& pointer, const json& value, const std::string& words) {
    const std::string said = said_of("llama3", pointer, value);
    INFO(said);
    CHECK(said.find(words) != std::string::npos);
  };
  is("/model/type", "Unigram", "'t.json': model.type is Unigram, which is not supported: BPE and WordLevel are");
  is("/model/type", "WordPiece", "model.type is WordPiece, which is not supported");
  is("/model/dropout", 0.1, "model.dropout is not supported: texts would have other ids each time");
  is("/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix is not supported");
  is("/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix is not supported");
  is("/model/max_input_chars_per_word", 100, "model.max_input_chars_per_word is not supported");
  is("/truncation", {{"max_length", 5}}, "truncation is not supported: it would change the ids of each text");
  is("/padding", {{"pad_id", 5}}, "padding is not supported: it would change the ids of each text");
  is("/normalizer", {{"type", "NFKC"}}, "normalizer is NFKC, which is not supported: NFC, Lowercase, Prepend, Replace");
  is("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", "b"}},
     "normalizer.pattern is no {\"String\": TEXT}; regular expressions are not supported here");
  is("/pre_tokenizer/pretokenizers/1", {{"type", "Digits"}}, "pre_tokenizer.pretokenizers[1] is Digits");
  is("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+",
     "pre_tokenizer.pretokenizers[0].pattern.Regex is \\w+, which is not supported: the expressions of GPT-2 and "
     "Llama");
  is("/pre_tokenizer/pretokenizers/0/behavior", "Removed", "is a Split that is not supported");
  is("/pre_tokenizer/pretokenizers/0", {{"type", "ByteLevel"}}, "has a step after ByteLevel");
  is("/decoder", {{"type", "WordPiece"}}, "decoder is WordPiece");
  is("/post_processor", {{"type", "BertProcessing"}}, "post_processor is BertProcessing, which is not supported");
  is("/added_tokens/0/special", 1, "added_tokens[0].special is neither true nor false");
  is("/added_tokens/0/id", 3000000, "added_tokens[0].id is 3000000, and ids are numbers from 0 to 2,097,151");
  is("/added_tokens/0/id", -1, "added_tokens[0].id is -1, and ids are numbers");
  is("/added_tokens/0/id", 5, "added_tokens[0].id is 5, and the package tokenizers gives <|endoftext|> the id 0");
  is("/added_tokens/1/id", 500, "added_tokens[1].id is 500, and the package tokenizers gives <special> the id 330");
  is("/normalizer", {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(65, 'a')}},
     "normalizer makes texts more than 64 times as long");
  is("/model/merges/0", {"a", "nowhere"}, "model.merges[0] has nowhere, which is no token of model.vocab");
  is("/model/merges/0", "a", "model.merges[0] is no pair of tokens");
  is("/model/vocab", json::array(), "model.vocab is no object of tokens with their ids");
  is("/model/vocab/a", 3, "which");
  is("/wishes", 1, "'t.json': wishes is not supported");
}

TEST_CASE("what is no tokenizer.json is told what one is", "[tokenizers]") {
  const auto said = [](const std::string& text) {
    return test::refusal([&] { read_definition(text, "t.json"); }, ExitStatus::data);
  };
  CHECK(said("#version: 0.2\nĠ t\n").find("'t.json' is no JSON") != std::string::npos);
  CHECK(said("{\"hello\": 0}").find("is no tokenizer.json: it has no `model`") != std::string::npos);
  CHECK(said(std::string(100000, '[')).find("'t.json' is no tokenizer.json: it is nested too deeply") !=
        std::string::npos);
  CHECK(said("[1, 2]").find("it has no `model`") != std::string::npos);
}
