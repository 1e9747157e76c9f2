#include "tests/parity/case.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/setup/values.h"
#include "core/spec/load.h"
#include "tests/session_run.h"
#include "tests/words.h"

namespace pmaptrain::parity {

namespace fs = std::filesystem;
using testing::to_doubles;

namespace {

// Parameters after the first step.
constexpr double parameter_tolerance = 1e-5;
// Averages of parameters after the last step.
constexpr double ema_tolerance = 1e-4;

void read_ema(const setup::Setup& setup, Module& module, Run& run) {
  const spec::TrainSpec& train = setup.spec().train;
  const auto steps = static_cast<double>(train.duration.count);
  const double correction = train.ema->debias ? 1.0 - std::pow(train.ema->decay, steps) : 1.0;
  for (std::size_t i = 0; i < setup.model.parameters.size(); ++i) {
    std::vector<double>& values = run.ema[setup.model.parameters[i].name];
    values = setup::to_doubles(module, module.input(setup::train_entry, setup.roles.ema.at(i)));
    if (setup.roles.ema[i] == setup.roles.parameters[i]) continue;  // frozen: its average is the parameter itself
    for (double& value : values) value /= correction;
  }
}

}  // namespace

Names listed_cases() {
  std::vector<std::string> names;
  std::ifstream file(folder / "cases.txt");
  for (std::string name; std::getline(file, name);) names.push_back(name);
  return names;
}

std::vector<RunShape> own_layouts(const std::string& name) {
  const RunShape one{1, "{devices: 1}", 1};
  if (name.ends_with("_in_parts_masked")) return {{2, "{devices: 2}", 1}, {1, "{devices: 1}", 2}};
  if (name.ends_with("_in_parts")) {
    return {{4, "{devices: 4}", 1}, {2, "{devices: 2}", 2}, {4, "[{rows: 2}, {columns: 2}]", 1}};
  }
  if (test::contains(name, "_over_devices")) return {one, {3, "{devices: 3}", 1}, {4, "{devices: 4}", 1}};
  return name == "batch_norm" ? std::vector<RunShape>{one} : std::vector<RunShape>();
}

Case read_case(const std::string& name) {
  const fs::path path = folder / "cases" / name;
  Case expected{name, {}, run::read_safetensors((path / "first_step.safetensors").string()), {}};
  if (fs::exists(path / "ema.safetensors")) {
    expected.ema = run::read_safetensors((path / "ema.safetensors").string());
  }
  const auto json = nlohmann::json::parse(testing::read_text(path / "expected.json"));
  for (const auto& [measure, values] : json.items()) expected.measures[measure] = values.get<std::vector<double>>();
  return expected;
}

Run train_case(const std::string& name, const RunShape& layout, Names set) {
  set.push_back("mesh.axes=" + layout.axes);
  set.push_back("data.microbatches=" + std::to_string(layout.microbatches));
  spec::Overrides overrides;
  overrides.set = std::move(set);
  const setup::Setup setup =
      setup::make_setup(spec::load((folder / "cases" / name / "config.yaml").string(), overrides));
  Run run;
  train::SessionOptions options;
  options.between_steps = [&run, &setup](Module& module, std::int64_t step) {
    const spec::TrainSpec& train = setup.spec().train;
    if (step == train.duration.count && train.ema) read_ema(setup, module, run);
    if (step != 1) return;
    const Program& program = module.program(0);
    for (std::int64_t device = 0; device < program.mesh.devices(); ++device) {
      auto& parameters = run.first_step.emplace_back();
      for (const Variable& variable : module.variables(0)) {
        if (!is_of_model(variable.group)) continue;
        parameters[std::string(variable.name)] = setup::to_doubles(module, module.input(variable.name), device);
      }
    }
  };
  const testing::Trained trained = testing::train_setup(setup, options);
  for (const run::Logged& logged : trained.of<run::Logged>()) {
    for (const auto& [measure, value] : logged.measures) run.measures[measure].push_back(value);
    run.measures["grad_norm"].push_back(logged.grad_norm);
  }
  return run;
}

Names differences(const Case& expected, const Run& run, const Nearness& nearness) {
  Names found;
  for (const auto& [measure, values] : expected.measures) {
    const auto ours = run.measures.find(measure);
    if (ours == run.measures.end() || ours->second.size() != values.size()) {
      found.push_back(measure + " was not reported at each step");
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      // Written so that a NaN is a difference.
      const double near = std::min(nearness.measures, static_cast<double>(i + 1) * nearness.per_step);
      if (std::abs(ours->second[i] - values[i]) <= near * std::abs(values[i])) continue;
      std::ostringstream text;
      text << measure << " at step " << i + 1 << " is " << ours->second[i] << ", JAX has " << values[i];
      found.push_back(text.str());
      break;
    }
  }
  const auto are_near = [](const run::Tensor& tensor, const std::map<std::string, std::vector<double>>& found_in,
                           const std::string& name, double tolerance) {
    const std::vector<double> values = to_doubles(tensor);
    const auto ours = found_in.find(name);
    return ours != found_in.end() && std::equal(values.begin(), values.end(), ours->second.begin(), ours->second.end(),
                                                [&](double a, double b) { return std::abs(a - b) <= tolerance; });
  };
  for (const auto& [name, tensor] : expected.ema) {
    if (!are_near(tensor, run.ema, name, ema_tolerance)) found.push_back("the average of " + name);
  }
  for (std::size_t device = 0; device < run.first_step.size(); ++device) {
    for (const auto& [name, tensor] : expected.first_step) {
      const bool is_near = are_near(tensor, run.first_step[device], name, parameter_tolerance);
      if (!is_near) found.push_back(name + " after the first step on device " + std::to_string(device));
    }
  }
  return found;
}

}  // namespace pmaptrain::parity
