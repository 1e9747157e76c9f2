#include "core/report/html/page.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/report/html/assets.h"
#include "core/report/html/curves.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"
#include "core/report/json.h"

namespace pmaptrain::report {
namespace {

bool has_curves(const Page& page) {
  for (const RunRecord& run : page.runs) {
    if (!run.metrics.series.empty()) return true;
  }
  return false;
}

// How far curves are thinned, where they are.
std::string thinning_note(const Json& curves) {
  std::size_t thinned_curves = 0, most = 0;
  for (const Json& series : curves["series"]) {
    const auto total = series["total"].get<std::size_t>();
    if (total == series["value"].size()) continue;
    ++thinned_curves;
    most = std::max(most, total);
  }
  if (thinned_curves == 0) return "";
  return note(
      fmt::format("{} of up to {} points {} thinned: of each stretch the smallest and the largest value are "
                  "drawn. metrics.jsonl has all of them.",
                  counted(static_cast<std::int64_t>(thinned_curves), "curve"),
                  with_commas(static_cast<std::int64_t>(most)), thinned_curves == 1 ? "is" : "are"));
}

// Which of several runs have no curve.
std::string missing_note(const Page& page) {
  std::vector<std::string> missing;
  for (const RunRecord& run : page.runs) {
    if (run.metrics.series.empty()) missing.push_back(run.label);
  }
  if (missing.empty()) return "";
  return note(fmt::format("Without curves, as metrics.jsonl has no lines: {}.", join(missing, ", ")));
}

std::string curves_section(const Page& page, const Json& curves) {
  if (!has_curves(page)) return section("curves", "Curves", note("metrics.jsonl has no lines yet."));
  return section("curves", "Curves",
                 "<noscript><p class=\"note\">The curves are drawn by a script, and scripts are off.</p></noscript>\n"
                 "<div id=\"charts\"></div>\n" +
                     missing_note(page) + thinning_note(curves));
}

std::string sweep_id(std::size_t sweep) { return sweep == 0 ? "sweep" : fmt::format("sweep-{}", sweep + 1); }

// Several sweeps are told apart by their names.
std::string sweep_heading(const Page& page, std::size_t sweep) {
  return page.sweeps.size() == 1 ? "Sweep" : "Sweep " + page.sweeps[sweep].name;
}

// Links to the sections that there are.
std::string navigation(const Page& page, const std::string& body) {
  struct Link {
    const char *id, *text;
  };
  constexpr Link links[] = {
      {"differences", "Differences"}, {"curves", "Curves"},          {"results", "Results"}, {"classes", "Classes"},
      {"worst", "Worst examples"},    {"plan", "Layers and memory"}, {"trace", "Trace"},     {"config", "Config"}};
  std::string out;
  for (std::size_t i = 0; i < page.sweeps.size(); ++i) {
    out += fmt::format("<a href=\"#{}\">{}</a>\n", sweep_id(i), escaped(sweep_heading(page, i)));
  }
  for (const Link& link : links) {
    if (body.find(fmt::format("<section id=\"{}\"", link.id)) == std::string::npos) continue;
    out += fmt::format("<a href=\"#{}\">{}</a>\n", link.id, link.text);
  }
  return "<nav aria-label=\"Sections\"><div>\n" + out + "</div></nav>\n";
}

}  // namespace

std::string html_page(const Page& page) {
  const Json curves = curves_json(page.runs);
  std::string body;
  for (std::size_t i = 0; i < page.sweeps.size(); ++i) {
    body += sweep_section(page.sweeps[i], sweep_id(i), sweep_heading(page, i));
  }
  body += differences_section(page);
  if (!page.runs.empty()) body += curves_section(page, curves);
  body += results_section(page) + classes_section(page) + worst_section(page) + plan_section(page);
  if (page.trace) body += trace_section(*page.trace);
  body += config_section(page);

  std::string out(page_head);
  out +=
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{}</title>\n<style>\n", escaped(page.title));
  out += page_style();
  out += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n";
  out += fmt::format("<header>\n<h1>{}</h1>\n", escaped(page.title));
  out += page.runs.size() == 1 && page.sweeps.empty() ? facts_of(page.runs.front()) : cards_of(page);
  out += "</header>\n" + navigation(page, body) + "<main id=\"main\">\n" + body + "</main>\n";
  out += fmt::format("<footer>pmaptrain {}</footer>\n", escaped(std::string(version)));
  out += "<script type=\"application/json\" id=\"data\">" + script_json(curves) + "</script>\n<script>\n";
  out += chart_library();
  out += "\n</script>\n<script>\n";
  out += page_script();
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace pmaptrain::report
