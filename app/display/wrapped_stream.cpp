#include "app/display/wrapped_stream.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "core/base/wrap.h"

namespace pmaptrain::display {

void WrappedStream::Buffer::pass_lines() {
  const std::size_t end = waiting_.rfind('\n');
  if (end == std::string::npos) return;
  // A command may stand alone in any line but the first (wrapped).
  const std::string lines = (is_later_ ? "\n" : "") + waiting_.substr(0, end + 1);
  const std::string shown = wrapped(lines, columns_());
  to_ << std::string_view(shown).substr(is_later_ ? 1 : 0);
  waiting_.erase(0, end + 1);
  is_later_ = true;
}

WrappedStream::Buffer::int_type WrappedStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize WrappedStream::Buffer::xsputn(const char* text, std::streamsize size) {
  waiting_.append(text, static_cast<std::size_t>(size));
  pass_lines();
  return to_ ? size : 0;
}

int WrappedStream::Buffer::sync() {
  pass_lines();
  to_ << wrapped(std::exchange(waiting_, {}), columns_()) << std::flush;
  return to_ ? 0 : -1;
}

void WrappedStream::Buffer::end_wrapping() {
  sync();
  columns_ = [] { return 0; };
}

WrappedStream::WrappedStream(std::ostream& to, std::function<int()> columns)
    : std::ostream(nullptr), buffer_(to, std::move(columns)) {
  rdbuf(&buffer_);
}

WrappedStream::~WrappedStream() { flush(); }

std::ostream& as_document(std::ostream& out) {
  if (auto* const wrapped_stream = dynamic_cast<WrappedStream*>(&out)) wrapped_stream->end_wrapping();
  return out;
}

}  // namespace pmaptrain::display
