// Process 1 of a container, to which the system delivers no signal whose action is the default.
#include <csignal>
#include <string>

#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;

TEST_CASE("TERM ends process 1 of a container where nothing is trained, with the status of the signal",
          "[app][process]") {
  if (Process(Shell{"unshare -pf true"}).wait().status != 0) {
    WARN("no namespace of processes can be made here");
    return;
  }
  // The signal is sent until it is taken: the first ones may come before the program runs.
  Process process(Shell{R"(
    unshare -pf "$PROGRAM" bench configs/linear_regression.yaml --steps 1000000000 > /dev/null 2>&1 &
    for i in {1..100}; do
      kill -0 $! 2> /dev/null || break
      for child in $(cat /proc/$!/task/$!/children 2> /dev/null); do kill -TERM $child 2> /dev/null; done
      sleep 0.05
    done
    for child in $(cat /proc/$!/task/$!/children 2> /dev/null); do kill -KILL $child; done
    wait $!)"});
  CHECK(process.wait().status == 128 + SIGTERM);
}
