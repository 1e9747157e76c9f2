"""Transformers and ResNet-18 in JAX: the models of bench/configs/transformer*.yaml and configs/resnet18.yaml.

Each gives its parameters, drawn by `random`, and a function of (parameters, x); that of ResNet-18 also gives the means
and variances of its batch norms, which move their running statistics.
"""

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY = 256
# Layers, features, heads, positions and sequences of a batch.
TRANSFORMERS = {"transformer": (4, 128, 4, 128, 32), "transformer_large": (6, 384, 6, 256, 16)}


def normal(random, shape, scale):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def kernel(random, *shape):
    return normal(random, shape, float(np.prod(shape[:-1])) ** -0.5)


def dense_parameters(random, inputs, outputs):
    return {"kernel": kernel(random, inputs, outputs), "bias": np.zeros(outputs, np.float32)}


def norm_parameters(features):
    return {"scale": np.ones(features, np.float32), "bias": np.zeros(features, np.float32)}


def dense(p, x):
    return x @ p["kernel"] + p["bias"]


def layer_norm(p, x):
    """Computed in float32."""
    wide = x.astype(jnp.float32)
    centred = wide - jnp.mean(wide, axis=-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-6)
    return (scaled * p["scale"] + p["bias"]).astype(x.dtype)


def transformer_parameters(random, work):
    layers, features, _, positions, _ = TRANSFORMERS[work]

    def block():
        return {"norm1": norm_parameters(features), "norm2": norm_parameters(features),
                "query_key_value": dense_parameters(random, features, 3 * features),
                "out": dense_parameters(random, features, features),
                "up": dense_parameters(random, features, 4 * features),
                "down": dense_parameters(random, 4 * features, features)}  # fmt: skip

    return {"tokens": normal(random, (VOCABULARY, features), features**-0.5),
            "positions": normal(random, (positions, features), 0.02),
            "blocks": [block() for _ in range(layers)], "norm": norm_parameters(features)}  # fmt: skip


def transformer(work):
    heads = TRANSFORMERS[work][2]

    def of_block(p, x):
        parts = dense(p["query_key_value"], layer_norm(p["norm1"], x))
        q, k, v = (part.reshape(*x.shape[:2], heads, -1) for part in jnp.split(parts, 3, axis=-1))
        attended = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + dense(p["out"], attended.reshape(x.shape))
        return x + dense(p["down"], jax.nn.gelu(dense(p["up"], layer_norm(p["norm2"], x)), approximate=True))

    def function(p, tokens):
        x = p["tokens"][tokens] + p["positions"]
        for block in p["blocks"]:
            x = of_block(block, x)
        return layer_norm(p["norm"], x) @ p["tokens"].T

    return function


def text(random, work):
    """Inputs and targets."""
    _, _, _, positions, sequences = TRANSFORMERS[work]
    tokens = random.integers(0, VOCABULARY, (sequences, positions + 1)).astype(np.int32)
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


# Channels before, channels after and stride of each block.
BLOCKS = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1),
          (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]  # fmt: skip


def resnet18_parameters(random):
    def convolution(inputs, outputs, size):
        return {"kernel": kernel(random, size, size, inputs, outputs)} | norm_parameters(outputs)

    def block(inputs, outputs, stride):
        layers = {"first": convolution(inputs, outputs, 3), "second": convolution(outputs, outputs, 3)}
        return layers if stride == 1 else layers | {"shortcut": convolution(inputs, outputs, 1)}

    return {"begin": convolution(3, 64, 3), "blocks": [block(*sizes) for sizes in BLOCKS],
            "head": dense_parameters(random, 512, 10)}  # fmt: skip


def resnet18(parameters, x):
    """The logits, and the mean and the variance of each batch norm."""
    moments = []

    def convolution(p, x, stride=1):
        x = jax.lax.conv_general_dilated(
            x, p["kernel"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide, axis=(0, 1, 2))
        variance = jnp.mean((wide - mean) ** 2, axis=(0, 1, 2))
        moments.append((mean, variance))
        return ((wide - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]).astype(x.dtype)

    x = jax.nn.relu(convolution(parameters["begin"], x))
    for p, (_, _, stride) in zip(parameters["blocks"], BLOCKS, strict=True):
        inner = convolution(p["second"], jax.nn.relu(convolution(p["first"], x, stride)))
        x = jax.nn.relu(inner + (convolution(p["shortcut"], x, stride) if "shortcut" in p else x))
    return dense(parameters["head"], jnp.mean(x, axis=(1, 2))), moments


def resnet18_statistics():
    """The running statistics that training begins with, in the order of the moments."""
    sizes = [64]
    for _, outputs, stride in BLOCKS:
        sizes += [outputs] * (2 if stride == 1 else 3)
    return [(np.zeros(size, np.float32), np.ones(size, np.float32)) for size in sizes]
