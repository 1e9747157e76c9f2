// docs/guide.md, docs/training.md, docs/sweeps.md and docs/finetuning.md as their readers follow them: each block of
// commands is run, and must print what the guide shows. The table at the end of docs/guide.md is held to the configs,
// commands and tests that it names.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tests/app/process.h"
#include "tests/catch.h"
#include "tests/pretrained_model.h"
#include "tests/slice.h"

using pmaptrain::test::lines_of;
using pmaptrain::test::Slice;
using pmaptrain::test::slices_with_sanitizer;
using pmaptrain::tests::read_text;
using pmaptrain::tests::TemporaryFolder;

namespace {

// A line "..." stands for any lines.
bool agree(const std::vector<std::string>& shown, const std::vector<std::string>& printed, std::size_t i = 0,
           std::size_t j = 0) {
  if (i == shown.size()) return j == printed.size();
  if (shown[i] == "...") {
    for (std::size_t next = j; next <= printed.size(); ++next) {
      if (agree(shown, printed, i + 1, next)) return true;
    }
    return false;
  }
  return j < printed.size() && shown[i] == printed[j] && agree(shown, printed, i + 1, j + 1);
}

// The text between a line that is `fence` and the next "```", from `at` on; `at` moves behind it.
std::optional<std::string> block(const std::string& text, const std::string& fence, std::size_t& at) {
  const std::size_t begin = text.find("\n" + fence + "\n", at);
  if (begin == std::string::npos) return std::nullopt;
  const std::size_t first = begin + fence.size() + 2;
  const std::size_t end = text.find("```\n", first);
  at = end;
  return text.substr(first, end - first);
}

// What bash prints, on either stream, where the configs and the program stand as in a clone.
std::string printed_by(const std::string& commands, const TemporaryFolder& folder) {
  std::ofstream(folder / "commands.sh") << commands;
  const auto shell =
      pmaptrain::tests::run_shell("cd '" + folder.path().string() + "' && bash commands.sh > printed.txt 2>&1");
  CHECK(shell.signal == 0);
  return read_text(folder / "printed.txt");
}

// A folder in which the paths of configs and of the program are those of a clone.
void make_clone(const TemporaryFolder& folder) {
  const char* const given = std::getenv("PMAPTRAIN_BIN");
  const std::string program = given != nullptr ? given : "build/release/pmaptrain";
  std::filesystem::create_directories(folder / "build/release");
  std::filesystem::create_symlink(std::filesystem::absolute(program), folder / "build/release/pmaptrain");
  std::filesystem::create_directory_symlink(std::filesystem::absolute("configs"), folder / "configs");
}

// The cells of a table's row: behaviour, config, command, test. Empty for other lines, and for headings of tables.
std::vector<std::string> cells_of(const std::string& line) {
  if (!line.starts_with("| ") || line.starts_with("| behaviour |")) return {};
  std::vector<std::string> cells;
  for (std::size_t begin = 1, end = 0; (end = line.find('|', begin)) != std::string::npos; begin = end + 1) {
    cells.push_back(line.substr(begin, end - begin));
  }
  return cells;
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

// The folders of models that docs/finetuning.md tells of.
void make_models(const TemporaryFolder& folder) {
  using namespace pmaptrain::testing;
  write_pretrained(folder / "models/gpt2", pretrained_fixture("gpt2_other"));
  write_pretrained(folder / "models/vit", pretrained_fixture("vit"));
  printed_by(
      "build/release/pmaptrain tokenize train /usr/share/common-licenses --size 320 --style gpt2 --output "
      "models/gpt2/tokenizer.json",
      folder);
}

void check_blocks(const std::string& guide) {
  const TemporaryFolder folder;
  make_clone(folder);
  if (guide == "docs/finetuning.md") make_models(folder);

  const char* const update = std::getenv("PMAPTRAIN_UPDATE_GOLDENS");
  std::string text = read_text(guide);
  std::size_t at = 0, blocks = 0;
  while (const auto commands = block(text, "```sh", at)) {
    ++blocks;
    REQUIRE(text.compare(at, 12, "```\n```text\n") == 0);  // each shows what it prints
    const auto shown = block(text, "```text", at);
    REQUIRE(shown);
    const std::string printed = printed_by(*commands, folder);
    INFO(guide << " is refreshed with PMAPTRAIN_UPDATE_GOLDENS=1\n"
               << *commands << "shows\n"
               << *shown << "prints\n"
               << printed);
    const bool same = agree(lines_of(*shown), lines_of(printed));
    if (update != nullptr && std::string(update) == "1" && !same) {
      text.replace(at - shown->size(), shown->size(), printed);
      at += printed.size() - shown->size();
    } else {
      CHECK(same);
    }
  }
  CHECK(blocks >= (guide == "docs/sweeps.md" ? 3 : 7));
  if (text != read_text(guide)) std::ofstream(guide, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("every block of commands in the guides prints the output that they show", "[app][process]") {
  Slice slice(slices_with_sanitizer(3));
  for (const char* const guide : {"docs/guide.md", "docs/training.md", "docs/sweeps.md", "docs/finetuning.md"}) {
    if (slice.takes()) check_blocks(guide);
  }
}

TEST_CASE("lines of dots in the guide stand for any lines, and others for themselves", "[app]") {
  CHECK(agree({"a", "...", "d"}, {"a", "b", "c", "d"}));
  CHECK(agree({"...", "d"}, {"d"}));
  CHECK_FALSE(agree({"a", "...", "d"}, {"a", "b"}));
  CHECK_FALSE(agree({"a"}, {"a", "b"}));
  CHECK_FALSE(agree({"a", "b"}, {"a", "c"}));
}

TEST_CASE("every row of the guide's table names configs, commands and tests that there are", "[app][process]") {
  const std::string guide = read_text("docs/guide.md");
  const std::regex path("`([^`]+)`"), command("`pmaptrain ([^`]+)`( \\(exit status ([0-9])\\))?"),
      section("\\[([^\\]]+)\\]\\(#"), test("`(tests/[^`]+)` \"([^\"]+)\"");
  const TemporaryFolder folder;
  make_clone(folder);
  int rows = 0;
  Slice slice(slices_with_sanitizer(3));
  for (const std::string& line : lines_of(guide.substr(guide.find("\n## Every behaviour")))) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.empty()) continue;
    INFO(line);
    REQUIRE(cells.size() == 4);
    ++rows;
    for (const std::smatch& found : matches(cells[1], path)) CHECK(std::filesystem::is_regular_file(found[1].str()));
    const auto commands = matches(cells[2], command), sections = matches(cells[2], section);
    CHECK(commands.size() + sections.size() > 0);
    for (const std::smatch& found : commands) {
      if (!slice.takes()) continue;
      const int expected = found[3].matched ? std::stoi(found[3]) : 0;
      const std::string printed = printed_by(
          "PATH=\"$PWD/build/release:$PATH\"\npmaptrain " + found[1].str() + "\necho \"status $?\"\n", folder);
      INFO(printed);
      CHECK(printed.ends_with("\nstatus " + std::to_string(expected) + "\n"));
    }
    for (const std::smatch& found : sections) CHECK(guide.find("\n## " + found[1].str() + "\n") != std::string::npos);
    const auto tests = matches(cells[3], test);
    CHECK_FALSE(tests.empty());
    for (const std::smatch& found : tests) {
      INFO(found[0].str());
      // In two parts, or scripts/check_tags.py would take this line for a test case.
      const std::string declared = std::string("TEST_CASE") + "(\"" + found[2].str() + "\"";
      CHECK(read_text(found[1].str()).find(declared) != std::string::npos);
    }
  }
  CHECK(rows >= 30);
}
