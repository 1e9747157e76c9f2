#include "core/train/initialize.h"

#include <cmath>
#include <filesystem>

#include "core/train/safetensors.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

Numbers drawn(const std::string& name, std::uint64_t seed, std::int64_t fan_in = 100, std::int64_t count = 20000) {
  const model::Parameter parameter{name, {count}, {model::InitializerKind::lecun_normal, fan_in}, {}};
  return to_numbers(train::draw(parameter, seed, DType::f64), DType::f64);
}

}  // namespace

TEST_CASE("LeCun normal values have variance 1 / fan_in and stop at two deviations of the uncut normal", "[train]") {
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

TEST_CASE("initial values depend on the seed and the parameter's name, and on nothing else", "[train]") {
  CHECK(drawn("a.kernel", 1) == drawn("a.kernel", 1));
  CHECK(drawn("a.kernel", 1) != drawn("a.kernel", 2));
  CHECK(drawn("a.kernel", 1) != drawn("b.kernel", 1));
  const Numbers all = drawn("a.kernel", 1), few = drawn("a.kernel", 1, 100, 10);
  CHECK(few == Numbers(all.begin(), all.begin() + 10));
}

TEST_CASE("model.init replaces the parameters that it names; biases begin at zero", "[train]") {
  spec::Spec spec = classifier(Mesh());
  spec.model.initial_values["head.bias"] = {{3}, {0.5, -1.0, 2.0}, {}};
  const model::Model model = model::make_model(spec, {DType::f32, {3}}, labels);
  auto values = train::initial_parameters(model, spec.model, 3);
  CHECK(values.size() == 4);
  CHECK(to_numbers(values["head.bias"], DType::f32) == Numbers{0.5, -1.0, 2.0});
  CHECK(to_numbers(values["dense_0.bias"], DType::f32) == Numbers(4, 0.0));
  CHECK(values["dense_0.kernel"] == train::draw(model.parameters[0], 3, DType::f32));
}

TEST_CASE("a file of initial values fits the model by name and shape, or says what does not", "[train]") {
  const std::string path = (std::filesystem::temp_directory_path() / "pmaptrain_initial_values.safetensors").string();
  spec::Spec spec = classifier(Mesh());
  spec.model.initial_file = path;
  const model::Model model = model::make_model(spec, {DType::f32, {3}}, labels);
  const auto load = [&](const std::string& name, const Shape& shape) {
    train::write_safetensors(path, {{name, {DType::f64, shape, to_bytes({1.5, -2.0, 3.25}, DType::f64)}}});
    return train::initial_parameters(model, spec.model, 0);
  };
  const auto refusal = [&](const std::string& name, const Shape& shape) {
    try {
      load(name, shape);
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::data);
      return error.diagnostics().front().message + " | " + error.diagnostics().front().help;
    }
    return std::string("accepted");
  };
  CHECK(to_numbers(load("head.bias", {3}).at("head.bias"), DType::f32) == Numbers{1.5, -2.0, 3.25});
  CHECK(refusal("head.bais", {3}) == path +
                                         " has a tensor 'head.bais' f64[3], which is no parameter of this model | "
                                         "the nearest parameter is 'head.bias'");
  CHECK(refusal("head.bias", {3, 1}) == path +
                                            " has 'head.bias' as f64[3,1]; the parameter is f32[3] | "
                                            "change the layer's sizes, or write the tensor in this shape");
  std::filesystem::remove(path);
}
