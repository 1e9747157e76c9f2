#include "core/sweep/runners.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/run/files/file_system.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

// A run that ends is told after at most so long.
constexpr double pause = 0.02;
// Only a process that is stopped, or whose host is gone, is silent for so long.
constexpr double automatic_timeout = 30;

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Sends a text to each of the processes that have one, and receives one from each of `senders`: first the sizes.
std::vector<std::string> exchange(Transport& transport, const std::vector<std::pair<int, std::string>>& sent,
                                  const std::vector<int>& senders) {
  std::vector<std::size_t> sizes;
  sizes.reserve(sent.size());
  for (const auto& [to, text] : sent) sizes.push_back(text.size());
  std::vector<std::size_t> received(senders.size());
  std::vector<std::string> texts(senders.size());
  std::vector<Transport::Outgoing> sends;
  std::vector<Transport::Incoming> receives;
  const auto bytes_of = [](auto& value) { return reinterpret_cast<std::byte*>(&value); };
  for (std::size_t i = 0; i < sent.size(); ++i) sends.push_back({sent[i].first, bytes_of(sizes[i]), sizeof sizes[i]});
  for (std::size_t i = 0; i < senders.size(); ++i) {
    receives.push_back({senders[i], bytes_of(received[i]), sizeof received[i]});
  }
  transport.exchange(sends, receives);
  sends.clear();
  receives.clear();
  for (const auto& [to, text] : sent) {
    sends.push_back({to, reinterpret_cast<const std::byte*>(text.data()), text.size()});
  }
  for (std::size_t i = 0; i < senders.size(); ++i) {
    texts[i].resize(received[i]);
    receives.push_back({senders[i], reinterpret_cast<std::byte*>(texts[i].data()), texts[i].size()});
  }
  transport.exchange(sends, receives);
  return texts;
}

// A file in the sweep's folder that another process can only see if it has the same folder there.
class Witness {
 public:
  explicit Witness(const fs::path& folder) : path_((folder / run::temporary_name("witness")).string()) {
    run::write_whole(path_, "");
  }
  ~Witness() { run::file_system().unlink_at(AT_FDCWD, path_); }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Runners::Runners(const pmaptrain::Processes& processes, std::vector<Runner> all, Launcher& own,
                 std::function<void(int)> signalled)
    : own_(own),
      all_(std::move(all)),
      transport_(processes.transport),
      signalled_(std::move(signalled)),
      requests_(all_.size() - 1) {
  if (transport_ != nullptr) transport_->tell(Transport::Phase::serving, 0);
}

Runners::~Runners() {
  if (requests_.empty()) return;
  try {
    for (Request& request : requests_) request.over = true;
    ask();
  } catch (...) {  // a process that failed has ended, too
  }
}

void Runners::prepare(const fs::path& folder, const std::vector<std::string>& paths, const spec::Timeout& timeout) {
  if (requests_.empty()) return;
  const double given = timeout.after ? spec::seconds_of(*timeout.after) : 0;
  const double seconds = timeout.automatic ? automatic_timeout : given;
  transport_->set_timeout(seconds);
  const Witness witness(fs::absolute(folder));
  for (Request& request : requests_) {
    request.timeout = seconds;
    request.paths = paths;
    request.paths.push_back(witness.path());
  }
  ask();
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i].missing.empty()) continue;
    const std::size_t path = answers_[i].missing.back();
    const std::string who = fmt::format("process {} ({}) does not see ", i + 1, all_[i + 1].host);
    if (path == paths.size()) {  // the witness
      fail_resource(fmt::format("{}the sweep's folder '{}'", who, fs::absolute(folder).string()),
                    "every process writes the run folders of its trials there: --dir DIR names a folder on a file "
                    "system that all hosts share");
    }
    fail_data(fmt::format("{}'{}', which the trials read", who, paths.at(path)),
              "it must be readable at the same path in every process");
  }
}

void Runners::start(std::size_t job, std::size_t runner, const std::vector<std::string>& arguments) {
  if (runner == 0) {
    own_.start(job, arguments);
    ++own_runs_;
    return;
  }
  requests_[runner - 1].starts.push_back({job, arguments});
  is_urgent_ = true;
}

std::optional<Exit> Runners::wait(double seconds) {
  if (requests_.empty()) return own_.wait(seconds);
  const Clock::time_point begun = Clock::now();
  do {
    if (is_urgent_ || seconds_since(asked_) >= pause) ask();
    if (!ended_.empty()) {
      Exit exit = std::move(ended_.front());
      ended_.pop_front();
      return exit;
    }
    if (own_runs_ == 0) pause_for(pause);
    if (std::optional<Exit> exit = own_runs_ > 0 ? own_.wait(pause) : std::nullopt) {
      --own_runs_;
      return exit;
    }
  } while (seconds_since(begun) < seconds);
  return std::nullopt;
}

void Runners::stop() {
  own_.stop();
  for (Request& request : requests_) request.stop = true;
  is_urgent_ = true;
}

void Runners::ask() {
  std::vector<std::pair<int, std::string>> texts;
  std::vector<int> others;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    others.push_back(static_cast<int>(i) + 1);
    texts.emplace_back(others.back(), text_of(requests_[i]));
    requests_[i] = {};
  }
  is_urgent_ = false;
  exchange(*transport_, texts, {});
  answers_.clear();
  for (const std::string& text : exchange(*transport_, {}, others)) answers_.push_back(answer_from(text));
  asked_ = Clock::now();
  std::string problem;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    Answer& answer = answers_[i];
    for (Exit& exit : answer.ended) ended_.push_back(std::move(exit));
    if (answer.signal != 0 && signalled_) std::exchange(signalled_, nullptr)(answer.signal);
    if (problem.empty() && !answer.problem.empty()) {
      problem = fmt::format("process {} ({}): {}", i + 1, all_[i + 1].host, answer.problem);
    }
  }
  if (!problem.empty()) fail_resource(problem, "--resume goes on with the sweep");
}

void serve(const pmaptrain::Processes& processes, Launcher& own, const std::atomic<int>& stop) {
  Transport& transport = *processes.transport;
  transport.tell(Transport::Phase::serving, 0);
  Answer answer;
  for (bool over = false; !over;) {
    const Request request = request_from(exchange(transport, {}, {0}).front());
    over = request.over;
    if (request.timeout) transport.set_timeout(*request.timeout);
    for (std::size_t i = 0; i < request.paths.size(); ++i) {
      std::error_code error;
      if (!fs::exists(request.paths[i], error)) answer.missing.push_back(i);
    }
    for (const Request::Start& start : request.starts) {
      try {
        own.start(start.job, start.arguments);
      } catch (const std::exception& error) {
        const auto* const known = dynamic_cast<const Error*>(&error);
        answer.problem = known != nullptr ? known->diagnostics().front().message : error.what();
        answer.ended.push_back({start.job, static_cast<int>(ExitStatus::resource), 0, "", answer.problem});
      }
    }
    if (request.stop) own.stop();
    while (std::optional<Exit> exit = own.wait(0)) answer.ended.push_back(std::move(*exit));
    answer.signal = stop;
    exchange(transport, {{0, text_of(std::exchange(answer, {}))}}, {});
    if (over) break;
    if (std::optional<Exit> exit = own.wait(pause)) answer.ended.push_back(std::move(*exit));
  }
}

}  // namespace pmaptrain::sweep
