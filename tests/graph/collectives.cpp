// Derivatives of collectives against central differences, perturbing one device's input at a time.
#include <string>
#include <vector>

#include "core/ops/collective/collective.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/unary.h"
#include "tests/catch.h"
#include "tests/gradients.h"

namespace pmaptrain {
namespace {

using test::check_gradient;
using test::GradientInputs;

const std::vector<Mesh>& meshes() {
  static const std::vector<Mesh> all{Mesh({{"a", 2}}), Mesh({{"a", 4}}), Mesh({{"r", 2}, {"c", 3}})};
  return all;
}

// Every set of axes that a collective can work over, of every mesh.
template <class F>
void for_each_axes(bool single, F f) {
  for (const Mesh& mesh : meshes()) {
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) f(mesh, AxisSet::of(axis));
    if (!single && mesh.axes().size() > 1) f(mesh, mesh.all());
  }
}

// A collective between two functions with a derivative of their own, so that a wrong factor cannot hide.
Value curved(Builder& b, Value x) { return b.emit(ops::Tanh{}, {x}); }
Value squared(Builder& b, Value x) { return b.emit(ops::Mul{}, {x, x}); }

TEST_CASE("psum has pvary for its transpose, over one axis and over several", "[graph]") {
  for_each_axes(false, [](const Mesh& mesh, AxisSet axes) {
    const Type type{DType::f64, {3}, mesh.all()};
    check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
      return squared(b, b.emit(ops::Psum{axes}, {curved(b, x[0])}));
    });
  });
}

TEST_CASE("a psum of several operands, one of them twice, gives each its own cotangent", "[graph]") {
  for_each_axes(false, [](const Mesh& mesh, AxisSet axes) {
    const Type type{DType::f64, {2}, mesh.all()};
    check_gradient(mesh, {{type, type}}, [&](Builder& b, std::span<const Value> x) {
      const std::vector<Value> sums = b.emit_all(ops::Psum{axes}, std::vector{x[0], x[1], x[0]});
      return b.emit(ops::Mul{}, {sums[0], b.emit(ops::Mul{}, {sums[1], sums[2]})});
    });
  });
}

TEST_CASE("a psum of which only one result is used gives the other operand no cotangent", "[graph]") {
  for_each_axes(false, [](const Mesh& mesh, AxisSet axes) {
    const Type type{DType::f64, {2}, mesh.all()};
    check_gradient(mesh, {{type, type}}, [&](Builder& b, std::span<const Value> x) {
      return squared(b, b.emit_all(ops::Psum{axes}, std::vector{x[0], x[1]})[1]);
    });
  });
}

TEST_CASE("pvary has psum for its transpose", "[graph]") {
  for_each_axes(false, [](const Mesh& mesh, AxisSet axes) {
    const std::vector<Type> types{{DType::f64, {3}, mesh.all() - axes}, {DType::f64, {3}, mesh.all()}};
    check_gradient(mesh, {types}, [&](Builder& b, std::span<const Value> x) {
      return b.emit(ops::Mul{}, {b.emit(ops::Pvary{axes}, {curved(b, x[0])}), x[1]});
    });
  });
}

TEST_CASE("all_gather has psum_scatter for its transpose, along every dimension", "[graph]") {
  for_each_axes(true, [](const Mesh& mesh, AxisSet axis) {
    for (const std::int64_t dim : {0, 1, 2}) {
      const Type type{DType::f64, {2, 3, 1}, mesh.all()};
      check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
        return squared(b, b.emit(ops::AllGather{axis, dim}, {curved(b, x[0])}));
      });
    }
  });
}

TEST_CASE("all_gather_invariant has all_slice for its transpose, along every dimension", "[graph]") {
  for_each_axes(true, [](const Mesh& mesh, AxisSet axis) {
    for (const std::int64_t dim : {0, 1, 2}) {
      const Type type{DType::f64, {2, 3, 1}, mesh.all()};
      check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
        return squared(b, b.emit(ops::AllGatherInvariant{axis, dim}, {curved(b, x[0])}));
      });
    }
  });
}

TEST_CASE("all_slice has all_gather_invariant for its transpose, along every dimension", "[graph]") {
  for_each_axes(false, [](const Mesh& mesh, AxisSet axes) {
    for (const std::int64_t dim : {0, 1}) {
      Type type{DType::f64, {2, 3}, mesh.all() - axes};
      type.shape[static_cast<std::size_t>(dim)] *= mesh.group_size(axes);
      check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
        return squared(b, b.emit(ops::AllSlice{axes, dim}, {curved(b, x[0])}));
      });
    }
  });
}

TEST_CASE("all_to_all has itself with the dimensions exchanged for its transpose", "[graph]") {
  for_each_axes(true, [](const Mesh& mesh, AxisSet axis) {
    for (const std::int64_t split : {0, 1}) {
      for (const std::int64_t concat : {0, 1}) {
        Type type{DType::f64, {1, 2}, mesh.all()};
        type.shape[static_cast<std::size_t>(split)] *= mesh.group_size(axis);
        check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
          return squared(b, b.emit(ops::AllToAll{axis, split, concat}, {curved(b, x[0])}));
        });
      }
    }
  });
}

TEST_CASE("psum_scatter has all_gather for its transpose, along every dimension", "[graph]") {
  for_each_axes(true, [](const Mesh& mesh, AxisSet axis) {
    for (const std::int64_t dim : {0, 1}) {
      Type type{DType::f64, {2, 2}, mesh.all()};
      type.shape[static_cast<std::size_t>(dim)] *= mesh.group_size(axis);
      check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
        return squared(b, b.emit(ops::PsumScatter{axis, dim}, {curved(b, x[0])}));
      });
    }
  });
}

TEST_CASE("ppermute has the reversed pairs for its transpose, also where members send or receive nothing", "[graph]") {
  for_each_axes(true, [](const Mesh& mesh, AxisSet axis) {
    const std::int64_t members = mesh.group_size(axis);
    ops::Ppermute ring{axis, {}};
    for (std::int64_t i = 0; i < members; ++i) ring.pairs.emplace_back(i, (i + 1) % members);
    const ops::Ppermute missing{axis, {{0, members - 1}}}, nothing{axis, {}}, itself{axis, {{1, 1}}};
    for (const ops::Ppermute& permute : {ring, missing, nothing, itself}) {
      const Type type{DType::f64, {2}, mesh.all()};
      check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
        return b.emit(ops::Mul{}, {squared(b, b.emit(permute, {curved(b, x[0])})), x[0]});
      });
    }
  });
}

TEST_CASE("a collective over one axis of a value that varies over that one only", "[graph]") {
  const Mesh mesh({{"r", 2}, {"c", 3}});
  for (const int axis : {0, 1}) {
    const AxisSet axes = AxisSet::of(axis);
    const Type type{DType::f64, {2}, axes};
    check_gradient(mesh, {{type}}, [&](Builder& b, std::span<const Value> x) {
      const Value sum = b.emit(ops::Psum{axes}, {curved(b, x[0])});
      return b.emit(ops::Mul{}, {x[0], squared(b, sum)});
    });
  }
}

TEST_CASE("a collective's rule has the attributes that its kind names", "[graph]") {
  const AxisSet axes = AxisSet::of(0) | AxisSet::of(1);
  const auto check = [&](const Op& op, Communication kind) {
    INFO(op.name());
    CHECK(op.rules().communication == kind);
    CHECK(op.collective().kind == kind);
    CHECK(op.collective().axes == axes);
    return op.collective();
  };
  check(ops::Psum{axes}, Communication::sum);
  check(ops::Pmax{axes}, Communication::max);
  check(ops::Pmin{axes}, Communication::min);
  check(ops::AxisIndex{axes}, Communication::coordinate);
  CHECK(check(ops::PsumScatter{axes, 2}, Communication::scatter).dim == 2);
  CHECK(check(ops::AllGather{axes, 2}, Communication::gather).dim == 2);
  CHECK(check(ops::AllGatherInvariant{axes, 2}, Communication::gather).dim == 2);
  CHECK(check(ops::AllSlice{axes, 2}, Communication::slice).dim == 2);
  const CollectiveRule across = check(ops::AllToAll{axes, 2, 1}, Communication::all_to_all);
  CHECK(across.split == 2);
  CHECK(across.concat == 1);
  const std::vector<std::pair<std::int64_t, std::int64_t>> pairs{{0, 1}, {2, 0}};
  CHECK(check(ops::Ppermute{axes, pairs}, Communication::permute).pairs == pairs);
  for (const Op& op : {Op(ops::Pvary{axes}), Op(ops::Add{})}) CHECK(op.collective().kind == Communication::none);
}

}  // namespace
}  // namespace pmaptrain
