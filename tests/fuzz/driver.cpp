// A fuzzer for compilers without libFuzzer: reads every file of a corpus, then what it makes of them, from a seed.
//
//   fuzz_<target> CORPUS... [--seconds N] [--runs N] [--seed N] [--save FILE]
//   fuzz_<target> FILE
//
// It knows nothing of coverage, so it finds what is near the corpus. An input that ends the process, or that takes
// longer than ten seconds, is written to FILE (default: crash-<target>) and can be given again by itself.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

constexpr std::size_t longest = 64 * 1024;  // bytes of an input that is made here
constexpr unsigned patience = 10;           // seconds for one input

// What a handler needs, in memory that it may touch.
const Input* under_test = nullptr;
std::string saved_as;

void save_input() {
  if (under_test == nullptr) return;
  const int file = ::open(saved_as.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  std::size_t done = 0;
  while (done < under_test->size()) {
    const ssize_t count = ::write(file, under_test->data() + done, under_test->size() - done);
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  ::close(file);
  const auto say = [](const char* text) { static_cast<void>(::write(STDERR_FILENO, text, std::strlen(text)) > 0); };
  say("the input is in ");
  say(saved_as.c_str());
  say("\n");
  under_test = nullptr;
}

void end_by(int signal) {
  save_input();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

Input read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// The files that are named, and those in the folders that are named.
std::vector<Input> read_corpus(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (fs::is_regular_file(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> corpus;
  for (const fs::path& file : files) corpus.push_back(read_file(file));
  return corpus;
}

// Changes inputs at random: bits, bytes, numbers that are often the edge of something, digits, and pieces moved
// within an input or taken from another.
class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, std::uint64_t seed) : corpus_(corpus), random_(seed) {}

  Input next() {
    Input input = corpus_[below(corpus_.size())];
    for (std::size_t changes = below(6) + 1; changes > 0; --changes) change(input);
    if (input.size() > longest) input.resize(longest);
    return input;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  std::byte any_byte() { return static_cast<std::byte>(below(256)); }
  static auto at(Input& input, std::size_t index) { return input.begin() + static_cast<std::ptrdiff_t>(index); }

  void change(Input& input) {
    const std::size_t place = below(input.size());
    const std::size_t length = std::min(input.size() - place, below(below(2) == 0 ? 8 : 64) + 1);
    switch (below(10)) {
      case 0: flip(input, place); break;
      case 1: put(input, place, any_byte()); break;
      case 2: input.insert(at(input, place), any_byte()); break;
      case 3: input.erase(at(input, place), at(input, place + length)); break;
      case 4: input.resize(place); break;
      case 5: insert(input, below(input.size() + 1), Input(at(input, place), at(input, place + length))); break;
      case 6: {
        const Input& other = corpus_[below(corpus_.size())];
        const std::size_t from = below(other.size()), count = std::min(other.size() - from, below(64) + 1);
        insert(input, place, {other.data() + from, other.data() + from + count});
        break;
      }
      case 7: number(input, place); break;
      case 8: digit(input, place); break;
      default: std::rotate(at(input, place), at(input, place + length / 2), at(input, place + length));
    }
  }

  void flip(Input& input, std::size_t place) {
    if (!input.empty()) input[place] ^= static_cast<std::byte>(1U << below(8));
  }
  static void put(Input& input, std::size_t place, std::byte value) {
    if (place < input.size()) input[place] = value;
  }
  static void insert(Input& input, std::size_t place, Input piece) {
    input.insert(at(input, place), piece.begin(), piece.end());
  }

  // A binary number of 1 to 8 bytes.
  void number(Input& input, std::size_t place) {
    constexpr std::uint64_t edges[] = {0,      1,           2,           0x7F,        0x80,       0xFF,
                                       0x7FFF, 0xFFFF,      0x7FFF'FFFF, 0x8000'0000, 0xFFFFFFFF, 0x7FFF'FFFF'FFFF'FFFF,
                                       ~0ULL,  ~0ULL - 0x15};
    const std::uint64_t value = edges[below(std::size(edges))];
    const std::size_t size = std::size_t{1} << below(4);
    const bool big_endian = below(2) == 0;
    for (std::size_t i = 0; i < size; ++i) {
      put(input, place + i, static_cast<std::byte>(value >> 8 * (big_endian ? size - 1 - i : i)));
    }
  }

  // The next digit of a text becomes another, or a number that is too large.
  void digit(Input& input, std::size_t place) {
    const auto is_digit = [](std::byte b) { return b >= std::byte{'0'} && b <= std::byte{'9'}; };
    const auto found = std::find_if(at(input, std::min(place, input.size())), input.end(), is_digit);
    if (found == input.end()) return;
    *found = static_cast<std::byte>('0' + below(10));
    if (below(4) != 0) return;
    const std::string text[] = {"-", "99999999999999999999", "9223372036854775807", "4294967296", ".5", "e308", "0x"};
    const auto bytes = std::as_bytes(std::span(text[below(std::size(text))]));
    input.insert(found, bytes.begin(), bytes.end());
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 random_;
};

struct Options {
  std::vector<std::string> corpus;
  double seconds = 0;  // 0: no limit
  std::uint64_t runs = 0, seed = 1;
};

Options parse(int argc, char** argv) {
  Options options;
  saved_as = "crash-" + fs::path(argv[0]).filename().string();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "0";
    if (word == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (word == "--runs") {
      options.runs = std::strtoull(value, nullptr, 10);
    } else if (word == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--save") {
      saved_as = value;
    } else {
      options.corpus.push_back(word);
      continue;
    }
    ++i;
  }
  return options;
}

}  // namespace

// Sanitizers: a failed allocation throws, as it does in the program; and who ends the process tells us first.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.corpus.empty()) {
    std::fprintf(stderr, "usage: %s CORPUS... [--seconds N] [--runs N] [--seed N] [--save FILE]\n", argv[0]);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGALRM}) std::signal(signal, end_by);
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);

  const std::vector<Input> corpus = read_corpus(options.corpus);
  if (corpus.empty()) {
    std::fprintf(stderr, "the corpus has no files\n");
    return 2;
  }
  const auto try_out = [](const Input& input) {
    under_test = &input;
    ::alarm(patience);
    pmaptrain::fuzz::fuzz_one(input);
    ::alarm(0);
    under_test = nullptr;
  };
  for (const Input& input : corpus) try_out(input);

  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const bool endless = options.runs == 0;
  Mutator mutator(corpus, options.seed);
  std::uint64_t runs = 0;
  const bool mutates = options.seconds > 0 || !endless;
  while (mutates && (endless || runs < options.runs) && (options.seconds == 0 || elapsed() < options.seconds)) {
    try_out(mutator.next());
    ++runs;
  }
  std::printf("%zu files and %llu inputs made from them (seed %llu) in %.1f s: nothing found\n", corpus.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(options.seed), elapsed());
  return 0;
}
