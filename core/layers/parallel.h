// Lists of layers that begin at the same value and are joined at their ends: U-Nets, inception blocks, gates.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/layers/join.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

struct Parallel {
  std::vector<declare::Named<std::vector<Layer>>> branches;  // an empty one is the identity
  Join join = Join::add;

  static Declaration<Parallel> declaration() {
    Key branch = layers_key("The layers of a branch. An empty list is the identity.", "deep: [{dense: 64}, relu]");
    branch.need = Need::optional;
    branch.fallback = "[]";
    return declare::kind<Parallel>(
        {.path = "parallel",
         .meaning = "Branches: lists of layers that begin at the same value, and whose outputs are joined. Parameters "
                    "are named parallel_0.deep.conv_0.kernel, in a list of branches parallel_0.1.conv_0.kernel.",
         .example = "- parallel:\n    branches: {skip: [], deep: [{conv: {features: 32, kernel_size: [3, 3]}}, relu]}\n"
                    "    join: concat"},
        declare::entries(&Parallel::branches,
                         {.path = "branches",
                          .need = Need::required,
                          .meaning = "The branches by name, or a list of them, which are then named 0, 1, ...",
                          .example = "branches: {skip: [], deep: [{dense: 64}, relu]}",
                          .item = "branch"},
                         branch),
        field(&Parallel::join,
              {.path = "join",
               .need = Need::required,
               .meaning = "How the outputs are joined. concat: one after another along the last dimension. add, "
                          "multiply: element by element; an output [C] is repeated over another one [..., C].",
               .example = "join: concat"}));
  }
  std::vector<Inside> inside() const {
    std::vector<Inside> all;
    for (const auto& branch : branches) all.push_back({"." + branch.name + ".", &branch.value});
    return all;
  }

  std::optional<Node> plan(const LayerInput& in) const {
    Node node = in.start();
    for (const auto& branch : branches) {
      std::optional<Node> planned = plan_as_list(branch.value, in.name + "." + branch.name, in, in.activation());
      if (!planned) return std::nullopt;
      if (planned->compute == DType::i32) {
        return in.refuse("joins numbers, and its branch " + branch.name + " gives tokens",
                         "begin each branch with embedding, or put parallel behind one");
      }
      node.children.push_back(std::move(*planned));
    }
    std::optional<Shape> output = joined_shape(join, node.children);
    if (!output) return refuse_shapes(in, node.children);
    if (!joined_lengths(node.children)) return in.refuse(other_lengths, other_lengths_help);
    join_children(node, join, std::move(*output));
    return node;
  }

 private:
  std::optional<Node> refuse_shapes(const LayerInput& in, const std::vector<Node>& planned) const {
    std::string shapes;
    for (std::size_t i = 0; i < planned.size(); ++i) {
      shapes += (i == 0 ? "" : ", ") + branches[i].name + ": " + in.shown(planned[i].output);
    }
    if (join == Join::concat) {
      return in.refuse("has branches that cannot be joined along the last dimension: " + shapes,
                       "all other dimensions are equal: in images keep height and width, by padding: SAME without "
                       "strides, or use the same strides in each branch");
    }
    const std::string verb = join == Join::add ? "added" : "multiplied";
    std::string help =
        "all have one shape, or are one value for each channel, [C] beside [..., C]: end the branches "
        "with layers of as many features";
    if (joined_shape(Join::concat, planned)) help += ", or write join: concat";
    return in.refuse("has branches that cannot be " + verb + ": " + shapes, std::move(help));
  }
};

}  // namespace pmaptrain::layers
