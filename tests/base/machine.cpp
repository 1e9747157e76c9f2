#include "core/base/machine.h"

#include <filesystem>
#include <limits>

#include "tests/catch.h"
#include "tests/files.h"

using namespace pmaptrain;

namespace {

// A machine of which everything is version 2, and one with a tree for each controller (and an empty one of version 2).
const std::string unified = "25 30 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string separate =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

// The tree of files that a machine's cgroups would be.
class Tree {
 public:
  std::string mount(const std::string& type, const std::string& options, const std::string& root = "/") const {
    return "35 31 0:32 " + root + " " + folder_.path().string() + " rw - " + type + " cgroup " + options + "\n";
  }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text + "\n");
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a process's cgroups are its own and all above", "[base]") {
  using Cgroups = std::vector<Cgroup>;
  CHECK(cgroups_of("memory", "0::/user.slice/run\n", unified) ==
        Cgroups{{"/sys/fs/cgroup/user.slice/run", 2}, {"/sys/fs/cgroup/user.slice", 2}, {"/sys/fs/cgroup", 2}});
  CHECK(cgroups_of("cpu", "0::/\n", unified) == Cgroups{{"/sys/fs/cgroup", 2}});
  CHECK(cgroups_of("memory", "0::relative\n", unified).empty());
  CHECK(cgroups_of("memory", "", unified).empty());
  CHECK(cgroups_of("memory", "0::/a\n", "").empty());

  // Of version 1 each controller has its own path; `cpu` is not `cpuset`.
  const std::string self = "9:name=systemd:/s\n5:cpuset:/c\n4:memory:/a/b\n3:cpu,cpuacct:/d\n0::/\n";
  CHECK(cgroups_of("memory", self, separate) == Cgroups{{"/sys/fs/cgroup/memory/a/b", 1},
                                                        {"/sys/fs/cgroup/memory/a", 1},
                                                        {"/sys/fs/cgroup/memory", 1},
                                                        {"/sys/fs/cgroup/unified", 2}});
  CHECK(cgroups_of("cpu", self, separate) ==
        Cgroups{{"/sys/fs/cgroup/cpu,cpuacct/d", 1}, {"/sys/fs/cgroup/cpu,cpuacct", 1}, {"/sys/fs/cgroup/unified", 2}});
}

TEST_CASE("the cgroups of a container are found in the visible part of the hierarchy", "[base]") {
  using Cgroups = std::vector<Cgroup>;
  for (const int version : {1, 2}) {
    const auto mount = [&](const std::string& root, const std::string& point) {
      return "35 31 0:32 " + root + " " + point + " ro master:11 - " +
             (version == 1 ? "cgroup cgroup rw,memory\n" : "cgroup2 cgroup rw\n");
    };
    const std::string self = version == 1 ? "4:memory:" : "0::";
    CHECK(cgroups_of("memory", self + "/docker/1f\n", mount("/docker/1f", "/cg")) == Cgroups{{"/cg", version}});
    CHECK(cgroups_of("memory", self + "/docker/1f/job\n", mount("/docker/1f", "/cg")) ==
          Cgroups{{"/cg/job", version}, {"/cg", version}});
    CHECK(cgroups_of("memory", self + "/\n", mount("/", "/a\\040space")) == Cgroups{{"/a space", version}});
    // What is not below the root of the mount: another name that begins alike, and a path out of the name space.
    CHECK(cgroups_of("memory", self + "/docker/1fe\n", mount("/docker/1f", "/cg")) == Cgroups{{"/cg", version}});
    CHECK(cgroups_of("memory", self + "/../job\n", mount("/", "/cg")) == Cgroups{{"/cg", version}});
    // Of several mounts, the one that shows the path.
    CHECK(cgroups_of("memory", self + "/x\n", mount("/other", "/o") + mount("/", "/cg")) ==
          Cgroups{{"/cg/x", version}, {"/cg", version}});
  }
}

TEST_CASE("limits of memory and time are the tightest of all cgroups, of either version", "[base]") {
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  {
    const Tree tree;
    const std::string mounts = tree.mount("cgroup", "rw,memory,cpu,cpuacct");
    const auto memory = [&] { return cgroup_memory(cgroups_of("memory", "4:memory:/a/b\n", mounts)); };
    const auto cores = [&] { return cgroup_cores(cgroups_of("cpu", "4:cpu,cpuacct:/a/b\n", mounts)); };
    CHECK(memory() == no_limit);
    CHECK(cores() == 0);
    tree.put("memory.limit_in_bytes", "9223372036854771712");
    tree.put("memory.usage_in_bytes", "5000000");
    tree.put("a/memory.limit_in_bytes", "1000000");
    tree.put("a/memory.usage_in_bytes", "700000");
    tree.put("a/memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file 200000\ntotal_active_file 100000");
    tree.put("a/b/memory.limit_in_bytes", "900000");
    tree.put("a/b/memory.usage_in_bytes", "100000");
    CHECK(memory() == 600000);
    tree.put("a/b/memory.limit_in_bytes", "650000");
    CHECK(memory() == 550000);
    tree.put("a/b/memory.usage_in_bytes", "660000");
    CHECK(memory() == 0);
    tree.put("cpu.cfs_quota_us", "-1");
    tree.put("cpu.cfs_period_us", "100000");
    CHECK(cores() == 0);
    tree.put("a/cpu.cfs_quota_us", "150000");
    tree.put("a/cpu.cfs_period_us", "100000");
    tree.put("a/b/cpu.cfs_quota_us", "50000");
    tree.put("a/b/cpu.cfs_period_us", "20000");
    CHECK(cores() == 1.5);
  }
  const Tree tree;
  const std::string mounts = tree.mount("cgroup2", "rw", "/docker/1f");
  const std::vector<Cgroup> groups = cgroups_of("memory", "0::/docker/1f/job\n", mounts);
  tree.put("memory.max", "1000000");
  tree.put("memory.current", "700000");
  tree.put("memory.stat", "anon 400000\ninactive_file 200000\nactive_file 100000");
  tree.put("job/memory.max", "max");
  tree.put("job/memory.current", "600000");
  tree.put("cpu.max", "max 100000");
  tree.put("job/cpu.max", "250000 100000");
  CHECK(cgroup_memory(groups) == 600000);
  CHECK(cgroup_cores(groups) == 2.5);
}

TEST_CASE("a CPU quota is a number of cores, and none is no limit", "[base]") {
  CHECK(cores_of_quota("150000 100000\n") == 1.5);
  CHECK(cores_of_quota("max 100000\n") == 0);
  CHECK(cores_of_quota("") == 0);
  CHECK(cores_of_quota("1 0\n") == 0);
  CHECK(cores_of_quota("-1\n 100000\n") == 0);
  CHECK(allowed_cores(8, cores_of_quota("150000 100000")) == 1.5);
  CHECK(allowed_cores(2, cores_of_quota("800000 100000")) == 2);
  CHECK(allowed_cores(8, cores_of_quota("max 100000")) == 8);
  CHECK(allowed_cores(8, cores_of_quota("20000 100000")) == 1);
}

TEST_CASE("the memory of a cgroup excludes reclaimable pages", "[base]") {
  CHECK(held_memory("1000\n", "anon 300\ninactive_file 200\nactive_file 100\n") == 700);
  CHECK(held_memory("1000\n", "inactive_file 9\ntotal_inactive_file 200\ntotal_active_file 100\n", 1) == 700);
  CHECK(held_memory("100\n", "inactive_file 200\n") == 0);
  CHECK(held_memory("", "inactive_file 200\n") == 0);
}
