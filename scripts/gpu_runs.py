"""What scripts/gpu-minutes runs and keeps: works, commands with a limit of time, Catch2's reports, the archive."""

import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path
from typing import NamedTuple

import nvidia_libraries

ROOT = Path(__file__).resolve().parent.parent
SHOWN_FAILURES = 100  # of a case: a failing shape is not to hide the others
KEPT_OUTPUT = 200_000  # characters of a log in the archive: its begin and its end
MOST_CODE = 8 << 20  # bytes; the archive is written after each part, which takes time of the call
CODE = "cache/pmaptrain"  # where the program keeps what it has compiled (core/runtime/gpu/disk_cache.cpp)


class Work(NamedTuple):
    """Steps that are run here, on the CPU, and by other frameworks."""

    name: str
    config: str
    settings: tuple
    devices: int = 8
    steps: int = 0  # to be timed; 0: as many as bench takes
    nearness: float = 1e-4  # how near the losses are to the CPU's, relative
    torch: str = ""  # the words of bench/peers/torch_peer.py: WORK VARIANT DEVICES
    jax: str = ""
    limit: float = 30
    kept: float = 10  # seconds, however long others take
    small: tuple = ()  # settings with which the CPU takes seconds, for a rehearsal; its losses are others

    def command(self, program, backend, folder, steps=None):
        command = [program, "bench", self.config, "--devices", self.devices, "--json", *self.options(backend, folder)]
        steps = steps or self.steps
        return [*command, "--steps", steps] if steps else command

    def options(self, backend, folder):
        settings = [f"mesh.backend={backend}", *self.settings]
        words = [word.replace("TOKENS", str(folder / "tokens.bin")) for each in settings for word in ("--set", each)]
        return [*words, "--workers", 1] if backend == "cuda" else words


MIXED = "precision=mixed_bfloat16"
FEW_IMAGES = ("data.source.synthetic_images.train=1024", "data.source.synthetic_images.test=128")
RESNET = ("configs/resnet18.yaml", (*FEW_IMAGES, MIXED, "optimizer.learning_rate=0.01"))
SMALL_RESNET = ("data.batch_size=16",)
TEXT = "data.source.text"
BLOCK = "model.layers.2.repeat"
SMALL_GPT2 = ("data.batch_size=2", f"{TEXT}.length=64", "model.layers.1.position_embedding.length=64",
              "model.layers.0.embedding.features=48", f"{BLOCK}.times=2",
              f"{BLOCK}.layers.1.residual.layers.1.dense.features=96",
              f"{BLOCK}.layers.1.residual.layers.3.dense.features=48")  # fmt: skip
WORKS = (
    Work("linear_regression", "configs/linear_regression.yaml", (), kept=8,
         torch="linear_regression graph-cuda 8", jax="linear_regression jit-cuda 8"),
    Work("cnn", "configs/cnn.yaml", FEW_IMAGES, torch="cnn graph-channels_last-cuda 1", jax="cnn jit-cuda 1"),
    Work("cnn_mixed", "configs/cnn.yaml", (*FEW_IMAGES, MIXED), nearness=1e-2,
         torch="cnn graph-channels_last-autocast-cuda 1"),
    Work("resnet18_mixed_1", *RESNET, devices=1, nearness=1e-2, kept=14, small=SMALL_RESNET,
         torch="resnet18 graph-channels_last-autocast-cuda 1"),
    Work("resnet18_mixed_8", *RESNET, nearness=1e-2, kept=14, small=SMALL_RESNET),
    Work("gpt2", "configs/gpt2.yaml",
         ("data.batch_size=8", "data.microbatches=1", f"{TEXT}.train=TOKENS", f"{TEXT}.validation=TOKENS",
          "optimizer.learning_rate=0.0006"),
         devices=1, steps=20, nearness=1e-2, torch="gpt2 compile-autocast-cuda 1", limit=45, kept=24,
         small=SMALL_GPT2),
)  # fmt: skip


LOSSES = "bench/gpu_losses.json"
TOKENS = 8 * 1024 * 2 + 1  # of a file that is made: two batches


def write_tokens(folder):
    """Token numbers below 50176, two bytes each, which are the same everywhere."""
    values = hashlib.shake_256(b"tokens").digest(TOKENS)
    (folder / "tokens.bin").write_bytes(b"".join((value * 196).to_bytes(2, "little") for value in values))


def compute_losses(say):
    """The name of each work and its losses on the CPU."""
    program, _ = built()
    with tempfile.TemporaryDirectory() as folder:
        write_tokens(Path(folder))
        for work in WORKS:
            command = [str(word) for word in work.command(program, "cpu", Path(folder), steps=1)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            if done.returncode != 0:
                sys.exit(f"scripts/gpu-minutes: {' '.join(command)} ended with {done.returncode}: {done.stdout}")
            losses = json.loads(done.stdout)["losses"]
            say(f"{work.name}: {losses}")
            yield work.name, losses


def carried_losses(emulated):
    """The CPU's; in a rehearsal those of the works that are not small then."""
    path = ROOT / LOSSES
    losses = json.loads(path.read_text()) if path.exists() else {}
    small = {work.name for work in WORKS if emulated and work.small}
    return {name: values for name, values in losses.items() if name not in small}


def step_seconds(parts):
    """By the name of a work: who ran it, this program first, and the seconds of a step. `parts` are by name."""
    found = {}
    torch = {(peer.get("work"), peer.get("variant")): peer for peer in parts.get("torch", {}).get("documents", [])}
    for work in WORKS:
        ran = {"pmaptrain": parts.get(work.name, {}).get("documents", []),
               "PyTorch": [torch.get(tuple(work.torch.split()[:2]), {})],
               "JAX": parts.get(f"jax_{work.name}", {}).get("documents", [])}  # fmt: skip
        rows = [(who, documents[-1]["step_seconds"]["median"]) for who, documents in ran.items()
                if documents and "step_seconds" in documents[-1]]  # fmt: skip
        if rows:
            found[work.name] = rows
    return found


def built():
    """The program and the tests."""
    places = [(ROOT / "bin" / "pmaptrain", ROOT / "bin" / "pmaptrain_tests")]
    for preset in ("cuda", "release"):
        folder = ROOT / "build" / preset
        places.append((folder / "pmaptrain", folder / "tests" / "pmaptrain_tests"))
    for program, tests in places:
        if program.exists() and tests.exists():
            return program, tests
    sys.exit("scripts/gpu-minutes: no program and tests were found; build them with scripts/build cuda")


def environment(program):
    variables = nvidia_libraries.environment()
    variables["PMAPTRAIN_BIN"] = str(program)
    module = ROOT / "build" / "cuda" / "libpmaptrain_cuda.so"
    if program.parent.name == "release" and module.exists():
        variables.setdefault("PMAPTRAIN_CUDA_MODULE", str(module))
    return variables


def tool(name):
    """The path of a tool of CUDA's toolkit; its name where it is not installed."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin") or name


def run(command, variables, limit, log, stop=lambda: ""):
    """Runs a command and adds what it prints to a file. Returns why it failed: nothing where it did not. `stop` is
    asked twice a second, and says why the command is to end."""
    with open(log, "a") as file:
        file.write(f"$ {' '.join(str(part) for part in command)}\n")
        file.flush()
        try:
            # A group of its own: what the command starts is to end with it.
            process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=subprocess.STDOUT,
                                       env=variables, cwd=ROOT, start_new_session=True)  # fmt: skip
        except OSError as error:
            return f"{command[0]} does not start: {error.strerror}"
        status, because = wait(process, limit, stop)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if status is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)  # a driver may keep it longer
            return because
    if status == 0:
        return ""
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"


def wait(process, limit, stop):
    """The exit status, or why there is none."""
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > 0:
        if because := stop():
            return None, because
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, 0.5)), ""
    return None, f"not done within {limit:.0f} s"


def documents(text):
    """The JSON objects in a log; each begins a line."""
    decoder, found, end = json.JSONDecoder(), [], 0
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        if match.start() >= end:
            with contextlib.suppress(ValueError):
                document, end = decoder.raw_decode(text, match.start())
                found.append(document)
    return found


class Kernel(NamedTuple):
    op: str
    layer: str
    seconds: float
    implementation: str

    def nvtx_filter(self):
        """For ncu: the kernels within the range of this name, which a thread pushes and pops, as the slash at the end
        says. What ncu takes for its own in a name has a backslash (Nsight Compute CLI, NVTX Filtering)."""
        name = f"{self.layer}: {self.op}" if self.layer else self.op
        return re.sub(r"([@,\[\]/*+])", r"\\\1", name) + "/"

    def is_ours(self):
        """A row "8 times" is a loop around kernels that have rows of their own."""
        return not re.match(r"cuDNN|cuBLASLt|copy|\d+ times$", self.implementation)

    def launches(self):
        return self.implementation.count(", ") + 1


def kernels_of(text):
    """What `explain --kernels --measure` prints: the seconds of a step, and its kernels, the longest first."""
    step = re.search(r"^a step takes ([\d.,]+ \S+?);", text, re.MULTILINE)
    kernels = []
    for line in text.splitlines():
        # op, layer, FLOP, bytes, time, share of the step, share of the roof, implementation
        fields = re.split(r"\s{2,}", line.strip())
        if len(fields) > 6 and fields[0] != "total" and (seconds := seconds_of(fields[-4])) is not None:
            kernels.append(Kernel(fields[0], fields[1] if len(fields) > 7 else "", seconds, fields[-1]))
    return step and seconds_of(step[1]), sorted(kernels, key=lambda kernel: -kernel.seconds)


def seconds_of(text):
    found = re.fullmatch(r"([\d.,]+) (ns|µs|ms|s)", text)
    return found and float(found[1].replace(",", "")) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[found[2]]


def cases_of(path):
    """The cases in Catch2's XML. If a process was killed, its last case has no result."""
    cases, open_case = [], None
    parser = ElementTree.XMLPullParser(["start", "end"])
    events = []
    with contextlib.suppress(ElementTree.ParseError, FileNotFoundError):
        parser.feed(path.read_text(errors="replace"))
        events = list(parser.read_events())
    for event, element in events:
        if element.tag != "TestCase":
            continue
        open_case = element if event == "start" else None
        if event == "end":
            cases.append(case_of(element))
    if open_case is not None:
        cases.append(case_of(open_case))
    return cases


def case_of(element):
    result = element.find("OverallResult")
    passed = result is not None and result.get("success") == "true"
    notes = [" ".join((note.text or "").split()) for note in element.iter("Warning")]
    failures = [" ".join("".join(found.itertext()).split())
                for tag in ("Expression", "Failure", "Exception", "FatalErrorCondition")
                for found in element.iter(tag) if found.get("success") != "true"]  # fmt: skip
    skipped = any(note.startswith("skipped:") for note in notes)
    return {
        "name": element.get("name"),
        "status": "failed" if not passed else "skipped" if skipped else "passed",
        "seconds": float(result.get("durationInSeconds", 0)) if result is not None else None,
        "notes": notes,
        "failures": failures[:SHOWN_FAILURES],
    }  # fmt: skip


def not_run(name):
    return {"name": name, "status": "not run", "seconds": None, "notes": [], "failures": []}


def is_whole(path):
    """Whether the process that wrote Catch2's XML came to its end."""
    try:
        ElementTree.parse(path)
    except (ElementTree.ParseError, FileNotFoundError):
        return False
    return True


def merged(earlier, later):
    """Of a case that has not ended, and of a process that has gone on with it."""
    notes = [note for note in later["notes"] if note not in earlier["notes"]]
    return later | {"status": "failed", "notes": earlier["notes"] + notes,
                    "failures": (earlier["failures"] + later["failures"])[-SHOWN_FAILURES:]}  # fmt: skip


def lines_of(path):
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def write_lines(path, lines, mode="w"):
    with open(path, mode) as file:
        file.writelines(f"{line}\n" for line in lines)


def examples_of(path):
    """Those that have begun, and those that have passed, in the file that the tests write (tests/gpu/gpus.h)."""
    begun, passed = [], []
    for line in lines_of(path):
        if line != "passed":
            begun.append(line)
        elif begun:
            passed.append(begun[-1])
    return begun, passed


def write_passed(path, examples):
    """So that the tests leave them out."""
    write_lines(path, (line for example in examples for line in (example, "passed")))


def as_filter(names):
    """Selects the cases with these names, in Catch2's words."""
    return ",".join("".join(f"\\{letter}" if letter in ',[]"\\*' else letter for letter in name) for name in names)


class Archive:
    """The document of a call and its files, as one file that is replaced as a whole: whenever the call is killed, what
    is there can be read."""

    def __init__(self, path, folder, document):
        self.path, self.folder, self.document = path, folder, document

    def save(self):
        """Returns why the archive could not be written: nothing where it was. Where there is no room for the files, the
        document goes without them; where there is none for it either, the earlier archive stays."""
        files = [file for file in sorted(self.folder.iterdir()) if file.suffix in (".txt", ".json", ".examples")]
        return self.write([*files, *self.code()]) and self.write(files) and self.write([])

    def code(self):
        """What was compiled, the oldest first, which is the works': as much as may travel."""
        files = sorted(self.folder.glob(f"{CODE}/*"), key=lambda file: file.stat().st_mtime)
        sizes = itertools.accumulate(file.stat().st_size for file in files)
        return [file for file, size in zip(files, sizes) if size <= MOST_CODE]

    def write(self, files):
        new = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tarfile.open(new, "w:gz", compresslevel=1) as archive:
                # First, for whoever reads an archive that is cut off.
                self.add(archive, "call.json", (json.dumps(self.document, indent=1) + "\n").encode())
                for file in files:
                    content = file.read_bytes()
                    if file.suffix == ".txt":
                        content = shortened(content.decode(errors="replace")).encode()
                    self.add(archive, str(file.relative_to(self.folder)), content)
            os.replace(new, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            return f"{self.path} could not be written: {error.strerror}"
        return ""

    @staticmethod
    def add(archive, name, content):
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))


def shortened(text):
    half = KEPT_OUTPUT // 2
    return text if len(text) <= KEPT_OUTPUT else f"{text[:half]}\n...\n{text[-half:]}"


def carry(files, folder):
    """Of an earlier archive's files, what a call goes on with: compiled code, and which examples have passed."""
    for name, content in files.items():
        if name.startswith(CODE):
            (folder / CODE).mkdir(parents=True, exist_ok=True)
            (folder / CODE / Path(name).name).write_bytes(content)
        elif name.endswith(".examples"):
            (folder / Path(name).name).write_text(content)


def read_archive(path):
    """The document and the files of an archive, by name; also of one that is cut off."""
    files = {}
    with contextlib.suppress(tarfile.TarError, zlib.error, EOFError, OSError), tarfile.open(path, "r|gz") as archive:
        for entry in archive:
            content = archive.extractfile(entry).read()
            if len(content) == entry.size:
                files[entry.name] = content if entry.name.startswith(CODE) else content.decode(errors="replace")
    if "call.json" not in files:
        sys.exit(f"{path} is no archive of scripts/gpu-minutes, or it is cut off too early")
    return json.loads(files.pop("call.json")), files
