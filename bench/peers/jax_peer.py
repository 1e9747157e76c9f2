"""One work in JAX: pmap over devices with donated buffers, or one plain jit.

    jax_peer.py WORK VARIANT DEVICES SECONDS

WORK is linear_regression, cnn, cnn_BATCH, mlp, wide_mlp, transformer, transformer_large or resnet18.

VARIANT joins words with '-': pmap or jit, then perhaps bf16, and cuda. With bf16, parameters are cast to bfloat16 for
the layers; they, Adam and the loss stay float32. With cuda it runs on the first GPU, of which pmap's axis is then the
one device, and float32 is no TF32; else on the CPU, which pmap takes for DEVICES. DEVICES sets the size of linear
regression's batch.
"""

import os
import sys

work, devices, seconds = sys.argv[1], int(sys.argv[3]), float(sys.argv[4])
variant, *words = sys.argv[2].split("-")
if variant not in ("pmap", "jit") or not set(words) <= {"bf16", "cuda"}:
    sys.exit(f"jax_peer.py: there is no variant '{sys.argv[2]}'")
on_gpu = "cuda" in words
parts = 1 if on_gpu else devices  # of pmap
if on_gpu:
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
elif variant == "pmap":
    # Read when the library is loaded.
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}"
os.environ["JAX_PLATFORMS"] = "cuda" if on_gpu else "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import jax_models as models  # noqa: E402
from measure import measure, report  # noqa: E402

if on_gpu:
    try:
        jax.devices()
    except Exception:  # of several kinds, by what is missing
        sys.exit("jax_peer.py: error: JAX finds no GPU; it may lack its packages for CUDA")
if on_gpu and "bf16" not in words:
    jax.config.update("jax_default_matmul_precision", "highest")  # the default is TF32
random = np.random.default_rng(0)


def normal(*shape, scale=1.0):
    return (random.standard_normal(shape) * scale).astype(np.float32)


def layer(*shape):
    """A kernel with LeCun's scale and its bias."""
    return {"kernel": normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5), "bias": np.zeros(shape[-1], np.float32)}


def dense(parameters, x):
    return x @ parameters["kernel"] + parameters["bias"]


def conv_relu_pool(parameters, x):
    x = jax.lax.conv_general_dilated(
        x, parameters["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.relu(x + parameters["bias"])
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32)), labels[..., None], axis=-1)
    return -jnp.mean(chosen)


def linear_loss(parameters, x, y):
    return jnp.mean((dense(parameters[0], x) - y) ** 2)


def cnn_loss(parameters, x, y):
    x = conv_relu_pool(parameters[1], conv_relu_pool(parameters[0], x))
    return cross_entropy(dense(parameters[2], x.reshape(x.shape[0], -1)), y)


def mlp_loss(parameters, x, y):
    x = jax.nn.relu(dense(parameters[0], x))
    x = jax.nn.relu(dense(parameters[1], x))
    return cross_entropy(dense(parameters[2], x), y)


def labels(count):
    return random.integers(0, 10, count).astype(np.int32)


def transformer_loss(parameters, x, y):
    return cross_entropy(models.transformer(work)(parameters, x), y)


statistics = []  # running ones of batch norms: their means and variances


def resnet_loss(parameters, x, y):
    logits, moments = models.resnet18(parameters, x)
    return cross_entropy(logits, y), moments


# The loss, the parameters, the whole batch, and whether Adam updates.
if work == "linear_regression":
    examples = 100 * devices
    loss, parameters, batch, adam = linear_loss, [layer(5, 1)], (normal(examples, 5), normal(examples, 1)), False
elif work.partition("_")[0] == "cnn":
    examples = int(work.partition("_")[2] or 128)
    loss, parameters = cnn_loss, [layer(3, 3, 3, 32), layer(3, 3, 32, 64), layer(4096, 10)]
    batch, adam = (normal(examples, 32, 32, 3), labels(examples)), True
elif work in ("mlp", "wide_mlp"):
    width = 512 if work == "mlp" else 4096
    loss, parameters = mlp_loss, [layer(784, width), layer(width, width), layer(width, 10)]
    batch, adam = (normal(256, 784), labels(256)), True
elif work in models.TRANSFORMERS:
    loss, parameters = transformer_loss, models.transformer_parameters(random, work)
    batch, adam = models.text(random, work), True
elif work == "resnet18":
    loss, parameters, statistics = resnet_loss, models.resnet18_parameters(random), models.resnet18_statistics()
    batch, adam = (normal(128, 32, 32, 3), labels(128)), False
else:
    sys.exit(f"jax_peer.py: there is no work '{work}'")


def sgd(state, gradients):
    return {"parameters": jax.tree.map(lambda p, g: p - 0.05 * g, state["parameters"], gradients)}


def nesterov(state, gradients, rate=0.01, momentum=0.9, decay=0.0005):
    gradients = jax.tree.map(lambda p, g: g + decay * p, state["parameters"], gradients)
    trace = jax.tree.map(lambda t, g: momentum * t + g, state["trace"], gradients)
    parameters = jax.tree.map(lambda p, t, g: p - rate * (momentum * t + g), state["parameters"], trace, gradients)
    return {"parameters": parameters, "trace": trace}


def adam_update(state, gradients, rate=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state["mean"], gradients)
    square = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state["square"], gradients)
    mean_scale = 1 / (1 - b1 ** count.astype(jnp.float32))
    square_scale = 1 / (1 - b2 ** count.astype(jnp.float32))
    parameters = jax.tree.map(
        lambda p, m, v: p - rate * (m * mean_scale) / (jnp.sqrt(v * square_scale) + eps),
        state["parameters"], mean, square,
    )
    return {"parameters": parameters, "mean": mean, "square": square, "count": count}


def step(state, x, y):
    def in_precision(parameters, x, y):
        if "bf16" in words:
            narrow = lambda array: array.astype(jnp.bfloat16) if array.dtype == jnp.float32 else array  # noqa: E731
            parameters, x = jax.tree.map(narrow, (parameters, x))
        return loss(parameters, x, y) if statistics else (loss(parameters, x, y), [])

    (value, moments), gradients = jax.value_and_grad(in_precision, has_aux=True)(state["parameters"], x, y)
    if variant == "pmap":
        value, gradients = jax.lax.pmean((value, gradients), "devices")
    moved = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, state["statistics"], moments)
    return update(state, gradients) | {"statistics": moved}, value


update = adam_update if adam else nesterov if statistics else sgd
state = {"parameters": parameters, "statistics": statistics}
if update is nesterov:
    state |= {"trace": jax.tree.map(np.zeros_like, parameters)}
if adam:
    state |= {"mean": jax.tree.map(np.zeros_like, parameters), "square": jax.tree.map(np.zeros_like, parameters)}
    state |= {"count": np.zeros((), np.int32)}
if variant == "pmap":
    train = jax.pmap(step, axis_name="devices", donate_argnums=0)
    place = jax.pmap(lambda array: array)  # leaves each device its part
    state = place(jax.tree.map(lambda array: np.broadcast_to(array, (parts, *array.shape)), state))
    batch = place(tuple(array.reshape(parts, -1, *array.shape[1:]) for array in batch))
else:
    train = jax.jit(step, donate_argnums=0)
    batch = jax.device_put(batch)
jax.block_until_ready((state, batch))


losses = []  # of the first step


def steps(count):
    global state
    for _ in range(count):
        state, value = train(state, *batch)
    jax.block_until_ready((state, value))
    if not np.isfinite(np.asarray(value)).all():
        sys.exit("jax_peer.py: the loss is not finite")
    if not losses:
        losses.append(float(np.mean(value)))


count = sum(array.size for array in jax.tree.leaves(parameters))
report(measure(steps, seconds) | {"parameters": count, "first_loss": losses[0], "version": jax.__version__})
