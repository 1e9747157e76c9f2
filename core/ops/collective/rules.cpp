#include "core/ops/support/rules.h"

#include <bit>

#include "core/base/text.h"
#include "core/ops/collective/collective.h"

namespace pmaptrain::ops {
namespace {

std::string axes_there_are(const Mesh& mesh) {
  return mesh.axes().empty() ? "the mesh has no axes" : "the mesh has " + mesh.to_string(mesh.all());
}

// Rule 2: the axes exist and the operand varies over them.
void check_axes(std::string_view op, AxisSet axes, const InferContext& context, bool single) {
  if (axes.empty()) {
    throw TypeError(2, std::string(op) + " names no axis", axes_there_are(context.mesh) + "; say axes={...}");
  }
  if (!context.mesh.all().contains(axes)) {
    throw TypeError(2, std::string(op) + " works over an axis that the mesh does not have",
                    axes_there_are(context.mesh));
  }
  if (single && std::popcount(axes.bits()) != 1) {
    throw TypeError(2, std::string(op) + " works over one axis; it was given " + context.mesh.to_string(axes),
                    "write one equation for each axis");
  }
}

void check_collective(std::string_view op, AxisSet axes, const InferContext& context, bool single) {
  check_axes(op, axes, context, single);
  for (const Type& operand : context.operands) {
    const AxisSet missing = axes - operand.varying;
    if (missing.empty()) continue;
    throw TypeError(2,
                    std::string(op) + " works over " + context.mesh.to_string(axes) + ", but its operand " +
                        to_string(operand, context.mesh) + " does not vary over " + context.mesh.to_string(missing),
                    "a value that is the same on every device needs no reduction; pvary would sum it once a device");
  }
}

// A sum over devices is of a type that sums are computed in.
void check_sums(std::string_view op, const Type& operand) {
  if (operand.dtype != DType::bf16) return;
  throw TypeError(6, std::string(op) + " of bf16: a sum over devices is not computed in bf16",
                  "cast the operand to f32 first, and the sum back where it is to be bf16");
}

std::vector<Type> reduced(std::string_view op, AxisSet axes, const InferContext& context) {
  check_collective(op, axes, context, false);
  if (context.operands.empty()) throw TypeError(6, std::string(op) + " needs an operand");
  std::vector<Type> results;
  for (const Type& operand : context.operands) {
    if (operand.dtype == DType::boolean) throw TypeError(6, std::string(op) + " of bool has no meaning; cast it first");
    results.push_back({operand.dtype, operand.shape, operand.varying - axes});
  }
  return results;
}

void check_dim(std::string_view op, std::int64_t dim, const Type& operand) {
  if (dim >= 0 && dim < static_cast<std::int64_t>(operand.shape.size())) return;
  throw TypeError(
      6, std::string(op) + ": dim=" + std::to_string(dim) + " is not a dimension of " + to_string(operand.shape));
}

// What the shared-memory collectives do: each operand is read once by the other devices of the group, of which a group
// of one device has none. Axes of size 1 carry nothing.
Cost collective_cost(Communication kind, AxisSet axes, const Mesh& mesh, std::span<const Type> operands) {
  double flops = 0, copies = 1;  // for each element, and of an operand in the result
  switch (kind) {
    case Communication::sum:
    case Communication::max:
    case Communication::min:
    case Communication::scatter: flops = 1; break;
    case Communication::gather: copies = static_cast<double>(mesh.group_size(axes)); break;
    case Communication::all_to_all:
    case Communication::permute: break;
    case Communication::none:
    case Communication::slice:
    case Communication::coordinate: return {};
  }
  Cost cost;
  double wire = 0;
  for (const Type& operand : operands) {
    wire += static_cast<double>(bytes(operand));
    cost.flops += flops * static_cast<double>(numel(operand));
  }
  cost.bytes = wire + copies * wire;
  AxisSet crossed;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const int number = static_cast<int>(axis);
    if (axes.contains(number) && mesh.axes()[axis].size > 1) crossed = crossed | AxisSet::of(number);
  }
  if (!crossed.empty()) cost.wire.emplace_back(crossed, wire);
  return cost;
}

void check_divides(std::string_view op, std::int64_t dim, const Type& operand, AxisSet axes, const Mesh& mesh) {
  const std::int64_t members = mesh.group_size(axes);
  if (operand.shape[static_cast<std::size_t>(dim)] % members == 0) return;
  throw TypeError(6, std::string(op) + ": dimension " + std::to_string(dim) + " of " + to_string(operand.shape) +
                         " does not divide over the " + std::to_string(members) + " members of " +
                         mesh.to_string(axes));
}

Type gathered(std::string_view op, AxisSet axes, std::int64_t dim, const InferContext& context) {
  expect_operands(op, context.operands, 1);
  check_collective(op, axes, context, false);
  Type type = context.operands.front();
  check_dim(op, dim, type);
  type.shape[static_cast<std::size_t>(dim)] *= context.mesh.group_size(axes);
  return type;
}

}  // namespace

std::vector<Type> Pvary::infer(const InferContext& context) const {
  check_axes(name, axes, context, false);
  expect_operands(name, context.operands, 1);
  Type type = context.operands.front();
  if (!(type.varying & axes).empty()) {
    throw TypeError(3, "pvary over " + context.mesh.to_string(axes) + ": its operand " + to_string(type, context.mesh) +
                           " varies over " + context.mesh.to_string(type.varying & axes) + " already");
  }
  type.varying = type.varying | axes;
  return {type};
}

Cotangents Pvary::derivative(VjpContext& context) const {
  return {context.b.emit(Psum{axes}, {*context.cotangents.front()})};
}

std::vector<Type> Psum::infer(const InferContext& context) const {
  for (const Type& operand : context.operands) check_sums(name, operand);
  return reduced(name, axes, context);
}
std::vector<Type> Pmax::infer(const InferContext& context) const { return reduced(name, axes, context); }
std::vector<Type> Pmin::infer(const InferContext& context) const { return reduced(name, axes, context); }

Cost Psum::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}
Cost Pmax::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}
Cost Pmin::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}

Cotangents Psum::derivative(VjpContext& context) const {
  Cotangents cotangents;
  for (const auto& cotangent : context.cotangents) {
    cotangents.push_back(cotangent ? std::optional(context.b.emit(Pvary{axes}, {*cotangent})) : std::nullopt);
  }
  return cotangents;
}

std::vector<Type> AllGather::infer(const InferContext& context) const { return {gathered(name, axes, dim, context)}; }

Cost AllGather::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}

Cotangents AllGather::derivative(VjpContext& context) const {
  return {context.b.emit(PsumScatter{axes, dim}, {*context.cotangents.front()})};
}

std::vector<Type> AllGatherInvariant::infer(const InferContext& context) const {
  Type type = gathered(name, axes, dim, context);
  type.varying = type.varying - axes;
  return {type};
}

Cost AllGatherInvariant::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}

Cotangents AllGatherInvariant::derivative(VjpContext& context) const {
  return {context.b.emit(AllSlice{axes, dim}, {*context.cotangents.front()})};
}

std::vector<Type> AllSlice::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  check_axes(name, axes, context, false);
  Type type = context.operands.front();
  if (!(type.varying & axes).empty()) {
    throw TypeError(3,
                    "all_slice over " + context.mesh.to_string(axes) + ": its operand " +
                        to_string(type, context.mesh) + " varies over " + context.mesh.to_string(type.varying & axes) +
                        ", so a device has no part of one array",
                    "all_gather_invariant or psum makes a value that is the same along an axis");
  }
  check_dim(name, dim, type);
  check_divides(name, dim, type, axes, context.mesh);
  type.shape[static_cast<std::size_t>(dim)] /= context.mesh.group_size(axes);
  type.varying = type.varying | axes;
  return {type};
}

Cost AllSlice::cost(const Mesh&, std::span<const Type>, std::span<const Type> results) const {
  return {0, 2 * static_cast<double>(bytes(results.front())), {}};
}

Cotangents AllSlice::derivative(VjpContext& context) const {
  return {context.b.emit(AllGatherInvariant{axes, dim}, {*context.cotangents.front()})};
}

std::vector<Type> AllToAll::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  check_collective(name, axes, context, true);
  Type type = context.operands.front();
  expect_rank(name, type.shape);
  check_dim(name, split, type);
  check_dim(name, concat, type);
  const std::int64_t members = context.mesh.group_size(axes);
  check_divides(name, split, type, axes, context.mesh);
  type.shape[static_cast<std::size_t>(split)] /= members;
  type.shape[static_cast<std::size_t>(concat)] *= members;
  return {type};
}

Cost AllToAll::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}

Cotangents AllToAll::derivative(VjpContext& context) const {
  return {context.b.emit(AllToAll{axes, concat, split}, {*context.cotangents.front()})};
}

std::vector<Type> PsumScatter::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  check_collective(name, axes, context, false);
  Type type = context.operands.front();
  if (type.dtype == DType::boolean) throw TypeError(6, "psum_scatter of bool has no meaning; cast it first");
  check_sums(name, type);
  check_dim(name, dim, type);
  check_divides(name, dim, type, axes, context.mesh);
  type.shape[static_cast<std::size_t>(dim)] /= context.mesh.group_size(axes);
  return {type};
}

Cost PsumScatter::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}

Cotangents PsumScatter::derivative(VjpContext& context) const {
  return {context.b.emit(AllGather{axes, dim}, {*context.cotangents.front()})};
}

std::vector<Type> Ppermute::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  check_collective(name, axes, context, true);
  const std::int64_t members = context.mesh.group_size(axes);
  std::vector<bool> sends(static_cast<std::size_t>(members)), receives(static_cast<std::size_t>(members));
  for (const auto& [from, to] : pairs) {
    if (from < 0 || to < 0 || from >= members || to >= members) {
      throw TypeError(2, "ppermute: the pair " + std::to_string(from) + ":" + std::to_string(to) +
                             " names a member that " + context.mesh.to_string(axes) + " does not have; it has 0 to " +
                             std::to_string(members - 1));
    }
    if (sends[static_cast<std::size_t>(from)] || receives[static_cast<std::size_t>(to)]) {
      throw TypeError(2, "ppermute: each member sends and receives at most once; the pair " + std::to_string(from) +
                             ":" + std::to_string(to) + " repeats one");
    }
    sends[static_cast<std::size_t>(from)] = receives[static_cast<std::size_t>(to)] = true;
  }
  return {context.operands.front()};
}

Cost Ppermute::cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type>) const {
  return collective_cost(communication, axes, mesh, operands);
}

Cotangents Ppermute::derivative(VjpContext& context) const {
  Ppermute reversed{axes, {}};
  for (const auto& [from, to] : pairs) reversed.pairs.emplace_back(to, from);
  return {context.b.emit(reversed, {*context.cotangents.front()})};
}

std::vector<Type> AxisIndex::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 0);
  check_axes(name, axes, context, true);
  return {Type{DType::i32, {}, axes}};
}

}  // namespace pmaptrain::ops
