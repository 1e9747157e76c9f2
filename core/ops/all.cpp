#include "core/ops/all.h"

#include <array>
#include <concepts>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/kernel/columns.h"
#include "core/kernel/in_f32.h"
#include "core/ops/list.h"

namespace pmaptrain {
namespace {

template <class T>
concept HasReference = requires(const T& op, const ReferenceCall& call) {
  op.reference(call);
};
template <class T>
concept HasExchange = requires(const T& op, const CollectiveCall& call) {
  op.exchange(call);
};
template <class T>
concept HasCpuKernel = requires(const T& op, const CpuRequest& request) {
  { op.cpu(request) } -> std::same_as<std::unique_ptr<CpuKernel>>;
};
template <class T>
concept HasPreparation = requires(const T& op, const CpuRequest& request) {
  { op.prepared_operand() } -> std::same_as<std::optional<std::size_t>>;
  { op.prepare(request) } -> std::same_as<std::unique_ptr<CpuPreparation>>;
};
template <class T>
concept HasGpuKernel = requires(const T& op, const GpuRequest& request) {
  { op.gpu(request) } -> std::same_as<GpuKernel>;
};
template <class T>
concept HasNoGpu = requires {
  { T::gpu } -> std::convertible_to<NoGpu>;
};
template <class T>
concept UsesReference = requires {
  { T::cpu } -> std::convertible_to<UseReference>;
};
template <class T>
concept ComputesInF32 = requires {
  requires T::in_f32;
};
template <class T>
concept CpuTakesBf16 = requires {
  requires T::cpu_takes_bf16;
};
template <class T>
concept MultipliesInTurn = requires {
  requires T::multiplies_in_turn;
};
template <class T>
concept CpuTakesColumns = requires {
  requires T::cpu_takes_columns;
};
template <class T>
concept IsRuntimeOp = requires {
  { T::cpu } -> std::convertible_to<RuntimeOp>;
};

template <class T>
constexpr KernelRules kernel_rules() {
  static_assert(IsRuntimeOp<T> || HasReference<T>,
                "this op lacks its reference kernel: reference(const ReferenceCall&)");
  static_assert(!reads_other_devices(communication_of<T>()) || HasExchange<T>,
                "this op lacks its reference among devices: exchange(const CollectiveCall&)");
  static_assert(HasCpuKernel<T> || UsesReference<T> || IsRuntimeOp<T>,
                "this op lacks its CPU kernel: cpu(const CpuRequest&), or UseReference or RuntimeOp with a reason");
  static_assert(HasGpuKernel<T> || HasNoGpu<T> || IsRuntimeOp<T>,
                "this op lacks its GPU kernel: gpu(const GpuRequest&), or NoGpu or RuntimeOp with a reason");
  KernelRules rules;
  rules.in_f32 = ComputesInF32<T>;
  rules.multiplies_in_turn = MultipliesInTurn<T>;
  rules.cpu_takes_bf16 = CpuTakesBf16<T>;
  rules.cpu_takes_columns = CpuTakesColumns<T>;
  if constexpr (ComputesInF32<T>) {
    rules.reference = [](const void* op, const ReferenceCall& call) {
      const auto reference = [op](const ReferenceCall& wide) { static_cast<const T*>(op)->reference(wide); };
      has_bf16(call) ? call_in_f32(call, reference) : reference(call);
    };
  } else if constexpr (HasReference<T>) {
    rules.reference = [](const void* op, const ReferenceCall& call) { static_cast<const T*>(op)->reference(call); };
  }
  if constexpr (HasCpuKernel<T>) {
    rules.cpu = [](const void* op, const CpuRequest& request) { return static_cast<const T*>(op)->cpu(request); };
  }
  if constexpr (HasExchange<T>) {
    rules.exchange = [](const void* op, const CollectiveCall& call) { static_cast<const T*>(op)->exchange(call); };
  }
  if constexpr (HasGpuKernel<T>) {
    rules.gpu = [](const void* op, const GpuRequest& request) { return static_cast<const T*>(op)->gpu(request); };
  } else if constexpr (HasNoGpu<T>) {
    rules.no_gpu = T::gpu.because;
  }
  if constexpr (HasPreparation<T>) {
    rules.prepared_operand = [](const void* op) { return static_cast<const T*>(op)->prepared_operand(); };
    rules.prepare = [](const void* op, const CpuRequest& request) {
      return static_cast<const T*>(op)->prepare(request);
    };
  }
  return rules;
}

template <class... Ops>
struct Tables {
  static constexpr std::size_t count = sizeof...(Ops);
  inline static const std::array<const OpRules*, count> rules{&rules_of<Ops>()...};
  static constexpr std::array<KernelRules, count> kernels{kernel_rules<Ops>()...};
};

template <class... Ops>
Tables<Ops...> tables_of(ops::OpList<Ops...>);
using AllTables = decltype(tables_of(ops::AllOps{}));

}  // namespace

const OpSet& all_ops() {
  static const OpSet set{
      .all = AllTables::rules,
      .pvary = [](AxisSet axes) -> Op { return ops::Pvary{axes}; },
      .psum = [](AxisSet axes) -> Op { return ops::Psum{axes}; },
      .add = []() -> Op { return ops::Add{}; },
      .constant = [](DType dtype, Shape shape, double value) -> Op {
        return ops::Constant{dtype, std::move(shape), value};
      },
      .optimization_barrier = []() -> Op { return ops::OptimizationBarrier{}; },
  };
  return set;
}

const KernelRules& kernels_of(const Op& op) {
  static const auto by_rules = [] {
    std::unordered_map<const OpRules*, const KernelRules*> map;
    for (std::size_t i = 0; i < AllTables::count; ++i) map.emplace(AllTables::rules[i], &AllTables::kernels[i]);
    return map;
  }();
  return *by_rules.at(&op.rules());
}

std::unique_ptr<CpuKernel> make_cpu_kernel(const Op& op, const CpuRequest& request, KernelChoice choice) {
  const KernelRules& rules = kernels_of(op);
  const bool copies = rules.in_f32 && has_bf16(request);
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  if (choice == KernelChoice::best && rules.cpu != nullptr && (!copies || rules.cpu_takes_bf16) &&
      (!request.columns || rules.cpu_takes_columns)) {
    if (auto kernel = rules.cpu(op.data(), request)) return kernel;
  }
#endif
  if (request.columns) {
    return make_kernel_of_columns(request, [&](const CpuRequest& whole) { return make_cpu_kernel(op, whole, choice); });
  }
  if (copies) {
    return make_kernel_in_f32(request, [&](const CpuRequest& wide) { return make_cpu_kernel(op, wide, choice); });
  }
  return make_reference_kernel(op.shared(), rules.reference, request);
}

std::unique_ptr<CpuPreparation> make_preparation(const Op& op, const CpuRequest& request, KernelChoice choice) {
  const KernelRules& rules = kernels_of(op);
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  if (choice != KernelChoice::best || rules.prepare == nullptr) return nullptr;
  const bool copies = rules.in_f32 && has_bf16(request);
  if (copies && !rules.cpu_takes_bf16) return nullptr;
  if (auto own = rules.prepare(op.data(), request)) return own;
  if (!copies || rules.cpu(op.data(), request)) return nullptr;  // its own kernel reads the operand as it is
  return make_preparation_in_f32(request, *rules.prepared_operand(op.data()),
                                 [&](const CpuRequest& wide) { return rules.prepare(op.data(), wide); });
#else
  (void)rules, (void)request, (void)choice;
  return nullptr;
#endif
}

GpuKernel make_gpu_kernel(const Op& op, const GpuRequest& request) {
  return gpu_kernel_by(kernels_of(op), op, request);
}

GpuKernel gpu_kernel_by(const KernelRules& rules, const Op& op, const GpuRequest& request) {
  if (rules.gpu != nullptr) return rules.gpu(op.data(), request);
  std::string message = "no GPU kernel carries out the op '" + std::string(op.name()) + "'";
  if (!rules.no_gpu.empty()) message += ": " + std::string(rules.no_gpu);
  throw Error(ExitStatus::usage, Diagnostic{"program", {}, std::move(message), "mesh.backend: cpu runs it", {}});
}

}  // namespace pmaptrain
