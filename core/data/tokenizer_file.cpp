#include "core/data/tokenizer_file.h"

#include "core/data/file.h"
#include "core/tokenizers/file.h"

namespace pmaptrain::data {

std::shared_ptr<const tokenizers::Tokenizer> open_tokenizer(const std::string& path) {
  return about_file(path, [&] {
    const Bytes bytes = map_file(path);
    tokenizers::Definition definition = tokenizers::read_definition(as_chars(bytes.view()), path);
    bytes.check_intact();
    return std::make_shared<const tokenizers::Tokenizer>(std::move(definition));
  });
}

}  // namespace pmaptrain::data
