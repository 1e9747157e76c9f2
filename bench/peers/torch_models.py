"""Transformers, ResNet-18 and a U-Net in PyTorch: the models of bench/configs/transformer*.yaml, configs/gpt2.yaml,
configs/resnet18.yaml and configs/unet.yaml."""

import torch
import torch.nn.functional as F
from torch import nn

# Layers, features, heads, positions, sequences of a batch and kinds of tokens.
TRANSFORMERS = {"transformer": (4, 128, 4, 128, 32, 256), "transformer_large": (6, 384, 6, 256, 16, 256),
                "gpt2": (12, 768, 12, 1024, 8, 50257)}  # fmt: skip


class Block(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(features, eps=1e-6), nn.LayerNorm(features, eps=1e-6)
        self.query_key_value, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        parts = self.query_key_value(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, layers, features, heads, positions, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, features), nn.Embedding(positions, features)
        nn.init.normal_(self.tokens.weight, std=features**-0.5)
        nn.init.normal_(self.positions.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block(features, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(features, eps=1e-6)

    def forward(self, tokens):
        x = self.blocks(self.tokens(tokens) + self.positions.weight)
        return F.linear(self.norm(x), self.tokens.weight)


def transformer(work):
    """The model, inputs and targets."""
    *sizes, sequences, vocabulary = TRANSFORMERS[work]
    text = torch.randint(0, vocabulary, (sequences, sizes[-1] + 1))
    return Transformer(*sizes, vocabulary), text[:, :-1].contiguous(), text[:, 1:].contiguous()


def loss_of_positions(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def convolution(inputs, outputs, size, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs, momentum=0.1)
    )


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.layers = nn.Sequential(
            convolution(inputs, outputs, 3, stride), nn.ReLU(), convolution(outputs, outputs, 3, 1)
        )
        self.shortcut = nn.Identity() if stride == 1 else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        return F.relu(self.layers(x) + self.shortcut(x))


def resnet18():
    blocks, inputs = [], 64
    for outputs in (64, 128, 256, 512):
        blocks += [Residual(inputs, outputs, 1 if outputs == inputs else 2), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(
        convolution(3, 64, 3, 1), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    )


def convolution_of_level(inputs, outputs):
    return nn.Sequential(convolution(inputs, outputs, 3, 1), nn.ReLU())


class Level(nn.Module):
    """What it is given, beside what the smaller images below make of it."""

    def __init__(self, *below):
        super().__init__()
        self.below = nn.Sequential(nn.MaxPool2d(2), *below, nn.Upsample(scale_factor=2, mode="nearest"))

    def forward(self, x):
        return torch.cat((x, self.below(x)), dim=1)


def unet():
    lowest = Level(convolution_of_level(24, 48), convolution_of_level(48, 48))
    below = Level(convolution_of_level(12, 24), lowest, convolution_of_level(72, 24))
    return nn.Sequential(
        convolution_of_level(1, 12), below, convolution_of_level(36, 12), nn.Conv2d(12, 3, 1)
    )
