// Tables in other encodings than UTF-8.
#include "core/data/text_encoding.h"

#include "core/data/tables/csv.h"
#include "tests/catch.h"
#include "tests/data/tables.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using namespace std::string_literals;
using data::TextEncoding;

namespace {

std::string utf16(std::string_view ascii, bool is_big, bool has_mark) {
  std::string text = !has_mark ? "" : is_big ? "\xfe\xff" : "\xff\xfe";
  for (const char c : ascii) text += is_big ? "\0"s + c : c + "\0"s;
  return text;
}

struct Encoded : Tables {
  Encoded(const std::string& text, TextEncoding encoding) : Tables(text) {
    csv()->categorical = {{"c"}};
    csv()->encoding = encoding;
  }
};

}  // namespace

TEST_CASE("tables are read in each encoding, and names become UTF-8", "[data]") {
  const std::string latin = "c,y\nM\xe1laga,\xe9t\xe9\nOslo,hiver\n",
                    utf8 = "c,y\nM\u00e1laga,\u00e9t\u00e9\nOslo,hiver\n";
  const std::string big =
      "\xfe\xff\0c\0,\0y\0\n\0M\0\xe1\0l\0a\0g\0a\0,\0\xe9\0t\0\xe9\0\n\0O\0s\0l\0o\0,\0h\0i\0v\0e\0r\0\n"s;
  for (const auto& [text, encoding] :
       {std::pair(latin, TextEncoding::latin1), std::pair(latin, TextEncoding::windows1252),
        std::pair(utf8, TextEncoding::utf8), std::pair(big, TextEncoding::utf16),
        std::pair(gzip(latin), TextEncoding::latin1)}) {
    const data::Source source = Encoded(text, encoding).open();
    CHECK(source.encoding.columns.front().categories == std::vector<std::string>{"M\u00e1laga", "Oslo"});
    CHECK(source.encoding.classes == std::vector<std::string>{"hiver", "\u00e9t\u00e9"});
  }
  const data::Source euros = Encoded("c,y\n\x80,0\n\x9f,1\n", TextEncoding::windows1252).open();
  CHECK(euros.encoding.columns.front().categories == std::vector<std::string>{"\u0178", "\u20ac"});
  for (const bool is_big : {false, true}) {
    for (const bool has_mark : {false, true}) {
      const Encoded table(utf16("c,y\na,0\nb,1\n", is_big, has_mark), TextEncoding::utf16);
      CHECK(table.open().train->size() == 2);
    }
  }
  // U+1F600, of a pair of surrogates.
  const data::Source pair =
      Encoded("\xff\xfe"s + utf16("c,y\n", false, false) + "\x3d\xd8\x00\xde,\0000\0\n\0"s, TextEncoding::utf16).open();
  CHECK(pair.encoding.columns.front().categories == std::vector<std::string>{"\U0001f600"});
}

TEST_CASE("bytes that are no characters of the encoding are refused with their line", "[data]") {
  CHECK(Encoded("c,y\na,0\n\x81,1\n", TextEncoding::windows1252).refusal() ==
        "'train.csv', line 3: the byte 0x81 is no character of windows-1252 | encoding: latin-1 takes every byte as a "
        "character");
  CHECK(Encoded("c,y\na,0\n", TextEncoding::utf16).refusal() ==
        "'train.csv' is no text in UTF-16: it has no byte order mark, and ASCII characters have no zero byte | "
        "encoding: utf-8 is the default");
  CHECK(Encoded("\xef\xbb\xbf"
                "c,y\na,0\n",
                TextEncoding::latin1)
            .refusal() ==
        "'train.csv' begins with the byte order mark of UTF-8, and encoding is another one | remove encoding: utf-8 is "
        "the default");
  CHECK(
      Encoded(utf16("c,y\na,0\n", false, true), TextEncoding::latin1).refusal() ==
      "'train.csv' is text in UTF-16, and encoding is another one | save it as UTF-8, or for CSV set encoding: utf-16");
  CHECK(Encoded(utf16("c,y\na,0\n", false, true) + "x", TextEncoding::utf16).refusal() ==
        "'train.csv', line 3: half a character of UTF-16 at the end of the file | the file is damaged: copy it again");
  CHECK(Encoded(utf16("c,y\n", false, true) + "\x3d\xd8,\0000\0"s, TextEncoding::utf16).refusal() ==
        "'train.csv', line 2: half a pair of surrogates in UTF-16 | the file is damaged: copy it again");
}

TEST_CASE("every row with a text that is not UTF-8 is unreadable, also where the text comes again", "[data]") {
  std::string text = "c,y\n";
  for (int i = 0; i < 50; ++i) text += i % 2 == 0 ? "M\xe1laga,0\n" : "K\xf6ln,1\n";
  Tables tables(text);
  tables.csv()->categorical = {{"c"}};
  tables.csv()->on_error = data::OnError::skip;
  CHECK(tables.refusal() == "no row of 'train.csv' can be read: 'train.csv', line 2, column 'c': it is not UTF-8 | ");
  std::string some = "c,y\n";
  for (int i = 0; i < 300; ++i) some += i % 60 == 7 ? "M\xe1laga,0\n" : i % 2 == 0 ? "Oslo,0\n" : "Bonn,1\n";
  Tables few(some);
  few.csv()->categorical = {{"c"}};
  few.csv()->on_error = data::OnError::skip;
  CHECK(
      few.refusal().starts_with("5 of the 300 rows of the train split cannot be read, and on_error: skip leaves out "
                                "at most 3; the first: 'train.csv', line 9, column 'c': it is not UTF-8"));
}

TEST_CASE("an encoding is guessed by the characters beyond ASCII", "[data]") {
  const auto guess = [](std::string_view text) { return data::guess_encoding(std::as_bytes(std::span(text))); };
  CHECK(guess("a,b\n1,2\n") == TextEncoding::utf8);
  CHECK(guess("M\u00e1laga, K\u00f6ln") == TextEncoding::utf8);
  CHECK(guess("M\u00e1laga, K\u00f6ln, M\xe1laga") == TextEncoding::utf8);
  CHECK(guess("M\xe1laga") == TextEncoding::latin1);
  CHECK(guess("M\xe1laga for 3 \x80") == TextEncoding::windows1252);
  CHECK(guess(utf16("a,b\n", false, true)) == TextEncoding::utf16);
  CHECK(guess(utf16("a,b\n", true, false)) == TextEncoding::utf16);
}
