// What `validate` says that a step costs, against counts at run time.
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/ops/all.h"
#include "core/ops/collective/collective.h"
#include "core/ops/conv/conv.h"
#include "core/ops/matmul/matmul.h"
#include "core/report/plan_report.h"
#include "core/setup/programs.h"
#include "core/setup/start.h"
#include "core/train/resources.h"
#include "tests/catch.h"
#include "tests/runtime/allocations.h"
#include "tests/runtime/placements.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

namespace pmaptrain::testing {
namespace {

// Products of an output pixel's taps with what lies under them, counted one by one; `taps` of a kernel of `size` that
// moves over `n` pixels by 1, as SAME does.
double taps_inside(std::int64_t n, std::int64_t size) {
  double inside = 0;
  const std::int64_t before = (size - 1) / 2;
  for (std::int64_t y = 0; y < n; ++y) {
    for (std::int64_t k = 0; k < size; ++k) inside += y + k - before >= 0 && y + k - before < n ? 1 : 0;
  }
  return inside;
}

double product_of(const Shape& shape) {
  double product = 1;
  for (std::int64_t size : shape) product *= static_cast<double>(size);
  return product;
}

// Multiplications and additions of a convolution of stride 1 that keeps its images' size, or of one of its gradients.
double conv_flops(const Shape& image, const Shape& kernel) {
  return 2 * static_cast<double>(image[0]) * product_of({kernel[2], kernel[3]}) * taps_inside(image[1], kernel[0]) *
         taps_inside(image[2], kernel[1]);
}

// What one run of a kernel of these shapes multiplies and adds; of an op that is no product, as the op says.
double flops_of(const Op& op, const CpuRequest& request) {
  const auto shape = [&](std::size_t i) -> const Shape& { return request.operands[i].shape; };
  const double devices = static_cast<double>(request.devices);
  if (const auto* matmul = op.as<ops::Matmul>()) {
    const std::int64_t inner = shape(0)[matmul->transpose_a ? 0 : 1];
    return devices * 2 * static_cast<double>(inner) * product_of(request.results[0].shape);
  }
  if (op.as<ops::Conv>() != nullptr) return devices * conv_flops(shape(0), shape(1));
  if (op.as<ops::ConvInputGrad>() != nullptr) return devices * conv_flops(request.results[0].shape, shape(0));
  if (const auto* gradient = op.as<ops::ConvKernelGrad>())
    return devices * conv_flops(shape(0), gradient->kernel_shape);
  double flops = op.cost(Mesh(), request.operands, request.results).flops;
  if (request.region != nullptr) {
    // The region's types are those of whole arrays, of which the kernel may have a chunk.
    const Type& whole = request.types[static_cast<std::size_t>(request.region->results.front().id)];
    const double share = static_cast<double>(numel(request.results[0])) / static_cast<double>(numel(whole));
    for (const Equation& equation : request.region->equations) {
      const auto type = [&](Value value) { return request.types[static_cast<std::size_t>(value.id)]; };
      std::vector<Type> operands, results;
      for (Value value : equation.operands) operands.push_back(type(value));
      for (Value value : equation.results) results.push_back(type(value));
      // A scalar is computed anew for each chunk.
      const bool cut = numel(results.front()) == numel(whole);
      flops += (cut ? share : 1) * equation.op.cost(Mesh(), operands, results).flops;
    }
  }
  return devices * flops;
}

class Counted : public CpuKernel {
 public:
  Counted(std::unique_ptr<CpuKernel> kernel, double flops, double& total)
      : kernel_(std::move(kernel)), flops_(flops), total_(total) {}
  void run(const CpuArguments& arguments) override {
    kernel_->run(arguments);
    total_ += flops_;
  }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string implementation() const override { return kernel_->implementation(); }

 private:
  std::unique_ptr<CpuKernel> kernel_;
  double flops_;
  double& total_;
};

// Of one step of one worker: what kernels did, by their ops.
std::map<std::string, double> counted_flops(const setup::Setup& setup) {
  std::map<std::string, double> flops;
  CpuBackendOptions options{.workers = 1};
  options.make_kernel = [&](const Op& op, const CpuRequest& request) -> std::unique_ptr<CpuKernel> {
    return std::make_unique<Counted>(make_cpu_kernel(op, request), flops_of(op, request),
                                     flops[std::string(op.name())]);
  };
  take_steps(*load_step(setup, options));
  return flops;
}

double sum(const std::map<std::string, double>& parts) {
  double total = 0;
  for (const auto& [name, part] : parts) total += part;
  return total;
}

// What reductions over devices add: each device its own values, as the program says.
double reduction_flops(const Program& program) {
  double flops = 0;
  for (const Equation& equation : program.equations) {
    if (equation.op.as<ops::Psum>() == nullptr) continue;
    for (Value value : equation.operands) flops += product_of(program.type(value).shape);
  }
  return flops * static_cast<double>(program.mesh.devices());
}

TEST_CASE("the operations of a step are those that its kernels carry out, however it is cut", "[setup]") {
  for (const bool images : {false, true}) {
    const std::string axis = images ? "mesh.axes.devices=" : "mesh.axes.batch=";
    for (const std::string& option :
         {std::string("seed=0"), std::string("data.microbatches=2"), axis + "2", axis + "1"}) {
      INFO((images ? "cnn.yaml " : "linear_regression.yaml ") << option);
      const setup::Setup setup = images ? small_cnn({option}) : setup_of_config("linear_regression.yaml", {option});
      const std::map<std::string, double> counted = counted_flops(setup);
      const double said = setup::cost_of(*setup.training).flops;
      // Each device adds up its microbatches' sums in the program, each piece of rows in the plan.
      const double done = sum(counted) + reduction_flops(*setup.training);
      const double added = option == "data.microbatches=2" ? 2 * reduction_flops(*setup.training) : 0;
      CHECK(said >= Approx(done).epsilon(1e-12));
      CHECK(said <= Approx(done + added).epsilon(1e-12));
      CHECK(counted.at("matmul") > 0);
      if (images)
        CHECK(counted.at("conv") + counted.at("conv_input_grad") + counted.at("conv_kernel_grad") > 0.9 * said);
    }
  }
}

// Bytes that one device gives to reductions and exchanges in a step of the plan; of a sum over all devices' rows, its
// addend, which is never made; with the zeros between the arrays of a bucket.
double given_by_a_device(const cpu::Plan& plan) {
  double bytes = 0;
  const auto add = [&](const cpu::Instruction& instruction) {
    if (const auto* const parts = instruction.as<cpu::ProductInParts>()) {
      bytes += static_cast<double>(pmaptrain::bytes(plan.program->type(parts->equation->results.front())));
    }
    if (const auto* const sums = instruction.as<cpu::RowSums>()) {
      for (int index : sums->accumulators) {
        const cpu::Accumulator& sum = plan.accumulators[static_cast<std::size_t>(index)];
        bytes += static_cast<double>(sum.elements) * static_cast<double>(size_of(sum.dtype));
      }
    }
    const auto slice = [&](int buffer) {
      bytes += static_cast<double>(plan.buffers[static_cast<std::size_t>(buffer)].slice_bytes());
    };
    if (const auto* const start = instruction.as<cpu::ReducePartial>()) slice(start->operand);
    if (const auto* const exchange = instruction.as<cpu::Exchange>()) slice(exchange->operand);
    // A bucket has zeros between its arrays.
    const auto* const copy = instruction.as<cpu::Copy>();
    if (copy != nullptr && plan.buffers[static_cast<std::size_t>(copy->to)].bucket_elements > 0) slice(copy->to);
  };
  for (const cpu::Stage& stage : plan.stages) {
    for (const cpu::Instruction& instruction : stage.every_worker) add(instruction);
    for (const cpu::ChunkList& chunked : stage.chunk_lists) {
      for (const cpu::Instruction& instruction : chunked.instructions) add(instruction);
    }
    for (const cpu::Instruction& instruction : stage.tasks) add(instruction);
    for (const cpu::PieceList& list : stage.piece_lists) {
      for (const cpu::Instruction& instruction : list.instructions) add(instruction);
    }
  }
  return bytes;
}

TEST_CASE("what a device sends is what the plan takes from it", "[setup]") {
  for (const setup::Setup& setup :
       {setup_of_config("linear_regression.yaml"), setup_of_config("linear_regression.yaml", {"data.microbatches=4"}),
        small_cnn(), small_cnn({"data.microbatches=2"}), small_cnn({"mesh.axes.devices=2"})}) {
    const setup::StepCost cost = setup::cost_of(*setup.training);
    REQUIRE(cost.wire_bytes.size() == 1);
    CHECK(cost.wire_bytes[0].second == given_by_a_device(cpu::make_plan(setup.training)));
  }
}

// The bytes that each process sends in a step, counted by the transport, and those that its plan says.
void check_sent(const setup::Setup& setup, int processes) {
  INFO(processes << " processes");
  test::MemoryTransport transport(processes);
  transport.counts = false;
  std::vector<std::size_t> counted(static_cast<std::size_t>(processes)), said = counted;
  std::mutex mutex;
  transport.tamper = [&](int from, int, std::vector<std::byte>& message) {  // called one at a time
    counted[static_cast<std::size_t>(from)] += message.size();
  };
  test::on_each_process(transport, processes, [&](int process) {
    setup::PlannedSource step = setup::plan_source(setup.spec().mesh, setup::step_source(setup), KernelChoice::best,
                                                   {{process, processes}, &transport.end(process)});
    const std::size_t bytes = step.planned->report(setup::train_entry).sent_bytes;
    const std::unique_ptr<Module> module = std::move(*step.planned).load();
    transport.count_from_here();
    setup::set_initial_values(*module, setup);
    setup::fill_first_batch(*module, setup);
    take_steps(*module, 3);
    const std::lock_guard lock(mutex);
    said[static_cast<std::size_t>(process)] = 3 * bytes;
  });
  CHECK(counted == said);
  const report::ValidateReport report = report::make_validate_report(setup, false, processes);
  REQUIRE(report.sent_bytes);
  CHECK(3 * *report.sent_bytes == counted.front());
  CHECK(counted.front() > 0);
}

TEST_CASE("validate says the bytes that a process sends in a step, which a transport counts", "[setup][placements]") {
  for (const int processes : {2, 3, 4, 8}) {
    check_sent(setup_of_config("linear_regression.yaml", {"mesh.blocks=8"}), processes);
    check_sent(setup_of_config("linear_regression.yaml", {"mesh.blocks=8", "data.microbatches=4"}), processes);
    check_sent(small_cnn({"mesh.blocks=8"}), processes);
    const std::string two_axes = "mesh.axes=[{a: 2}, {b: 4}]";
    check_sent(small_cnn({"mesh.blocks=8", "data.microbatches=2", two_axes}), processes);
    for (const char* const axis : {"a", "b", "[a, b]"}) {
      const std::string shards = "parallelism.fsdp={axis: " + std::string(axis) + ", stage: 3}";
      check_sent(small_cnn({"mesh.blocks=8", two_axes, "data.axes=[a, b]", shards}), processes);
    }
  }
}

TEST_CASE("a run holds the memory that was estimated, and little more", "[setup]") {
  for (const char* const devices : {"2", "8"}) {
    for (const char* const batch : {"16", "64"}) {
      INFO(devices << " devices, batches of " << batch);
      const setup::Setup setup =
          small_cnn({std::string("mesh.axes.devices=") + devices, std::string("data.batch_size=") + batch,
                     "mesh.workers=2", "data.source.synthetic_images.test=64"});
      const setup::MemoryEstimate estimate =
          train::estimate_memory(setup, setup::backend_of(setup.spec().mesh)->plan(setup::run_source(setup))->needs());
      const test::Heap heap = test::watch_heap([&] { train_setup(setup); });
      // The programs are made before the run.
      const auto planned = static_cast<std::int64_t>(estimate.total() - estimate.kernels - estimate.programs);
      CHECK(heap.peak_bytes > planned * 9 / 10);
      // Kernels' scratch memory takes about as much whatever the batch; their code is no heap.
      constexpr std::int64_t scratch = 1 << 20;
      CHECK(heap.peak_bytes < planned * 11 / 10 + scratch);
    }
  }
}

}  // namespace
}  // namespace pmaptrain::testing
