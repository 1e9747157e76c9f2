#!/usr/bin/env python3
"""Checks what scripts/test-gpu runs, in which order and how, with programs that only write down how they were called.

    scripts/check_test_gpu.py [TESTS]

TESTS is the test program: then each of its cases [gpu] must be in a step, and each step must have cases.
"""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CLONE = pathlib.Path(__file__).resolve().parent.parent

# Takes the place of every program. Of the test program it also writes the report: two cases, of which one fails where
# FAILS is part of the command.
RECORDER = f"#!{sys.executable} -SE" + r"""
import json, os, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
if words[:2] == ["pmaptrain", "--version"]:
    print("pmaptrain 1.0")
elif "--json" in words:
    print(json.dumps({"gpus": [{"name": "GPU"}] * int(os.environ["GPUS"]), "gpus_missing_because": "none"}))
else:
    names = {"PMAPTRAIN_TEST_GPUS", "PMAPTRAIN_GPU_GRAPHS"}
    variables = {name: os.environ[name] for name in sorted(names & set(os.environ))}
    with open(os.environ["CALLS"], "a") as file:
        file.write(json.dumps([words, variables]) + "\n")
if "-o" in words:
    fails = os.environ.get("FAILS") in words
    failures = "".join(f"<Failure>shape {i} is wrong</Failure>" for i in range(30)) if fails else ""
    with open(words[words.index("-o") + 1], "w") as file:
        file.write(f'<Catch><TestCase name="one">{failures}<OverallResult success="{str(not fails).lower()}" '
                   'durationInSeconds="1"/></TestCase></Catch>')
    sys.exit(1 if fails else 0)
"""


class Folder:
    """A bundle of recorders."""

    def __init__(self, root):
        self.root = root
        for name in ("bin/pmaptrain", "bin/pmaptrain_tests", "bench/compare", "path/compute-sanitizer"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(RECORDER)
            path.chmod(0o755)
        (root / "scripts").mkdir()
        for name in ("test-gpu", "nvidia_libraries.py"):
            shutil.copy(CLONE / "scripts" / name, root / "scripts")

    def run(self, *options, gpus=1, fails=""):
        """The exit status, what was said, and the calls with their variables."""
        calls = self.root / "calls"
        calls.write_text("")
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PMAPTRAIN_")}
        variables |= {"CALLS": str(calls), "GPUS": str(gpus), "FAILS": fails,
                      "PATH": f"{self.root / 'path'}:{os.environ['PATH']}"}  # fmt: skip
        command = [sys.executable, self.root / "scripts/test-gpu", *options]
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout, [json.loads(line) for line in calls.read_text().splitlines()]

    def report(self):
        return json.loads((self.root / "build/gpu/report.json").read_text())

    def forget_report(self):
        shutil.rmtree(self.root / "build", ignore_errors=True)


def check(is_so, what):
    if not is_so:
        sys.exit(f"scripts/check_test_gpu.py: {what}")


def listed(folder):
    """The minutes of each step, in the list's order."""
    status, said, calls = folder.run("--list")
    check(status == 0 and not calls, f"--list ran something or failed: {said}")
    lines = [line.split() for line in said.splitlines()]
    check(all(line[2] == "min" for line in lines[:-1]) and lines[-1][-2:] == ["in", "all"], f"--list says {said}")
    return {line[0]: float(line[1]) for line in lines[:-1]}


def check_order(folder, minutes):
    order = list(minutes)
    found = ("kernels", "without_graphs", "graphs", "virtual_gpus", "several_gpus", "figures")
    check(list(found) == sorted(found, key=order.index), f"the order is {order}")
    check(all(each < 9 for each in minutes.values()), f"a step does not fit into a call of ten minutes: {minutes}")
    tools = ("memcheck", "racecheck", "initcheck", "synccheck")
    check(all(minutes[tool] < 3 for tool in tools), f"a step of compute-sanitizer takes too long: {minutes}")
    for gpus in (1, 2):
        folder.forget_report()
        status, said, calls = folder.run(gpus=gpus)
        steps = folder.report()["steps"]
        check(status == 0, f"a plain run ended with {status}: {said}")
        check([step["step"] for step in steps] == order, f"a plain run did {steps}, where --list says {order}")
        skipped = [step["step"] for step in steps if step["status"] == "skipped"]
        check(skipped == (["several_gpus"] if gpus == 1 else []), f"with {gpus} GPUs {skipped} were skipped")
        check(len(calls) == len(order) - len(skipped), f"a plain run called {calls}")
    return dict(zip(order, calls))


def check_calls(called):
    for name, (words, variables) in called.items():
        is_sanitizer = words[0] == "compute-sanitizer"
        check(is_sanitizer == name.endswith("check"), f"{name} called {words}")
        if is_sanitizer:
            check(words[2] == name and "~[libraries]" in words[6], f"{name} runs {words}, kernels of libraries too")
        off = variables.get("PMAPTRAIN_GPU_GRAPHS") == "off"
        check(off == (name == "without_graphs"), f"{name} has {variables}")
    kinds = {name: variables.get("PMAPTRAIN_TEST_GPUS") for name, (_, variables) in called.items()}
    expected = {"devices": None, "graphs": "cuda:one", "without_graphs": "cuda:one", "virtual_gpus": "cuda:virtual",
                "several_gpus": "cuda:several", "figures": None}  # fmt: skip
    check(expected.items() <= kinds.items(), f"the steps take these GPUs: {kinds}")
    check(called["graphs"][0] == [*called["without_graphs"][0][:-1], called["graphs"][0][-1]],
          "runs with and without graphs are of other cases")  # fmt: skip
    works = [words[words.index("--work") + 1] for words, _ in called.values() if "--work" in words]
    sys.path.insert(0, str(CLONE / "bench"))
    import gpu

    check(sorted(works) == sorted(gpu.WORKS), f"JAX and PyTorch are compared on {works}")


def check_report(folder):
    folder.forget_report()
    folder.run("--step", "graphs")
    status, said, calls = folder.run("--step", "libraries", fails="[gpu][libraries]")
    check(status == 1 and len(calls) == 1, f"a step with a case that fails ended with {status}: {said}")
    check("shape 0 is wrong" in said and "shape 29 is wrong" in said, f"a failure hides others: {said}")
    check("graphs (" not in said, f"a step that this call did not run is told: {said}")
    steps = [(step["step"], step["status"]) for step in folder.report()["steps"]]
    check(steps == [("libraries", "failed"), ("graphs", "passed")], f"the report has {steps}")
    folder.run("--step", "kernels", gpus=2)
    steps = [step["step"] for step in folder.report()["steps"]]
    check(steps == ["kernels"], f"a report of other GPUs has {steps}")
    status, said, calls = folder.run(gpus=0)
    check(status == 0 and not calls and "there is no GPU to test" in said, f"without a GPU: {status}, {calls}, {said}")


def check_cases(tests):
    def names(cases):
        # Catch2 2 ends with their number.
        command = [tests, "--list-test-names-only", cases]
        return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=CLONE).stdout.splitlines())

    loader = importlib.machinery.SourceFileLoader("test_gpu", str(CLONE / "scripts/test-gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_gpu", loader))
    sys.path.insert(0, str(CLONE / "scripts"))
    loader.exec_module(module)
    cases = {step.name: names(step.cases) for step in module.STEPS if step.cases}
    check(all(cases.values()), f"steps have no cases: {[name for name, found in cases.items() if not found]}")
    missing = names("[gpu]") - set.union(*cases.values())
    check(not missing, f"no step runs {sorted(missing)}")
    of_libraries = names("[gpu][libraries]") & cases["memcheck"]
    check(not of_libraries, f"compute-sanitizer runs libraries: {of_libraries}")


def main():
    if len(sys.argv) > 1:
        check_cases(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as root:
        folder = Folder(pathlib.Path(root))
        minutes = listed(folder)
        check_calls(check_order(folder, minutes))
        check_report(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
