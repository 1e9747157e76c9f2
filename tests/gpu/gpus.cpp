#include "tests/gpu/gpus.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "core/runtime/gpu/load_platform.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/running.h"

namespace pmaptrain::test {
namespace {

const Gpus& gpus_here() {
  static const Gpus gpus = find_gpus();
  return gpus;
}

Examples& examples() {
  static Examples all(std::getenv("PMAPTRAIN_TEST_EXAMPLES"));
  return all;
}

TestGpus test_gpus() { return read_test_gpus(std::getenv("PMAPTRAIN_TEST_GPUS")); }

void do_as_planted(const std::string& example) {
  const char* const planted = std::getenv("PMAPTRAIN_TEST_PLANTED");
  std::istringstream all(planted == nullptr ? "" : planted);
  std::string verb, words;
  while (all >> verb && std::getline(all >> std::ws, words, ';')) {
    if (example.find(words) == std::string::npos) continue;
    if (verb == "hangs") std::this_thread::sleep_for(std::chrono::hours(1));
    if (verb == "crashes") std::raise(SIGSEGV);
    if (verb == "fails") FAIL_CHECK("as planted");
  }
}

}  // namespace

TestGpus read_test_gpus(const char* text) {
  const std::string_view all = text == nullptr || *text == '\0' ? "emulated" : text;
  const std::size_t colon = all.find(':');
  const std::string_view kind = all.substr(0, colon);
  const std::string_view counts = colon == all.npos ? "" : all.substr(colon);
  if (kind == "cuda" || kind == "emulated") {
    const bool cuda = kind == "cuda";
    if (counts.empty()) return {cuda, Counts::all};
    if (counts == ":one") return {cuda, Counts::one};
    if (counts == ":virtual") return {cuda, Counts::virtual_gpus};
    if (counts == ":several") return {cuda, Counts::several};
  }
  throw std::invalid_argument(
      "PMAPTRAIN_TEST_GPUS is emulated or cuda, with :one, :virtual or :several behind it, not '" + std::string(all) +
      "'");
}

std::vector<int> chosen_counts(const std::vector<int>& wanted, Counts counts, int there) {
  std::vector<int> chosen;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(chosen), [&](int count) {
    switch (counts) {
      case Counts::all: return true;
      case Counts::one: return count == 1;
      case Counts::virtual_gpus: return count > 1;
      case Counts::several: return count > 1 && count <= there;
    }
    return false;
  });
  return chosen;
}

bool tests_use_cuda() { return test_gpus().cuda; }

std::vector<int> gpu_counts(const std::vector<int>& wanted) {
  const int there = tests_use_cuda() ? static_cast<int>(gpus_here().all.size()) : std::numeric_limits<int>::max();
  std::vector<int> chosen = chosen_counts(wanted, test_gpus().counts, there);
  if (chosen.empty()) WARN("skipped: none of the numbers of GPUs that this case takes is to be run");
  return chosen;
}

Examples::Examples(const char* file) : file_(file == nullptr ? "" : file) {
  std::ifstream lines(file_);
  for (std::string line; std::getline(lines, line);) earlier_.insert(line);
}

void Examples::ends() {
  if (has_begun_ && failed_checks() == failed_before_) std::ofstream(file_, std::ios::app) << "passed\n";
  has_begun_ = false;
}

bool Examples::begins(const std::string& case_name, const std::string& example) {
  if (!are_kept()) return true;
  ends();
  std::string line = case_name + ": " + example;
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (const int times = ++times_[line]; times > 1) line += ", " + std::to_string(times);
  if (earlier_.contains(line)) return false;
  std::ofstream(file_, std::ios::app) << line << '\n';
  has_begun_ = true;
  failed_before_ = failed_checks();
  return true;
}

bool begins_example(const std::string& example) {
  const std::string case_name = Catch::getResultCapture().getCurrentTestName();
  if (!examples().begins(case_name, example)) return false;
  do_as_planted(case_name + ": " + example);
  return true;
}

void after_exception() {
  if (!tests_use_cuda() || !examples().are_kept()) return;
  try {
    open_gpus(1)->open(0)->allocate(1);
  } catch (const std::exception& error) {
    std::cerr << "this process has lost its GPU: " << error.what() << std::endl;
    std::_Exit(EXIT_FAILURE);
  }
}

void run_apart(const std::string& example, const std::function<void()>& run) {
  if (!begins_example(example)) return;
  INFO(example);
  try {
    run();
  } catch (const Catch::TestFailureException&) {  // of a REQUIRE, which has been reported
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
    after_exception();
  }
}

bool has_cuda_gpu() {
  if (!gpus_here().all.empty()) return true;
  WARN("skipped: there is no GPU to test: " << gpus_here().none_because);
  return false;
}

bool has_gpus() { return !tests_use_cuda() || has_cuda_gpu(); }

std::unique_ptr<gpu::Platform> open_gpus(int count, std::size_t memory) {
  if (!tests_use_cuda())
    return make_emulated({.devices = count, .memory = memory, .seed = static_cast<unsigned>(count)});
  const bool are_there =
      count == 1 || (test_gpus().counts != Counts::virtual_gpus && count <= static_cast<int>(gpus_here().all.size()));
  return gpu::load_platform({gpu::generate_source, are_there ? 0 : count, {}});
}

}  // namespace pmaptrain::test

TEST_CASE("PMAPTRAIN_TEST_GPUS says which GPUs the tests take, and how many", "[gpu]") {
  using pmaptrain::test::chosen_counts, pmaptrain::test::Counts, pmaptrain::test::read_test_gpus;
  CHECK(!read_test_gpus(nullptr).cuda);
  CHECK(!read_test_gpus("").cuda);
  CHECK(!read_test_gpus("emulated").cuda);
  CHECK(read_test_gpus("cuda").cuda);
  CHECK(read_test_gpus("cuda").counts == Counts::all);
  CHECK(read_test_gpus("emulated:one").counts == Counts::one);
  CHECK(read_test_gpus("cuda:virtual").counts == Counts::virtual_gpus);
  CHECK(read_test_gpus("cuda:several").counts == Counts::several);
  for (const char* const wrong : {"CUDA", "cuda:", "cuda:two", ":one"}) CHECK_THROWS(read_test_gpus(wrong));

  using Numbers = std::vector<int>;
  const Numbers wanted{1, 2, 4, 8};
  CHECK(chosen_counts(wanted, Counts::all, 1) == wanted);
  CHECK(chosen_counts(wanted, Counts::one, 8) == Numbers{1});
  CHECK(chosen_counts(wanted, Counts::virtual_gpus, 1) == Numbers{2, 4, 8});
  CHECK(chosen_counts(wanted, Counts::several, 4) == Numbers{2, 4});
  CHECK(chosen_counts({1, 8}, Counts::several, 4).empty());
}

TEST_CASE("examples that an earlier process has begun are left out, and their file says which have passed", "[gpu]") {
  const pmaptrain::test::TemporaryFolder folder;
  const std::string file = (folder.path() / "examples").string();
  using pmaptrain::test::Examples, pmaptrain::test::check_fails;
  {
    Examples first(file.c_str());
    CHECK(first.begins("a case", "an example"));
    CHECK(first.begins("a case", "an example"));  // once more, with other values
    check_fails();
    CHECK(first.begins("a case", "a program\nof two lines"));
  }
  Examples second(file.c_str());
  CHECK_FALSE(second.begins("a case", "an example"));
  CHECK_FALSE(second.begins("a case", "a program\nof two lines"));
  CHECK_FALSE(second.begins("a case", "an example"));
  CHECK(second.begins("a case", "an example"));
  CHECK(second.begins("another case", "an example"));
  CHECK(pmaptrain::test::read_text(file) ==
        "a case: an example\npassed\na case: an example, 2\na case: a program of two lines\npassed\n"
        "a case: an example, 3\npassed\nanother case: an example\n");
  Examples none(nullptr);
  CHECK(none.begins("a case", "an example"));
  CHECK(none.begins("a case", "an example"));
}
