// What a tokenizer is made of, as plain values: the parts of tokenizer.json that this program reads.
// Format and names: the Python package `tokenizers`, whose ids are matched (core/tokenizers/README.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pmaptrain::tokenizers {

using Id = std::uint32_t;

// A token that is found in the text before all else, such as <|endoftext|>.
struct AddedToken {
  Id id = 0;
  std::string content;
  bool single_word = false;  // not beside characters of words
  bool lstrip = false;       // with the white space before it
  bool rstrip = false;       // with the white space after it
  bool normalized = false;   // found in the normalised text, else in the text as it is
  bool special = false;      // left out when ids are decoded
  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

// ---- changes of the text ----

struct Nfc {
  friend bool operator==(const Nfc&, const Nfc&) = default;
};
struct Lowercase {
  friend bool operator==(const Lowercase&, const Lowercase&) = default;
};
struct Prepend {
  std::string text;
  friend bool operator==(const Prepend&, const Prepend&) = default;
};
struct Replace {
  std::string pattern, content;
  friend bool operator==(const Replace&, const Replace&) = default;
};
using Normalizer = std::variant<Nfc, Lowercase, Prepend, Replace>;

// ---- divisions of the text into pieces, which no token crosses ----

enum class Expression { gpt2, llama3, words };
// Pieces are the matches; of `words` what is between them, white space, is left out.
struct Split {
  Expression expression = Expression::gpt2;
  friend bool operator==(const Split&, const Split&) = default;
};
// Bytes in place of characters. Always the last.
struct ByteLevel {
  bool add_prefix_space = false;
  bool use_regex = true;  // divides as Expression::gpt2 before
  friend bool operator==(const ByteLevel&, const ByteLevel&) = default;
};
// Each space becomes `replacement`, before which the text is divided.
struct Metaspace {
  enum class Scheme { always, first, never };
  std::string replacement = "\xe2\x96\x81";  // U+2581
  Scheme prepend = Scheme::always;           // puts one before a piece that does not begin with one
  bool split = true;
  friend bool operator==(const Metaspace&, const Metaspace&) = default;
};
using PreTokenizer = std::variant<Split, ByteLevel, Metaspace>;

// ---- models ----

struct Model {
  bool is_bpe = true;               // else one token for each piece, of type WordLevel
  std::vector<std::string> tokens;  // by id; empty where no token has the id
  std::vector<std::pair<Id, Id>> merges = {};
  std::optional<std::string> unknown = {};
  bool fuse_unk = false;       // unknown characters side by side are one token
  bool byte_fallback = false;  // an unknown character is the tokens <0x00> to <0xFF> of its bytes
  bool ignore_merges = false;  // a piece that is a token is that token
};

// ---- ids to text ----

struct ByteFallback {};
struct Fuse {};
struct Strip {
  std::string content = " ";
  std::uint64_t start = 0, stop = 0;
};
using Decoder = std::variant<ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip>;

struct Definition {
  std::vector<AddedToken> added;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  Model model;
  std::vector<Id> before, after;  // special tokens around each text
  std::vector<Decoder> decoders;

  bool is_byte_level() const {
    return !pre_tokenizers.empty() && std::holds_alternative<ByteLevel>(pre_tokenizers.back());
  }
};

}  // namespace pmaptrain::tokenizers
