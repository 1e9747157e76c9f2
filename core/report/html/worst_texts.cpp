#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"

namespace pmaptrain::report {
namespace {

// The text of a token where ends of lines can be seen.
std::string visible(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\n') out += "↵";
    if (letter != '\r') out += letter;
  }
  return out;
}

// A token on a ground that is the redder, the larger its loss. Its title, which the pointer shows, says what it was.
std::string marked(const ShownToken& token, double guess) {
  const std::string text = escaped(visible(token.text));
  if (std::isnan(token.loss)) return fmt::format("<s title=\"does not count\">{}</s>", text);
  const double share = std::clamp(token.loss / guess, 0.0, 1.0);
  std::string title = fmt::format("{:.2f}", token.loss);
  if (!token.likeliest.empty()) title += fmt::format("; likeliest: {}", escaped(shown_name(token.likeliest)));
  return fmt::format("<b style=\"--share:{:.2f}\" title=\"{}\">{}</b>", share, title, text);
}

}  // namespace

std::string worst_texts(const SplitPredictions& of, std::span<const WorstExample> examples) {
  const double guess = std::log(static_cast<double>(std::max<std::int64_t>(of.vocabulary, 2)));
  const std::int64_t length = of.input.shape.empty() ? 0 : of.input.shape.front();
  std::string html = "<ol class=\"texts\">\n";
  for (const WorstExample& example : examples) {
    std::string head = fmt::format("window {}: {:.4g} nats a {}", with_commas(example.index), example.error,
                                   of.tokens_are_bytes ? "byte" : "token");
    if (example.error_by_byte) head += fmt::format(", {:.4g} a byte", *example.error_by_byte);
    if (const auto shown = std::ssize(example.tokens); shown < length) {
      head += fmt::format("; of {} tokens the {} with the largest losses side by side", with_commas(length), shown);
    }
    html += fmt::format("<li><p class=\"muted\">{}</p><pre>", escaped(head));
    for (const ShownToken& token : example.tokens) html += marked(token, guess);
    html += "</pre></li>\n";
  }
  return html + "</ol>\n";
}

std::string losses_of_text(const SplitPredictions& of) {
  const auto of_byte = [](double loss) { return fmt::format("{:.4g} bits", loss / std::numbers::ln2); };
  std::string text =
      fmt::format("The mean loss of all of them is {:.4g} nats a {}", of.loss, of.tokens_are_bytes ? "byte" : "token");
  if (of.tokens_are_bytes) text += fmt::format(", {}", of_byte(of.loss));
  if (of.loss_by_byte) text += fmt::format(", {:.4g} a byte, {}", *of.loss_by_byte, of_byte(*of.loss_by_byte));
  return text + ".";
}

}  // namespace pmaptrain::report
