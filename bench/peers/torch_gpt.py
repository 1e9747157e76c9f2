"""The transformer of configs/gpt.yaml in PyTorch, and its training on the same texts.

    torch_gpt.py STEPS SEED

Trains as the config says: windows of 128 bytes from an offset that is drawn in each epoch, AdamW, the same schedule over
STEPS, clipping, dropout and initial values. Prints the validation loss after the last step, in nats a byte.
"""

import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, POSITIONS, FEATURES, HEADS, HIDDEN, LAYERS, DROPOUT = 256, 128, 128, 4, 512, 4, 0.1
BATCH, WARMUP, PEAK, END, DECAY = 32, 100, 0.002, 0.0002, 0.1
LICENSES = Path("/usr/share/common-licenses")
TRAIN = ["Apache-2.0", "Artistic", "BSD", "CC0-1.0", "GFDL-1.2", "GFDL-1.3", "GPL-1", "GPL-2", "GPL-3", "LGPL-2",
         "LGPL-2.1", "LGPL-3", "MPL-1.1"]  # fmt: skip


def dense(features_in, features_out):
    """With the initial values of flax.linen.Dense."""
    layer = nn.Linear(features_in, features_out)
    deviation = math.sqrt(1 / features_in) / 0.87962566103423978
    nn.init.trunc_normal_(layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
    nn.init.zeros_(layer.bias)
    return layer


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(FEATURES, eps=1e-6), nn.LayerNorm(FEATURES, eps=1e-6)
        self.query, self.key, self.value = (dense(FEATURES, FEATURES) for _ in range(3))
        self.out = dense(FEATURES, FEATURES)
        self.up, self.down = dense(FEATURES, HIDDEN), dense(HIDDEN, FEATURES)
        self.drop = nn.Dropout(DROPOUT)
        # Of one example, for `begin` in forward().
        self.register_buffer("keys", torch.zeros(1, HEADS, POSITIONS, FEATURES // HEADS))
        self.register_buffer("values", torch.zeros(1, HEADS, POSITIONS, FEATURES // HEADS))

    def forward(self, x, begin=None):
        """begin: the position of x[:, 0], which attends to what calls before have left in keys and values, too."""
        examples, count, _ = x.shape
        normalised = self.norm1(x)
        q, k, v = (
            part(normalised).view(examples, count, HEADS, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        if begin is not None:
            self.keys[:, :, begin : begin + count] = k
            self.values[:, :, begin : begin + count] = v
            k, v = self.keys[:, :, : begin + count], self.values[:, :, : begin + count]
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=count > 1)
        x = x + self.drop(self.out(attended.transpose(1, 2).reshape(examples, count, FEATURES)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, FEATURES), nn.Embedding(POSITIONS, FEATURES)
        nn.init.normal_(self.tokens.weight, std=math.sqrt(1 / FEATURES))
        nn.init.normal_(self.positions.weight, std=0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(FEATURES, eps=1e-6)

    def forward(self, tokens, begin=None):
        first = begin or 0
        x = self.tokens(tokens) + self.positions.weight[first : first + tokens.shape[1]]
        for block in self.blocks:
            x = block(x, begin)
        return self.norm(x) @ self.tokens.weight.T


def windows(data, offset):
    """[windows, 129]: inputs and the targets after them; the last window ends with the data."""
    count = (len(data) - 1) // POSITIONS
    first = [min(i * POSITIONS + offset, len(data) - 1 - POSITIONS) for i in range(count)]
    return torch.stack([data[i : i + POSITIONS + 1] for i in first])


def loss_of(model, batch):
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


@torch.no_grad()
def validation(model, held_out):
    model.eval()
    sums = sum(loss_of(model, batch).item() * len(batch) for batch in held_out.split(BATCH))
    model.train()
    return sums / len(held_out)


def rate(step, steps):
    if step < WARMUP:
        return PEAK * step / WARMUP
    return END + (PEAK - END) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def train(steps, seed):
    torch.manual_seed(seed)
    data = torch.tensor(list(b"".join((LICENSES / name).read_bytes() for name in TRAIN)))
    held_out = windows(torch.tensor(list((LICENSES / "MPL-2.0").read_bytes())), 0)
    model = Transformer()
    kernels = [p for name, p in model.named_parameters() if p.dim() == 2 and "tokens" not in name and "pos" not in name]
    others = [p for p in model.parameters() if all(p is not kernel for kernel in kernels)]
    optimizer = torch.optim.AdamW([{"params": kernels, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}])
    step = 0
    while step < steps:
        examples = windows(data, int(torch.randint(POSITIONS, ())))
        order = torch.randperm(len(examples))
        for begin in range(0, len(examples) - BATCH + 1, BATCH):
            for group in optimizer.param_groups:
                group["lr"] = rate(step, steps)
            optimizer.zero_grad()
            loss_of(model, examples[order[begin : begin + BATCH]]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step == steps:
                break
    return validation(model, held_out)


if __name__ == "__main__":
    print(train(int(sys.argv[1]), int(sys.argv[2])))
