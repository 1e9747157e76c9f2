"""Trains the U-Net of configs/unet.yaml in PyTorch, on arrays that it makes.

    torch_unet.py make FILE            images and labels as data.source.synthetic_masks draws them, by NumPy
    torch_unet.py train FILE SEED STEPS

The second prints one line of JSON: the mean IoU on the test images, and the seconds of the steps. Batches, flips,
normalisation, initial kernels, optimizer and learning rates are those of the config, the random numbers are others.
"""

import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from torch_models import unet

SIDE, BATCH, PEAK = 64, 20, 0.004
BACKGROUND, DISC, RECTANGLE = range(3)


def draw(rng):
    image = np.full((SIDE, SIDE), 32 + rng.integers(64), np.int64)
    labels = np.zeros((SIDE, SIDE), np.uint8)
    rows, columns = np.ogrid[:SIDE, :SIDE]
    for _ in range(2 + rng.integers(3)):
        label, value = rng.integers(1, 3), 112 + rng.integers(112)
        y, x = rng.integers(SIDE, size=2)
        tall, wide = SIDE // 12 + rng.integers(SIDE // 8 + 1, size=2)
        if label == DISC:
            inside = (rows - y) ** 2 + (columns - x) ** 2 <= tall**2
        else:
            inside = (abs(rows - y) <= tall) & (abs(columns - x) <= wide)
        image[inside], labels[inside] = value, label
    noise = rng.integers(256, size=(4, SIDE, SIDE)).sum(axis=0) - 510  # standard deviation 148
    return np.clip(np.rint(image + noise * (0.1 * 255 / 147.8)), 0, 255).astype(np.uint8)[..., None], labels


def make(file):
    rng = np.random.default_rng(0)
    x, y = (np.stack(arrays) for arrays in zip(*(draw(rng) for _ in range(2500))))
    np.savez(file, x_train=x[:2000], y_train=y[:2000], x_test=x[2000:], y_test=y[2000:])


def images_of(x):
    x = torch.from_numpy((x.astype(np.float32) / 255 - 0.3) / 0.2).permute(0, 3, 1, 2)
    return x.contiguous(memory_format=torch.channels_last)


def mean_iou(model, x, y):
    model.eval()
    with torch.no_grad():
        said = torch.cat([model(part).argmax(1) for part in x.split(100)])
    shares = [((said == c) & (y == c)).sum() / ((said == c) | (y == c)).sum() for c in range(3)]
    return float(sum(shares) / 3)


def train(file, seed, steps):
    torch.manual_seed(seed)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    rng = np.random.default_rng(seed)
    data = np.load(file)
    x, y = images_of(data["x_train"]), torch.from_numpy(data["y_train"].astype(np.int64))
    model = unet().to(memory_format=torch.channels_last)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):  # Flax's lecun_normal
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    warmup = len(x) // BATCH
    rate = lambda k: k / warmup if k < warmup else (1 + math.cos(math.pi * (k - warmup) / (steps - warmup))) / 2
    optimizer = torch.optim.Adam(model.parameters(), lr=PEAK, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    begin = time.perf_counter()
    for step in range(steps):
        if step % warmup == 0:
            order = torch.from_numpy(rng.permutation(len(x)))
        rows = order[step % warmup * BATCH :][:BATCH]
        inputs, targets = x[rows], y[rows]
        flip = torch.from_numpy(rng.random(BATCH) < 0.5)
        inputs[flip], targets[flip] = inputs[flip].flip(3), targets[flip].flip(2)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()
    seconds = time.perf_counter() - begin
    found = mean_iou(model, images_of(data["x_test"]), torch.from_numpy(data["y_test"].astype(np.int64)))
    print(json.dumps({"mean_iou": found, "seconds": seconds}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
