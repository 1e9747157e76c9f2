// What commands print on a terminal that is narrow: no line is wider than it, and no word is broken.
#include <sstream>

#include "app/commands/commands.h"
#include "core/base/wrap.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/display/screen.h"

using namespace pmaptrain;
using pmaptrain::tests::call;
using pmaptrain::tests::contains;
using pmaptrain::tests::linear;

namespace {

using Words = std::vector<std::string>;

// What these arguments print where standard output is a terminal of so many columns.
std::string shown(const Words& arguments, int columns) {
  const test::Collector terminal(columns);
  std::ostringstream out, err;
  CHECK(app::run_program(arguments, {out, err, terminal.fd()}) == 0);
  return out.str();
}

Words words_of(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Lines that are too wide, but for those that hold one word, or a command that is to be copied.
Words too_wide(const std::string& text, int columns) {
  std::istringstream in(text);
  Words lines;
  for (std::string line; std::getline(in, line);) {
    const Words words = words_of(line);
    const bool is_whole = words.size() <= 1 || words.front() == "pmaptrain" || words.front() == "`pmaptrain";
    if (shown_width(line) >= columns && !is_whole) lines.push_back(line);
  }
  return lines;
}

std::vector<Words> all_help() {
  std::vector<Words> all{{"--help"},      {"help"}, {"init"}, {"help", "optimizer"}, {"help", "ensemble.vary"},
                         {"help", "rate"}};
  for (const app::Command& command : app::commands()) {
    all.push_back({std::string(command.name), "--help"});
    for (const std::string& sub : words_of(std::string(command.subcommands))) {
      all.push_back({std::string(command.name), sub, "--help"});
    }
  }
  return all;
}

}  // namespace

TEST_CASE("on a narrow terminal the help of every command has its words whole and fits", "[app]") {
  for (const Words& arguments : all_help()) {
    CAPTURE(arguments);
    const std::string whole = call(arguments).out;
    for (const int columns : {40, 60, 80}) {
      const std::string text = shown(arguments, columns);
      CAPTURE(columns, text);
      CHECK(words_of(text) == words_of(whole));
      CHECK(too_wide(text, columns).empty());
    }
    CHECK(shown(arguments, 0) == whole);
    CHECK(shown(arguments, 200).substr(0, 60) == whole.substr(0, 60));
  }
}

TEST_CASE("on a narrow terminal options have their meanings beside them or, below 60 columns, below them", "[app]") {
  const Words help{"export", "--help"};
  CHECK(contains(shown(help, 80), "  --output FILE             "));
  CHECK(contains(shown(help, 40), "\n  --output FILE\n      "));
}

TEST_CASE("on a narrow terminal tables have no broken cells", "[app]") {
  for (const Words& arguments : std::vector<Words>{
           {"collectives"}, {"explain", linear, "--memory", "--parallelism", "--kernels"}, {"validate", linear}}) {
    CAPTURE(arguments);
    for (const int columns : {40, 60, 80}) {
      const std::string text = shown(arguments, columns);
      CAPTURE(columns, text);
      CHECK(too_wide(text, columns).empty());
    }
  }
  // What does not fit of a row is below all rows, each with its op and under its stage again.
  const std::string kernels = shown({"explain", linear, "--kernels", "--workers", "1"}, 60);
  CHECK(contains(kernels, "stage 1 of 2, one piece of 800 rows:\n  matmul"));
  const std::size_t below = kernels.find("\n\n  op ", kernels.find("\n  op ") + 1);
  REQUIRE(below != std::string::npos);
  CHECK(contains(kernels.substr(below), "  implementation\nstage 1 of 2, one piece of 800 rows:\n  matmul"));
  CHECK(contains(shown({"collectives", "--op", "all_to_all"}, 60),
                 "\n  group          result\n  all 4 devices  [0.0, 10.0, 20.0, 30.0]\n"));
}

TEST_CASE("what other programs read is the same on a narrow terminal", "[app]") {
  for (const Words& arguments : std::vector<Words>{{"schema"},
                                                   {"explain", linear},
                                                   {"completion", "bash"},
                                                   {"help", "--man"},
                                                   {"collectives", "--op", "all_to_all", "--json"},
                                                   {"validate", linear, "--print-config"}}) {
    CAPTURE(arguments);
    CHECK(shown(arguments, 40) == call(arguments).out);
  }
}
