"""Greedy continuation with the transformer of configs/gpt.yaml in PyTorch, with keys and values in memory.

    torch_generate.py TOKENS [THREADS]

Prints the seconds of a token. The cache is allocated once, and a token attends to the positions before it by a slice of
it, without a mask. Past the 128 positions the last half of the context is computed anew, as pmaptrain does.
"""

import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, POSITIONS, FEATURES, HEADS, HIDDEN, LAYERS = 256, 128, 128, 4, 512, 4
PROMPT = 17


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(FEATURES, eps=1e-6), nn.LayerNorm(FEATURES, eps=1e-6)
        self.qkv, self.out = nn.Linear(FEATURES, 3 * FEATURES), nn.Linear(FEATURES, FEATURES)
        self.up, self.down = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, FEATURES)
        self.register_buffer("keys", torch.zeros(1, HEADS, POSITIONS, FEATURES // HEADS))
        self.register_buffer("values", torch.zeros(1, HEADS, POSITIONS, FEATURES // HEADS))

    def forward(self, x, begin):
        count = x.shape[1]
        end = begin + count
        q, k, v = self.qkv(self.norm1(x)).view(1, count, 3 * HEADS, -1).transpose(1, 2).chunk(3, dim=1)
        self.keys[:, :, begin:end] = k
        self.values[:, :, begin:end] = v
        attended = F.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=count > 1)  # fmt: skip
        x = x + self.out(attended.transpose(1, 2).reshape(1, count, FEATURES))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, FEATURES), nn.Embedding(POSITIONS, FEATURES)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(FEATURES, eps=1e-6)

    def forward(self, tokens, begin):
        x = self.tokens(tokens) + self.positions.weight[begin : begin + tokens.shape[1]]
        for block in self.blocks:
            x = block(x, begin)
        return self.norm(x[:, -1]) @ self.tokens.weight.T


@torch.inference_mode()
def generate(model, prompt, count):
    context, known = list(prompt), 0
    for _ in range(count):
        if len(context) > POSITIONS:
            context, known = context[POSITIONS // 2 :], 0
        logits = model(torch.tensor([context[known:]]), known)
        known = len(context)
        context.append(int(logits.argmax()))
    return context


def main():
    count = int(sys.argv[1])
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    model, prompt = Transformer().eval(), range(PROMPT)
    generate(model, prompt, 20)
    begin = time.perf_counter()
    generate(model, prompt, count)
    print((time.perf_counter() - begin) / count)


if __name__ == "__main__":
    main()
