#include "core/runtime/mpi/peers.h"

#include <algorithm>

namespace pmaptrain::mpi {

bool must_get_on(Transport::Phase phase) {
  return phase == Transport::Phase::reading || phase == Transport::Phase::computing;
}

Verdict judge(std::span<const Peer> peers, int own, double present, double limit) {
  Verdict verdict;
  verdict.all_wait = true;
  for (int p = 0; p < static_cast<int>(peers.size()); ++p) {
    if (p == own) {
      if (verdict.teller < 0) verdict.teller = p;
      continue;
    }
    const Peer& peer = peers[static_cast<std::size_t>(p)];
    const bool says_it_waits = peer.beat.waiting != Waiting::no;
    const bool is_silent = present - peer.heard > limit;
    const bool is_to_get_on = !says_it_waits && must_get_on(static_cast<Transport::Phase>(peer.beat.phase));
    const bool stalls = is_to_get_on && present - peer.advanced > limit;
    // What a process said before it fell silent is no longer known to be so.
    const bool waits = peer.beat.waiting == Waiting::for_messages && present - peer.advanced >= limit &&
                       present - peer.heard < std::min(most_pause, limit / 2);
    if (!waits) verdict.all_wait = false;
    if (!is_silent && !stalls) {
      if (verdict.teller < 0) verdict.teller = p;
    } else if (verdict.culprit < 0) {
      verdict.culprit = p;
      verdict.is_silent = is_silent;
    }
  }
  return verdict;
}

}  // namespace pmaptrain::mpi
