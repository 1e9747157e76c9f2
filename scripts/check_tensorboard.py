#!/usr/bin/env python3
"""Trains some runs, reads their event files with TensorBoard's own reader, and compares them with metrics.jsonl.

    scripts/check_tensorboard.py PROGRAM

A run, one that is stopped and resumed, one whose last checkpoint is lost before it is resumed, and an ensemble. Every
value of metrics.jsonl must be there, at its step, as f32, and no step twice. Needs third_party/tensorboard
(scripts/bootstrap --dev); says so where it is missing.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN_TAGS = ("learning_rate", "grad_norm", "examples_per_second")
NO_VALUES = ("event", "step", "epoch", "member", "seconds", "examples", "split", "finite")
CONFIG = ROOT / "tests" / "app" / "tensorboard.yaml"
TAGS = {"examples_per_second", "grad_norm", "learning_rate", "test/accuracy", "test/loss", "train/accuracy",
        "train/epoch_accuracy", "train/epoch_loss", "train/loss", "validation/accuracy", "validation/loss"}


def as_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def tag_of(line, name):
    if name in OWN_TAGS:
        return name
    return {"step": "train/", "epoch": "train/epoch_", "eval": line.get("split", "") + "/"}[line["event"]] + name


def expected_of(run):
    """By member, by tag: values by step."""
    expected = {}
    for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()):
        tags = expected.setdefault(line.get("member"), {})
        for name, value in line.items():
            if name not in NO_VALUES and value is not None:
                tags.setdefault(tag_of(line, name), {})[line["step"]] = as_f32(value)
    return expected


def problems_of(run, reader, stopped_at=()):
    """`stopped_at`: the steps at which a run stopped, which event files keep and metrics.jsonl does not."""
    problems = []
    for member, tags in expected_of(run).items():
        folder = run / "tensorboard" / ("" if member is None else f"member-{member}")
        events = reader(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        if set(events.Tags()["scalars"]) != TAGS or set(tags) != TAGS:
            problems.append(f"{folder}: tags {sorted(events.Tags()['scalars'])}, in metrics.jsonl {sorted(tags)}")
            continue
        for tag, values in tags.items():
            scalars = events.Scalars(tag)
            found = {event.step: event.value for event in scalars}
            if len(found) != len(scalars):
                problems.append(f"{folder}: {tag} has a step twice: {[event.step for event in scalars]}")
            for step in stopped_at:
                if step not in values:
                    found.pop(step, None)
            if found != values:
                problems.append(f"{folder}: {tag} is {found}, in metrics.jsonl {values}")
    return problems


def main():
    sys.path.insert(0, str(ROOT / "third_party" / "tensorboard"))
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        print(f"skipped: {error} (scripts/bootstrap --dev)")
        return 0
    program = pathlib.Path(sys.argv[1]).resolve()
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def train(run, *options):
            subprocess.run([program, "run", CONFIG, "--run-dir", run, "--progress", "none", *options],
                           check=True, stdout=subprocess.DEVNULL)
            return run

        problems += problems_of(train(folder / "whole"), EventAccumulator)

        stopped = train(folder / "stopped", "--max-steps", "5")
        problems += problems_of(train(stopped, "--resume"), EventAccumulator, stopped_at=[5])

        # As of a process that was killed after its last checkpoint: the steps after that are taken again.
        killed = train(folder / "killed", "--max-steps", "5")
        train(killed, "--resume", "--max-steps", "7")
        shutil.rmtree(killed / "checkpoints" / "step-00000007")
        (killed / "checkpoints" / "last").unlink()
        with open(sorted((killed / "tensorboard").iterdir())[-1], "ab") as torn:
            torn.write(b"half a record")
        problems += problems_of(train(killed, "--resume"), EventAccumulator, stopped_at=[5])

        # The files of so many members are not held open.
        seeds = ", ".join(map(str, range(17)))
        problems += problems_of(train(folder / "ensemble", "--set", "mesh.axes=[{trials: 17}, {devices: 4}]", "--set",
                                      f"ensemble={{axis: trials, vary: {{seed: [{seeds}]}}}}"), EventAccumulator)
    print("\n".join(problems) or "TensorBoard reads what metrics.jsonl has")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
