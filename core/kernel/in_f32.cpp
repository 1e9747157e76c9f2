#include "core/kernel/in_f32.h"

#include <algorithm>
#include <utility>

#include "core/base/saturate.h"
#include "core/kernel/vector_convert.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS
#include <oneapi/dnnl/dnnl.h>
#endif

namespace pmaptrain {
namespace {

bool is_bf16(const Type& type) { return type.dtype == DType::bf16; }

Type in_f32(Type type) {
  if (is_bf16(type)) type.dtype = DType::f32;
  return type;
}

std::vector<Type> in_f32(std::span<const Type> types) {
  std::vector<Type> wide;
  for (const Type& type : types) wide.push_back(in_f32(type));
  return wide;
}

class KernelInF32 final : public CpuKernel {
 public:
  KernelInF32(const CpuRequest& request, std::unique_ptr<CpuKernel> kernel) : kernel_(std::move(kernel)) {
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      const bool copied = is_bf16(request.operands[i]) && request.packed != i;
      add(operands_, request.operands[i], request.stacked[i] ? request.devices : 1, copied);
    }
    for (const Type& result : request.results) add(results_, result, request.devices, is_bf16(result));
    operand_pointers_.resize(operands_.size());
    result_pointers_.resize(results_.size());
  }

  void run(const CpuArguments& arguments) override {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      operand_pointers_[i] = arguments.operands[i];
      if (!operands_[i].copied) continue;
      float* const copy = copy_of(operands_[i], arguments);
      to_f32(operands_[i].elements, reinterpret_cast<const bf16*>(arguments.operands[i]), copy);
      operand_pointers_[i] = reinterpret_cast<const std::byte*>(copy);
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      result_pointers_[i] =
          results_[i].copied ? reinterpret_cast<std::byte*>(copy_of(results_[i], arguments)) : arguments.results[i];
    }
    kernel_->run({operand_pointers_.data(), result_pointers_.data(), arguments.scratch + copies_});
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i].copied) continue;
      to_bf16(results_[i].elements, copy_of(results_[i], arguments), reinterpret_cast<bf16*>(arguments.results[i]));
    }
  }

  std::size_t scratch_bytes() const override { return copies_ + kernel_->scratch_bytes(); }
  std::string implementation() const override { return kernel_->implementation() + " in f32"; }
  std::vector<LayoutChange> layout_changes() const override { return kernel_->layout_changes(); }
  std::int64_t library_calls() const override { return kernel_->library_calls(); }

 private:
  struct Argument {
    bool copied = false;
    std::size_t elements = 0;
    std::size_t offset = 0;  // offset of the copy in the scratch memory
  };

  void add(std::vector<Argument>& arguments, const Type& type, std::int64_t devices, bool copied) {
    Argument argument{copied, static_cast<std::size_t>(numel(type) * devices), copies_};
    if (argument.copied) copies_ += round_up(argument.elements * sizeof(float), 64);
    arguments.push_back(argument);
  }

  static float* copy_of(const Argument& argument, const CpuArguments& arguments) {
    return reinterpret_cast<float*>(arguments.scratch + argument.offset);
  }

  std::unique_ptr<CpuKernel> kernel_;
  std::vector<Argument> operands_, results_;
  std::vector<const std::byte*> operand_pointers_;
  std::vector<std::byte*> result_pointers_;
  std::size_t copies_ = 0;  // bytes
};

// A request for the same work on f32. The types have to outlive it.
CpuRequest wide_request(const CpuRequest& request, const std::vector<Type>& operands,
                        const std::vector<Type>& results) {
  CpuRequest wide = request;
  wide.operands = operands;
  wide.results = results;
  wide.shared = {};
  return wide;
}

}  // namespace

bool multiplies_bf16_faster() {
#ifdef PMAPTRAIN_REFERENCE_KERNELS
  return false;
#else
  // The value of an instruction set is a bit mask, which includes the bits of earlier instruction sets.
  const auto includes = [has = static_cast<unsigned>(dnnl_get_effective_cpu_isa())](unsigned needed) {
    return (has & needed) == needed;
  };
  if (includes(dnnl_cpu_isa_avx512_core_amx)) return true;
#ifdef __x86_64__
  if (__builtin_cpu_is("intel")) return false;
#endif
  return includes(dnnl_cpu_isa_avx512_core_bf16);
#endif
}

std::string instruction_set() {
#ifdef PMAPTRAIN_REFERENCE_KERNELS
  return "any";
#else
  const std::string library = std::to_string(static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
  return library + (multiplies_bf16_faster() ? " with bf16" : "");
#endif
}

bool has_bf16(const ReferenceCall& call) {
  const auto is_narrow = [](const auto& array) { return array.dtype() == DType::bf16; };
  return std::any_of(call.operands.begin(), call.operands.end(), is_narrow) ||
         std::any_of(call.results.begin(), call.results.end(), is_narrow);
}

bool has_bf16(const CpuRequest& request) {
  return std::any_of(request.operands.begin(), request.operands.end(), is_bf16) ||
         std::any_of(request.results.begin(), request.results.end(), is_bf16);
}

void call_in_f32(const ReferenceCall& call, const std::function<void(const ReferenceCall&)>& reference) {
  struct Copy {
    Type type;
    std::vector<float> elements;
  };
  std::vector<Copy> copies;
  // The arrays below point to elements of `copies`, so it must not reallocate.
  copies.reserve(call.operands.size() + call.results.size());
  const auto copy_of = [&](const auto& array) -> Copy& {
    return copies.emplace_back(Copy{in_f32(*array.type), std::vector<float>(static_cast<std::size_t>(array.size()))});
  };
  std::vector<ConstArray> operands(call.operands.begin(), call.operands.end());
  for (ConstArray& operand : operands) {
    if (!is_bf16(*operand.type)) continue;
    Copy& copy = copy_of(operand);
    to_f32(copy.elements.size(), operand.as<bf16>(), copy.elements.data());
    operand = {&copy.type, reinterpret_cast<const std::byte*>(copy.elements.data())};
  }
  std::vector<Array> results(call.results.begin(), call.results.end());
  for (Array& result : results) {
    if (!is_bf16(*result.type)) continue;
    Copy& copy = copy_of(result);
    result = {&copy.type, reinterpret_cast<std::byte*>(copy.elements.data())};
  }
  reference({operands, results, call.region, call.types});
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!is_bf16(*call.results[i].type)) continue;
    to_bf16(static_cast<std::size_t>(results[i].size()), results[i].as<float>(), call.results[i].as<bf16>());
  }
}

std::unique_ptr<CpuKernel> make_kernel_in_f32(
    const CpuRequest& request, const std::function<std::unique_ptr<CpuKernel>(const CpuRequest&)>& make) {
  const std::vector<Type> operands = in_f32(request.operands), results = in_f32(request.results);
  return std::make_unique<KernelInF32>(request, make(wide_request(request, operands, results)));
}

std::unique_ptr<CpuPreparation> make_preparation_in_f32(
    const CpuRequest& request, std::size_t packed,
    const std::function<std::unique_ptr<CpuPreparation>(const CpuRequest&)>& make) {
  const std::vector<Type> operands = in_f32(request.operands), results = in_f32(request.results);
  CpuRequest wide = wide_request(request, operands, results);
  if (is_bf16(request.operands[packed])) wide.packed_from = DType::bf16;
  return make(wide);
}

}  // namespace pmaptrain
