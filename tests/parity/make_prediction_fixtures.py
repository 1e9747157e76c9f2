#!/usr/bin/env python3
"""Gives a run's parameters to Flax and to PyTorch, and writes what they predict for tests/parity/predictions.cpp.

    python3 -m venv /tmp/predictions
    /tmp/predictions/bin/pip install jax==0.10.2 flax==0.12.8 torch==2.5.1 numpy==2.4.6 safetensors==0.8.0
    /tmp/predictions/bin/python tests/parity/make_prediction_fixtures.py

The config and the code of both models are those of docs/export.md, which users copy. They are run as they stand there:
the config is trained by build/release/pmaptrain, whose own predictions are compared with the others. Then PyTorch saves
the same parameters under names of its own, and a run begins with them, by the lines of that page. predictions/ has

    config.yaml             the config
    init.yaml               the lines of the config of the run that begins with PyTorch's parameters
    params.safetensors      the parameters after training
    torch.safetensors       what export --layout torch makes of them
    sequential.safetensors  PyTorch's parameters under other names
    inputs.npy              12 images, u8[12,12,10,3]
    flax.npy, torch.npy     the logits, f32[12,4]
"""

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

PINS = {"jax": "0.10.2", "flax": "0.12.8", "torch": "2.5.1", "numpy": "2.4.6", "safetensors": "0.8.0"}
TOLERANCE = 1e-6  # of the largest logit
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/pmaptrain"
FIXTURES = ROOT / "tests/parity/predictions"


def blocks() -> list:
    """The config, the code for Flax, the code for PyTorch, and the lines for a file of PyTorch."""
    text = (ROOT / "docs/export.md").read_text()
    section = text[text.index("## Parameters") :]
    return re.findall(r"```(?:yaml|python)\n(.*?)```", section, re.DOTALL)[:4]


def sequential(tensors: dict) -> dict:
    """The parameters of nn.Sequential modules `features` and `classifier`, as PyTorch names them."""
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 6, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
                                          nn.Conv2d(6, 8, 3, stride=2), nn.GELU("tanh"))
            self.classifier = nn.Linear(32, 4)

    model = Model()
    names = {"features.0": "conv_0", "features.3": "conv_1", "classifier": "head"}
    state = {name: tensors[names[name.rpartition(".")[0]] + "." + name.rpartition(".")[2]] for name in model.state_dict()}
    model.load_state_dict(state)
    return model.state_dict()


def predictor(code: str):
    names = {}
    exec(compile(code, "docs/export.md", "exec"), names)
    return names["predict"]


def pmaptrain(*arguments) -> None:
    subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    for package, pinned in PINS.items():
        found = importlib.metadata.version(package).split("+")[0]
        if found != pinned:
            raise SystemExit(f"{package} is {found}, expected {pinned}")
    config, flax, torch, init = blocks()
    FIXTURES.mkdir(exist_ok=True)
    (FIXTURES / "config.yaml").write_text(config)
    (FIXTURES / "init.yaml").write_text(init)
    inputs = np.random.default_rng(0).integers(0, 256, (12, 12, 10, 3), np.uint8)
    np.save(FIXTURES / "inputs.npy", inputs)
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        pmaptrain("run", FIXTURES / "config.yaml", "--run-dir", run, "-q")
        pmaptrain("predict", run, "--input", FIXTURES / "inputs.npy", "--output", f"{folder}/p.npy", "--as", "logits")
        ours = np.load(f"{folder}/p.npy")
        shutil.copy(run / "checkpoints/last/params.safetensors", FIXTURES)
        files = {"flax": pathlib.Path(folder) / "flax.safetensors", "torch": FIXTURES / "torch.safetensors"}
        for name, file in files.items():
            pmaptrain("export", run, "--output", file, "--layout", name, "--overwrite")
        predictions = {name: predictor(code)(files[name], inputs) for name, code in {"flax": flax, "torch": torch}.items()}
    from safetensors.torch import load_file, save_file

    save_file(sequential(load_file(files["torch"])), FIXTURES / "sequential.safetensors")
    for name, logits in predictions.items():
        logits = np.asarray(logits, np.float32)
        error = np.max(np.abs(logits - ours)) / np.max(np.abs(ours))
        print(f"{name}: {error:.1e} of the largest logit apart, the largest is {np.max(np.abs(ours)):.3f}")
        if not error <= TOLERANCE:
            raise SystemExit(f"{name} predicts something else")
        np.save(FIXTURES / f"{name}.npy", logits)


if __name__ == "__main__":
    main()
