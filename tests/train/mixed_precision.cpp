// What mixed precision keeps in f32, where it casts, and that it keeps the bits that f32 keeps.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/graph/text.h"
#include "core/report/peaks.h"
#include "core/runtime/cpu/module.h"
#include "core/setup/programs.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// The equations of a layer's forward pass that cast to bf16. There must be some equations.
std::size_t casts_of(const setup::Setup& setup, const std::string& layer) {
  std::istringstream lines(to_text(setup::program_at(setup, step::Stage::model), {.origins = true}));
  std::size_t count = 0, all = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with("# " + layer)) continue;
    ++all;
    count += line.find("= cast[dtype=bf16]") != std::string::npos ? 1U : 0U;
  }
  INFO(layer);
  CHECK(all > 0);
  return count;
}

const std::string mixed = "precision=mixed_bfloat16";

}  // namespace

TEST_CASE("a global batch gives the same bits on 1, 2, 4 and 8 devices in mixed precision where it does in f32",
          "[train]") {
  for (const char* const microbatches : {"1", "2"}) {
    const auto with = [&](const std::string& precision, const std::string& devices) {
      return train_setup(
          setup_of_text(small_images, {precision, "mesh.axes={a: " + devices + "}", "train.duration=6 steps",
                                       std::string("data.microbatches=") + microbatches}));
    };
    const Trained narrow = with(mixed, "1"), full = with("precision=float32", "1");
    CHECK(narrow.parameters != full.parameters);
    for (const char* const devices : {"2", "4", "8"}) {
      INFO(devices << " devices, " << microbatches << " microbatches");
      const bool same = with("precision=float32", devices).parameters == full.parameters;
      const Trained more = with(mixed, devices);
      CHECK((more.parameters == narrow.parameters || !same));
      for (const auto& [name, tensor] : more.parameters) {
        const std::vector<double> a = to_doubles(tensor), b = to_doubles(narrow.parameters.at(name));
        CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                         [](double x, double y) { return std::abs(x - y) <= 1e-3; }));
      }
    }
  }
}

TEST_CASE("a checkpoint of mixed precision has parameters, slots and averages in f32", "[train]") {
  const TemporaryFolder root;
  const Trained trained = train_setup_in(root / "run", setup_of_text(small_images, {mixed, "train.ema={decay: 0.9}"}));
  REQUIRE(trained.parameters.size() == 4);
  for (const auto& [name, tensor] : trained.parameters) {
    INFO(name);
    CHECK(tensor.dtype == DType::f32);
    for (const char* const slot : {"adam.mu/", "adam.nu/", "ema/"}) {
      CHECK(trained.state.at(slot + name).dtype == DType::f32);
    }
  }
  for (const auto& [name, tensor] : trained.state) CHECK(tensor.dtype != DType::bf16);
  const auto averages =
      run::read_safetensors((run::find_checkpoint(root / "run", "last") / "ema.safetensors").string());
  CHECK(averages.size() == 4);
  for (const auto& [name, tensor] : averages) CHECK(tensor.dtype == DType::f32);
}

TEST_CASE("layers cast to bf16 but those that say float32, and the lists in them", "[train]") {
  const std::string layers =
      "model.layers=[flatten, {dense: 8}, {dense: 8, precision: float32}, {name: block, "
      "precision: float32, layers: [{dense: 8}, {layers: [{dense: 8}]}]}, {dense: 3}]";
  const setup::Setup setup = setup_of_text(small_images, {mixed, layers});
  CHECK(casts_of(setup, "flatten_0") == 0);  // moves elements, and keeps their type
  CHECK(casts_of(setup, "dense_0") == 2);    // its input and its kernel
  CHECK(casts_of(setup, "dense_1") == 0);
  CHECK(casts_of(setup, "block.dense_0") == 0);
  CHECK(casts_of(setup, "block.layers_0.dense_0") == 0);
  CHECK(casts_of(setup, "dense_2") == 2);
  CHECK(to_text(setup::program_at(setup_of_text(small_images, {layers}), step::Stage::final)).find("bf16") ==
        std::string::npos);
}

TEST_CASE("what one layer hands to the next is bf16, whatever the next computes in, and so is its cotangent",
          "[train]") {
  for (const char* const between : {"relu", "gelu", "tanh", "{dropout: 0.5}", "softplus"}) {
    INFO(between);
    const setup::Setup setup = setup_of_text(
        small_images, {mixed, std::string("model.layers=[flatten, {dense: 8}, ") + between + ", {dense: 3}]"});
    std::istringstream lines(to_text(*setup.training, {.origins = true}));
    std::vector<std::string> products;  // the types of their results, of activations and cotangents
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" = matmul[transpose_a=false") == std::string::npos) continue;
      const std::size_t type = line.find(':') + 1;
      products.push_back(line.substr(type, line.find('[') - type));
    }
    // dense_0, the logits, and the cotangent of what dense_1 reads.
    CHECK(products == std::vector<std::string>{"bf16", "f32", "bf16"});
  }
}

TEST_CASE("a step of mixed precision is held against the machine's products of bf16", "[train]") {
  CHECK(report::product_dtype(*setup_of_text(small_images).training) == DType::f32);
  CHECK(report::product_dtype(*setup_of_text(small_images, {mixed}).training) == DType::bf16);
  CHECK(report::measure_peaks(CpuBackend({.workers = 1}), 1, DType::bf16).gemm_flops_per_second > 1e6);
}
