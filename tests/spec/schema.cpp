// The schema against the table of keys. What it accepts is held to what pmaptrain does by scripts/check_schema.py, with
// an independent validator.
#include <nlohmann/json.hpp>

#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;
using nlohmann::json;

namespace {

// The schema of a key: the first place below `schema` where "properties" has its name, whatever stands between.
const json* property(const json& root, const json& schema, const std::string& name) {
  if (schema.contains("properties") && schema["properties"].contains(name)) return &schema["properties"][name];
  if (name == "*" && schema.contains("propertyNames")) return &schema["additionalProperties"];
  if (schema.contains("$ref")) {
    return property(root, root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1))), name);
  }
  for (const char* inside : {"anyOf", "items"}) {
    if (!schema.contains(inside)) continue;
    if (schema[inside].is_object()) return property(root, schema[inside], name);
    for (const json& one : schema[inside]) {
      if (const json* found = property(root, one, name)) return found;
    }
  }
  return nullptr;
}

const json* property_at(const json& schema, std::string_view path) {
  const json* at = &schema;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = property(schema, *at, std::string(path.substr(0, dot)));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

}  // namespace

TEST_CASE("the schema has every key with its description in the table", "[spec]") {
  const json schema = json::parse(spec::json_schema());
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["title"] == spec::schema_title);
  CHECK(schema["required"] == json{"data", "model", "loss", "optimizer", "train"});
  CHECK(schema["additionalProperties"] == false);
  for (const spec::Key& key : spec::keys()) {
    INFO(key.path);
    const json* const found = property_at(schema, key.path);
    REQUIRE(found != nullptr);
    const auto description = (*found)["description"].get<std::string>();
    CHECK(description.starts_with(key.meaning));
    CHECK(description.ends_with(key.example));
    CHECK(found->contains("default") == !key.fallback.empty());
    if (key.need != spec::Need::alternative) {
      CHECK(description.find("Value: " + spec::takes(key) + "; ") != std::string::npos);
    }
  }
}

TEST_CASE("the schema's defaults have the types of their keys", "[spec]") {
  const json schema = json::parse(spec::json_schema());
  CHECK((*property_at(schema, "mesh.axes"))["default"] == json{{"devices", 1}});
  CHECK((*property_at(schema, "mesh.workers"))["default"] == "auto");
  CHECK((*property_at(schema, "data.shuffle"))["default"] == true);
  CHECK((*property_at(schema, "model.layers.conv.strides"))["default"] == json{1, 1});
  CHECK((*property_at(schema, "optimizer.sgd.momentum"))["default"].is_number_float());
  CHECK((*property_at(schema, "optimizer.adam.eps"))["default"].get<double>() == Approx(1e-8));
  CHECK((*property_at(schema, "train.log_every"))["default"] == "100 steps");
}

TEST_CASE("quotes do not change the words that a key accepts", "[spec]") {
  CHECK(errors_of("mesh: {axes: {devices: 2}, workers: \"auto\"}\n" + base).empty());
  CHECK(errors_of("mesh: {axes: {devices: 2}, workers: \"2\"}\n" + base) ==
        "c.yaml:1:37: error: workers takes an integer from 1 to 65,536 or 'auto', not the text \"2\"\n"
        "    1 | mesh: {axes: {devices: 2}, workers: \"2\"}\n"
        "      |                                     ^~~\n"
        "  help: quoted values are text: remove the quotes, 2\n");
}

TEST_CASE("a count has an exponent that the schema's pattern knows", "[spec]") {
  CHECK(errors_of(base_with("train: {duration: 100e-2 steps}")) ==
        "c.yaml:1:19: error: duration '100e-2 steps' has an exponent that is not from 0 to 12\n"
        "    1 | train: {duration: 100e-2 steps}\n"
        "      |                   ^~~~~~~~~~~~\n"
        "  help: write 1 step\n");
  CHECK(errors_of(base_with("train: {duration: 0.00000000000001e15}")) ==
        "c.yaml:1:19: error: duration '0.00000000000001e15' has an exponent that is not from 0 to 12\n"
        "    1 | train: {duration: 0.00000000000001e15}\n"
        "      |                   ^~~~~~~~~~~~~~~~~~~\n"
        "  help: write 10 steps\n");
  for (const char* count : {"1e3", "2.50e+01", ".5e1 steps", "1e012", "10e11 steps"}) {
    INFO(count);
    CHECK(errors_of(base_with(std::string("train: {duration: ") + count + "}")).empty());
  }
}

TEST_CASE("an alternative that needs a value may not be null", "[spec]") {
  CHECK(errors_of("data: {source: fashion_mnist, batch_size: 128}\n"
                  "model: {layers: [flatten, {dense: 10}], init: {from: null}}\n"
                  "loss: softmax_cross_entropy\n"
                  "optimizer: {adam: {}, learning_rate: 0.001}\n"
                  "train: {duration: 1 step}\n") ==
        "c.yaml:2:48: error: path is missing in from\n"
        "    2 | model: {layers: [flatten, {dense: 10}], init: {from: null}}\n"
        "      |                                                ^~~~\n"
        "  help: add it, for example:\n"
        "        path: runs/cnn\n");
}
