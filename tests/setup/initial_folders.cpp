// model.init.from with the folders of transformers: shards, names of a kind of model, arrays of several parameters.
#include <filesystem>
#include <functional>
#include <string>

#include "core/run/files/safetensors.h"
#include "core/setup/initialize.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/pretrained_model.h"
#include "tests/train/tensors.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A folder with a model of a fixture, and the config that init writes for it.
struct Folder {
  explicit Folder(const std::string& fixture) {
    write_pretrained(folder / "model", pretrained_fixture(fixture));
    REQUIRE(tests::call({"init", "hf", folder / "model", folder / "own.yaml"}).status == 0);
  }
  // What InitialValues says of the file, or throws.
  std::string note(const std::vector<std::string>& set = {}) const {
    spec::Overrides overrides;
    overrides.set = set;
    const setup::Setup setup = setup::make_setup(spec::load(folder / "own.yaml", overrides));
    return without_path(setup::check_initial_file(setup.model, setup.spec().model, std::nullopt));
  }
  std::string refusal(ExitStatus status = ExitStatus::data, const std::vector<std::string>& set = {}) const {
    return without_path(test::refusal([&] { note(set); }, status));
  }
  std::string without_path(std::string text) const {
    const std::string path = folder / "model";
    for (std::size_t at = 0; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "DIR");
    return text;
  }
  std::string path(const std::string& name) const { return folder / ("model/" + name); }

  test::TemporaryFolder folder;
};

}  // namespace

TEST_CASE("a folder of transformers is read with its shards, and with tensors that hold nothing", "[setup]") {
  CHECK(Folder("gpt2").note() == "model.init.from took 36 of the 36 parameters from DIR/model.safetensors");
  CHECK(Folder("llama").note() == "model.init.from took 29 of the 29 parameters from DIR");
  // Masks are no tensors that a line would list; what a model does not have is.
  const Folder folder("gpt2_other");
  CHECK(folder.note({"model.init.from.exclude=[\"layer_norm_0.*\"]"}) ==
        "model.init.from took 34 of the 36 parameters from DIR/model.safetensors; drawn: layer_norm_0.scale, "
        "layer_norm_0.bias; left in the file: ln_f.bias, ln_f.weight");
}

TEST_CASE("an index of shards that is wrong is refused", "[setup]") {
  const Folder folder("llama");
  const std::string index = folder.path("model.safetensors.index.json");
  const auto refused = [&](const std::string& text) {
    test::write_text(index, text);
    return folder.refusal();
  };
  CHECK(test::contains(refused("[]"), "'DIR/model.safetensors.index.json' is no index of safetensors files"));
  CHECK(test::contains(refused("{"), "is no index of safetensors files"));
  CHECK(test::contains(refused(std::string(100000, '[')), "is no index of safetensors files"));
  CHECK(test::contains(refused("{\"weight_map\": {}}"), "lists no file"));
  CHECK(test::contains(refused("{\"weight_map\": {\"a\": \"../other.safetensors\"}}"),
                       "names no file of its folder for 'a'"));
  CHECK(test::contains(refused("{\"weight_map\": {\"a\": 3}}"), "names no file of its folder for 'a'"));
  CHECK(test::contains(refused("{\"weight_map\": {\"a\": \"none.safetensors\"}}"), "DIR/none.safetensors"));
  CHECK(test::contains(refused("{\"weight_map\": {\"a\": \"..\"}}"), "names no file of its folder for 'a'"));
  fs::copy(folder.path("model-00001-of-00003.safetensors"), folder.path("again.safetensors"));
  CHECK(test::contains(
      refused("{\"weight_map\": {\"a\": \"again.safetensors\", \"b\": \"model-00001-of-00003.safetensors\"}}"),
      "both have 'lm_head.weight'"));
  // A shard that the index leaves out.
  CHECK(test::contains(refused("{\"weight_map\": {\"b\": \"model-00001-of-00003.safetensors\"}}"), "lacks "));
}

TEST_CASE("an array of several parameters that has another shape is told once", "[setup]") {
  const Folder folder("gpt2_other");
  const std::string said = folder.refusal(ExitStatus::data, {"model.layers.3.repeat.layers.0.residual.layers.1."
                                                             "attention.head_dim=4"});
  CHECK(test::contains(said,
                       "has 'h.0.attn.c_attn.weight', the parameters repeat_0.0.residual_0.attention_0.query.kernel, "
                       "repeat_0.0.residual_0.attention_0.key.kernel, repeat_0.0.residual_0.attention_0.value.kernel, "
                       "as f16[16,48]; together they are f32[16,24]"));
}

TEST_CASE("a folder without safetensors says what converts its file", "[setup]") {
  const Folder folder("gpt2_other");
  fs::rename(folder.path("model.safetensors"), folder.path("pytorch_model.bin"));
  CHECK(test::contains(folder.refusal(ExitStatus::usage),
                       "'DIR' is a folder, and no run folder | in Python: "
                       "transformers.AutoModel.from_pretrained(\"DIR\").save_pretrained(\"DIR\") writes "
                       "DIR/pytorch_model.bin as safetensors"));
}

TEST_CASE("elements that a run cannot begin with are told in files of every type and layout", "[setup]") {
  const Folder folder("gpt2_other");  // of f16
  const std::string path = folder.path("model.safetensors");
  std::string bytes = test::read_text(path);
  // The last element of the last array, wte: [320, 16]: infinity in f16.
  bytes[bytes.size() - 1] = '\x7c';
  bytes[bytes.size() - 2] = '\0';
  test::write_text(path, bytes);
  CHECK(test::contains(folder.refusal(), "has .inf in 'tokens.embedding' at [319,15], where a run cannot begin"));
}

TEST_CASE("a file of this program in the layout of another is told to leave out the layout", "[setup]") {
  const Folder folder("gpt2_other");
  spec::Overrides overrides;
  const setup::Setup setup = setup::make_setup(spec::load(folder.folder / "own.yaml", overrides));
  run::Tensors tensors;
  for (const model::Parameter& parameter : setup.model.parameters) {
    tensors[parameter.name] = {DType::f32, parameter.shape,
                               std::vector<std::byte>(static_cast<std::size_t>(numel(parameter.shape)) * 4)};
  }
  write_tensors(folder.path("model.safetensors"), tensors);
  const std::string said = folder.refusal();
  CHECK(test::contains(said,
                       "has 'repeat_0.0.residual_0.attention_0.query.bias' under the name that it has here, and "
                       "in the layout hf_gpt2 it is a range of 'transformer.h.0.attn.c_attn.bias'"));
  CHECK(test::contains(said, "leave out layout: it is for files of others"));
}

TEST_CASE("the copy of a tied table is left out, and another head is listed", "[setup]") {
  const Folder folder("llama_scaled");
  const std::string path = folder.path("model.safetensors");
  run::Tensors tensors = run::read_safetensors(path);
  tensors["lm_head.weight"] = tensors.at("model.embed_tokens.weight");
  write_tensors(path, tensors);
  CHECK_FALSE(test::contains(folder.note(), "lm_head"));
  tensors["lm_head.weight"].bytes[3] ^= std::byte{1};
  write_tensors(path, tensors);
  CHECK(test::contains(folder.note(), "; left in the file: lm_head.weight"));
}
