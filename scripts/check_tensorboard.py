#!/usr/bin/env python3
"""Reads the event files of run folders with the package tensorboard, and compares them with metrics.jsonl.

    python scripts/check_tensorboard.py RUN...

Needs PyPI's tensorboard; without it, says so and ends with status 0. Every value of metrics.jsonl must be there, at its
step, as f32, and no step twice.
"""

import json
import struct
import sys
from pathlib import Path

OWN_TAGS = ("learning_rate", "grad_norm", "examples_per_second")
NO_VALUES = ("event", "step", "epoch", "member", "seconds", "examples", "split", "finite")


def as_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def tag_of(line, name):
    if name in OWN_TAGS:
        return name
    return {"step": "train/", "epoch": "train/epoch_", "eval": line.get("split", "") + "/"}[line["event"]] + name


def expected_of(run):
    """By member, by tag: values by step."""
    expected = {}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last_epoch = max(line["epoch"] for line in lines)
    for line in lines:
        if line["event"] == "epoch" and line["epoch"] in (last_epoch, line["step"]):
            continue  # perhaps not complete; or epochs of one step, which are not written
        tags = expected.setdefault(line.get("member"), {})
        for name, value in line.items():
            if name not in NO_VALUES and value is not None:
                tags.setdefault(tag_of(line, name), {})[line["step"]] = as_f32(value)
    return expected


def main():
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        print("check_tensorboard: skipped: the package tensorboard is not installed")
        return
    failures = 0
    for name in sys.argv[1:]:
        run = Path(name)
        for member, tags in expected_of(run).items():
            folder = run / "tensorboard" / ("" if member is None else f"member-{member}")
            events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
            events.Reload()
            for tag, values in tags.items():
                found = [(event.step, event.value) for event in events.Scalars(tag)]
                steps = [step for step, _ in found]
                if len(set(steps)) != len(steps):
                    print(f"{folder}: {tag} has a step twice")
                    failures += 1
                for step, value in values.items():
                    if dict(found).get(step) != value:
                        print(f"{folder}: {tag} at step {step} is {dict(found).get(step)}, not {value}")
                        failures += 1
            print(f"{folder}: {len(tags)} tags")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
