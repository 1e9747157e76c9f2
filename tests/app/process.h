// The program as a user starts it: a process with its own standard streams.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/files.h"
#include "tests/words.h"

namespace pmaptrain::tests {

using test::beside_the_tests;
using test::contains;
using test::read_text;
using test::TemporaryFolder;

inline const std::string linear = "configs/linear_regression.yaml";

struct Finished {
  int status = -1;  // exit status, or
  int signal = 0;   // the signal that ended it
  std::string out, err;
};

// Runs in bash, with the binary as $PROGRAM.
struct Shell {
  std::string script;
};

// Descriptors that stand for the process's standard streams; -1: a file. They stay the caller's.
struct Onto {
  int out = -1, err = -1;
};

// The binary PMAPTRAIN_BIN with these arguments. Its output is in files, its input is empty, and every signal has its
// default action and is not blocked, however the tests were started. The case needs the tag [process].
class Process {
 public:
  // `ignored`: a signal that is ignored in the process from its start, as nohup does. `directory`: where it runs, by
  // default where the test does.
  explicit Process(const std::vector<std::string>& arguments, int ignored = 0,
                   const std::filesystem::path& directory = ".");
  explicit Process(const Shell& shell, const Onto& onto = {});
  Process(const std::vector<std::string>& arguments, const Onto& onto);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What it has written to standard error so far.
  std::string errors() const { return read_text(folder_ / "err"); }
  // Waits up to a minute for `text` on standard error; false if it never came.
  bool wait_for(const std::string& text) const;
  void send(int signal) const;
  // Waits until a signal that was sent is no longer pending: its handler runs, or is the next thing that does.
  bool wait_for_delivery(int signal) const;
  bool running() const;
  // Waits until it ends. After 200 s it is killed, and the case fails with what its threads wait for.
  Finished wait();

 private:
  std::string where_it_is() const;
  void start(std::vector<std::string> all, int ignored, const std::filesystem::path& directory, const Onto& onto = {});

  TemporaryFolder folder_;
  pid_t pid_ = -1;
};

// Waits up to a minute for something; false if it never came.
template <class F>
bool wait_until(F&& happened) {
  for (int i = 0; i < 6000; ++i) {
    if (happened()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Finished run_binary(const std::vector<std::string>& arguments);
Finished run_shell(const std::string& script);

// The binary's absolute path. Throws when there is none.
std::string binary_path();

}  // namespace pmaptrain::tests
