#!/usr/bin/env python3
"""Computes losses with PyTorch, torchvision and scikit-learn, which tests/losses/losses.cpp compares.

    python3 -m venv /tmp/losses
    /tmp/losses/bin/pip install torch==2.5.1 torchvision==0.20.1 scikit-learn==1.8.0 numpy==2.4.6
    /tmp/losses/bin/python tests/parity/make_loss_fixtures.py

losses.json holds for each case the loss with its options, outputs of a model, targets, the loss of each example in f64,
and the gradient of their sum with respect to the outputs, which scikit-learn does not give. Outputs are multiples of
1/32, exact in every type.

| loss | reference |
|---|---|
| focal of labels and of answers 0 and 1 | torchvision.ops.sigmoid_focal_loss |
| focal of classes | the same with a softmax, as Lin et al. 2017 write it: (1 - p)^gamma · -log p |
| poisson | torch.nn.PoissonNLLLoss(log_input=True, full=False) |
| quantile | sklearn.metrics.mean_pinball_loss |
"""

import importlib.metadata
import json
import pathlib

import numpy as np
import torch
from sklearn.metrics import mean_pinball_loss
from torchvision.ops import sigmoid_focal_loss

PINS = {"torch": "2.5.1", "torchvision": "0.20.1", "scikit-learn": "1.8.0", "numpy": "2.4.6"}
EXAMPLES = 12


def of_torch(loss, outputs, targets, each):
    """A case of `each`, a function of tensors that gives the losses of all numbers of each example."""
    y = torch.tensor(outputs, dtype=torch.float64, requires_grad=True)
    losses = each(y, torch.tensor(targets)).reshape(len(outputs), -1).mean(dim=1)
    losses.sum().backward()
    return {"loss": loss, "outputs": outputs.tolist(), "targets": targets.tolist(), "losses": losses.tolist(),
            "gradient": y.grad.tolist()}


def focal_of_labels(outputs, targets, gamma, alpha=None):
    def each(y, t):
        return sigmoid_focal_loss(y, t.to(y.dtype).reshape(y.shape), -1 if alpha is None else alpha, gamma)

    return of_torch({"focal": {"gamma": gamma, "alpha": alpha}}, outputs, targets, each)


def focal_of_classes(outputs, targets, gamma):
    def each(y, t):
        log_p = torch.log_softmax(y, dim=1)[torch.arange(len(t)), t]
        return -((1 - log_p.exp()) ** gamma) * log_p

    return of_torch({"focal": {"gamma": gamma, "alpha": None}}, outputs, targets, each)


def quantile(outputs, targets, q):
    by_quantile = outputs.reshape(len(outputs), targets.shape[1], len(q))
    losses = [np.mean([mean_pinball_loss(targets[i], by_quantile[i, :, k], alpha=each) for k, each in enumerate(q)])
              for i in range(len(outputs))]
    return {"loss": {"quantile": {"q": q}}, "outputs": outputs.tolist(), "targets": targets.tolist(), "losses": losses}


def main():
    for package, version in PINS.items():
        assert importlib.metadata.version(package).split("+")[0] == version, package
    rng = np.random.default_rng(0)

    def outputs(width, spread=3):
        return np.round(32 * rng.normal(0, spread, (EXAMPLES, width))) / 32

    labels = (rng.random((EXAMPLES, 4)) < 0.4).astype(np.float64)
    chances = rng.integers(0, 9, (EXAMPLES, 2)) / 8
    answers = rng.integers(0, 2, EXAMPLES)
    classes = rng.integers(0, 5, EXAMPLES)
    numbers = np.round(32 * rng.normal(0, 3, (EXAMPLES, 2))) / 32
    counts = rng.poisson(3, (EXAMPLES, 2)).astype(np.float64)
    poisson = torch.nn.PoissonNLLLoss(log_input=True, full=False, reduction="none")
    cases = {
        "labels": focal_of_labels(outputs(4), labels, 2.0),
        "weighted labels": focal_of_labels(outputs(4), labels, 1.5, 0.25),
        "labels without a focus": focal_of_labels(outputs(4), labels, 0.0, 0.75),
        "chances": focal_of_labels(outputs(2), chances, 2.0, 0.25),
        "answers": focal_of_labels(outputs(1), answers, 3.0, 0.6),
        "far answers": focal_of_labels(outputs(1, 12), answers, 2.0, 0.25),
        "classes": focal_of_classes(outputs(5), classes, 2.0),
        "classes without a focus": focal_of_classes(outputs(5), classes, 0.0),
        "far classes": focal_of_classes(outputs(5, 8), classes, 2.5),
        "counts": of_torch({"poisson": {}}, outputs(2, 1), counts, poisson),
        "quantiles": quantile(outputs(6), numbers, [0.1, 0.5, 0.9]),
        "one quantile": quantile(outputs(2), numbers, [0.8]),
    }
    file = pathlib.Path(__file__).resolve().parent / "losses.json"
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
