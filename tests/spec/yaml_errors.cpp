// What YAML may not do in a config: the words of every error, as golden text.
#include <string>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"
#include "tests/words.h"

using namespace pmaptrain;
using test::contains;

TEST_CASE("a duplicate key is refused with the line of the first", "[spec]") {
  CHECK(errors_of(R"(name: a
seed: 3
name: b
)" + std::string(base)) ==
        R"(c.yaml:3:1: error: duplicate key 'name'
    3 | name: b
      | ^~~~
  help: keep one of the two; the first is in line 1
)");
}

TEST_CASE("a merge key is refused with a suggestion", "[spec]") {
  CHECK(errors_of(R"(x-mesh: &m {backend: cpu}
mesh: {<<: *m}
)" + std::string(base)) ==
        R"(c.yaml:2:8: error: merge keys ('<<') are not supported
    2 | mesh: {<<: *m}
      |        ^~
  help: write out the keys; an alias can repeat a whole value, such as 'conv: *block'
)");
}

TEST_CASE("a tag is refused", "[spec]") {
  CHECK(errors_of(R"(seed: !!int 3
)" + std::string(base)) ==
        R"(c.yaml:1:7: error: YAML tags are not supported
    1 | seed: !!int 3
      |       ^~~~~
  help: remove the tag; the key determines the type
)");
}

TEST_CASE("a second document is refused alone", "[spec]") {
  CHECK(errors_of(R"(name: a
---
naem: b
)" + std::string(base)) ==
        R"(c.yaml:2:1: error: a second document begins here; a config is one document
    2 | ---
      | ^
  help: remove the '---' line, or put the second config in a separate file
)");
}

TEST_CASE("text after the end of a document is refused", "[spec]") {
  CHECK(errors_of(R"(name: a
...
seed: 1
)") ==
        R"(c.yaml:3:1: error: a second document begins here; a config is one document
    3 | seed: 1
      | ^
  help: remove the '...' line, which ends a document
)");
}

TEST_CASE("an alias inside its own anchor is refused", "[spec]") {
  CHECK(errors_of(R"(x-a: &a [*a]
)" + std::string(base)) ==
        R"(c.yaml:1:10: error: this alias refers to a value that contains it
    1 | x-a: &a [*a]
      |          ^~
  help: write the value out
)");
}

TEST_CASE("a mistake in an aliased value is shown where the alias stands", "[spec]") {
  CHECK(errors_of(R"(x-rate: &r -1
data: {source: fashion_mnist, batch_size: 1.28e2}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: *r}
train: {duration: 1 step}
)") ==
        R"(c.yaml:5:38: error: learning_rate takes a number of at least 0, not '-1'
    5 | optimizer: {adam: {}, learning_rate: *r}
      |                                      ^~
  help: for example learning_rate: 0.001
)");
}

TEST_CASE("an alias without an anchor is a syntax error", "[spec]") {
  CHECK(errors_of(R"(name: *nowhere
)" + std::string(base)) ==
        R"(c.yaml:1:7: error: this is not YAML: the referenced anchor is not defined
    1 | name: *nowhere
      |       ^~~~~~~~
  help: an alias '*name' needs an anchor '&name' before it
)");
}

TEST_CASE("a key that is not a name is refused", "[spec]") {
  CHECK(errors_of(R"(? [a, b]
: 3
)" + std::string(base)) ==
        R"(c.yaml:1:3: error: a key must be a name, not a list
    1 | ? [a, b]
      |   ^~~~~~
  help: write 'key: value'
)");
}

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
  CHECK(errors_of(R"(name: ${USER}-run
)" + std::string(base)) ==
        R"(c.yaml:1:7: error: '${' is reserved; there is no substitution in a config
    1 | name: ${USER}-run
      |       ^~~~~~~~~~~
  help: write the value itself; for a literal '${' write "\x24{" in double quotes
)");
}

TEST_CASE("an empty item of a list is reported at its own '-', however far the next text is", "[spec]") {
  CHECK(errors_of(R"(x-list:
  - a
  - # nothing yet

  # and nothing here

  - - &b
    - c
  -
)" + std::string(base)) ==
        R"(c.yaml:3:3: error: this list item has no value
    3 |   - # nothing yet
      |   ^
  help: write its value, or remove the item
c.yaml:7:5: error: this list item has no value
    7 |   - - &b
      |     ^
  help: write its value, or remove the item
c.yaml:9:3: error: this list item has no value
    9 |   -
      |   ^
  help: write its value, or remove the item
)");
  CHECK(contains(errors_of(std::string(base) + "x-list:\n-   "), ":1: error: this list item has no value\n"));
  // In brackets it has nothing of its own.
  CHECK(contains(errors_of("x-list: [a, # -\n  , b]\n" + std::string(base)), "c.yaml:2:3: error: this list item"));
}

TEST_CASE("a blank value is reported at its key", "[spec]") {
  CHECK(errors_of(R"(name: a
seed:
mesh: {axes: {devices: 1}}
)" + std::string(base)) ==
        R"(c.yaml:2:1: error: 'seed' has no value
    2 | seed:
      | ^~~~
  help: write one (an integer from 0 to 18446744073709551615), or remove the key
)");
}

TEST_CASE("a syntax error is reported alone", "[spec]") {
  CHECK(errors_of(R"(sede: 3
name: a: b
)" + std::string(base)) ==
        R"(c.yaml:2:8: error: this line has a second ':'
    2 | name: a: b
      |        ^
  help: write one 'key: value' a line; text that contains ': ' needs quotes
)");
}

TEST_CASE("tabs in the indentation are named", "[spec]") {
  CHECK(errors_of(R"(mesh:
	axes: {devices: 8}
)" + std::string(base)) ==
        R"(c.yaml:2:1: error: this line is indented with a tab
    2 | 	axes: {devices: 8}
      | ^
  help: indent with spaces; YAML does not allow tabs there
)");
}

TEST_CASE("columns count characters and the caret line copies tabs", "[spec]") {
  CHECK(errors_of(R"(mesh: {backend: "日本",	workers: many}
)" + std::string(base)) ==
        R"(c.yaml:1:17: error: backend takes one of cpu, cuda, auto, reference, not the text "日本"
    1 | mesh: {backend: "日本",	workers: many}
      |                 ^~~~~~
  help: for example backend: cpu
c.yaml:1:32: error: workers takes an integer from 1 to 65,536 or 'auto', not 'many'
    1 | mesh: {backend: "日本",	workers: many}
      |                        	         ^~~~
  help: for example workers: 4
)");
}

TEST_CASE("a control character is refused", "[spec]") {
  CHECK(errors_of(std::string("name: a\x04\nsede: 1\n") + base) ==
        R"(c.yaml:1:8: error: control character 4
    1 | name: a?
      |        ^
  help: remove it
)");
}

TEST_CASE("not a number and infinity are refused", "[spec]") {
  CHECK(errors_of(R"(optimizer: {adam: {eps: .inf}, learning_rate: .nan}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:25: error: eps .inf: NaN and infinity are not allowed
    1 | optimizer: {adam: {eps: .inf}, learning_rate: .nan}
      |                         ^~~~
  help: it takes a number greater than 0
c.yaml:1:47: error: learning_rate .nan: NaN and infinity are not allowed
    1 | optimizer: {adam: {eps: .inf}, learning_rate: .nan}
      |                                               ^~~~
  help: it takes a number of at least 0
)");
}

TEST_CASE("underflow and overflow are refused", "[spec]") {
  CHECK(errors_of(R"(optimizer: {adam: {eps: 1e-46}, learning_rate: 1e39}
data: {source: fashion_mnist, batch_size: 128}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:25: error: eps 1e-46 underflows to 0 in float32
    1 | optimizer: {adam: {eps: 1e-46}, learning_rate: 1e39}
      |                         ^~~~~
  help: the smallest float32 is about 1.5e-45; write 0.0 for zero
c.yaml:1:48: error: learning_rate 1e39 is too large
    1 | optimizer: {adam: {eps: 1e-46}, learning_rate: 1e39}
      |                                                ^~~~
  help: the largest float32 is about 3.4e38
)");
}

TEST_CASE("octal, hexadecimal and underscored numbers are refused", "[spec]") {
  CHECK(errors_of(R"(seed: 010
mesh: {axes: {devices: 0x10}, workers: 1_0}
)" + std::string(base)) ==
        R"(c.yaml:1:7: error: seed 010: octal, hexadecimal and binary numbers are not supported
    1 | seed: 010
      |       ^~~
  help: if a decimal number is meant, write 10
c.yaml:2:24: error: devices 0x10: octal, hexadecimal and binary numbers are not supported
    2 | mesh: {axes: {devices: 0x10}, workers: 1_0}
      |                        ^~~~
  help: write it as a decimal number
c.yaml:2:40: error: workers 1_0: underscores in numbers are not supported
    2 | mesh: {axes: {devices: 0x10}, workers: 1_0}
      |                                        ^~~
  help: write 10
)");
}

TEST_CASE("a quoted number is text", "[spec]") {
  CHECK(errors_of(R"(seed: "7"
)" + std::string(base)) ==
        R"(c.yaml:1:7: error: seed takes an integer from 0 to 18446744073709551615, not the text "7"
    1 | seed: "7"
      |       ^~~
  help: quoted values are text: remove the quotes, 7
)");
}

TEST_CASE("the truth values of YAML 1.1 are refused", "[spec]") {
  CHECK(errors_of(R"(data: {source: fashion_mnist, batch_size: 128, shuffle: yes}
model: {layers: [flatten, {dense: 10}]}
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.001}
train: {duration: 1 step}
)") ==
        R"(c.yaml:1:57: error: shuffle takes true or false, not 'yes'
    1 | data: {source: fashion_mnist, batch_size: 128, shuffle: yes}
      |                                                         ^~~
  help: write true
)");
}

TEST_CASE("an unclosed quote is refused at its start", "[spec]") {
  // yaml-cpp would take the end of the file for the quote.
  CHECK(errors_of(std::string(base) + "name: 'run\n") == R"(c.yaml:6:7: error: this quote is not closed
    6 | name: 'run
      |       ^
  help: add ' at the end of the text
)");
  CHECK(errors_of("name: \"run\n" + std::string(base)) ==
        R"(c.yaml:1:7: error: this quote is not closed
    1 | name: "run
      |       ^
  help: add " at the end of the text
)");
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
  CHECK(errors_of("name: \"a\\e]0;b\"\n" + std::string(base)) ==
        R"(c.yaml:1:7: error: name 'a?]0;b' contains invisible characters
    1 | name: "a\e]0;b"
      |       ^~~~~~~~~
  help: remove control characters, bidirectional marks, and leading or trailing spaces
)");
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

TEST_CASE("a key that is no name is refused", "[spec]") {
  CHECK(errors_of(R"(? ${x}
: 1
)" + base) ==
        R"(c.yaml:1:3: error: '${' is reserved; there is no substitution in a config
    1 | ? ${x}
      |   ^~~~
  help: write the value itself; for a literal '${' write "\x24{" in double quotes
)");
}

TEST_CASE("other errors of yaml-cpp have their place", "[spec]") {
  CHECK(errors_of(R"(seed: @x
)" + base) ==
        R"(c.yaml:1:7: error: this is not YAML: unknown token
    1 | seed: @x
      |       ^
  help: text that begins with this character needs quotes
)");
}

TEST_CASE("a list before the keys is reported as a second document", "[spec]") {
  CHECK(errors_of(R"(- 1
)" + base) ==
        R"(c.yaml:2:1: error: a second document begins here; a config is one document
    2 | data: {source: fashion_mnist, batch_size: 128}
      | ^
  help: write 'key: value' lines
)");
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
