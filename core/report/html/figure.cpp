#include "core/report/html/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/html/text.h"

namespace pmaptrain::report {
namespace {

std::string title_of(std::string_view title) {
  return title.empty() ? "" : fmt::format("<title>{}</title>", escaped(title));
}

}  // namespace

std::string dot(double x, double y, std::string_view title, std::string_view classes) {
  return fmt::format("<circle class=\"{}\" cx=\"{:.2f}%\" cy=\"{:.1f}\" r=\"3.5\">{}</circle>\n", classes, x, y,
                     title_of(title));
}

std::string segment(double x1, double y1, double x2, double y2, std::string_view classes) {
  return fmt::format("<line class=\"{}\" x1=\"{:.2f}%\" y1=\"{:.1f}\" x2=\"{:.2f}%\" y2=\"{:.1f}\"/>\n", classes, x1,
                     y1, x2, y2);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, int most) {
  return fmt::format("<text x=\"{:.2f}%\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(shown_name(text, most)));
}

std::vector<std::string> label_lines(std::string_view text, int most) {
  if (display_width(text) <= most) return {std::string(text)};
  // Behind as many words as fit, but at least one.
  std::size_t end = std::string_view::npos;
  for (std::size_t at = text.find_first_of(" _"); at != std::string_view::npos; at = text.find_first_of(" _", at + 1)) {
    if (end == std::string_view::npos || display_width(text.substr(0, at)) < most) end = at;
  }
  if (end == std::string_view::npos) return {std::string(text)};
  return {std::string(text.substr(0, end + (text[end] == '_' ? 1 : 0))), std::string(text.substr(end + 1))};
}

std::string label_at(double x, double y, std::string_view anchor, std::string_view text, int most) {
  const std::vector<std::string> lines = label_lines(text, most);
  std::string out;
  // The last line is drawn first: what it hides is not the line above it.
  for (std::size_t i = lines.size(); i-- > 0;) {
    out += fmt::format("<text{} x=\"{:.2f}%\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                       i + 1 == lines.size() ? " class=\"label\"" : "", x, y + label_height * static_cast<double>(i),
                       anchor, escaped(shown_name(lines[i], most)));
  }
  return out;
}

std::string group(std::string_view title, std::string_view marks, double opacity) {
  return fmt::format("<g opacity=\"{:.2f}\">{}{}</g>\n", opacity, title_of(title), marks);
}

std::string axes(const Scale& x, const Scale& y, std::string_view x_name) {
  std::string out = segment(0, 0, 0, plot_height, "axis") + segment(0, plot_height, 100, plot_height, "axis");
  const std::vector<Scale::Tick> along = x.ticks(5);
  // Names are cut, numbers are not.
  const int most = x.has_names() ? std::max(5, 36 / std::max(1, static_cast<int>(along.size()))) : 40;
  double end = -100;
  for (const Scale::Tick& tick : along) {
    constexpr double letter = 2.9;  // percent of the narrowest chart
    const double half = x.has_names() ? 0 : letter * std::min(most, display_width(tick.text)) / 2;
    if (tick.place - half < end) continue;  // it would lie on the one before it
    end = tick.place + half;
    out += label_at(tick.place, plot_height + 14, "middle", tick.text, most);
  }
  for (const Scale::Tick& tick : y.ticks()) {
    out += segment(0, tick.place, 100, tick.place, "grid");
    out +=
        fmt::format("<text x=\"-6\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", tick.place + 4, escaped(tick.text));
  }
  return out + text_at(50, plot_height + 40, "middle", x_name, 40);
}

std::string chart(std::string_view caption, std::string_view label, std::string_view marks, bool wide) {
  return fmt::format(
      "<figure{}><figcaption>{}</figcaption><svg class=\"chart\" role=\"img\" aria-label=\"{}\">\n{}</svg></figure>\n",
      wide ? " class=\"wide\"" : "", escaped(caption), escaped(label), marks);
}

std::string charts(std::string_view all) { return fmt::format("<div class=\"charts\">\n{}</div>\n", all); }

}  // namespace pmaptrain::report
