// Adapters beside those of peft, on a Llama of random weights: make_lora_fixtures.py.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/evaluate/predictor.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const std::string beside_peft = "tests/parity/lora/";

// By measure, in each step; the logits of the first batch after the last one.
std::map<std::string, std::vector<double>> trained_beside_peft(const std::string& name, const std::string& devices) {
  spec::Overrides overrides;
  overrides.set = {"mesh.axes.devices=" + devices};
  const setup::Setup setup = setup::make_setup(spec::load(beside_peft + name + "/config.yaml", overrides));
  const TemporaryFolder folder;
  const Trained trained = train_setup_in(folder / "run", setup);
  std::map<std::string, std::vector<double>> found;
  for (const run::Logged& logged : trained.of<run::Logged>()) {
    for (const auto& [measure, value] : logged.measures) found[measure].push_back(value);
    found["grad_norm"].push_back(logged.grad_norm);
  }
  evaluate::PredictionRequest request;
  request.input.path = beside_peft + name + "/data.npz";
  request.kind = model::PredictionKind::logits;
  evaluate::Predictor predictor(setup.loaded, folder / "run", request);
  predictor.run([&](std::int64_t, std::span<const std::byte> rows) {
    const auto* const values = reinterpret_cast<const float*>(rows.data());
    found["logits"].insert(found["logits"].end(), values, values + rows.size() / sizeof(float));
  });
  return found;
}

}  // namespace

TEST_CASE("adapters of a Llama train as those of peft do", "[parity]") {
  for (const std::string name : {"attention", "all"}) {
    for (const std::string devices : {"1", "4"}) {
      const auto found = trained_beside_peft(name, devices);
      const auto json = nlohmann::json::parse(read_text(beside_peft + name + "/expected.json"));
      REQUIRE(json.size() == 3);
      for (const auto& [measure, values] : json.items()) {
        INFO(name << " on " << devices << " devices: " << measure);
        const auto expected = values.get<std::vector<double>>();
        const std::vector<double>& ours = found.at(measure);
        REQUIRE(ours.size() >= expected.size());
        // Logits are compared beside the largest; a loss or a norm beside itself.
        const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
        const double largest = std::abs(*std::max_element(expected.begin(), expected.end(), smaller));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double beside = measure == "logits" ? largest : std::abs(expected[i]);
          CHECK(std::abs(ours[i] - expected[i]) <= 1e-4 * beside);
        }
      }
    }
  }
}
