#!/usr/bin/env python3
"""From which licence a window of text is: bytes of the texts that Debian's base-files installs.

    licences.py PMAPTRAIN [--window 128] [--epochs 8]

Windows for training begin in the first four fifths of each text, those of the test split lie in its last fifth. Writes the
arrays and a config into a temporary folder, trains there, and prints the accuracy on both splits.
"""
import argparse
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from arrays import npy  # noqa: E402

TEXTS = pathlib.Path("/usr/share/common-licenses")
NAMES = ("GPL-3", "LGPL-2.1", "Apache-2.0", "MPL-2.0", "GFDL-1.3", "Artistic")
CONFIG = """
name: licences
mesh: {axes: {devices: 2}}
data:
  source: {npz: {train: train.npz, test: test.npz, inputs: x, targets: y}}
  batch_size: 100
model:
  layers:
    - {name: bytes, embedding: {num_embeddings: 256, features: 16}}
    - conv: {features: 64, kernel_size: [5]}
    - relu
    - dropout: 0.3
    - conv: {features: 128, kernel_size: [5]}
    - relu
    - global_max_pool
    - dropout: 0.5
    - dense: CLASSES
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adamw: {weight_decay: 0.01}, learning_rate: 0.002}
train: {duration: EPOCHS epochs, eval_every: EPOCHS epochs}
"""


def write_windows(file: pathlib.Path, texts: list, window: int, count: int, draw: random.Random):
    x, y = io.BytesIO(), bytearray()
    for label, text in enumerate(texts):
        for _ in range(count):
            begin = draw.randrange(len(text) - window)
            x.write(text[begin : begin + window])
            y.append(label)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", npy(x.getvalue(), "|u1", (len(y), window)))
        archive.writestr("y.npy", npy(bytes(y), "|u1", (len(y),)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pmaptrain", type=pathlib.Path)
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    draw = random.Random(0)
    texts = [(TEXTS / name).read_bytes() for name in NAMES]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write_windows(folder / "train.npz", [text[: len(text) * 4 // 5] for text in texts], options.window, 1500, draw)
        write_windows(folder / "test.npz", [text[len(text) * 4 // 5 :] for text in texts], options.window, 250, draw)
        config = CONFIG.replace("CLASSES", str(len(NAMES))).replace("EPOCHS", str(options.epochs))
        (folder / "licences.yaml").write_text(config)
        subprocess.run([options.pmaptrain.resolve(), "run", "licences.yaml", "--run-dir", "run", "--progress", "none"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        final = json.loads((folder / "run/summary.json").read_text())["final"]
    print(f"accuracy on {len(NAMES)} licences: {final['train']['accuracy']:.3f} train, {final['test']['accuracy']:.3f} test")


if __name__ == "__main__":
    main()
