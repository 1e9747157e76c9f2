#include "core/runtime/mpi/heartbeats.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace pmaptrain::mpi {
namespace {

constexpr int beat_tag = 2;
constexpr auto interval = std::chrono::milliseconds(250);
// While it waits, the thread that communicates looks this often whether the others are there.
constexpr double check_every = 0.1;
constexpr double least_timeout = 5, first_timeout = 60, slowest_factor = 10;
// Before so many steps, a process may still create kernels.
constexpr std::int64_t first_submissions = 4;

double now() { return MPI_Wtime(); }

const char* doing(std::int64_t phase) {
  switch (static_cast<Transport::Phase>(phase)) {
    case Transport::Phase::reading: return "reading data";
    case Transport::Phase::computing: return "computing";
    case Transport::Phase::recording: return "logging, evaluating or saving";
    case Transport::Phase::serving: return "running trials";
    case Transport::Phase::preparing: break;
  }
  return "preparing the run";
}

// Trials have steps of their own.
std::string at_step(std::int64_t phase, std::int64_t step) {
  const bool has_steps = static_cast<Transport::Phase>(phase) != Transport::Phase::serving;
  return has_steps ? " at step " + std::to_string(step) : "";
}

}  // namespace

Heartbeats::Heartbeats(MPI_Comm all, const Placement& placement)
    : all_(all),
      process_(placement.process),
      processes_(placement.processes),
      hosts_(static_cast<std::size_t>(placement.processes)),
      peers_(static_cast<std::size_t>(placement.processes)),
      received_(static_cast<std::size_t>(placement.processes)),
      sent_(static_cast<std::size_t>(placement.processes)) {
  Host own;
  int length = 0;
  MPI_Get_processor_name(own.name, &length);
  own.pid = getpid();
  MPI_Allgather(&own, sizeof own, MPI_BYTE, hosts_.data(), sizeof own, MPI_BYTE, all_);
  for (Peer& peer : peers_) peer.heard = peer.advanced = now();
  worked_since_ = ticked_ = now();
  thread_ = std::thread([this] { run(); });
}

Heartbeats::~Heartbeats() {
  stop_ = true;
  thread_.join();
}

void Heartbeats::run() {
  const auto count = static_cast<std::size_t>(processes_);
  std::vector<MPI_Request> receives(count, MPI_REQUEST_NULL), sends(count, MPI_REQUEST_NULL);
  const auto receive_from = [&](std::size_t p) {
    MPI_Irecv(&received_[p], sizeof(Beat), MPI_BYTE, static_cast<int>(p), beat_tag, all_, &receives[p]);
  };
  for (std::size_t p = 0; p < count; ++p) {
    if (static_cast<int>(p) != process_) receive_from(p);
  }
  while (!stop_) {
    const double present = now();
    if (present - ticked_ > most_pause) {  // this process was stopped, and perhaps all were
      const std::lock_guard lock(mutex_);
      for (Peer& peer : peers_) peer.heard = peer.advanced = present;
      continued_ = present;
    }
    ticked_ = present;
    for (std::size_t p = 0; p < count; ++p) {
      if (static_cast<int>(p) == process_) continue;
      int done = 0;
      for (MPI_Test(&receives[p], &done, MPI_STATUS_IGNORE); done != 0;
           MPI_Test(&receives[p], &done, MPI_STATUS_IGNORE)) {
        const std::lock_guard lock(mutex_);
        Peer& peer = peers_[p];
        peer.heard = now();
        if (received_[p].progress != peer.beat.progress) peer.advanced = peer.heard;
        peer.beat = received_[p];
        receive_from(p);
      }
      // A process that is stopped receives nothing, so its last message may still be under way.
      MPI_Test(&sends[p], &done, MPI_STATUS_IGNORE);
      if (done == 0) continue;
      sent_[p] = {progress_, step_, static_cast<std::int64_t>(phase_.load()), waiting_};
      MPI_Isend(&sent_[p], sizeof(Beat), MPI_BYTE, static_cast<int>(p), beat_tag, all_, &sends[p]);
    }
    std::this_thread::sleep_for(interval);
  }
  // Messages that nobody receives any more are cancelled when MPI is left.
  for (MPI_Request& request : receives) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  for (MPI_Request& request : sends) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

double Heartbeats::timeout() const {
  const double given = timeout_;
  if (given >= 0) return given;
  return submissions_ < first_submissions ? first_timeout : std::max(least_timeout, slowest_factor * slowest_);
}

void Heartbeats::begin_waiting() {
  waits_since_ = checked_ = now();
  if (must_get_on(phase_)) slowest_ = std::max(slowest_, waits_since_ - worked_since_);
  waiting_ = Waiting::for_messages;
  ++progress_;  // it may have worked for long, and has only now begun to wait
}

void Heartbeats::end_waiting() {
  waiting_ = Waiting::no;
  ++progress_;
  worked_since_ = now();
}

void Heartbeats::begin_watching() {
  waits_since_ = checked_ = now();
  waiting_ = Waiting::for_hardware;
  ++progress_;
}

void Heartbeats::end_watching() {
  waiting_ = Waiting::no;
  ++progress_;
}

std::string Heartbeats::name_of(int process) const {
  const Host& host = hosts_[static_cast<std::size_t>(process)];
  return "process " + std::to_string(process) + " (" + host.name + ", pid " + std::to_string(host.pid) + ")";
}

void Heartbeats::check() {
  const double present = now();
  if (present - checked_ < check_every) return;
  checked_ = present;
  const double limit = timeout();
  const double since = std::max(waits_since_, continued_.load());
  if (limit == 0 || present - since < limit || present - ticked_ > most_pause) return;
  const std::lock_guard lock(mutex_);
  const Verdict verdict = judge(peers_, process_, present, limit);
  if (verdict.culprit < 0) {
    if (waiting_ == Waiting::for_hardware || !verdict.all_wait || (process_ != 0 && present - since < limit + 1))
      return;
    std::fprintf(stderr,
                 "error: all processes wait for each other, this one at step %lld\n"
                 "  help: this is a mistake in pmaptrain; --resume continues from the last checkpoint\n",
                 static_cast<long long>(step_.load()));
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  // One process tells; the others give it a second.
  if (verdict.teller != process_ && present - since < limit + 1) return;
  const Peer& culprit = peers_[static_cast<std::size_t>(verdict.culprit)];
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.0f s", present - (verdict.is_silent ? culprit.heard : culprit.advanced));
  const std::string why =
      name_of(verdict.culprit) + (verdict.is_silent ? " has not answered for " : " has not got on for ") + seconds +
      "; when last heard it was " + doing(culprit.beat.phase) + at_step(culprit.beat.phase, culprit.beat.step);
  std::fprintf(stderr,
               "error: %s, while %s waited for it%s\n"
               "  help: --resume continues from the last checkpoint; mesh.timeout sets the time\n",
               why.c_str(), name_of(process_).c_str(),
               at_step(static_cast<std::int64_t>(phase_.load()), step_).c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace pmaptrain::mpi
