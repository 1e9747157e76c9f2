#include "core/setup/initialize.h"

#include <cmath>

#include "core/layers/batch_norm.h"
#include "core/run/files/safetensors.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/model/fixture.h"
#include "tests/session_run.h"
#include "tests/train/tensors.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

Numbers drawn(const std::string& name, std::uint64_t seed, std::int64_t fan_in = 100, std::int64_t count = 20000) {
  const model::Parameter parameter{name, {count}, layers::KernelInit()({fan_in, 1}), {}};
  return to_numbers(setup::draw(parameter, seed, DType::f64), DType::f64);
}

std::map<std::string, std::vector<std::byte>> initial_values(const model::Model& model, const spec::ModelSpec& spec,
                                                             std::uint64_t seed) {
  std::map<std::string, std::vector<std::byte>> values;
  const setup::InitialValues initial(model, spec, seed);
  for (const model::Parameter& parameter : model.parameters) values[parameter.name] = initial.of(parameter);
  return values;
}

}  // namespace

TEST_CASE("LeCun normal values have variance 1 / fan_in and stop at two deviations of the uncut normal", "[setup]") {
  const Numbers values = drawn("dense_0.kernel", 0);
  double sum = 0, squares = 0, largest = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
    largest = std::max(largest, std::abs(value));
  }
  const double count = static_cast<double>(values.size());
  CHECK(std::abs(sum / count) < 0.003);
  CHECK(std::sqrt(squares / count) == Approx(0.1).epsilon(0.02));
  CHECK(largest <= 0.2 / 0.87962566103423978);
  CHECK(largest > 0.22);
}

TEST_CASE("drawn values have the distribution of their initializer", "[setup]") {
  const auto values_of = [](const model::Initializer& init) {
    return to_numbers(setup::draw({"a.kernel", {100, 200}, init, {}}, 3, DType::f64), DType::f64);
  };
  struct Moments {
    double mean = 0, deviation = 0, least = 0, largest = 0;
  };
  const auto moments_of = [&](const model::Initializer& init) {
    const Numbers values = values_of(init);
    Moments made{0, 0, values.front(), values.front()};
    double squares = 0;
    const auto count = static_cast<double>(values.size());
    for (const double value : values) {
      made.mean += value / count;
      squares += value * value / count;
      made.least = std::min(made.least, value);
      made.largest = std::max(made.largest, value);
    }
    made.deviation = std::sqrt(squares - made.mean * made.mean);
    return made;
  };
  using enum model::InitializerKind;
  const Moments normals = moments_of({normal, 0.5});
  CHECK(std::abs(normals.mean) < 0.015);
  CHECK(normals.deviation == Approx(0.5).epsilon(0.02));
  CHECK(normals.largest > 1.5);
  const Moments cut = moments_of({truncated_normal, 0.5});
  CHECK(cut.deviation == Approx(0.5 * 0.8796).epsilon(0.02));
  CHECK(cut.largest <= 1);
  const Moments even = moments_of({uniform, 3.0, -1.0});
  CHECK(even.mean == Approx(0.5).margin(0.03));
  CHECK(even.deviation == Approx(3 / std::sqrt(12.0)).epsilon(0.02));
  CHECK(even.least >= -1);
  CHECK(even.least < -0.99);
  CHECK(even.largest < 2);
  CHECK(even.largest > 1.99);
  CHECK(values_of({constant, -2.5}) == Numbers(20000, -2.5));
}

TEST_CASE("the columns of an orthogonal kernel are orthogonal and of its length, or its rows if these are fewer",
          "[setup]") {
  for (const Shape& matrix : {Shape{30, 7}, Shape{7, 30}, Shape{9, 9}, Shape{50, 37}, Shape{40, 40}}) {
    const std::int64_t rows = matrix[0], columns = matrix[1];
    // A convolution's rows are those of all places.
    const Shape shape = rows == 30 ? Shape{5, 6, columns} : Shape{rows, columns};
    const model::Initializer init{model::InitializerKind::orthogonal, 1.5, 0, columns};
    const Numbers q = to_numbers(setup::draw({"a.kernel", shape, init, {}}, 3, DType::f64), DType::f64);
    const bool by_columns = columns <= rows;
    const std::int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    const auto at = [&](std::int64_t vector, std::int64_t i) {
      return q[static_cast<std::size_t>(by_columns ? i * columns + vector : vector * columns + i)];
    };
    for (std::int64_t a = 0; a < count; ++a) {
      for (std::int64_t b = 0; b < count; ++b) {
        double product = 0;
        for (std::int64_t i = 0; i < length; ++i) product += at(a, i) * at(b, i);
        CHECK(product == Approx(a == b ? 2.25 : 0).margin(1e-12));
      }
    }
  }
}

TEST_CASE("initial values depend on the seed and the parameter's name, and on nothing else", "[setup]") {
  CHECK(drawn("a.kernel", 1) == drawn("a.kernel", 1));
  CHECK(drawn("a.kernel", 1) != drawn("a.kernel", 2));
  CHECK(drawn("a.kernel", 1) != drawn("b.kernel", 1));
  const Numbers all = drawn("a.kernel", 1), few = drawn("a.kernel", 1, 100, 10);
  CHECK(few == Numbers(all.begin(), all.begin() + 10));
}

TEST_CASE("large parameters are drawn by several threads, which changes no value", "[setup]") {
  const Numbers several = drawn("a.kernel", 1, 100, 100'003), one = drawn("a.kernel", 1, 100, 16'000);
  CHECK(Numbers(several.begin(), several.begin() + 16'000) == one);
  // One element's own stream, at the end of the last range.
  CHECK(several.back() == drawn("a.kernel", 1, 100, 100'004)[100'002]);
}

TEST_CASE("model.init replaces the parameters that it names; biases begin at zero", "[setup]") {
  const model::Model model = model::make_model(classifier(Mesh()), {DType::f32, {3}}, labels);
  spec::ModelSpec spec;
  spec.initial_values["head.bias"] = {{3}, {0.5, -1.0, 2.0}, {}};
  auto values = initial_values(model, spec, 3);
  CHECK(values.size() == 4);
  CHECK(to_numbers(values["head.bias"], DType::f32) == Numbers{0.5, -1.0, 2.0});
  CHECK(to_numbers(values["dense_0.bias"], DType::f32) == Numbers(4, 0.0));
  CHECK(values["dense_0.kernel"] == setup::draw(model.parameters[0], 3, DType::f32));
}

namespace {

// Loads a file of these tensors as initial values of the classifier.
class InitialFile {
 public:
  InitialFile() {
    spec_.initial_from = spec::InitialFrom{path};
    spec_.init_place = {"net.yaml", 8, 3, 4, "init: x"};
  }
  spec::InitialFrom& from() { return *spec_.initial_from; }

  auto load(const run::Tensors& tensors) const {
    testing::write_tensors(path, tensors);
    return initial_values(model_, spec_, 0);
  }
  std::string note() const { return setup::InitialValues(model_, spec_, 0).note(); }
  std::string refusal(const run::Tensors& tensors) const {
    try {
      load(tensors);
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::data);
      CHECK(error.diagnostics().front().place == spec_.init_place);
      return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
    }
    return "accepted";
  }

  const test::TemporaryFolder folder;
  const std::string path = folder / "initial.safetensors";

 private:
  const model::Model model_ = model::make_model(classifier(Mesh()), {DType::f32, {3}}, labels);
  spec::ModelSpec spec_;
};

run::Tensor doubles(const Shape& shape, const Numbers& values) {
  return {DType::f64, shape, to_bytes(values, DType::f64)};
}

// Every parameter of the classifier.
run::Tensors whole_file() {
  return {{"dense_0.kernel", doubles({3, 4}, Numbers(12, 0.5))},
          {"dense_0.bias", doubles({4}, Numbers(4, 0.0))},
          {"head.kernel", doubles({4, 3}, Numbers(12, 0.25))},
          {"head.bias", doubles({3}, {1.5, -2.0, 3.25})}};
}

}  // namespace

TEST_CASE("a file of initial values fits the model by name and shape, or says what does not", "[setup]") {
  const InitialFile file;
  CHECK(to_numbers(file.load(whole_file()).at("head.bias"), DType::f32) == Numbers{1.5, -2.0, 3.25});
  run::Tensors narrow = whole_file();
  narrow["head.bias"] = {DType::bf16, {3}, to_bytes({1.5, -2.0, 3.25}, DType::bf16)};
  CHECK(to_numbers(file.load(narrow).at("head.bias"), DType::f32) == Numbers{1.5, -2.0, 3.25});
  narrow["head.bias"] = {DType::bf16, {3}, to_bytes({1.5, std::numeric_limits<double>::infinity(), 0}, DType::bf16)};
  CHECK(test::contains(file.refusal(narrow), " has .inf in 'head.bias' at [1], where a run cannot begin"));
  CHECK(file.refusal({{"head.bais", doubles({3}, {1, 2, 3})}}) ==
        file.path +
            " has a tensor 'head.bais' f64[3], which is no parameter of this model; it lacks 'dense_0.bias' f32[4], "
            "'dense_0.kernel' f32[3,4], 'head.bias' f32[3], 'head.kernel' f32[4,3], parameters of this model | "
            "the nearest parameter is 'head.bias'");
  CHECK(file.refusal({{"head.bias", doubles({3, 1}, {1, 2, 3})}}) ==
        file.path +
            " has 'head.bias' as f64[3,1]; the parameter is f32[3]; it lacks 'dense_0.bias' f32[4], 'dense_0.kernel' "
            "f32[3,4], 'head.kernel' f32[4,3], parameters of this model | change the layer's sizes");
  // All that does not fit is told at once, with the shorter of include and exclude.
  run::Tensors other_head = whole_file();
  other_head.erase("head.kernel");
  other_head.erase("head.bias");
  other_head["top.kernel"] = doubles({4, 2}, Numbers(8, 0.25));
  other_head["dense_0.bias"] = doubles({5}, Numbers(5, 0.0));
  CHECK(file.refusal(other_head) ==
        file.path +
            " has 'dense_0.bias' as f64[5]; the parameter is f32[4]; it has a tensor 'top.kernel' f64[4,2], which is "
            "no parameter of this model; it lacks 'head.bias' f32[3], 'head.kernel' f32[4,3], parameters of this model "
            "| change the layer's sizes; or take what fits: init: {from: {path: ..., include: [\"dense_0.kernel\"]}}");
  // A list of layers under another name is renamed, not left out.
  run::Tensors renamed = whole_file();
  for (const char* const name : {"kernel", "bias"}) {
    renamed[std::string("body.first.") + name] = renamed.at(std::string("dense_0.") + name);
    renamed.erase(std::string("dense_0.") + name);
  }
  CHECK(file.refusal(renamed).ends_with(
      "| these are the same layers under another name: init: {from: {path: ..., rename: {\"body.first.*\": "
      "\"dense_0.*\"}}}"));
  renamed["body.first.bias"] = doubles({5}, Numbers(5, 0.0));
  CHECK_FALSE(test::contains(file.refusal(renamed), "rename"));
  run::Tensors other_bias = whole_file();
  other_bias["head.bias"] = doubles({5}, Numbers(5, 0.0));
  CHECK(file.refusal(other_bias)
            .ends_with(
                "| change the layer's sizes; or leave it out: init: {from: {path: ..., exclude: [\"head.bias\"]}}"));
}

TEST_CASE("a file of initial values has every parameter of the model, or says which it lacks", "[setup]") {
  const InitialFile file;
  run::Tensors tensors = whole_file();
  const std::string help = "write every parameter, or name those that are to be drawn in init.from.exclude";
  tensors.erase("dense_0.kernel");
  CHECK(file.refusal(tensors) == file.path + " lacks 'dense_0.kernel' f32[3,4], a parameter of this model | " + help);
  tensors.erase("head.bias");
  CHECK(file.refusal(tensors) ==
        file.path + " lacks 'dense_0.kernel' f32[3,4], 'head.bias' f32[3], parameters of this model | " + help);
}

TEST_CASE("initial values that are not finite as float32 are refused with their tensor and place", "[setup]") {
  const InitialFile file;
  const auto refusal = [&](double value) {
    run::Tensors tensors = whole_file();
    Numbers values(12, 0.5);
    values[6] = value;
    tensors["dense_0.kernel"] = doubles({3, 4}, values);
    return file.refusal(tensors);
  };
  const std::string help = " | give every parameter finite numbers of at most about 3.4e38";
  CHECK(refusal(std::nan("")) == file.path + " has .nan in 'dense_0.kernel' at [1,2], where a run cannot begin" + help);
  CHECK(refusal(-INFINITY) == file.path + " has -.inf in 'dense_0.kernel' at [1,2], where a run cannot begin" + help);
  CHECK(refusal(1e300) == file.path + " has 1.0e+300 in 'dense_0.kernel' at [1,2], which float32 cannot hold" + help);
  CHECK(refusal(1e-300) == "accepted");
}

TEST_CASE("patterns say which parameters are taken from a file, and a note says which were", "[setup]") {
  InitialFile file;
  file.from().exclude = {{"head.*"}};
  run::Tensors tensors = whole_file();
  tensors["head.kernel"] = doubles({2, 2}, Numbers(4, 0.0));  // of another shape, which does not matter
  tensors["head.old"] = doubles({1}, {0.0});
  const auto values = file.load(tensors);
  CHECK(to_numbers(values.at("dense_0.kernel"), DType::f32) == Numbers(12, 0.5));
  CHECK(to_numbers(values.at("head.bias"), DType::f32) == Numbers(3, 0.0));
  CHECK(file.note() == "model.init.from took 2 of the 4 parameters from " + file.path +
                           "; drawn: head.kernel, head.bias; left in the file: head.bias, head.kernel, head.old");
  file.from().exclude.clear();
  file.from().include = {{"*.bias"}};
  CHECK(to_numbers(file.load(tensors).at("head.bias"), DType::f32) == Numbers{1.5, -2.0, 3.25});
  file.from().include = {{"*"}};
  CHECK(file.load(whole_file()).size() == 4);
  CHECK(file.note() == "model.init.from took 4 of the 4 parameters from " + file.path);
}

TEST_CASE("a pattern that matches no parameter is refused at its place", "[setup]") {
  InitialFile file;
  file.from().include = {{"dense_0.*"}, {"heed.bias", {"net.yaml", 9, 3, 4, "x"}}};
  try {
    file.load(whole_file());
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    CHECK(error.diagnostics().front().place == Place{"net.yaml", 9, 3, 4, "x"});
    CHECK(error.diagnostics().front().message ==
          "the pattern 'heed.bias' matches no parameter of the model or of " + file.path);
    CHECK(error.diagnostics().front().help == "did you mean 'head.bias'?");
  }
}

TEST_CASE("a file of which nothing is taken is refused", "[setup]") {
  InitialFile file;
  file.from().exclude = {{"*"}};
  CHECK(test::refusal([&] { file.load(whole_file()); }, ExitStatus::usage) ==
        "model.init.from takes none of the parameters of this model from " + file.path +
            " | include and exclude choose by the names of this model, such as 'dense_0.kernel'");
  const auto help = [&](const run::Tensors& tensors) {
    const std::string text = test::refusal([&] { file.load(tensors); }, ExitStatus::usage);
    return text.substr(text.find(" | ") + 3);
  };
  // Only what the file has is proposed: another name, or what there is.
  run::Tensors renamed = whole_file();
  for (const char* const name : {"kernel", "bias"}) {
    renamed[std::string("body.") + name] = renamed.at(std::string("head.") + name);
    renamed.erase(std::string("head.") + name);
  }
  CHECK(help(renamed) ==
        "these are the same layers under another name: init: {from: {path: ..., rename: {\"body.*\": \"head.*\"}}}");
  CHECK(help({{"scale", doubles({2}, {1, 2})}}) ==
        "rename: {TENSOR: PARAMETER} says which tensor is which parameter: the parameters are dense_0.bias, "
        "dense_0.kernel, head.bias, head.kernel; the tensors are scale");
}

TEST_CASE("where running statistics alone fit, they are not proposed, because no parameter would be taken", "[setup]") {
  const test::TemporaryFolder folder;
  layers::BatchNorm norm;
  norm.use_scale = norm.use_bias = false;
  const model::Model model =
      model::make_model(testing::network({testing::layer("norm", norm), testing::layer("head", layers::Dense{3})}),
                        {DType::f32, {3}}, labels);
  spec::ModelSpec spec;
  spec.initial_from = spec::InitialFrom{folder / "initial.safetensors"};
  testing::write_tensors(spec.initial_from->path, {{"norm.mean", doubles({3}, Numbers(3, 0.5))},
                                                   {"norm.var", doubles({3}, Numbers(3, 2.0))},
                                                   {"head.kernel", doubles({5, 3}, Numbers(15, 0.25))},
                                                   {"head.bias", doubles({5}, Numbers(5, 0.0))}});
  CHECK(test::refusal([&] { initial_values(model, spec, 0); }, ExitStatus::data)
            .ends_with("the parameter is f32[3,3] | change the layer's sizes"));
}

TEST_CASE("a run begins with a checkpoint of another run", "[setup]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  const Trained first = train_setup_in(run, setup_of_text(small_images));
  const auto initial = [&](const std::string& from, std::vector<std::string> more = {}) {
    more.push_back("model.init={from: " + from + "}");
    const setup::Setup setup = setup_of_text(small_images, more);
    const setup::InitialValues values(setup.model, setup.spec().model, setup.spec().seed);
    run::Tensors found;
    for (const model::Parameter& parameter : setup.model.parameters) {
      found[parameter.name] = {setup.model.dtype, parameter.shape, values.of(parameter)};
    }
    CHECK(setup.source.notes.back() == values.note());
    return std::pair(found, values.note());
  };
  const auto [whole, note] = initial(run);
  CHECK(whole == first.parameters);
  CHECK(note ==
        "model.init.from took 4 of the 4 parameters from " + run + "/checkpoints/step-00000004/params.safetensors");
  CHECK(initial("{path: " + run + ", checkpoint: 4}").first == first.parameters);

  // Another head.
  const auto [body, note_of_body] =
      initial("{path: " + run + ", exclude: [dense_0.*]}", {"model.layers.4.dense.features=7"});
  CHECK(body.at("conv_0.kernel") == first.parameters.at("conv_0.kernel"));
  CHECK(body.at("dense_0.kernel").shape == Shape{27, 7});
  CHECK(note_of_body ==
        "model.init.from took 2 of the 4 parameters from " + run +
            "/checkpoints/step-00000004/params.safetensors; drawn: dense_0.kernel, dense_0.bias; left in the "
            "file: dense_0.bias, dense_0.kernel");
  // Without a layer that the run has.
  const auto [shallow, note_of_shallow] =
      initial(run, {"model.layers=[{conv: {features: 3, kernel_size: [3, 3]}}, relu, global_avg_pool]"});
  CHECK(shallow.at("conv_0.kernel") == first.parameters.at("conv_0.kernel"));
  CHECK(note_of_shallow ==
        "model.init.from took 2 of the 2 parameters from " + run +
            "/checkpoints/step-00000004/params.safetensors; left in the file: dense_0.bias, dense_0.kernel");
  CHECK(test::refusal([&] { initial(run, {"model.layers.4.dense.features=7"}); }, ExitStatus::data) ==
        run +
            "/checkpoints/step-00000004/params.safetensors has 'dense_0.bias' as f32[3]; the parameter is f32[7]; it "
            "has 'dense_0.kernel' as f32[27,3]; the parameter is f32[27,7] | change the layer's sizes; or take what "
            "fits: init: {from: {path: ..., include: [\"conv_0.*\"]}}");
  CHECK(test::refusal([&] { initial("{path: " + run + ", checkpoint: 3}"); }, ExitStatus::usage) ==
        "the run '" + run + "' has no checkpoint '3' | it has 4, last");
}

TEST_CASE("of a checkpoint with averaged weights those are taken, unless the raw ones are asked for", "[setup]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  const setup::Setup setup = setup_of_text(small_images, {"train.ema={decay: 0.5}"});
  const Trained trained = train_setup_in(run, setup);
  const auto initial = [&](const std::string& from) {
    const setup::Setup next = setup_of_text(small_images, {"model.init={from: " + from + "}"});
    const setup::InitialValues values(next.model, next.spec().model, next.spec().seed);
    run::Tensors found;
    for (const model::Parameter& parameter : next.model.parameters) {
      found[parameter.name] = {next.model.dtype, parameter.shape, values.of(parameter)};
    }
    return found;
  };
  CHECK(initial(run) == run::read_safetensors(run + "/checkpoints/last/ema.safetensors"));
  CHECK(initial("{path: " + run + ", weights: raw}") == trained.parameters);
  CHECK(initial(run) != trained.parameters);
  const auto measures = [&](spec::Weights weights) {
    return evaluate::evaluate_checkpoint(setup.loaded, run, "last", "test", weights).front().measures;
  };
  CHECK(measures(spec::Weights::ema) != measures(spec::Weights::raw));
}

TEST_CASE("frozen parameters whose values are drawn are told at the group that freezes them", "[setup]") {
  const TemporaryFolder root;
  const std::string run = root / "run";
  train_setup_in(run, setup_of_text(small_images));
  const auto told = [&](std::vector<std::string> set) {
    set.insert(set.begin(), "optimizer.groups=[{parameters: conv_*, freeze: true}]");
    std::vector<std::string> found;
    for (const std::string& warning : setup_of_text(small_images, std::move(set)).warnings) {
      if (test::contains(warning, "freezes")) found.push_back(warning);
    }
    return found;
  };
  const std::vector<std::string> drawn{
      "optimizer.groups (--set:1:32) freezes conv_0.kernel, which is drawn at random and stays so: model.init.from "
      "takes trained values; without freeze: true the group is trained"};
  CHECK(told({}) == drawn);
  CHECK(told({"model.init={from: {path: " + run + ", exclude: [conv_*]}}"}) == drawn);
  CHECK(told({"model.init={from: " + run + "}"}).empty());
  // Values that are not drawn may be meant.
  CHECK(told({"model.layers.0.conv.kernel_init=ones"}).empty());
  CHECK(told({"optimizer.groups=[{parameters: conv_*, learning_rate_scale: 0.1}]"}).empty());
}
