// Axes of figures in SVG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmaptrain::report {

// Places values along an axis, from `from` to `to` in units of the figure.
class Scale {
 public:
  // Numbers, at least one; of a single one the only tick is its own. If all are positive, the scale is logarithmic
  // where that is `asked` for, or where the largest is 100 times the smallest or more.
  static Scale of_numbers(const std::vector<double>& values, double from, double to, bool asked = false);
  // Texts: numbers if all are numbers, else one place for each different text, in the order of their appearance.
  static Scale of_texts(const std::vector<std::string>& values, double from, double to, bool asked = false);

  double at(double value) const;
  double at(const std::string& text) const;
  bool has_names() const { return !texts_.empty(); }  // texts that are no numbers

  // Moves the ends of a scale of numbers outwards to ticks, so that the largest and the smallest value lie between two.
  void round_ends(std::size_t most = 5);

  // Ticks are at these values, and nowhere else.
  void tick_at(std::vector<double> values);

  struct Tick {
    double place = 0;
    std::string text;
  };
  // Of texts, and of a few different numbers, all; else about `most`.
  std::vector<Tick> ticks(std::size_t most = 5) const;

 private:
  Scale(double from, double to) : from_(from), to_(to) {}
  std::vector<double> round_values(std::size_t most) const;
  double from_, to_, low_ = 0, high_ = 1;
  bool is_log_ = false;
  std::vector<double> few_;         // the values, if there are few
  std::vector<std::string> texts_;  // in place of numbers
};

}  // namespace pmaptrain::report
