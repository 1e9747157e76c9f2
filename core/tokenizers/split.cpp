#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/tokenizers/split.h"

#include <pcre2.h>
#include <utf8proc.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/tokenizers/characters.h"

namespace pmaptrain::tokenizers {
namespace {

// The classes of Unicode that \s and \w are in tokenizer.json; in PCRE2 they have other characters.
#define PMAPTRAIN_SPACES \
  "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define PMAPTRAIN_WORDS                                                                                              \
  "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}" \
  "\\x{1f170}-\\x{1f189}"
#define PMAPTRAIN_ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"

struct Known {
  const char* text;     // in tokenizer.json
  const char* pattern;  // for PCRE2
};
constexpr std::array<Known, 3> expressions = {{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     PMAPTRAIN_ENDINGS "| ?+\\p{L}++| ?\\p{N}++| ?[^" PMAPTRAIN_SPACES "\\p{L}\\p{N}]++|[" PMAPTRAIN_SPACES
                       "]+(?![^" PMAPTRAIN_SPACES "])|[" PMAPTRAIN_SPACES "]+"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "(?i:" PMAPTRAIN_ENDINGS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|\\p{N}{1,3}+| ?[^" PMAPTRAIN_SPACES
     "\\p{L}\\p{N}]++[\\r\\n]*+|[" PMAPTRAIN_SPACES "]*[\\r\\n]++|[" PMAPTRAIN_SPACES "]+(?![^" PMAPTRAIN_SPACES
     "])|[" PMAPTRAIN_SPACES "]+"},
    {R"(\w+|[^\w\s]+)", "[" PMAPTRAIN_WORDS "]++|[^" PMAPTRAIN_WORDS PMAPTRAIN_SPACES "]++"},
}};

std::shared_ptr<void> compile(Expression expression) {
  const char* const pattern = expressions[static_cast<std::size_t>(expression)].pattern;
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &at, nullptr);
  if (code == nullptr) throw std::logic_error("PCRE2 takes no expression of a tokenizer");
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower
  return {code, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); }};
}

// Compiled once.
const std::shared_ptr<void>& code_of(Expression expression) {
  static const std::array<std::shared_ptr<void>, 3> codes = {compile(Expression::gpt2), compile(Expression::llama3),
                                                             compile(Expression::words)};
  return codes[static_cast<std::size_t>(expression)];
}

// A match cannot be given up half-way, whatever its length.
pcre2_match_context* unlimited() {
  static const std::shared_ptr<pcre2_match_context> context = [] {
    std::shared_ptr<pcre2_match_context> made(pcre2_match_context_create(nullptr), pcre2_match_context_free);
    if (made == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(made.get(), UINT32_MAX);
    pcre2_set_depth_limit(made.get(), UINT32_MAX);
    return made;
  }();
  return context.get();
}

// Cuts before each marker; of a run of them before each, or before the first alone.
void cut(std::string_view text, std::string_view marker, bool runs, const Splitter::Take& take) {
  std::size_t begin = 0, after = 0;  // of the piece; after the last marker
  bool any = false;
  for (std::size_t at = text.find(marker); at != std::string_view::npos; at = text.find(marker, after)) {
    const bool goes_on = runs && any && at == after;
    if (at > begin && !goes_on) {
      take(text.substr(begin, at - begin));
      begin = at;
    }
    after = at + marker.size();
    any = true;
  }
  if (begin < text.size()) take(text.substr(begin));
}

}  // namespace

std::string_view text_of(Expression expression) { return expressions[static_cast<std::size_t>(expression)].text; }

std::string unicode_versions() {
  std::array<char, 64> pcre2 = {};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, pcre2.data());
  return std::string(pcre2.data()) + " " + utf8proc_version();
}

Matcher::Matcher(Expression expression) : code_(code_of(expression)) {
  match_ = {pcre2_match_data_create(1, nullptr),
            [](void* p) { pcre2_match_data_free(static_cast<pcre2_match_data*>(p)); }};
  if (match_ == nullptr) throw std::bad_alloc();
}

bool Matcher::next(std::string_view text, std::size_t& at, std::string_view& piece) {
  if (at >= text.size()) return false;
  auto* const match = static_cast<pcre2_match_data*>(match_.get());
  const int found = pcre2_match(static_cast<const pcre2_code*>(code_.get()), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), at, PCRE2_NO_UTF_CHECK, match, unlimited());
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) fail_resource("a text could not be divided into pieces: too little memory");
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match);
  piece = text.substr(range[0], range[1] - range[0]);
  at = range[1];
  return true;
}

Splitter::Splitter(const std::vector<PreTokenizer>& steps, std::string cuts_at)
    : steps_(steps), changed_(steps.size()), cuts_at_(std::move(cuts_at)) {
  for (const PreTokenizer& step : steps_) {
    std::unique_ptr<Matcher> matcher;
    if (const auto* split = std::get_if<Split>(&step)) matcher = std::make_unique<Matcher>(split->expression);
    if (const auto* level = std::get_if<ByteLevel>(&step); level != nullptr && level->use_regex) {
      matcher = std::make_unique<Matcher>(Expression::gpt2);
    }
    matchers_.push_back(std::move(matcher));
  }
}

void Splitter::each(std::string_view text, bool is_first, const Take& take) {
  if (text.empty()) return;
  if (steps_.empty() && !cuts_at_.empty()) {
    cut(text, cuts_at_, true, take);
  } else {
    apply(0, text, is_first, take);
  }
}

// The text that a step divides.
std::string_view Splitter::change(std::size_t step, std::string_view text, bool is_first) {
  std::string& changed = changed_[step];
  if (const auto* level = std::get_if<ByteLevel>(&steps_[step])) {
    if (!level->add_prefix_space || text.starts_with(' ')) return text;
    changed = " ";
    changed += text;
    return changed;
  }
  const auto* meta = std::get_if<Metaspace>(&steps_[step]);
  if (meta == nullptr) return text;
  changed = replaced(text, " ", meta->replacement);
  const bool prepends =
      meta->prepend == Metaspace::Scheme::always || (meta->prepend == Metaspace::Scheme::first && is_first);
  if (prepends && !changed.starts_with(meta->replacement)) changed.insert(0, meta->replacement);
  return changed;
}

void Splitter::apply(std::size_t step, std::string_view text, bool is_first, const Take& take) {
  if (text.empty()) return;
  if (step == steps_.size()) {
    take(text);
    return;
  }
  const std::string_view whole = change(step, text, is_first);
  const auto next = [&](std::string_view piece) {
    apply(step + 1, piece, is_first && piece.data() == whole.data(), take);
  };
  const auto* const meta = std::get_if<Metaspace>(&steps_[step]);
  if (meta != nullptr && meta->split) {
    cut(whole, meta->replacement, false, next);
  } else if (matchers_[step] != nullptr) {
    matchers_[step]->each(whole, next);
  } else {
    next(whole);
  }
}

}  // namespace pmaptrain::tokenizers
