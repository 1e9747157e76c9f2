#include "core/mesh/member_share.h"

#include <cstdint>

#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("processes divide members as far as both numbers have a common divisor, and then the devices of each",
          "[mesh]") {
  const MemberShare fifth(4, {5, 8});
  CHECK(fifth.groups() == 4);
  CHECK(fifth.members() == IndexRange{2, 1});
  CHECK(fifth.within_group() == Placement{1, 2});
  CHECK(fifth.first_process() == 4);
  const MemberShare second(6, {1, 4});
  CHECK(second.groups() == 2);
  CHECK(second.members() == IndexRange{0, 3});
  CHECK(second.within_group() == Placement{1, 2});
  const MemberShare coprime(4, {2, 3});
  CHECK(coprime.is_whole());
  CHECK(coprime.members() == IndexRange{0, 4});
  CHECK(coprime.within_group() == Placement{2, 3});
  const MemberShare undivided(4, {1, 2}, false);
  CHECK(undivided.is_whole());
  CHECK(undivided.has(3));
  CHECK(undivided.within_group() == Placement{1, 2});
}

TEST_CASE("every member is carried by as many neighbouring processes, each with another part of its devices",
          "[mesh]") {
  for (std::int64_t members = 1; members <= 12; ++members) {
    for (int processes = 1; processes <= 12; ++processes) {
      INFO(members << " members, " << processes << " processes");
      for (std::int64_t member = 0; member < members; ++member) {
        int carriers = 0;
        for (int process = 0; process < processes; ++process) {
          const MemberShare share(members, {process, processes});
          const IndexRange own = share.members();
          REQUIRE(share.has(member) == (own.first <= member && member < own.first + own.count));
          if (!share.has(member)) continue;
          REQUIRE(share.first_process() == share.first_process(member));
          REQUIRE(share.within_group().process == carriers++);
          REQUIRE(process - share.first_process(member) == share.within_group().process);
        }
        REQUIRE(carriers == MemberShare(members, {0, processes}).within_group().processes);
      }
    }
  }
}
