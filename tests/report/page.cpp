// The page of a report: what its JSON and its HTML say of runs.
#include "core/report/html/page.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/report/html/curves.h"
#include "core/report/html/figure.h"
#include "core/report/html/picture.h"
#include "core/report/html/scale.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"
#include "core/report/json.h"
#include "tests/catch.h"
#include "tests/words.h"

using namespace pmaptrain;
using report::Json;
using test::contains;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

const std::string config = R"(name: some
data:
  source: {synthetic_linear: {features: 2, examples_per_device: 4}}
  batch_size: all
mesh: {axes: {devices: 2}}
model: {layers: [{dense: 1}]}
loss: mean_squared_error
optimizer: {sgd: {}, learning_rate: 0.1}
train: {duration: 2 epochs}
)";

report::RunRecord record(const std::string& label) {
  report::RunRecord run;
  run.folder = "runs/" + label;
  run.label = label;
  run.config = spec::load_text(config, "config.yaml", ".", {});
  run.standing.status = "done";
  return run;
}

report::Series series(const std::string& measure, std::size_t points, unsigned seed) {
  report::Series one{"step", "train", measure, std::nullopt, {}, {}, {}};
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  for (std::size_t i = 0; i < points; ++i) {
    one.steps.push_back(static_cast<std::int64_t>(100 * i + 1));
    one.seconds.push_back(static_cast<double>(i) + uniform(random));
    one.values.push_back(uniform(random));
  }
  return one;
}

std::string page_of(std::vector<report::RunRecord> runs) {
  report::Page page;
  page.title = runs.front().label;
  page.extras.resize(runs.size());
  page.runs = std::move(runs);
  return report::html_page(page);
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

}  // namespace

TEST_CASE("thinned curves keep their first and last values, and the smallest and the largest of each stretch",
          "[report]") {
  std::vector<double> values;
  std::mt19937_64 random(1);
  for (int i = 0; i < 12'345; ++i) values.push_back(std::uniform_real_distribution<double>()(random));
  values[777] = -5;
  values[8'888] = 7;
  const std::vector<std::size_t> kept = report::thinned(values, 2000);
  CHECK(kept.size() <= 2000);
  CHECK(kept.size() > 1900);
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(kept.front() == 0);
  CHECK(kept.back() == values.size() - 1);
  const std::set<std::size_t> all(kept.begin(), kept.end());
  CHECK(all.contains(777));
  CHECK(all.contains(8'888));
  // No value lies beyond the kept ones of its neighbourhood.
  const std::size_t stretch = values.size() / 900;
  for (std::size_t at = 0; at + stretch < values.size(); at += stretch) {
    const auto extremes = std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(at),
                                              values.begin() + static_cast<std::ptrdiff_t>(at + stretch));
    double low = 9, high = -9;
    for (std::size_t i = at - std::min(at, stretch); i < std::min(values.size(), at + 2 * stretch); ++i) {
      if (!all.contains(i)) continue;
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
    CHECK(low <= *extremes.first);
    CHECK(high >= *extremes.second);
  }
}

TEST_CASE("members that lack a measure have a gap in its column", "[report]") {
  report::RunRecord run = record("ensemble");
  run::Ended& ended = run.standing.ended.emplace();
  ended.is_ensemble = true;
  ended.members.resize(2);
  ended.members[0].final_measures = {{"test", {{"loss", 0.5}, {"roc_auc", 0.25}}}};
  ended.members[1].final_measures = {{"test", {{"loss", 0.75}, {"roc_auc_left_out", 3.0}}}};
  const std::string page = page_of({run});
  const auto row = [](const std::string& member, const std::string& loss, const std::string& auc,
                      const std::string& left_out) {
    return "<tr><th scope=\"row\">" + member + "</th><td class=\"number\" data-label=\"loss\">" + loss +
           "</td><td class=\"number\" data-label=\"roc_auc\">" + auc +
           "</td><td class=\"number\" data-label=\"roc_auc_left_out\">" + left_out + "</td></tr>";
  };
  CHECK(contains(page, row("0", "0.5", "0.25", "–")));
  CHECK(contains(page, row("1", "0.75", "–", "3")));
}

TEST_CASE("curves of up to 2,000 points are not thinned, and gaps stay gaps", "[report]") {
  std::vector<double> values(2000, 1);
  CHECK(report::thinned(values, 2000).size() == 2000);
  values.resize(5000, 2);
  values[4321] = not_a_number;
  const std::vector<std::size_t> kept = report::thinned(values, 2000);
  CHECK(kept.size() <= 2000);
  CHECK(std::find(kept.begin(), kept.end(), 4321U) != kept.end());
  CHECK(report::thinned(std::vector<double>(3000, not_a_number), 2000).size() <= 2000);
  CHECK(report::thinned({}, 2000).empty());
}

TEST_CASE("the numbers in a page read back as those of the run", "[report]") {
  report::RunRecord run = record("a");
  run.metrics.series.push_back(series("loss", 50, 1));
  run.metrics.series.back().values[7] = not_a_number;
  run.metrics.series.push_back({"eval", "validation", "accuracy", std::nullopt, {1}, {0.1}, {1.0 / 3}});
  const Json data = data_of(page_of({run}));
  CHECK(data["owners"] == Json({"a"}));
  REQUIRE(data["series"].size() == 2);
  const Json& loss = data["series"][0];
  CHECK(loss["total"] == 50);
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(loss["step"][i] == run.metrics.series[0].steps[i]);
    CHECK(loss["seconds"][i] == run.metrics.series[0].seconds[i]);
    CHECK(loss["value"][i] == (i == 7 ? Json(nullptr) : Json(run.metrics.series[0].values[i])));
  }
  CHECK(data["series"][1]["split"] == "validation");
  CHECK(data["series"][1]["value"] == Json({1.0 / 3}));
}

TEST_CASE("the page of a run with many long curves is below 1.5 MB", "[report]") {
  report::RunRecord run = record("long");
  for (unsigned i = 0; i < 40; ++i) run.metrics.series.push_back(series("measure_" + std::to_string(i), 5'000, i));
  report::Page page;
  page.title = "long";
  page.runs.push_back(run);
  report::SplitPredictions predictions;
  predictions.input = {DType::u8, {64, 64, 3}};
  std::mt19937_64 random(2);
  for (int i = 0; i < 24; ++i) {
    report::WorstExample example;
    for (int b = 0; b < 64 * 64 * 3; ++b) example.inputs.push_back(static_cast<std::byte>(random() & 255U));
    predictions.worst.push_back(std::move(example));
  }
  page.extras.push_back({std::move(predictions), "", "", {}, ""});
  const std::string html = report::html_page(page);
  CHECK(html.size() < 1'500'000);
  CHECK(contains(html, "<details><summary>14 more</summary>\n<ul class=\"pictures\">"));
  CHECK(contains(html,
                 "40 curves of up to 5,000 points are thinned: of each stretch the smallest and the largest value "
                 "are drawn. metrics.jsonl has all of them."));
  const Json data = data_of(html);
  for (const Json& one : data["series"]) CHECK(one["value"].size() > 300);
}

TEST_CASE("names in a page are text, whatever they contain", "[report]") {
  const std::string hostile = "</script><script>alert(1)</script>'\"&\x01\xFF";
  report::RunRecord run = record(hostile);
  run.metrics.series.push_back(series(hostile, 3, 1));
  run::Ended ended;
  ended.status = "done";
  ended.reason = "duration";
  ended.classes = {hostile, "b"};
  ended.members.resize(1);
  ended.members[0].final_measures = {{"test", {{"loss", 0.5}, {"recall_0", 1}}}};
  ended.members[0].confusions["test"] = {{1, 2}, {3, 4}};
  run.standing.ended = ended;
  run.metrics.changes.push_back({3, 1, hostile, "1", "2"});
  report::Page page;
  page.title = hostile;
  page.runs = {run, record("other")};
  page.extras.resize(2);
  page.extras[0].predictions_problem = page.extras[1].plan_problem = hostile;
  report::SplitPredictions predictions;
  predictions.split = "validation";
  predictions.classes = {hostile, "b"};
  predictions.confusion = {{1, 0}, {0, 1}};
  predictions.worst.push_back({0, hostile, hostile, "b", {}, {}, 0.1, 0.9, 2, {}});
  page.extras[1].predictions = predictions;
  report::TraceTable trace;
  trace.items = {{hostile, "conv", 1}};
  page.trace = trace;
  report::SweepTable sweep{hostile, hostile, "", false, {{0, {{hostile, hostile}}, 1.0, "done", "", {}}}};
  page.sweeps = {sweep};
  const std::string html = report::html_page(page);
  CHECK_FALSE(contains(html, "<script>alert"));
  CHECK_FALSE(contains(html, "\x01"));
  CHECK_FALSE(contains(html, "\xFF"));
  CHECK(contains(html, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;&quot;&amp;\uFFFD\uFFFD"));
  // Data, Chart.js and the page's own script.
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = html.find("<script", at)) != std::string::npos; ++at) ++scripts;
  CHECK(scripts == 3);
  const Json data = data_of(html);
  CHECK(data["owners"][0].get<std::string>().starts_with("</script><script>alert(1)</script>'\"&"));
}

TEST_CASE("a page loads nothing", "[report]") {
  const std::string html = page_of({record("a")});
  CHECK(html.starts_with(report::page_head));
  for (const char* const loads :
       {"src=\"http", "href=\"http", "@import", "url(", "src='http", "<link rel=\"stylesheet"}) {
    CHECK_FALSE(contains(html, loads));
  }
  CHECK(contains(html, "Chart.js v3"));
  CHECK(contains(html, "metrics.jsonl has no lines yet."));
}

TEST_CASE("of many members a page shows the medians, and the smallest and largest values around them", "[report]") {
  report::RunRecord run = record("ensemble");
  for (int m = 0; m < 11; ++m) {
    report::Series one{"epoch", "train", "loss", m, {5, 10}, {1, 2}, {1.0 + m, m == 3 ? not_a_number : 2.0 + m}};
    run.metrics.series.push_back(one);
  }
  const Json data = report::curves_json(std::vector{run});
  CHECK(data["owners"] == Json({"ensemble: median of 11 members"}));
  REQUIRE(data["series"].size() == 1);
  CHECK(data["series"][0]["value"] == Json({6.0, 7.5}));
  CHECK(data["series"][0]["low"] == Json({1.0, 2.0}));
  CHECK(data["series"][0]["high"] == Json({11.0, 12.0}));
  run.metrics.series.resize(2);
  CHECK(report::curves_json(std::vector{run})["owners"] == Json({"ensemble member 0", "ensemble member 1"}));
}

TEST_CASE("precision and recall of classes are those of their confusion", "[report]") {
  report::Page page;
  page.runs.push_back(record("a"));
  page.extras.resize(1);
  report::SplitPredictions& found = page.extras[0].predictions.emplace();
  found.split = "validation";
  found.checkpoint = "step-00000010";
  found.classes = {"cat", "dog", "cow"};
  found.confusion = {{3, 1, 0}, {2, 6, 0}, {0, 0, 0}};
  const std::string html = report::classes_section(page);
  CHECK(contains(html, "On validation, checkpoint step-00000010."));
  CHECK(contains(html,
                 "<tr><th scope=\"row\">cat</th><td class=\"number\" data-label=\"precision\">0.6000</td>"
                 "<td class=\"number\" data-label=\"recall\">0.7500</td>"
                 "<td class=\"number\" data-label=\"F1\">0.6667</td>"
                 "<td class=\"number\" data-label=\"examples\">4</td></tr>"));
  CHECK(contains(html,
                 "<tr><th scope=\"row\">cow</th><td class=\"number\" data-label=\"precision\">–</td>"
                 "<td class=\"number\" data-label=\"recall\">–</td>"
                 "<td class=\"number\" data-label=\"F1\">–</td>"
                 "<td class=\"number\" data-label=\"examples\">0</td></tr>"));
  CHECK(contains(html, "<td class=\"right\" style=\"--share:0.750\">3</td><td style=\"--share:0.250\">1</td>"));
  // Of many classes only the pairs that are confused most.
  found.classes.assign(40, "x");
  found.confusion.assign(40, std::vector<double>(40));
  found.confusion[4][7] = 12;
  const std::string many = report::classes_section(page);
  CHECK(contains(many, "Of 40 classes, the pairs that are confused most often:"));
  CHECK_FALSE(contains(many, "class=\"matrix\""));
}

TEST_CASE("pictures are PNGs of the examples", "[report]") {
  const std::vector<std::byte> grey{std::byte{0}, std::byte{255}, std::byte{128}, std::byte{7}};
  CHECK(report::picture_uri({DType::u8, {2, 2, 1}}, grey, 64).starts_with("data:image/png;base64,iVBORw0KGgo"));
  const std::vector<float> floats{-1, 0, 1, std::numeric_limits<float>::quiet_NaN()};
  CHECK(
      report::picture_uri({DType::f32, {2, 2, 1}}, std::as_bytes(std::span(floats)), 64).starts_with("data:image/png"));
  const std::vector<std::byte> large(std::size_t{300} * 200 * 4);
  CHECK(report::picture_uri({DType::u8, {300, 200, 4}}, large, 64).size() < 500);
  CHECK(report::is_image({DType::u8, {28, 28, 1}}));
  CHECK_FALSE(report::is_image({DType::f32, {28}}));
  CHECK_FALSE(report::is_image({DType::i32, {28, 28, 1}}));
  CHECK_FALSE(report::is_image({DType::f32, {28, 28, 2}}));
}

TEST_CASE("label maps stand beside their images, with a colour for each class", "[report]") {
  report::Page page;
  page.runs.push_back(record("maps"));
  report::SplitPredictions predictions;
  predictions.split = "test";
  predictions.examples = 3;
  predictions.classes = {"background", "<road>"};
  predictions.confusion = {{6, 2}, {1, 3}};
  predictions.input = {DType::u8, {2, 2, 1}};
  predictions.map = {2, 2};
  report::WorstExample example;
  example.index = 2;
  example.place = "a/1.jpg";
  example.inputs.resize(4);
  example.true_map = {0, 1, 1, 255};
  example.predicted_map = {0, 1, 0, 0};
  example.right = 2.0 / 3;
  predictions.worst = {example};
  page.extras.push_back({std::move(predictions), "", "", {}, ""});
  const std::string html = report::worst_section(page);
  CHECK(contains(html, "The examples of test whose pixels have the largest mean loss, of 3, checkpoint "));
  CHECK(contains(html, "<span class=\"swatch\" style=\"background:#800000\"></span>&lt;road&gt;"));
  CHECK(contains(html, "alt=\"a/1.jpg: true classes\""));
  CHECK(contains(html, "alt=\"a/1.jpg: predicted classes\""));
  CHECK(contains(html, "66.7\u00A0% of the pixels are right"));
  const std::string classes = report::classes_section(page);
  CHECK(contains(classes, "IoU"));
  CHECK(contains(classes, "0.6667"));  // 6 of 9
  CHECK(report::color_of_class(0) == "#000000");
  CHECK(report::color_of_class(3) == "#808000");  // as in PASCAL VOC's colour map
}

TEST_CASE("texts that are predicted worst have their tokens marked by losses, with ends of lines to be seen",
          "[report]") {
  report::Page page;
  page.runs.push_back(record("text"));
  report::SplitPredictions predictions;
  predictions.split = "validation";
  predictions.checkpoint = "step-00000010";
  predictions.examples = 1200;
  predictions.input = {DType::i32, {4}};
  predictions.vocabulary = 100;
  predictions.loss = 1.5;
  predictions.loss_by_byte = std::log(2.0) / 2;
  report::WorstExample example;
  example.index = 1007;
  example.error = 2.5;
  example.error_by_byte = 0.625;
  example.tokens = {{"<a>", std::log(10.0), ""}, {"\n", 1e9, "'x'\n"}, {" b", not_a_number, ""}};
  predictions.worst = {example};
  page.extras.push_back({std::move(predictions), "", "", {}, ""});
  const std::string html = report::worst_section(page);
  CHECK(contains(html,
                 "The windows of validation whose tokens have the largest mean loss, of 1,200, checkpoint "
                 "step-00000010. A token is the redder, "));
  CHECK(contains(html, "<p>The mean loss of all of them is 1.5 nats a token, 0.3466 a byte, 0.5 bits.</p>"));
  CHECK(contains(html,
                 "<p class=\"muted\">window 1,007: 2.5 nats a token, 0.625 a byte; of 4 tokens the 3 with the "
                 "largest losses side by side</p><pre>"
                 "<b style=\"--share:0.50\" title=\"2.30\">&lt;a&gt;</b>"
                 "<b style=\"--share:1.00\" title=\"1000000000.00; likeliest: &#39;x&#39;\\n\">↵\n</b>"
                 "<s title=\"does not count\"> b</s></pre></li>"));
}

TEST_CASE("axes place numbers along a line or along powers of ten, and texts one after another", "[report]") {
  const auto linear = report::Scale::of_numbers({0, 10}, 0, 100);
  CHECK(linear.at(5) == 50);
  CHECK(linear.ticks().front().text == "0");
  CHECK(linear.ticks().back().text == "10");
  const auto powers = report::Scale::of_texts({"0.001", "1.0e-01", "0.01"}, 0, 100);
  CHECK(std::abs(powers.at("0.01") - 50) < 1e-9);
  REQUIRE(powers.ticks().size() == 3);
  CHECK(powers.ticks()[1].text == "0.01");
  const auto ticks_of = [](double low, double high) {
    std::vector<std::string> texts;
    for (const auto& tick : report::Scale::of_numbers({low, high}, 0, 100, true).ticks()) texts.push_back(tick.text);
    return texts;
  };
  using Texts = std::vector<std::string>;
  CHECK(ticks_of(1e-6, 1) == Texts{"1e-06", "0.0001", "0.01", "1"});
  CHECK(ticks_of(1e-4, 1e-1) == Texts{"0.0001", "0.001", "0.01", "0.1"});
  CHECK(ticks_of(1e-3, 5e-2) == Texts{"0.001", "0.003", "0.01", "0.03"});
  CHECK(ticks_of(0.001, 0.015) == Texts{"0.001", "0.002", "0.005", "0.01"});
  CHECK(ticks_of(0.011, 0.019) == Texts{"0.012", "0.014", "0.016", "0.018"});
  const auto near = report::Scale::of_numbers({0.001, 0.1, 0.01}, 0, 100),
             asked = report::Scale::of_numbers({1, 16}, 0, 100, true);
  CHECK(std::abs(near.at(0.01) - 50) < 1e-9);
  CHECK(std::abs(asked.at(4) - 50) < 1e-9);
  CHECK(report::Scale::of_numbers({0, 16}, 0, 100, true).at(4) == 25);
  const auto texts = report::Scale::of_texts({"adam", "sgd", "adam"}, 0, 100);
  CHECK(texts.at("adam") == 25);
  CHECK(texts.at("sgd") == 75);
  CHECK(report::Scale::of_numbers({3, 3}, 0, 100).at(3) == 50);
}

TEST_CASE("numbers have at most four digits, and thousands are separated", "[report]") {
  const std::pair<double, const char*> cases[] = {{0, "0"},
                                                  {0.123456, "0.1235"},
                                                  {1209612, "1,210,000"},
                                                  {999.96, "1,000"},
                                                  {-45678.9, "-45,680"},
                                                  {1234.5, "1,235"},
                                                  {2.0998e11, "2.1e+11"},
                                                  {1e-5, "1e-05"},
                                                  {1.0234e-5, "1.023e-05"},
                                                  {0.0001, "0.0001"}};
  for (const auto& [value, text] : cases) CHECK(report::shown_number(value) == text);
  CHECK(report::shown_value("80898") == "80,898");
  CHECK(report::shown_value("0.011557177872294213") == "0.01156");
  CHECK(report::shown_value("adam") == "adam");
  CHECK(report::Scale::of_numbers({0, 3e6}, 0, 100).ticks().back().text == "3M");
}

TEST_CASE("the cards of a sweep's runs say how far halving has trained them", "[report]") {
  report::Page page;
  for (const char* const folder :
       {"sweeps/lr/trials/0000", "sweeps/lr/trials/0001", "sweeps/x-lr/trials/0000", "runs/lr"}) {
    report::RunRecord& run = page.runs.emplace_back();
    run.folder = folder;
    run.label = folder;
    run.standing.status = "stopped";
  }
  page.sweeps = {{"lr",
                  "loss",
                  "sweeps/lr",
                  false,
                  {{0, {}, 0.5, "done", "trials/0000", {{8, 0.5}}},
                   {1, {}, 0.25, "done", "trials/0001", {{8, 0.375}, {16, 0.25}}}}},
                 {"x-lr", "loss", "./sweeps/x-lr/", false, {{0, {}, 0.5, "failed", "trials/0000", {}}}}};
  const std::string cards = report::cards_of(page);
  CHECK(contains(cards, "<b>sweeps/lr/trials/0000</b> <br><span class=\"done\">done at rung 1 of 2</span>"));
  CHECK(contains(cards, "<span class=\"done\">done at rung 2 of 2</span>"));
  CHECK(contains(cards, "<b>sweeps/x-lr/trials/0000</b> <br><span class=\"failed\">failed</span>"));
  CHECK(contains(cards, "<b>runs/lr</b> <br><span class=\"stopped\">stopped</span>"));
}

TEST_CASE("the card of a sweep's only run names its trial, and the best is the sweep's best", "[report]") {
  report::Page page;
  report::RunRecord& run = page.runs.emplace_back();
  run.folder = "sweeps/lr/trials/0004";
  run.label = "trial 4";
  page.sweeps = {{"lr", "loss", "sweeps/lr", false, {}}};
  page.sweeps.front().trials = {
      {4, {}, 0.5, "done", "trials/0004", {}, "done"},
      {0, {}, std::nullopt, "done", "trials/0000", {}, "done: a guard stopped it after 1 step"}};
  CHECK(contains(report::cards_of(page), "<b>trial 4</b> <span class=\"mark-best\">best</span>"));
  CHECK(contains(report::cards_of(page), "What follows the sweep is of this run, trial 4."));
  // A run whose trial is not the best is not marked, though it is the only one that is left.
  page.sweeps.front().trials.push_back({7, {}, 0.25, "done", "trials/0007", {}, "done"});
  CHECK_FALSE(contains(report::cards_of(page), "mark-best"));
  run.folder = "sweeps/lr/trials/0000";
  CHECK(contains(report::cards_of(page), "<span class=\"done\">done: a guard stopped it after 1 step</span>"));
  CHECK(contains(report::sweep_section(page.sweeps.front()), "<td data-label=\"status\">done: a guard stopped it"));
}

TEST_CASE("runs without an evaluation or a line of metrics are named as such", "[report]") {
  report::Page page;
  report::Metrics metrics;
  metrics.series.push_back({"step", "train", "loss", {}, {1, 2}, {0.5, 1.0}, {2.0, 1.0}});
  for (const char* const label : {"a", "b"}) {
    report::RunRecord& run = page.runs.emplace_back();
    run.folder = label;
    run.label = label;
    run.standing.status = "running";
  }
  page.runs.front().metrics = metrics;
  page.runs.front().best = report::BestValue{"loss", "train", 1.0, 2, {}, false, true};
  page.extras.resize(2);
  const std::string cards = report::cards_of(page);
  CHECK(contains(cards, "<b>a</b> <br><span class=\"running\">running</span><br>train loss 1 at step 2</li>"));
  CHECK(contains(cards, "<b>b</b> <br><span class=\"running\">running</span><br>no loss yet</li>"));
  const std::string html = report::html_page(page);
  CHECK(contains(html, "<p class=\"note\">Without curves, as metrics.jsonl has no lines: b.</p>"));
}

TEST_CASE("the ticks of a measure enclose its values, and a single value has the only tick", "[report]") {
  const auto texts = [](report::Scale scale) {
    scale.round_ends();
    std::vector<std::string> found;
    for (const report::Scale::Tick& tick : scale.ticks()) found.push_back(tick.text);
    return found;
  };
  using Texts = std::vector<std::string>;
  CHECK(texts(report::Scale::of_numbers({0.124, 0.988}, 200, 8)) == Texts{"0", "0.2", "0.4", "0.6", "0.8", "1"});
  CHECK(texts(report::Scale::of_numbers({0.0401, 24.6}, 200, 8)) == Texts{"0.02", "0.1", "1", "10", "50"});
  CHECK(texts(report::Scale::of_numbers({0.5}, 200, 8)) == Texts{"0.5"});
  CHECK(texts(report::Scale::of_numbers({0}, 200, 8)) == Texts{"0"});
  CHECK(report::label_lines("sgd momentum 0.9", 12) == Texts{"sgd", "momentum 0.9"});
  CHECK(report::label_lines("learning_rate", 12) == Texts{"learning_", "rate"});
  CHECK(report::label_lines("adam", 12) == Texts{"adam"});
  CHECK(report::label_lines("perplexityofwords", 12) == Texts{"perplexityofwords"});
}

TEST_CASE("a sweep is shown by its best values, parameters and rungs", "[report]") {
  report::SweepTable sweep{"lr", "accuracy", "", true, {}};
  for (int i = 0; i < 6; ++i) {
    sweep.trials.push_back(
        {i,
         {{"optimizer.learning_rate", "0.00" + std::to_string(i + 1)}, {"rule", i % 2 == 0 ? "adam" : "sgd"}},
         i == 4 ? std::nullopt : std::optional(0.5 + 0.05 * i),
         i == 4 ? "failed" : "done",
         "",
         {{100, 0.3 + 0.05 * i}, {300, i > 3 ? std::optional(0.7) : std::nullopt}}});
  }
  const std::string html = report::sweep_section(sweep);
  CHECK(contains(html, "6 trials, 5 with a value; the largest accuracy is the best."));
  CHECK(contains(html, "The best is trial 5 with accuracy 0.75: learning_rate=0.006, rule=sgd."));
  for (const char* const part :
       {"Best value so far", "Parameters of the trials", "accuracy by learning_rate", "Rungs of successive halving",
        "<title>trial 5: accuracy 0.75\noptimizer.learning_rate=0.006", ">100</text>", ">300</text>"}) {
    CHECK(contains(html, part));
  }
  // The best first, those without a value last.
  const std::size_t first = html.find("<th scope=\"row\" class=\"best\">5 <span class=\"mark-best\">best</span></th>");
  const std::size_t last = html.find("<th scope=\"row\">4</th>");
  CHECK(first < html.find("<th scope=\"row\">0</th>"));
  CHECK(last != std::string::npos);
  CHECK(last > html.find("<th scope=\"row\">0</th>"));
  // A parameter that is drawn in the logarithm is shown so, however near its values are.
  const std::string place = "cx=\"39.36%\"";
  CHECK_FALSE(contains(html, place));
  sweep.logarithmic = {"optimizer.learning_rate"};
  CHECK(contains(report::sweep_section(sweep), place));
  CHECK_FALSE(contains(report::sweep_section({"empty", "loss", "", false, {}}), "<svg"));
}

TEST_CASE("texts of a sweep's charts do not lie on each other, and name the parameter", "[report]") {
  report::SweepTable sweep{"search", "r2", "", true, {}};
  for (const char* const rate : {"0.001", "0.01", "0.011", "0.1"}) {
    const auto number = static_cast<std::int64_t>(sweep.trials.size());
    sweep.trials.push_back({number,
                            {{"optimizer.learning_rate", rate}, {"model.layers.1", "relu"}},
                            0.5 + static_cast<double>(number),
                            "done",
                            "",
                            {{99, 0.5}}});
  }
  sweep.meanings = {"width: 4 is features 4, batch_size 16"};
  const std::string html = report::sweep_section(sweep);
  CHECK(contains(html, "learning_rate=0.1, layers.1=relu."));
  CHECK(contains(html, "r2 by layers.1"));
  CHECK(contains(html, ">0.01</text>"));
  CHECK_FALSE(contains(html, ">0.011</text>"));
  CHECK_FALSE(contains(html, "Rungs of successive halving"));
  CHECK(contains(html, "<p class=\"note\">width: 4 is features 4, batch_size 16</p>"));
}
