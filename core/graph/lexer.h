// Tokens of program text, with their places.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain {

struct Token {
  enum class Kind { word, number, symbol, end_of_line };
  Kind kind = Kind::end_of_line;
  std::string text;  // empty at the end of a line
  int line = 1, column = 1;
};

// Splits the whole text at once: words ([A-Za-z_][A-Za-z0-9_./-]*), numbers, single symbols and line ends; '#' begins
// a comment. Every method that expects something throws Error (usage) at the token that is there instead.
class Lexer {
 public:
  Lexer(std::string_view text, std::string file);

  const Token& peek(std::size_t ahead = 0) const;
  Token next();
  bool at_end() const;
  bool accept(std::string_view symbol);

  void expect(std::string_view symbol);
  void expect_end_of_line();
  Token expect_word(std::string_view what);
  Token expect_name();  // a word or a number: what may follow '%'
  std::int64_t expect_integer();
  double expect_number();  // an integer is one that a double holds

  std::size_t position() const { return position_; }
  void seek(std::size_t position) { position_ = position; }

  Place place(const Token& token) const;
  [[noreturn]] void fail(const Token& token, std::string message, std::string help = {}) const;

 private:
  void expect_exact(const Token& token, double value) const;

  std::string file_;
  std::vector<SourceLine> lines_;
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
};

}  // namespace pmaptrain
