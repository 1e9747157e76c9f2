// The recurrences of an LSTM and of a GRU.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

DEVICE_TEST_CASE("the GPU's recurrences add in the reference's order", "[cuda][kernels]") {
  struct Sizes {
    std::int64_t examples, positions, features;
  };
  for (const Sizes& s : {Sizes{2, 3, 4}, Sizes{1, 1, 3}, Sizes{0, 2, 2}, Sizes{1, 2, 259}}) {
    for (const DType dtype : floating_types) {
      const auto sequences = [&](std::int64_t columns) {
        return Type{dtype, {s.examples, s.positions, columns * s.features}, {}};
      };
      const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        return Type{dtype, {rows * s.features, columns * s.features}, {}};
      };
      const Type out = sequences(1), bias{dtype, {s.features}, {}};
      const bool large = s.features > 100;
      for (const bool reverse : {false, true}) {
        if (large && (reverse || dtype != DType::f32)) continue;
        KernelCase cases[] = {{ops::Lstm{reverse}, {sequences(4), matrix(1, 4)}},
                              {ops::LstmGrad{reverse}, {matrix(4, 1), out, sequences(4), out}},
                              {ops::Gru{reverse}, {sequences(3), matrix(1, 3), bias}},
                              {ops::GruGrad{reverse}, {matrix(3, 1), out, sequences(4), out}}};
        for (KernelCase& c : cases) check_launches(c);
      }
    }
  }
  const Type out{DType::f32, {2, 2, 2}, {}}, gates{DType::f32, {2, 2, 8}, {}}, bias{DType::f32, {2}, {}};
  check_launches(ops::Lstm{}, {gates, {DType::f32, {2, 8}, {}}});
  check_launches(ops::LstmGrad{}, {{DType::f32, {8, 2}, {}}, out, gates, out});
  check_launches(ops::Gru{}, {{DType::f32, {2, 2, 6}, {}}, {DType::f32, {2, 6}, {}}, bias});
  check_launches(ops::GruGrad{}, {{DType::f32, {6, 2}, {}}, out, gates, out});
}
