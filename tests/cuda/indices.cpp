// Ops that read or write where an index says, and random values.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

// From -2 to rows + 1: some lie outside of the table.
Bytes indices_for(DType dtype, std::int64_t count, std::int64_t rows) {
  const auto make = [&]<class T>() {
    std::vector<T> indices;
    for (std::int64_t i = 0; i < count; ++i) indices.push_back(static_cast<T>(i * 7919 % (rows + 4) - 2));
    return bytes_of<T>(indices);
  };
  return dtype == DType::i32 ? make.operator()<std::int32_t>() : make.operator()<std::int64_t>();
}

}  // namespace

DEVICE_TEST_CASE("the GPU's gather takes rows, and zeros for indices outside", "[cuda][kernels]") {
  for (const DType index : {DType::i32, DType::i64}) {
    for (const DType dtype : number_types) {
      const Type table{dtype, {9, 2, 3}, {}}, indices{index, {4, 5}, {}};
      check_launches(ops::Gather{}, {table, indices}, {random_values(dtype, 54, 1), indices_for(index, 20, 9)});
    }
    const Type one{index, {}, {}};
    check_launches(ops::Gather{}, {{DType::boolean, {9}, {}}, one}, {{}, indices_for(index, 1, 9)});
    check_launches(ops::Gather{}, {{DType::f32, {9, 0}, {}}, one}, {{}, indices_for(index, 1, 9)});
    check_launches(ops::Gather{}, {{DType::f32, {0, 3}, {}}, one}, {{}, indices_for(index, 1, 0)});
  }
}

DEVICE_TEST_CASE("the GPU's scatter_add adds each row's updates in their order", "[cuda][kernels]") {
  for (const DType index : {DType::i32, DType::i64}) {
    for (const DType dtype : number_types) {
      const Type indices{index, {6, 100}, {}}, updates{dtype, {6, 100, 3}, {}};
      check_launches(ops::ScatterAdd{200}, {indices, updates},
                     {indices_for(index, 600, 20), random_values(dtype, 1800, 1, false)});
    }
  }
  // So many rows that updates are sorted, by three digits: two tiles, many updates of a row or few, and indices
  // outside.
  for (const DType dtype : {DType::bf16, DType::f32, DType::u8}) {
    const Type updates{dtype, {2100, 3}, {}};
    for (const auto& [rows, index] : {std::pair{180, DType::i32}, std::pair{70'000, DType::i64}}) {
      const ops::ScatterAdd op{rows * (rows == 180 ? 1000 : 3)};
      const Type indices{index, {2100}, {}};
      KernelCase c{op, {indices, updates}, 2};
      c.complete(3);
      CHECK(make_gpu_kernel(op, c.request()).commands.size() > 1);
      c.values[0] = indices_for(index, 4200, rows);
      check_launches(c);
    }
  }
  check_launches(ops::ScatterAdd{7}, {{DType::i32, {}, {}}, {DType::f32, {}, {}}}, {bytes_of<std::int32_t>({3})});
  check_launches(ops::ScatterAdd{2}, {{DType::i32, {2}, {}}, {DType::f32, {2, 600}, {}}},
                 {indices_for(DType::i32, 2, 2)});
  check_launches(ops::ScatterAdd{3}, {{DType::i32, {0}, {}}, {DType::f32, {0, 2}, {}}});
  check_launches(ops::ScatterAdd{0}, {{DType::i32, {2}, {}}, {DType::f32, {2, 2}, {}}},
                 {indices_for(DType::i32, 2, 2)});
}

DEVICE_TEST_CASE("the GPU's scatter puts rows where the indices say, in a copy of the table", "[cuda][kernels]") {
  for (const DType index : {DType::i32, DType::i64}) {
    for (const DType dtype : number_types) {
      // 24 indices from -2 to 21, each once.
      const Type table{dtype, {20, 2, 3}, {}}, indices{index, {24}, {}}, rows{dtype, {24, 2, 3}, {}};
      check_launches(ops::Scatter{}, {table, indices, rows},
                     {random_values(dtype, 120, 1), indices_for(index, 24, 20), random_values(dtype, 144, 2)});
    }
    const Type none{index, {0}, {}};
    check_launches(ops::Scatter{}, {{DType::boolean, {9}, {}}, none, {DType::boolean, {0}, {}}});
    check_launches(ops::Scatter{}, {{DType::f32, {9, 0}, {}}, none, {DType::f32, {0, 0}, {}}});
    check_launches(ops::Scatter{}, {{DType::f32, {0, 3}, {}}, {index, {1}, {}}, {DType::f32, {1, 3}, {}}},
                   {{}, indices_for(index, 1, 0)});
  }
}

DEVICE_TEST_CASE("the GPU's first_occurrence finds the first of equal indices", "[cuda][kernels]") {
  for (const DType index : {DType::i32, DType::i64}) {
    check_launches(ops::FirstOccurrence{50}, {{index, {600}, {}}}, {indices_for(index, 600, 50)});
    check_launches(ops::FirstOccurrence{5}, {{index, {1}, {}}}, {indices_for(index, 1, 5)});
    check_launches(ops::FirstOccurrence{5}, {{index, {0}, {}}});
  }
}

DEVICE_TEST_CASE("the GPU's one_hot has a one where the index is inside", "[cuda][kernels]") {
  for (const DType index : {DType::i32, DType::i64}) {
    for (const DType dtype : number_types) {
      check_launches(ops::OneHot{5, dtype}, {{index, {4, 6}, {}}}, {indices_for(index, 24, 5)});
    }
    check_launches(ops::OneHot{5}, {{index, {0}, {}}});
  }
}

DEVICE_TEST_CASE("the GPU's top_k is in falling order, equals by their places", "[cuda][kernels]") {
  for (const DType dtype : number_types) {
    check_launches(ops::TopK{3}, {{dtype, {2, 70}, {}}});
    check_launches(ops::TopK{3}, {{dtype, {3}, {}}});
    check_launches(ops::TopK{1}, {{dtype, {0, 3}, {}}});
  }
  check_launches(ops::TopK{5}, {{DType::f32, {2, 300}, {}}});
}

// On CUDA normal values are the reference's up to rounding, since its logarithm and its cosine are not the C library's;
// on the host they are the same functions.
DEVICE_TEST_CASE("the GPU's random values are those of the reference", "[cuda][kernels]") {
  const std::vector<Type> operands{{DType::u32, {2}, {}}, {DType::i64, {5}, {}}};
  const std::vector<Bytes> values{bytes_of<std::uint32_t>({0x9E3779B9, 0xFFFFFFFF}),
                                  bytes_of<std::int64_t>({0, 1, std::int64_t{1} << 40, 12345, 7})};
  for (const Shape& shape : {Shape{}, Shape{3, 50}, Shape{0}}) {
    check_launches(ops::RandomUniform{shape}, operands, values);
    check_launches(ops::RandomNormal{shape}, operands, values);
    for (const double probability : {0.0, 0.3, 1.0}) {
      check_launches(ops::RandomBernoulli{shape, probability}, operands, values);
    }
  }
  for (const std::int64_t size : {1, 2, 100}) check_launches(ops::RandomPermutation{size}, operands, values);
}

DEVICE_TEST_CASE("the GPU's random values of parts of rows are those of the reference", "[cuda][kernels]") {
  struct Part {
    Shape shape;
    std::vector<std::int64_t> strides;
  };
  const Bytes key = bytes_of<std::uint32_t>({0x9E3779B9, 0xFFFFFFFF});
  const Bytes rows = bytes_of<std::int64_t>({0, std::int64_t{1} << 40, 7});
  // The offsets are random, so each device that has an offset of its own has another one.
  for (const Part& part : {Part{{}, {}}, Part{{3, 50}, {}}, Part{{3, 50}, {200, 1}}, Part{{2, 1, 3, 5}, {90, 45, 9, 1}},
                           Part{{2, 2, 2, 2, 2, 2, 2, 2}, {2187, 729, 243, 81, 27, 9, 3, 1}}, Part{{0}, {1}}}) {
    for (const DType index : {DType::i32, DType::i64}) {
      const std::vector<Type> operands{{DType::u32, {2}, {}}, {DType::i64, {3}, {}}, {index, {}, {}}};
      check_launches(ops::RandomUniform{part.shape, part.strides}, operands, {key, rows});
      check_launches(ops::RandomNormal{part.shape, part.strides}, operands, {key, rows});
      check_launches(ops::RandomBernoulli{part.shape, 0.3, part.strides}, operands, {key, rows});
    }
  }
}
