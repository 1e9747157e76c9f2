"""The trials of bench/sweeps/mlp.yaml in PyTorch, one after another in one process: what a user writes as a loop.

Data of the same shapes, AdamW, batches of 32 in a new order each epoch, an evaluation after each epoch.
"""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

EXAMPLES, TEST, BATCH, EPOCHS = 1437, 360, 32, 10


def train(x, y, test_x, test_y, rate, decay, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    best = 0.0
    for _ in range(EPOCHS):
        order = torch.randperm(EXAMPLES)
        for begin in range(0, EXAMPLES - BATCH + 1, BATCH):
            rows = order[begin : begin + BATCH]
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            best = max(best, (model(test_x).argmax(1) == test_y).float().mean().item())
    return best


def main():
    torch.manual_seed(0)
    patterns = torch.randn(10, 64)
    y, test_y = torch.randint(0, 10, (EXAMPLES,)), torch.randint(0, 10, (TEST,))
    x = patterns[y] + 0.3 * torch.randn(EXAMPLES, 64)
    test_x = patterns[test_y] + 0.3 * torch.randn(TEST, 64)
    trials = itertools.product([0.0003, 0.001, 0.003, 0.01], [0.0001, 0.001, 0.01, 0.1], range(4))
    print(max(train(x, y, test_x, test_y, *trial) for trial in trials))


if __name__ == "__main__":
    main()
