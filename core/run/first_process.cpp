#include "core/run/first_process.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/run/files/file_system.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::run {
namespace {

// What process 0 has in memory of a file at a time, beside the file's mapping.
constexpr std::size_t most_piece = std::size_t{16} << 20;

// A file that is removed as soon as it is open, so that nothing of it is left however the process ends.
class UnnamedFile {
 public:
  UnnamedFile() {
    const char* const given = std::getenv("TMPDIR");
    folder_ = given != nullptr && *given != '\0' ? given : "/tmp";
    const std::string path = (folder_ / temporary_name("pmaptrain")).string();
    file_ = Descriptor(file_system().open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC));
    if (!file_) fail(errno);
    if (file_system().unlink_at(AT_FDCWD, path) != 0) fail(errno);
  }

  void write(std::span<const std::byte> bytes) {
    if (write_all(file_.get(), bytes) < bytes.size()) fail(errno);
    size_ += bytes.size();
  }

  data::Bytes map() && {
    const auto shown = (folder_ / "what process 0 has read").string();
    return data::Bytes(std::make_shared<const data::Mapping>(file_.release(), size_, timespec{}, shown));
  }

 private:
  [[noreturn]] void fail(int error) const {
    fail_resource(
        fmt::format("what process 0 has read cannot be written to '{}': {}", folder_.string(), system_words(error)));
  }

  std::filesystem::path folder_;
  Descriptor file_;
  std::size_t size_ = 0;
};

// Throws one Error in all processes if one of them has a problem, which is empty in those that have none.
void check(const Processes& processes, const std::string& problem) {
  const std::vector<std::string> problems = texts_of_all(processes, problem);
  for (std::size_t p = 0; p < problems.size(); ++p) {
    if (problems[p].empty()) continue;
    if (p == 0) fail_data(problems[p], "start again");
    fail_resource(fmt::format("process {}: {}", p, problems[p]),
                  "it needs a folder for temporary files: set TMPDIR to one that has room");
  }
}

// Calls f() and returns what it throws, in words; empty if it throws nothing.
template <class F>
std::string problem_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics().front().message;
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::size_t size_of_first(Transport& transport, std::size_t own) {
  auto size = static_cast<std::int64_t>(own);
  transport.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  return static_cast<std::size_t>(size);
}

}  // namespace

std::string FirstProcess::text(const std::function<std::string()>& read) const {
  std::string found;
  if (is_this()) found = read();
  if (is_alone()) return found;
  agreement_->any(false);  // process 0 has read it
  Transport& transport = *processes().transport;
  found.resize(size_of_first(transport, found.size()));
  if (!found.empty()) transport.broadcast(std::as_writable_bytes(std::span(found)));
  return found;
}

data::Bytes FirstProcess::bytes(const std::function<data::Bytes()>& open) const {
  data::Bytes found;
  if (is_this()) found = open();
  if (is_alone()) return found;
  agreement_->any(false);  // process 0 has opened it
  Transport& transport = *processes().transport;
  const std::size_t size = size_of_first(transport, found.size());
  std::vector<std::byte> piece;
  std::optional<UnnamedFile> file;
  // A process with a problem goes on, because the others wait for it.
  std::string problem = problem_of([&] {
    piece.resize(std::min(size, most_piece));
    if (!is_this()) file.emplace();
  });
  check(processes(), problem);
  for (std::size_t begin = 0; begin < size; begin += piece.size()) {
    const std::span<std::byte> part = std::span(piece).first(std::min(piece.size(), size - begin));
    if (is_this()) std::memcpy(part.data(), found.data() + begin, part.size());
    transport.broadcast(part);
    if (file && problem.empty()) problem = problem_of([&] { file->write(part); });
  }
  if (problem.empty()) {
    problem = problem_of([&] {
      if (file && size > 0) found = std::move(*file).map();
      found.check_intact();
    });
  }
  check(processes(), problem);
  return found;
}

}  // namespace pmaptrain::run
