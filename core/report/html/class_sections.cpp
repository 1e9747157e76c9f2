#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/html/figure.h"
#include "core/report/html/picture.h"
#include "core/report/html/sections.h"
#include "core/report/html/text.h"

namespace pmaptrain::report {
namespace {

// A larger matrix is a list of the pairs that are confused most.
constexpr std::size_t most_columns = 30;
constexpr std::size_t most_pairs = 20, most_classes = 200;
constexpr std::int64_t picture_side = 64;

struct Confusion {
  std::string split, of;  // "validation", "checkpoint step-00000100"
  std::vector<std::string> classes;
  metrics::Confusion matrix;
  bool of_pixels = false;
};

// From the predictions; without them that of the last evaluation, if the run has one.
std::optional<Confusion> confusion_of(const RunRecord& run, const RunExtras& extras) {
  if (extras.predictions) {
    const SplitPredictions& found = *extras.predictions;
    if (found.confusion.empty()) return std::nullopt;
    return Confusion{found.split, "checkpoint " + found.checkpoint, found.classes, found.confusion, !found.map.empty()};
  }
  if (!run.standing.ended || run.standing.ended->members.empty()) return std::nullopt;
  const run::Ended& ended = *run.standing.ended;
  for (const char* const split : {"validation", "test"}) {
    const auto& all = ended.members.front().confusions;
    const auto found = all.find(split);
    if (found == all.end()) continue;
    Confusion confusion{split, ended.is_ensemble ? "the last evaluation of member 0" : "the last evaluation",
                        ended.classes, found->second};
    const std::size_t size = confusion.matrix.size();
    confusion.classes.resize(std::min(size, confusion.classes.size()));
    for (std::size_t c = confusion.classes.size(); c < size; ++c) confusion.classes.push_back(std::to_string(c));
    for (const std::vector<double>& row : confusion.matrix) {
      if (row.size() != size) return std::nullopt;  // the file was edited
    }
    return confusion;
  }
  return std::nullopt;
}

// A count, or with example weights a sum of weights.
std::string amount(double weight) {
  return weight == std::floor(weight) && weight < 0x1p53 ? with_commas(static_cast<std::int64_t>(weight))
                                                         : shown_number(weight);
}

double sum_of(const std::vector<double>& row) {
  double sum = 0;
  for (const double value : row) sum += value;
  return sum;
}

std::string matrix_table(const Confusion& confusion) {
  const std::size_t classes = confusion.classes.size();
  std::string out = fmt::format(
      "<div class=\"scroll matrix-frame\" tabindex=\"0\" role=\"region\" aria-label=\"confusion matrix on {}\">"
      "<table class=\"matrix\">\n<thead><tr><td></td><th colspan=\"{}\">predicted</th></tr>\n<tr><th>true</th>",
      escaped(confusion.split), classes);
  for (const std::string& name : confusion.classes) {
    out += fmt::format("<th scope=\"col\">{}</th>", escaped(shown_name(name)));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t truth = 0; truth < classes; ++truth) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(shown_name(confusion.classes[truth])));
    const double total = sum_of(confusion.matrix[truth]);
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const double weight = confusion.matrix[truth][predicted];
      const char* const kind = weight == 0 ? " class=\"none\"" : truth == predicted ? " class=\"right\"" : "";
      out +=
          fmt::format("<td{} style=\"--share:{:.3f}\">{}</td>", kind, total > 0 ? weight / total : 0.0, amount(weight));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string pairs_table(const Confusion& confusion) {
  struct Pair {
    std::size_t truth = 0, predicted = 0;
    double weight = 0;
  };
  std::vector<Pair> pairs;
  for (std::size_t truth = 0; truth < confusion.matrix.size(); ++truth) {
    for (std::size_t predicted = 0; predicted < confusion.matrix.size(); ++predicted) {
      const double weight = confusion.matrix[truth][predicted];
      if (truth != predicted && weight > 0) pairs.push_back({truth, predicted, weight});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.weight > b.weight; });
  pairs.resize(std::min(pairs.size(), most_pairs));
  std::vector<std::vector<Cell>> rows;
  rows.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    rows.push_back({text_cell(shown_name(confusion.classes[pair.truth])),
                    text_cell(shown_name(confusion.classes[pair.predicted])), number_cell(amount(pair.weight))});
  }
  if (pairs.empty()) return paragraph("No class is confused with another one.");
  return paragraph(fmt::format("Of {} classes, the pairs that are confused most often:", confusion.classes.size())) +
         table("pairs of classes",
               {text_cell("true"), text_cell("predicted"), number_cell(confusion.of_pixels ? "pixels" : "examples")},
               rows);
}

std::string share_text(double part, double whole) { return whole > 0 ? fmt::format("{:.4f}", part / whole) : "–"; }

// Precision, recall and F1 as scikit-learn defines them. Of very many classes those with the lowest recall.
std::string per_class_table(const Confusion& confusion) {
  struct Row {
    std::size_t of_class = 0;
    double right = 0, predicted = 0, support = 0;
  };
  std::vector<Row> all;
  for (std::size_t c = 0; c < confusion.matrix.size(); ++c) {
    Row row{c, confusion.matrix[c][c], 0, sum_of(confusion.matrix[c])};
    for (const std::vector<double>& truth : confusion.matrix) row.predicted += truth[c];
    all.push_back(row);
  }
  std::string out;
  if (all.size() > most_classes) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Row& a, const Row& b) { return a.right * b.support < b.right * a.support; });
    all.resize(most_classes);
    out += note(fmt::format("The {} classes with the lowest recall.", most_classes));
  }
  std::vector<std::vector<Cell>> rows;
  rows.reserve(all.size());
  for (const Row& row : all) {
    rows.push_back({text_cell(shown_name(confusion.classes[row.of_class])),
                    number_cell(share_text(row.right, row.predicted)), number_cell(share_text(row.right, row.support)),
                    number_cell(share_text(2 * row.right, row.predicted + row.support))});
    if (confusion.of_pixels)
      rows.back().push_back(number_cell(share_text(row.right, row.predicted + row.support - row.right)));
    rows.back().push_back(number_cell(amount(row.support)));
  }
  std::vector<Cell> head{text_cell("class"), number_cell("precision"), number_cell("recall"), number_cell("F1")};
  if (confusion.of_pixels) head.push_back(number_cell("IoU"));
  head.push_back(number_cell(confusion.of_pixels ? "pixels" : "examples"));
  return out + table("precision and recall by class", head, rows);
}

std::string heading(const Page& page, std::size_t run) {
  return page.runs.size() > 1 ? fmt::format("<h3>{}</h3>\n", escaped(page.runs[run].label)) : "";
}

std::string percent(double share) { return fmt::format("{:.3g}\u00A0%", 100 * share); }

// "0.1188"; of several outputs "[0.1188, 2, ...]".
std::string numbers_text(const std::vector<double>& numbers) {
  constexpr std::size_t most = 4;
  if (numbers.size() == 1) return shown_number(numbers.front());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most, numbers.size()); ++i) texts.push_back(shown_number(numbers[i]));
  return "[" + join(texts, ", ") + (numbers.size() > most ? ", ..." : "") + "]";
}

std::string worst_picture(const SplitPredictions& of, const WorstExample& example) {
  const std::string name =
      example.place.empty() ? fmt::format("example {}", with_commas(example.index)) : example.place;
  const bool is_class = !of.classes.empty();
  const std::string truth = is_class ? shown_name(example.truth) : numbers_text(example.numbers);
  const std::string predicted = is_class ? shown_name(example.predicted) : numbers_text(example.outputs);
  const std::string alternative = fmt::format("{}: {}, predicted as {}", name, truth, predicted);
  std::string text =
      fmt::format("true <b>{}</b>{}<br>", escaped(truth), is_class ? " " + percent(example.probability) : "");
  text += fmt::format("predicted {}{}", escaped(predicted), is_class ? " " + percent(example.of_predicted) : "");
  return fmt::format("<li><img src=\"{}\" alt=\"{}\" loading=\"lazy\">{}<br><span class=\"muted\">{}</span></li>\n",
                     picture_uri(of.input, example.inputs, picture_side), escaped(alternative), text, escaped(name));
}

// A year or an identifier keeps its digits.
std::string input_text(double value) {
  return value == std::round(value) && std::abs(value) < 1e9 ? fmt::format("{:.0f}", value) : shown_number(value);
}

// The inputs of an example as cells: those of a table by column, with categories in place of their numbers, or a few
// numbers.
class InputCells {
 public:
  explicit InputCells(const SplitPredictions& of) : of_(of) {
    std::int64_t width = 0;
    for (const data::Encoding::Column& column : of.columns) {
      width += static_cast<std::int64_t>(column.width());
    }
    const std::int64_t numbers = numel(of.input.shape);
    const bool are_numbers = of.input.dtype == DType::f32 && of.input.shape.size() == 1;
    if (!are_numbers || (!of.columns.empty() && width != numbers)) return;
    if (of.columns.empty()) {
      shown_ = static_cast<std::size_t>(numbers) <= most ? static_cast<std::size_t>(numbers) : 0;
    } else {
      shown_ = std::min(most, of.columns.size());
    }
  }

  void add_heads(std::vector<Cell>& head) const {
    for (std::size_t i = 0; i < shown_; ++i) {
      head.push_back(of_.columns.empty()                 ? number_cell(fmt::format("input {}", i))
                     : of_.columns[i].categories.empty() ? number_cell(shown_name(of_.columns[i].name))
                                                         : text_cell(shown_name(of_.columns[i].name)));
    }
  }

  void add(const WorstExample& example, std::vector<Cell>& row) const {
    std::size_t at = 0;
    const auto number = [&](std::size_t i) {
      float value = 0;
      std::memcpy(&value, example.inputs.data() + i * sizeof value, sizeof value);
      return value;
    };
    for (std::size_t i = 0; i < shown_; ++i) {
      if (of_.columns.empty() || of_.columns[i].categories.empty()) {
        row.push_back(number_cell(input_text(static_cast<double>(number(at++)))));
        continue;
      }
      const std::vector<std::string>& categories = of_.columns[i].categories;
      std::string name = "–";  // a category that the training examples do not have
      for (std::size_t c = 0; c < categories.size(); ++c) {
        const bool is_it = of_.columns[i].numbered ? number(at) == static_cast<float>(c + 1) : number(at + c) != 0;
        if (is_it) name = shown_name(categories[c]);
      }
      row.push_back(text_cell(name));
      at += of_.columns[i].width();
    }
  }

  std::string left_out() const {
    if (shown_ == 0 || shown_ >= of_.columns.size()) return "";
    return note(fmt::format("Of {} columns the first {}.", of_.columns.size(), shown_));
  }

 private:
  static constexpr std::size_t most = 8;
  const SplitPredictions& of_;
  std::size_t shown_ = 0;  // columns; 0: none is shown
};

// What the first examples make and, folded, the others.
template <class Part>
std::string folded(const SplitPredictions& of, Part part) {
  constexpr std::size_t most_open = 10;
  const std::span<const WorstExample> all = of.worst, open = all.first(std::min(most_open, all.size()));
  std::string html = part(open);
  if (all.size() > most_open) {
    html += fmt::format("<details><summary>{} more</summary>\n{}</details>\n", all.size() - most_open,
                        part(all.subspan(most_open)));
  }
  return html;
}

std::string worst_pictures(const SplitPredictions& of, std::span<const WorstExample> examples) {
  std::string html = "<ul class=\"pictures\">\n";
  for (const WorstExample& example : examples) html += worst_picture(of, example);
  return html + "</ul>\n";
}

// An image, its label map, and what is predicted.
std::string worst_maps(const SplitPredictions& of, std::span<const WorstExample> examples) {
  std::string html = "<ul class=\"pictures maps\">\n";
  const auto picture = [](const std::string& uri, const std::string& alternative) {
    return fmt::format("<img src=\"{}\" alt=\"{}\" loading=\"lazy\">", uri, escaped(alternative));
  };
  for (const WorstExample& example : examples) {
    const std::string name =
        example.place.empty() ? fmt::format("example {}", with_commas(example.index)) : example.place;
    html += "<li><div>";
    if (is_image(of.input)) html += picture(picture_uri(of.input, example.inputs, picture_side), name);
    html += picture(map_uri(example.true_map, of.map, of.classes.size(), picture_side), name + ": true classes");
    html +=
        picture(map_uri(example.predicted_map, of.map, of.classes.size(), picture_side), name + ": predicted classes");
    html += fmt::format("</div>{} of the pixels are right<br><span class=\"muted\">{}</span></li>\n",
                        percent(example.right), escaped(name));
  }
  return html + "</ul>\n";
}

std::string legend_of_maps(const SplitPredictions& of) {
  constexpr std::size_t most = 30;
  std::string html = "<p>Each image beside its true and its predicted classes:";
  for (std::size_t c = 0; c < std::min(most, of.classes.size()); ++c) {
    html += fmt::format(" <span class=\"swatch\" style=\"background:{}\"></span>{}", color_of_class(c),
                        escaped(shown_name(of.classes[c])));
  }
  return html + (of.classes.size() > most ? " …" : "") + "; white pixels do not count.</p>\n";
}

std::string worst_table(const SplitPredictions& of, std::span<const WorstExample> examples) {
  const InputCells inputs(of);
  const bool is_class = !of.classes.empty();
  const bool is_number = !is_class && !of.worst.empty() && of.worst.front().numbers.size() == 1;
  const bool has_places =
      std::any_of(of.worst.begin(), of.worst.end(), [](const WorstExample& one) { return !one.place.empty(); });
  const bool has_texts =
      std::any_of(of.worst.begin(), of.worst.end(), [](const WorstExample& one) { return !one.text.empty(); });
  std::vector<std::vector<Cell>> rows;
  for (const WorstExample& example : examples) {
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back(number_cell(with_commas(example.index)));
    if (has_places) row.push_back(text_cell(example.place));
    if (is_class) {
      row.push_back(text_cell(shown_name(example.truth)));
      row.push_back(text_cell(shown_name(example.predicted)));
      row.push_back(number_cell(percent(example.probability)));
      row.push_back(number_cell(percent(example.of_predicted)));
    } else {
      row.push_back(number_cell(numbers_text(example.numbers)));
      row.push_back(number_cell(numbers_text(example.outputs)));
      row.push_back(number_cell(shown_number(is_number ? example.outputs[0] - example.numbers[0] : example.error)));
    }
    if (has_texts) row.push_back(text_cell(printable(example.text)));
    if (!example.inputs.empty()) inputs.add(example, row);
  }
  std::vector<Cell> head{number_cell("example")};
  if (has_places) head.push_back(text_cell("place"));
  if (is_class) {
    head.insert(head.end(), {text_cell("true"), text_cell("predicted"), number_cell("probability of true"),
                             number_cell("of predicted")});
  } else {
    head.insert(head.end(), {number_cell("true"), number_cell("predicted"),
                             number_cell(is_number ? "error" : "mean squared error")});
  }
  if (has_texts) head.push_back(text_cell("text"));
  if (!of.worst.empty() && !of.worst.front().inputs.empty()) inputs.add_heads(head);
  return table("examples that are predicted worst", head, rows);
}

// What is predicted against the targets, a chart for each output.
std::string output_charts(const SplitPredictions& of) {
  std::string all;
  for (std::size_t i = 0; i < of.outputs.size(); ++i) {
    const OutputPairs& pairs = of.outputs[i];
    std::vector<double> both;
    for (std::size_t p = 0; p < pairs.truth.size(); ++p) {
      if (std::isfinite(pairs.predicted[p])) both.insert(both.end(), {pairs.truth[p], pairs.predicted[p]});
    }
    if (both.empty()) continue;
    const Scale x = Scale::of_numbers(both, x_from, x_to), y = Scale::of_numbers(both, y_from, y_to);
    std::string marks = axes(x, y, "true") + segment(x_from, y_from, x_to, y_to, "diagonal");
    for (std::size_t p = 0; p < both.size(); p += 2) marks += dot(x.at(both[p]), y.at(both[p + 1]), "", "small");
    const std::string name = !pairs.name.empty()      ? shown_name(pairs.name)
                             : of.outputs.size() == 1 ? std::string("target")
                                                      : fmt::format("output {}", i);
    all += chart(name + ": predicted against true", fmt::format("predicted by true {}", name), marks);
  }
  return all.empty() ? "" : charts(all);
}

}  // namespace

std::string classes_section(const Page& page) {
  std::string html;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const std::optional<Confusion> confusion = confusion_of(page.runs[i], page.extras[i]);
    if (!confusion) continue;
    html += heading(page, i) + paragraph(fmt::format("On {}, {}.", confusion->split, confusion->of));
    // Where the page is too narrow for the matrix, the pairs take its place.
    if (confusion->classes.size() <= most_columns) html += matrix_table(*confusion);
    html += "<div class=\"pairs\">\n" + pairs_table(*confusion) + "</div>\n";
    html += per_class_table(*confusion);
  }
  return html.empty() ? "" : section("classes", "Classes", html);
}

std::string worst_section(const Page& page) {
  std::string html;
  for (std::size_t i = 0; i < page.runs.size(); ++i) {
    const RunExtras& extras = page.extras[i];
    if (!extras.predictions_problem.empty()) {
      html += heading(page, i) + note("There are no predictions: " + extras.predictions_problem);
    }
    if (!extras.predictions || extras.predictions->worst.empty()) continue;
    const SplitPredictions& found = *extras.predictions;
    html += heading(page, i);
    const bool is_language = found.vocabulary > 0;
    html += paragraph(fmt::format("The {} of {} {}, of {}, checkpoint {}.{}", is_language ? "windows" : "examples",
                                  found.split,
                                  is_language             ? "whose tokens have the largest mean loss"
                                  : found.classes.empty() ? "with the largest errors"
                                  : found.map.empty()     ? "whose class has the lowest probability"
                                                          : "whose pixels have the largest mean loss",
                                  with_commas(found.examples), found.checkpoint,
                                  is_language ? " A token is the redder, the larger its loss, up to that of a guess "
                                                "among all tokens; the pointer shows it, in nats, and which token "
                                                "was the likeliest."
                                              : ""));
    for (const std::string& one : found.notes) html += note(one);
    if (is_language) {
      html += paragraph(losses_of_text(found));
      html += folded(found, [&](std::span<const WorstExample> examples) { return worst_texts(found, examples); });
      continue;
    }
    html += output_charts(found);
    if (!found.map.empty()) {
      html += legend_of_maps(found);
      html += folded(found, [&](std::span<const WorstExample> examples) { return worst_maps(found, examples); });
      continue;
    }
    const bool are_images = is_image(found.input);
    html += folded(found, [&](std::span<const WorstExample> examples) {
      return are_images ? worst_pictures(found, examples) : worst_table(found, examples);
    });
    if (!are_images) html += InputCells(found).left_out();
  }
  return html.empty() ? "" : section("worst", "Worst examples", html);
}

}  // namespace pmaptrain::report
