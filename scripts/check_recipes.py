#!/usr/bin/env python3
"""Runs the programs of the documentation that its tests do not:

    scripts/check_recipes.py PROGRAM search    docs/sweeps.md: Optuna, which is told what `pmaptrain run --json` gives
    scripts/check_recipes.py PROGRAM tokens    docs/training.md: a tokenizer, on whose tokens a model is trained
    scripts/check_recipes.py PROGRAM jobs      docs/sweeps.md: the script of a job array, with the variable of SLURM. Its
                                               runs have the parameters, bit by bit, of the same runs of `sweep run`

The first two need third_party/optuna and third_party/tokenizers (scripts/bootstrap --dev); they say so where it is
missing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# With the source of docs/training.md, which has windows of 128 tokens.
GPT = """
name: gpt
mesh: {axes: {devices: 2}}
data:
  SOURCE
  batch_size: 8
  remainder: mask
  validation: 0.1
model:
  layers:
    - {name: tokens, embedding: {num_embeddings: 320, features: 32}}
    - position_embedding: {length: 128}
    - residual: {layers: [layer_norm, {attention: {heads: 2, causal: true}}]}
    - layer_norm
    - attend: {embedding: tokens}
loss: softmax_cross_entropy
metrics: [perplexity]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 30 steps, log_every: never, eval_every: never}
"""

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


def check_tokens(program, folder):
    tokenizers = package("tokenizers")
    if tokenizers is None:
        return None
    text = page("training.md")
    environment = {**os.environ, "PYTHONPATH": str(tokenizers)}

    def call(*arguments, given=b""):
        found = subprocess.run(arguments, cwd=folder, env=environment, input=given, stdout=subprocess.PIPE, check=False)
        if found.returncode != 0:
            raise RuntimeError(f"{arguments[1:4]} ended with {found.returncode}")
        return found.stdout

    def tokens(*arguments, given=b""):
        return call(sys.executable, "tokens.py", *arguments, given=given)

    (folder / "tokens.py").write_text(python_of(text), encoding="utf-8")
    source = re.search(r"^  (source: \{text: \{train: corpus.bin.*\}\})$", text, re.MULTILINE).group(1)
    (folder / "gpt.yaml").write_text(GPT.replace("SOURCE", source), encoding="utf-8")
    # Letters of several bytes, line ends of two, and what is no word.
    texts = ["Zwölf Boxkämpfer jagen Viktor.\r\n" * 90, page("models.md"), page("runs.md"), "😀\t\n\n  x_1 = 0.5e-3;\n"]
    for number, content in enumerate(texts):
        (folder / f"{number}.txt").write_bytes(content.encode("utf-8"))
    tokens("train", "corpus", "320", *[f"{number}.txt" for number in range(len(texts))])

    numbers = memoryview((folder / "corpus.bin").read_bytes()).cast("H").tolist()
    if numbers.count(0) != len(texts) or numbers[-1] != 0 or max(numbers) >= 320:
        return "the documents of corpus.bin do not end with the token 0, or it has tokens that its tokenizer lacks"
    decoded = tokens("decode", "corpus", given=" ".join(map(str, numbers)).encode())
    if decoded.decode("utf-8") != "".join(texts) + "\n":
        return "the tokens of corpus.bin are not those of the texts"

    print(call(program, "run", "gpt.yaml").decode())
    (folder / "prompt.bin").write_bytes(tokens("encode", "corpus", "The run"))
    added = call(program, "predict", "runs/gpt", "--prompt", "@prompt.bin", "--tokens", "8")
    print(added, tokens("decode", "corpus", given=added))
    if not re.fullmatch(rb"(\d+( \d+){0,7})?\n", added):
        return "predict --prompt does not continue the tokens"
    perplexity = call(program, "eval", "runs/gpt", "--split", "validation", "--json")
    print(perplexity)
    if not 1 < float(re.search(rb'"perplexity": ?([\d.]+)', perplexity).group(1)) < 200:
        return "a model of the tokens learns nothing"
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
        check = {"search": check_search, "tokens": check_tokens, "jobs": check_jobs}[sys.argv[2]]
        problem = check(program, pathlib.Path(folder))
    if problem:
        print(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
