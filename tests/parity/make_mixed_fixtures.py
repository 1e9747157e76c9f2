#!/usr/bin/env python3
"""Trains small models in bfloat16 with Flax, and writes what tests/parity/mixed_precision.cpp compares pmaptrain with.

    python3 -m venv /tmp/parity && /tmp/parity/bin/pip install jax==0.10.2 flax==0.12.8 optax==0.2.8 numpy==2.4.6 \\
        safetensors==0.8.0
    /tmp/parity/bin/python tests/parity/make_mixed_fixtures.py

The modules have dtype=bfloat16 and param_dtype=float32; logits become float32 before the loss. mixed/NAME holds

    config.yaml             `precision: mixed_bfloat16`, on one device, without microbatches
    initial.safetensors     the parameters to start from, which Flax drew
    logits.safetensors      the logits of the first batch before the first step (step_0) and after it (step_1)
    gradients.safetensors   of the first step
    expected.json           loss and accuracy of each of 20 steps; and the loss of the same network

                                float32_loss        in float32
                                float32_sums_loss   in bfloat16 with pmaptrain's arithmetic, in functions of JAX
                                gpu_sums_loss       in bfloat16 with that of pmaptrain on GPUs, on four devices

The modules round a product before they add the bias, and round the gradients of parameters and the logits. pmaptrain
rounds none of these sums but what the next layer reads, once. On GPUs it also rounds a bias before it is added to such
a sum, and each device's gradient of a convolution's kernel. A case is refused where changes of the initial parameters
by half a unit in the last place of bfloat16 move the loss by more than WELL_CONDITIONED: a comparison would say little.

XLA is told not to leave out roundings to bfloat16 (xla_allow_excess_precision), so that the results are those of the
modules as they are written, on any machine.
"""

import os
import shutil
import sys

import make_fixtures as fixtures  # noqa: E402
from fixture_cases import ADAM, classes, convolution, dense_layer, images, pool  # noqa: E402

os.environ["XLA_FLAGS"] += " --xla_allow_excess_precision=false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from flax import linen as nn  # noqa: E402
from jax import lax  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

PINS = fixtures.PINS
FOLDER = fixtures.HERE / "mixed"
WELL_CONDITIONED = 5e-3


def make_cases() -> dict:
    two_by_two = pool("max_pool", [2, 2], [2, 2])
    in_float32 = {**dense_layer(16), "precision": "float32"}
    norm = {"group_norm": {"num_groups": 4}}
    table = {"embedding": {"num_embeddings": 24, "features": 16}}
    sequence = [table, {"position_embedding": {"length": 6}}, "layer_norm", {"attention": {"heads": 2, "causal": True}},
                "rms_norm", {"swiglu": {"hidden": 24}}, "global_avg_pool", dense_layer(3)]
    batch_norm = {"batch_norm": {"axes": ["devices"], "momentum": 0.9}}
    return {
        "batch_norm": images([convolution(8, [3, 3], use_bias=False), batch_norm, "relu", two_by_two, "flatten",
                              dense_layer(16), "relu"], ADAM, 0.0005),
        "sequence": classes(sequence, ADAM, 0.002, data="tokens"),
        "norms": images([convolution(8, [3, 3]), norm, "relu", two_by_two, convolution(8, [3, 3]), "layer_norm", "relu",
                         two_by_two, "flatten", dense_layer(16), "rms_norm", "relu"], ADAM, 0.0005),
        "mlp_in_part": classes([dense_layer(32), "relu", in_float32, "relu", dense_layer(3)], ADAM, 0.01),
        "mlp": classes([dense_layer(32), "relu", dense_layer(16), "relu", dense_layer(3)], ADAM, 0.01),
        "cnn": images([convolution(8, [3, 3]), "relu", two_by_two, convolution(8, [3, 3]), "relu", two_by_two], ADAM,
                      0.001),
    }


def named_layers(layers):
    """(path, kind, options, whether the layer is in float32) of each."""
    for layer, (name, kind, options) in zip(layers, fixtures.flattened(layers), strict=True):
        yield name, kind, options, not isinstance(layer, str) and layer.get("precision") == "float32"


NORMS = {"layer_norm": nn.LayerNorm, "rms_norm": nn.RMSNorm, "group_norm": nn.GroupNorm}


class PositionEmbedding(nn.Module):
    length: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        rows = self.param("embedding", nn.initializers.normal(0.02), (self.length, x.shape[-1]))
        return (x.astype(jnp.float32) + rows[:x.shape[1]]).astype(self.dtype)


class Swiglu(nn.Module):
    hidden: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        def dense(features, name):
            return nn.Dense(features, use_bias=False, dtype=self.dtype, name=name)

        inner = nn.silu(dense(self.hidden, "gate")(x)) * dense(self.hidden, "up")(x)
        return dense(x.shape[-1], "down")(inner)


class Network(nn.Module):
    layers: list
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        for name, kind, options, in_float32 in named_layers(self.layers):
            common = {"dtype": jnp.float32 if in_float32 else self.dtype, "param_dtype": jnp.float32, "name": name}
            if kind == "dense":
                x = nn.Dense(options["features"], **common)(x)
            elif kind == "conv":
                x = nn.Conv(options["features"], options["kernel_size"], use_bias=options.get("use_bias", True),
                            **common)(x)
            elif kind == "batch_norm":  # as in training; nothing here reads the running statistics
                x = nn.BatchNorm(use_running_average=False, momentum=options["momentum"], **common)(x)
            elif kind == "max_pool":
                x = nn.max_pool(x, tuple(options["window_shape"]), tuple(options["strides"]))
            elif kind in NORMS:
                x = NORMS[kind](**options, **common)(x)
            elif kind == "embedding":
                x = nn.Embed(**options, **common)(x)
            elif kind == "position_embedding":
                x = PositionEmbedding(options["length"], common["dtype"], name=name)(x)
            elif kind == "attention":
                module = nn.MultiHeadAttention(num_heads=options["heads"], deterministic=True,
                                               force_fp32_for_softmax=True, **common)
                x = module(x, mask=nn.make_causal_mask(x[..., 0]))
            elif kind == "swiglu":
                x = Swiglu(options["hidden"], common["dtype"], name=name)(x)
            elif kind == "global_avg_pool":
                x = jnp.mean(x.astype(jnp.float32), axis=1).astype(common["dtype"])
            elif kind == "relu":
                x = nn.relu(x)
            elif kind == "flatten":
                x = x.reshape(x.shape[0], -1)
            else:
                sys.exit(f"no module for {kind}")
        return x.astype(jnp.float32)


def rounded(kernel):
    """To bfloat16, with a gradient that is not."""
    return kernel + lax.stop_gradient(kernel.astype(jnp.bfloat16).astype(jnp.float32) - kernel)


def narrow(x):
    """Rounded to bfloat16, as its cotangent is."""
    return x.astype(jnp.bfloat16).astype(jnp.float32)


@jax.custom_vjp
def sum_for_float32(x):
    """What a norm reads of a matrix product: not rounded, but its cotangent is."""
    return x


sum_for_float32.defvjp(lambda x: (x, None), lambda _, g: (narrow(g),))


@jax.custom_vjp
def with_narrow_gradient(kernel):
    return kernel


with_narrow_gradient.defvjp(lambda kernel: (kernel, None), lambda _, g: (narrow(g),))


ON_GPUS = {"dense", "conv", "relu", "max_pool", "flatten"}
DEVICES = 4


def as_gpus_read(layers, parameters):
    """The logits are float32, so the bias of the last layer is not rounded."""
    *inner, _ = named_layers(layers)
    read = dict(parameters)
    for name, kind, _, in_float32 in inner:
        if name in read and not in_float32:
            read[name] = read[name] | {"bias": rounded(read[name]["bias"])}
            if kind == "conv":
                read[name]["kernel"] = with_narrow_gradient(read[name]["kernel"])
    return read


def on_gpus(layers, parameters, x):
    """Each device has rows of the batch. What it reads of the parameters, and its gradients, are its own."""
    copies = jax.tree.map(lambda p: jnp.broadcast_to(p, (DEVICES, *p.shape)), parameters)
    rows = x.reshape(DEVICES, -1, *x.shape[1:])
    y = jax.vmap(lambda p, x: float32_sums(layers, as_gpus_read(layers, p), x))(copies, rows)
    return y.reshape(-1, *y.shape[2:])


def attention_sums(options, p, x):
    def heads(part):
        return narrow(jnp.einsum("btc,chd->bthd", x, rounded(p[part]["kernel"])) + p[part]["bias"])

    q, k, v = heads("query"), heads("key"), heads("value")
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(q.shape[-1])  # neither they nor the weights are rounded
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, jnp.finfo(jnp.float32).min)
    y = narrow(jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v))
    return jnp.einsum("bthd,hdc->btc", y, rounded(p["out"]["kernel"])) + p["out"]["bias"]


def swiglu_sums(p, x):
    gate, up = narrow(x @ rounded(p["gate"]["kernel"])), narrow(x @ rounded(p["up"]["kernel"]))
    return narrow(jax.nn.silu(gate) * up) @ rounded(p["down"]["kernel"])


def float32_sums(layers, parameters, x):
    """Products are those of bfloat16 numbers, exact in float32."""
    before = None
    for name, kind, options, in_float32 in named_layers(layers):
        if kind == "embedding":
            x = parameters[name]["embedding"][x]
            continue
        if before == "dense" and (kind in NORMS or kind == "batch_norm"):
            x = sum_for_float32(x)
        else:
            x = x.astype(jnp.float32 if in_float32 else jnp.bfloat16)
        before = kind
        if kind in ("dense", "conv"):
            kernel = parameters[name]["kernel"]
            own = parameters[name] | {"kernel": kernel if in_float32 else rounded(kernel)}
            x = fixtures.LAYERS[kind](options, own, x.astype(jnp.float32))
        elif kind == "batch_norm":
            scale = parameters[name]["scale"]
            running = {"mean": jnp.zeros_like(scale), "var": jnp.ones_like(scale)}
            x = fixtures.LAYERS[kind](options, parameters[name] | running, x.astype(jnp.float32))
        elif kind in NORMS or kind == "position_embedding":
            x = fixtures.LAYERS[kind](options, parameters[name], x.astype(jnp.float32))
        elif kind == "attention":
            x = attention_sums(options, parameters[name], x.astype(jnp.float32))
        elif kind == "swiglu":
            x = swiglu_sums(parameters[name], x.astype(jnp.float32))
        elif kind == "global_avg_pool":
            x = jnp.mean(x.astype(jnp.float32), axis=1)
        else:
            x = fixtures.LAYERS[kind](options, {}, x)
    return x


def train(apply, parameters, case, data, rows=1):
    """Loss and accuracy by step; the gradients of the first step; the logits of the first batch before and after it.
    What is differentiated is the loss times `rows`. Its gradients are then divided, so other numbers are rounded."""
    optimizer = optax.adam(case["learning_rate"])
    history = {"loss": [], "accuracy": []}

    def measures(parameters, x, t):
        y = apply(parameters, x)
        loss = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(y, t))
        return rows * loss, {"loss": loss, "accuracy": jnp.mean(jnp.argmax(y, axis=1) == t)}

    @jax.jit
    def step(parameters, state, x, t):
        gradients, values = jax.grad(measures, has_aux=True)(parameters, x, t)
        gradients = jax.tree.map(lambda g: g / rows, gradients)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, gradients, values

    jitted = jax.jit(apply)
    state, logits, first = optimizer.init(parameters), {}, None
    first_batch = next(fixtures.batches(case, data))[0]
    for number, (x, t) in enumerate(fixtures.batches(case, data)):
        if number < 2:
            logits[f"step_{number}"] = np.asarray(jitted(parameters, first_batch))
        parameters, state, gradients, values = step(parameters, state, x, t)
        first = first or jax.device_get(gradients)
        for name, value in values.items():
            history[name].append(float(value))
    return history, first, logits


def modules(case, dtype):
    network = Network(case["layers"], dtype)
    return lambda parameters, x: network.apply({"params": parameters}, x, mutable=["batch_stats"])[0]


def distance(one, other):
    """As the test measures it: relative where the loss is above 1."""
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(one["loss"], other["loss"], strict=True))


def moved(parameters, seed):
    """By at most half a unit in the last place of bfloat16."""
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda v: v * (1 + 2.0**-9 * random.uniform(-1, 1, v.shape)).astype(np.float32), parameters)


def write_case(name, case, data):
    data = fixtures.prepared(case, data, np.float32)
    mixed, full = modules(case, jnp.bfloat16), modules(case, jnp.float32)
    parameters = Network(case["layers"], jnp.bfloat16).init(jax.random.key(0), data["x"][:1])["params"]
    history, gradients, logits = train(mixed, parameters, case, data)
    noise = max(distance(train(mixed, moved(parameters, seed), case, data)[0], history) for seed in range(4))
    if noise > WELL_CONDITIONED:
        sys.exit(f"{name}: parameters moved by a rounding give losses {noise:.1e} apart; choose a smaller rate")
    full_history = train(full, parameters, case, data)[0]
    own_history = train(lambda p, x: float32_sums(case["layers"], p, x), parameters, case, data)[0]
    history["float32_loss"], history["float32_sums_loss"] = full_history["loss"], own_history["loss"]
    if {kind for _, kind, _, _ in named_layers(case["layers"])} <= ON_GPUS:
        on_devices = train(lambda p, x: on_gpus(case["layers"], p, x), parameters, case, data, case["batch_size"])[0]
        history["gpu_sums_loss"] = on_devices["loss"]
    folder = FOLDER / name
    folder.mkdir(parents=True)
    config = fixtures.config_of(name, case) + "precision: mixed_bfloat16\n"
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    (folder / "expected.json").write_text(fixtures.shown(history), encoding="utf-8")
    fixtures.save_parameters(folder / "initial.safetensors", jax.device_get(parameters))
    fixtures.save_parameters(folder / "gradients.safetensors", gradients)
    save_file(logits, folder / "logits.safetensors")
    print(f"{name}: from a loss of {history['loss'][0]:.4f} to {history['loss'][-1]:.4f}; a rounding moves it by "
          f"{noise:.1e}, float32 by {distance(full_history, history):.1e}, sums in float32 by "
          f"{distance(own_history, history):.1e}")


def main():
    fixtures.check_versions(PINS)
    data = fixtures.make_data()
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, case in make_cases().items():
        write_case(name, case, data[case["data"]])


if __name__ == "__main__":
    main()
