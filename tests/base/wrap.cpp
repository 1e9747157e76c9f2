#include "core/base/wrap.h"

#include <string>

#include "core/base/error.h"
#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("text for a terminal is broken between words", "[base]") {
  const std::string text = "warning: half of the labels of the training split are of one class\nshort\n";
  CHECK(wrapped(text, 0) == text);
  CHECK(wrapped(text, 80) == text);
  CHECK(wrapped(text, 40) ==
        "warning: half of the labels of the\n"
        "  training split are of one class\n"
        "short\n");
  CHECK(wrapped("  one two three", 10) == "  one two\n  three");
  CHECK(wrapped("one  two   three", 11, 1) == "one  two\n three");
  CHECK(wrapped("", 10).empty());
  // Columns of a table stay beside each other where they can.
  CHECK(wrapped("  parameters            7.5 KiB\n  values on the way  119.9 KiB\n", 24) ==
        "  parameters     7.5 KiB\n  values on the way\n    119.9 KiB\n");
  CHECK(wrapped("  the code and scratch  9.1 MiB", 28) == "  the code and scratch\n    9.1 MiB");
  // A character of two columns, and colours of none.
  CHECK(wrapped("漢字漢字 漢字", 10) == "漢字漢字\n  漢字");
  CHECK(wrapped("\x1b[1mone\x1b[0m two", 7) == "\x1b[1mone\x1b[0m two");
  CHECK(shown_width("\x1b[1;33mwarning:\x1b[0m 漢") == 11);
}

TEST_CASE("a long line is wrapped in time that grows with its length, whatever is in it", "[base]") {
  for (const std::string word : {"a  ", "'a ", "`a ", "(a ", "pmaptrain "}) {
    CAPTURE(word);
    std::string line;
    for (int i = 0; i < 50000; ++i) line += word;
    const std::string text = wrapped(line, 40);  // quadratic time would be minutes
    CHECK(text.size() >= line.size() / 2);
  }
}

TEST_CASE("what a user may copy from a terminal is not broken", "[base]") {
  const std::string path = "/home/somebody/experiments/runs/cnn";
  CHECK(wrapped("run folder: " + path, 20) == "run folder:\n  " + path);
  CHECK(wrapped("run folder: '/home/some body/a b'.", 20) == "run folder:\n  '/home/some body/a b'.");
  CHECK(wrapped("use `pmaptrain validate CONFIG` first", 20) == "use\n  `pmaptrain validate CONFIG`\n  first");
  CHECK(wrapped("saved after step 5; to go on: pmaptrain run runs/cnn --resume", 30) ==
        "saved after step 5; to go on:\n  pmaptrain run runs/cnn --resume");
  CHECK(wrapped("one of\npmaptrain run c.yaml --resume      # continue it", 20) ==
        "one of\npmaptrain run c.yaml --resume\n  # continue it");
  CHECK(wrapped("The hardware:\npmaptrain validate CONFIG shows more of it.", 26) ==
        "The hardware:\npmaptrain validate CONFIG\n  shows more of it.");
  // Words that follow a command within a sentence are no part of it.
  CHECK(wrapped("pmaptrain run runs/cnn --resume writes it anew", 34) ==
        "pmaptrain run runs/cnn --resume\n  writes it anew");
  CHECK(wrapped("a model of pmaptrain help lists all of the keys", 26) ==
        "a model of pmaptrain help\n  lists all of the keys");
  // An apostrophe quotes nothing.
  CHECK(wrapped("in the targets' own units, not the loss's", 20) == "in the targets' own\n  units, not the\n  loss's");
}

TEST_CASE("the columns of a table that is too wide are bands one under another, each with the first column", "[base]") {
  using Bands = std::vector<std::vector<std::size_t>>;
  CHECK(bands_of({5, 5, 5}, 0) == Bands{{0, 1, 2}});
  CHECK(bands_of({5, 5, 5}, 21) == Bands{{0, 1, 2}});
  CHECK(bands_of({5, 5, 5}, 20) == Bands{{0, 1}, {0, 2}});
  CHECK(bands_of({5, 50, 5, 6}, 20) == Bands{{0, 1}, {0, 2}, {0, 3}});
  CHECK(bands_of({50}, 20) == Bands{{0}});
  CHECK(bands_of({5, 50, 0}, 20) == Bands{{0, 1, 2}});
}

TEST_CASE("a table has two spaces before every column, and a row may have fewer cells than another", "[base]") {
  const std::vector<std::vector<std::string>> rows{{"", "loss", "of"}, {"train", "0.5", "é"}, {"test"}};
  CHECK(in_columns(rows, {false, true}) == "         loss  of\n  train   0.5  é\n  test\n");
  CHECK(columns_of_table(rows) == 17);
  CHECK(in_columns(rows, {false, true}, 17) == in_columns(rows, {false, true}));
  CHECK(in_columns(rows, {false, true}, 16, 1) ==
        "\x1b[1m         loss\x1b[0m\n  train   0.5\n  test\n\n\x1b[1m         of\x1b[0m\n  train  é\n  test\n");
}

TEST_CASE("in a terminal the words of an error stay whole, and its help and notes in their column", "[base]") {
  const Diagnostic diagnostic{"config",
                              {"configs/cnn.yaml", 14, 15, 3, "  batch_size: 100"},
                              "batch_size 100 does not divide over axis 'devices' (8 devices): 100 = 8 × 12 + 4",
                              "96 or 104 would divide the batch evenly",
                              {"'devices' is 8 because of --devices 8"}};
  CHECK(render(diagnostic, false, 39) ==
        "configs/cnn.yaml:14:15: error:\n"
        "    batch_size 100 does not divide over\n"
        "    axis 'devices' (8 devices): 100 = 8\n"
        "    × 12 + 4\n"
        "   14 |   batch_size: 100\n"
        "      |               ^~~\n"
        "  help: 96 or 104 would divide the\n"
        "        batch evenly\n"
        "  note: 'devices' is 8 because of\n"
        "        --devices 8\n");
}
