#include "core/report/html/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/json.h"
#include "core/run/records/lines.h"

namespace pmaptrain::report {

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
  return whole ? std::optional(number) : std::nullopt;
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = utf8_at(text, at);
    const bool is_control = (character.code < 0x20 && character.code != '\n' && character.code != '\t') ||
                            (character.code >= 0x7F && character.code < 0xA0);
    if (!character.well_formed || is_control) {
      out += "\uFFFD";
    } else if (character.code == '&') {
      out += "&amp;";
    } else if (character.code == '<') {
      out += "&lt;";
    } else if (character.code == '>') {
      out += "&gt;";
    } else if (character.code == '"') {
      out += "&quot;";
    } else if (character.code == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  return out;
}

std::string script_json(const Json& document) {
  const std::string text = json_text(document);
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {  // only strings of a JSON text contain '<'
    if (letter == '<') {
      out += "\\u003c";
    } else {
      out += letter;
    }
  }
  return out;
}

Cell text_cell(std::string_view text) { return {escaped(text)}; }
Cell number_cell(std::string_view text) { return {escaped(text), "number"}; }

Cell marked_cell(std::string_view text, bool is_best) {
  return {escaped(text) + (is_best ? " <span class=\"mark-best\">best</span>" : ""), is_best ? "best" : ""};
}

Cell value_cell(const std::string& value) {
  return number_in(value) ? number_cell(shown_value(value)) : text_cell(value.empty() ? "–" : value);
}

std::string shown_number(double value) {
  if (!std::isfinite(value)) return run::compact(value);
  const double magnitude = std::abs(value);
  if (magnitude >= 1e9 || (magnitude > 0 && magnitude < 1e-4)) {
    std::string text = fmt::format("{:.3e}", value);
    const std::size_t exponent = text.find('e'), last = text.find_last_not_of(".0", exponent - 1);
    return text.substr(0, last + 1) + text.substr(exponent);
  }
  if (magnitude < 999.95) return fmt::format("{:.4g}", value);
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(magnitude)) - 3));
  return with_commas(std::llround(std::round(value / unit) * unit));
}

std::string shown_value(const std::string& value) {
  const std::optional<double> number = number_in(value);
  if (!number) return value;
  const bool is_whole = value.find_first_not_of("-0123456789") == std::string::npos && std::abs(*number) < 1e15;
  return is_whole ? with_commas(std::llround(*number)) : shown_number(*number);
}

namespace {

std::string classes_of(std::string_view classes) {
  return classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
}

}  // namespace

std::string table(std::string_view label, const std::vector<Cell>& head, const std::vector<std::vector<Cell>>& rows,
                  std::string_view classes) {
  std::string out = fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}>\n",
                                escaped(label), classes_of(classes));
  if (!head.empty()) {
    out += "<thead><tr>";
    for (const Cell& cell : head)
      out += fmt::format("<th scope=\"col\"{}>{}</th>", classes_of(cell.classes), cell.html);
    out += "</tr></thead>\n";
  }
  out += "<tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string attributes = classes_of(row[i].classes);
      if (i == 0) {
        out += fmt::format("<th scope=\"row\"{}>{}</th>", attributes, row[i].html);
        continue;
      }
      // The text of the head, without a mark behind it.
      const std::string name =
          i < head.size() ? fmt::format(" data-label=\"{}\"", head[i].html.substr(0, head[i].html.find(" <"))) : "";
      out += fmt::format("<td{}{}>{}</td>", attributes, name, row[i].html);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section(std::string_view id, std::string_view title, std::string_view html) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n", id,
      escaped(title), html);
}

std::string paragraph(std::string_view text) { return fmt::format("<p>{}</p>\n", escaped(text)); }
std::string note(std::string_view text) { return fmt::format("<p class=\"note\">{}</p>\n", escaped(text)); }

std::string bars(const std::vector<Bar>& all) {
  std::string out = "<div class=\"bars\">\n";
  for (const Bar& bar : all) {
    out += fmt::format(
        "<div><span>{}</span><span class=\"bar\"><i style=\"width:{:.1f}%\"></i></span><span "
        "class=\"amount\">{}</span></div>\n",
        escaped(bar.name), 100 * std::clamp(bar.share, 0.0, 1.0), escaped(bar.amount));
  }
  return out + "</div>\n";
}

}  // namespace pmaptrain::report
