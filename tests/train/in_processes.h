// Runs several processes as threads. Only process 0 sees the run folder.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/dataset.h"
#include "core/runtime/agreement.h"
#include "tests/runtime/placements.h"
#include "tests/session_run.h"

namespace pmaptrain::testing {

// Another dataset, which fails at each read after the first `reads`.
class UnreadableAfter : public data::Dataset {
 public:
  UnreadableAfter(std::shared_ptr<const data::Dataset> whole, int reads) : whole_(std::move(whole)), left_(reads) {}
  std::int64_t size() const override { return whole_->size(); }
  data::Field input() const override { return whole_->input(); }
  data::Field target() const override { return whole_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (left_-- <= 0) fail_data("example " + std::to_string(index) + " cannot be read", "");
    whole_->read(index, input, target);
  }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  mutable std::atomic<int> left_;
};

struct Ends {
  Trained trained;                    // process 0
  std::vector<run::Ended> ended;      // by process
  std::vector<std::string> failures;  // by process; empty for those that have not failed
  std::size_t messages = 0;           // that processes have sent
};

// Prepares the session of a process: its setup, and where in `options` the run continues.
using Prepare = std::function<setup::Setup(int process, Agreement& agreement, train::SessionOptions& options)>;

inline Ends train_in_processes(int processes, const std::filesystem::path& run, const Prepare& prepare) {
  test::MemoryTransport transport(processes);
  Ends ends;
  ends.ended.resize(static_cast<std::size_t>(processes));
  ends.failures.resize(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    Agreement agreement({{process, processes}, &transport.end(process)});
    const auto at = static_cast<std::size_t>(process);
    train::SessionOptions options;
    options.agreement = &agreement;
    options.folder.writes = process == 0;
    options.run_dir = process == 0 ? run : run.parent_path() / "gone";
    try {
      const setup::Setup setup = prepare(process, agreement, options);
      if (process == 0) {
        ends.trained = train_setup_in(run, setup, options);
        ends.ended[at] = ends.trained.ended;
      } else {
        ends.ended[at] = train::train(setup, options, {});
      }
    } catch (const Error& error) {
      agreement.fail(error.status());
      ends.failures[at] = error.diagnostics().front().message;
    }
  });
  ends.messages = transport.messages();
  return ends;
}

}  // namespace pmaptrain::testing
