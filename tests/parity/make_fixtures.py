#!/usr/bin/env python3
"""Trains small models with JAX and Optax, and writes what tests/parity/parity.cpp compares pmaptrain with.

    python3 -m venv /tmp/parity && /tmp/parity/bin/pip install jax==0.10.2 flax==0.12.8 optax==0.2.8 numpy==2.4.6 \\
        safetensors==0.8.0
    /tmp/parity/bin/python tests/parity/make_fixtures.py [CASE...]

makes all of it, or anew the cases that are named; fixture_cases.py says what they are. data/NAME.npz holds examples, or NAME.csv,
cases/NAME what one case needs:

    config.yaml             on one device, without microbatches; the test cuts it up in other ways
    initial.safetensors     the parameters to start from
    first_step.safetensors  the parameters after one step
    expected.json           loss, metrics and norm of the gradient for each of 20 steps, or of as many as the case has
    ema.safetensors         the averaged parameters after the last, where the case has them

schedules.json holds the rates of schedules, which tests/schedules/schedules.cpp reads, and plateaus.json the scales of
reduce_on_plateau, which tests/train/plateau.cpp reads. cases.txt lists the cases. JAX sees a
whole batch at a time, by plain functions: no rows of padding, no devices, no microbatches. Two cases are trained by pmap and by shard_map as well, which must agree. Each case is also trained in
64 bits, and one whose results in 32 bits are not close to those is refused: a comparison with it would say nothing.
"""

import fnmatch
import functools
import importlib.metadata
import json
import os
import pathlib
import shutil
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
from flax import linen as nn
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from safetensors.numpy import save_file

from fixture_cases import kind_and_options, make_cases, make_plateaus, make_schedules

PINS = {"jax": "0.10.2", "jaxlib": "0.10.2", "flax": "0.12.8", "optax": "0.2.8", "numpy": "2.4.6", "safetensors": "0.8.0"}
RUNNING = ("mean", "var")  # of batch_norm
STEPS = 20
SCHEDULE_STEPS = 60
BESIDE_THE_RULE = ["base_batch_size", "clip", "clip_by_global_norm", "weight_decay_exclude", "groups"]
HERE = pathlib.Path(__file__).resolve().parent

# A case whose 32-bit run strays further than this (relative) from its 64-bit run is refused. Its tests allow 1e-4.
WELL_CONDITIONED = 2e-5


# ---- data ----


def make_data() -> dict:
    """Arrays by file: 52 examples each, so that a batch of 24 leaves a short one of 4."""
    rng = np.random.default_rng(0)
    n = 52

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    x = normal(n, 5)
    regression = {"x": x, "y": (x @ normal(5, 2) + 0.5 + 0.3 * normal(n, 2)).astype(np.float32)}
    x = normal(n, 6)
    classes = {"x": x, "y": np.argmax(x @ normal(6, 3) + 0.5 * normal(n, 3), axis=1).astype(np.int32)}
    labels = rng.integers(0, 3, n).astype(np.int64)
    images = {"x": (normal(n, 7, 6, 2) + normal(3, 7, 6, 2)[labels]).astype(np.float32), "y": labels}
    pixels = rng.integers(0, 256, (n, 6, 5)).astype(np.uint8)
    chances = {"x": regression["x"], "y": (1 / (1 + np.exp(-regression["y"]))).astype(np.float32)}
    answers = {"x": classes["x"], "y": (classes["y"] > 0).astype(np.int64)}
    kinds = {"x": classes["x"], "y": np.argmax(classes["x"] @ normal(6, 7) + normal(n, 7), axis=1).astype(np.int32)}
    tokens = {"x": rng.integers(0, 24, (n, 6)).astype(np.uint8), "y": rng.integers(0, 3, n).astype(np.int64)}
    following = rng.integers(0, 24, (n, 6)).astype(np.int64)
    following[rng.random((n, 6)) < 0.3] = following[3] = -100
    labelled = {"x": rng.integers(0, 24, (n, 6)).astype(np.uint16), "y": following}
    tags = {"x": classes["x"], "y": (classes["x"] @ normal(6, 4) + 0.7 * normal(n, 4) > 0.8).astype(np.float32)}
    counts = {"x": regression["x"], "y": rng.poisson(np.exp(np.clip(0.4 * regression["y"], -2, 2))).astype(np.float32)}
    pixel = normal(n, 6, 5, 2)
    maps = {"x": pixel, "y": np.argmax(pixel @ normal(2, 3) + 0.5 * normal(n, 6, 5, 3), axis=-1).astype(np.int32)}
    some = np.where(rng.random((n, 6, 5)) < 0.3, 255, maps["y"])
    some[3] = 255
    partial_maps = {"x": pixel, "y": some.astype(np.int64)}
    return {"maps": maps, "partial_maps": partial_maps, "tags": tags, "counts": counts, "regression": regression, "classes": classes, "images": images, "chances": chances, "answers": answers,
            "tokens": tokens, "labelled": labelled,
            "pixels": {"x": pixels, "y": (pixels.mean(axis=(1, 2)) > 128).astype(np.uint8)}, "kinds": kinds}


# A table, whose numbers of categories are 1, 2, ... in the order of their names: the columns, and how many categories
# they have.
TABLE = {"area": 0, "city": 9, "age": 0, "rooms": 0, "kind of house": 4}


def make_table() -> dict:
    rng, n = np.random.default_rng(7), 52
    cells = {name: rng.permutation(np.arange(n) % count) + 1 if count else rng.standard_normal(n)
             for name, count in TABLE.items()}
    x = np.stack(list(cells.values()), axis=1).astype(np.float32)
    score = rng.standard_normal((9, 3))[cells["city"] - 1] + rng.standard_normal((4, 3))[cells["kind of house"] - 1]
    return {"x": x, "y": np.argmax(score + x[:, [0]] + 0.5 * rng.standard_normal((n, 3)), axis=1).astype(np.int32)}


def table_text(table) -> str:
    lines = [",".join([*TABLE, "y"])]
    for row, label in zip(table["x"], table["y"], strict=True):
        cells = [f"c{int(cell):02}" if count else repr(float(cell)) for cell, count in zip(row, TABLE.values(), strict=True)]
        lines.append(",".join([*cells, str(label)]))
    return "\n".join(lines) + "\n"


# ---- layers: parameters, and functions of (parameters, x) ----


def pair_padding(padding):
    return padding if isinstance(padding, str) else [tuple(pair) for pair in padding]


def conv(options, p, x):
    """Over sequences and volumes Flax's module, which has a padding CAUSAL."""
    if len(options["kernel_size"]) != 2:
        options = {**options, "padding": pair_padding(options.get("padding", "SAME")), "use_bias": "bias" in p}
        return nn.Conv(**options).apply({"params": p}, x)
    y = lax.conv_general_dilated(x, p["kernel"], options.get("strides", (1, 1)),
                                 pair_padding(options.get("padding", "SAME")),
                                 rhs_dilation=options.get("kernel_dilation", (1, 1)),
                                 feature_group_count=options.get("feature_group_count", 1),
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["bias"] if "bias" in p else y


def dense(options, p, x):
    y = x @ p["kernel"]
    return y + p["bias"] if "bias" in p else y


def window(options):
    padding = pair_padding(options.get("padding", "VALID"))
    if not isinstance(padding, str):
        padding = [(0, 0), *padding, (0, 0)]
    return (1, *options["window_shape"], 1), (1, *options["strides"], 1), padding


def max_pool(options, p, x):
    return lax.reduce_window(x, -jnp.inf, lax.max, *window(options))


def avg_pool(options, p, x):
    total = lax.reduce_window(x, 0.0, lax.add, *window(options))
    if options.get("count_include_pad", True):
        return total / np.prod(options["window_shape"])
    return total / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, *window(options))


def norm(module):
    """A module of Flax with the options of a layer, whose names are the same, and the parameters that it has."""
    return lambda options, p, x: module(**options).apply({"params": p}, x)


def rms_norm(options, p, x):
    """Flax's has no bias."""
    options = dict(options)
    bias = p.get("bias", 0) if options.pop("use_bias", False) else 0
    return norm(nn.RMSNorm)(options, {field: value for field, value in p.items() if field != "bias"}, x) + bias


def batch_norm(options, p, x, statistics=None):
    """In training; `statistics` gets the mean and the variance of x."""
    options = {key: value for key, value in options.items() if key != "axes"}
    statistics = {} if statistics is None else statistics
    trained = {field: p[field] for field in ("scale", "bias") if field in p}
    module = nn.BatchNorm(use_running_average=False, **(options | {"momentum": 0.0}))
    y, moved = module.apply({"params": trained, "batch_stats": {field: p[field] for field in RUNNING}}, x,
                            mutable=["batch_stats"])
    statistics.update(moved["batch_stats"])
    return y


def heads_of(options, features):
    """The numbers of heads of queries and of keys, and the size of a head."""
    heads = options["heads"]
    return heads, options.get("kv_heads", heads), options.get("head_dim", features // heads)


def rotated(x, base):
    """Pairs of features i and i + D / 2, as in GPT-NeoX; x is (B, T, H, D)."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * jnp.asarray(base ** (-np.arange(half) / half), x.dtype)
    cosine, sine = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def attention(options, p, x):
    """Flax's module; where it has no such option, functions of JAX."""
    heads, kv_heads, size = heads_of(options, x.shape[-1])
    causal, rotary = options.get("causal", False), options.get("rotary")
    if kv_heads == heads and rotary is None:
        tree = {}
        for field, value in p.items():
            part, name = field.split(".")
            tree.setdefault(part, {})[name] = value
        module = nn.MultiHeadAttention(num_heads=heads, qkv_features=heads * size, out_features=x.shape[-1],
                                       use_bias=options.get("use_bias", True), deterministic=True,
                                       normalize_qk=options.get("qk_norm", False))
        return module.apply({"params": tree}, x, mask=nn.make_causal_mask(x[..., 0]) if causal else None)
    parts = []
    for part in ("query", "key", "value"):
        y = jnp.einsum("btc,chd->bthd", x, p[f"{part}.kernel"]) + p.get(f"{part}.bias", 0)
        if options.get("qk_norm", False) and part != "value":
            y = nn.LayerNorm(use_bias=False).apply({"params": {"scale": p[f"{part}_ln.scale"]}}, y)
        parts.append(y if rotary is None or part == "value" else rotated(y, rotary.get("base", 10000.0)))
    y = jax.nn.dot_product_attention(*parts, is_causal=causal)
    return jnp.einsum("bthd,hdc->btc", y, p["out.kernel"]) + p.get("out.bias", 0)


def swiglu(options, p, x):
    return (jax.nn.silu(x @ p["gate.kernel"]) * (x @ p["up.kernel"])) @ p["down.kernel"]


def recurrent(cell_class):
    """Flax's cells in its modules."""
    def apply(options, p, x):
        tree = {}
        for field, value in p.items():
            *direction, part, name = field.split(".")
            cell = tree.setdefault(direction[0], {}).setdefault("cell", {}) if direction else tree.setdefault("cell", {})
            cell.setdefault(part, {})[name] = value

        def make():
            return nn.RNN(cell_class(options["features"], param_dtype=x.dtype), reverse=options.get("reverse", False), keep_order=True)

        both = options.get("bidirectional", False)
        y = (nn.Bidirectional(make(), make()) if both else make()).apply({"params": tree}, x)
        if options.get("return", "all") == "all":
            return y
        features = options["features"]
        if both:
            return jnp.concatenate([y[:, -1, :features], y[:, 0, features:]], -1)
        return y[:, 0 if options.get("reverse", False) else -1]

    return apply


def class_token(options, p, x):
    return jnp.concatenate([jnp.broadcast_to(p["token"], (x.shape[0], 1, x.shape[-1])), x], 1)


def take(options, p, x):
    return x[:, {"first": 0, "last": -1}.get(options["position"], options["position"])]


def table_embedding(options, p, x):
    """By Flax's module."""
    parts = []
    for column, (name, count) in enumerate(TABLE.items()):
        own = p.get(f"{name.replace(' ', '_')}.embedding")
        if not count:
            parts.append(x[:, column:column + 1])
            continue
        rows = nn.Embed(*own.shape).apply({"params": {"embedding": own}}, x[:, column].astype(jnp.int32))
        parts.append(rows.astype(x.dtype))
    return jnp.concatenate(parts, axis=1)


def tables_of(options, rng):
    """What table_embedding has."""
    own = {}
    for name, count in TABLE.items():
        if not count:
            continue
        width = options.get("width", "auto")
        width = min(600, round(1.6 * count ** 0.56)) if width == "auto" else width
        own[f"{name.replace(' ', '_')}.embedding"] = rng.standard_normal((count + 1, width)) / np.sqrt(width)
    return own


def sequence_parameters(kind, options, x, rng):
    """Of embedding, position_embedding, class_token, attention, swiglu, lstm and gru; of others none."""
    features, own = x.shape[-1], {}

    def kernel(name, *shape, inputs):
        own[f"{name}.kernel"] = rng.standard_normal(shape) / np.sqrt(inputs)

    if kind == "embedding":
        size = (options["num_embeddings"], options["features"])
        own["embedding"] = rng.standard_normal(size) / np.sqrt(size[1])
    if kind == "position_embedding":
        own["embedding"] = 0.3 * rng.standard_normal((options["length"], features))
    if kind == "class_token":
        own["token"] = 0.3 * rng.standard_normal(features)
    if kind == "attention":
        heads, kv_heads, size = heads_of(options, features)
        for part, count in (("query", heads), ("key", kv_heads), ("value", kv_heads)):
            kernel(part, features, count, size, inputs=features)
            own[f"{part}.bias"] = 0.1 * rng.standard_normal((count, size))
        kernel("out", heads, size, features, inputs=heads * size)
        own["out.bias"] = 0.1 * rng.standard_normal(features)
        if not options.get("use_bias", True):
            own = {field: value for field, value in own.items() if not field.endswith(".bias")}
        if options.get("qk_norm", False):
            own |= {f"{part}_ln.scale": 1 + 0.1 * rng.standard_normal(size) for part in ("query", "key")}
    if kind in ("lstm", "gru"):
        gates, size = ("ifgo" if kind == "lstm" else "rzn"), options["features"]
        biases = ("hi", "hf", "hg", "ho") if kind == "lstm" else ("ir", "iz", "in", "hn")
        for direction in ("forward_rnn.", "backward_rnn.") if options.get("bidirectional", False) else ("",):
            for gate in gates:
                kernel(f"{direction}i{gate}", features, size, inputs=features)
                kernel(f"{direction}h{gate}", size, size, inputs=size)
            own |= {f"{direction}{name}.bias": 0.1 * rng.standard_normal(size) for name in biases}
    if kind == "swiglu":
        hidden = options["hidden"]
        kernel("gate", features, hidden, inputs=features)
        kernel("up", features, hidden, inputs=features)
        kernel("down", hidden, features, inputs=hidden)
    return own


LAYERS = {
    "table_embedding": table_embedding,
    "embedding": lambda options, p, x: jnp.asarray(p["embedding"])[x],
    "attend": lambda options, p, x: x @ p["embedding"].T,
    "position_embedding": lambda options, p, x: x + p["embedding"][:x.shape[1]],
    "lstm": recurrent(nn.OptimizedLSTMCell),
    "gru": recurrent(nn.GRUCell),
    "class_token": class_token,
    "take": take,
    "attention": attention,
    "swiglu": swiglu,
    "scale": lambda options, p, x: x * p["scale"],
    "batch_norm": batch_norm,
    "dense": dense,
    "conv": conv,
    "conv_transpose": lambda options, p, x: nn.ConvTranspose(**{**options, "use_bias": "bias" in p}).apply(
        {"params": p}, x),
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "global_max_pool": lambda options, p, x: jnp.max(x, axis=tuple(range(1, x.ndim - 1))),
    "upsample": lambda options, p, x: jax.image.resize(
        x, (x.shape[0], *(options["scale"] * size for size in x.shape[1:-1]), x.shape[-1]),
        options.get("method", "nearest")),
    "global_avg_pool": lambda options, p, x: jnp.mean(x, axis=tuple(range(1, x.ndim - 1))),
    "reshape": lambda options, p, x: x.reshape(x.shape[0], *options["shape"]),
    "transpose": lambda options, p, x: x.transpose(0, *(1 + d for d in options["permutation"])),
    "layer_norm": norm(nn.LayerNorm),
    "rms_norm": rms_norm,
    "group_norm": norm(nn.GroupNorm),
    "flatten": lambda options, p, x: x.reshape(x.shape[0], -1),
    "relu": lambda options, p, x: jax.nn.relu(x),
    "tanh": lambda options, p, x: jnp.tanh(x),
    "gelu": lambda options, p, x: jax.nn.gelu(x, approximate=options.get("approximate", "tanh") == "tanh"),
    "sigmoid": lambda options, p, x: jax.nn.sigmoid(x),
    "silu": lambda options, p, x: jax.nn.silu(x),
    "softmax": lambda options, p, x: jax.nn.softmax(x),
    "leaky_relu": lambda options, p, x: jax.nn.leaky_relu(x, **options),
    "elu": lambda options, p, x: jax.nn.elu(x, **options),
    "softplus": lambda options, p, x: jax.nn.softplus(x),
}


def paths_of(layers, prefix=""):
    """(path, kind, options) of each layer of a list."""
    counts = {}
    for layer in layers:
        kind, options = kind_and_options(layer)
        name = layer.get("name") if isinstance(layer, dict) else None
        yield prefix + (name or f"{kind}_{counts.get(kind, 0)}"), kind, options
        counts[kind] = counts.get(kind, 0) + 1


def flattened(layers, prefix=""):
    """(path, kind, options) of each layer; those of a nested list are under its name."""
    for path, kind, options in paths_of(layers, prefix):
        if kind == "layers":
            yield from flattened(options, path + ".")
        else:
            yield path, kind, options


def joined(join, values):
    """What is (B, C) is added to, or multiplied by, all positions of (B, ..., C)."""
    if join == "concat":
        return jnp.concatenate([jnp.atleast_1d(value) for value in values], -1)
    rank = max(jnp.ndim(value) for value in values)
    values = [jnp.reshape(value, (*jnp.shape(value)[:1], *[1] * (rank - jnp.ndim(value)), *jnp.shape(value)[1:]))
              for value in values]
    return functools.reduce(jnp.add if join == "add" else jnp.multiply, values)


def applied(layers, x, function, prefix=""):
    """x through the layers, each by function(path, kind, options, x)."""
    for path, kind, options in paths_of(layers, prefix):
        if kind == "layers":
            x = applied(options, x, function, path + ".")
        elif kind == "residual":
            x = (applied(options["layers"], x, function, path + ".")
                 + applied(options.get("shortcut", []), x, function, path + ".shortcut."))
        elif kind == "parallel":
            branches = options["branches"]
            named = branches.items() if isinstance(branches, dict) else enumerate(branches)
            x = joined(options["join"], [applied(branch, x, function, f"{path}.{name}.") for name, branch in named])
        elif kind == "repeat":
            for time in range(options["times"]):
                x = applied(options["layers"], x, function, f"{path}.{time}.")
        else:
            x = function(path, kind, options, x)
    return x


def takes_tokens(layers) -> bool:
    return kind_and_options(layers[0])[0] == "embedding"


def own_parameters(kind, options, path, parameters):
    """Those of a layer; attend takes the table of another."""
    return parameters.get(options["embedding"] if kind == "attend" else path, {})


def initial_parameters(layers, shape) -> dict:
    """By layer: kernels of variance 1 / inputs and small biases, for examples of this shape."""
    rng = np.random.default_rng(1)
    parameters = {}

    def add(path, kind, options, x):
        if kind in ("dense", "conv", "conv_transpose"):
            inputs = x.shape[-1] // options.get("feature_group_count", 1)
            kernel = (*options.get("kernel_size", ()), inputs, options["features"])
            own = {"kernel": rng.standard_normal(kernel) / np.sqrt(np.prod(kernel[:-1]))}
            if options.get("use_bias", True):
                own["bias"] = 0.1 * rng.standard_normal(options["features"])
            parameters[path] = {field: value.astype(np.float32) for field, value in own.items()}
        if kind.endswith("_norm"):
            own = {}
            if options.get("use_scale", True):
                own["scale"] = 1 + 0.1 * rng.standard_normal(x.shape[-1])
            if options.get("use_bias", kind != "rms_norm"):
                own["bias"] = 0.1 * rng.standard_normal(x.shape[-1])
            if kind == "batch_norm":
                own |= {"mean": rng.standard_normal(x.shape[-1]), "var": 1 + rng.random(x.shape[-1])}
            parameters[path] = {field: value.astype(np.float32) for field, value in own.items()}
        if kind == "scale":
            parameters[path] = {"scale": (1 + 0.1 * rng.standard_normal(x.shape[-1])).astype(np.float32)}
        if own := tables_of(options, rng) if kind == "table_embedding" else sequence_parameters(kind, options, x, rng):
            parameters[path] = {field: value.astype(np.float32) for field, value in own.items()}
        return LAYERS[kind](options, own_parameters(kind, options, path, parameters), x)

    dtype = np.int32 if takes_tokens(layers) else np.float32
    jax.eval_shape(lambda x: applied(layers, x, add), jax.ShapeDtypeStruct((1, *shape), dtype))
    return parameters


def forward(layers, parameters, x, statistics=None):
    """`statistics` gets those of each batch_norm, by path."""
    def function(path, kind, options, y):
        if kind != "batch_norm":
            return LAYERS[kind](options, own_parameters(kind, options, path, parameters), y)
        return batch_norm(options, parameters[path], y, None if statistics is None else statistics.setdefault(path, {}))

    return applied(layers, x, function)


def forward_in_parts(case, parameters, x):
    """What the model gives, and the statistics of batch_norm over all rows: each of case["parts"] equal ranges of the
    rows of a batch, such as those of a device, has statistics of its own."""
    parts = case.get("parts", 1)
    rows = case["batch_size"] // parts if parts > 1 else len(x)
    outputs, means = [], {}
    for begin in range(0, len(x), rows):
        found, part = {}, x[begin:begin + rows]
        outputs.append(forward(case["layers"], parameters, part, found))
        for path, fields in found.items():
            for field, value in fields.items():
                own = means.setdefault(path, {})
                own[field] = own.get(field, 0) + value * (len(part) / len(x))
    return jnp.concatenate(outputs), means


def running(case, parameters, means):
    """The parameters with running statistics that have moved to these."""
    momenta = {}
    applied(case["layers"], 0, lambda path, kind, options, x: momenta.setdefault(path, options.get("momentum", 0.99)) * 0)
    return {path: fields | {field: momenta[path] * parameters[path][field] + (1 - momenta[path]) * mean
                            for field, mean in means.get(path, {}).items()} for path, fields in parameters.items()}


# ---- losses of each example, metrics, optimizers ----

def softmax_cross_entropy(options, y, t):
    wanted = optax.smooth_labels(jax.nn.one_hot(t, y.shape[1], dtype=y.dtype), options.get("label_smoothing", 0.0))
    weights = jnp.asarray(options.get("class_weights", [1.0] * y.shape[1]), y.dtype)
    return optax.softmax_cross_entropy(y, wanted) * weights[t]


def sigmoid_cross_entropy(options, y, t):
    targets = t.astype(y.dtype).reshape(y.shape)
    positives = jnp.asarray(options.get("positive_weights", [1.0] * y.shape[1]), y.dtype)
    losses = jnp.mean(optax.sigmoid_binary_cross_entropy(y, targets) * (1 + (positives - 1) * targets), axis=1)
    weights = options.get("class_weights")
    return losses * jnp.asarray(weights, y.dtype)[t] if weights else losses


def focal(options, y, t):
    """Of classes by softmax, of labels as optax.sigmoid_focal_loss, which follows torchvision's."""
    gamma, alpha = options.get("gamma", 2.0), options.get("alpha")
    if t.ndim == 1 and y.shape[1] > 1:
        entropy = optax.softmax_cross_entropy_with_integer_labels(y, t)
        return (1 - jnp.exp(-entropy)) ** gamma * entropy
    return jnp.mean(optax.sigmoid_focal_loss(y, t.astype(y.dtype).reshape(y.shape), alpha=alpha, gamma=gamma), axis=1)


def quantile(options, y, t):
    q = jnp.asarray(options.get("q", [0.1, 0.5, 0.9]), y.dtype)
    error = t[:, :, None] - y.reshape(len(y), t.shape[1], len(q))
    return jnp.mean(jnp.maximum(q * error, (q - 1) * error), axis=(1, 2))


LOSSES = {
    "focal": focal,
    "quantile": quantile,
    "poisson": lambda options, y, t: jnp.mean(jnp.exp(y) - t * y, axis=1),
    "softmax_cross_entropy": softmax_cross_entropy,
    "sigmoid_cross_entropy": sigmoid_cross_entropy,
    "mean_squared_error": lambda options, y, t: jnp.mean((y - t) ** 2, axis=1),
    "mean_absolute_error": lambda options, y, t: jnp.mean(jnp.abs(y - t), axis=1),
    "huber": lambda options, y, t: jnp.mean(optax.huber_loss(y, t, **options), axis=1),
    "log_cosh": lambda options, y, t: jnp.mean(optax.log_cosh(y, t), axis=1),
}


def said_class(y):
    return jnp.argmax(y, axis=1) if y.shape[1] > 1 else (y[:, 0] > 0).astype(jnp.int32)


def said_labels(options, y):
    threshold = options.get("threshold", 0.5)
    return y > np.log(threshold / (1 - threshold))


def accuracy(options, y, t):
    if t.ndim == 1:
        return {"accuracy": jnp.mean(said_class(y) == t)}
    right = jnp.mean(said_labels(options, y) == (t > 0.5), axis=0)
    average = options.get("average", "micro")
    if average == "none":
        return {f"accuracy_{index}": value for index, value in enumerate(right)}
    if average == "weighted":
        return {"accuracy_weighted": jnp.sum(right * jnp.sum(t, axis=0)) / jnp.sum(t)}
    return {"accuracy": jnp.mean(right)}


def subset_accuracy(options, y, t):
    return {"subset_accuracy": jnp.mean(jnp.all(said_labels(options, y) == (t > 0.5), axis=1))}


def of_labels(name, options, y, t, quotient):
    """The same of several labels."""
    said, right = said_labels(options, y), t > 0.5
    average = options.get("average", "macro")

    def over(axis):
        above, below = quotient(jnp.sum(said & right, axis=axis), jnp.sum(said, axis=axis), jnp.sum(right, axis=axis))
        return jnp.where(below > 0, above / jnp.maximum(below, 1), 0.0)

    if average == "samples":
        return {f"{name}_samples": jnp.mean(over(1))}
    if average == "micro":
        return {f"{name}_micro": over(None)}
    if average == "weighted":
        return {f"{name}_weighted": jnp.sum(over(0) * jnp.sum(right, axis=0)) / jnp.sum(right)}
    if average == "none":
        return {f"{name}_{index}": value for index, value in enumerate(over(0))}
    return {name: jnp.mean(over(0))}


def of_classes(name, options, y, t, quotient):
    """A quotient for each class of its hits, of how often it was said and of how often it was right."""
    if t.ndim == 2:
        return of_labels(name, options, y, t, quotient)
    classes = jnp.arange(max(2, y.shape[1]))[:, None]
    said, right = said_class(y)[None, :] == classes, t[None, :] == classes
    above, below = quotient(jnp.sum(said & right, axis=1), jnp.sum(said, axis=1), jnp.sum(right, axis=1))
    each = jnp.where(below > 0, above / jnp.maximum(below, 1), 0.0)
    if options.get("average", "macro") == "macro":
        occur = jnp.any(said | right, axis=1)
        return {name: each[1] if y.shape[1] == 1 else jnp.mean(each, where=occur)}
    return {f"{name}_{index}": value for index, value in enumerate(each)}


def matthews_corrcoef(options, y, t):
    """By its definition, a correlation of one-hot rows."""
    said = said_labels(options, y)[:, 0].astype(jnp.int32) if y.shape[1] == 1 else said_class(y)
    columns = max(2, y.shape[1])
    a, b = (rows - jnp.mean(rows, axis=0) for rows in (jax.nn.one_hot(said, columns), jax.nn.one_hot(t, columns)))
    spread = jnp.sqrt(jnp.sum(a * a) * jnp.sum(b * b))
    return {"matthews_corrcoef": jnp.where(spread > 1e-3, jnp.sum(a * b) / jnp.maximum(spread, 1e-3), 0.0)}


def r2(y, t):
    return jnp.mean(1 - jnp.sum((y - t) ** 2, axis=0) / jnp.sum((t - jnp.mean(t, axis=0)) ** 2, axis=0))


def top_k(y, t, k=5):
    return {f"top_{k}_accuracy": jnp.mean(jnp.any(lax.top_k(y, k)[1] == t[:, None], axis=1))}


# By name, values of a whole batch.
METRICS = {
    "accuracy": accuracy,
    "subset_accuracy": subset_accuracy,
    "mean_absolute_percentage_error": lambda options, y, t: {
        "mean_absolute_percentage_error": jnp.mean(jnp.abs(y - t) / jnp.maximum(jnp.abs(t), 2.0 ** -52))},
    "top_k_accuracy": lambda options, y, t: top_k(y, t, **options),
    "precision": lambda options, y, t: of_classes("precision", options, y, t, lambda hit, said, right: (hit, said)),
    "recall": lambda options, y, t: of_classes("recall", options, y, t, lambda hit, said, right: (hit, right)),
    "f1": lambda options, y, t: of_classes("f1", options, y, t, lambda hit, said, right: (2 * hit, said + right)),
    "mean_iou": lambda options, y, t: of_classes("iou" if options else "mean_iou", options, y, t,
                                                 lambda hit, said, right: (hit, said + right - hit)),
    "dice": lambda options, y, t: of_classes("dice", options, y, t, lambda hit, said, right: (2 * hit, said + right)),
    "matthews_corrcoef": matthews_corrcoef,
    "perplexity": lambda options, y, t: {
        "perplexity": jnp.exp(jnp.mean(optax.softmax_cross_entropy_with_integer_labels(y, t)))},
    "mean_absolute_error": lambda options, y, t: {"mean_absolute_error": jnp.mean(jnp.abs(y - t))},
    "mean_squared_error": lambda options, y, t: {"mean_squared_error": jnp.mean((y - t) ** 2)},
    "root_mean_squared_error": lambda options, y, t: {
        "root_mean_squared_error": jnp.mean(jnp.sqrt(jnp.mean((y - t) ** 2, axis=0)))},
    "r2": lambda options, y, t: {"r2": r2(y, t)},
}


LEFT = "what is left of the run"


def trapezoid(init_value, peak_value, end_value, warmup_steps, decay_steps, transition_steps):
    """Optax has its parts: a line, a constant rate and a line."""
    flat = transition_steps - decay_steps
    return optax.join_schedules([optax.linear_schedule(init_value, peak_value, warmup_steps),
                                 optax.constant_schedule(peak_value),
                                 optax.linear_schedule(peak_value, end_value, decay_steps)], [warmup_steps, flat])


# Optax's function of a schedule, and the defaults of a config that the function has not.
SCHEDULES = {
    "linear": (optax.linear_schedule, {"end_value": 0.0, "transition_steps": LEFT}),
    "polynomial": (optax.polynomial_schedule, {"end_value": 0.0, "power": 1.0, "transition_steps": LEFT}),
    "cosine_decay": (optax.cosine_decay_schedule, {"decay_steps": LEFT}),
    "exponential_decay": (optax.exponential_decay, {}),
    "warmup_cosine_decay": (optax.warmup_cosine_decay_schedule, {"init_value": 0.0, "decay_steps": LEFT}),
    "piecewise_constant": (optax.piecewise_constant_schedule, {}),
    "cosine_onecycle": (optax.cosine_onecycle_schedule, {"transition_steps": LEFT}),
    "trapezoid": (trapezoid, {"init_value": 0.0, "end_value": 0.0, "transition_steps": LEFT}),
}


def schedule_of(rate, length):
    """A schedule of Optax, for a number or a schedule of a config whose durations are steps."""
    if not isinstance(rate, dict):
        return optax.constant_schedule(rate)
    kind, options = kind_and_options(rate)
    if kind == "join":
        boundaries = options["boundaries"]
        starts = [0, *boundaries]
        return optax.join_schedules([schedule_of(each, length - start)
                                     for each, start in zip(options["schedules"], starts, strict=True)], boundaries)
    function, defaults = SCHEDULES[kind]
    lengths = ("warmup", "decay", "transition")
    given = {f"{name}_steps" if name in lengths else name: value for name, value in options.items()}
    if "boundaries_and_scales" in given:
        given["boundaries_and_scales"] = dict(given["boundaries_and_scales"])
    return function(**{name: length if value == LEFT else value for name, value in (defaults | given).items()})


def rule_of(case, scale, decay, mask):
    """The rule at a multiple of the learning rate, with a weight decay of its own where that is not None."""
    rule, options = kind_and_options(case["optimizer"])
    options = dict(options)
    factor = scale
    if "base_batch_size" in case:
        factor *= case["batch_size"] / case["base_batch_size"]
    rate = case["learning_rate"]
    if isinstance(rate, dict):
        schedule = schedule_of(rate, steps_of(case))
        rate = lambda count: schedule(count) * factor
    else:
        rate *= factor
    if decay is not None:
        options["weight_decay"] = decay
    if rule == "sgd":
        decay = options.get("weight_decay", 0.0)
        plain = optax.sgd(rate, momentum=options.get("momentum"), nesterov=options.get("nesterov", False))
        return optax.chain(optax.add_decayed_weights(decay, mask), plain) if decay else plain
    if rule in ("adamw", "lion"):
        options["mask"] = mask
    return getattr(optax, rule)(rate, **options)


def named(parameters, value_of):
    """A tree like the parameters, of values by name."""
    return {layer: {field: value_of(f"{layer}.{field}") for field in fields} for layer, fields in parameters.items()}


def group_of(case, name):
    """The number of the first group whose patterns match, or None."""
    for number, group in enumerate(case.get("groups", [])):
        patterns = group["parameters"] if isinstance(group["parameters"], list) else [group["parameters"]]
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return number
    return None


def is_frozen(case, name):
    number = group_of(case, name)
    return number is not None and case["groups"][number].get("freeze", False)


def without_frozen(case, gradients):
    frozen = named(gradients, lambda name: is_frozen(case, name))
    return jax.tree.map(lambda gradient, zero: jnp.zeros_like(gradient) if zero else gradient, gradients, frozen)


def optimizer_of(case):
    excluded = case.get("weight_decay_exclude", [])

    def decays(parameters):
        return named(parameters, lambda name: not any(fnmatch.fnmatchcase(name, each) for each in excluded))

    parts = []
    if "clip" in case:
        parts.append(optax.clip(case["clip"]))
    if "clip_by_global_norm" in case:
        parts.append(optax.clip_by_global_norm(case["clip_by_global_norm"]))
    rules = {"others": rule_of(case, 1.0, None, decays)}
    for number, group in enumerate(case.get("groups", [])):
        own = rule_of(case, group.get("learning_rate_scale", 1.0), group.get("weight_decay"), decays)
        rules[str(number)] = optax.set_to_zero() if group.get("freeze") else own

    def label(name):
        number = group_of(case, name)
        return "others" if number is None else str(number)

    if len(rules) == 1:
        parts.append(rules["others"])
    else:
        parts.append(optax.multi_transform(rules, lambda parameters: named(parameters, label)))
    return optax.chain(*parts)


# ---- training ----


def steps_of(case):
    return case.get("steps", STEPS)


def batches(case, data):
    """The batch of each step, in the order of the file."""
    size = len(data["x"]) if case["batch_size"] == "all" else case["batch_size"]
    starts = range(0, len(data["x"]), size)
    if case.get("remainder") != "mask":
        starts = [start for start in starts if start + size <= len(data["x"])]
    for step in range(steps_of(case)):
        start = starts[step % len(starts)]
        yield data["x"][start:start + size], data["y"][start:start + size]


def prepared(case, data, dtype):
    """Inputs as numbers, targets as labels or numbers, as the model gets them."""
    x, y = data["x"], data["y"]
    if takes_tokens(case["layers"]):
        return {"x": x.astype(np.int32), "y": y.astype(np.int32)}
    scale = 255 if x.dtype == np.uint8 else 1
    x = x.astype(dtype) / dtype(scale)
    if "normalize" in case:
        x = (x - np.asarray(case["normalize"]["mean"], dtype)) / np.asarray(case["normalize"]["std"], dtype)
    if x.ndim == 3:
        x = x[..., None]
    return {"x": x, "y": y.astype(np.int32 if y.ndim in (1, 3) else dtype)}


def measures_of(case, parameters, x, t):
    y, means = forward_in_parts(case, parameters, x)
    loss, options = kind_and_options(case["loss"])
    if y.ndim == t.ndim + 1 > 2:  # one position after another
        y, t = y.reshape(-1, y.shape[-1]), t.reshape(-1)
    if "ignore_label" in options:  # what counts
        counts = np.asarray(t) != options["ignore_label"]
        y, t = y[counts], t[counts]
    values = {"loss": jnp.mean(LOSSES[loss](options, y, t))}
    for metric in case.get("metrics", []):
        kind, options = kind_and_options(metric)
        values |= METRICS[kind](options, y, t)
    return values["loss"], (values, means)


def whole_batch_step(case, optimizer):
    def step(parameters, state, x, t):
        gradients, (values, means) = jax.grad(lambda p: measures_of(case, p, x, t), has_aux=True)(parameters)
        gradients = without_frozen(case, gradients)
        updates, state = optimizer.update(gradients, state, parameters)
        moved = running(case, parameters, means)
        parameters = optax.apply_updates(parameters, updates)
        parameters = {path: fields | {field: moved[path][field] for field in RUNNING if field in fields}
                      for path, fields in parameters.items()}
        return parameters, state, values | {"grad_norm": optax.global_norm(gradients)}

    # What counts depends on labels, which a compiled step does not know.
    return step if "ignore_label" in kind_and_options(case["loss"])[1] else jax.jit(step)


def mean_over(axes, case, optimizer):
    """One device's part of a step whose batch is split over these axes."""
    def step(parameters, state, x, t):
        gradients, (values, _) = jax.grad(lambda p: measures_of(case, p, x, t), has_aux=True)(parameters)
        gradients, values = lax.pmean((gradients, values), axes)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, values | {"grad_norm": optax.global_norm(gradients)}

    return step


def pmap_step(case, optimizer):
    devices = 8
    mapped = jax.pmap(mean_over("devices", case, optimizer), axis_name="devices", in_axes=(None, None, 0, 0))

    def step(parameters, state, x, t):
        shards = [a.reshape(devices, -1, *a.shape[1:]) for a in (x, t)]
        return jax.tree.map(lambda value: value[0], mapped(parameters, state, *shards))

    return step


def shard_map_step(case, optimizer):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("rows", "columns"))
    same, split = PartitionSpec(), PartitionSpec(("rows", "columns"))
    # Without the check of what varies, gradients are not summed by JAX before pmean averages them.
    return jax.jit(jax.shard_map(mean_over(("rows", "columns"), case, optimizer), mesh=mesh, check_vma=False,
                                 in_specs=(same, same, split, split), out_specs=same))


IN_PARTS = {"pmap": pmap_step, "shard_map": shard_map_step}


def train(case, data, make_step, dtype):
    data = prepared(case, data, dtype)
    parameters = initial_parameters(case["layers"], data["x"].shape[1:])
    parameters = jax.tree.map(lambda value: jnp.asarray(value, dtype), parameters)
    optimizer = optimizer_of(case)
    state, step, history, first = optimizer.init(parameters), make_step(case, optimizer), {}, None
    ema, average = optax.ema(**case.get("ema", {"decay": 0.0})), parameters
    ema_state = ema.init(parameters)
    for x, t in batches(case, data):
        parameters, state, values = step(parameters, state, jnp.asarray(x), jnp.asarray(t))
        average, ema_state = ema.update(parameters, ema_state)
        first = first or jax.device_get(parameters)
        for name, value in values.items():
            history.setdefault(name, []).append(float(value))
    return history, first, jax.device_get(average)


def distance(one, other):
    """The largest relative difference of two histories, or absolute difference of two sets of parameters."""
    (history, first, average), (other_history, other_first, other_average) = one, other
    steps = max(abs(a - b) / abs(b) if b else abs(a - b) for name in history
                for a, b in zip(history[name], other_history[name], strict=True))
    leaves = zip(jax.tree.leaves((first, average)), jax.tree.leaves((other_first, other_average)), strict=True)
    return max(steps, *(float(np.max(np.abs(a - b))) for a, b in leaves))


# ---- files ----


def flow(value) -> str:
    """YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return (f'"{value}"' if "*" in value else value) if isinstance(value, str) else json.dumps(value)


def source_of(case) -> str:
    if case["data"] != "table":
        return f"{{npz: {{file: ../../data/{case['data']}.npz, train: [x, y]}}}}"
    categorical = flow([name for name, count in TABLE.items() if count])
    return f"{{csv: {{train: ../../data/table.csv, target: y, categorical: {categorical}}}}}"


def config_of(name, case) -> str:
    lines = [f"name: {name}", "mesh:", "  axes: {devices: 1}", "data:", f"  source: {source_of(case)}",
             f"  batch_size: {case['batch_size']}", "  shuffle: false"]
    lines += [f"  {key}: {flow(case[key])}" for key in ("remainder", "normalize") if key in case]
    lines += ["model:", "  layers:", *(f"    - {flow(layer)}" for layer in case["layers"]),
              "  init: {from: initial.safetensors}", f"loss: {flow(case['loss'])}", f"metrics: {flow(case['metrics'])}",
              "optimizer:", f"  {flow(case['optimizer'])[1:-1]}", f"  learning_rate: {flow(case['learning_rate'])}"]
    lines += [f"  {key}: {flow(case[key])}" for key in BESIDE_THE_RULE if key in case]
    lines += ["train:", f"  duration: {steps_of(case)} steps", "  log_every: 1 step", "  eval_every: never"]
    lines += [f"  ema: {flow(case['ema'])}"] if "ema" in case else []
    return "\n".join(lines) + "\n"


def save_parameters(path, parameters):
    """By path, whatever the depth of the tree."""
    def leaves(tree, prefix):
        for field, value in tree.items():
            if isinstance(value, dict):
                yield from leaves(value, f"{prefix}{field}.")
            else:
                yield prefix + field, np.asarray(value)

    save_file(dict(leaves(parameters, "")), path)


def shown(history) -> str:
    """JSON with a list to a line; nine digits say a 32-bit number exactly."""
    rows = [f'  "{name}": [{", ".join(f"{value:.9g}" for value in values)}]' for name, values in history.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def write_case(name, case, data):
    single = train(case, data, whole_batch_step, np.float32)
    with jax.enable_x64(True):
        double = train(case, data, whole_batch_step, np.float64)
    apart = distance(single, double)
    if apart > WELL_CONDITIONED:
        sys.exit(f"{name}: 32 and 64 bits differ by {apart:.1e}; choose other sizes or a smaller rate")
    if "also" in case:
        sharded = distance(train(case, data, IN_PARTS[case["also"]], np.float32), single)
        print(f"{name}: {case['also']} differs by {sharded:.1e} from the whole batch")
        if sharded > WELL_CONDITIONED:
            sys.exit(f"{name}: {case['also']} disagrees with the whole batch")
    folder = HERE / "cases" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config_of(name, case), encoding="utf-8")
    (folder / "expected.json").write_text(shown(single[0]), encoding="utf-8")
    shape = prepared(case, data, np.float32)["x"].shape[1:]
    save_parameters(folder / "initial.safetensors", initial_parameters(case["layers"], shape))
    save_parameters(folder / "first_step.safetensors", single[1])
    if "ema" in case:
        save_parameters(folder / "ema.safetensors", single[2])
    return apart


def write_schedules():
    """The rates of schedules at each update of a run, and beyond its end, in 64 bits."""
    with jax.enable_x64(True):
        rows = []
        for rate in make_schedules():
            schedule = schedule_of(rate, SCHEDULE_STEPS)
            rates = [float(schedule(count)) for count in range(SCHEDULE_STEPS + 10)]
            shown_rates = ", ".join(f"{value:.9g}" for value in rates)
            rows.append(f'  {{"learning_rate": {json.dumps(flow(rate))},\n   "rates": [{shown_rates}]}}')
    (HERE / "schedules.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def write_plateaus():
    """The scale of reduce_on_plateau after each value, in 64 bits."""
    with jax.enable_x64(True):
        rows = []
        for plateau in make_plateaus():
            options = {name: value for name, value in plateau.items() if name != "values"}
            rule = optax.contrib.reduce_on_plateau(**options)
            parameters = jnp.zeros(1, jnp.float64)
            state, scales = rule.init(parameters), []
            for value in plateau["values"]:
                _, state = rule.update(parameters, state, value=value)
                scales.append(float(state.scale))
            rows.append("  " + json.dumps({"options": options, "values": plateau["values"], "scales": scales}))
    (HERE / "plateaus.json").write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def check_versions(pins):
    for package, version in pins.items():
        found = importlib.metadata.version(package)
        if found != version:
            sys.exit(f"{package} is {found}; these fixtures are made with {version}")


def main():
    check_versions(PINS)
    data, cases = make_data(), make_cases()
    chosen = sys.argv[1:] or list(cases)
    for name in chosen:
        if name not in cases:
            sys.exit(f"there is no case {name}")
    if not sys.argv[1:]:
        shutil.rmtree(HERE / "cases", ignore_errors=True)
    (HERE / "data").mkdir(exist_ok=True)
    for name, arrays in data.items():
        np.savez_compressed(HERE / "data" / f"{name}.npz", **arrays)
    data["table"] = make_table()
    (HERE / "data" / "table.csv").write_text(table_text(data["table"]), encoding="utf-8")
    write_schedules()
    write_plateaus()
    worst = max((write_case(name, cases[name], data[cases[name]["data"]]), name) for name in chosen)
    (HERE / "cases.txt").write_text("".join(f"{name}\n" for name in cases), encoding="utf-8")
    print(f"{len(chosen)} cases; 32 and 64 bits differ most in {worst[1]}, by {worst[0]:.1e}")


if __name__ == "__main__":
    main()
