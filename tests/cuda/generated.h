// The text of generated kernels, compiled by the host's compiler, against the references.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/ops/fused/gpu_source.h"
#include "tests/cuda/kernel_case.h"

namespace pmaptrain::test {

// Kernels of many cases, which are compiled together: most of the time goes to the headers.
class Generated {
 public:
  void add(KernelCase c);

  // What kernels refer to.
  const Program& keep(Program program) { return programs_.emplace_back(std::move(program)); }

  // CHECKs the bits of each in every order of threads; on CUDA, what its compiler makes of the same text.
  void check();

  // By case and result. CHECKs that on the host the bits are the same in every order of threads.
  std::vector<std::vector<Bytes>> run();

 private:
  using RunKernel = void (*)(int number, unsigned blocks, unsigned threads, int order, void* const* arguments);

  RunKernel compile(const std::filesystem::path& folder);
  std::vector<Bytes> run(std::size_t number, int first_function, RunKernel run) const;

  std::deque<Program> programs_;
  std::vector<KernelCase> cases_;
  std::deque<std::string> names_;
  std::vector<ops::GpuSource> sources_;
};

// Every choice of stacked operands, but for none of them.
void add_stacked(Generated& kernels, const KernelCase& c);

// An equation with a region; the program outlives the case.
KernelCase case_of(const Program& program, const Equation& equation);

}  // namespace pmaptrain::test
