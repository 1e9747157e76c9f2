#include "core/base/machine.h"

#include "tests/catch.h"

using namespace pmaptrain;

TEST_CASE("a process's cgroups are its own and all above", "[base]") {
  CHECK(cgroup_folders("12:cpu:/old\n0::/user.slice/run\n") ==
        std::vector<std::string>{"/sys/fs/cgroup/user.slice/run", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"});
  CHECK(cgroup_folders("0::/\n") == std::vector<std::string>{"/sys/fs/cgroup"});
  CHECK(cgroup_folders("12:cpu:/old\n").empty());
  CHECK(cgroup_folders("0::relative\n").empty());
  CHECK(cgroup_folders("").empty());
}

TEST_CASE("a quota of time is so many cores, and none is no limit", "[base]") {
  CHECK(cores_of_quota("150000 100000\n") == 1.5);
  CHECK(cores_of_quota("max 100000\n") == 0);
  CHECK(cores_of_quota("") == 0);
  CHECK(cores_of_quota("1 0\n") == 0);
  CHECK(allowed_cores(8, cores_of_quota("150000 100000")) == 1.5);
  CHECK(allowed_cores(2, cores_of_quota("800000 100000")) == 2);
  CHECK(allowed_cores(8, cores_of_quota("max 100000")) == 8);
  CHECK(allowed_cores(8, cores_of_quota("20000 100000")) == 1);
}

TEST_CASE("a cgroup holds what it could not give back", "[base]") {
  CHECK(held_memory("1000\n", "anon 300\ninactive_file 200\nactive_file 100\n") == 700);
  CHECK(held_memory("100\n", "inactive_file 200\n") == 0);
  CHECK(held_memory("", "inactive_file 200\n") == 0);
}
