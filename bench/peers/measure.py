"""How every peer is measured, and how it reports: one line of JSON."""

import json
import os
import statistics
import time


def seconds_since_process_start():
    """The kernel counts starts in ticks of 10 ms."""
    with open("/proc/self/stat") as file:
        start_ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes():
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


SLOW = 20  # seconds of a step


def measure(steps, seconds, agree=lambda number: number):
    """Times `steps(n)`, which does n training steps and returns when they are done; the first one ever included.

    Steps are timed in groups of about 20 ms or more, for about `seconds` and at least five groups. Of steps that take
    more than SLOW seconds only two are, which the result says ("steps"). `agree` maps a number of this process to the
    one that all processes which step together take.
    """
    steps(1)
    first = seconds_since_process_start()

    begin = time.perf_counter()
    steps(1)  # a library may still compile or allocate at the second
    if agree(time.perf_counter() - begin) > SLOW:
        return timed(steps, 1, 2, first)
    steps(1)

    begin = time.perf_counter()
    steps(3)
    group = max(1, int(agree(0.02 / ((time.perf_counter() - begin) / 3) + 1)))
    steps(group)
    begin = time.perf_counter()
    steps(group)
    return timed(steps, group, max(5, int(agree(seconds / (time.perf_counter() - begin)))), first)


def timed(steps, group, groups, first):
    samples = []
    for _ in range(groups):
        begin = time.perf_counter()
        steps(group)
        samples.append((time.perf_counter() - begin) / group)
    return {
        "steps": group * groups,
        "step_seconds": {"median": statistics.median(samples), "min": min(samples)},
        "first_step_seconds": first,
        "peak_rss_bytes": peak_rss_bytes(),
    }


def report(result):
    print(json.dumps(result), flush=True)
