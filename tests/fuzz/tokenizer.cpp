// Files of tokenizers, and texts by those that are read.
#include "core/tokenizers/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/file.h"
#include "core/tokenizers/file.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {
namespace {

// Ids that a tokenizer has, and the text that they are is UTF-8.
void use(const tokenizers::Tokenizer& tokenizer, std::string_view text) {
  tokenizers::Encoder encoder(tokenizer);
  const std::vector<tokenizers::Id> ids = encoder.encode(text, true);
  for (const tokenizers::Id id : ids)
    require(static_cast<std::int64_t>(id) < tokenizer.size(), "an id is one of a token");
  require(encoder.encode(text, true) == ids, "ids do not depend on what was encoded before");
  tokenizer.decode(ids, true);
}

}  // namespace

void fuzz_one(std::span<const std::byte> input) {
  const std::string_view text = data::as_chars(input);
  try {
    const tokenizers::Tokenizer tokenizer(tokenizers::read_definition(text, "fuzz.json"));
    plant_bug(tokenizer.size() == 9, input);
    const std::string written = tokenizers::definition_text(tokenizer.definition());
    require(tokenizers::definition_text(tokenizers::read_definition(written, "fuzz.json")) == written,
            "what is written is read again");
    use(tokenizer, "the  cat \xff \xe6\x97\xa5 <s>ab12\n\nabcabc");
    use(tokenizer, text.substr(0, 2000));
  } catch (const Error& error) {
    require(error.status() == ExitStatus::data, "what is wrong with a file is a matter of data");
  }
}

}  // namespace pmaptrain::fuzz
