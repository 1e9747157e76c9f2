#!/usr/bin/env python3
"""What `init`, `run`, `eval` and `predict` make of public tables, without an edit, beside scikit-learn.

    scikit.py PMAPTRAIN [--splits 10] [--name NAME]... [--check]

The tables are those of scikit-learn's package (iris, wine, breast_cancer, diabetes); `images` is Fashion-MNIST as a folder
of PNG files for each class, 2,000 of them a split. Of each split a fifth is held out for `predict`; `init` writes the
config from the rest. Beside it a pipeline of scikit-learn trains on the same rows: StandardScaler and MLPClassifier, or
MLPRegressor with scaled targets, with their defaults. Both are scored on what is held out: accuracy, or r2.

--check ends with 3 where a mean is more than 0.02 of accuracy or 0.05 of r2 worse than scikit-learn's.

Needs what scikit.txt pins: python3 -m venv build/tables-venv && build/tables-venv/bin/pip install -r bench/tables/scikit.txt
"""
import argparse
import csv
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from PIL import Image
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES = 2500  # a split: 2,000 to train on
MOST_WORSE = {"accuracy": 0.02, "r2": 0.05}


class Program:
    """pmaptrain in a folder of its own."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"pmaptrain {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout


def table_of(name):
    data = getattr(datasets, "load_" + name)()
    if name == "diabetes":
        return data.data, data.target, list(data.feature_names), "r2"
    return data.data, np.array([str(data.target_names[t]) for t in data.target]), list(data.feature_names), "accuracy"


def write_csv(path, names, inputs, targets):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "target"])
        for row, target in zip(inputs, targets):
            writer.writerow([*(repr(float(x)) for x in row), target if isinstance(target, str) else repr(float(target))])


def predictions_in(path):
    with open(path, newline="") as file:
        return [row["prediction"] for row in csv.DictReader(file)]


def train_and_predict(program, seed, init, held_out):
    """What a user types: init, run, eval, predict."""
    program("init", *init, "config.yaml")
    program("run", "config.yaml", "--seed", seed, "--run-dir", "run", "--progress", "none")
    json.loads(program("eval", "run", "--json"))
    program("predict", "run", "--input", held_out, "--output", "predictions.csv")


def score_of_table(name, split, program_path):
    inputs, targets, names, metric = table_of(name)
    order = np.random.default_rng(split).permutation(len(inputs))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_csv(folder / "train.csv", names, inputs[rest], targets[rest])
        write_csv(folder / "held_out.csv", names, inputs[held], targets[held])
        train_and_predict(Program(program_path, folder), split, ["csv", "train.csv"], "held_out.csv")
        found = predictions_in(folder / "predictions.csv")
    if metric == "r2":
        ours = r2_score(targets[held], [float(value) for value in found])
        peer = make_pipeline(
            StandardScaler(),
            TransformedTargetRegressor(MLPRegressor(random_state=split), transformer=StandardScaler()),
        )
        return metric, ours, r2_score(targets[held], peer.fit(inputs[rest], targets[rest]).predict(inputs[held]))
    peer = make_pipeline(StandardScaler(), MLPClassifier(random_state=split))
    theirs = accuracy_score(targets[held], peer.fit(inputs[rest], targets[rest]).predict(inputs[held]))
    return metric, accuracy_score(targets[held], found), theirs


def read_idx(name, offset):
    with gzip.open(FASHION / name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def score_of_images(split, program_path):
    images = read_idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    labels = read_idx("train-labels-idx1-ubyte.gz", 8)
    order = np.random.default_rng(split).permutation(len(images))[:IMAGES]
    held, rest = order[: IMAGES // 5], order[IMAGES // 5 :]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for i in rest:
            path = folder / "train" / f"class_{labels[i]}" / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(images[i]).save(path)
        (folder / "held_out").mkdir()
        for i in held:
            Image.fromarray(images[i]).save(folder / "held_out" / f"{i}.png")
        train_and_predict(Program(program_path, folder), split, ["images", "train"], "held_out")
        with open(folder / "predictions.csv", newline="") as file:
            found = {int(pathlib.Path(row["file"]).stem): row["prediction"] for row in csv.DictReader(file)}
    ours = accuracy_score([f"class_{labels[i]}" for i in held], [found[i] for i in held])
    peer = make_pipeline(StandardScaler(), MLPClassifier(random_state=split))
    peer.fit(images[rest].reshape(len(rest), -1), labels[rest])
    return "accuracy", ours, accuracy_score(labels[held], peer.predict(images[held].reshape(len(held), -1)))


SCORES = {name: (lambda split, path, name=name: score_of_table(name, split, path))
          for name in ["iris", "wine", "breast_cancer", "diabetes"]}
SCORES["images"] = score_of_images


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PMAPTRAIN")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--name", action="append", choices=list(SCORES))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # the defaults of scikit-learn, which are compared with
    program = os.path.abspath(options.program)
    missed = []
    print(f"{'':14}  {'pmaptrain':>9}  {'scikit-learn':>12}  splits")
    for name in options.name or SCORES:
        pairs = [SCORES[name](split, program) for split in range(options.splits)]
        metric = pairs[0][0]
        ours, theirs = (float(np.mean([pair[side] for pair in pairs])) for side in (1, 2))
        print(f"{name:14}  {ours:9.4f}  {theirs:12.4f}  {len(pairs):6}  {metric}", flush=True)
        if ours < theirs - MOST_WORSE[metric]:
            missed.append(name)
    if missed and options.check:
        print(f"worse than scikit-learn: {', '.join(missed)}", file=sys.stderr)
        sys.exit(3)


main()
