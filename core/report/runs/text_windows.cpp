#include "core/report/runs/text_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::report {
namespace {

using tokenizers::Id;

bool counts(double loss) { return !std::isnan(loss); }

// Where the `most` tokens side by side with the largest sum of losses begin.
std::size_t worst_stretch(std::span<const double> losses, std::size_t most) {
  if (losses.size() <= most) return 0;
  const auto at = [&](std::size_t i) { return counts(losses[i]) ? losses[i] : 0; };
  double sum = 0;
  for (std::size_t i = 0; i < most; ++i) sum += at(i);
  double largest = sum;
  std::size_t best = 0;
  for (std::size_t begin = 1; begin + most <= losses.size(); ++begin) {
    sum += at(begin + most - 1) - at(begin - 1);
    if (sum <= largest) continue;
    largest = sum;
    best = begin;
  }
  return best;
}

// The characters of bytes as they come: that of several bytes with the last of them.
class ByteDecoder {
 public:
  std::string next(std::int32_t byte) {
    open_ += static_cast<char>(byte);
    const auto first = static_cast<unsigned char>(open_.front());
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    const bool goes_on = open_.size() == 1 || (static_cast<unsigned char>(byte) & 0xc0U) == 0x80;
    if (goes_on && open_.size() < length) return {};
    std::string text;
    text.swap(open_);
    return text;
  }

 private:
  std::string open_;
};

}  // namespace

double PredictedTokens::sum() const {
  double sum = 0;
  for (const double loss : losses) sum += counts(loss) ? loss : 0;
  return sum;
}

std::int64_t PredictedTokens::count() const { return std::count_if(losses.begin(), losses.end(), counts); }

std::string TokenReader::alone(std::int32_t token) const {
  if (tokenizer_ != nullptr) {
    const std::array id{static_cast<Id>(token)};
    if (id[0] >= static_cast<std::size_t>(tokenizer_->size())) return std::to_string(token);
    std::string text = tokenizer_->decode(id, true);
    return text.empty() ? tokenizer_->token(id[0]) : text;
  }
  if (stored_ != data::Tokens::bytes) return std::to_string(token);
  return token < 0x80 ? std::string(1, static_cast<char>(token)) : fmt::format("byte {:#04x}", token);
}

std::vector<ShownToken> TokenReader::show(std::int32_t before, const PredictedTokens& window, std::size_t most) const {
  const std::size_t first = worst_stretch(window.losses, most);
  const std::size_t end = std::min(first + most, window.targets.size());
  std::optional<tokenizers::StreamDecoder> decoder;
  if (tokenizer_ != nullptr) {
    std::vector<Id> ids{static_cast<Id>(before)};
    for (std::size_t i = 0; i < first; ++i) ids.push_back(static_cast<Id>(window.targets[i]));
    decoder.emplace(*tokenizer_, ids);
  }
  ByteDecoder bytes;
  std::vector<ShownToken> shown;
  for (std::size_t i = first; i < end; ++i) {
    const std::int32_t token = window.targets[i];
    ShownToken& one = shown.emplace_back();
    one.loss = window.losses[i];
    if (window.likeliest[i] >= 0 && window.likeliest[i] != token) one.likeliest = alone(window.likeliest[i]);
    if (decoder) {
      one.text = decoder->next(static_cast<Id>(token));
      if (tokenizer_->is_special(static_cast<Id>(token))) one.text += tokenizer_->token(static_cast<Id>(token));
    } else {
      one.text = stored_ == data::Tokens::bytes ? bytes.next(token) : fmt::format("{} ", token);
    }
  }
  if (decoder && !shown.empty()) shown.back().text += decoder->rest();
  return shown;
}

std::optional<std::int64_t> TokenReader::bytes(const PredictedTokens& window) const {
  if (tokenizer_ == nullptr || !tokenizer_->definition().model.is_bpe) return std::nullopt;
  const bool is_byte_level = tokenizer_->definition().is_byte_level();
  std::int64_t bytes = 0;
  std::vector<Id> ids;
  for (std::size_t i = 0; i < window.targets.size(); ++i) {
    const auto id = static_cast<Id>(window.targets[i]);
    if (!counts(window.losses[i]) || tokenizer_->is_special(id)) continue;
    // A character for each byte. The window may begin and end within a character of the text.
    if (is_byte_level) bytes += count_characters(tokenizer_->token(id));
    ids.push_back(id);
  }
  return is_byte_level ? bytes : static_cast<std::int64_t>(tokenizer_->decode(ids).size());
}

}  // namespace pmaptrain::report
