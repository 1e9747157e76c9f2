#!/usr/bin/env python3
"""Runs the programs of the documentation that its tests do not:

    scripts/check_recipes.py PROGRAM search    docs/sweeps.md: Optuna, which is told what `pmaptrain run --json` gives
    scripts/check_recipes.py PROGRAM jobs      docs/sweeps.md: the script of a job array, with the variable of SLURM. Its
                                               runs have the parameters, bit by bit, of the same runs of `sweep run`

The first needs third_party/optuna (scripts/bootstrap --dev); it says so where it is missing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Two trials of two replicates: with keys that all share, a path, a value that is null, and a name of our own.
SWEEP = """\
base: configs/mlp.yaml
set: {train.duration: 2 epochs, model.init.from.path: first.safetensors, optimizer.adamw.weight_decay: null}
parameters:
  pace: {choice: [{optimizer.learning_rate: 0.01, data.batch_size: 32}, {optimizer.learning_rate: 0.02, data.batch_size: 64}]}
replicates: {seed: [3, 5], data.seed: [1, 2]}
metric: accuracy
"""


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def python_of(text):
    return re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)


def config_of(text):
    return re.search(r"cat > mlp.yaml <<'END'\n(.*?)END\n", text, re.DOTALL).group(1)


def package(name):
    """The folder of a package, or None where it is not installed."""
    folder = ROOT / "third_party" / name
    if folder.exists():
        return folder
    print(f"skipped: scripts/bootstrap --dev fetches {name} into third_party/{name}")
    return None


def check_search(program, folder):
    optuna = package("optuna")
    if optuna is None:
        return None
    text = page("sweeps.md")
    (folder / "mlp.yaml").write_text(config_of(text), encoding="utf-8")
    (folder / "search.py").write_text(python_of(text), encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "search.py", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(optuna)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(found.stdout)
    best = re.search(r"^best \{'learning_rate': [\d.]+\} ([\d.]+)$", found.stdout, re.MULTILINE)
    if found.returncode != 0 or best is None or not 0.3 < float(best.group(1)) <= 1:
        return "the program of docs/sweeps.md finds no model better than chance"
    return ""


def check_jobs(program, folder):
    text = page("sweeps.md")
    script = re.search(r"```bash\n(#!/bin/bash\n#SBATCH --array.*?)```", text, re.DOTALL).group(1)
    (folder / "array.sh").write_text(script, encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "pmaptrain").symlink_to(program)
    (folder / "configs").mkdir()
    (folder / "configs" / "mlp.yaml").write_text(config_of(text), encoding="utf-8")
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"

    def task(index):
        return subprocess.run(
            ["bash", "array.sh"],
            cwd=folder,
            env={**os.environ, "PATH": path, "SLURM_ARRAY_TASK_ID": str(index)},
            capture_output=True,
            text=True,
        )

    def call(*arguments):
        subprocess.run([program, *arguments, "--progress", "none"], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    problems = []
    # The parameters that all runs begin with.
    call("run", "configs/mlp.yaml", "--max-steps=1", "--run-dir=first")
    first = folder / "first/checkpoints/last/params.safetensors"
    (folder / "first.safetensors").write_bytes(first.read_bytes())
    call("sweep", "run", "sweep.yaml")
    trials = ["0000", "0000-r1", "0001", "0001-r1"]
    for index, trial in enumerate(trials):
        ended = task(index)
        if ended.returncode != 0:
            problems.append(f"run {index} of the array: {ended.stderr}")
            continue
        runs = [folder / f"runs/trial-{index}", folder / f"sweeps/sweep/trials/{trial}"]
        array, sweep = ((run / "checkpoints/last/params.safetensors").read_bytes() for run in runs)
        if array != sweep:
            problems.append(f"run {index} of the array has other parameters than trial {trial} of the sweep")
    ended = task(len(trials))
    if ended.returncode == 0 or ended.stderr != "there is no run 4: the sweep has 4, counted from 0\n":
        problems.append(f"a run that the sweep does not have: {ended.returncode}, {ended.stderr}")
    (folder / "sweep.yaml").write_text(SWEEP.replace("accuracy", "acuracy"), encoding="utf-8")
    ended = task(0)
    if ended.returncode == 0 or "acuracy" not in json.loads(ended.stderr)["errors"][0]["message"]:
        problems.append(f"a sweep file with a mistake: {ended.returncode}, {ended.stderr}")
    return "\n".join(problems)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        check = {"search": check_search, "jobs": check_jobs}[sys.argv[2]]
        problem = check(program, pathlib.Path(folder))
    if problem:
        print(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
