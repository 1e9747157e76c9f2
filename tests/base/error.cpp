#include "core/base/error.h"

#include <string>

#include "tests/catch.h"

using namespace pmaptrain;

namespace {

Diagnostic at(int column, int length, std::string excerpt) {
  return {"config", {"c.yaml", 3, column, length, std::move(excerpt)}, "wrong", "", {}};
}

}  // namespace

TEST_CASE("a diagnostic shows place, line, caret, help and notes", "[base]") {
  const Diagnostic diagnostic{"config",
                              {"configs/cnn.yaml", 14, 15, 3, "  batch_size: 100"},
                              "batch_size 100 does not divide over axis 'devices' (8 devices): 100 = 8 × 12 + 4",
                              "96 or 104 would divide",
                              {"'devices' is 8 because of --devices 8"}};
  CHECK(render(diagnostic) == R"(configs/cnn.yaml:14:15: error: batch_size 100 does not divide over axis 'devices' )"
                              R"((8 devices): 100 = 8 × 12 + 4
   14 |   batch_size: 100
      |               ^~~
  help: 96 or 104 would divide
  note: 'devices' is 8 because of --devices 8
)");
}

TEST_CASE("the caret line copies tabs", "[base]") {
  CHECK(render(at(4, 3, "\ta\tbcd")) ==
        "c.yaml:3:4: error: wrong\n"
        "    3 | \ta\tbcd\n"
        "      | \t \t^~~\n");
}

TEST_CASE("control characters are shown as question marks", "[base]") {
  CHECK(render(Diagnostic{"config", {}, "a\x1b[31mb\xC2\x9B", "c\td\ne\x07", {}}) ==
        "error: a?[31mb?\n  help: c d\n        e?\n");
}

TEST_CASE("the caret line counts the columns of wide and combining characters", "[base]") {
  CHECK(render(at(3, 2, "漢字 🙂x")) ==
        "c.yaml:3:3: error: wrong\n"
        "    3 | 漢字 🙂x\n"
        "      |     ^~~\n");
  CHECK(render(at(4, 1, "é: e\u0301!")) ==
        "c.yaml:3:4: error: wrong\n"
        "    3 | é: e\u0301!\n"
        "      |    ^\n");
  CHECK(render(at(6, 1, "é: e\u0301!")) ==
        "c.yaml:3:6: error: wrong\n"
        "    3 | é: e\u0301!\n"
        "      |     ^\n");
}

TEST_CASE("an underline ends with its line, and a caret may stand behind it", "[base]") {
  CHECK(render(at(4, 50, "a: bc")) ==
        "c.yaml:3:4: error: wrong\n"
        "    3 | a: bc\n"
        "      |    ^~\n");
  CHECK(render(at(4, 1, "a:")) ==
        "c.yaml:3:4: error: wrong\n"
        "    3 | a:\n"
        "      |    ^\n");
}

TEST_CASE("an excerpt contains no control characters", "[base]") {
  CHECK(render(at(6, 1, "a\x1b[2J\xff\xc2\x9b!")) ==
        "c.yaml:3:6: error: wrong\n"
        "    3 | a?[2J?"
        "?!\n"
        "      |      ^\n");
}

TEST_CASE("of a very long line the part around the caret is shown", "[base]") {
  const std::string text = render(at(1001, 4, std::string(1000, 'x') + "here" + std::string(1000, 'y')));
  CHECK(text == "c.yaml:3:1001: error: wrong\n    3 | …" + std::string(59, 'x') + "here" + std::string(135, 'y') +
                    "…\n      | " + std::string(60, ' ') + "^~~~\n");
}

TEST_CASE("in a terminal an excerpt is no wider than the terminal", "[base]") {
  const std::string line = "    - conv: {features: 32, kernel_size: [3, 3], pading: SAME}";
  CHECK(render(at(49, 6, line), false, 80) ==
        "c.yaml:3:49: error: wrong\n"
        "    3 |     - conv: {features: 32, kernel_size: [3, 3], pading: SAME}\n"
        "      |                                                 ^~~~~~\n");
  CHECK(render(at(49, 6, line), false, 40) ==
        "c.yaml:3:49: error: wrong\n"
        "    3 | …el_size: [3, 3], pading: SAME}\n"
        "      |                   ^~~~~~\n");
  CHECK(render(at(7, 4, line), false, 40) ==
        "c.yaml:3:7: error: wrong\n"
        "    3 |     - conv: {features: 32, ker…\n"
        "      |       ^~~~\n");
  CHECK(render(at(28, 34, line), false, 40) ==
        "c.yaml:3:28: error: wrong\n"
        "    3 | …res: 32, kernel_size: [3, 3], …\n"
        "      |           ^~~~~~~~~~~~~~~~~~~~~\n");
  CHECK(render(at(62, 1, line), false, 40) ==
        "c.yaml:3:62: error: wrong\n"
        "    3 | …el_size: [3, 3], pading: SAME}\n"
        "      |                                ^\n");
}

TEST_CASE("a narrow excerpt counts the columns of wide characters and of tabs", "[base]") {
  CHECK(render(at(30, 2, "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字x: 漢字"), false, 30) ==
        "c.yaml:3:30: error: wrong\n"
        "    3 | …漢字漢字漢字x: 漢字\n"
        "      |               ^~\n");
  // What of a tab is left out cannot be known, so it is a space.
  CHECK(render(at(3, 1, "\t\tabc def ghi jkl mno"), false, 40) ==
        "c.yaml:3:3: error: wrong\n"
        "    3 |   abc def ghi jkl mno\n"
        "      |   ^\n");
}

TEST_CASE("places share their line", "[base]") {
  const SourceLine line(std::string(100, 'x'));
  const Place first{"c.yaml", 1, 1, 1, line}, second{"c.yaml", 1, 2, 1, line};
  CHECK(first.excerpt.text().data() == second.excerpt.text().data());
  CHECK(first.excerpt == SourceLine(std::string(100, 'x')));
  CHECK(SourceLine().text().empty());
}

TEST_CASE("a place may be a whole file, a line, or nothing", "[base]") {
  CHECK(render(Diagnostic{"data", {"train.gz", 0, 0, 1, ""}, "is cut short", "", {}}) ==
        "train.gz: error: is cut short\n");
  CHECK(render(Diagnostic{"program", {"p.pmt", 7, 0, 1, "%1 = add"}, "wrong", "", {}}) ==
        "p.pmt:7: error: wrong\n    7 | %1 = add\n");
  CHECK(render(Diagnostic{"resource", {}, "no memory", "use fewer devices", {}}) ==
        "error: no memory\n  help: use fewer devices\n");
}

TEST_CASE("help of several lines stays in its column", "[base]") {
  CHECK(render(Diagnostic{"usage", {}, "runs/cnn exists", "one of:\n--overwrite\n--name NAME", {}}) ==
        "error: runs/cnn exists\n"
        "  help: one of:\n"
        "        --overwrite\n"
        "        --name NAME\n");
}

TEST_CASE("colour changes no word", "[base]") {
  Diagnostic diagnostic = at(1, 2, "ab");
  diagnostic.help = "do this";
  CHECK(render(diagnostic, true) ==
        "\x1b[1mc.yaml:3:1:\x1b[0m \x1b[1;31merror:\x1b[0m wrong\n"
        "    3 | ab\n"
        "      | \x1b[32m^~\x1b[0m\n"
        "  \x1b[1mhelp:\x1b[0m do this\n");
}

TEST_CASE("an error carries all its diagnostics and the exit status", "[base]") {
  const Error error(ExitStatus::usage, {at(1, 1, "a"), Diagnostic{"config", {}, "also wrong", "", {}}});
  CHECK(error.status() == ExitStatus::usage);
  CHECK(error.diagnostics().size() == 2);
  CHECK(std::string(error.what()) ==
        "c.yaml:3:1: error: wrong\n"
        "    3 | a\n"
        "      | ^\n"
        "error: also wrong\n");
}

TEST_CASE("failures without a place have the exit status of their kind", "[base]") {
  const auto status_of = [](auto&& throws) {
    try {
      throws();
    } catch (const Error& error) {
      CHECK(error.diagnostics()[0].help == "help");
      return error.status();
    }
    return ExitStatus::done;
  };
  CHECK(status_of([] { fail_data("m", "help"); }) == ExitStatus::data);
  CHECK(status_of([] { fail_resource("m", "help"); }) == ExitStatus::resource);
  CHECK(status_of([] { fail_running("m", "help"); }) == ExitStatus::failed);
}
