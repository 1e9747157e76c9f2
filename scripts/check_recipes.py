#!/usr/bin/env python3
"""Runs the Python programs of the documentation:

    scripts/check_recipes.py PROGRAM search    docs/sweeps.md: Optuna, which is told what `pmaptrain run --json` gives
    scripts/check_recipes.py PROGRAM tokens    docs/training.md: a tokenizer, on whose tokens a model is trained

Needs third_party/optuna, or third_party/tokenizers (scripts/bootstrap --dev); says so where it is missing.
"""

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


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def python_of(text):
    return re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)


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
    config = re.search(r"cat > mlp.yaml <<'END'\n(.*?)END\n", text, re.DOTALL).group(1)
    (folder / "mlp.yaml").write_text(config, encoding="utf-8")
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


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        check = {"search": check_search, "tokens": check_tokens}[sys.argv[2]]
        problem = check(program, pathlib.Path(folder))
    if problem:
        print(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
