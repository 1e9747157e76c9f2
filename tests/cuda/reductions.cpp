// Ops that combine elements, with the bits of the reference but where that is said.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

// No NaN and no infinity, which would hide what is added in another order.
std::vector<Bytes> plain(const Type& type) { return {random_values(type.dtype, numel(type), 3, false)}; }

}  // namespace

DEVICE_TEST_CASE("the GPU's sums are added in the reference's order", "[cuda][kernels]") {
  struct Sum {
    Shape shape;
    std::vector<std::int64_t> dims;
  };
  const Sum sums[] = {{{40000}, {0}},          // chunks, and what is left of them
                      {{3, 1000}, {1}},        //
                      {{7, 13}, {1}},          // no whole group
                      {{5, 16383}, {1}},       // one chunk, and what is left of it
                      {{3, 128}, {1}},         // without a rest
                      {{1000, 3}, {0}},        // several rows as a wide one
                      {{250, 3}, {0}},         // likewise, in one launch
                      {{2, 256, 5}, {1}},      // without a rest
                      {{2000, 64}, {0}},       //
                      {{300, 300}, {0}},       // wide rows
                      {{5, 3}, {0}},           //
                      {{4, 6, 5, 3}, {1, 2}},  //
                      {{3, 4, 5, 6}, {0, 2}},  // outside, too
                      {{3, 4, 5, 6}, {1, 3}},  //
                      {{2, 3, 2, 3, 2, 3, 2, 3}, {1, 3, 5, 7}},
                      {{2, 3, 2, 3, 2, 3, 2, 3}, {0, 2, 4, 6}},
                      {{3, 4}, {}},
                      {{1, 1}, {0, 1}},
                      {{}, {}}};
  for (const Sum& sum : sums) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Type x{dtype, sum.shape, {}};
      check_launches(ops::ReduceSum{sum.dims}, {x}, plain(x));
    }
    const Type wide{DType::bf16, sum.shape, {}};
    check_launches(ops::ReduceSum{sum.dims, DType::f32}, {wide}, plain(wide));
  }
  for (const DType dtype : number_types) {
    for (const auto& dims : {std::vector<std::int64_t>{0}, {1}, {0, 1}}) {
      check_launches(ops::ReduceSum{dims}, {{dtype, {70, 70}, {}}});
      check_launches(ops::ReduceMax{dims}, {{dtype, {70, 70}, {}}});
    }
    check_launches(ops::ReduceSum{{1}}, {{dtype, {3, 0}, {}}});
    check_launches(ops::ReduceMax{{1}}, {{dtype, {0, 3}, {}}});
    check_launches(ops::ReduceMax{{0, 2}}, {{dtype, {3, 4, 5, 6}, {}}});
  }
}

DEVICE_TEST_CASE("the GPU's argmax is the first of the largest, or of NaN", "[cuda][kernels]") {
  for (const DType dtype : number_types) {
    for (const std::int64_t dim : {0, 1, 2}) check_launches(ops::Argmax{dim}, {{dtype, {5, 70, 3}, {}}});
    check_launches(ops::Argmax{1}, {{dtype, {0, 3}, {}}});
  }
}

DEVICE_TEST_CASE("the GPU's norms are those of the reference up to the order of their sums", "[cuda][kernels]") {
  for (const DType dtype : floating_types) {
    for (const Shape& shape : {Shape{7}, Shape{13, 700}, Shape{300, 64}, Shape{0, 3}, Shape{3, 0}, Shape{2, 3, 5}}) {
      const Type x{dtype, shape, {}};
      check_launches(ops::Norms{}, {x}, plain(x), 1e-12);
      check_launches(ops::Norms{}, {x}, {}, 1e-12);
    }
    const Type zero{dtype, {1}, {}};
    check_launches(ops::Norms{}, {zero}, {random_values(dtype, 1, 0, false)});
  }
  check_launches(ops::Norms{}, {{DType::f32, {2}, {}}}, {bytes_of<float>({-0.0F, -0.0F})});
}

DEVICE_TEST_CASE("the GPU's sums of segments are those of the reference up to the order", "[cuda][kernels]") {
  using Table = std::vector<std::int64_t>;
  // Segments of many elements, of one and of none, some of them in others; what lies outside is left out.
  for (const Table& segments : {Table{0, 600, 600, 601, 640, 640, 0, 9100}, Table{-5, 3, 9000, 12000}, Table{}}) {
    const Type table{DType::i64, {std::ssize(segments) / 2, 2}, {}};
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Type x{dtype, {9100}, {}};
      check_launches(ops::SegmentSum{}, {x, table}, {plain(x).front(), bytes_of(segments)}, 1e-5);
      check_launches(ops::SegmentSum{}, {x, table}, {{}, bytes_of(segments)}, 1e-5);
    }
  }
}

DEVICE_TEST_CASE("the GPU packs arrays into a bucket, with zeros between them, and unpacks it", "[cuda][kernels]") {
  for (const DType dtype : floating_types) {
    const std::vector<Type> arrays{
        {dtype, {5, 3}, {}}, {dtype, {64}, {}}, {dtype, {}, {}}, {dtype, {0}, {}}, {dtype, {70}, {}}};
    check_launches(ops::Pack{}, arrays);
    check_launches(ops::Unpack{{{5, 3}, {64}, {}, {0}, {70}}}, {{dtype, {320}, {}}});
  }
}

DEVICE_TEST_CASE("the GPU's cumsum adds one by one along any dimension", "[cuda][kernels]") {
  for (const DType dtype : number_types) {
    for (const bool reverse : {false, true}) {
      for (const std::int64_t dim : {0, 1, 2}) {
        const Type x{dtype, {4, 30, 3}, {}};
        check_launches(ops::Cumsum{dim, reverse}, {x}, plain(x));
      }
    }
    check_launches(ops::Cumsum{0}, {{dtype, {0, 3}, {}}});
  }
}
