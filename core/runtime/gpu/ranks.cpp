#include "core/runtime/gpu/ranks.h"

#include <exception>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::gpu {
namespace {

constexpr char end_of_text = '\0';

// The error of another process, which that one has told as "<status> <message>\0<help>".
[[noreturn]] void throw_told(int process, const std::string& told) {
  const std::size_t message = told.find(' ') + 1, end = told.find(end_of_text);
  throw Error(static_cast<ExitStatus>(std::stoi(told)),
              Diagnostic{"process",
                         {},
                         "process " + std::to_string(process) + ": " + told.substr(message, end - message),
                         told.substr(end + 1),
                         {}});
}

// All communicators of these plans, by ranks.
std::set<std::vector<int>> communicators_of(const std::vector<Plan>& plans) {
  std::set<std::vector<int>> all;
  for (const Plan& plan : plans) {
    for_each_of<Collect>(plan.commands, [&](const Collect& collect, double) {
      for (int gpu = 0; gpu < plan.division.gpus(); ++gpu) {
        all.insert(ranks_of(plan.division, gpu, collect.axes, collect.major));
      }
    });
  }
  return all;
}

}  // namespace

std::vector<Rendezvous> collectives_of(const std::vector<Plan>& plans) {
  std::vector<Rendezvous> all;
  for (const Plan& plan : plans) {
    for_each_of<Collect>(plan.commands, [&](const Collect& collect, double times) {
      all.push_back({ranks_of(plan.division, plan.gpu, collect.axes, collect.major),
                     std::string(to_string(collect.kind)) + " in " + std::string(to_string(collect.dtype)) + " of " +
                         rendezvous_text(collect.bytes, *collect.equation, times)});
    });
  }
  return all;
}

void run_in_all(const Processes& processes, const std::function<void()>& f) {
  if (processes.placement.processes == 1) return f();
  std::exception_ptr failure;
  std::string told;
  const auto tell = [&](ExitStatus status, const std::string& message, const std::string& help) {
    failure = std::current_exception();
    told = std::to_string(static_cast<int>(status)) + " " + message + end_of_text + help;
  };
  try {
    f();
  } catch (const Error& error) {
    tell(error.status(), error.diagnostics().front().message, error.diagnostics().front().help);
  } catch (const std::exception& error) {
    tell(ExitStatus::failed, error.what(), "");
  }
  const std::vector<std::string> all = texts_of_all(processes, told);
  if (failure) std::rethrow_exception(failure);
  for (std::size_t process = 0; process < all.size(); ++process) {
    if (!all[process].empty()) throw_told(static_cast<int>(process), all[process]);
  }
}

void check_equal_gpus(const Processes& processes, int gpus) {
  if (processes.placement.processes == 1) return;
  std::int64_t counts[] = {gpus, -gpus};
  processes.transport->largest(counts);
  const std::int64_t most = counts[0], fewest = -counts[1];
  if (most == fewest) return;
  fail_resource(
      "the processes have different numbers of GPUs, from " + std::to_string(fewest) + " to " + std::to_string(most),
      "--workers " + std::to_string(fewest) + " (mesh.workers) takes as many in each");
}

CommunicatorIds exchange_communicator_ids(const Plans& plans, Platform& platform, Processes processes) {
  CommunicatorIds ids;
  if (processes.placement.processes == 1) return ids;
  const int gpus = static_cast<int>(plans.by_gpu.size()), own = processes.placement.process;
  const auto process_of = [&](int rank) { return rank / gpus; };
  for (const std::vector<int>& ranks : communicators_of(plans.by_gpu.front())) {
    if (process_of(ranks.front()) != process_of(ranks.back())) ids[ranks] = {};
  }
  std::vector<Transport::Outgoing> sends;
  std::vector<Transport::Incoming> receives;
  for (auto& [ranks, id] : ids) {
    const int owner = process_of(ranks.front());
    if (owner != own) {
      receives.push_back({owner, id.data(), id.size()});
      continue;
    }
    id = platform.new_communicator_id();
    for (int process = 0; process < processes.placement.processes; ++process) {
      if (process != own) sends.push_back({process, id.data(), id.size()});
    }
  }
  processes.transport->exchange(sends, receives);
  return ids;
}

}  // namespace pmaptrain::gpu
