#!/usr/bin/env python3
"""Checks scripts/gpu-minutes and scripts/gpu-report with programs that only write down how they were called, and hang,
crash and lack tools as planned.

    scripts/check_gpu_minutes.py [TESTS [PROGRAM]]

TESTS is the test program: then each of its cases [device] must be in a part, and each part must have cases. With
PROGRAM in place of all that: emulated calls of both, with examples that hang, crash and fail.
"""

import concurrent.futures
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest.mock

CLONE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CLONE / "scripts"))
sys.dont_write_bytecode = True

import gpu_runs  # noqa: E402

# Takes the place of every program. PLAN maps words of a command to what it does in place of ending well.
RECORDER = (
    f"#!{sys.executable} -SE"
    + r"""
import json, os, random, signal, subprocess, sys, time
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
line = " ".join(words)
names = {"PMAPTRAIN_TEST_GPUS", "PMAPTRAIN_GPU_GRAPHS"}
with open(os.environ["CALLS"], "a") as file:
    file.write(json.dumps([words, {name: os.environ[name] for name in sorted(names & set(os.environ))}]) + "\n")
does = next((does for part, does in json.loads(os.environ["PLAN"]).items() if part in line), "")
if "--version" in words:
    print("pmaptrain 1.0")
cases = ["one", "two", "three"]
if "--list-test-names-only" in words:
    sys.exit(print("\n".join(cases)))
if "-o" in words:
    def run_example(name):
        with open(os.environ["PMAPTRAIN_TEST_EXAMPLES"], "a+") as file:
            file.seek(0)
            if f"two: {name}" in file.read().splitlines():
                return
            file.write(f"two: {name}\n")
            file.flush()
            if does == f"hangs in {name}":
                subprocess.run(["sleep", "600"])
            if does == "is slow":
                time.sleep(1)
            if does != f"fails in {name}":
                file.write("passed\n")
    with open(words[words.index("-o") + 1], "w") as file:
        file.write("<Catch>")
        for name in [name for name in cases if name in words[1].split(",")] or cases:
            failures = ""
            if name == "two" and does.startswith("fails in"):
                failures = "<Failure>an example is wrong</Failure>"
            if name == "one" and does == "fails":
                failures = "".join(f"<Failure>shape {i} is wrong</Failure>" for i in range(30))
            file.write(f'<TestCase name="{name}">{failures}')
            file.flush()
            if name == "two" and does in ("hangs", "crashes"):
                break
            if name == "two" and does == "crashes and tells":
                file.write('<FatalErrorCondition>SIGSEGV</FatalErrorCondition><OverallResult success="false" '
                           'durationInSeconds="1"/></TestCase></Catch>')
                break
            if name == "two" and "compute-sanitizer" not in line:
                for example in ("first", "second", "third", "fourth", "fifth", "sixth"):
                    run_example(example)
            file.write(f'<OverallResult success="{str(not failures).lower()}" durationInSeconds="1"/></TestCase>')
        else:
            file.write("</Catch>")
if does == "hangs":
    subprocess.run(["sleep", "600"])
if does.startswith("crashes"):
    os.kill(os.getpid(), signal.SIGSEGV)
if does.startswith("fails"):
    sys.exit("error: as planned")
if words[0] == "ldd":
    os.makedirs(os.path.join(os.environ["XDG_CACHE_HOME"], "pmaptrain"), exist_ok=True)
    with open(os.path.join(os.environ["XDG_CACHE_HOME"], "pmaptrain", "code"), "wb") as file:
        file.write(bytes([255, 0, 128]))
if does == "tells much":
    print(random.randbytes(60000).hex())
if "devices" in words:
    print(json.dumps({"gpus": [{"name": "GPU"}] * int(os.environ["GPUS"]), "gpus_missing_because": "none"}))
if "bench" in words:
    print("note: something\n" + json.dumps({"losses": [1.0, 0.5, 0.25], "step_seconds": {"median": 0.002},
          "load_seconds": {"loading": 1.5}, "first_step_seconds": 2.5}, indent=2))
if "explain" in words:
    print("a step takes 2.00 ms; the roof is 1 GFLOP/s and 1 GB/s\n\n"
          "  fused             adam           786 k  1.97 M   500 µs     25  205.8  generated\n"
          "  conv              conv_0         217 M  18.4 M  1.00 ms     50  379.4  cuDNN\n"
          "  total                           3.81 G   177 M  1.50 ms     75")
if words[0] == "ncu":
    print("==PROF== Connected\n  adam_kernel (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
          "    Duration                    us        12.5\n    Elapsed Cycles           cycle         900")
if any("torch_peer" in word for word in words):
    for i in range(2, len(words), 4):
        print(json.dumps({"work": words[i], "variant": words[i + 1], "step_seconds": {"median": 0.001}}), flush=True)
elif any("jax_peer" in word for word in words):
    print(json.dumps({"step_seconds": {"median": 0.004}}))
"""
)


def check(is_so, what):
    if not is_so:
        sys.exit(f"scripts/check_gpu_minutes.py: {what}")


class Folder:
    """A bundle of recorders."""

    def __init__(self, root):
        self.root = root
        for name in ("bin/pmaptrain", "bin/pmaptrain_tests", "path/compute-sanitizer", "path/ldd", "path/ncu",
                     "path/nvidia-smi", "path/python3", "bench/compare"):  # fmt: skip
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(RECORDER)
            path.chmod(0o755)
        (root / "scripts").mkdir()
        for name in ("gpu-minutes", "gpu-report", "gpu_runs.py", "nvidia_libraries.py"):
            shutil.copy(CLONE / "scripts" / name, root / "scripts")
        losses = {work.name: [1.0, 0.5, 0.25] for work in gpu_runs.WORKS}
        (root / "bench/gpu_losses.json").write_text(json.dumps(losses))

    def start(self, call, *options, plan=None, planted="", gpus=1, **how):
        (self.root / "calls").write_text("")
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PMAPTRAIN_")}
        variables |= {"CALLS": str(self.root / "calls"), "GPUS": str(gpus), "PLAN": json.dumps(plan or {}),
                      "PMAPTRAIN_TEST_PLANTED": planted,
                      "PATH": f"{self.root / 'path'}:{os.environ['PATH']}"}  # fmt: skip
        command = [sys.executable, self.root / "scripts/gpu-minutes", call, "--output", self.root / "out", *options]
        return subprocess.Popen([str(word) for word in command], env=variables, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, **how)  # fmt: skip

    def run(self, call, *options, **how):
        """The exit status and what was said."""
        process = self.start(call, *options, **how)
        said = process.communicate()[0]
        return process.returncode, said

    def calls(self):
        return [json.loads(line) for line in (self.root / "calls").read_text().splitlines()]

    def archive(self, call):
        return self.root / "out" / f"gpu-minutes-{call}.tar.gz"

    def status(self, call):
        """Of each part of an archive, in its order."""
        return {part["part"]: part["status"] for part in gpu_runs.read_archive(self.archive(call))[0]["parts"]}

    def report(self, path):
        done = subprocess.run([self.root / "scripts/gpu-report", path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)  # fmt: skip
        check(done.returncode == 0, f"scripts/gpu-report ended with {done.returncode}: {done.stdout}")
        return done.stdout


def check_filters():
    """Of ncu: a slash behind the name of a range that is pushed and popped, and backslashes within. It profiles kernels
    of this project, all that a row names."""
    rows = {"generated": (True, 1), "copy": (False, 1), "8 times": (False, 1), "cuDNN, fill_b4": (False, 2),
            "attention_delta_bf16, attention_grad_q_bf16": (True, 2)}  # fmt: skip
    for implementation, wanted in rows.items():
        kernel = gpu_runs.Kernel("op", "", 1, implementation)
        check((kernel.is_ours(), kernel.launches()) == wanted, f"{implementation} is taken for {kernel.is_ours()}")
    for op, layer, wanted in (("fused", "adam", "adam: fused/"), ("copy", "", "copy/"),
                              ("matmul", "a/b[0]", r"a\/b\[0\]: matmul/")):  # fmt: skip
        found = gpu_runs.Kernel(op, layer, 1, "").nvtx_filter()
        check(found == wanted, f"the filter of {layer} {op} is {found}")


def check_budgets(module):
    """What is kept for parts is there, and cases have 20 to 30 s."""
    for call, seconds in module.SECONDS.items():
        kept = sum(part.kept for part in module.PARTS[call])
        check(kept <= seconds - {"1": 15, "2": 45, "3": 40}.get(call, 0), f"call {call} keeps {kept} s")
    cases = [part for part in module.PARTS["1"] if part.cases and not part.tool and part.limit > 15]
    check(len(cases) == 5 and all(20 <= part.kept <= part.limit <= 30 for part in cases), f"cases have {cases}")


def check_calls(folder, module):
    """Calls in which nothing is wrong."""
    expected = {call: [part.name for part in parts if not part.after] for call, parts in module.PARTS.items()}
    for call in module.CALLS:
        earlier = {"2": "1", "3": "2"}.get(call)
        status, said = folder.run(call, *(("--earlier", folder.archive(earlier)) if earlier else ()))
        check(status == 0, f"call {call} ended with {status}: {said}")
        found = folder.status(call)
        slow = [name for name in found if call == "3" and name in expected["1"]]
        check([*slow, *expected[call]] == list(found), f"call {call} ran {list(found)}")
        skipped = [name for name, is_done in found.items() if is_done == "skipped"]
        known = {"1": ["memcheck_of_failures"], "rest": ["several_gpus"]}.get(call, [])
        check(skipped == known or call == "3", f"call {call} skipped {skipped}: {said}")
        if call == "2":
            check("0.50 times pmaptrain's" in said and "2.00 times pmaptrain's" in said, f"no ratios are told: {said}")
            check("idle 25 %" in said and "generated" in said, f"no kernels are told: {said}")
        if call == "3":
            check(len(slow) == 2, f"the slowest works are {slow}")
            ncu = [words for words, variables in folder.calls() if words[0] == "ncu"]
            check("Duration us 12.5" in said and "Elapsed" not in said, f"ncu's figures are not told: {said}")
            code = gpu_runs.read_archive(folder.archive("3"))[1].get(f"{gpu_runs.CODE}/code")
            check(code == bytes([255, 0, 128]), f"what call 1 compiled comes to call 3 as {code}")
            check(len(ncu) == 3 and all({"adam: fused/", "1"} <= set(words) for words in ncu), f"ncu was called so: {ncu}")
        if call == "rest":
            check_rest(dict(zip((name for name in found if name not in skipped), folder.calls()[-len(found) + 1 :])))
    check(module.SECONDS["1"] <= 270 and module.SECONDS["2"] <= 180 and module.SECONDS["3"] <= 90, "a call is too long")


def check_rest(called):
    for name, (words, variables) in called.items():
        is_sanitizer = words[0] == "compute-sanitizer"
        check(is_sanitizer == name.endswith("check"), f"{name} called {words}")
        check(not is_sanitizer or words[2] == name and "~[libraries]" in " ".join(words), f"{name} runs {words}")
        check((variables.get("PMAPTRAIN_GPU_GRAPHS") == "off") == (name == "without_graphs"), f"{name} has {variables}")
    kinds = {name: variables.get("PMAPTRAIN_TEST_GPUS") for name, (_, variables) in called.items()}
    check({"without_graphs": "cuda:one", "virtual_gpus": "cuda:virtual"}.items() <= kinds.items(), f"{kinds}")


def check_failures(folder):
    """Hangs, crashes and a missing tool cost their own parts alone, and the next call begins with them."""
    (folder.root / "path/ncu").rename(folder.root / "ncu")
    plan = {"[device][libraries]": "hangs", "[device][kernels]": "fails", "[device][one]*JAX*": "crashes",
            "bench configs/linear_regression.yaml": "hangs"}  # fmt: skip
    begin = time.monotonic()
    limit = 3  # a program that does not hang may take a second to begin on a busy machine
    status, said = folder.run("1", "--limit", str(limit), plan=plan)
    (folder.root / "ncu").rename(folder.root / "path/ncu")
    found = folder.status("1")
    failed = [name for name, is_done in found.items() if is_done == "failed"]
    works = ["linear_regression", "linear_regression_without_graphs"]
    check(status == 1 and failed == [*works, "kernels", "libraries", "parity"], f"{failed} failed: {said}")
    check(found["ncu"] == "skipped" or shutil.which("ncu"), f"without ncu: {said}")
    check(time.monotonic() - begin < limit * len(found) + 30, "hangs were not cut off")
    for part in ("not done within", "ended by signal 11", "failed: two", "it did not end", "shape 29 is wrong"):
        check(part in said, f"'{part}' is not told: {said}")
    check(
        any("memcheck" in words and "one,two" in words and variables["PMAPTRAIN_TEST_GPUS"] == "cuda:one"
            for words, variables in folder.calls()),
        "memcheck_of_failures did not run",
    )
    running = subprocess.run(["pgrep", "-f", str(folder.root / "bin")], stdout=subprocess.PIPE, text=True).stdout
    check(not running, f"processes were left: {running}")
    status, said = folder.run(
        "2", "--earlier", folder.archive("1"), "--part", "linear_regression", "--part", "kernels", "--part", "runs"
    )
    check(
        status == 0 and list(folder.status("2")) == ["linear_regression", "kernels"],
        f"call 2 repeats {folder.status('2')}: {said}",
    )
    words = next(words for words, _ in folder.calls() if words[0] == "pmaptrain_tests")
    check(words[1] == "one", f"call 2 repeats cases that have passed: {words}")
    status, said = folder.run("1", "--part", "cnn", plan={"bench": "fails"})
    check("error: as planned" in said, f"what a program said is not told: {said}")
    losses = folder.root / "bench/gpu_losses.json"
    kept = losses.read_text()
    losses.write_text(json.dumps({"cnn": [1.0, 0.6, 0.25]}))
    status, said = folder.run("1", "--part", "cnn")
    check(
        status == 1 and "the loss of step 2 is 0.5, the CPU's is 0.6" in said, f"wrong losses end with {status}: {said}"
    )
    losses.write_text(kept)


def check_hanging_example(folder):
    """What comes after an example that hangs is run: in its case, and after its case. So is what follows a crash."""
    plan = {"[device][kernels]": "hangs in second", "[device][one]*JAX*": "crashes",
            "[device][libraries]": "crashes and tells"}  # fmt: skip
    parts = [word for name in ("kernels", "libraries", "parity") for word in ("--part", name)]
    status, said = folder.run("1", *parts, "--patience", "2", plan=plan)
    done = {part["part"]: part for part in gpu_runs.read_archive(folder.archive("1"))[0]["parts"]}
    crash = "it did not end: ended by signal 11"
    for name, failures in (("kernels", ["it did not end: no progress for 2 s in two: second"]),
                           ("libraries", ["SIGSEGV", crash]), ("parity", [crash])):  # fmt: skip
        cases = {case["name"]: case for case in done[name]["cases"]}
        found = {name: case["status"] for name, case in cases.items()}
        check(found == {"one": "passed", "two": "failed", "three": "passed"}, f"after {failures}: {found}")
        check(cases["two"]["failures"] == failures, f"{failures} is told as {cases['two']['failures']}")
    check(done["kernels"]["seconds"] < 20, f"an example that hangs took {done['kernels']['seconds']} s")
    called = [words[1] for words, _ in folder.calls() if words[0] == "pmaptrain_tests" and "-o" in words]
    check(called[1::2] == ["two,three", "three", "three"], f"the tests were called with {called}")
    check("three" not in said and "two: second" in said, f"an example that hangs is told so: {said}")
    # Where no time is left, the next call runs what came after.
    status, said = folder.run("1", *parts, "--limit", "3", plan={"[device][kernels]": "hangs"})
    check("1 failed, 1 not run" in said, f"cases that were not run are not told: {said}")
    status, said = folder.run("2", "--earlier", folder.archive("1"), "--part", "kernels")
    check(status == 0 and folder.calls()[-1][0][1] == "two,three", f"call 2 repeats {folder.calls()[-1]}: {said}")


def check_going_on(folder):
    """The next call runs the examples that have failed, then those that had no time, and none that has passed."""

    def call(number, does, *options):
        earlier = ("--earlier", folder.archive("1")) if number == "2" else ()
        status, said = folder.run(number, "--part", "parity", *options, *earlier, plan={"pmaptrain_tests": does})
        done, files = gpu_runs.read_archive(folder.archive(number))
        (folder.root / "examples").write_text(files["parity.examples"])
        begun, passed = gpu_runs.examples_of(folder.root / "examples")
        case = next(case for case in done["parts"][0]["cases"] if case["name"] == "two")
        return case["status"], [name.removeprefix("two: ") for name in begun], len(passed), said

    names = ["first", "second", "third", "fourth", "fifth", "sixth"]
    status, begun, passed, said = call("1", "is slow", "--limit", "4")
    check(status == "failed" and passed < len(begun) < len(names) - 1, f"slow examples: {begun} began: {said}")
    status, begun, passed, said = call("2", "is slow", "--limit", "4")
    check(status == "passed" and begun == names and passed == len(names), f"slow ones go on with {begun}: {said}")
    status, begun, passed, said = call("1", "hangs in second", "--limit", "3", "--patience", "20")
    check(status == "failed" and begun == names[:2], f"what hangs began {begun}: {said}")
    status, begun, passed, said = call("2", "hangs in second", "--limit", "4", "--patience", "20")
    check(status == "failed" and begun == names and passed == 5, f"behind what hangs again: {begun}, {passed}: {said}")
    check("had failed before" in said and "two: second" in said, f"what hangs again is told so: {said}")
    call("1", "fails in third")
    status, begun, passed, said = call("2", "")
    check(status == "passed" and begun == [*names[:2], *names[3:], "third"], f"one that failed: {begun}: {said}")


def check_kept_time(folder):
    """Where every work hangs, in each call, test cases, PyTorch, JAX and ncu still run. On a machine that is so busy
    that a program takes a second to begin, only a slower rehearsal tells."""
    problems = []
    for pace in (0.08, 0.3):
        problems = list(problems_of_kept_time(folder, pace))
        if not problems:
            return
    check(False, problems[0])


def problems_of_kept_time(folder, pace):
    plan = {"ncu": "", "bench configs": "hangs"}
    for call, seconds, wanted in (("1", 270, ["kernels", "libraries", "runs", "networks", "parity", "ncu"]),
                                  ("2", 180, ["explain_gpt2", "torch", "jax_linear_regression", "jax_cnn"]),
                                  ("3", 90, ["kernel_0", "kernel_1", "kernel_2"])):  # fmt: skip
        earlier = ("--earlier", folder.archive(str(int(call) - 1))) if call != "1" else ()
        begin = time.monotonic()
        status, said = folder.run(call, "--pace", pace, *earlier, plan=plan)
        took, found = time.monotonic() - begin, folder.status(call)
        works = {work.name: found.get(work.name) for work in gpu_runs.WORKS}
        # At this pace the start of a later call may take what these have there.
        if "passed" in works.values() or call == "1" and "skipped" in works.values():
            yield f"in call {call} works that hang are {works}: {said}"
        if any(found[name] != "passed" for name in wanted):
            yield f"call {call} where all works hang: {said}"
        if took > pace * seconds + 5:
            yield f"call {call} took {took} s"


def check_killed(folder):
    """An archive of a call that is killed is whole, and the next call runs what that one has not."""
    process = folder.start("1", plan={"configs/resnet18.yaml": "hangs"}, start_new_session=True)
    while "resnet18" not in (folder.root / "calls").read_text():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    for line in subprocess.run(["pgrep", "-f", str(folder.root / "bin")], stdout=subprocess.PIPE).stdout.split():
        os.killpg(int(line), signal.SIGKILL)  # what the killed call had started
    said = folder.report(folder.archive("1"))
    check("ended while resnet18_mixed_1 ran" in said and "passed  cnn_mixed" in said, f"a killed call tells {said}")
    status, said = folder.run("2", "--earlier", folder.archive("1"))
    found = list(folder.status("2"))
    check(
        status == 0 and found[:2] == ["resnet18_mixed_1", "resnet18_mixed_8"], f"after a killed call: {found}, {said}"
    )
    whole = folder.archive("2").read_bytes()
    cut = folder.root / "cut.tar.gz"
    cut.write_bytes(whole[: len(whole) * 9 // 10])
    check("passed  resnet18_mixed_8" in folder.report(cut), "an archive that is cut off is not read")


def check_full(folder):
    """Where the output has no room, the call goes on, and an archive is whole."""
    status, said = folder.run("1", plan={"nvidia-smi": "tells much", "[device][libraries]": "tells much"},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000)))  # fmt: skip
    found = folder.status("1")
    check(list(found)[-1] == "memcheck_of_failures" and found["parity"] == "passed", f"on a full disk: {found}, {said}")
    check(folder.report(folder.archive("1")), "an archive of a full disk is not read")
    shutil.rmtree(folder.root / "out")
    (folder.root / "out").write_text("a file")
    status, said = folder.run("1")
    check(status == 1 and "could not be written" in said and "passed  parity" in said, f"without a folder: {said}")
    (folder.root / "out").unlink()


def check_without_gpu(folder):
    (folder.root / "path/nvidia-smi").unlink()
    if shutil.which("nvidia-smi"):
        return
    status, said = folder.run("1", gpus=0)
    check(status == 0 and "there is no GPU to test" in said, f"without a GPU: {status}, {said}")
    check(len(folder.calls()) < 5, f"without a GPU: {folder.calls()}")
    status, said = folder.run("1", "--emulated")
    check(status == 0 and all("mesh.backend=cuda" not in words for words, _ in folder.calls()), f"emulated: {said}")


def check_cases(tests, module):
    def names(cases):
        # Catch2 2 ends with their number.
        command = [tests, "--list-test-names-only", cases]
        return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=CLONE).stdout.splitlines())

    cases = {
        (call, part.name): names(part.cases) for call, parts in module.PARTS.items() for part in parts if part.cases
    }
    check(all(cases.values()), f"parts have no cases: {[name for name, found in cases.items() if not found]}")
    missing = names("[device]") - set.union(*cases.values())
    check(not missing, f"no part runs {sorted(missing)}")
    check(not names("[device][libraries]") & cases["rest", "memcheck"], "compute-sanitizer runs libraries")


def check_peers(module):
    """What the peers make of their arguments: their own code runs, on frameworks that do nothing."""

    def measure(steps, seconds, *_):
        steps(1)
        return {"step_seconds": {"median": 1}, "seconds": seconds}

    reports = []
    torch, jax = unittest.mock.MagicMock(__version__="0"), unittest.mock.MagicMock(__version__="0")
    torch.nn.Module = type("Module", (), {"__getattr__": lambda *_: unittest.mock.MagicMock(),
                                          "__call__": unittest.mock.MagicMock()})  # fmt: skip
    jax.jit = lambda step, **_: lambda state, *batch: (state, 0.5)
    jax.device_put = lambda batch: batch
    modules = {"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional, "jax": jax,
               "jax.numpy": jax.numpy, "numpy": unittest.mock.MagicMock(),
               "measure": types.SimpleNamespace(measure=measure, report=reports.append)}  # fmt: skip
    peers = str(CLONE / "bench/peers")
    with unittest.mock.patch.dict(sys.modules, modules), unittest.mock.patch.dict(os.environ):
        for works, command in ((["torch"], module.Call.torch_commands(None)[0]),
                               *(([work], module.Call.jax_commands(None, work)[0])
                                 for work in gpu_runs.WORKS if work.jax)):  # fmt: skip
            sys.path.insert(0, peers)
            with unittest.mock.patch.object(sys, "argv", [str(word) for word in command[1:]]):
                runpy.run_path(str(command[1]), run_name="__main__")
            sys.path.remove(peers)
    asked = [work.torch.split()[:2] for work in gpu_runs.WORKS if work.torch]
    told = [[report.get("work"), report.get("variant")] for report in reports[: len(asked)]]
    check(told == asked and len(reports) == len(asked) + 2, f"of {asked} the peers told {reports}")
    check(all(report.get("seconds") == 1 for report in reports), f"the peers told {reports}")


def check_planted(folder, tests, program):
    """Emulated calls of the real programs: some examples hang, crash and fail, nvidia-smi is missing, and there is no
    room. The second call runs only those examples again."""
    for name, path in (("bin/pmaptrain", program), ("bin/pmaptrain_tests", tests),
                       *((name, CLONE / name) for name in ("configs", "datasets", "tests"))):  # fmt: skip
        (folder.root / name).unlink(missing_ok=True)
        (folder.root / name).symlink_to(path)
    (folder.root / "path/nvidia-smi").unlink()
    (folder.root / "bench/gpu_losses.json").write_text((CLONE / "bench/gpu_losses.json").read_text())
    names = ["card", "linear_regression", "libraries", "parity"]
    options = ["--emulated", "--patience", "8", *(word for name in names for word in ("--part", name))]
    hangs, crashes, fails = "mlp on 1 GPUs", "kernel_shape=[3,2,8,16]", "cnn on 1 GPUs"

    def seen(call):
        document, files = gpu_runs.read_archive(folder.archive(call))
        (folder.root / "examples").write_text(files["libraries.examples"] + files["parity.examples"])
        found = {part["part"]: part["status"] for part in document["parts"]}
        return found, gpu_runs.examples_of(folder.root / "examples")

    status, said = folder.run("1", *options, planted=f"hangs {hangs}; crashes {crashes}; fails {fails}")
    found, (begun, passed) = seen("1")
    wanted = {"linear_regression": "passed", "libraries": "failed", "parity": "failed"}
    check(wanted.items() <= found.items() and (found["card"] == "skipped" or shutil.which("nvidia-smi")), said)
    for words in ("no progress for 8 s in the loss", f": {hangs}", "SIGSEGV", "ended by signal 11 in a ", "as planted"):
        check(words in said, f"'{words}' is not told: {said}")
    failed = [example for example in begun if example not in passed]
    check(len(failed) >= 3 and all(any(words in example for words in (hangs, crashes, fails)) for example in failed),
          f"{failed} failed: {said}")  # fmt: skip
    status, said = folder.run("2", *options, "--earlier", folder.archive("1"))
    found, (again, passed) = seen("2")
    check(status == 0 and found == {"libraries": "passed", "parity": "passed"}, f"call 2 of {found}: {said}")
    check(set(begun) == set(passed) == set(again) and len(again) == len(begun), f"call 2 runs {again}")
    # Of a work too: no computer does its steps in so short a time.
    status, said = folder.run("1", "--emulated", "--part", "resnet18_mixed_8", "--limit", "0.2")
    check(folder.status("1") == {"resnet18_mixed_8": "failed"} and "not done within" in said, f"a work hangs: {said}")
    (folder.root / "full").write_text("")
    status, said = folder.run("1", "--emulated", "--part", "linear_regression", "--output", folder.root / "full")
    check(status == 1 and "could not be written" in said and "passed  linear" in said, f"without room: {said}")


def load_module():
    loader = importlib.machinery.SourceFileLoader("gpu_minutes", str(CLONE / "scripts/gpu-minutes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_minutes", loader))
    loader.exec_module(module)
    return module


def main():
    module = load_module()
    check_filters()
    check_budgets(module)
    check_peers(module)
    paths = [pathlib.Path(word).resolve() for word in sys.argv[1:]]
    if paths:
        check_cases(paths[0], module)
    checks = [lambda folder: check_calls(folder, module), check_failures, check_hanging_example, check_going_on,
              check_kept_time, check_killed, check_full, check_without_gpu]  # fmt: skip
    if len(paths) > 1:
        checks = [lambda folder: check_planted(folder, *paths)]
    # Most of the time they wait.
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = [pool.submit(run, Folder(pathlib.Path(root) / str(i))) for i, run in enumerate(checks)]
        for done in running:
            done.result()
    return 0


if __name__ == "__main__":
    sys.exit(main())
