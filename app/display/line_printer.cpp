#include "app/display/line_printer.h"

#include <utility>

namespace pmaptrain::display {
namespace {

constexpr std::string_view to_start = "\r";
constexpr std::string_view erase_line = "\r\x1b[K";
constexpr std::string_view erase_rest = "\x1b[K";

}  // namespace

void LinePrinter::set_status(std::string text) {
  if (!moving_ || text == status_) return;
  // Overwritten in place and erased behind, so that nothing flickers.
  output_.write(std::string(to_start) + text + std::string(erase_rest));
  status_ = std::move(text);
}

void LinePrinter::print(std::string_view text) { print(text, status_); }

void LinePrinter::print(std::string_view text, std::string status) {
  std::string all(status_.empty() ? std::string_view() : erase_line);
  all += text;
  if (moving_) {
    all += status;
    status_ = std::move(status);
  }
  output_.write(all);
}

void LinePrinter::clear_status() {
  if (!status_.empty()) output_.write(erase_line);
  status_.clear();
}

void LinePrinter::keep_status() {
  if (!status_.empty()) output_.write("\n");
  status_.clear();
}

}  // namespace pmaptrain::display
