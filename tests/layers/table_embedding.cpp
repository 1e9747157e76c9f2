// table_embedding: what it gives for the columns of a table, its parameters, and where it is refused.
#include "core/layers/table_embedding.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// A number, 3 categories, two numbers, 2 categories.
const std::vector<layers::InputColumn> five_columns = {{"age"}, {"city", 3}, {"x"}, {"y"}, {"a kind", 2}};
const Field five{DType::f64, {5}};

layers::TableEmbedding of_width(std::int64_t width, double dropout = 0) { return {width, dropout}; }

Network table_network(std::vector<layers::Layer> list, std::vector<layers::InputColumn> columns = five_columns) {
  Network net = network(std::move(list));
  net.columns = std::move(columns);
  return net;
}

std::string refused_table(std::vector<layers::Layer> list, const std::vector<layers::InputColumn>& columns,
                          const Field& input = {DType::f32, {5}}) {
  return refusal(table_network(std::move(list), columns), input, labels);
}

std::vector<std::string> names_for(const std::vector<std::string>& columns) {
  std::vector<layers::InputColumn> all;
  for (const std::string& column : columns) all.push_back({column, 1});
  return layers::names_of_tables(all);
}

}  // namespace

TEST_CASE("table_embedding gives numbers as they are and rows of tables, in the order of the columns", "[layers]") {
  const Network net = table_network({layer("table_embedding_0", of_width(2))});
  const model::Model model = model::make_model(net, five, labels, DType::f64);
  CHECK(model.output == Shape{7});
  REQUIRE(model.parameters.size() == 2);
  CHECK(model.parameters[0].name == "table_embedding_0.city.embedding");
  CHECK(model.parameters[0].shape == Shape{4, 2});
  CHECK(model.parameters[1].name == "table_embedding_0.a_kind.embedding");
  CHECK(model.parameters[1].shape == Shape{3, 2});
  const Feed tables{{"table_embedding_0.city.embedding", {1, 2, 3, 4, 5, 6, 7, 8}},
                    {"table_embedding_0.a_kind.embedding", {-1, -2, -3, -4, -5, -6}}};
  const Numbers rows = {0.5, 3, 0.25, -8, 1, 1.5, 0, 9, 10, 2};
  CHECK(forward(model, rows, tables).at("y") == Numbers{0.5, 7, 8, 0.25, -8, -3, -4, 1.5, 1, 2, 9, 10, -5, -6});
}

TEST_CASE("categories alone, and one column alone, are a table too", "[layers]") {
  const Network both = table_network({layer("t", of_width(1))}, {{"a", 2}, {"b", 2}});
  const Feed feed{{"t.a.embedding", {0, 1, 2}}, {"t.b.embedding", {0, -1, -2}}};
  CHECK(forward(model::make_model(both, {DType::f64, {2}}, labels, DType::f64), {1, 2, 2, 0}, feed).at("y") ==
        Numbers{1, -2, 2, 0});
  const Network one = table_network({layer("t", of_width(2))}, {{"a", 2}});
  CHECK(forward(model::make_model(one, {DType::f64, {1}}, labels, DType::f64), {2, 1},
                {{"t.a.embedding", {0, 0, 1, 2, 3, 4}}})
            .at("y") == Numbers{3, 4, 1, 2});
}

TEST_CASE("the width of a table is one number for all, or grows with its categories", "[layers]") {
  const layers::TableEmbedding automatic;
  const auto width = [&](std::int64_t categories) { return automatic.width_for(categories); };
  CHECK(width(1) == 2);
  CHECK(width(2) == 2);
  CHECK(width(8) == 5);
  CHECK(width(9) == 5);
  CHECK(width(200) == 31);
  CHECK(width(1000) == 77);
  CHECK(width(39'000) == 596);
  CHECK(width(65'536) == 600);
  CHECK(of_width(7).width_for(1000) == 7);
}

TEST_CASE("tables are named by letters, digits and _ of their columns, each once", "[layers]") {
  using Texts = std::vector<std::string>;
  CHECK(names_for({"city", "Zip Code", "São Paulo", "a.b", "a/b", "a_b", "*", "", "0", "__x"}) ==
        Texts{"city", "Zip_Code", "S_o_Paulo", "a_b", "a_b_2", "a_b_3", "_", "__2", "0", "__x"});
  CHECK(names_for({"a b_2", "a b", "a_b"}) == Texts{"a_b_2", "a_b", "a_b_3"});
}

TEST_CASE("rows of tables are drawn as those of embedding, but row 0, which is zeros", "[layers]") {
  const Network net = table_network({layer("t", of_width(64))}, {{"a", 500}});
  const model::Model model = model::make_model(net, {DType::f32, {1}}, labels);
  const Numbers values = to_numbers(setup::draw(model.parameters.front(), 3, DType::f32), DType::f32);
  REQUIRE(values.size() == 501 * 64);
  CHECK(std::all_of(values.begin(), values.begin() + 64, [](double value) { return value == 0; }));
  double squares = 0;
  for (const double value : values) squares += value * value;
  CHECK(squares / (500 * 64) == Approx(1.0 / 64).epsilon(0.03));
  CHECK(std::set<double>(values.begin() + 64, values.end()).size() > 30'000);
}

TEST_CASE("dropout of table_embedding drops features of categories, and no number", "[layers]") {
  const Network net = table_network({layer("t", of_width(50, 0.4))});
  const model::Model model = model::make_model(net, five, labels, DType::f64);
  CHECK(model.drawing_layers() == std::vector<std::string>{"t"});
  Feed feed{{"t.city.embedding", Numbers(200, 3.0)},
            {"t.a_kind.embedding", Numbers(150, 3.0)},
            {"t", {1, 2}},
            {"row", {0, 1}}};
  const Numbers inputs = {0.5, 3, 0.25, -8, 1, 0.5, 3, 0.25, -8, 1};
  const Numbers trained = forward(model, inputs, feed, true).at("y");
  REQUIRE(trained.size() == 206);
  int dropped = 0;
  for (std::size_t i = 0; i < 206; ++i) {
    const std::size_t feature = i % 103;
    if (feature == 0 || feature == 51 || feature == 52) {
      CHECK(trained[i] == (feature == 0 ? 0.5 : feature == 51 ? 0.25 : -8));
      continue;
    }
    dropped += trained[i] == 0 ? 1 : 0;
    CHECK((trained[i] == 0 || trained[i] == Approx(5)));
  }
  CHECK(dropped > 50);
  CHECK(dropped < 110);
  CHECK(Numbers(trained.begin(), trained.begin() + 103) != Numbers(trained.begin() + 103, trained.end()));
  const Numbers evaluated = forward(model, inputs, feed).at("y");
  CHECK(std::count(evaluated.begin(), evaluated.end(), 3.0) == 200);
}

TEST_CASE("the gradients of tables match finite differences of the loss, and a row of no example has none",
          "[layers]") {
  Network net = classifier(Mesh({{"devices", 2}}));
  net.columns = five_columns;
  net.layers = {layer("t", of_width(2)), layer("dense_0", layers::Dense{4}), layer("tanh_0", layers::Tanh{}),
                layer("head", layers::Dense{3})};
  const model::Model model = model::make_model(net, five, labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed{{"targets", {0, 2, 1, 1}}, {"mask", {1, 1, 1, 0}}};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  // The last row is padding.
  feed["inputs"] = {0.5, 3, 0.25, -1, 1, -0.5, 1, 0.75, 0.5, 2, 0.1, 3, -0.25, 2, 1, 0, 0, 0, 0, 0};
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 5, DType::f64), DType::f64);
  }
  const Feed result = results_of(program, feed);
  check_gradients(program, model, feed, result);
  const Numbers &before = feed.at("t.city.embedding"), &after = result.at("t.city.embedding");
  for (const std::size_t i : {0U, 1U, 4U, 5U}) CHECK(after[i] == before[i]);
  for (const std::size_t i : {2U, 3U, 6U, 7U}) CHECK(after[i] != before[i]);
}

TEST_CASE("table_embedding tells categories apart that bf16 does not", "[layers]") {
  Network net = table_network({layer("t", of_width(1)), layer("head", layers::Dense{3})}, {{"a", 1000}});
  net.precision = layers::PrecisionPolicy::mixed_bfloat16;
  const model::Model model = model::make_model(net, {DType::f32, {1}}, labels);
  Feed feed{{"t.a.embedding", Numbers(1001)}, {"head.kernel", {1, 0, 0}}, {"head.bias", {0, 0, 0}}};
  feed["t.a.embedding"][999] = 8;
  const Numbers found = forward(model, {999, 998, 1000}, feed).at("y");
  CHECK(found == Numbers{8, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("table_embedding is the first layer, of a table with categories", "[layers]") {
  const layers::Layer table = layer("t", layers::TableEmbedding{}), dense = layer("dense_0", layers::Dense{3});
  CHECK(refused_table({table, dense}, five_columns) == "accepted");
  CHECK(refused_table({layer("block", layers::Layers{{table}}), dense}, five_columns) == "accepted");
  const std::string first =
      " takes the columns of the data, which only the first layer of a model has | put it at the beginning of "
      "model.layers, outside of residual, parallel and repeat";
  CHECK(refused_table({dense, table}, five_columns) == "t" + first);
  CHECK(refused_table({layer("block", layers::Layers{{dense, table}})}, five_columns) == "block.t" + first);
  CHECK(refused_table({layer("r", layers::Residual{{table}, {}}), dense}, five_columns) == "r.t" + first);
  CHECK(refused_table({layer("r", layers::Repeat{1, {table}, false}), dense}, five_columns) == "r.0.t" + first);
  CHECK(refused_table({table, layer("u", layers::TableEmbedding{}), dense}, five_columns) == "u" + first);
  CHECK(refused_table({table, dense}, {}) ==
        "t takes the columns of a table, and the data are no table: f32[5] | data.source.csv has columns, of which "
        "categorical names those of categories; tokens take embedding");
  CHECK(refused_table({table, dense}, {{"a"}, {"b"}}, {DType::f32, {2}}) ==
        "t makes features of categories, and no column of the table has any | name such columns: "
        "data.source.csv.categorical: [a]; for numbers alone leave the layer out");
}

TEST_CASE("normalize leaves the numbers of categories as they are, or is refused", "[layers]") {
  Network net = table_network({layer("t", of_width(2)), layer("dense_0", layers::Dense{3})});
  const auto refused_with = [&](std::vector<double> mean, std::vector<double> std) {
    net.normalize = FieldStatistics{std::move(mean), std::move(std)};
    return refusal(net, {DType::f32, {5}}, labels);
  };
  const auto changes = [](const std::string& column) {
    return "normalize changes the numbers that stand for the categories of column '" + column +
           "', which table_embedding takes | normalize: auto leaves them as they are; in lists, mean 0 and std 1 do";
  };
  CHECK(refused_with({9, 0, 8, 7, 0}, {2, 1, 3, 4, 1}) == "accepted");
  CHECK(refused_with({0}, {1}) == "accepted");
  CHECK(refused_with({0.5}, {1}) == changes("city"));
  CHECK(refused_with({0}, {0.5}) == changes("city"));
  CHECK(refused_with({9, 0, 8, 7, 0}, {2, 1, 3, 4, 2}) == changes("a kind"));
}
