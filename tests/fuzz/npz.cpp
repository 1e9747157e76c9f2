// Zip archives of arrays: every entry is read.
#include <algorithm>
#include <cstdint>

#include "core/base/error.h"
#include "core/data/arrays/array.h"
#include "core/data/arrays/zip.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {

void fuzz_one(std::span<const std::byte> input) {
  const auto allowed = [](const Error& error) {
    require(error.status() == ExitStatus::data || error.status() == ExitStatus::resource,
            "what is wrong with a file is a matter of data, or too large");
  };
  try {
    const data::ZipArchive archive("fuzz.npz", copy_of(input));
    for (const data::ZipArchive::Entry& entry : archive.entries()) {
      require(archive.find(entry.name) == &entry, "an entry is found by its name");
      plant_bug(entry.method > 8, input);
      // An entry that is damaged says nothing about the others.
      try {
        // What a header needs, before all is read; its checksum is not looked at.
        const data::Bytes head = archive.head(entry, 16);
        require(head.size() == std::min<std::uint64_t>(16, entry.uncompressed),
                "a head has as many bytes as there are");
        const data::Bytes content = archive.read(entry);
        require(content.size() == entry.uncompressed, "an entry has the bytes that its directory says");
        require(std::equal(head.view().begin(), head.view().end(), content.view().begin()),
                "a head is the first bytes");
        data::parse_npy(content, entry.name);
      } catch (const Error& error) {
        allowed(error);
      }
    }
  } catch (const Error& error) {
    allowed(error);
  }
}

}  // namespace pmaptrain::fuzz
