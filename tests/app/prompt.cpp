// predict --prompt: the text that a model continues.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/display/screen.h"

using namespace pmaptrain;

using tests::call;
using tests::contains;
using tests::Finished;
using tests::TrainedRun;

namespace {

// A model of "abcd" again and again.
struct TextRun : TrainedRun {
  TextRun() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "abcd";
    folder.write("t.txt", text);
    train("  source: {text: {train: t.txt, length: 8}}\n",
          "{name: tokens, embedding: {num_embeddings: 128, features: 8}}, {attention: {heads: 1, causal: true}}, "
          "{attend: {embedding: tokens}}");
  }
};

}  // namespace

TEST_CASE("predict --prompt prints the text and its continuation, and refuses options that do not fit", "[app]") {
  const TextRun run;
  const auto said = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"predict", run.dir});
    return call(options);
  };
  const Finished plain = said({"--prompt", "ab", "--tokens", "5"});
  INFO(plain.err);
  CHECK(plain.status == 0);
  CHECK(plain.out.starts_with("ab"));
  CHECK(plain.out.size() == 8);
  run.folder.write("p.txt", "ab");
  CHECK(said({"--prompt", "@" + run.folder / "p.txt", "--tokens", "5"}).out == plain.out);
  CHECK(said({"--prompt", "ab", "--tokens", "5", "--workers", "1"}).out == plain.out);
  CHECK_FALSE(contains(plain.err, "the prompt has"));
  CHECK(contains(said({"--prompt", "abcdabcdab"}).err,
                 "note: the prompt has 10 tokens, and the model sees at most 8: it continues the last 6 of them\n"));
  // The token that comes first is made the end token: nothing is printed but the prompt and the end of the line.
  const std::string end = std::to_string(static_cast<unsigned char>(plain.out[2]));
  CHECK(said({"--prompt", "ab", "--set", "data.source.text.end_token=" + end}).out == "ab\n");
  const std::vector<std::string> drawn{"--prompt", "ab", "--temperature", "2", "--seed", "4"};
  CHECK(said(drawn).out == said(drawn).out);
  const auto refusal = [&](std::vector<std::string> options) {
    const Finished done = said(std::move(options));
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    return done.err;
  };
  const auto tells = [&](std::vector<std::string> options, const std::string& words) {
    return refusal(std::move(options)).find(words) != std::string::npos;
  };
  CHECK(tells({"--tokens", "5"}, "--tokens belongs to --prompt"));
  CHECK(tells({"--prompt", "ab", "--input", "x.npy"}, "--input and --prompt were both given"));
  CHECK(tells({"--input", run.folder / "t.txt", "--output", "o.csv"}, "t.txt continues it; pmaptrain eval RUN --set "));
  CHECK(tells({"--input", "a.parquet", "--output", "o.csv"},
              "in Python, `pandas.read_parquet('a.parquet').to_csv('a.csv', index=False)` writes a table as CSV"));
  CHECK(tells({"--prompt", "ab", "--as", "classes"}, "--as belongs to --input"));
  CHECK(tells({"--prompt", "ab\xc3"}, "the model knows the tokens 0 to 127"));
  for (const std::string temperature : {"-1", "1e30", "1e6x", "nan"}) {
    CHECK(tells({"--prompt", "ab", "--temperature", temperature},
                "--temperature '" + temperature + "' is not a number from 0 to 1,000,000"));
  }
  CHECK(said({"--prompt", "ab", "--temperature", "1e6"}).status == 0);
  CHECK(tells({"--prompt", "ab", "--temperature", "1", "--top-p", "0"}, "is not a number greater than 0"));
  CHECK(tells({"--prompt", "ab", "--top-k", "3"}, "without --temperature the most probable one is taken"));
  run.folder.write("empty.txt", "");
  CHECK(said({"--prompt", "@" + run.folder / "empty.txt"}).status == 3);
  CHECK(said({"--prompt", "@@ab", "--tokens", "5"}).out.starts_with("@ab"));
  const Finished no_file = said({"--prompt", "@a user"});
  CHECK(no_file.status == 3);
  CHECK(no_file.err ==
        "--prompt:1:10: error: cannot open 'a user': No such file or directory\n"
        "    1 | --prompt @a user\n"
        "      |          ^~~~~~~\n"
        "  help: @ names a file, relative to the current directory; the text '@a user' is --prompt '@@a user'\n");
}

TEST_CASE("predict --prompt writes no byte that a terminal obeys to one, and every byte elsewhere", "[app]") {
  const TextRun run;
  const std::vector<std::string> drawn{"predict", run.dir,         "--prompt", "ab",     "--tokens",
                                       "200",     "--temperature", "1000",     "--seed", "4"};
  const auto controls = [](const std::string& text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 127; });
  };
  CHECK(controls(call(drawn).out) > 0);
  const test::Collector terminal(80);
  std::ostringstream out, err;
  CHECK(app::run_program(drawn, {out, err, terminal.fd()}) == 0);
  CHECK(controls(out.str()) == 0);
}
