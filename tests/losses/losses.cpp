// Losses and their gradients against other libraries.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/equations/arithmetic.h"
#include "core/graph/check.h"
#include "core/graph/differentiate.h"
#include "core/layers/reshape.h"
#include "core/losses/focal.h"
#include "core/losses/log_cosh.h"
#include "core/losses/poisson.h"
#include "core/losses/quantile.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

losses::Loss loss_of(const nlohmann::json& given) {
  const std::string& kind = given.begin().key();
  const auto& options = given.begin().value();
  if (kind == "poisson") return losses::Poisson{};
  if (kind == "log_cosh") return losses::LogCosh{};
  if (kind == "quantile") return losses::Quantile{options["q"].get<Numbers>()};
  REQUIRE(kind == "focal");
  losses::Focal focal{options["gamma"].get<double>(), {}};
  if (!options["alpha"].is_null()) focal.alpha = options["alpha"].get<double>();
  return focal;
}

// Appends the elements of nested lists.
void add_elements(const nlohmann::json& lists, Numbers& all) {
  if (lists.is_number()) return all.push_back(lists.get<double>());
  for (const auto& list : lists) add_elements(list, all);
}

Numbers elements_of(const nlohmann::json& lists) {
  Numbers all;
  add_elements(lists, all);
  return all;
}

// The loss of each example, and the gradient of their sum with respect to the outputs.
Feed losses_of(const nlohmann::json& one) {
  const losses::Loss loss = loss_of(one["loss"]);
  const auto& targets = one["targets"];
  const auto rows = std::ssize(targets), width = std::ssize(one["outputs"][0]);
  const bool of_classes = targets[0].is_number();
  const Field target{of_classes ? DType::i32 : DType::f64, of_classes ? Shape{} : Shape{std::ssize(targets[0])}};
  const Network net = network({layer("flatten_0", layers::Flatten{})}, loss);
  const model::Model model = model::make_model(net, {DType::f64, {width}}, target, DType::f64);
  Program program;
  Builder b(program, all_ops());
  const Value y = b.input(Group::batch, "y", {DType::f64, {rows, width}, {}});
  Shape shape{rows};
  shape.insert(shape.end(), target.shape.begin(), target.shape.end());
  const Value t = b.input(Group::batch, "t", {target.dtype, shape, {}});
  const std::vector<equations::Number> declared = model::loss_numbers(model);
  const equations::Numbers numbers(declared, equations::declare_numbers(b, declared));
  const Value losses = model::example_losses(b, model, y, t, numbers);
  b.output("losses", losses);
  const Value sum = equations::sum_from(b, losses, 0);
  b.output("gradient", differentiate(b, sum, equations::scalar_like(b, sum, 1.0), std::vector{y}).front());
  check(program);
  Feed feed{{"y", elements_of(one["outputs"])}, {"t", elements_of(targets)}};
  add_numbers(feed, declared);
  return results_of(program, feed);
}

void check_equal(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("at " << i);
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-14));
  }
}

}  // namespace

TEST_CASE("focal, poisson and quantile losses are those of torchvision, PyTorch and scikit-learn", "[losses]") {
  // Made by tests/parity/make_loss_fixtures.py.
  const auto cases = nlohmann::json::parse(test::read_text("tests/parity/losses.json"));
  for (const auto& [name, one] : cases.items()) {
    INFO(name);
    const Feed found = losses_of(one);
    check_equal(found.at("losses"), elements_of(one["losses"]));
    if (one.contains("gradient")) check_equal(found.at("gradient"), elements_of(one["gradient"]));
  }
}

TEST_CASE("log_cosh has the digits of small errors, and is finite for large ones", "[losses]") {
  const Feed found =
      losses_of({{"loss", {{"log_cosh", {}}}}, {"outputs", {{1e-6}, {-2.0}, {1e5}}}, {"targets", {{0}, {0}, {0}}}});
  const Numbers& losses = found.at("losses");
  CHECK(losses[0] == Approx(5e-13).epsilon(1e-3));
  CHECK(losses[1] == Approx(std::log(std::cosh(2.0))));
  CHECK(losses[2] == Approx(1e5 - std::log(2.0)));
  check_equal(found.at("gradient"), {std::tanh(1e-6), std::tanh(-2.0), 1});
}
