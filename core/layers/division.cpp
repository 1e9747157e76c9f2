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
    divide_list(nodes, false);
    divide_shared(nodes);
    return divide_output(nodes);
  }

 private:
  void divide_list(std::vector<Node>& nodes, bool stay_whole) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      node.stays_whole = node.stays_whole || stay_whole;
      if (!node.children.empty()) {
        divide_children(node);
      } else if (node.stays_whole) {
        node.whole_because = "tensor: none";
      } else if (node.divisible.inside) {
        if (divides_units(node)) set(node, Division::inside);
      } else if (const std::optional<std::size_t> second = partner(nodes, i)) {
        if (!divides(node, node.output.back(), node.divisible.unit)) continue;
        set(node, Division::columns);
        for (std::size_t k = i + 1; k < *second; ++k) set(nodes[k], Division::keeps);
        set(nodes[*second], Division::rows);
        i = *second;
      } else if (node.divisible.columns || node.divisible.rows) {
        node.whole_because = "no layer to pair it with";
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

  // The layer that takes the features which layer `first` gives, if both may be divided.
  static std::optional<std::size_t> partner(const std::vector<Node>& nodes, std::size_t first) {
    if (!nodes[first].divisible.columns) return std::nullopt;
    for (std::size_t i = first + 1; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      if (node.stays_whole || !node.children.empty()) return std::nullopt;
      if (node.divisible.rows) return i;
      if (!node.divisible.keeps) return std::nullopt;
    }
    return std::nullopt;
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
    refuse(node,
           "has " + std::to_string(units) + " " + std::string(unit) + ", which the " + devices_text() +
               " do not divide",
           "the nearest that they divide: " + (below > 0 ? std::to_string(below) + " and " : "") +
               std::to_string(below + devices) + "; tensor: none beside the layer keeps it whole");
    return false;
  }

  std::string devices_text() const {
    return std::to_string(options_.devices) + " devices along '" + options_.name + "'";
  }

  void refuse(const Node& node, const std::string& message, std::string help) {
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

  // The last layer may give the loss a part of the classes on each device.
  AxisSet divide_output(std::vector<Node>& nodes) {
    Node* const last = last_layer(nodes);
    if (last == nullptr || !options_.divides_classes) return {};
    if (last->division == Division::whole && last->divisible.columns && !last->stays_whole) {
      if (last->output.back() < least_divided_classes) {
        last->whole_because = "fewer than " + std::to_string(least_divided_classes) + " classes";
        return {};
      }
      last->whole_because.clear();
      set(*last, Division::columns);
    }
    if (last->division != Division::columns) return {};
    last->gathers_output = false;
    return options_.axes;
  }

  // The layer that gives the output of the model, unless others are joined to it.
  static Node* last_layer(std::vector<Node>& nodes) {
    if (nodes.empty()) return nullptr;
    Node& last = nodes.back();
    if (last.children.empty()) return last.is_list() ? nullptr : &last;
    return last.is_list() ? last_layer(last.children) : nullptr;
  }

  const DivideOptions& options_;
  std::vector<Diagnostic>& errors_;
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
