#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/runtime/cuda/libraries.h"
#include "core/runtime/cuda/platform.h"

namespace pmaptrain::cuda {
namespace {

// A device that can only prepare kernels, for a GPU that is described by its properties and need not exist.
class CompileOnlyDevice final : public gpu::Device {
 public:
  explicit CompileOnlyDevice(Libraries libraries) : libraries_(std::move(libraries)) {}

  void begin_preparing(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    libraries_.begin_preparing(op, request, kernel);
  }
  gpu::PreparedKernel prepare(const Op& op, const GpuRequest& request, const GpuKernel& kernel) override {
    // On a real GPU, the first variant whose relu keeps NaNs is used. Which one that is cannot be known here, so this
    // returns the maximum of the workspaces.
    std::size_t workspace = 0;
    for (const Relu relu : relu_variants) {
      const Kernel tried = libraries_.prepare(op, request, kernel, relu);
      workspace = std::max(workspace, tried.workspace());
      if (!tried.has_library_relu()) break;
    }
    return {count_++, workspace};
  }

  std::byte* allocate(std::size_t) override { refuse(); }
  std::byte* pinned(std::size_t) override { refuse(); }
  void launch(gpu::Stream, gpu::PreparedKernel, const gpu::LaunchArguments&, const gpu::Accesses&) override {
    refuse();
  }
  void copy(gpu::Stream, std::byte*, const std::byte*, const gpu::PitchedRows&) override { refuse(); }
  void reduce(gpu::Stream, Reduction, DType, std::byte*, const std::byte*, std::int64_t, const gpu::SpacedArrays&,
              std::span<const TreeNode>) override {
    refuse();
  }
  void collective(gpu::Stream, gpu::Communicator, gpu::Collective, DType, std::byte*, const std::byte*,
                  std::size_t) override {
    refuse();
  }
  void order(gpu::Stream, gpu::Stream) override { refuse(); }
  void stamp(gpu::Stream, int) override { refuse(); }
  double seconds_between(int, int) override { refuse(); }
  void begin_range(const std::string&) override { refuse(); }
  void end_range() override { refuse(); }
  gpu::Graph capture(const std::function<void()>&) override { refuse(); }
  void replay_calls(gpu::Graph, int, int) override { refuse(); }
  gpu::Event record_event(gpu::Stream) override { refuse(); }
  bool poll(gpu::Event) override { refuse(); }
  void wait_event(gpu::Event, gpu::Stream) override { refuse(); }
  gpu::Communicator create_communicator(std::span<const int>, const gpu::CommunicatorId*) override { refuse(); }
  void barrier(int) override { refuse(); }
  void abort(const std::string&) noexcept override {}

 private:
  [[noreturn]] static void refuse() { fail_running("GPU: this device is only described; it runs nothing"); }

  Libraries libraries_;
  int count_ = 0;
};

class CompileOnlyPlatform final : public gpu::Platform {
 public:
  explicit CompileOnlyPlatform(const gpu::ModuleOptions& options)
      : generate_source_(options.generate_source), description_(options.planned_for) {
    const auto json = nlohmann::json::parse(description_, nullptr, false);
    if (!json.is_object() || !json.contains("deviceVer")) {
      fail_running("GPU: the description of a device is no JSON object with a deviceVer");
    }
    properties_.name = json.value("deviceName", "");
    properties_.compute_capability = json.value("deviceVer", 0) / 10;  // 900 means 9.0
    properties_.memory = json.value("totalGlobalMem", std::size_t{0});
    properties_.driver = json.value("driverVer", 0);
  }

  int devices() const override { return 1; }
  gpu::Properties properties(int) const override { return properties_; }
  std::unique_ptr<gpu::Device> open(int, int, const gpu::RanksHere&) override {
    return std::make_unique<CompileOnlyDevice>(
        Libraries(properties_.compute_capability, generate_source_, compiler_, description_));
  }
  gpu::CommunicatorId new_communicator_id() override { fail_running("a GPU that is only described joins no others"); }

 private:
  GenerateSource generate_source_;
  const std::shared_ptr<Compiler> compiler_ = std::make_shared<Compiler>();
  std::string description_;
  gpu::Properties properties_;
};

}  // namespace

std::unique_ptr<gpu::Platform> open_compile_only_platform(const gpu::ModuleOptions& options) {
  return std::make_unique<CompileOnlyPlatform>(options);
}

}  // namespace pmaptrain::cuda
