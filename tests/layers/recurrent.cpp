// Recurrent layers: their parameters, their directions, and what they refuse.
#include "core/layers/recurrent.h"

#include <cmath>

#include "core/layers/pooling.h"
#include "core/layers/positions.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Field five_positions{DType::f64, {5, 3}};

// One layer in f64 with the pool that a classifier needs behind sequences; its parameters are added to `feed`.
template <class Kind>
model::Model recurrent_model(const Kind& kind, Feed& feed) {
  std::vector<layers::Layer> list{layer("rnn", kind)};
  if (kind.returned == layers::Returned::all) list.push_back(layer("pool", layers::GlobalAvgPool{}));
  model::Model model = model::make_model(network(std::move(list)), five_positions, labels, DType::f64);
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 3, DType::f64), DType::f64);
  }
  return model;
}

Numbers drawn_inputs(std::size_t count) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<double>(3 * i + 1));
  return values;
}

Numbers reversed(const Numbers& x, std::size_t positions) {
  const std::size_t features = x.size() / positions;
  Numbers result;
  for (std::size_t t = positions; t-- > 0;) {
    result.insert(result.end(), x.begin() + static_cast<std::ptrdiff_t>(t * features),
                  x.begin() + static_cast<std::ptrdiff_t>((t + 1) * features));
  }
  return result;
}

void check_states(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 1e-12);
}

std::vector<std::string> recurrent_names(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) names.push_back(parameter.name);
  return names;
}

template <class Kind>
void check_directions() {
  const Numbers x = drawn_inputs(15);
  for (const layers::Returned returned : {layers::Returned::all, layers::Returned::last}) {
    Feed feed;
    const model::Model forwards = recurrent_model(Kind{2, returned}, feed);
    CHECK(forwards.layers.front().output == (returned == layers::Returned::all ? Shape{5, 2} : Shape{2}));
    const Numbers ahead = forward(forwards, x, feed).at("y");
    const model::Model backwards = recurrent_model(Kind{2, returned, true}, feed);
    const Numbers back = forward(backwards, x, feed).at("y");
    check_states(back, forward(forwards, reversed(x, 5), feed).at("y"));

    Feed both;
    const model::Model two = recurrent_model(Kind{2, returned, false, true}, both);
    CHECK(two.layers.front().output.back() == 4);
    for (const auto& [name, values] : feed) {
      const std::string field = name.substr(name.find('.'));
      both["rnn.forward_rnn" + field] = both["rnn.backward_rnn" + field] = values;
    }
    Numbers expected = ahead;
    expected.insert(expected.end(), back.begin(), back.end());
    check_states(forward(two, x, both).at("y"), expected);
  }
}

}  // namespace

TEST_CASE("a recurrent layer that is reversed meets the positions from the last one on, and both directions join",
          "[layers]") {
  check_directions<layers::Lstm>();
  check_directions<layers::Gru>();
}

TEST_CASE("the last position of a recurrent layer is the end of what it gives", "[layers]") {
  Feed feed;
  layers::Lstm lstm{4};
  const model::Model all =
      model::make_model(network({layer("rnn", lstm), layer("last", layers::Take{{.is_last = true}})}), five_positions,
                        labels, DType::f64);
  lstm.returned = layers::Returned::last;
  const model::Model last = recurrent_model(lstm, feed);
  check_states(forward(last, drawn_inputs(30), feed).at("y"), forward(all, drawn_inputs(30), feed).at("y"));
}

TEST_CASE("the parameters of recurrent layers have Flax's names, shapes and first values", "[layers]") {
  Feed feed;
  const model::Model lstm = recurrent_model(layers::Lstm{4}, feed);
  CHECK(recurrent_names(lstm) == std::vector<std::string>{"rnn.ii.kernel", "rnn.if.kernel", "rnn.ig.kernel",
                                                          "rnn.io.kernel", "rnn.hi.kernel", "rnn.hf.kernel",
                                                          "rnn.hg.kernel", "rnn.ho.kernel", "rnn.hi.bias",
                                                          "rnn.hf.bias", "rnn.hg.bias", "rnn.ho.bias"});
  CHECK(lstm.parameters[0].shape == Shape{3, 4});
  CHECK(lstm.parameters[0].initializer.scale == lecun_scale(3));
  CHECK(lstm.parameters[4].shape == Shape{4, 4});
  CHECK(lstm.parameters[4].initializer.kind == layers::InitializerKind::orthogonal);
  CHECK(lstm.parameters[8].shape == Shape{4});
  CHECK_FALSE(lstm.parameters[8].initializer.draws());
  const model::Model gru = recurrent_model(layers::Gru{4, layers::Returned::last, false, true}, feed);
  REQUIRE(gru.parameters.size() == 20);
  CHECK(gru.parameters[0].name == "rnn.forward_rnn.ir.kernel");
  CHECK(gru.parameters[9].name == "rnn.forward_rnn.hn.bias");
  CHECK(gru.parameters[10].name == "rnn.backward_rnn.ir.kernel");
}

TEST_CASE("recurrent layers refuse other inputs than sequences, and two ways to say a direction", "[layers]") {
  const auto refused = [](const layers::Lstm& lstm, Shape input) {
    return refusal(network({layer("lstm_0", lstm)}), {DType::f32, std::move(input)}, labels);
  };
  CHECK(refused({4}, {7}) ==
        "lstm_0 takes sequences [T, C]; its input is f32[7] | put it after embedding, or after reshape: [T, C]");
  CHECK(refused({4}, {4, 5, 2}) ==
        "lstm_0 takes sequences [T, C]; its input is f32[4,5,2] | add reshape: [T, C] before it");
  CHECK(refused({4, layers::Returned::last, true, true}, {7, 2}) ==
        "lstm_0 has reverse and bidirectional | bidirectional has both directions; leave out reverse");
}

TEST_CASE("a recurrent layer sees positions ahead where it is reversed or gives the last one", "[layers]") {
  const auto looks_ahead = [](const layers::Gru& gru) { return layers::LayerKind(gru)->looks_ahead(); };
  CHECK_FALSE(looks_ahead({4}));
  CHECK(looks_ahead({4, layers::Returned::last}));
  CHECK(looks_ahead({4, layers::Returned::all, true}));
  CHECK(looks_ahead({4, layers::Returned::all, false, true}));
  CHECK(layers::LayerKind(layers::Gru{4})->reads_before());
  CHECK_FALSE(layers::LayerKind(layers::GlobalAvgPool{})->reads_before());
}
