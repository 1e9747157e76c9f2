#include "core/runtime/transport.h"

#include <algorithm>
#include <cstring>

namespace pmaptrain {

std::vector<std::string> texts_of_all(const Processes& processes, const std::string& own) {
  const auto [process, count] = processes.placement;
  if (count == 1) return {own};
  std::int64_t longest = std::ssize(own);
  processes.transport->largest({&longest, 1});
  // Messages of equal size, each of a length and a text.
  const std::size_t message = sizeof(std::int64_t) + static_cast<std::size_t>(longest);
  std::vector<std::byte> all(message * static_cast<std::size_t>(count));
  const auto part_of = [&](int p) { return all.data() + message * static_cast<std::size_t>(p); };
  const std::int64_t length = std::ssize(own);
  std::memcpy(part_of(process), &length, sizeof length);
  std::memcpy(part_of(process) + sizeof length, own.data(), own.size());
  std::vector<Transport::Outgoing> sends;
  std::vector<Transport::Incoming> receives;
  for (int p = 0; p < count; ++p) {
    if (p == process) continue;
    sends.push_back({p, part_of(process), message});
    receives.push_back({p, part_of(p), message});
  }
  processes.transport->exchange(sends, receives);
  std::vector<std::string> texts;
  for (int p = 0; p < count; ++p) {
    std::int64_t size = 0;
    std::memcpy(&size, part_of(p), sizeof size);
    const char* const text = reinterpret_cast<const char*>(part_of(p)) + sizeof size;
    texts.emplace_back(text, static_cast<std::size_t>(std::clamp<std::int64_t>(size, 0, longest)));
  }
  return texts;
}

}  // namespace pmaptrain
