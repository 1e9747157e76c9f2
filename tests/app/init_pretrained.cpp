// init hf and init torchvision: configs for models of others, and what is refused.
#include <filesystem>
#include <functional>
#include <string>

#include "tests/app/call.h"
#include "tests/app/init.h"
#include "tests/catch.h"
#include "tests/data/image_files.h"
#include "tests/pretrained_model.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace pmaptrain::tests;
using Json = nlohmann::ordered_json;

namespace {

// What init hf says of a model whose config.json is changed so, without the path of the file.
std::string refused(const std::string& fixture, const std::function<void(Json& config)>& change) {
  const TemporaryFolder folder;
  Json json = pretrained_fixture(fixture)["config"];
  change(json);
  test::write_text(folder / "config.json", json.dump());
  const Finished init = call({"init", "hf", folder.path().string(), folder / "own.yaml"});
  CHECK(init.status == 3);
  CHECK_FALSE(std::filesystem::exists(folder / "own.yaml"));
  std::string text = init.err;
  const std::string path = folder / "config.json";
  for (std::size_t at = 0; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "CONFIG");
  return text;
}

std::string with(const std::string& fixture, const std::string& key, const Json& value) {
  return refused(fixture, [&](Json& config) { config[key] = value; });
}

}  // namespace

TEST_CASE("init hf names what a model has and is not here, with what is", "[app]") {
  CHECK(with("gpt2", "activation_function", "quick_gelu") ==
        "error: 'CONFIG' has \"quick_gelu\" for 'activation_function', for which there is no layer here\n"
        "  help: there are gelu, gelu_new, relu, silu and tanh\n");
  CHECK(contains(with("gpt2", "add_cross_attention", true), "has true for 'add_cross_attention'"));
  CHECK(contains(with("gpt2", "scale_attn_by_inverse_layer_idx", true), "has true for 'scale_attn_by_inverse"));
  CHECK(contains(with("gpt2", "scale_attn_weights", false), "has false for 'scale_attn_weights'"));
  CHECK(contains(with("gpt2", "n_head", 5),
                 "has 5 for 'n_head', for which there is no layer here\n"
                 "  help: heads divide the 24 features"));
  CHECK(contains(with("llama", "hidden_act", "gelu"), "has \"gelu\" for 'hidden_act'"));
  CHECK(contains(with("llama", "mlp_bias", true), "help: swiglu has no biases"));
  CHECK(with("llama", "rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}) ==
        "error: 'CONFIG' has \"yarn\" for 'rope_parameters.rope_type', for which there is no layer here\n"
        "  help: rotary is scaled as llama3 has it, or not at all\n");
  // As version 4 of transformers writes it.
  CHECK(contains(refused("llama",
                         [](Json& config) {
                           config.erase("rope_parameters");
                           config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
                         }),
                 "has \"linear\" for 'rope_scaling.type'"));
  CHECK(contains(with("llama", "num_key_value_heads", 4), "help: they divide the 6 heads"));
  CHECK(contains(with("vit", "qkv_bias", false), "has false for 'qkv_bias'"));
  CHECK(with("gpt2", "model_type", "bert") ==
        "error: 'CONFIG' has \"bert\" for 'model_type', for which there is no layer here\n"
        "  help: layouts are there for gpt2, llama and vit; other files are read by layout: torch, and "
        "init.from.rename for their names\n");
}

TEST_CASE("init hf refuses a config.json that is broken, at its key", "[app]") {
  CHECK(with("gpt2", "n_layer", "two") ==
        "error: 'CONFIG' has \"two\" for 'n_layer'\n  help: expected a whole number of at least 1\n");
  CHECK(contains(with("gpt2", "n_layer", 0), "has 0 for 'n_layer'"));
  CHECK(contains(with("gpt2", "n_layer", 1e300), "expected a whole number"));
  CHECK(contains(with("gpt2", "resid_pdrop", "a"), "help: expected a number"));
  CHECK(contains(with("vit", "image_size", "large"), "'image_size'"));
  CHECK(contains(with("vit", "image_size", {16, 16, 16}), "help: expected one size, or height and width"));
  CHECK(contains(with("vit", "image_size", {1e300, 1e300}), "expected a whole number of at least 1, or a list"));
  CHECK(contains(with("llama", "rms_norm_eps", -1.0), "no config would have the model of '"));
  CHECK(contains(refused("gpt2", [](Json& config) { config.erase("n_embd"); }), "'CONFIG' has no 'n_embd'"));
  CHECK(contains(refused("gpt2", [](Json& config) { config = Json::array(); }), "'CONFIG' is no JSON object"));
  CHECK(contains(refused("gpt2", [](Json& config) { config.erase("model_type"); }), "'CONFIG' has no 'model_type'"));
  const TemporaryFolder folder;
  CHECK(contains(call({"init", "hf", folder.path().string()}).err, "config.json"));
  test::write_text(folder / "config.json", std::string(100000, '['));
  CHECK(contains(call({"init", "hf", folder.path().string()}).err, "is no JSON object"));
}

TEST_CASE("init hf puts the token that ends a text behind each document, the first of several", "[app]") {
  const auto end_token_of = [](const Json& ids) {
    const TemporaryFolder folder;
    Json json = pretrained_fixture("gpt2_other");
    json["config"]["eos_token_id"] = ids;
    write_pretrained(folder / "gpt2", json);
    call({"tokenize", "train", "README.md", "--size", "300", "--output", folder / "gpt2/tokenizer.json"});
    const Finished init = call({"init", "hf", folder / "gpt2", folder / "own.yaml", "--data", "README.md"});
    INFO(init.err);
    REQUIRE(init.status == 0);
    const std::string config = read_text(folder / "own.yaml");
    const std::size_t at = config.find("end_token: ");
    return at == std::string::npos ? "" : config.substr(at, config.find(' ', at + 11) - at);
  };
  CHECK(end_token_of(0) == "end_token: 0");
  CHECK(end_token_of({7, 9}) == "end_token: 7");
  CHECK(end_token_of(nullptr).empty());
}

TEST_CASE("init hf and init torchvision tell how they are used", "[app]") {
  const TemporaryFolder folder;
  write_pretrained(folder / "vit", pretrained_fixture("vit"));
  const std::string file = folder / "vit/model.safetensors";
  Finished said = call({"init", "hf"});
  CHECK(said.status == 2);
  CHECK(contains(said.err,
                 "pmaptrain init hf needs PATH, the model to write a config for\n"
                 "  help: pmaptrain init hf models/gpt2\n"));
  CHECK(contains(call({"init", "hf", file}).err, "is a file; pmaptrain init hf takes the folder of a model"));
  CHECK(contains(call({"init", "torchvision", folder / "vit"}).err,
                 "is a folder; pmaptrain init torchvision takes a file of safetensors"));
  said = call({"init", "torchvision", file, folder / "own.yaml"});
  CHECK(said.status == 3);
  CHECK(contains(said.err, "has no 'conv1.weight', so it is no ResNet of torchvision"));
  CHECK(call({"init", "hf", folder / "none"}).status == 3);
  CHECK(
      contains(call({"init", "cnn", "--data", "x"}).err, "only a model that is trained further takes data beside it"));
}

TEST_CASE("init hf with images has a new head for their classes, and takes all else", "[app]") {
  const TemporaryFolder folder;
  write_pretrained(folder / "vit", pretrained_fixture("vit"));
  for (int i = 0; i < 12; ++i) {
    const std::string pixels(20UL * 18 * 3, static_cast<char>(20 * i));
    const std::string kind = i % 2 == 0 ? "even" : "odd";
    write_in(folder, "photos/" + kind + "/" + std::to_string(i) + ".png", Png{18, 20, 3, pixels, 18, 20}.build());
  }
  const Finished init = call({"init", "hf", folder / "vit", folder / "own.yaml", "--data", folder / "photos"});
  INFO(init.err);
  REQUIRE(init.status == 0);
  const std::string config = read_text(folder / "own.yaml");
  CHECK(contains(config, "      exclude: [\"head.*\"]  "));
  CHECK(contains(config, "  # a new head: the file's has 7 classes\n"));
  CHECK(contains(config, "    - {name: head, dense: 2}\n"));
  CHECK(contains(config, "  normalize: {mean: [0.4, 0.5, 0.6], std: [0.25, 0.5, 0.3]}"));
  const Finished valid = call({"validate", folder / "own.yaml"});
  INFO(valid.err);
  CHECK(valid.status == 0);
}

TEST_CASE("init hf says that a model without its tokenizer reads bytes", "[app]") {
  const TemporaryFolder folder;
  write_pretrained(folder / "gpt2", pretrained_fixture("gpt2_other"));
  const Finished init = call({"init", "hf", folder / "gpt2", folder / "own.yaml"});
  CHECK(init.status == 0);
  CHECK(contains(init.err, "has no tokenizer.json, so each byte of a text is a token"));
  CHECK(call({"validate", folder / "own.yaml"}).status == 0);
  // One of another model.
  call({"tokenize", "train", "LICENSE", "--size", "600", "--output", folder / "gpt2/tokenizer.json"});
  const Finished other = call({"init", "hf", folder / "gpt2", folder / "other.yaml"});
  CHECK(other.status == 3);
  CHECK(contains(other.err, "tokenizer.json' has 600 tokens, and the model 320"));
}
