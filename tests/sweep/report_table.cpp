// A sweep as a report shows it.
#include "core/sweep/report_table.h"

#include "core/sweep/value_text.h"
#include "tests/catch.h"

using namespace pmaptrain;

namespace {

// The values of the parameter "width" in a report, and what is said of them.
std::pair<std::vector<std::string>, std::vector<std::string>> shown(const std::vector<std::string>& values) {
  sweep::Results results;
  results.parameters = {"width"};
  for (const std::string& value : values) {
    sweep::TrialResult& trial = results.trials.emplace_back();
    trial.values = {value};
    trial.runs.resize(1);
  }
  const report::SweepTable table = sweep::report_table(results, "sweeps/lr");
  std::vector<std::string> found;
  for (const report::SweepTrial& trial : table.trials) found.push_back(trial.parameters.front().second);
  return {found, table.meanings};
}

// A value alone.
std::string text_of(const std::string& value) { return sweep::coupled_texts({value}).at(value); }

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("in a report, choices that set several keys are called by the first value by which they differ", "[sweep]") {
  const std::string narrow = R"({"loss":"huber","model.layers.0.dense.features":4,"data.batch_size":16})";
  const std::string wide = R"({"loss":"huber","model.layers.0.dense.features":64,"data.batch_size":64})";
  const auto [names, meanings] = shown({wide, narrow, wide});
  CHECK(names == Texts{"64", "4", "64"});
  CHECK(meanings ==
        Texts{"width: 4 is loss huber, features 4, batch_size 16; 64 is loss huber, features 64, batch_size 64"});
}

TEST_CASE("in a report, choices that no value tells apart have all their values", "[sweep]") {
  const Texts both{R"({"a.b":1,"a.c":1})", R"({"a.b":1,"a.c":2})", R"({"a.b":2,"a.c":2})"};
  CHECK(shown(both).first == Texts{"b 1, c 1", "b 1, c 2", "b 2, c 2"});
  CHECK(shown(both).second.empty());
  CHECK(shown({R"({"a.b":1,"c":1})", R"({"a.b":2})"}).first == Texts{"b 1, c 1", "b 2"});
  CHECK(shown({"0.25", "0.5"}).first == Texts{"0.25", "0.5"});
}

TEST_CASE("keys of a choice that end alike are told apart where their values differ", "[sweep]") {
  const std::string rising = R"({"model.layers.0.dense":16,"model.layers.2.dense":32})",
                    falling = R"({"model.layers.0.dense":32,"model.layers.2.dense":16})",
                    equal = R"({"model.layers.0.dense":32,"model.layers.2.dense":32})",
                    last = R"({"model.layers.2.dense":32})";
  CHECK(text_of(rising) == "0.dense 16, 2.dense 32");
  CHECK(text_of(equal) == "32");
  CHECK(text_of(last) == "32");
  CHECK(text_of("0.25") == "0.25");
  const auto of = [](const std::set<std::string>& values, const std::string& one) {
    return sweep::coupled_texts(values).at(one);
  };
  CHECK(of({rising, equal}, equal) == "0.dense 32, 2.dense 32");
  CHECK(of({equal, last}, last) == "2.dense 32");
  CHECK(of({equal, R"({"model.layers.0.dense":64,"model.layers.2.dense":64})"}, equal) == "32");
  const auto [names, meanings] = shown({rising, falling});
  CHECK(names == Texts{"16", "32"});
  CHECK(meanings == Texts{"width: 16 is 0.dense 16, 2.dense 32; 32 is 0.dense 32, 2.dense 16"});
}

TEST_CASE("a choice of an optimizer or of another alternative is called by its name and its options", "[sweep]") {
  const std::string adam = R"({"optimizer.adam":{}})", plain = R"({"optimizer.sgd":{}})",
                    heavy = R"({"optimizer.sgd":{"momentum":0.9,"nesterov":true}})";
  CHECK(text_of(adam) == "adam");
  CHECK(text_of(plain) == "sgd");
  CHECK(text_of(heavy) == "sgd (momentum 0.9, nesterov true)");
  CHECK(text_of(R"({"optimizer.sgd":null})") == "sgd");
  CHECK(text_of(R"({"adam":{},"learning_rate":0.0012345678})") == "adam, learning_rate 0.001235");
  CHECK(text_of(R"({"optimizer.adam":{},"optimizer.learning_rate":0.1})") == "adam, learning_rate 0.1");
  CHECK(text_of(R"([{"dense":16},"relu"])") == "[dense 16, relu]");
  CHECK(sweep::parameters_text(R"({"opt":{"optimizer.adam":{}},"optimizer.learning_rate":0.001})") ==
        "opt=adam, optimizer.learning_rate=0.001");
  CHECK(sweep::parameter_values(R"({"opt":{"optimizer.sgd":{"momentum":0}}})", {"opt"}) == Texts{"sgd momentum 0"});
  CHECK(shown({adam, plain, heavy}).first == Texts{"adam", "sgd", "sgd (momentum 0.9, nesterov true)"});
}

TEST_CASE("a layer that one map of a choice calls by its index and another by its name is one key", "[sweep]") {
  const std::string by_index = R"({"model.layers.0.embedding.features":16,"model.layers.2.dense":16})",
                    by_name = R"({"model.layers.tok.embedding.features":32,"model.layers.2.dense":32})";
  const std::map<std::string, std::string> texts = sweep::coupled_texts({by_index, by_name});
  CHECK(texts.at(by_index) == "features 16, dense 16");
  CHECK(texts.at(by_name) == "features 32, dense 32");
}
