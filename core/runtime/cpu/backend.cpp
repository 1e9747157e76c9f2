// The plans of the backend "cpu", and what it says about them.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/saturate.h"
#include "core/runtime/cpu/bind.h"
#include "core/runtime/cpu/module.h"
#include "core/runtime/cpu/parallelism.h"
#include "core/runtime/cpu/report.h"

namespace pmaptrain::cpu {
namespace {

// What the library that carries the messages of processes (Open MPI) uses in each of them: its code, and the memory
// that the processes of a machine share.
constexpr std::size_t message_library_bytes = std::size_t{11} << 20;

class CpuPlanned final : public Planned {
 public:
  CpuPlanned(Source source, const CpuBackendOptions& options, Processes processes)
      : Planned(std::move(source)), options_(options), plans_(make_plans(this->source(), options, processes)) {}

  int workers() const override { return plans_.sizes.workers; }
  std::int64_t barriers_per_step(std::size_t entry) const override {
    return plans_.sizes.worker_per_member ? 0 : plans_.entries[entry].barriers_per_step();
  }
  std::unique_ptr<Module> load() && override {
    return std::make_unique<CpuModule>(take_source(), std::move(plans_), options_);
  }

 private:
  MemoryNeeds compute_needs() const override;
  PlanReport make_report(std::size_t entry) const override {
    const KernelFactory kernels{options_.kernels, options_.make_kernel};
    const BoundPlan bound(plans_.entries[entry], kernels);
    return {report_of(bound.plan(), bound).rows, parallelism_of(bound.plan(), bound), bytes_sent(bound),
            bound.plan().program, rank_steps_of(bound.plan())};
  }

  const CpuBackendOptions options_;
  Plans plans_;
};

// The code that the library generates for a matrix product by batches of blocks: one kernel for each remainder of rows,
// columns and depth. It was measured on a CPU with AVX-512, of products that are 500 and 2,000 wide.
constexpr std::size_t product_code_bytes = std::size_t{400} << 10;

MemoryNeeds CpuPlanned::compute_needs() const {
  MemorySizes sizes = plans_.sizes;
  MemoryNeeds needs;
  // A kernel tells its scratch memory only once it is created. The factory destroys each kernel after asking it.
  KernelFactory kernels{options_.kernels, [&](const Op& op, const CpuRequest& request) -> std::unique_ptr<CpuKernel> {
                          const auto kernel = options_.make_kernel ? options_.make_kernel(op, request)
                                                                   : make_cpu_kernel(op, request, options_.kernels);
                          sizes.scratch = std::max(sizes.scratch, round_up(kernel->scratch_bytes(), alignment));
                          if (kernel->implementation().starts_with("brg:"))
                            needs.code = sum_of(needs.code, product_code_bytes);
                          return nullptr;
                        }};
  std::size_t commands = 0;
  for (const Plan& plan : plans_.entries) {
    const BoundPlan bound(plan, kernels);
    sizes.scratch = std::max(sizes.scratch, bound.scratch_bytes());
    commands = sum_of(commands, bound.command_bytes());
  }
  const auto workers = static_cast<std::size_t>(sizes.workers), members = static_cast<std::size_t>(sizes.members);
  needs.is_divided = !plans_.member_share.is_whole();
  std::set<std::string_view> counted;
  for (const Entry& entry : source().entries) {
    for (const Input& input : entry.program->inputs) {
      if (input.group == Group::batch || !counted.insert(input.name).second) continue;
      const Buffer& b = plans_.inputs.buffers.find(input.name)->second;
      const std::size_t copies = !b.axes.empty()
                                     ? static_cast<std::size_t>(slices_of(b, plans_.entries.front().share()))
                                 : b.pool == Pool::worker ? sizes.persistent_copies()
                                                          : 1;
      const bool is_divided = is_kept(input.group) && plans_.entries.front().share().divides(input.divided());
      needs.is_divided = needs.is_divided || is_divided;
      std::size_t& item = needs.of(input.group);
      item = sum_of(item, product_of(b.of_all_members ? 1 : members, product_of(b.slice_bytes(), copies)));
    }
  }
  for (std::size_t bytes : sizes.batch_bytes) needs.batches = sum_of(needs.batches, bytes);
  needs.gradients = product_of(sizes.transient_copies(), sizes.accumulators);
  needs.kernels =
      sum_of(product_of(sizes.transient_copies(), sizes.packed), product_of(workers, sum_of(sizes.scratch, commands)));
  const std::size_t total = sum_of(sizes.total(), product_of(workers, commands));
  const std::size_t named = needs.total();
  needs.activations = total > named ? total - named : 0;
  // The plan, the model and the config grow with the program; together they take about as much memory as the program. A
  // parameter inside a bucket adds no equations to the program, but its layer takes memory in the config and the model.
  constexpr std::size_t bytes_of_layer = 7 << 10;
  for (const Entry& entry : source().entries) needs.programs = sum_of(needs.programs, 2 * bytes_of(*entry.program));
  for (const Input& input : source().entries.front().program->inputs) {
    if (input.group != Group::params && input.group != Group::base) continue;
    needs.programs = sum_of(needs.programs, product_of(input.parts.size(), bytes_of_layer));
  }
  if (plans_.entries.front().share().processes() > 1 || !plans_.member_share.is_whole()) {
    needs.kernels = sum_of(needs.kernels, message_library_bytes);
  }
  const auto pool = [&](std::string name, std::size_t bytes, std::size_t copies, std::string meaning) {
    if (bytes > 0) needs.pools.push_back({std::move(name), bytes, copies, std::move(meaning)});
  };
  pool("constants", sizes.persistent.constants, 1, "filled when the program is loaded");
  const std::size_t transient = sizes.transient_copies();
  pool("persistent, of all members", sizes.persistent.base, 1, "parameters that are not trained, one copy");
  pool("persistent, shared", sizes.persistent.shared, members, "replicated inputs and outputs, one copy a member");
  pool("persistent, by device", sizes.persistent.devices, members,
       "inputs and outputs with a slice for every instance");
  pool("persistent, by worker", sizes.persistent.worker, members * sizes.persistent_copies(),
       "small replicated inputs and outputs");
  pool("shared", sizes.transient.shared, transient, "replicated temporaries, one copy");
  pool("by device", sizes.transient.devices, transient, "temporaries that cross a barrier: a slice for every instance");
  pool("by worker", sizes.transient.worker, workers, "small replicated temporaries");
  pool("arena", sizes.transient.arena, workers, "temporaries of the pieces that a worker runs abreast");
  pool("accumulators", sizes.accumulators, transient,
       sizes.second_accumulators == 0 ? "sums over pieces" : "sums over pieces; short steps use two sets in turn");
  for (std::size_t e = 0; e < sizes.slot_bytes.size(); ++e) {
    pool("batches, " + source().entries[e].name, sizes.slot_bytes[e],
         static_cast<std::size_t>(source().entries[e].batches), "batch inputs, filled ahead");
  }
  pool("packed", sizes.packed, transient, "operands in the layout of the kernels that read them");
  pool("scratch", sizes.scratch, workers, "scratch memory of kernels");
  pool("commands", commands, workers, "lists of kernels and addresses for every piece");
  return needs;
}

}  // namespace

std::unique_ptr<Planned> CpuBackend::plan(Source source, Processes processes) const {
  return std::make_unique<CpuPlanned>(std::move(source), options_, processes);
}

}  // namespace pmaptrain::cpu
