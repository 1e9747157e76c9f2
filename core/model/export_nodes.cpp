// Nodes of ONNX for the nodes of a model.
#include "core/model/layers.h"
#include "core/model/layout.h"

namespace pmaptrain::model {

onnx::Value export_in_order(onnx::Graph& graph, std::span<const Node> nodes,
                            std::span<const std::span<const std::byte>> parameters, const std::string& prefix,
                            onnx::Value x) {
  for (const Node& node : nodes) {
    if (node.is_list()) {
      x = export_in_order(graph, node.children, parameters, prefix, std::move(x));
    } else {
      graph.name_after(prefix + node.name);
      x = node.to_onnx({graph, node, parameters, prefix}, x);
    }
  }
  return x;
}

std::string OnnxCall::parameter(std::size_t index) const { return parameter(index, node.parameters[index].shape); }

std::string OnnxCall::parameter(std::size_t index, Shape shape) const {
  const Parameter& parameter = node.parameters[index];
  return graph.initializer(parameter.name.substr(node.name.size() + 1), std::move(shape),
                           parameters[node.first_parameter + index]);
}

std::string OnnxCall::torch_parameter(std::size_t index) const {
  const Parameter& parameter = node.parameters[index];
  const StoredParameter order = stored(parameter, spec::ParameterLayout::flax, true);
  return graph.initializer(parameter.name.substr(node.name.size() + 1), order.shape,
                           to_stored(order, parameters[node.first_parameter + index], sizeof(float)));
}

}  // namespace pmaptrain::model
