#include "core/hints/hints.h"

#include <algorithm>
#include <vector>

#include "core/base/text.h"
#include "core/hints/rows.h"

namespace pmaptrain {
namespace {

template <class Is>
bool any_word(std::string_view words, Is is) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (is(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

// The places that are not of a config.
constexpr std::string_view elsewhere[] = {"duration", "option", "command", "collective", "op", "format"};

bool is_for(const HintRow& row, std::string_view where) {
  return any_word(row.where, [&](std::string_view one) { return one == where; });
}
bool has_word(const HintRow& row, const std::string& letters) {
  return any_word(row.words, [&](std::string_view one) { return letters_of(one) == letters; });
}

// {} is the value, {{}} is {}.
std::string with_value(std::string_view text, std::string_view value) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("{{}}")) {
      out += "{}";
      text.remove_prefix(4);
    } else if (text.starts_with("{}")) {
      out += value;
      text.remove_prefix(2);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

const HintRow* find_row(std::string_view where, std::string_view word) {
  const std::string letters = letters_of(word);
  if (letters.empty()) return nullptr;
  for (const HintRow& row : hint_rows()) {
    if (is_for(row, where) && has_word(row, letters)) return &row;
  }
  return nullptr;
}

Hint make_hint(const HintRow& row, std::string_view meant, std::string_view value) {
  const std::string help = with_value(row.help, value.empty() ? "N" : value);
  if (meant.empty()) return {help, meant};
  if (help.starts_with(meant)) return {"write " + help, meant};
  return {"did you mean '" + std::string(meant) + "'?" + (help.empty() ? "" : " " + help), meant};
}

}  // namespace

std::span<const HintRow> hint_rows() {
  static const std::vector<HintRow> all = [] {
    std::vector<HintRow> rows;
    for (const std::span<const HintRow> table : {value_hints(), key_hints(), command_hints()}) {
      rows.insert(rows.end(), table.begin(), table.end());
    }
    return rows;
  }();
  return all;
}

std::optional<Hint> hint_for(std::string_view where, std::string_view word, std::string_view value) {
  const HintRow* row = find_row(where, word);
  if (row == nullptr) return std::nullopt;
  return make_hint(*row, row->meant, value);
}

std::optional<Hint> hint_in_config(std::string_view word) {
  const std::string letters = letters_of(word);
  for (const HintRow& row : hint_rows()) {
    const bool in_config = std::none_of(std::begin(elsewhere), std::end(elsewhere),
                                        [&](std::string_view place) { return is_for(row, place); });
    if (!in_config || !has_word(row, letters)) continue;
    Hint hint = make_hint(row, row.meant, "");
    hint.path = row.where == "key" ? row.meant : row.where.substr(0, row.where.find(' '));
    return hint;
  }
  return std::nullopt;
}

std::optional<Hint> hint_for_key(std::string_view path, std::string_view word, std::string_view value) {
  const HintRow* row = find_row(path.substr(path.rfind('.') + 1), word);
  if (row == nullptr) row = find_row("key", word);
  if (row == nullptr) return std::nullopt;
  std::string_view meant = row->meant;
  const std::string prefix = path.empty() ? "" : std::string(path) + ".";
  if (meant.starts_with(prefix) && meant.find('.', prefix.size()) == std::string_view::npos) {
    meant.remove_prefix(prefix.size());
  }
  Hint hint = make_hint(*row, meant, value);
  hint.path = row->where == "key" || path.empty() ? row->meant : std::string(path) + "." + std::string(row->meant);
  return hint;
}

}  // namespace pmaptrain
