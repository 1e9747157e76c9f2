// Several processes as threads of one: a transport through memory, and a module for each placement.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/runtime/transport.h"
#include "tests/runtime/programs.h"

namespace pmaptrain::test {

// Copies messages between the threads of one process. Each pair of processes has a queue.
class MemoryTransport {
 public:
  explicit MemoryTransport(int processes) : queues_(static_cast<std::size_t>(processes * processes)) {
    for (int p = 0; p < processes; ++p) ends_.push_back(std::make_unique<End>(*this, p, processes));
  }

  Transport& end(int process) { return *ends_[static_cast<std::size_t>(process)]; }

  // What a test does to a message before it is delivered.
  using Tamper = std::function<void(int from, int to, std::vector<std::byte>& message)>;
  Tamper tamper;
  // Called by the receiving process for each message that it has received.
  std::function<void(int from, int to)> received;

  // Whether messages are counted and tampered with. If it is false at the start, that begins when every process has
  // called count_from_here(): then modules are loaded.
  bool counts = true;
  void count_from_here() {
    std::unique_lock lock(mutex_);
    if (++counting_ == static_cast<int>(ends_.size())) counts = true;
    arrived_.notify_all();
    arrived_.wait(lock, [&] { return stopped_ || counts; });
    if (!counts) throw std::runtime_error("another placement has failed");
  }

  // Ends all waits: a placement has failed.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    arrived_.notify_all();
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t messages() const { return messages_; }
  int watching() const { return watching_; }  // processes that wait for their own hardware

 private:
  class End final : public Transport {
   public:
    End(MemoryTransport& all, int process, int processes) : all_(all), process_(process), processes_(processes) {}
    void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) override {
      std::unique_lock lock(all_.mutex_);
      for (const Outgoing& message : sends) {
        std::vector<std::byte> copy(message.memory, message.memory + message.bytes);
        if (all_.counts) {
          if (all_.tamper) all_.tamper(process_, message.to, copy);
          all_.bytes_ += message.bytes;
          ++all_.messages_;
        }
        all_.queues_[static_cast<std::size_t>(process_ * processes_ + message.to)].push_back(std::move(copy));
      }
      all_.arrived_.notify_all();
      for (const Incoming& message : receives) {
        std::deque<std::vector<std::byte>>& queue =
            all_.queues_[static_cast<std::size_t>(message.from * processes_ + process_)];
        all_.arrived_.wait(lock, [&] { return all_.stopped_ || !queue.empty(); });
        if (queue.empty()) throw std::runtime_error("another placement has failed");
        if (queue.front().size() != message.bytes) throw std::runtime_error("a message has another size");
        std::memcpy(message.memory, queue.front().data(), message.bytes);
        queue.pop_front();
        if (all_.received) all_.received(message.from, process_);
      }
    }
    void largest(std::span<std::int64_t> values) override {
      const std::vector<std::int64_t> own(values.begin(), values.end());
      std::vector<std::int64_t> of_all(own.size() * static_cast<std::size_t>(processes_));
      std::vector<Outgoing> sends;
      std::vector<Incoming> receives;
      for (int p = 0; p < processes_; ++p) {
        if (p == process_) continue;
        const auto words =
            std::as_writable_bytes(std::span(of_all).subspan(static_cast<std::size_t>(p) * own.size(), own.size()));
        sends.push_back({p, std::as_bytes(std::span(own)).data(), words.size()});
        receives.push_back({p, words.data(), words.size()});
      }
      exchange(sends, receives);
      for (int p = 0; p < processes_; ++p) {
        if (p == process_) continue;
        for (std::size_t i = 0; i < own.size(); ++i) {
          values[i] = std::max(values[i], of_all[static_cast<std::size_t>(p) * own.size() + i]);
        }
      }
    }
    void watch(Wait wait) override {
      const std::lock_guard lock(all_.mutex_);
      if (all_.stopped_ && wait != Wait::ends) throw std::runtime_error("another placement has failed");
      if (wait == Wait::begins) ++all_.watching_;
      if (wait == Wait::ends) --all_.watching_;
    }
    void broadcast(std::span<std::byte> bytes) override {
      std::vector<Outgoing> sends;
      std::vector<Incoming> receives;
      for (int p = 1; p < processes_ && process_ == 0; ++p) sends.push_back({p, bytes.data(), bytes.size()});
      if (process_ != 0) receives.push_back({0, bytes.data(), bytes.size()});
      exchange(sends, receives);
    }

   private:
    MemoryTransport& all_;
    const int process_, processes_;
  };

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::deque<std::vector<std::byte>>> queues_;  // by sender and receiver
  std::vector<std::unique_ptr<End>> ends_;
  bool stopped_ = false;
  int watching_ = 0, counting_ = 0;  // processes
  std::size_t bytes_ = 0, messages_ = 0;
};

// Calls f(process) on a thread for each process. Throws the first exception.
template <class F>
void on_each_process(MemoryTransport& transport, int processes, F&& f) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(processes));
  std::vector<std::thread> threads;
  for (int p = 0; p < processes; ++p) {
    threads.emplace_back([&, p] {
      try {
        f(p);
      } catch (...) {
        failures[static_cast<std::size_t>(p)] = std::current_exception();
        transport.stop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

// The sum of the rows, of so many columns, of four devices.
std::shared_ptr<const Program> sum_of_rows(const std::string& columns);

// A program with every collective on axes `a` and `b` of this mesh, such as "a=2 b=6", and with the lines `more`.
std::string every_collective(const std::string& mesh, const std::string& more = "");

// Loads the module of a process.
using LoadModule = std::function<std::unique_ptr<Module>(const Processes&)>;
// What the modules of `processes` placements give after `steps` steps, joined, as below.
Values run_placements(const Program& program, const Values& inputs, std::int64_t steps, MemoryTransport& transport,
                      int processes, const LoadModule& load);

// What `processes` placements give after how.steps steps, joined: a value that several placements have must be equal in
// all of them.
// `sent` is set to the bytes of all messages.
Values run_placements(std::shared_ptr<const Program> program, const Values& inputs, const Run& how, int processes,
                      const MemoryTransport::Tamper& tamper = {}, std::size_t* sent = nullptr);

}  // namespace pmaptrain::test
