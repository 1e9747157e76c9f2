// The recurrences of an LSTM and of a GRU.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/library_cases.h"
#include "tests/cuda/on_gpu.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

DEVICE_TEST_CASE("the GPU's recurrences are the reference's up to rounding", "[cuda][kernels][libraries]") {
  for (const NamedCases& some : recurrent_cases()) {
    DYNAMIC_SECTION(some.name) {
      for (const KernelCase& c : some.cases) check_on_gpu(c);
    }
  }
}

DEVICE_TEST_CASE("a recurrence of one position is the reference's, as it has no product", "[cuda][kernels]") {
  for (const DType dtype : floating_types) {
    const auto array = [&](Shape shape) { return Type{dtype, std::move(shape), {}}; };
    const Type out = array({2, 1, 3}), gates = array({2, 1, 12});
    check_launches(ops::Lstm{}, {gates, array({3, 12})});
    check_launches(ops::LstmGrad{}, {array({12, 3}), out, gates, out});
    check_launches(ops::Gru{}, {array({2, 1, 9}), array({3, 9}), array({3})});
    check_launches(ops::GruGrad{}, {array({9, 3}), out, gates, out});
  }
}

TEST_CASE("a recurrence on a GPU is a product of a library and a launch for each position", "[cuda]") {
  const std::vector<Type> operands{{DType::bf16, {5, 4, 24}, {}}, {DType::bf16, {6, 24}, {}}};
  for (const bool stacked : {false, true}) {
    KernelCase c{ops::Lstm{}, operands, 3, {true, stacked}};
    c.infer_results();
    const GpuKernel kernel = make_gpu_kernel(c.op, c.request());
    REQUIRE(kernel.commands.size() == 7);
    for (std::size_t i = 0; i < 7; ++i) CHECK(std::holds_alternative<GpuLaunch>(kernel.commands[i]) == (i % 2 == 0));
    // One product for the examples of all devices, if they share the matrix. It adds up in f32.
    const auto& product = std::get<GpuMatmul>(kernel.commands[3]);
    CHECK(std::vector{product.batch, product.m, product.n, product.k} ==
          (stacked ? std::vector<std::int64_t>{3, 5, 24, 6} : std::vector<std::int64_t>{1, 15, 24, 6}));
    CHECK(product.result == DType::f32);
    CHECK(product.places->a_row == 4 * 6);
    CHECK(product.places->a.offset == 6 * sizeof(bf16));
  }
}
