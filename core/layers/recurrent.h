// Recurrent layers over the positions of a sequence, with the cells of Flax: OptimizedLSTMCell and GRUCell.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {

// Which positions a recurrent layer gives.
enum class Returned { all, last };
constexpr std::array<declare::Word<Returned>, 2> words_of(declare::Tag<Returned>) {
  return {{{"all", Returned::all}, {"last", Returned::last}}};
}

// The array of PyTorch in which a bias is, the one that is added to it, and its place there.
struct TorchBias {
  std::string_view whole, added;
  std::int64_t part;
};

// The inputs i, f, g, o have kernels without, the states kernels with a bias.
struct LstmCell {
  static constexpr std::string_view path = "lstm",
                                    meaning =
                                        "A long short-term memory over the positions of a sequence (T, C): (T, F), or "
                                        "(F) with return: last. Parameters: ii.kernel, if.kernel, ig.kernel and "
                                        "io.kernel (C, F), hi.kernel, hf.kernel, hg.kernel and ho.kernel (F, F), and "
                                        "hi.bias, hf.bias, hg.bias and ho.bias (F).",
                                    example = "- lstm: 128";
  static constexpr std::array<std::string_view, 4> gates = {"i", "f", "g", "o"};
  // What is added to a gate before its sigmoid so that a state of zero stays zero.
  static constexpr std::size_t held_gate = 0;
  static constexpr double held_by = -1e30;
  // Those that are added to the products of the inputs, in the order of the gates, then those of the cell itself.
  // PyTorch has all in one array, to which it adds another one.
  static constexpr std::array<std::string_view, 4> biases = {"hi", "hf", "hg", "ho"};
  static constexpr std::array<TorchBias, 4> torch_biases = {
      {{"bias_hh", "bias_ih", 0}, {"bias_hh", "bias_ih", 1}, {"bias_hh", "bias_ih", 2}, {"bias_hh", "bias_ih", 3}}};

  // `inputs` are the products of the inputs with the first biases, `own` the others, `kernel` is that of the state.
  static Value run(Builder& b, Value inputs, Value kernel, std::span<const Value>, bool reverse) {
    return b.emit_all(ops::Lstm{reverse}, std::vector{inputs, kernel}).front();
  }
};

// The inputs r, z, n have kernels with a bias, of the states only that of n has one.
struct GruCell {
  static constexpr std::string_view
      path = "gru",
      meaning =
          "A gated recurrent unit over the positions of a sequence (T, C): (T, F), or (F) "
          "with return: last. Parameters: ir.kernel, iz.kernel and in.kernel (C, F), "
          "hr.kernel, hz.kernel and hn.kernel (F, F), and ir.bias, iz.bias, in.bias and "
          "hn.bias (F).",
      example = "- gru: 128";
  static constexpr std::array<std::string_view, 3> gates = {"r", "z", "n"};
  static constexpr std::size_t held_gate = 1;
  static constexpr double held_by = 1e30;
  static constexpr std::array<std::string_view, 4> biases = {"ir", "iz", "in", "hn"};
  static constexpr std::array<TorchBias, 4> torch_biases = {
      {{"bias_ih", "bias_hh", 0}, {"bias_ih", "bias_hh", 1}, {"bias_ih", "", 2}, {"bias_hh", "", 2}}};

  static Value run(Builder& b, Value inputs, Value kernel, std::span<const Value> own, bool reverse) {
    const Value bias = cast(b, own.front(), b.type(inputs).dtype);
    return b.emit_all(ops::Gru{reverse}, std::vector{inputs, kernel, bias}).front();
  }
};

template <class Cell>
struct Recurrent {
  std::int64_t features = 1;
  Returned returned = Returned::all;
  bool reverse = false, bidirectional = false;

  static Declaration<Recurrent> declaration() {
    return declare::kind<Recurrent>(
        {.path = std::string(Cell::path), .meaning = Cell::meaning, .example = Cell::example},
        field(&Recurrent::features, {.path = "features",
                                     .need = Need::required,
                                     .low = 1,
                                     .high = 65536,
                                     .shorthand = true,
                                     .meaning = "F, the number of features of the state, and of the output.",
                                     .example = "features: 128"}),
        field(&Recurrent::returned,
              {.path = "return",
               .meaning = "The positions that it gives: all, or the last that it meets, which has met all others.",
               .example = "return: last"}),
        field(&Recurrent::reverse,
              {.path = "reverse",
               .meaning = "Whether it begins at the last position. The output keeps the order of the input.",
               .example = "reverse: true"}),
        field(&Recurrent::bidirectional,
              {.path = "bidirectional",
               .meaning = "Whether a second one begins at the last position: 2F features, of which it gives the second "
                          "half. The names of parameters then begin with forward_rnn and backward_rnn.",
               .example = "bidirectional: true"}));
  }
  static constexpr bool reads_before = true, takes_lengths = true;
  bool looks_ahead() const { return reverse || bidirectional || returned == Returned::last; }

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() != 2) {
      return in.refuse(
          "takes sequences [T, C]; its input is " + in.shown(),
          in.shape.size() < 2 ? "put it after embedding, or after reshape: [T, C]" : "add reshape: [T, C] before it");
    }
    if (reverse && bidirectional) {
      return in.refuse("has reverse and bidirectional", "bidirectional has both directions; leave out reverse");
    }
    Node layer = in.start();
    layer.image = {};
    layer.output.back() = features * (bidirectional ? 2 : 1);
    if (returned == Returned::last) {
      layer.output = {layer.output.back()};
      layer.lengths.reset();
    }
    if (bidirectional) {
      add_parameters(in, "forward_rnn.", "", layer);
      add_parameters(in, "backward_rnn.", "_reverse", layer);
    } else {
      add_parameters(in, "", "", layer);
    }
    layer.apply = [of = *this](const LayerCall& call, Value x) {
      if (!of.bidirectional) return of.direction(call, x, 0, of.reverse);
      const Value forward = of.direction(call, x, 0, false), backward = of.direction(call, x, 1, true);
      const std::int64_t last = std::ssize(call.b.type(forward).shape) - 1;
      return call.b.emit(ops::Concatenate{last}, {forward, backward});
    };
    return layer;
  }

 private:
  static constexpr std::size_t gates = Cell::gates.size(), parameters = 2 * gates + Cell::biases.size();

  // Kernels of the inputs, kernels of the states, biases: those of all gates before those of the cell itself.
  // `prefix` and `suffix` tell the direction in names here and in PyTorch, which has one array for all gates.
  void add_parameters(const LayerInput& in, const std::string& prefix, const std::string& suffix, Node& layer) const {
    const std::int64_t channels = in.shape.back();
    const auto part_of = [&](Parameter parameter, std::string_view whole, std::string_view added, std::int64_t part) {
      const auto full = [&](std::string_view array) { return in.name + "." + std::string(array) + "_l0" + suffix; };
      parameter.torch.whole = full(whole);
      if (!added.empty()) parameter.torch.added = full(added);
      parameter.torch.part = part;
      parameter.torch.parts = std::ssize(Cell::gates);
      layer.parameters.push_back(std::move(parameter));
    };
    const auto add = [&](const std::string& source, std::int64_t rows, const KernelInit& init) {
      for (std::size_t i = 0; i < gates; ++i) {
        const std::string name = prefix + source + std::string(Cell::gates[i]) + ".kernel";
        part_of(in.kernel({rows, features}, init, {rows, features}, {1, 0}, name), "weight_" + source + "h", "",
                static_cast<std::int64_t>(i));
      }
    };
    add("i", channels, {});
    add("h", features, OrthogonalInit{});
    for (std::size_t i = 0; i < Cell::biases.size(); ++i) {
      const TorchBias& torch = Cell::torch_biases[i];
      part_of(in.parameter(prefix + std::string(Cell::biases[i]) + ".bias", {features}, zeros), torch.whole,
              torch.added, torch.part);
    }
  }

  // The parameters of one direction: its states at the positions that are given.
  Value direction(const LayerCall& call, Value x, std::size_t number, bool backward) const {
    Builder& b = call.b;
    const std::span<const Value> own = call.parameters.subspan(number * parameters, parameters);
    const auto joined = [&](std::size_t first, std::int64_t dim) {
      return b.emit(ops::Concatenate{dim}, own.subspan(first, gates));
    };
    const Value kernel = joined(0, 1), bias = joined(2 * gates, 0);
    Value inputs = product_of_rows(b, x, kernel, b.type(kernel).shape, bias);
    const std::optional<Value> lengths = call.lengths();
    if (backward && lengths) inputs = held_outside(b, *lengths, inputs);
    const Value states = cast(b, joined(gates, 1), b.type(x).dtype);
    const Value all = Cell::run(b, inputs, states, own.subspan(3 * gates), backward);
    if (returned == Returned::all) return all;
    if (lengths && !backward) return last_inside(b, *lengths, all);
    return at_position(b, all, backward ? 0 : b.type(all).shape[1] - 1);
  }

  // The products of the inputs [B,T,gates · F], by which a state that begins in padding is zero at the last position of
  // a sequence.
  Value held_outside(Builder& b, Value lengths, Value inputs) const {
    const Type type = b.type(inputs);
    std::vector<double> held(static_cast<std::size_t>(type.shape.back()), 0.0);
    std::fill_n(held.begin() + static_cast<std::ptrdiff_t>(Cell::held_gate) * features, features, Cell::held_by);
    const Value added = over_channels(b, vector_constant(b, type.dtype, held), type.shape);
    const Value inside = is_inside(b, lengths, type.shape);
    return select(b, inside, inputs, add(b, inputs, added));
  }
};

using Lstm = Recurrent<LstmCell>;
using Gru = Recurrent<GruCell>;

}  // namespace pmaptrain::layers
