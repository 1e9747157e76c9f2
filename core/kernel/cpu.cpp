#include "core/kernel/cpu.h"

#include <dlfcn.h>

#include <cassert>
#include <utility>

namespace pmaptrain {
namespace {

class ReferenceKernel final : public CpuKernel {
 public:
  ReferenceKernel(std::shared_ptr<const void> op, ReferenceFunction function, const CpuRequest& request,
                  std::string name)
      : op_(std::move(op)),
        name_(std::move(name)),
        function_(function),
        operand_types_(request.operands.begin(), request.operands.end()),
        result_types_(request.results.begin(), request.results.end()),
        devices_(request.devices),
        region_(request.region),
        types_(request.types) {
    assert(request.stacked.size() == request.operands.size());
    for (std::size_t i = 0; i < operand_types_.size(); ++i) {
      operands_.push_back({&operand_types_[i], nullptr});
      operand_strides_.push_back(request.stacked[i] ? bytes(operand_types_[i]) : 0);
    }
    for (const Type& type : result_types_) {
      results_.push_back({&type, nullptr});
      result_strides_.push_back(bytes(type));
    }
  }

  void run(const CpuArguments& arguments) override {
    for (std::int64_t d = 0; d < devices_; ++d) {
      const auto device = static_cast<std::size_t>(d);
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        operands_[i].data = arguments.operands[i] + device * operand_strides_[i];
      }
      for (std::size_t i = 0; i < results_.size(); ++i) {
        results_[i].data = arguments.results[i] + device * result_strides_[i];
      }
      function_(op_.get(), {operands_, results_, region_, types_});
    }
  }

  std::string implementation() const override { return name_; }

 private:
  std::shared_ptr<const void> op_;
  std::string name_;
  ReferenceFunction function_;
  std::vector<Type> operand_types_;
  std::vector<Type> result_types_;
  std::int64_t devices_;
  const Region* region_;
  std::span<const Type> types_;
  std::vector<ConstArray> operands_;  // point to the types; the data pointers are set in each run
  std::vector<Array> results_;
  std::vector<std::size_t> operand_strides_;  // bytes from one device's slice to the next
  std::vector<std::size_t> result_strides_;
};

}  // namespace

std::unique_ptr<CpuKernel> make_reference_kernel(std::shared_ptr<const void> op, ReferenceFunction function,
                                                 const CpuRequest& request, std::string name) {
  return std::make_unique<ReferenceKernel>(std::move(op), function, request, std::move(name));
}

void use_one_thread_in_libraries() {
  // The function is looked up in the running process, because the kernel library determines the OpenMP runtime. Without
  // a kernel library there is none.
  using SetThreads = void (*)(int);
  static const auto set_threads = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

}  // namespace pmaptrain
