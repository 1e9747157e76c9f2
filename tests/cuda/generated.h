// The text of generated kernels, compiled by the host's compiler, against the references.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
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

  struct Source {
    ops::GpuSource source;
    int first_function = 0;  // the number of its first launch's function among all
  };
  RunKernel compile(const std::filesystem::path& folder);
  std::vector<Bytes> run(std::size_t number, RunKernel run) const;

  std::deque<Program> programs_;
  std::vector<KernelCase> cases_;
  std::deque<std::string> names_;
  std::vector<Source> sources_;  // by case
};

// Every choice of stacked operands, but for none of them.
void add_stacked(Generated& kernels, const KernelCase& c);

// An equation with a region; the program outlives the case.
KernelCase case_of(const Program& program, const Equation& equation);

// CHECKs that each of three devices, which have these values of the operands of the program's first equation, has the
// same bits from a launch for all of them as from one for itself.
void check_bits_of_devices(Program program, const std::function<std::vector<Bytes>(unsigned device)>& values);

}  // namespace pmaptrain::test
