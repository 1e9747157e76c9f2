#include "core/train/checkpoint_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/signals.h"
#include "core/setup/plan.h"

namespace pmaptrain::train {
namespace {

// The offset after the bytes of the last member.
std::size_t end_of(const SnapshotPart& part, std::int64_t members) {
  return sum_of(part.offset, product_of(part.bytes, static_cast<std::size_t>(members)));
}

// Places the variables with the indices `inputs` in a snapshot, one after the other in ascending order.
std::vector<SnapshotPart> snapshot_parts(const Program& program, const std::vector<std::size_t>& inputs,
                                         std::int64_t members) {
  const std::vector<Variable> variables = variables_of(program);
  std::vector<SnapshotPart> parts;
  std::size_t offset = 0;
  for (const std::size_t input : inputs) {
    parts.push_back({input, offset, bytes(variables[input].type)});
    offset = end_of(parts.back(), members);
  }
  return parts;
}

std::unique_ptr<std::byte[]> allocate(std::size_t size) {
  try {
    return std::make_unique_for_overwrite<std::byte[]>(size);
  } catch (const std::bad_alloc&) {
    fail_resource("the snapshot for checkpoints needs " + std::to_string(size) + " bytes, which cannot be allocated",
                  "train.checkpoint.every: never writes one checkpoint, at the end, without a snapshot");
  }
}

}  // namespace

std::size_t snapshot_bytes(const setup::Setup& setup) {
  if (!setup.timetable.saves_during_run) return 0;
  const std::int64_t members = spec::members(setup.spec());
  const std::vector<SnapshotPart> parts = snapshot_parts(*setup.training, checkpoint_inputs(setup), members);
  return parts.empty() ? 0 : end_of(parts.back(), members);
}

CheckpointWriter::CheckpointWriter(const setup::Setup& setup, const run::RunFolder& folder, setup::SlicedReader& reader,
                                   SpanLog* log)
    : setup_(setup),
      folder_(folder),
      reader_(reader),
      log_(log),
      parts_(snapshot_parts(*setup.training, checkpoint_inputs(setup), spec::members(setup.spec()))) {
  if (!setup.timetable.saves_during_run || !folder.writes() || reader.is_divided()) return;
  snapshot_ = allocate(snapshot_bytes(setup));
  const BlockSignals blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    fail_resource("the thread that writes checkpoints could not be started: " + error.code().message(),
                  "raise the limit on threads (ulimit -u, the cgroup's pids.max), or end other processes");
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::save(const run::RunState& state) {
  if (reader_.is_divided()) return save_now(state);
  if (!folder_.writes()) return;
  wait();
  take_snapshot();
  {
    const std::lock_guard lock(mutex_);
    job_ = state;
  }
  changed_.notify_all();
}

void CheckpointWriter::save_now(const run::RunState& state) {
  if (!folder_.writes()) return reader_.help();
  wait();
  reader_.lead([&] { commit(state, read_slices_of(reader_)); });
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !job_; });
}

void CheckpointWriter::prune() const { folder_.prune_checkpoints(setup_.spec().train.checkpoint.keep); }

bool CheckpointWriter::is_writing() const {
  const std::lock_guard lock(mutex_);
  return job_.has_value();
}

std::optional<CheckpointWriter::Failure> CheckpointWriter::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

void CheckpointWriter::take_snapshot() {
  Module& module = reader_.module();
  Ticket last;
  for (const SnapshotPart& part : parts_) {
    std::byte* to = snapshot_.get() + part.offset;
    for (std::int64_t member = 0; member < spec::members(setup_.spec()); ++member, to += part.bytes) {
      last = module.read(module.input(setup::train_entry, part.input), {module.own_device(), member}, {to, part.bytes});
    }
  }
  module.wait(last);
}

// Works also after the run folder was moved, because files are created relative to its open directory.
void CheckpointWriter::commit(const run::RunState& state, const ReadSlices& slices) const {
  const SpanLog::Scope span(log_, state.step, "write checkpoint");
  folder_.flush_file("metrics.jsonl");  // `state` has its length, so its lines must be on the disk first
  const std::string best = run::best_folder(state);
  const bool is_new_best = best == run::best_name(state.step) || best == run::checkpoint_name(state.step);
  // The folder of the best is written first, because the checkpoint's state refers to it.
  if (best == run::best_name(state.step)) write_best(folder_, setup_, state, slices);
  write_checkpoint(folder_, setup_, state, slices, is_new_best ? best : "");
  prune();
}

void CheckpointWriter::run() {
  const ReadSlices from_snapshot = [this](std::size_t input, std::int64_t member, const UseSlice& use) {
    const auto part = std::lower_bound(parts_.begin(), parts_.end(), input,
                                       [](const SnapshotPart& p, std::size_t value) { return p.input < value; });
    use({snapshot_.get() + part->offset + static_cast<std::size_t>(member) * part->bytes, part->bytes});
  };
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return job_ || stop_; });
    if (!job_) return;
    lock.unlock();
    std::string failure;
    try {
      commit(*job_, from_snapshot);
    } catch (const Error& error) {
      failure = error.diagnostics().front().message;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    lock.lock();
    if (!failure.empty()) failure_ = Failure{job_->step, std::move(failure)};
    job_.reset();
    changed_.notify_all();
  }
}

}  // namespace pmaptrain::train
