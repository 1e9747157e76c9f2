#include "core/layers/division.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace pmaptrain::layers {
namespace {

class Divider {
 public:
  Divider(const DivideOptions& options, std::vector<Diagnostic>& errors) : options_(options), errors_(errors) {}

  AxisSet divide(std::vector<Node>& nodes) {
    output_ = options_.divides_classes ? output_layer(nodes) : nullptr;
    divide_list(nodes, false);
    divide_shared(nodes);
    return divide_output();
  }

 private:
  // The layer that gives the output of the model, if it may be divided by classes: such a layer is no second of a pair,
  // which would make all classes on each device.
  static Node* output_layer(std::vector<Node>& nodes) {
    if (nodes.empty()) return nullptr;
    Node& last = nodes.back();
    if (last.stays_whole) return nullptr;
    if (!last.children.empty()) return last.is_list() ? output_layer(last.children) : nullptr;
    const bool shares = !last.shared_name.empty();
    return shares || (last.divisible.columns && last.output.back() >= least_divided_classes) ? &last : nullptr;
  }

  // The layers of a list in order, and in their place those of plain lists inside of it: what these take and give need
  // not be whole.
  static void add_layers(std::vector<Node>& nodes, bool stay_whole, std::vector<Node*>& out) {
    for (Node& node : nodes) {
      node.stays_whole = node.stays_whole || stay_whole;
      if (node.is_list() && !node.remat) {
        add_layers(node.children, node.stays_whole, out);
      } else {
        out.push_back(&node);
      }
    }
  }

  void divide_list(std::vector<Node>& list, bool stay_whole) {
    std::vector<Node*> nodes;
    add_layers(list, stay_whole, nodes);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Node& node = *nodes[i];
      if (!node.children.empty()) {
        divide_children(node);
      } else if (node.stays_whole) {
        node.whole_because = "tensor: none";
      } else if (node.divisible.inside) {
        if (divides_units(node)) set(node, Division::inside);
      } else if (&node == output_) {
        continue;
      } else if (const Partner found = partner(nodes, i); found.second) {
        if (!divides(node, node.output.back(), node.divisible.unit)) continue;
        set(node, Division::columns);
        for (std::size_t k = i + 1; k < *found.second; ++k) set(*nodes[k], Division::keeps);
        set(*nodes[*found.second], Division::rows);
        i = *found.second;
      } else if (node.divisible.columns || node.divisible.rows) {
        node.whole_because =
            found.taker == nullptr ? "no layer to pair it with" : "'" + found.taker->name + "' takes its output whole";
      }
    }
  }

  // The lists of a residual connection or of branches are children of it, and have no layer beside them.
  void divide_children(Node& node) {
    if (node.is_list()) return divide_list(node.children, node.stays_whole);
    for (Node& child : node.children) {
      child.stays_whole = child.stays_whole || node.stays_whole;
      divide_children(child);
    }
  }

  // The layer that takes the features which layer `first` gives: the second of a pair, or one that takes all of them.
  struct Partner {
    std::optional<std::size_t> second = {};
    const Node* taker = nullptr;
  };
  Partner partner(const std::vector<Node*>& nodes, std::size_t first) const {
    for (std::size_t i = first + 1; i < nodes.size(); ++i) {
      const Node& node = *nodes[i];
      const bool may_be = !node.stays_whole && node.children.empty() && &node != output_;
      if (may_be && node.divisible.rows && nodes[first]->divisible.columns) return {i, &node};
      if (!may_be || !node.divisible.keeps) return {std::nullopt, &node};
    }
    return {};
  }

  bool divides_units(const Node& node) {
    if (node.divisible.units > 0 && !divides(node, node.divisible.units, node.divisible.unit)) return false;
    const std::int64_t shared = node.divisible.shared_units, devices = options_.devices;
    if (shared == 0 || shared % devices == 0 || devices % shared == 0) return true;
    refuse(node,
           "has kv_heads " + std::to_string(shared) + ", which neither are a multiple of the " + devices_text() +
               " nor divide their number",
           "another number of kv_heads or of devices; tensor: none beside the layer keeps it whole");
    return false;
  }

  bool divides(const Node& node, std::int64_t units, std::string_view unit) {
    const std::int64_t devices = options_.devices, below = units / devices * devices;
    if (below == units) return true;
    refuse(
        node,
        "has " + std::to_string(units) + " " + std::string(unit) + ", which the " + devices_text() + " do not divide",
        "the nearest that they divide: " + (below > 0 ? std::to_string(below) + " and " : "") +
            std::to_string(below + devices) + "; tensor: none beside the layer keeps it whole");
    return false;
  }

  std::string devices_text() const {
    return std::to_string(options_.devices) + " devices along '" + options_.name + "'";
  }

  // Once for all times of a `repeat`.
  void refuse(const Node& node, const std::string& message, std::string help) {
    const auto is_told = [&](const Diagnostic& error) {
      return error.place.line == node.place.line && error.place.column == node.place.column;
    };
    if (std::any_of(errors_.begin(), errors_.end(), is_told)) return;
    errors_.push_back({"config", node.place, node.name + " " + message, std::move(help), {}});
  }

  void set(Node& node, Division as) {
    node.division = as;
    node.division_axes = options_.axes;
    for (Parameter& parameter : node.parameters) {
      divide_parameter(parameter, as, node.divisible.shared_units > 0);
    }
  }

  void divide_parameter(Parameter& parameter, Division as, bool may_share) const {
    std::optional<std::size_t> dim;
    if (as != Division::rows) dim = parameter.cut.columns;
    if (as != Division::columns && !dim) dim = parameter.cut.rows;
    const bool shared = dim && may_share && parameter.shape[*dim] < options_.devices;
    if (shared || (!dim && parameter.cut.by_parts)) parameter.read_along = options_.axes;
    if (!dim || shared) return;
    parameter.divided.resize(*dim + 1);
    parameter.divided[*dim] = options_.axes.list();
  }

  // A layer that reads the divided parameter of another one gives the columns of its part.
  void divide_shared(std::vector<Node>& nodes) {
    std::map<std::string, const Parameter*> divided;
    for_each_node(nodes, [&](const Node& node) {
      for (const Parameter& parameter : node.parameters) {
        if (!parameter.divided.empty()) divided[parameter.name] = &parameter;
      }
    });
    for_each_node(nodes, [&](Node& node) {
      if (node.shared_name.empty()) return;
      if (!divided.contains(node.shared_name)) {
        node.whole_because = "its table is whole";
      } else if (!node.stays_whole) {
        set(node, Division::columns);
        node.gathers_output = true;
      } else {
        refuse(node, "takes " + node.shared_name + ", which the " + devices_text() + " divide, and tensor: none",
               "write tensor: none beside the layer of the table too, or leave it out here");
      }
    });
  }

  // Each device may give the loss some of the classes, with padding where their number does not divide.
  AxisSet divide_output() {
    if (output_ == nullptr) return {};
    if (output_->shared_name.empty()) set(*output_, Division::columns);
    output_->gathers_output = false;
    return output_->division == Division::columns ? options_.axes : AxisSet();
  }

  const DivideOptions& options_;
  std::vector<Diagnostic>& errors_;
  Node* output_ = nullptr;
};

}  // namespace

AxisSet divide_layers(std::vector<Node>& nodes, const DivideOptions& options, std::vector<Diagnostic>& errors) {
  return options.devices > 1 ? Divider(options, errors).divide(nodes) : AxisSet();
}

bool any_is_divided(const std::vector<Node>& nodes) {
  bool any = false;
  for_each_node(nodes, [&](const Node& node) { any = any || node.division != Division::whole; });
  return any;
}

}  // namespace pmaptrain::layers
