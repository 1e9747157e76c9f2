#!/usr/bin/env python3
"""Runs the programs of docs/export.md as they stand there: a run's parameters in PyTorch and Flax, its model in ONNX Runtime.

    scripts/check_frameworks.py PROGRAM torch|flax|onnx

The config of the page is trained by PROGRAM. The logits must be within 1e-6 of the largest of those of `predict` (ONNX
Runtime: 1e-4). PyTorch and Flax are those of build/bench-venv (bench/compare makes it) or of this Python, ONNX Runtime
that of third_party/onnx (scripts/bootstrap --dev); says so where they are missing.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INPUTS = ROOT / "tests/parity/predictions/inputs.npy"
TOLERANCES = {"torch": 1e-6, "flax": 1e-6, "onnx": 1e-4}
DEBIAN = "/usr/lib/python3/dist-packages"
MISSING = 77


def text_for(framework):
    page = (ROOT / "docs/export.md").read_text(encoding="utf-8")
    onnx, config, flax, torch = re.findall(r"```(?:yaml|python)\n(.*?)```", page, re.DOTALL)[:4]
    return config, {"onnx": onnx, "flax": flax, "torch": torch}[framework]


def stand_in_for_safetensors(framework):
    """What the page takes from the package safetensors, where it is not installed."""
    import types

    import numpy

    def load_file(path):
        data = pathlib.Path(path).read_bytes()
        size = int.from_bytes(data[:8], "little")
        tensors = {}
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name == "__metadata__":
                continue
            if entry["dtype"] != "F32":
                raise ValueError(f"{name} is {entry['dtype']}")
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            array = numpy.frombuffer(data[begin:end], numpy.float32).reshape(entry["shape"]).copy()
            tensors[name] = sys.modules["torch"].from_numpy(array) if framework == "torch" else array
        return tensors

    for name in ("safetensors", f"safetensors.{framework}"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[f"safetensors.{framework}"].load_file = load_file


def compare(framework, model, expected):
    """In a process of the Python that has the framework."""
    if framework == "onnx":
        sys.path.insert(0, str(ROOT / "third_party/onnx"))
    sys.path.append(DEBIAN)  # numpy, where an environment has none
    try:
        import numpy

        module = __import__({"onnx": "onnxruntime"}.get(framework, framework))
        if framework == "flax":
            __import__("jax")
    except ImportError as error:
        print(error)
        return MISSING
    try:
        __import__(f"safetensors.{framework}")
    except ImportError:
        stand_in_for_safetensors(framework)
    names = {"images": numpy.load(INPUTS)}
    exec(compile(text_for(framework)[1], "docs/export.md", "exec"), names)
    found = names["logits"] if framework == "onnx" else names["predict"](model, names["images"])
    found, expected = numpy.asarray(found, numpy.float32), numpy.load(expected)
    if found.shape != expected.shape:
        print(f"{framework}: logits {found.shape}, and predict has {expected.shape}")
        return 1
    error = numpy.max(numpy.abs(found - expected)) / numpy.max(numpy.abs(expected))
    version = getattr(module, "__version__", "")
    print(f"{framework} {version}: {error:.1e} of the largest logit apart")
    return 0 if error <= TOLERANCES[framework] else 1


def main():
    if sys.argv[1] == "--compare":
        return compare(*sys.argv[2:])
    program, framework = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    pythons = [sys.executable]
    if framework != "onnx":
        pythons.insert(0, str(ROOT / "build/bench-venv/bin/python"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cnn.yaml").write_text(text_for(framework)[0], encoding="utf-8")
        # The page's text reads cnn.onnx.
        model = folder / ("cnn.onnx" if framework == "onnx" else "cnn.safetensors")
        layout = [] if framework == "onnx" else ["--layout", framework]
        for arguments in (
            ["run", "cnn.yaml", "-q", "--progress", "none"],
            ["predict", "runs/cnn", "--input", INPUTS, "--output", "logits.npy", "--as", "logits"],
            ["export", "runs/cnn", "--output", model, *layout],
        ):
            subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for python in pythons:
            if not pathlib.Path(python).exists():
                continue
            done = subprocess.run(
                [python, __file__, "--compare", framework, model, folder / "logits.npy"],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            if done.returncode != MISSING:
                print(done.stdout + (done.stderr if done.returncode != 0 else ""))
                return done.returncode
    print(f"skipped: no Python here has {framework}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
