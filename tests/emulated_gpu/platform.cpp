#include "tests/emulated_gpu/platform.h"

#include <string>
#include <utility>

#include "core/base/error.h"
#include "tests/emulated_gpu/device.h"

namespace pmaptrain::test {
namespace {

class EmulatedPlatform final : public gpu::Platform {
 public:
  EmulatedPlatform(const Emulation& options, std::shared_ptr<emulation::Links> links)
      : machine_(std::make_shared<emulation::Machine>(options, std::move(links))) {}

  int devices() const override { return machine_->options.devices; }

  gpu::Properties properties(int device) const override {
    check(device);
    return {"emulated GPU", 90, machine_->options.memory, 0, {}};
  }

  std::unique_ptr<gpu::Device> open(int device, int module, const gpu::GpuRange& ranks) override {
    check(device);
    return std::make_unique<emulation::EmulatedDevice>(machine_, machine_->open(module, device, ranks.first));
  }

  gpu::CommunicatorId new_communicator_id() override { return machine_->links->new_id(); }

  emulation::Machine& machine() const { return *machine_; }

 private:
  void check(int device) const {
    if (device >= 0 && device < devices()) return;
    fail_resource("there is no device " + std::to_string(device) + ": the emulation has " + std::to_string(devices()));
  }

  const std::shared_ptr<emulation::Machine> machine_;
};

emulation::Machine& machine_of(const gpu::Platform& emulated) {
  return dynamic_cast<const EmulatedPlatform&>(emulated).machine();
}

}  // namespace

std::unique_ptr<gpu::Platform> make_emulated(const Emulation& options) {
  return std::make_unique<EmulatedPlatform>(options, std::make_shared<emulation::Links>());
}

std::vector<std::unique_ptr<gpu::Platform>> make_emulated(int processes, const Emulation& options) {
  const auto links = std::make_shared<emulation::Links>();
  std::vector<std::unique_ptr<gpu::Platform>> platforms;
  for (int process = 0; process < processes; ++process) {
    platforms.push_back(std::make_unique<EmulatedPlatform>(options, links));
  }
  return platforms;
}

std::string take_misuse(const gpu::Platform& emulated) {
  emulation::Machine& machine = machine_of(emulated);
  const std::lock_guard lock(machine.mutex);
  return std::exchange(machine.misuse, {});
}

DeviceCalls& calls_of(const gpu::Platform& emulated) { return machine_of(emulated).calls; }

}  // namespace pmaptrain::test
