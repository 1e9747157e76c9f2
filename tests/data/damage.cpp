// Files that change while they are in use, claim what they do not hold, or hold what a run cannot use.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/idx_source.h"
#include "core/data/images/files.h"
#include "core/data/tables/csv_reader.h"
#include "core/input/batches/loader.h"
#include "core/input/inspect.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

constexpr std::size_t page = 4096;

std::byte last_of(const data::Bytes& bytes) { return *static_cast<const volatile std::byte*>(&bytes.view().back()); }

// Whether a process that does `action` ends by it: by a signal, or as a sanitizer's handler of that signal ends it.
template <class F>
bool ends_process(F&& action) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    action();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status != 0;
}

}  // namespace

TEST_CASE("a file that is truncated while mapped reads as zeros, and check_intact throws", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", std::string(3 * page, 'a'));
  const data::Bytes bytes = data::map_file(path), other = data::map_file(folder.write("y", std::string(page, 'b')));
  CHECK_NOTHROW(bytes.check_intact());
  std::filesystem::resize_file(path, page);
  CHECK(bytes.data()[0] == std::byte{'a'});
  CHECK(last_of(bytes) == std::byte{0});
  const std::string error = error_of([&] { bytes.slice(0, 1).check_intact(); });
  CHECK(contains(error, "'" + path + "' was truncated during use: it had 12288 bytes and has 4096"));
  CHECK(contains(error, " | write a new file and rename it over the old one"));
  CHECK(last_of(other) == std::byte{'b'});
  CHECK_NOTHROW(other.check_intact());
}

TEST_CASE("a temporarily truncated file is detected", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", std::string(2 * page, 'a'));
  const data::Bytes read = data::map_file(path), unread = data::map_file(path);
  std::filesystem::resize_file(path, 0);
  CHECK(last_of(read) == std::byte{0});
  folder.write("x", std::string(2 * page, 'a'));
  CHECK(contains(error_of([&] { read.check_intact(); }), "could not be read: it was truncated for a time"));
  CHECK(last_of(unread) == std::byte{'a'});
  CHECK_NOTHROW(unread.check_intact());
  // Within its last page nothing faults.
  std::filesystem::resize_file(path, 2 * page - 1);
  CHECK(last_of(unread) == std::byte{0});
  CHECK(contains(error_of([&] { unread.check_intact(); }), "it had 8192 bytes and has 8191"));
}

TEST_CASE("a modified file is detected, and a replaced one is not an error", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", std::string(page, 'a'));
  const auto wait_for_the_clock = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const data::Bytes bytes = data::map_file(path);
  CHECK_NOTHROW(bytes.check_unchanged());
  wait_for_the_clock();  // files' times are those of the system's last tick
  std::filesystem::rename(folder.write("new", std::string(page, 'b')), path);
  CHECK_NOTHROW(bytes.check_unchanged());
  CHECK(bytes.data()[0] == std::byte{'a'});

  const data::Bytes other = data::map_file(path);
  wait_for_the_clock();
  folder.write("x", std::string(page, 'c'));
  CHECK_NOTHROW(other.check_intact());
  CHECK(error_of([&] { other.slice(0, 1).check_unchanged(); }) ==
        "'" + path +
            "' was modified during use: its modification time has changed since it was opened | write a new file and "
            "rename it over the old one; a run keeps the old file open");
  folder.write("x", std::string(page + 1, 'c'));
  CHECK(contains(error_of([&] { other.check_unchanged(); }),
                 "'" + path + "' was modified during use: it had 4096 bytes and has 4097 | write a new file"));
  std::filesystem::resize_file(path, 1);
  CHECK(contains(error_of([&] { other.check_unchanged(); }), "was truncated during use"));
  CHECK_NOTHROW(bytes.check_unchanged());
}

TEST_CASE("a file that does not fit in the address space is a resource error", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "a");
  std::error_code error;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 47, error);  // without a block; no address space holds it
  if (error) {
    WARN("no file can be so large here: " + error.message());
    return;
  }
  CHECK(test::refusal([&] { data::map_file(path); }, ExitStatus::resource) ==
        "'" + path +
            "' cannot be mapped: its 128.0 TiB do not fit in the address space of the process | check the limits on "
            "address space (ulimit -v) and on mappings (vm.max_map_count)");
}

TEST_CASE("several threads may read a truncated file, with any signals blocked", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", std::string(64 * page, 'a'));
  const data::Bytes bytes = data::map_file(path);
  std::filesystem::resize_file(path, page);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t p = 63 - t; p > 0 && p < 64; p -= 4) {
        (void)*static_cast<const volatile std::byte*>(bytes.data() + p * page);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(contains(error_of([&] { bytes.check_intact(); }), "was truncated during use"));
}

TEST_CASE("a bus error outside of mappings ends the process", "[data]") {
  const TemporaryFolder folder;
  const data::Bytes bytes = data::map_file(folder.write("x", std::string(page, 'a')));
  CHECK(ends_process([] { ::raise(SIGBUS); }));
  CHECK(ends_process([&] {
    // A mapping that is none of ours.
    const std::string path = folder.write("y", "b");
    const int file = ::open(path.c_str(), O_RDONLY);
    void* const start = ::mmap(nullptr, page, PROT_READ, MAP_PRIVATE, file, 0);
    std::filesystem::resize_file(path, 0);
    (void)*static_cast<const volatile char*>(start);
  }));
}

TEST_CASE("a batch of a truncated file is an error of the data, placed at the source", "[data]") {
  const TemporaryFolder folder;
  constexpr std::int64_t examples = 64;
  const std::string inputs = folder.write("x", idx(8, {examples, page}, std::string(examples * page, 'a')));
  spec::DataSpec spec;
  spec.source = data::Idx{{inputs, folder.write("y", idx(8, {examples}, std::string(examples, '\0')))}, {}, {}};
  spec.source_place = {"a.yaml", 3, 5, 1, ""};
  const data::Source source = input::open(spec, 0, 1);
  const BatchPlan plan = input::plan_evaluation(examples, 4, 1);
  const std::size_t input = source.train->input().bytes(), target = source.train->target().bytes();
  std::vector<std::byte> memory(3 * 4 * (input + target));
  std::vector<input::BatchBuffers> slots;
  for (std::size_t i = 0; i < 3; ++i) {
    std::byte* const begin = memory.data() + i * 4 * (input + target);
    slots.push_back({begin, begin + 4 * input, nullptr, nullptr, input, target});
  }
  input::Loader loader(source.train, data::Sampler::in_order(examples), plan, slots);
  CHECK(loader.next().examples == 4);
  std::filesystem::resize_file(inputs, page);
  try {
    for (int i = 0; i < 8; ++i) loader.next();
    FAIL("batches of a file that is not there");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    CHECK(error.diagnostics()[0].place == spec.source_place);
    CHECK(contains(error.diagnostics()[0].message, "'" + inputs + "' was truncated during use"));
  }
}

TEST_CASE("an NPZ bomb is refused for its array's header, before more than that is inflated", "[data]") {
  const TemporaryFolder folder;
  Zip zip;
  zip.content = npy("<f4", "(2,)", std::string(std::size_t{1} << 24, '\0'));
  zip.deflate = true;
  std::string bytes = zip.build();
  // What follows the header cannot be inflated at all, so whoever tries says so.
  const std::size_t middle = bytes.size() / 2;
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(middle),
            bytes.begin() + static_cast<std::ptrdiff_t>(middle + 2000), '\xff');
  const auto refusal = [&] { return error_of([&] { data::read_npz(folder.write("x", bytes), "x"); }); };
  CHECK(contains(refusal(), "is longer than its header says: f32[2] needs 8 bytes after its header, it has 16777216"));
  zip.content = npy("<f4", "(4194304,)", std::string(std::size_t{1} << 24, '\0'));
  bytes = zip.build();
  CHECK(refusal() == "accepted");
}

TEST_CASE("numbers beyond float32 are refused with their place, as inputs and as targets", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::vector<double>& x, const std::vector<double>& y) {
    std::vector<std::string> notes;
    return error_of([&] {
      data::make_dataset(data::read_npy(folder.write("x", npy("<f8", "(2, 2)", raw(x)))),
                         data::read_npy(folder.write("y", npy("<f8", "(2,)", raw(y)))), notes);
    });
  };
  CHECK(contains(refusal({1, 2, 3, -1e300}, {1, 2}),
                 "x' has -1.0e+300 at [1,1], which overflows float32 | the "
                 "largest float32 is about 3.4e38"));
  CHECK(contains(refusal({1, 2, 3, 4}, {1e39, 2}), "y' has 1.0e+39 at [0], which overflows float32"));
  // The largest double that rounds to a float; and what is infinite before does not overflow.
  CHECK(refusal({0x1.fffffefffffffp127, 2, 3, 1e-300}, {1, 2}) == "accepted");
  CHECK(contains(refusal({1, 2, -INFINITY, NAN}, {1, 2}), "x' has -infinity at [1,0] | remove the example"));
}

TEST_CASE("a table that is no text is refused by its first block, however large it is", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("holes.csv", "x,y\n1,2\n");
  std::filesystem::resize_file(path, std::uintmax_t{20} << 30);
  const std::string refused = "'" + path + "' has a zero byte at offset 8, expected text | save it as text in UTF-8";
  CHECK(error_of([&] { data::read_text(path); }) == refused);
  CHECK(error_of([&] { input::find_columns(path); }) == refused);
  const std::string zipped = folder.write("holes.csv.gz", gzip("x,y\n" + std::string(std::size_t{1} << 20, '\0')));
  CHECK(contains(error_of([&] { data::read_text(zipped); }), "has a zero byte at offset 4, expected text"));
  // Text at first, then a hole: what the cell behind it would be is not read to the end.
  std::string rows = "a,b\n";
  for (int i = 0; i < 20000; ++i) rows += "1,2\n";
  const std::string begun = folder.write("begun.csv", rows);
  std::filesystem::resize_file(begun, std::uintmax_t{1} << 34);
  const data::Bytes text = data::read_text(begun);
  data::CsvReader reader(data::as_text(text), ',', begun);
  const std::string told = error_of([&] {
    while (reader.next_record()) reader.next_cell();
  });
  CHECK(told ==
        "'" + begun + "', line 20002: a zero byte, expected text | the file was not written to its end, or is no text");
}

TEST_CASE("a file that is no image is refused by its first block, however large it is", "[data]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "photos/cats");
  const std::string path = folder.write("photos/cats/large.png", "hello");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 42);
  data::ImageFiles files = data::list_image_files(folder / "photos");
  CHECK(
      contains(error_of([&] { data::read_heads(files); }), "is neither a PNG nor a JPEG image: it begins with 68 65"));
}
