#!/usr/bin/env python3
"""Computes metrics of evaluations with scikit-learn, which tests/metrics/row_metrics.cpp compares.

    python3 -m venv /tmp/metrics && /tmp/metrics/bin/pip install scikit-learn==1.8.0 numpy==2.4.6
    /tmp/metrics/bin/python tests/parity/make_metric_fixtures.py

metrics.json holds for each case the probabilities of examples, what is true of them, and the values that scikit-learn
gives. Probabilities are multiples of 1/32, so that some are equal and all are exact in f32.
"""

import importlib.metadata
import json
import pathlib

import numpy as np
from sklearn.metrics import average_precision_score, median_absolute_error, roc_auc_score

PINS = {"scikit-learn": "1.8.0", "numpy": "2.4.6"}


def curves(truth, scores, averages):
    """By name; of each label under `none`."""
    found = {}
    for name, score in (("roc_auc", roc_auc_score), ("average_precision", average_precision_score)):
        for average in averages:
            suffix = "" if average == "macro" else f"_{average}"
            found[name + suffix] = float(score(truth, scores, average=average))
        for label, value in enumerate(score(truth, scores, average=None)):
            found[f"{name}_{label}"] = float(value)
    return found


def main():
    for package, version in PINS.items():
        assert importlib.metadata.version(package) == version, package
    rng = np.random.default_rng(0)
    n = 60
    truth = (rng.random((n, 4)) < [0.1, 0.3, 0.5, 0.8]).astype(int)
    truth[:, 3] = np.where(truth[:, :3].sum(axis=1) == 3, 0, np.maximum(truth[:, 3], truth[:, :3].sum(axis=1) == 0))
    scores = np.clip(np.round(16 * truth + rng.normal(8, 10, (n, 4))), 1, 31) / 32
    classes = rng.integers(0, 3, n)
    chances = np.round(32 * rng.dirichlet([1, 1, 1], n) / 2 + 8 * np.eye(3)[classes]) / 64
    answers = (rng.random(n) < 0.3).astype(int)
    answer_scores = np.clip(np.round(8 * answers + rng.normal(14, 8, n)), 1, 31) / 32
    errors = rng.integers(-64, 64, (n - 1, 2)) / 16
    cases = {
        "labels": {"truth": truth.tolist(), "scores": scores.tolist(),
                   "values": curves(truth, scores, ["macro", "micro", "weighted", "samples"])},
        "classes": {"truth": classes.tolist(), "scores": chances.tolist(),
                    "values": curves(np.eye(3)[classes], chances, ["macro", "micro", "weighted"])},
        "answers": {"truth": answers.tolist(), "scores": answer_scores[:, None].tolist(),
                    "values": {"roc_auc": float(roc_auc_score(answers, answer_scores)),
                               "average_precision": float(average_precision_score(answers, answer_scores))}},
        "numbers": {"errors": errors.tolist(),
                    "values": {"median_absolute_error": float(median_absolute_error(errors, np.zeros_like(errors)))}},
    }
    file = pathlib.Path(__file__).resolve().parent / "metrics.json"
    file.write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
