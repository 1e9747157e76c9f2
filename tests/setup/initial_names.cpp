// Initial values from files of other programs: names, layouts and element types.
#include <cstring>

#include "core/layers/conv.h"
#include "core/layers/recurrent.h"
#include "core/layers/reshape.h"
#include "core/model/layout.h"
#include "core/setup/initial/names.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/model/fixture.h"
#include "tests/train/tensors.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// A convolution and a dense layer on images of 2 x 3 x 2; the file has what `from` says.
class ForeignFile {
 public:
  ForeignFile()
      : ForeignFile({layer("conv_0", layers::Conv{4, {1, 2}}), layer("flatten_0", layers::Flatten{}),
                     layer("head", layers::Dense{3})},
                    {2, 3, 2}) {}
  ForeignFile(std::vector<layers::Layer> layers, Shape input) : input_(std::move(input)) {
    net_ = network(std::move(layers));
    spec_.initial_from = spec::InitialFrom{path};
    spec_.init_place = {"net.yaml", 8, 3, 4, "init: x"};
    from().layout = model::ParameterLayout::torch;
  }
  spec::InitialFrom& from() { return *spec_.initial_from; }
  model::Model model() const { return model::make_model(net_, {DType::f32, input_}, labels); }

  // A file in the layout of `from`, with elements that differ all over the model, under these names.
  run::Tensors whole(const std::map<std::string, std::string>& names = {}, DType dtype = DType::f32) const {
    run::Tensors tensors;
    double next = 1;
    const model::Model of = model();
    for (const model::Parameter& parameter : of.parameters) {
      const model::StoredParameter order = model::stored(parameter, spec_.initial_from->layout);
      Numbers values(static_cast<std::size_t>(numel(parameter.shape)));
      for (double& value : values) value = next++;
      const auto name = names.find(order.name);
      tensors[name == names.end() ? order.name : name->second] = {
          dtype, order.shape, model::to_stored(order, to_bytes(values, dtype), size_of(dtype))};
    }
    return tensors;
  }
  // All values, in the order of the model's parameters: 1, 2, 3, ... of a whole file.
  Numbers load(const run::Tensors& tensors) {
    write_tensors(path, tensors);
    const model::Model of = model();
    const setup::InitialValues initial(of, spec_, 0);
    note = initial.note();
    Numbers all;
    for (const model::Parameter& parameter : of.parameters) {
      const Numbers values = to_numbers(initial.of(parameter), DType::f32);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  std::string refusal(const run::Tensors& tensors, ExitStatus status = ExitStatus::data) {
    std::string text = test::refusal([&] { load(tensors); }, status);
    for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos;) text.replace(at, path.size(), "FILE");
    return text;
  }

  const test::TemporaryFolder folder;
  const std::string path = folder / "theirs.safetensors";
  std::string note;

 private:
  Shape input_;
  Network net_;
  spec::ModelSpec spec_;
};

// 1, 2, 3, ...: of kernel (1,2,2,4), bias (4), kernel (24,3) and bias (3).
Numbers all_numbers() {
  Numbers values(16 + 4 + 72 + 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  return values;
}

}  // namespace

TEST_CASE("a file in PyTorch's layout is read under PyTorch's names, transposed and reordered", "[setup]") {
  ForeignFile file;
  CHECK(file.load(file.whole()) == all_numbers());
  CHECK(file.note == "model.init.from took 4 of the 4 parameters from " + file.path);
  // The same under the names that parameters have here.
  CHECK(file.load(file.whole({{"head.weight", "head.kernel"}})) == all_numbers());
}

TEST_CASE("PyTorch's arrays of all gates are divided, and its two biases added, but for n of gru", "[setup]") {
  const auto counted = [](Shape shape, double first) {
    Numbers values(static_cast<std::size_t>(numel(shape)));
    for (double& value : values) value = first++;
    return run::Tensor{DType::f32, shape, to_bytes(values, DType::f32)};
  };
  const auto rows_of = [](const Numbers& from, std::size_t first, std::size_t count) {
    return Numbers(from.begin() + static_cast<std::ptrdiff_t>(first),
                   from.begin() + static_cast<std::ptrdiff_t>(first + count));
  };
  // Of one direction of 2 features, of inputs of one: kernels (1, 2) and (2, 2).
  const auto tensors_of = [&](const std::string& layer, std::int64_t gates, const std::string& suffix = "") {
    return run::Tensors{{layer + ".weight_ih_l0" + suffix, counted({2 * gates, 1}, 1)},
                        {layer + ".weight_hh_l0" + suffix, counted({2 * gates, 2}, 100)},
                        {layer + ".bias_ih_l0" + suffix, counted({2 * gates}, 1000)},
                        {layer + ".bias_hh_l0" + suffix, counted({2 * gates}, 2000)}};
  };
  const auto of_head = [&](run::Tensors& tensors, std::int64_t inputs) {
    tensors["head.weight"] = counted({3, inputs}, 7);
    tensors["head.bias"] = counted({3}, 9);
  };
  using layers::Returned;
  ForeignFile lstm({layer("rnn", layers::Lstm{2, Returned::last}), layer("head", layers::Dense{3})}, {3, 1});
  run::Tensors tensors = tensors_of("rnn", 4);
  of_head(tensors, 2);
  const Numbers found = lstm.load(tensors);
  CHECK(rows_of(found, 0, 8) == Numbers{1, 2, 3, 4, 5, 6, 7, 8});                  // ii, if, ig, io
  CHECK(rows_of(found, 8, 8) == Numbers{100, 102, 101, 103, 104, 106, 105, 107});  // hi and hf, transposed
  CHECK(rows_of(found, 24, 8) == Numbers{3000, 3002, 3004, 3006, 3008, 3010, 3012, 3014});
  CHECK(lstm.note == "model.init.from took 14 of the 14 parameters from " + lstm.path);

  ForeignFile gru({layer("rnn", layers::Gru{2, Returned::last, false, true}), layer("head", layers::Dense{3})}, {3, 1});
  tensors = tensors_of("other", 3);
  for (auto& [name, tensor] : tensors_of("other", 3, "_reverse")) tensors[name] = tensor;
  of_head(tensors, 4);
  gru.from().rename = {spec::Rename{{"other.*"}, "rnn.*"}};
  const Numbers both = gru.load(tensors);
  CHECK(rows_of(both, 18, 8) == Numbers{3000, 3002, 3004, 3006, 1004, 1005, 2004, 2005});  // ir, iz, in, hn
  CHECK(rows_of(both, 26, 26) == rows_of(both, 0, 26));

  // A layer of other sizes, and one without biases.
  gru.from().rename = {};
  tensors = tensors_of("rnn", 4);
  of_head(tensors, 4);
  CHECK(test::contains(gru.refusal(tensors), "FILE has "));
  tensors = tensors_of("rnn", 4);
  of_head(tensors, 2);
  tensors.erase("rnn.bias_ih_l0");
  tensors.erase("rnn.bias_hh_l0");
  CHECK(test::contains(lstm.refusal(tensors),
                       "FILE lacks 'rnn.hf.bias' f32[2], 'rnn.hg.bias' f32[2], 'rnn.hi.bias' f32[2], 'rnn.ho.bias' "
                       "f32[2], parameters of this model"));
  lstm.from().layout = model::ParameterLayout::flax;
  CHECK(test::contains(lstm.refusal(tensors), "these are names of PyTorch: layout: torch reads them"));
}

TEST_CASE("tensors are renamed, one by one or by patterns, and those that nothing takes are listed", "[setup]") {
  ForeignFile file;
  using spec::Rename;
  run::Tensors tensors = file.whole({{"conv_0.weight", "module.features.0.weight"},
                                     {"conv_0.bias", "module.features.0.bias"},
                                     {"head.weight", "module.fc.weight"},
                                     {"head.bias", "module.fc.bias"}});
  tensors["module.bn.steps"] = {DType::i64, {}, std::vector<std::byte>(8)};
  // PyTorch's batch norms have this one, which nobody misses.
  tensors["module.bn.num_batches_tracked"] = {DType::i64, {}, std::vector<std::byte>(8)};
  file.from().rename = {Rename{{"module.features.0.weight"}, "conv_0.kernel"},
                        Rename{{"module.features.0.bias"}, "conv_0.bias"}, Rename{{"module.fc.*"}, "head.*"}};
  CHECK(file.load(tensors) == all_numbers());
  CHECK(file.note ==
        "model.init.from took 4 of the 4 parameters from " + file.path + "; left in the file: module.bn.steps");
  // Of several that match the first applies.
  file.from().rename.push_back({{"module.*"}, "other.*"});
  CHECK(file.load(tensors) == all_numbers());
  CHECK(test::contains(file.note, "; left in the file: module.bn.steps"));
  // Patterns of include and exclude are of the names here.
  file.from().exclude = {{"head.*"}};
  file.load(tensors);
  CHECK(file.note == "model.init.from took 2 of the 4 parameters from " + file.path +
                         "; drawn: head.kernel, head.bias; left in the file: module.bn.steps, "
                         "module.fc.bias, module.fc.weight");
}

TEST_CASE("transpose lists what a file has transposed, in place of what its layout has so", "[setup]") {
  ForeignFile file;
  file.from().layout = model::ParameterLayout::flax;
  run::Tensors tensors = file.whole();
  const model::Model model = file.model();
  const model::StoredParameter turned = model::stored(model.parameters[2], model::ParameterLayout::flax, true);
  run::Tensor& head = tensors.at("head.kernel");
  head = {DType::f32, turned.shape, model::to_stored(turned, head.bytes, sizeof(float))};
  CHECK(file.refusal(tensors) ==
        "FILE has 'head.kernel' as f32[3,24]; the parameter is f32[24,3] | layout: torch reads kernels as PyTorch "
        "stores them");
  file.from().transpose = {{{"head.*"}}};
  CHECK(file.load(tensors) == all_numbers());

  // A file of PyTorch with (in, out) in its dense layers.
  file.from().layout = model::ParameterLayout::torch;
  file.from().transpose.reset();
  tensors = file.whole();
  const model::StoredParameter straight = model::stored(model.parameters[2], model::ParameterLayout::torch, false);
  Numbers values(72);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 21);
  tensors.at("head.weight") = {DType::f32, straight.shape,
                               model::to_stored(straight, to_bytes(values, DType::f32), sizeof(float))};
  CHECK(file.refusal(tensors) ==
        "FILE has 'head.weight', the parameter 'head.kernel', as f32[24,3]; the parameter is f32[24,3], transposed "
        "[3,24] | layout: flax reads kernels as they are in Flax and in runs; or init.from.transpose lists the "
        "parameters "
        "that the file has transposed");
  file.from().transpose = {{{"conv_*"}}};
  CHECK(file.load(tensors) == all_numbers());
}

TEST_CASE("elements of f16 and bf16 are widened without a change of their values", "[setup]") {
  ForeignFile file;
  CHECK(file.load(file.whole({}, DType::bf16)) == all_numbers());

  // f16 is no element type of the program: the header of a file of as many bf16 is changed.
  const auto halves = [&](const std::vector<std::uint16_t>& bits) {
    run::Tensors tensors = file.whole();
    run::Tensor& bias = tensors.at("head.bias");
    bias.dtype = DType::bf16;
    bias.bytes.resize(bits.size() * sizeof(std::uint16_t));
    std::memcpy(bias.bytes.data(), bits.data(), bias.bytes.size());
    write_tensors(file.path, tensors);
    std::string text = test::read_text(file.path);
    text.replace(text.find("BF16"), 5, "F16\" ");
    test::write_text(file.path, text);
    const model::Model model = file.model();
    spec::ModelSpec from;
    from.initial_from = file.from();
    return to_numbers(setup::InitialValues(model, from, 0).of(model.parameters[3]), DType::f32);
  };
  CHECK(halves({0x3C00, 0xC100, 0x7BFF}) == Numbers{1, -2.5, 65504});
  CHECK(halves({0x0001, 0x83FF, 0x8000}) == Numbers{0x1p-24, -1023 * 0x1p-24, -0.0});
  CHECK(test::contains(test::refusal(
                           [&] {
                             halves({0x3C00, 0x7C00, 0});
                           },
                           ExitStatus::data),
                       " has .inf in 'head.bias' at [1], where a run cannot begin"));
}

TEST_CASE("names that match nothing, or that two tensors would have, are refused with what helps", "[setup]") {
  ForeignFile file;
  using spec::Rename;
  file.from().rename = {Rename{{"hed.weight"}, "head.kernel"}};
  CHECK(file.refusal(file.whole(), ExitStatus::usage) ==
        "rename: 'hed.weight' matches no tensor of FILE | did you mean 'head.weight'?");
  file.from().rename = {Rename{{"classifier.0.*"}, "head.*"}};
  CHECK(file.refusal(file.whole(), ExitStatus::usage) ==
        "rename: 'classifier.0.*' matches no tensor of FILE | its tensors are conv_0.bias, conv_0.weight, head.bias, "
        "head.weight");
  file.from().rename = {Rename{{"*"}, "*"}, Rename{{"head.weight"}, "head.kernel"}};
  CHECK(file.refusal(file.whole(), ExitStatus::usage) ==
        "rename: 'head.weight' matches no tensor of FILE that no other one before it matches | move it in front of "
        "that");
  file.from().rename = {Rename{{"head.weight"}, "haed.kernel"}};
  CHECK(file.refusal(file.whole(), ExitStatus::usage) ==
        "rename gives 'head.weight' the name 'haed.kernel', which is no parameter of this model | did you mean "
        "'head.kernel'?");
  file.from().rename = {Rename{{"head.weight"}, "conv_0.kernel"}};
  CHECK(file.refusal(file.whole()) ==
        "FILE has 'conv_0.weight' and 'head.weight', which would both be 'conv_0.kernel' | name one of them otherwise "
        "in init.from.rename");
  file.from().rename.clear();
  CHECK(file.refusal(file.whole({{"head.weight", "classifier.weight"}})) ==
        "FILE has a tensor 'classifier.weight' f32[3,24], which is no parameter of this model; it lacks 'head.kernel' "
        "f32[24,3], a parameter of this model | its parameters are conv_0.kernel, conv_0.bias, head.kernel, head.bias; "
        "or take what fits: init: {from: {path: ..., include: [\"conv_0.*\", \"head.bias\"]}}");
  file.from().transpose = {{{"dense_*"}}};
  CHECK(file.refusal(file.whole(), ExitStatus::usage) ==
        "the pattern 'dense_*' matches no parameter of the model or of FILE | the parameters are conv_0.kernel, "
        "conv_0.bias, head.kernel, head.bias");
  file.from().transpose.reset();
  file.from().path = file.folder.path();
  CHECK(test::contains(file.refusal(file.whole(), ExitStatus::usage),
                       "' is a folder, and no run folder | it has a file "
                       "to take: "));
  std::filesystem::create_directories(file.folder.path() / "checkpoints");
  CHECK(test::contains(file.refusal(file.whole(), ExitStatus::usage),
                       "' is a run, whose parameters do not have the layout torch | leave out model.init.from.layout, "
                       "which is for files"));
}

TEST_CASE("a file in the other layout is refused where its kernels are square, by its metadata or names", "[setup]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "theirs.safetensors";
  const model::Model model = model::make_model(network({layer("head", layers::Dense{2})}), {DType::f32, {2}}, labels);
  spec::ModelSpec spec;
  spec.init_place = {"net.yaml", 8, 3, 4, "init: x"};
  const std::vector<std::byte> kernel = to_bytes({1, 2, 3, 4}, DType::f32), bias = to_bytes({5, 6}, DType::f32);
  // The kernel that is taken from a file with a tensor of this name, or why none is.
  const auto taken = [&](spec::InitialFrom from, const std::string& name, const std::string& format) -> std::string {
    const std::vector<run::TensorView> tensors{{name, DType::f32, {2, 2}, kernel},
                                               {"head.bias", DType::f32, {2}, bias}};
    std::map<std::string, std::string> metadata;
    if (!format.empty()) metadata["format"] = format;
    std::filesystem::remove(path);
    run::FileWriter file(path);
    run::write_safetensors(
        file, tensors, [&](const run::TensorView& tensor) { file.write(tensor.bytes); }, metadata);
    file.close();
    from.path = path;
    if (name != "head.kernel" && from.layout == model::ParameterLayout::flax) {
      from.rename = {spec::Rename{{name}, "head.kernel"}};
    }
    spec.initial_from = from;
    try {
      const Numbers values = to_numbers(setup::InitialValues(model, spec, 0).of(model.parameters[0]), DType::f32);
      return values == Numbers{1, 2, 3, 4} ? "as it is" : values == Numbers{1, 3, 2, 4} ? "transposed" : "other";
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::data);
      const Diagnostic& told = error.diagnostics().front();
      return told.message.substr(path.size() + 1) + " | " + told.help;
    }
  };
  spec::InitialFrom torch{path}, flax{path};
  torch.layout = model::ParameterLayout::torch;
  flax.layout = model::ParameterLayout::flax;
  const std::string of_flax =
      "; layout: torch would transpose 'head.kernel' [2,2] | layout: flax reads it as it is; "
      "if kernels are transposed in it, init.from.transpose lists them";
  CHECK(taken(torch, "head.kernel", "") == "is in the layout of Flax, as the name 'head.kernel' tells" + of_flax);
  CHECK(taken(torch, "head.kernel", "flax") ==
        "is in the layout of Flax, as its metadata tell (format: flax)" + of_flax);
  CHECK(taken(torch, "head.weight", "flax") ==
        "is in the layout of Flax, as its metadata tell (format: flax)" + of_flax);
  const std::string of_torch =
      "; layout: flax would take 'head.kernel' [2,2] without transposing it | layout: torch transposes kernels; if "
      "none is transposed in the file, init: {from: {path: ..., transpose: []}} says so";
  CHECK(taken(flax, "fc.weight", "") == "is in the layout of PyTorch, as the name 'fc.weight' tells" + of_torch);
  CHECK(taken(flax, "head.kernel", "pt") ==
        "is in the layout of PyTorch, as its metadata tell (format: pt)" + of_torch);

  CHECK(taken(torch, "head.weight", "") == "transposed");
  CHECK(taken(torch, "head.weight", "pt") == "transposed");
  CHECK(taken(torch, "head.kernel", "pt") == "transposed");
  CHECK(taken(flax, "head.kernel", "") == "as it is");
  CHECK(taken(flax, "head.kernel", "flax") == "as it is");
  CHECK(taken(flax, "w", "np") == "as it is");  // nothing tells
  // transpose says it itself.
  torch.transpose = flax.transpose.emplace();
  CHECK(taken(torch, "head.kernel", "flax") == "as it is");
  CHECK(taken(flax, "head.kernel", "pt") == "as it is");
  flax.transpose = {{{"head.kernel"}}};
  CHECK(taken(flax, "fc.weight", "") == "transposed");
}
