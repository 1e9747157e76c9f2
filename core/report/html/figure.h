// Charts in SVG. Each has the same height and is as wide as its place: marks are placed in percent of the width and in
// pixels of the height, so that text has one size on every screen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/report/html/scale.h"

namespace pmaptrain::report {

inline constexpr double plot_height = 200;

// A scale along the width, with a margin at both ends; one along the height, upwards.
inline constexpr double x_from = 3, x_to = 97, y_from = plot_height - 8, y_to = 8;

// `title` is shown by the pointer; it is escaped. May be empty.
std::string dot(double x, double y, std::string_view title, std::string_view classes = "");
std::string segment(double x1, double y1, double x2, double y2, std::string_view classes);
// A text that is clipped to `most` columns.
std::string text_at(double x, double y, std::string_view anchor, std::string_view text, int most = 26);
// A text as one line, or as two between words where one has more than `most` columns.
std::vector<std::string> label_lines(std::string_view text, int most);
// Writes these lines and clips each to its first characters. `y` is the position of the first line. The lines cover
// what is drawn before them.
std::string label_at(double x, double y, std::string_view anchor, std::string_view text, int most);
inline constexpr double label_height = 13;  // of a line
// Marks of one thing, such as a trial.
std::string group(std::string_view title, std::string_view marks, double opacity = 1);

// Lines, ticks, and the name of the axis along the width.
std::string axes(const Scale& x, const Scale& y, std::string_view x_name);

// A chart with a caption. `label` is for screen readers. A `wide` one takes a row of its own.
std::string chart(std::string_view caption, std::string_view label, std::string_view marks, bool wide = false);

// Charts beside each other.
std::string charts(std::string_view all);

}  // namespace pmaptrain::report
