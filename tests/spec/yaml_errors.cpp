// What YAML may not do in a config, beyond the texts in errors/.
#include <string>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"
#include "tests/words.h"

using namespace pmaptrain;
using test::contains;

TEST_CASE(
    "the reserved characters are read where a double-quoted text spells them out, behind an anchor and over lines",
    "[spec]") {
  for (const char* const name : {R"("a \x24{x}")", R"(&anchor "a \x24{x}")", "\"a\n  \\x24{x}\""}) {
    INFO(name);
    CHECK_FALSE(contains(errors_of("name: " + std::string(name) + "\n" + std::string(base)), "is reserved"));
  }
  for (const char* const name : {R"('a \x24{x} ${y}')", R"("a \x24{x} ${y}")", "\"a \\x24{x}\n  ${y}\""}) {
    INFO(name);
    CHECK(contains(errors_of("name: " + std::string(name) + "\n" + std::string(base)), "is reserved"));
  }
}

TEST_CASE("a reserved substitution is refused", "[spec]") {
  CHECK(contains(errors_of("name: \"a ${x}\"\n" + std::string(base)), "c.yaml:1:7: error: '${' is reserved"));
  CHECK(contains(errors_of("name: \"a \\\"\n  ${x}\"\n" + std::string(base)), "c.yaml:1:7: error: '${' is reserved"));
}

TEST_CASE("an empty item of a list is reported at its own '-', however far the next text is", "[spec]") {
  CHECK(contains(errors_of(std::string(base) + "x-list:\n-   "), ":1: error: this list item has no value\n"));
  // In brackets it has nothing of its own.
  CHECK(contains(errors_of("x-list: [a, # -\n  , b]\n" + std::string(base)), "c.yaml:2:3: error: this list item"));
}

TEST_CASE("a control character is refused", "[spec]") {
  CHECK(errors_of(std::string("name: a\x04\nsede: 1\n") + base) ==
        R"(c.yaml:1:8: error: control character 4
    1 | name: a?
      |        ^
  help: remove it
)");
}

TEST_CASE("an unclosed quote is refused at its start", "[spec]") {
  // yaml-cpp would take the end of the file for the quote.
  for (const char* open : {"'it''s", R"("a \")", "&a 'b", R"(&a !t "b)", "'", "\""}) {
    INFO(open);
    CHECK(errors_of(std::string(base) + "name: " + open).find("quote is not closed") != std::string::npos);
  }
  for (const char* closed : {"'it''s'", R"("a \" b")", "&a 'b'", "'a\n\n  b'", R"("a \
  b")"}) {
    INFO(closed);
    CHECK(errors_of(std::string(base) + "name: " + closed).find("quote is not closed") == std::string::npos);
  }
}

TEST_CASE("a name has no invisible characters", "[spec]") {
  for (const char* name : {R"("a\0b")", R"("a\nb")", R"("a\x7Fb")", R"("a\x9Bb")", R"("a\u202Eb")", "' a'", "'a '"}) {
    INFO(name);
    CHECK(errors_of("name: " + std::string(name) + "\n" + base).find("invisible characters") != std::string::npos);
  }
  CHECK(errors_of("name: 'größe 2 (日本)'\n" + std::string(base)).empty());
}

TEST_CASE("a million brackets are too deep", "[spec]") {
  const std::string error = errors_of("a: " + std::string(1'000'000, '['));
  CHECK(error.find("this is nested more than 64 levels deep") != std::string::npos);
  CHECK(error.find("check for an unclosed bracket") != std::string::npos);
}

TEST_CASE("what is not YAML is blamed on the line that is wrong", "[spec]") {
  // The first line of the error, and its help.
  const auto told = [](const std::string& text) {
    const std::string error = errors_of(text);
    const std::size_t help = error.find("  help: ");
    return error.substr(0, error.find('\n')) + "; " + error.substr(help + 8, error.find('\n', help) - help - 8);
  };
  const std::string mesh = "mesh:\n  axes: {devices: 8}\n";
  CHECK(told(mesh + "optimizer:\n  - adam\n  learning_rate: 0.1\n") ==
        "c.yaml:4:3: error: a list item stands among keys; write 'adam: {}'");
  CHECK(told(mesh + "model:\n  layers:\n    - flatten\n    - relu\n    dense: 10\n") ==
        "c.yaml:7:5: error: a key stands among the items of a list; write '- dense: 10'");
  CHECK(told(mesh + "model:\n  layers:\n    -dense: 10\n    - flatten\nloss: huber\n") ==
        "c.yaml:5:5: error: there is no space after the '-' of '-dense'; write '- dense: 10'");
  CHECK(told(mesh + "model:\n  layers:\n    - dense: {features: 10\n    - relu\nloss: huber\n") ==
        "c.yaml:5:14: error: this '{' is not closed; add '}' at its end");
  CHECK(told(mesh + "model:\n  layers: [dense: {features: 10], relu]\n") ==
        "c.yaml:4:19: error: this '{' is not closed; add '}' before this ']'");
  CHECK(told(mesh + "metrics: [accuracy]]\n") == "c.yaml:3:20: error: this ']' closes nothing; remove it");
  CHECK(told(mesh + "data:\n  batch_size:64\n  shuffle: true\n") ==
        "c.yaml:4:3: error: there is no space after the ':' of 'batch_size'; write 'batch_size: 64'");
  CHECK(told(mesh + "data:\n  batch_size = 64\n  shuffle: true\n") ==
        "c.yaml:4:3: error: a value stands after ':', not after '='; write 'batch_size: 64'");
  CHECK(told(mesh + "data:\n  batch_size\n  shuffle: true\n") ==
        "c.yaml:4:3: error: there is no ':' in this line; write 'batch_size: ...'");
  CHECK(told(mesh + "data:\n  batch_size: 64\n   shuffle: true\n") ==
        "c.yaml:5:4: error: this line is indented below a line that has a value; indent it by 2, as line 4; or "
        "remove the value there");
  CHECK(told(mesh + "data:\n  batch_size: 64\n shuffle: true\n") ==
        "c.yaml:5:2: error: no line above is indented by 1 as this one is; align it with line 4, which is indented by "
        "2");
  CHECK(told(mesh + "metrics [accuracy]\nloss: huber\n") ==
        "c.yaml:3:1: error: there is no ':' in this line; write 'metrics: [accuracy]'");
  CHECK(told(mesh + "model:\n  layers:\n    - flatten\n    relu\n    - dense: 10\n") ==
        "c.yaml:6:5: error: there is no '-' in this line, but in the items of the list above; write '- relu'");
  CHECK(told(mesh + "optimizer:\n  adam: {},\n  learning_rate: 0.1\n") ==
        "c.yaml:4:3: error: this line ends in ','; remove the ','; lines are not separated by commas");
  CHECK(told(mesh + "data:\n  shuffle: true\nbatch_size: 64\n  remainder: mask\n") ==
        "c.yaml:5:1: error: this line is indented less than the lines around it; indent it by 2, as line 4");
}
