#include "bench/limits/peaks.h"

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

namespace pmaptrain::limits {

double gemm_flops_per_second(Team& team, double seconds) {
  constexpr dnnl::memory::dim size = 1024;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  // Layouts of the library's choice: packed.
  const dnnl::memory::desc any({size, size}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  const dnnl::matmul::primitive_desc desc(engine, any, any, any);
  const dnnl::matmul matmul(desc);
  struct Matrices {
    dnnl::memory a, b, c;
    dnnl::stream stream;
  };
  std::vector<Matrices> matrices;
  for (int worker = 0; worker < team.size(); ++worker) {
    Matrices& made = matrices.emplace_back(Matrices{
        {desc.src_desc(), engine}, {desc.weights_desc(), engine}, {desc.dst_desc(), engine}, dnnl::stream(engine)});
    for (const dnnl::memory& array : {made.a, made.b}) {
      auto* values = static_cast<float*>(array.get_data_handle());
      for (std::size_t i = 0; i < array.get_desc().get_size() / sizeof(float); ++i) {
        values[i] = static_cast<float>(i % 17) - 8.0f;
      }
    }
  }
  const Seconds taken = repeat(seconds, [&] {
    return team.run([&](int worker) {
      Matrices& own = matrices[static_cast<std::size_t>(worker)];
      matmul.execute(own.stream, {{DNNL_ARG_SRC, own.a}, {DNNL_ARG_WEIGHTS, own.b}, {DNNL_ARG_DST, own.c}});
    });
  });
  return 2.0 * size * size * size * team.size() / taken.median;
}

double copy_bytes_per_second(Team& team, double seconds) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const auto workers = static_cast<std::size_t>(team.size());
  std::vector<std::vector<char>> from(workers, std::vector<char>(bytes, 1)), to(workers, std::vector<char>(bytes));
  const Seconds taken = repeat(seconds, [&] {
    return team.run([&](int worker) {
      const auto w = static_cast<std::size_t>(worker);
      std::memcpy(to[w].data(), from[w].data(), bytes);
    });
  });
  return 2.0 * static_cast<double>(bytes) * team.size() / taken.median;
}

}  // namespace pmaptrain::limits
