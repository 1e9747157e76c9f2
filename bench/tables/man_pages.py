#!/usr/bin/env python3
"""The section of a manual page by its words: a column of texts here, and TF-IDF with logistic regression in scikit-learn.

    man_pages.py PMAPTRAIN [--seeds 5] [--peer PYTHON] [--keep FOLDER]

The pages are those of this Debian (/usr/share/man, sections 1, 3, 5, 7 and 8; section 2 is of two packages alone), at most 60
of a package and none of google-cloud-cli. Title line, header and footer are left out, since they name the section, and so
is what only formats. A split is by package: those of a fifth of the pages are the test split, so no package is in both.
PYTHON is one with scikit-learn (scikit.txt), and prints its accuracy on the same splits.
"""
import argparse
import collections
import csv
import glob
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile

SECTIONS = ["1", "3", "5", "7", "8"]
CONFIG = """
name: man_pages
mesh: {axes: {devices: 4}}
data:
  source: {csv: {train: train.csv, test: test.csv, target: section, text: text, classes: ["1", "3", "5", "7", "8"],
                 max_length: 1000}}
  tokenizer: {words: {size: 20000, min_count: 2}}
  batch_size: 32
  remainder: mask
  bucket_by_length: 20
model:
  layers:
    - embedding: {num_embeddings: 20000, features: 128}
    - global_avg_pool
    - dropout: 0.3
    - dense: 5
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adamw: {weight_decay: 0.01}, learning_rate: {cosine_decay: {init_value: 0.01}}}
train: {duration: 8 epochs, eval_every: 8 epochs}
"""

PEER = """
import csv, sys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
csv.field_size_limit(10 ** 9)
def read(name):
    rows = list(csv.DictReader(open(name, encoding="utf-8")))
    return [r["text"] for r in rows], [r["section"] for r in rows]
(train, y), (test, z) = read("train.csv"), read("test.csv")
words = TfidfVectorizer()
model = LogisticRegression(C=10, max_iter=1000).fit(words.fit_transform(train), y)
print(model.score(words.transform(test), z))
"""


def text_of(page):
    """A page's words: without title, comments, requests of macros and changes of fonts."""
    lines = []
    for line in page.split("\n"):
        if re.match(r"[.']\s*(TH|Dt|Dd|Os|\\\"|de|ds|nr|ie|el|if|tr|so|hw|ad|nh)\b", line) or line.startswith((".\\\"", "'\\\"")):
            continue
        line = re.sub(r"^[.']\s*[A-Za-z]{1,3}\b", " ", line)
        line = re.sub(r"\\f(\[[^]]*\]|\(..|.)|\\s[-+]?\d+|\\\*\(..|\\[&|^,/]", "", line)
        lines.append(re.sub(r"\\\((..)|\\\[[^]]*\]|\\(.)", " ", line))
    return " ".join(" ".join(lines).split())


def read_pages():
    package_of = {}
    for listing in glob.glob("/var/lib/dpkg/info/*.list"):
        package = os.path.basename(listing)[:-5].split(":")[0]
        with open(listing, errors="replace") as paths:
            package_of.update((path.strip(), package) for path in paths if "/share/man/man" in path)
    pages, taken = [], collections.Counter()
    found = sorted(path for s in SECTIONS for path in glob.glob(f"/usr/share/man/man{s}/*.gz") if not os.path.islink(path))
    random.Random(0).shuffle(found)
    for path in found:
        package = package_of.get(path, "google-cloud-cli")
        if package == "google-cloud-cli" or taken[package] == 60:
            continue
        text = text_of(gzip.open(path, "rt", errors="replace").read())
        if len(text) > 200:
            taken[package] += 1
            pages.append((package, path.split("/")[4][3], text))
    return pages


def write_split(folder, pages, seed):
    packages = sorted({package for package, _, _ in pages})
    random.Random(seed).shuffle(packages)
    test, size = set(), 0
    for package in packages:
        if size < len(pages) // 5:
            test.add(package)
            size += sum(p == package for p, _, _ in pages)
    for name, chosen in (("train", False), ("test", True)):
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["section", "text"])
            writer.writerows((section, text) for package, section, text in pages if (package in test) == chosen)
    return size


def train(program, folder, seed):
    config = folder / "man.yaml"
    config.write_text(CONFIG)
    done = subprocess.run([program, "run", config, "--seed", str(seed), "--run-dir", folder / "run", "--overwrite", "--json",
                           "--progress", "none"], check=True, capture_output=True)
    summary = json.loads(done.stdout)
    return summary["final"]["test"]["accuracy"], summary["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer")
    parser.add_argument("--keep")
    options = parser.parse_args()
    pages = read_pages()
    counts = collections.Counter(section for _, section, _ in pages)
    print(f"{len(pages)} pages of {len({p for p, _, _ in pages})} packages: {dict(sorted(counts.items()))}")
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(exist_ok=True)
        for seed in range(options.seeds):
            held_out = write_split(folder, pages, seed)
            accuracy, seconds = train(options.program, folder, seed)
            ours.append(accuracy)
            line = f"split {seed}, {held_out} pages held out: accuracy {accuracy:.3f} in {seconds:.0f} s"
            if options.peer:
                peer = subprocess.run([options.peer, "-c", PEER], cwd=folder, check=True, capture_output=True, text=True)
                theirs.append(float(peer.stdout))
                line += f"; TF-IDF and logistic regression {theirs[-1]:.3f}"
            print(line, flush=True)
    mean = sum(ours) / len(ours)
    print(f"mean {mean:.3f}" + (f" against {sum(theirs) / len(theirs):.3f}" if theirs else ""))


main()
