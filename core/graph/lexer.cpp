#include "core/graph/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace pmaptrain {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool continues_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '-'; }

// The end of the number that begins at `i`: an optional sign, digits, a fraction, an exponent.
std::size_t end_of_number(std::string_view line, std::size_t i) {
  if (line[i] == '-') ++i;
  while (i < line.size()) {
    const bool exponent_sign = (line[i] == '-' || line[i] == '+') && (line[i - 1] == 'e' || line[i - 1] == 'E');
    if (!is_digit(line[i]) && line[i] != '.' && line[i] != 'e' && line[i] != 'E' && !exponent_sign) break;
    ++i;
  }
  return i;
}

// The end of .nan, .inf or -.inf at `i`; `i` where none of them begins there.
std::size_t end_of_special_number(std::string_view line, std::size_t i) {
  for (const std::string_view word : {".nan", ".inf", "-.inf"}) {
    if (line.substr(i).starts_with(word)) return i + word.size();
  }
  return i;
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string file) : file_(std::move(file)) {
  if (!is_utf8(text)) {
    throw Error(ExitStatus::usage,
                Diagnostic{"program", {file_, 0, 0, 1, ""}, "the program is not UTF-8 text", {}, {}});
  }
  int number = 0;
  while (!text.empty() || number == 0) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines_.emplace_back(std::string(line));
    std::size_t i = 0, counted = 0;
    int column = 1;  // of the character at `counted`
    const auto column_at = [&](std::size_t at) {
      column += count_characters(line.substr(counted, at - counted));
      counted = at;
      return column;
    };
    while (i < line.size() && line[i] != '#') {
      if (line[i] == ' ' || line[i] == '\t') {
        ++i;
        continue;
      }
      Token token{Token::Kind::symbol, "", number, column_at(i)};
      std::size_t stop = i + 1;
      if (is_letter(line[i])) {
        token.kind = Token::Kind::word;
        while (stop < line.size() && continues_word(line[stop])) ++stop;
      } else if (const std::size_t end_of_word = end_of_special_number(line, i); end_of_word != i) {
        token.kind = Token::Kind::number;
        stop = end_of_word;
      } else if (is_digit(line[i]) || (line[i] == '-' && stop < line.size() && is_digit(line[stop]))) {
        token.kind = Token::Kind::number;
        stop = end_of_number(line, i);
      } else {
        while (stop < line.size() && (static_cast<unsigned char>(line[stop]) & 0xC0) == 0x80) ++stop;
      }
      token.text = std::string(line.substr(i, stop - i));
      tokens_.push_back(std::move(token));
      i = stop;
    }
    tokens_.push_back({Token::Kind::end_of_line, "", number, column_at(i)});
  }
}

const Token& Lexer::peek(std::size_t ahead) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }

Token Lexer::next() {
  Token token = peek();
  if (position_ < tokens_.size()) ++position_;
  return token;
}

bool Lexer::at_end() const { return position_ + 1 >= tokens_.size(); }

bool Lexer::accept(std::string_view symbol) {
  if (peek().text != symbol || peek().kind != Token::Kind::symbol) return false;
  next();
  return true;
}

void Lexer::expect(std::string_view symbol) {
  if (!accept(symbol)) fail(peek(), "expected '" + std::string(symbol) + "'");
}

void Lexer::expect_end_of_line() {
  if (peek().kind != Token::Kind::end_of_line) fail(peek(), "expected the end of the line");
  if (!at_end()) next();
}

Token Lexer::expect_word(std::string_view what) {
  if (peek().kind != Token::Kind::word) fail(peek(), "expected " + std::string(what));
  return next();
}

Token Lexer::expect_name() {
  if (peek().kind != Token::Kind::word && peek().kind != Token::Kind::number) fail(peek(), "expected a value's name");
  return next();
}

std::int64_t Lexer::expect_integer() {
  const Token token = peek();
  std::int64_t value = 0;
  const char* const end = token.text.data() + token.text.size();
  const auto [stop, error] = std::from_chars(token.text.data(), end, value);
  if (token.kind != Token::Kind::number || error != std::errc{} || stop != end) fail(token, "expected an integer");
  next();
  return value;
}

double Lexer::expect_number() {
  const Token token = peek();
  double value = 0;
  if (token.text.ends_with(".inf") || token.text == ".nan") {
    next();
    if (token.text == ".nan") return std::numeric_limits<double>::quiet_NaN();
    return std::copysign(std::numeric_limits<double>::infinity(), token.text.front() == '-' ? -1.0 : 1.0);
  }
  const char* const end = token.text.data() + token.text.size();
  const auto [stop, error] = std::from_chars(token.text.data(), end, value);
  if (token.kind != Token::Kind::number || error != std::errc{} || stop != end) fail(token, "expected a number");
  expect_exact(token, value);
  next();
  return value;
}

// An integer in the text must be represented exactly.
void Lexer::expect_exact(const Token& token, double value) const {
  if (token.text.find_first_not_of("-0123456789") != std::string::npos) return;
  const std::string nearest = fmt::format("{:.0f}", value);
  const auto digits = [](std::string_view text) {
    return text.substr(std::min(text.find_first_of("123456789"), text.size()));
  };
  if (digits(nearest) == digits(token.text)) return;
  fail(token, token.text + " would become " + nearest + ": a number in an attribute is an f64",
       "give one that f64 holds, such as any integer up to 2^53");
}

Place Lexer::place(const Token& token) const {
  const SourceLine& line = lines_[static_cast<std::size_t>(token.line - 1)];
  return {file_, token.line, token.column, std::max(1, count_characters(token.text)), line};
}

void Lexer::fail(const Token& token, std::string message, std::string help) const {
  if (token.kind != Token::Kind::end_of_line) {
    if (message.starts_with("expected")) message += ", found '" + token.text + "'";
  } else if (message.starts_with("expected")) {
    message += " before the end of the line";
  }
  throw Error(ExitStatus::usage, Diagnostic{"program", place(token), std::move(message), std::move(help), {}});
}

}  // namespace pmaptrain
