#include "core/report/html/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/report/json.h"

namespace pmaptrain::report {

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
      out += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", attributes, row[i].html)
                    : fmt::format("<td{}>{}</td>", attributes, row[i].html);
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
