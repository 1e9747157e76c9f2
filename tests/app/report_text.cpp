// report: texts that language models predict worst.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

#include "tests/app/call.h"
#include "tests/app/predicting.h"
#include "tests/catch.h"
#include "tests/tokenizers/fixtures.h"

using namespace pmaptrain;
using nlohmann::json;
using tests::call;
using tests::contains;
using tests::Finished;
using tests::TrainedRun;

namespace {

constexpr const char* language_model =
    "{name: tokens, embedding: {num_embeddings: 330, features: 16}}, {attention: {heads: 1, causal: true}}, "
    "{attend: {embedding: tokens}}";

// A text; with `odd` one that has something else once.
std::string text_of(bool odd) {
  std::string text;
  for (int i = 0; i < 90; ++i) text += odd && i == 61 ? "the zebra <b> \xc3\xa9. " : "the cat sat on the mat. ";
  return text;
}

std::string page_of(const TrainedRun& run) {
  const Finished done = call({"report", run.dir, "--output", run.folder / "r.html"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  return tests::read_text(run.folder / "r.html");
}

double loss_of(const TrainedRun& run) {
  return json::parse(call({"eval", run.dir, "--split", "validation", "--json"}).out)["loss"].get<double>();
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  REQUIRE(at != std::string::npos);
  return text.substr(at, text.find(end, at) - at);
}

}  // namespace

TEST_CASE("a report shows the windows of a text that are predicted worst, by the run's tokenizer", "[app]") {
  TrainedRun run;
  run.folder.write("t.txt", text_of(false));
  run.folder.write("v.txt", text_of(true));
  run.folder.write("tok.json", tests::tokenizer_text("gpt2"));
  run.train("  source: {text: {train: t.txt, validation: v.txt, length: 8}}\n  tokenizer: {file: tok.json}\n",
            language_model);
  const std::string html = page_of(run), worst = between(html, "<section id=\"worst\"", "</section>");
  CHECK_FALSE(contains(html, "<section id=\"classes\""));
  CHECK(contains(worst, "The windows of validation whose tokens have the largest mean loss, of "));
  const double loss = loss_of(run);
  CHECK(contains(worst, fmt::format("The mean loss of all of them is {:.4g} nats a token, ", loss)));
  CHECK(contains(worst, " a byte, "));
  CHECK(contains(worst, " bits.</p>"));
  // The first one has the word that is new, in tokens, and nothing is markup.
  const std::string first = between(worst, "<li>", "</li>");
  CHECK(first.starts_with("<li><p class=\"muted\">window "));
  std::string text;
  for (std::size_t at = first.find("<b style="); at != std::string::npos; at = first.find("<b style=", at + 1)) {
    const std::size_t begin = first.find("\">", at) + 2;
    text += first.substr(begin, first.find("</b>", begin) - begin);
  }
  CHECK(contains(text, "&lt;b&gt;"));
  CHECK(contains(first, "; likeliest: "));
  CHECK_FALSE(contains(worst, "<b> "));
}

TEST_CASE("a report of a model of bytes has their losses, and of an ensemble those of its mean", "[app]") {
  TrainedRun run;
  run.folder.write("t.txt", text_of(false));
  run.folder.write("v.txt", text_of(true));
  run.train("  source: {text: {train: t.txt, validation: v.txt, length: 8, end_token: 0}}\n",
            std::string(language_model).replace(std::string(language_model).find("330"), 3, "256"),
            "loss: {softmax_cross_entropy: {ignore_label: 46}}\nensemble: {axis: members, vary: {seed: [1, 2]}}\n",
            {"mesh.axes=[{members: 2}, {devices: 2}]"});
  const std::string worst = between(page_of(run), "<section id=\"worst\"", "</section>");
  const double loss = loss_of(run);
  CHECK(contains(worst, fmt::format("The mean loss of all of them is {:.4g} nats a byte, {:.4g} bits.", loss,
                                    loss / std::numbers::ln2)));
  CHECK(contains(worst, " nats a byte</p>"));
  CHECK(contains(worst, "<s title=\"does not count\">.</s>"));
  CHECK_FALSE(contains(worst, "likeliest: "));  // of one member alone
}

TEST_CASE("a report of tokens without a tokenizer shows numbers", "[app]") {
  TrainedRun run;
  run.folder.write("tok.json", tests::tokenizer_text("gpt2"));
  run.folder.write("t.txt", text_of(false));
  run.folder.write("v.txt", text_of(true));
  REQUIRE(call({"tokenize", "encode", run.folder / "t.txt", "--tokenizer", run.folder / "tok.json", "--output",
                run.folder / "t.bin"})
              .status == 0);
  run.train("  source: {text: {train: t.bin, length: 200, tokens: uint16}}\n  validation: 0.3\n", language_model, "",
            {"data.batch_size=2"});
  const std::string worst = between(page_of(run), "<section id=\"worst\"", "</section>");
  CHECK(contains(worst, fmt::format("The mean loss of all of them is {:.4g} nats a token.", loss_of(run))));
  CHECK(contains(worst, "; of 200 tokens the 160 with the largest losses side by side</p>"));
}
