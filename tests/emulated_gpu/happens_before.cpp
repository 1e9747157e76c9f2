#include "tests/emulated_gpu/happens_before.h"

#include <algorithm>

namespace pmaptrain::emulation {

void Clock::set(std::size_t lane, std::uint64_t calls) {
  if (lane >= calls_.size()) calls_.resize(lane + 1);
  calls_[lane] = calls;
}

void Clock::join(const Clock& other) {
  if (calls_.size() < other.calls_.size()) calls_.resize(other.calls_.size());
  for (std::size_t lane = 0; lane < other.calls_.size(); ++lane) {
    calls_[lane] = std::max(calls_[lane], other.calls_[lane]);
  }
}

bool Clock::covers(const Clock& other) const {
  for (std::size_t lane = 0; lane < other.calls_.size(); ++lane) {
    if (at(lane) < other.calls_[lane]) return false;
  }
  return true;
}

std::optional<Conflict> History::conflict(bool writes, std::size_t begin, std::size_t end, const Clock& clock) const {
  auto segment = segments_.upper_bound(begin);
  if (segment != segments_.begin()) --segment;
  for (; segment != segments_.end() && segment->first < end; ++segment) {
    const auto& [write_end, write, reads] = segment->second;
    if (write_end <= begin) continue;
    const std::size_t shared = std::min(end, write_end) - std::max(begin, segment->first);
    if (write && !write->before(clock)) return Conflict{*write, true, shared};
    if (!writes) continue;
    for (const Call& read : reads) {
      if (!read.before(clock)) return Conflict{read, false, shared};
    }
  }
  return std::nullopt;
}

void History::add(bool writes, std::size_t begin, std::size_t end, const Call& call, const Clock& clock) {
  if (begin == end) return;
  cut(begin);
  cut(end);
  auto segment = segments_.lower_bound(begin);
  if (writes) {
    while (segment != segments_.end() && segment->first < end) segment = segments_.erase(segment);
    segments_.emplace_hint(segment, begin, Segment{end, call});
    return;
  }
  // Bytes that nothing has used yet become segments too.
  for (std::size_t at = begin; at < end; at = segment->second.end, ++segment) {
    if (segment == segments_.end() || segment->first > at) {
      const std::size_t gap_end = segment == segments_.end() ? end : std::min(end, segment->first);
      segment = segments_.emplace_hint(segment, at, Segment{gap_end});
    }
    std::vector<Call>& reads = segment->second.reads;
    std::erase_if(reads, [&](const Call& read) { return read.before(clock); });
    reads.push_back(call);
  }
}

void History::cut(std::size_t at) {
  auto segment = segments_.lower_bound(at);
  if (segment == segments_.begin()) return;
  --segment;
  if (segment->second.end <= at) return;
  Segment rest = segment->second;
  segment->second.end = at;
  segments_.emplace(at, std::move(rest));
}

}  // namespace pmaptrain::emulation
