#!/usr/bin/env python3
"""Trains PyTorch's nn.LSTM and nn.GRU, and writes what tests/parity/recurrent.cpp compares pmaptrain with.

    python3 -m venv /tmp/recurrent
    /tmp/recurrent/bin/pip install torch==2.15.0 numpy==2.4.6 safetensors==0.8.0
    /tmp/recurrent/bin/python tests/parity/make_recurrent_fixtures.py

recurrent/data.npz has 48 sequences of 7 positions with 5 channels; recurrent/NAME what one case needs:

    config.yaml          whose model begins with PyTorch's parameters, under their names there
    torch.safetensors    the parameters to start from, as torch saves them
    expected.json        the loss and the norm of the gradient in each of 20 steps, and the logits after them

PyTorch adds two biases where pmaptrain has one. Only one of the two is trained here: else their sum would move twice as
far in a step as one bias does. Each case is also trained in 64 bits, from which the results must not be far.
"""

import importlib.metadata
import json
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

PINS = {"torch": "2.15.0", "numpy": "2.4.6", "safetensors": "0.8.0"}
STEPS, RATE, CLASSES, CHANNELS = 20, 1.0, 4, 5
WELL_CONDITIONED = 2e-5  # as in make_fixtures.py
HERE = pathlib.Path(__file__).resolve().parent / "recurrent"

# Name: features, layers, whether there are two directions, whether the head takes all positions or the last.
CASES = {
    "lstm": (6, 1, False, "all"),
    "lstm_bidirectional": (4, 2, True, "last"),
    "gru": (6, 1, False, "last"),
    "gru_bidirectional": (5, 2, True, "all"),
}

CONFIG = """name: {name}
mesh:
  axes: {{devices: 1}}
data:
  source: {{npz: {{file: ../data.npz, train: [x, y]}}}}
  batch_size: all
  shuffle: false
model:
  layers:
{layers}
    - {{name: head, dense: {classes}}}
  init:
    from:
      path: torch.safetensors
      layout: torch
      rename: {{{rename}}}
loss: softmax_cross_entropy
optimizer: {{sgd: {{}}, learning_rate: {rate}}}
train:
  duration: {steps} steps
  log_every: 1 step
  eval_every: never
"""


class Model(nn.Module):
    def __init__(self, kind: str, features: int, layers: int, both: bool, takes: str):
        super().__init__()
        self.rnn = getattr(nn, kind.upper())(CHANNELS, features, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(features * (1 + both), CLASSES)
        self.features, self.both, self.takes = features, both, takes

    def forward(self, x):
        states, _ = self.rnn(x)
        if self.takes == "all":
            return self.head(states.mean(1))
        last = states[:, -1]  # of the direction backwards, the last position that it meets is the first
        return self.head(torch.cat([last[:, : self.features], states[:, 0, self.features :]], 1))


def train_one_of_two_biases(model: Model, kind: str) -> None:
    """Of a gru, the n has two biases here as well."""
    for name, parameter in model.rnn.named_parameters():
        if "bias_hh" not in name:
            continue
        kept = torch.zeros_like(parameter)
        if kind == "gru":
            kept[2 * model.features :] = 1
        parameter.register_hook(lambda gradient, kept=kept: gradient * kept)


def trained(model: Model, kind: str, x: torch.Tensor, y: torch.Tensor) -> dict:
    train_one_of_two_biases(model, kind)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        norms.append(torch.sqrt(sum((p.grad**2).sum() for p in model.parameters())).item())
        losses.append(loss.item())
        optimizer.step()
    with torch.no_grad():
        return {"loss": losses, "grad_norm": norms, "logits": model(x).flatten().tolist()}


def config_of(name: str, kind: str, features: int, layers: int, both: bool, takes: str) -> str:
    lines, renamed = [], []
    for i in range(layers):
        last = takes == "last" and i + 1 == layers
        options = [f"features: {features}"] + ["bidirectional: true"] * both + ["return: last"] * last
        lines.append(f"    - {kind}: {{{', '.join(options)}}}")
        renamed += [f'"rnn.*_l{i}{end}": "{kind}_{i}.*_l0{end}"' for end in ("", "_reverse")[: 1 + both]]
    if takes == "all":
        lines.append("    - global_avg_pool")
    return CONFIG.format(name=name, layers="\n".join(lines), rename=", ".join(renamed), classes=CLASSES, rate=RATE,
                         steps=STEPS)


def main() -> None:
    for package, pinned in PINS.items():
        found = importlib.metadata.version(package).split("+")[0]
        if found != pinned:
            raise SystemExit(f"{package} is {found}, expected {pinned}")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    HERE.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((48, 7, CHANNELS)).astype(np.float32)
    y = np.argmax(np.cumsum(x, axis=1)[:, 3] @ rng.standard_normal((CHANNELS, CLASSES)), axis=1).astype(np.int64)
    np.savez(HERE / "data.npz", x=x, y=y)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    for name, (features, layers, both, takes) in CASES.items():
        kind = name.split("_")[0]
        model, exact = (Model(kind, features, layers, both, takes) for _ in range(2))
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        save_file(model.state_dict(), folder / "torch.safetensors")
        exact.load_state_dict(model.state_dict())
        found, expected = trained(model, kind, x, y), trained(exact.double(), kind, x.double(), y)
        for measure, values in expected.items():
            apart = np.max(np.abs(np.array(found[measure]) - values)) / np.max(np.abs(values))
            print(f"{name}: {measure} {apart:.1e} from the results in 64 bits")
            if not apart <= WELL_CONDITIONED:
                raise SystemExit("a comparison with this would say nothing")
        print(f"{name}: loss {found['loss'][0]:.4f} -> {found['loss'][-1]:.4f}")
        (folder / "config.yaml").write_text(config_of(name, kind, features, layers, both, takes))
        (folder / "expected.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
