#include "core/report/html/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/report/html/text.h"

namespace pmaptrain::report {
namespace {

// 1, 2 or 5 times a power of ten, so that at most `most` steps make up `range`.
double step_for(double range, std::size_t most) {
  const double least = range / static_cast<double>(most), power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

// As page.js writes the ticks of curves: millions in short, smaller numbers with thousands separated.
std::string tick_text(double value) {
  const double magnitude = std::abs(value);
  constexpr std::pair<double, const char*> units[] = {{1e9, "B"}, {1e6, "M"}};
  for (const auto& [unit, letter] : units) {
    if (magnitude >= unit && magnitude < 1e12) return fmt::format("{:.4g}{}", value / unit, letter);
  }
  return shown_number(value);
}

}  // namespace

Scale Scale::of_numbers(const std::vector<double>& values, double from, double to, bool asked) {
  constexpr double much = 100;
  Scale scale(from, to);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  scale.is_log_ = *low > 0 && (asked || *high >= much * *low);
  scale.low_ = scale.is_log_ ? std::log10(*low) : *low;
  scale.high_ = scale.is_log_ ? std::log10(*high) : *high;
  if (scale.high_ > scale.low_) return scale;
  const double margin = std::max(std::abs(scale.low_) / 2, 0.5);
  scale.low_ -= margin;
  scale.high_ += margin;
  scale.tick_at({*low});
  return scale;
}

Scale Scale::of_texts(const std::vector<std::string>& values, double from, double to, bool asked) {
  std::vector<double> numbers;
  for (const std::string& value : values) {
    if (const auto number = number_in(value)) numbers.push_back(*number);
  }
  if (!values.empty() && numbers.size() == values.size()) {
    constexpr std::size_t few = 6;
    Scale scale = of_numbers(numbers, from, to, asked);
    if (std::set<double>(numbers.begin(), numbers.end()).size() <= few) scale.tick_at(std::move(numbers));
    return scale;
  }
  Scale scale(from, to);
  for (const std::string& value : values) {
    if (std::find(scale.texts_.begin(), scale.texts_.end(), value) == scale.texts_.end()) scale.texts_.push_back(value);
  }
  return scale;
}

void Scale::round_ends(std::size_t most) {
  constexpr double rounding = 1e-9;
  if (!texts_.empty() || !few_.empty()) return;
  if (is_log_) {
    // To 1, 2 or 5 times a power of ten.
    const auto rounded = [](double place, bool up) {
      const double power = std::floor(place + rounding);
      double best = power + (up ? 1 : 0);
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double one = power + std::log10(factor);
        if (up ? one >= place - rounding && one < best : one <= place + rounding && one > best) best = one;
      }
      return best;
    };
    low_ = rounded(low_, false);
    high_ = rounded(high_, true);
    // The ends have ticks where the powers of ten between them are far away.
    constexpr double far = 0.12;  // of the range
    std::vector<double> values = round_values(most);
    const double least = far * (high_ - low_);
    const bool has_low = std::log10(values.front()) - low_ <= least;
    const bool has_high = high_ - std::log10(values.back()) <= least;
    if (!has_low) values.push_back(std::pow(10, low_));
    if (!has_high) values.push_back(std::pow(10, high_));
    tick_at(std::move(values));
    return;
  }
  const double step = step_for(high_ - low_, most);
  low_ = std::floor(low_ / step + rounding) * step;
  high_ = std::ceil(high_ / step - rounding) * step;
}

void Scale::tick_at(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  few_ = std::move(values);
}

double Scale::at(double value) const {
  return from_ + (to_ - from_) * ((is_log_ ? std::log10(value) : value) - low_) / (high_ - low_);
}

double Scale::at(const std::string& text) const {
  if (texts_.empty()) return at(number_in(text).value_or(low_));
  const auto found = std::find(texts_.begin(), texts_.end(), text);
  return from_ +
         (to_ - from_) * (static_cast<double>(found - texts_.begin()) + 0.5) / static_cast<double>(texts_.size());
}

// About `most` values between the ends that are short to write.
std::vector<double> Scale::round_values(std::size_t most) const {
  constexpr double rounding = 1e-9;
  std::vector<double> values;
  if (is_log_) {
    // Powers of ten, or of these factors of them the most that are not too many.
    const double powers = std::max(1.0, std::ceil((high_ - low_) / static_cast<double>(most)));
    const std::vector<std::vector<double>> finer{{1}, {1, 3}, {1, 2, 5}};
    for (const std::vector<double>& factors : finer) {
      std::vector<double> found;
      for (double power = std::floor(low_ / powers) * powers; power <= high_; power += powers) {
        for (const double factor : factors) {
          const double place = power + std::log10(factor);
          if (place >= low_ - rounding && place <= high_ + rounding) found.push_back(std::pow(10, power) * factor);
        }
      }
      if (found.size() > most || (powers > 1 && factors.size() > 1)) break;
      values = std::move(found);
    }
    if (values.size() > 1) return values;
    values.clear();
  }
  const double low = is_log_ ? std::pow(10, low_) : low_, high = is_log_ ? std::pow(10, high_) : high_;
  const double step = step_for(high - low, most);
  for (double value = std::ceil(low / step - rounding) * step; value <= high + rounding * step; value += step) {
    values.push_back(std::abs(value) < rounding * step ? 0.0 : value);
  }
  return values;
}

std::vector<Scale::Tick> Scale::ticks(std::size_t most) const {
  std::vector<Tick> ticks;
  for (const std::string& text : texts_) ticks.push_back({at(text), text});
  for (const double value : few_) ticks.push_back({at(value), tick_text(value)});
  if (!ticks.empty()) return ticks;
  for (const double value : round_values(most)) ticks.push_back({at(value), tick_text(value)});
  return ticks;
}

}  // namespace pmaptrain::report
