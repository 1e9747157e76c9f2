#include "core/runtime/cuda/trial.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/runtime/cuda/handles.h"

namespace pmaptrain::cuda {
namespace {

constexpr int runs_in_graph = 4;
constexpr const char* doing = "taking the time of a kernel";

// Elements of these bytes are small normal numbers in every floating-point type.
constexpr int byte_of_operands = 0x3C;

class Trial {
 public:
  Trial(const GpuRequest& request, const std::vector<Candidate>& candidates) : candidates_(candidates) {
    WorkspaceLayout parts;
    const auto devices = static_cast<std::size_t>(request.devices);
    std::vector<std::size_t> operands, results;
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      operands.push_back(parts.add(bytes(request.operands[i]) * (request.stacked[i] ? devices : 1)));
    }
    for (const Type& type : request.results) results.push_back(parts.add(bytes(type) * devices));
    std::size_t most = 0;
    for (const Candidate& each : candidates) most = std::max(most, each.command->workspace());
    const std::size_t workspace = parts.add(most);

    check(cudaStreamCreateWithFlags(stream_.create(), cudaStreamNonBlocking), doing);
    check(cudaEventCreate(begin_.create()), doing);
    check(cudaEventCreate(end_.create()), doing);
    check(cudaMalloc(memory_.create(), parts.size()), doing);
    auto* const memory = static_cast<std::byte*>(memory_.get());
    check(cudaMemsetAsync(memory, byte_of_operands, parts.size(), stream_.get()), doing);
    for (const std::size_t place : operands) operands_.push_back(memory + place);
    for (const std::size_t place : results) results_.push_back(memory + place);
    workspace_ = memory + workspace;
  }

  // The time that one run of a candidate takes now.
  double seconds_of(std::size_t index) {
    auto graph = graphs_.find(index);
    if (graph == graphs_.end()) graph = graphs_.emplace(index, record(*candidates_[index].command)).first;
    check(cudaEventRecord(begin_.get(), stream_.get()), doing);
    check(cudaGraphLaunch(graph->second.get(), stream_.get()), doing);
    check(cudaEventRecord(end_.get(), stream_.get()), doing);
    check(cudaEventSynchronize(end_.get()), doing);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), doing);
    return static_cast<double>(milliseconds) / 1000 / runs_in_graph;
  }

 private:
  // Several runs as a CUDA graph: a step is one, too, so that the host's time for a call is no part of it.
  OwnGraphExec record(PreparedCommand& command) {
    const auto run = [&] { command.run(stream_.get(), {operands_, results_, nullptr, workspace_}); };
    run();  // loads code, which is forbidden during a capture
    check(cudaStreamSynchronize(stream_.get()), doing);
    return captured(stream_.get(), [&] {
      for (int i = 0; i < runs_in_graph; ++i) run();
    });
  }

  const std::vector<Candidate>& candidates_;
  OwnStream stream_;
  OwnEvent begin_, end_;
  DeviceMemory memory_;
  std::vector<const std::byte*> operands_;
  std::vector<std::byte*> results_;
  std::byte* workspace_ = nullptr;
  std::map<std::size_t, OwnGraphExec> graphs_;  // by index
};

}  // namespace

std::unique_ptr<PreparedCommand> fastest_of(std::vector<Candidate> candidates, const std::string& purpose,
                                            const GpuRequest& request, gpu::TimedChoices& choices) {
  std::vector<std::string> names;
  names.reserve(candidates.size());
  for (const Candidate& each : candidates) names.push_back(each.name);
  std::optional<Trial> trial;
  std::size_t best = 0;
  try {
    best = choices.fastest(purpose, names, [&](std::size_t index) {
      if (!trial) trial.emplace(request, candidates);
      return trial->seconds_of(index);
    });
  } catch (const Error&) {
    // The first one needs no trial, for which memory may be short.
  }
  return std::move(candidates[best].command);
}

}  // namespace pmaptrain::cuda
