// Processes and GPUs that would wait for each other without end are found when a module is loaded.
#include "core/runtime/rendezvous.h"

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/cpu/module.h"
#include "tests/catch.h"
#include "tests/runtime/placements.h"

namespace pmaptrain {
namespace {

using Texts = std::vector<std::string>;

// What each process throws; empty: nothing. Catch2's assertions must not run on several threads.
template <class F>
Texts thrown_in(int processes, F&& f) {
  test::MemoryTransport transport(processes);
  Texts thrown(static_cast<std::size_t>(processes));
  test::on_each_process(transport, processes, [&](int process) {
    try {
      f(Processes{{process, processes}, &transport.end(process)});
    } catch (const Error& error) {
      std::string& text = thrown[static_cast<std::size_t>(process)];
      text = error.diagnostics().front().message;
      if (error.status() != ExitStatus::failed) text += " (with another exit status)";
    }
  });
  return thrown;
}

TEST_CASE("ranks that do the same together in the same order are taken", "[runtime][placements]") {
  // Each process has two ranks. What a rank does with others in between does not count.
  CHECK(thrown_in(2, [](const Processes& all) {
          const int first = 2 * all.placement.process, second = first + 1;
          std::vector<std::vector<Rendezvous>> own(2);
          for (const int rank : {first, second}) {
            std::vector<Rendezvous>& of_rank = own[static_cast<std::size_t>(rank - first)];
            of_rank.push_back({{0, 1, 2, 3}, "a sum"});
            if (rank % 2 == 1) of_rank.push_back({{1, 3}, "a gather"});
            of_rank.push_back({{0, 1, 2, 3}, "another sum"});
          }
          check_rendezvous(all, "GPU", first, own);
        }) == Texts{"", ""});
}

TEST_CASE("ranks that differ in what they do together are an error of all, which names both", "[runtime][placements]") {
  const auto thrown = [](std::vector<Rendezvous> first, std::vector<Rendezvous> second) {
    return thrown_in(3, [&](const Processes& all) {
      const std::vector<Rendezvous> none;
      const int process = all.placement.process;
      check_rendezvous(all, "process", process, {process == 0 ? first : process == 1 ? second : none});
    });
  };
  const Rendezvous sum{{0, 1}, "a sum of 8 bytes"}, other{{0, 1}, "a sum of 4 bytes"};
  const std::string begin = "process 0 and process 1 would wait for each other without end: number ";
  CHECK(thrown({sum, sum}, {sum, other}) ==
        Texts(3,
              begin + "2 of what they do together is, in process 0, a sum of 8 bytes; in process 1, a sum of 4 bytes"));
  CHECK(thrown({sum}, {}) ==
        Texts(3, begin + "1 of what they do together is, in process 0, a sum of 8 bytes; in process 1, nothing more"));
  CHECK(thrown({}, {sum}) ==
        Texts(3, begin + "1 of what they do together is, in process 0, nothing more; in process 1, a sum of 8 bytes"));
}

TEST_CASE("processes whose programs send other messages do not load them", "[runtime][placements]") {
  const auto small = test::sum_of_rows("5"), large = test::sum_of_rows("7");
  const auto load = [&](const std::shared_ptr<const Program>& second) {
    return thrown_in(2, [&](const Processes& all) {
      const auto& program = all.placement.process == 1 ? second : small;
      std::move(*cpu::CpuBackend().plan({{{"test", program, 1}}, false, 1, 4}, all)).load();
    });
  };
  CHECK(load(small) == Texts{"", ""});
  CHECK(load(large) ==
        Texts(2,
              "process 0 and process 1 would wait for each other without end: number 1 of what they do together is, in "
              "process 0, a message of 20 bytes for psum; in process 1, a message of 28 bytes for psum"));
}

}  // namespace
}  // namespace pmaptrain
