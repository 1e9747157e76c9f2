// What process 0 reads is in all processes, and what goes wrong is one error in all.
#include "core/run/first_process.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/run/test_file_systems.h"
#include "tests/runtime/placements.h"

namespace pmaptrain::testing::first_process {
namespace {

namespace fs = std::filesystem;
using run::FirstProcess;
using test::TemporaryFolder;

// Sets TMPDIR as long as it lives.
class TemporaryFiles {
 public:
  explicit TemporaryFiles(const std::string& folder) {
    const char* const before = std::getenv("TMPDIR");
    if (before != nullptr) before_ = before;
    ::setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporaryFiles() {
    if (before_) {
      ::setenv("TMPDIR", before_->c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

 private:
  std::optional<std::string> before_;
};

std::string text_of(const data::Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Calls f(process, first) in each process. Returns the exit status and the message of the error that ended each; empty
// for those that had none.
std::vector<std::string> in_processes(int processes, const std::function<void(int, const FirstProcess&)>& f) {
  test::MemoryTransport transport(processes);
  std::vector<std::string> errors(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    Agreement agreement({{process, processes}, &transport.end(process)});
    try {
      f(process, FirstProcess(&agreement));
      agreement.end(0);
    } catch (const Error& error) {
      agreement.fail(error.status());
      errors[static_cast<std::size_t>(process)] =
          std::to_string(static_cast<int>(error.status())) + " " + error.diagnostics().front().message;
    }
  });
  return errors;
}

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 % 251);
  return bytes;
}

}  // namespace

TEST_CASE("texts and files that process 0 reads are in all processes, and nothing is left of them",
          "[run][placements]") {
  constexpr std::size_t piece = std::size_t{16} << 20;
  const TemporaryFolder root, temporary;
  const TemporaryFiles at(temporary.path().string());
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, piece, piece + 5}) {
    INFO(size << " bytes");
    const std::string bytes = some_bytes(size), file = root.write("file", bytes);
    std::vector<std::string> texts(3), files(3);
    std::vector<int> reads(3);
    const auto errors = in_processes(3, [&](int process, const FirstProcess& first) {
      const auto own = static_cast<std::size_t>(process);
      texts[own] = first.text([&] {
        ++reads[own];
        return std::string("text");
      });
      texts[own] += first.text([] { return std::string(); });
      files[own] = text_of(first.bytes([&] {
        ++reads[own];
        return data::map_file(file);
      }));
    });
    CHECK(errors == std::vector<std::string>(3));
    CHECK(texts == std::vector<std::string>(3, "text"));
    CHECK(reads == std::vector<int>{2, 0, 0});
    for (const std::string& found : files) {
      const bool same = found == bytes;
      CHECK(same);
    }
    CHECK(fs::is_empty(temporary.path()));
  }
}

TEST_CASE("one process reads for itself, and needs no temporary file", "[run][placements]") {
  const TemporaryFolder root;
  const TemporaryFiles nowhere(root / "gone");
  const std::string file = root.write("file", "bytes");
  const FirstProcess first;
  CHECK(first.is_this());
  CHECK(first.text([] { return std::string("text"); }) == "text");
  CHECK(text_of(first.bytes([&] { return data::map_file(file); })) == "bytes");
}

TEST_CASE("what process 0 cannot read ends all processes with its error", "[run][placements]") {
  const TemporaryFolder root;
  const std::string gone = root / "gone";
  const auto of_file = in_processes(3, [&](int, const FirstProcess& first) {
    first.text([] { return std::string("before"); });
    first.bytes([&] { return data::map_file(gone); });
  });
  CHECK(of_file[0] == "3 cannot open '" + gone + "': No such file or directory");
  CHECK(of_file[1] == "3 process 0 has failed");
  CHECK(of_file[2] == of_file[1]);
  const auto of_text = in_processes(2, [&](int, const FirstProcess& first) {
    first.text([]() -> std::string { fail_usage("there is no such run"); });
  });
  CHECK(of_text == std::vector<std::string>{"2 there is no such run", "2 process 0 has failed"});
  const auto of_another = in_processes(3, [&](int process, const FirstProcess& first) {
    if (process == 2) fail_resource("no memory");
    first.text([] { return std::string("text"); });
  });
  CHECK(of_another == std::vector<std::string>{"4 process 2 has failed", "4 process 2 has failed", "4 no memory"});
}

TEST_CASE("a process that has no room for what process 0 reads is named in all", "[run][placements]") {
  const TemporaryFolder root, temporary;
  const std::string folder = temporary.path().string(), file = root.write("file", some_bytes(3 << 20));
  const auto receive = [&](int, const FirstProcess& first) { first.bytes([&] { return data::map_file(file); }); };
  {
    const TemporaryFiles at(folder);
    for (const Call call : {Call::open, Call::write, Call::remove}) {
      INFO(to_string(call));
      FailingFileSystem full({call, 1, ENOSPC});
      const run::InstalledFileSystem installed(full);
      const auto errors = in_processes(2, receive);
      CHECK(errors == std::vector<std::string>(2, "4 process 1: what process 0 has read cannot be written to '" +
                                                      folder + "': No space left on device"));
    }
  }
  const TemporaryFiles nowhere(root / "gone");
  for (const std::string& error : in_processes(3, receive)) {
    CHECK(error == "4 process 1: what process 0 has read cannot be written to '" + (root / "gone") +
                       "': No such file or directory");
  }
}

TEST_CASE("a file that is truncated while process 0 sends it is one error in all", "[run][placements]") {
  const TemporaryFolder root;
  const std::string file = root.write("file", some_bytes(100'000));
  const auto errors = in_processes(3, [&](int, const FirstProcess& first) {
    first.bytes([&] {
      data::Bytes opened = data::map_file(file);
      fs::resize_file(file, 5000);
      return opened;
    });
  });
  CHECK(errors ==
        std::vector<std::string>(3, "3 '" + file + "' was truncated during use: it had 100000 bytes and has 5000"));
}

}  // namespace pmaptrain::testing::first_process
