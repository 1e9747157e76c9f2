// Standard output where it is a terminal: no line is broken within a word.
#pragma once

#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <utility>

namespace pmaptrain::display {

// Passes whole lines on to another stream, those that are wider than the terminal in several (wrapped). What a command
// has laid out for this width already, such as a table, passes as it is.
class WrappedStream : public std::ostream {
 public:
  // `columns` is asked for each line; 0 or less: there is no terminal, and every byte passes as it is.
  WrappedStream(std::ostream& to, std::function<int()> columns);
  ~WrappedStream() override;

  // What follows passes as it is.
  void end_wrapping() { buffer_.end_wrapping(); }

 private:
  class Buffer : public std::streambuf {
   public:
    Buffer(std::ostream& to, std::function<int()> columns) : to_(to), columns_(std::move(columns)) {}

    void end_wrapping();

   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    void pass_lines();

    std::ostream& to_;
    std::function<int()> columns_;
    std::string waiting_;    // the line that has no end yet
    bool is_later_ = false;  // it is not the first
  };
  Buffer buffer_;
};

// A manipulator: what follows is for other programs, such as YAML or CSV, and not a byte of it may change.
std::ostream& as_document(std::ostream& out);

}  // namespace pmaptrain::display
