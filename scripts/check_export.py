#!/usr/bin/env python3
"""Compares exported models with predict: by ONNX's checker and by ONNX Runtime.

    scripts/check_export.py build/release/pmaptrain [TREES]

Small runs have every layer that there is, inputs of bytes, of floats and of tables, every kind of loss, a bfloat16 run
and ensembles; TREES more (20) have random trees of layers. What ONNX Runtime computes must be within 1e-4 of the
largest output of `predict`. Needs third_party/onnx (scripts/bootstrap --dev); says so where it is missing.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
from random import Random

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-4

IMAGES = """
mesh: {axes: {devices: 2}}
data:
  source: {synthetic_images: {height: 11, width: 14, channels: 4, classes: 5, train: 64, test: 0}}
  batch_size: 32
  normalize: {mean: [0.4, 0.5, 0.6, 0.5], std: [0.2, 0.3, 0.4, 0.3]}
model:
  layers: [LAYERS]
loss: softmax_cross_entropy
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 6 steps}
"""

# Layers of images, of which each has 5 outputs in the end.
NETWORKS = {
    "convolutions": """{conv: {features: 8, kernel_size: [3, 2], strides: [2, 1], feature_group_count: 2}}, gelu,
        {max_pool: {window_shape: [3, 3], strides: [2, 2], padding: SAME}},
        {conv: {features: 6, kernel_size: [2, 3], kernel_dilation: [2, 1], padding: VALID, use_bias: false}}, silu,
        {name: block, layers: [{avg_pool: {window_shape: [2, 3], strides: [1, 2], padding: [[1, 0], [0, 2]]}}, elu,
                               {conv: {features: 4, kernel_size: [2, 2], padding: [[1, 2], [0, 1]]}}]},
        {dropout: 0.3}, flatten, {dense: 12}, tanh, {dense: {features: 5, use_bias: false}}""",
    "pools": """{avg_pool: {window_shape: [3, 3], strides: [2, 3], padding: SAME, count_include_pad: false}},
        {elu: 0.7}, {conv: {features: 7, kernel_size: [1, 1]}}, leaky_relu, {leaky_relu: 0.3}, softplus,
        {max_pool: {window_shape: [2, 2], strides: [1, 1], padding: [[0, 1], [1, 0]]}}, softmax, flatten,
        {dense: 6}, relu, {reshape: [2, 3]}, {reshape: [-1]}, {dense: 5}""",
    "pooled input": "global_avg_pool, {dense: 5}, softmax",
    "residual": """{residual: {layers: [{conv: {features: 6, kernel_size: [3, 3], strides: [2, 2]}}, relu,
                                        {conv: {features: 6, kernel_size: [3, 3]}}],
                               shortcut: [{conv: {features: 6, kernel_size: [1, 1], strides: [2, 2]}}]}}, relu,
        {repeat: {times: 2, layers: [{residual: {layers: [{conv: {features: 6, kernel_size: [3, 3]}}, tanh]}}]}},
        {residual: {layers: [softmax]}}, flatten, {residual: {layers: [{dense: 5}], shortcut: [{dense: 5}]}}""",
    "norms": """{conv: {features: 8, kernel_size: [3, 3]}}, {batch_norm: {momentum: 0.5}}, relu,
        {conv: {features: 6, kernel_size: [3, 3], strides: [2, 2]}}, {group_norm: {num_groups: 3, use_bias: false}},
        {gelu: {approximate: none}}, {batch_norm: {momentum: 0.5, use_scale: false, use_bias: false}},
        {reshape: [42, 6]}, {layer_norm: {epsilon: 1.0e-3}}, {transpose: [1, 0]}, {dense: 9}, {batch_norm: {momentum: 0.5}},
        {rms_norm: {use_bias: true}}, {scale: {scale_init: {constant: 0.5}}}, flatten, {dense: 8}, {batch_norm: {momentum: 0.5}}, {dense: 5}""",
    "branches": """{conv: {features: 6, kernel_size: [3, 3], strides: [2, 2]}}, relu,
        {parallel: {branches: {skip: [], deep: [{conv: {features: 4, kernel_size: [3, 3]}}, tanh],
                               wide: [{parallel: {branches: [[softmax], [{dense: 3}]], join: concat}}]}, join: concat}},
        {parallel: {branches: {skip: [], gate: [global_avg_pool, {dense: 19}, sigmoid]}, join: multiply}},
        {parallel: {branches: [[global_avg_pool], [], [{dense: 19}, relu]], join: add}}, flatten, {dense: 5}""",
    "class token": """{conv: {features: 8, kernel_size: [4, 4], strides: [4, 4]}}, {reshape: [12, 8]}, class_token,
        {position_embedding: {length: 13}}, {residual: {layers: [layer_norm, {attention: {heads: 2}}]}}, {take: first},
        {dense: 5}""",
    "rows of a picture": "{conv: {features: 3, kernel_size: [3, 3]}}, {take: 7}, {take: last}, {dense: 5}",
    "windows over positions": """{reshape: [77, 8]}, {conv: {features: 6, kernel_size: [3], padding: CAUSAL}}, relu,
        {conv: {features: 8, kernel_size: [4], strides: [2], kernel_dilation: [2], feature_group_count: 2}}, tanh,
        {max_pool: {window_shape: [3], strides: [2], padding: SAME}},
        {avg_pool: {window_shape: [2], strides: [1], padding: [[1, 0]], count_include_pad: false}}, flatten, {dense: 5}""",
    "upsampled": """{conv: {features: 4, kernel_size: [3, 3], strides: [2, 2]}}, {upsample: {scale: 3, method: bilinear}},
        {conv: {features: 6, kernel_size: [3, 3], strides: [2, 2]}}, relu, {upsample: 2}, global_max_pool, {dense: 5}""",
    "recurrent": """{reshape: [77, 8]}, {lstm: {features: 6, bidirectional: true}}, tanh,
        {gru: {features: 5, reverse: true}}, {lstm: 5}, {gru: {features: 7, bidirectional: true, return: last}}, {dense: 5}""",
    "transposed": """{conv: {features: 4, kernel_size: [3, 3], strides: [2, 2]}}, relu,
        {conv_transpose: {features: 6, kernel_size: [2, 3], strides: [2, 2]}}, tanh,
        {conv_transpose: {features: 3, kernel_size: [3, 2], strides: [1, 3], padding: VALID, kernel_dilation: [2, 1]}},
        {conv_transpose: {features: 4, kernel_size: [1, 1], strides: [2, 2], use_bias: false}}, global_max_pool, {dense: 5}""",
    "volumes": """{reshape: [7, 4, 11, 2]}, {conv: {features: 4, kernel_size: [3, 2, 3]}}, {batch_norm: {momentum: 0.5}}, relu,
        {max_pool: {window_shape: [2, 2, 2], strides: [2, 1, 2]}},
        {conv: {features: 6, kernel_size: [2, 2, 2], strides: [1, 1, 2], feature_group_count: 2, padding: VALID}}, tanh,
        {avg_pool: {window_shape: [1, 2, 2], strides: [1, 1, 1], padding: SAME, count_include_pad: false}},
        {conv_transpose: {features: 3, kernel_size: [2, 2, 2], strides: [1, 2, 2]}}, {upsample: 2},
        {parallel: {branches: [[], [{conv: {features: 2, kernel_size: [1, 1, 1]}}]], join: concat}}, flatten, {dense: 5}""",
    "positions": "{reshape: [77, 8]}, {dense: {features: 6, use_bias: false}}, tanh, global_avg_pool, {dense: 5}",
    "flat input": "{reshape: [7, 8, 11]}, sigmoid, flatten, {dense: 5}",
}

# Levels of a U-Net, as configs/unet.yaml, with a class for each pixel.
UNET = """{conv: {features: 4, kernel_size: [3, 3]}}, {batch_norm: {momentum: 0.5}}, relu,
        {parallel: {join: concat, branches: {skip: [], below: [{max_pool: {window_shape: [2, 2], strides: [2, 2]}},
            {conv: {features: 6, kernel_size: [3, 3]}}, relu, {parallel: {join: concat, branches: {skip: [],
                below: [{max_pool: {window_shape: [2, 2], strides: [2, 2]}}, {conv: {features: 8, kernel_size: [3, 3]}},
                        tanh, {upsample: 2}]}}}, {conv: {features: 5, kernel_size: [3, 3]}}, relu, {upsample: 2}]}}},
        {conv: {features: 3, kernel_size: [1, 1]}}"""

ARRAYS = """
mesh: {axes: {devices: 2}}
data:
  source: {npz: {file: data.npz, train: [x, TARGETS]}}
  batch_size: 16
  DATA
model: {layers: [LAYERS]}
loss: LOSS
optimizer: {adam: {}, learning_rate: 0.02}
train: {duration: 3 epochs}
"""

# Layers of sequences of 9 tokens, of which each has 5 outputs in the end.
SEQUENCES = {
    "windows": """{embedding: {num_embeddings: 31, features: 8}}, {conv: {features: 6, kernel_size: [4], padding: CAUSAL}},
        relu, {conv: {features: 8, kernel_size: [2]}}, {max_pool: {window_shape: [2], strides: [1], padding: SAME}},
        global_avg_pool, {dense: 5}""",
    "attention": """{name: tokens, embedding: {num_embeddings: 31, features: 8}}, {position_embedding: {length: 12}},
        {residual: {layers: [layer_norm, {attention: {heads: 2}}]}}, {residual: {layers: [layer_norm, {swiglu: 12}]}},
        layer_norm, {attend: {embedding: tokens}}, global_avg_pool, {dense: 5}""",
    "attention with options": """{embedding: {num_embeddings: 256, features: 12}},
        {parallel: {branches: [[{dense: 12}, tanh], [global_avg_pool, {dense: 12}]], join: multiply}},
        {attention: {heads: 4, kv_heads: 2, head_dim: 6, causal: true, dropout: 0.2, rotary: {base: 50.0}, qk_norm: true,
                     use_bias: false}}, tanh, {attention: {heads: 3, kv_heads: 1, causal: true}}, global_avg_pool,
        {dense: 5}""",
    "last position": """{embedding: {num_embeddings: 31, features: 8}}, {attention: {heads: 2, causal: true}},
        {take: last}, {dense: 5}""",
    "recurrent positions": """{embedding: {num_embeddings: 31, features: 8}}, {gru: 6}, {lstm: {features: 7, return: last}},
        {dense: 5}""",
}

# Layers of sequences of 9 tokens or fewer.
LENGTHS = {
    "attention": """{embedding: {num_embeddings: 31, features: 8}}, {attention: {heads: 2, kv_heads: 1, qk_norm: true}},
        {group_norm: {num_groups: 2}}, global_avg_pool, {dense: 5}""",
    "windows": """{embedding: {num_embeddings: 31, features: 6}}, {conv: {features: 8, kernel_size: [3]}}, tanh,
        {max_pool: {window_shape: [2], strides: [2], padding: [[1, 0]]}},
        {avg_pool: {window_shape: [3], strides: [1], padding: SAME, count_include_pad: false}}, {batch_norm: {momentum: 0.5}},
        {conv: {features: 4, kernel_size: [2], padding: CAUSAL}}, {take: last}, {dense: 5}""",
    "recurrent": """{embedding: {num_embeddings: 31, features: 6}}, {lstm: 5}, {gru: {features: 7, return: last}},
        {dense: 5}""",
    "recurrent from the end": """{embedding: {num_embeddings: 31, features: 6}}, {lstm: {features: 5, reverse: true}},
        class_token, {gru: {features: 4, bidirectional: true}}, {conv: {features: 6, kernel_size: [2], strides: [2],
        padding: VALID}}, {parallel: {branches: [[{lstm: {features: 4, bidirectional: true, return: last}}],
        [{gru: {features: 3, reverse: true, return: last}}], [{gru: {features: 2, reverse: true}}, global_avg_pool]],
        join: concat}}, {dense: 5}""",
    "class token": """{embedding: {num_embeddings: 31, features: 8}}, class_token, {attention: {heads: 2}},
        {parallel: {branches: [[{take: first}], [global_max_pool]], join: concat}}, {dense: 5}""",
}

# Such layers with 5 outputs for each position.
POSITIONS = {
    "from both ends": """{embedding: {num_embeddings: 31, features: 6}}, {gru: {features: 5, bidirectional: true}},
        {lstm: {features: 6, reverse: true}}, {dense: 5}""",
}

TABLE = """
mesh: {axes: {devices: 1}}
data:
  source: {csv: {train: shops.csv, target: TARGET, inputs: [age, city, logits], categorical: [city], missing: fill,
                 unknown: UNKNOWN}}
  batch_size: 16
  normalize: auto
model: {layers: [FIRST{dense: 8}, tanh, {dense: OUTPUTS}]}
loss: LOSS
optimizer: {adam: {}, learning_rate: 0.02}
train: {duration: 3 epochs}
"""

SHOPS = [(20 + 5 * (i % 7), ["Oslo", "Rome", "São Paulo", ""][i % 4], i % 3 - 0.5, ["no", "yes, twice"][i % 4 == 1],
          3 * (i % 7) + i % 4) for i in range(48)]


class Check:
    def __init__(self, program, folder):
        self.program, self.folder, self.problems, self.compared, self.layers = program, folder, [], 0, set()

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, arguments))}: {done.stderr}")

    def train(self, name, config, *options):
        file = self.folder / f"{name}.yaml"
        file.write_text(config)
        self.layers |= set(re.findall(r"[a-z_]+", config[config.index("layers:"):config.index("loss:")]))
        self.call("run", file, "--run-dir", self.folder / name, "--progress", "none", "-q", *options)
        return self.folder / name

    def export(self, run, *options):
        file = self.folder / "model.onnx"
        self.call("export", run, "--output", file, "--overwrite", *options)
        model = onnx.load(str(file))
        onnx.checker.check_model(model, full_check=True)
        versions = {opset.domain: opset.version for opset in model.opset_import}
        if model.ir_version != 8 or versions[""] != 17 or versions.get("ai.onnx.ml", 3) != 3:
            self.problems.append(f"{run.name}: IR version {model.ir_version}, operator sets {versions}")
        return onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])

    def predict(self, run, kind, inputs, *options):
        output = self.folder / "predictions.npy"
        self.call("predict", run, "--input", inputs, "--output", output, "--as", kind, "--overwrite", *options)
        return numpy.load(output)

    def compare(self, run, inputs, feed, kinds, options=(), predict=()):
        """`inputs`: a file; `feed`: the same for ONNX Runtime."""
        session = self.export(run, *options)
        names = [output.name for output in session.get_outputs()]
        if names != [kind for kind, _ in kinds]:
            self.problems.append(f"{run.name}: outputs {names}")
            return
        rows = len(next(iter(feed.values())))
        whole = session.run(None, feed)
        first = session.run(None, {name: values[:1] for name, values in feed.items()})
        for found, one, (kind, is_predicted) in zip(whole, first, kinds):
            if not is_predicted:
                continue
            expected = self.predict(run, kind, inputs, *options, *predict)
            largest = numpy.max(numpy.abs(expected))
            if numpy.max(numpy.ptp(expected, axis=0)) < 0.01 * largest:
                self.problems.append(f"{run.name}: {kind} are nearly the same for all inputs, which compares little")
            for values, wanted in ((found, expected), (one, expected[:1])):
                error = numpy.max(numpy.abs(values - wanted)) / largest if values.shape == wanted.shape else None
                if error is None or not error <= TOLERANCE:
                    self.problems.append(f"{run.name}: {kind} {values.shape} is {error} apart from {wanted.shape}")
            self.compared += 1
        if len(whole[0]) != rows:
            self.problems.append(f"{run.name}: {len(whole[0])} rows of {rows}")


CLASSES = [("logits", True), ("probabilities", True)]
MEAN_OF_CLASSES = [("logits", False), ("probabilities", True)]
NUMBERS = [("values", True)]


def check_images(check, random):
    brightness = random.integers(0, 192, (10, 1, 1, 4))
    images = (brightness + random.integers(0, 64, (10, 11, 14, 4))).astype(numpy.uint8)
    numpy.save(check.folder / "images.npy", images)
    file, feed = check.folder / "images.npy", {"inputs": images}
    for name, layers in NETWORKS.items():
        run = check.train(name, IMAGES.replace("LAYERS", layers))
        check.compare(run, file, feed, CLASSES)
    mixed = check.train("bfloat16", IMAGES.replace("LAYERS", NETWORKS["convolutions"]) + "precision: mixed_bfloat16\n")
    check.compare(mixed, file, feed, CLASSES, predict=["--set", "precision=float32"])
    maps = IMAGES.replace("synthetic_images: {height: 11, width: 14, channels: 4, classes: 5,",
                          "synthetic_masks: {height: 8, width: 12, channels: 4,").replace("LAYERS", UNET)
    smaller = numpy.ascontiguousarray(images[:, :8, :12])
    numpy.save(check.folder / "smaller.npy", smaller)
    check.compare(check.train("classes of pixels", maps), check.folder / "smaller.npy", {"inputs": smaller}, CLASSES)
    ensemble = "ensemble: {axis: members, vary: {seed: [0, 1, 2]}}\n"
    config = (IMAGES.replace("LAYERS", NETWORKS["pools"]) + ensemble).replace("{devices: 2}", "[{members: 3}, {devices: 2}]")
    run = check.train("ensemble", config)
    check.compare(run, file, feed, MEAN_OF_CLASSES)
    check.compare(run, file, feed, CLASSES, ["--member", "1"])
    logits, probabilities = check.export(run).run(None, feed)
    softmax = numpy.exp(logits) / numpy.exp(logits).sum(-1, keepdims=True)
    if numpy.max(numpy.abs(softmax - probabilities)) > TOLERANCE:
        check.problems.append("ensemble: the softmax of the logits is not the mean of the probabilities")


def check_arrays(check, random):
    x = random.normal(3, 2, (40, 6)).astype(numpy.float32)
    numpy.savez(check.folder / "data.npz", x=x, one=x[:, :1] * 50 + 1000, two=x[:, :2] * [9, 0.1] + [100, 7],
                bits=(x[:, :3] > 3).astype(numpy.float32), rates=numpy.abs(x[:, :2]), grid=x.reshape(40, 2, 3) * 3)
    numpy.save(check.folder / "x.npy", x)
    file, feed = check.folder / "x.npy", {"inputs": x}

    def run(name, targets, layers, loss, data="normalize: auto", ensemble=""):
        config = ARRAYS.replace("TARGETS", targets).replace("LAYERS", layers).replace("LOSS", loss) + ensemble
        if ensemble:
            config = config.replace("{devices: 2}", "[{members: 2}, {devices: 1}]")
        return check.train(name, config.replace("DATA", data))

    ensemble = "ensemble: {axis: members, vary: {seed: [0, 1]}}\n"
    units = "normalize_targets: auto"
    check.compare(run("linear", "one", "{dense: 1}", "mean_squared_error", units), file, feed, NUMBERS)
    check.compare(run("two outputs", "two", "{dense: 9}, relu, {dense: 2}", "huber", units), file, feed, NUMBERS)
    check.compare(run("grid", "grid", "{dense: 6}, {reshape: [2, 3]}", "mean_absolute_error", units), file, feed, NUMBERS)
    check.compare(run("mean of values", "two", "{dense: 2}", "mean_squared_error", units, ensemble), file, feed, NUMBERS)
    logarithms, some = "normalize_targets: log", "normalize_targets: {1: log}"
    check.compare(run("logarithms", "rates", "{dense: 2}", "mean_squared_error", logarithms), file, feed, NUMBERS)
    check.compare(run("mean of logarithms", "rates", "{dense: 2}", "huber", logarithms, ensemble), file, feed, NUMBERS)
    check.compare(run("one logarithm", "rates", "{dense: 6}", "quantile", some), file, feed, NUMBERS)
    check.compare(run("rates", "rates", "{dense: 2}", "poisson"), file, feed, NUMBERS)
    check.compare(run("mean of rates", "rates", "{dense: 2}", "poisson", ensemble=ensemble), file, feed, NUMBERS)
    check.compare(run("several labels", "bits", "{dense: 3}", "sigmoid_cross_entropy"), file, feed, CLASSES)
    check.compare(run("several labels together", "bits", "{dense: 3}", "sigmoid_cross_entropy", ensemble=ensemble), file,
                  feed, MEAN_OF_CLASSES)


def check_sequences(check, random):
    x = random.integers(0, 31, (40, 9)).astype(numpy.uint8)
    numpy.savez(check.folder / "data.npz", x=x, y=random.integers(0, 5, 40))
    numpy.save(check.folder / "tokens.npy", x)
    for name, layers in SEQUENCES.items():
        config = ARRAYS.replace("TARGETS", "y").replace("LAYERS", layers).replace("LOSS", "softmax_cross_entropy")
        run = check.train(name, config.replace("DATA", "remainder: drop"))
        check.compare(run, check.folder / "tokens.npy", {"inputs": x}, CLASSES)
    for name, layers in SEQUENCES.items():
        # Parameters do not depend on the length, and a learning rate of 0 leaves them as they were.
        config = ARRAYS.replace("TARGETS", "y").replace("LAYERS", layers).replace("LOSS", "softmax_cross_entropy")
        config = config.replace("DATA", "remainder: drop").replace("learning_rate: 0.02", "learning_rate: 0.0")

        def run(length):
            numpy.savez(check.folder / "data.npz", x=x[:, :length], y=random.integers(0, 5, 40))
            return check.train(f"{name} of {length}", config)

        longer = check.export(run(9))
        numpy.save(check.folder / "tokens.npy", x[:, :5])
        expected = check.predict(run(5), "logits", check.folder / "tokens.npy")
        error = numpy.max(numpy.abs(longer.run(["logits"], {"inputs": x[:, :5]})[0] - expected))
        if not error <= TOLERANCE * numpy.max(numpy.abs(expected)):
            check.problems.append(f"{name}: shorter sequences are {error} apart")
        check.compared += 1


def check_lengths(check):
    random = numpy.random.default_rng(4)
    x = random.integers(0, 31, (40, 9))
    n = random.integers(0, 10, 40).astype(numpy.int32)
    other = numpy.where(numpy.arange(9) < n[:, None], x, random.integers(0, 31, (40, 9)))
    numpy.savez(check.folder / "data.npz", x=x, y=random.integers(0, 5, 40), n=n)
    numpy.savez(check.folder / "inputs.npz", x=x, n=n)
    for name, layers in LENGTHS.items():
        config = ARRAYS.replace("[x, TARGETS]", "{inputs: x, targets: y, lengths: n}").replace("LAYERS", layers)
        config = config.replace("LOSS", "softmax_cross_entropy").replace("DATA", "remainder: drop")
        run = check.train(f"lengths, {name}", config)
        check.compare(run, check.folder / "inputs.npz", {"inputs": other.astype(numpy.int32), "lengths": n}, CLASSES)
    numbers = (x[..., None] - 10.0 * numpy.arange(5)).astype(numpy.float32)
    numpy.savez(check.folder / "data.npz", x=x, y=random.integers(0, 5, (40, 9)), numbers=numbers, n=n)
    for name, layers in POSITIONS.items():
        config = ARRAYS.replace("[x, TARGETS]", "{inputs: x, targets: y, lengths: n}").replace("LAYERS", layers)
        config = config.replace("LOSS", "softmax_cross_entropy").replace("DATA", "remainder: drop")
        run = check.train(f"positions, {name}", config)
        check.compare(run, check.folder / "inputs.npz", {"inputs": other.astype(numpy.int32), "lengths": n}, CLASSES)
        config = config.replace("softmax_cross_entropy", "huber").replace("targets: y", "targets: numbers")
        run = check.train(f"numbers, {name}", config.replace("remainder: drop", "normalize_targets: auto"))
        check.compare(run, check.folder / "inputs.npz", {"inputs": other.astype(numpy.int32), "lengths": n}, NUMBERS)


def check_tables(check):
    lines = ["age,city,logits,bought,price"]
    for age, city, number, bought, price in SHOPS:
        lines.append(f'{"" if age == 30 else age},{city},{number},"{bought}",{price}')
    (check.folder / "shops.csv").write_text("\n".join(lines) + "\n")
    rows = [(25, "Oslo", 0.5), (None, "", -0.5), (60, "São Paulo", 3), (20, "Rome", 0)]
    strange = rows + [(40, "Ulm", 1)]

    def table(name, rows):
        text = "".join(f"{'' if age is None else age},{city},{number}\n" for age, city, number in rows)
        (check.folder / name).write_text("age,city,logits\n" + text)
        return check.folder / name, {
            "age": numpy.array([[numpy.nan if age is None else age] for age, _, _ in rows], numpy.float32),
            "city": numpy.array([[city] for _, city, _ in rows], object),
            "logits_input": numpy.array([[number] for _, _, number in rows], numpy.float32)}

    def run(name, target, outputs, loss, unknown, first="", members=0):
        config = TABLE.replace("TARGET", target).replace("OUTPUTS", outputs).replace("LOSS", loss)
        config = config.replace("UNKNOWN", unknown).replace("FIRST", first)
        if members:
            config = config.replace("{devices: 1}", f"[{{members: {members}}}, {{devices: 1}}]")
            config += f"ensemble: {{axis: members, vary: {{seed: {list(range(members))}}}}}\n"
        return check.train(name, config)

    def refuses_others(run):
        session = check.export(run)
        try:
            session.run(None, unknown[1])
            check.problems.append(f"{run.name}: a category that the training split does not have is accepted")
        except Exception as error:
            if "unknown" not in str(error).lower() and "zeros" not in str(error).lower():
                check.problems.append(f"{run.name}: {error}")
        return session

    known, unknown = table("known.csv", rows), table("unknown.csv", strange)
    check.compare(run("binary", "bought", "1", "sigmoid_cross_entropy", "ignore"), *unknown, CLASSES)
    check.compare(run("prices", "price", "1", "mean_squared_error", "ignore"), *unknown, NUMBERS)
    tables, wide = "{table_embedding: {dropout: 0.2}}, ", "{layers: [{name: rows, table_embedding: {width: 5}}]}, "
    check.compare(run("rows of tables", "bought", "1", "sigmoid_cross_entropy", "ignore", tables), *unknown, CLASSES)
    check.compare(run("members with tables", "price", "1", "mean_squared_error", "ignore", wide, 2), *unknown, NUMBERS)
    strict_rows = run("strict rows", "bought", "2", "softmax_cross_entropy", "error", tables)
    check.compare(strict_rows, *known, CLASSES)
    refuses_others(strict_rows)
    strict = run("strict", "bought", "2", "softmax_cross_entropy", "error")
    check.compare(strict, *known, CLASSES)
    session = refuses_others(strict)
    if json.loads(session.get_modelmeta().custom_metadata_map["classes"]) != ["no", "yes, twice"]:
        check.problems.append(f"strict: metadata {session.get_modelmeta().custom_metadata_map}")


class Tree:
    """Random layers of images [9,8,3] or, with `tokens`, of sequences [9]; 5 outputs in the end."""

    ANY = ["relu", "tanh", "gelu", "{gelu: {approximate: none}}", "sigmoid", "silu", "softmax", "leaky_relu",
           "{elu: 0.5}", "softplus", "{dropout: 0.2}", "layer_norm", "{layer_norm: {use_bias: false}}", "rms_norm",
           "{scale: {scale_init: {constant: 0.5}}}",
           "{rms_norm: {use_scale: false}}", "batch_norm", "{batch_norm: {use_scale: false}}",
           "{batch_norm: {use_bias: false}}"]

    def __init__(self, random, tokens):
        self.random = random
        first = "{embedding: {num_embeddings: 31, features: 8}}"
        layers, shape = ([first], [9, 8]) if tokens else ([], [9, 8, 3])
        for _ in range(random.randrange(2, 7)):
            text, shape = self.layer(shape, 2)
            layers.append(text)
        pools = ["global_avg_pool", "global_max_pool"]
        end = random.choice(pools) if len(shape) > 1 and random.random() < 0.5 else "flatten"
        self.text = ", ".join([*layers, end, "{dense: 5}"])

    def layer(self, shape, depth):
        """A layer for this shape, and the shape that it gives."""
        pick, draw = self.random.choice, self.random.random
        window = f"[{pick([1, 2, 3])}, {pick([1, 2])}], strides: [{pick([1, 2])}, {pick([1, 2])}], padding: SAME"
        strides = [int(size) for size in re.findall(r"strides: \[(\d), (\d)\]", window)[0]]
        if depth > 0 and draw() < 0.2:
            return self.residual(shape, depth) if draw() < 0.5 else self.parallel(shape, depth)
        if draw() < 0.35:
            return pick(self.ANY), shape
        if len(shape) == 1:
            return pick([f"{{dense: {shape[0]}}}", f"{{swiglu: {pick([3, 6])}}}"]), shape
        if len(shape) == 2:
            heads, flags = pick([1, 2, 4]), ["true", "false"]
            over = f"[{pick([1, 2, 3])}], strides: [{strides[0]}]"
            smaller, padding = -(-shape[0] // strides[0]), pick(["SAME", "CAUSAL"])
            return pick([
                (f"{{conv: {{features: 6, kernel_size: {over}, padding: {padding}}}}}", [smaller, 6]),
                (f"{{max_pool: {{window_shape: {over}, padding: SAME}}}}", [smaller, shape[1]]),
                (f"{{upsample: {{scale: 2, method: {pick(['nearest', 'bilinear'])}}}}}", [2 * shape[0], shape[1]]),
                ("flatten", [shape[0] * shape[1]]), ("{take: last}", shape[1:]), ("class_token", [shape[0] + 1, shape[1]]),
                ("{transpose: [1, 0]}", shape[::-1]),
                ("{dense: 8}", [shape[0], 8]), ("{swiglu: 5}", shape),
                (f"{{position_embedding: {{length: {shape[0] + pick([0, 3])}}}}}", shape)] + 3 * [
                (f"{{{pick(['lstm', 'gru'])}: {{features: 5, reverse: {pick(flags)}}}}}", [shape[0], 5]),
                (f"{{attention: {{heads: {heads}, kv_heads: {pick([1, heads])}, head_dim: 4, causal: {pick(flags)}, "
                 f"use_bias: {pick(flags)}, qk_norm: {pick(flags)}{pick(['', ', rotary: {}'])}}}}}", shape)])
        smaller = [-(-shape[0] // strides[0]), -(-shape[1] // strides[1])]
        features = pick([4, 6])
        return pick([
            (f"{{conv: {{features: {features}, kernel_size: {window}}}}}", [*smaller, features]),
            (f"{{conv: {{features: {features}, kernel_size: {window}, use_bias: false}}}}", [*smaller, features]),
            (f"{{max_pool: {{window_shape: {window}}}}}", [*smaller, shape[2]]),
            (f"{{avg_pool: {{window_shape: {window}}}}}", [*smaller, shape[2]]),
            (f"{{upsample: {{scale: 2, method: {pick(['nearest', 'bilinear'])}}}}}", [2 * shape[0], 2 * shape[1], shape[2]]),
            (f"{{group_norm: {{num_groups: {pick([1, shape[2]])}}}}}", shape),
            (f"{{reshape: [{shape[0] * shape[1]}, {shape[2]}]}}", [shape[0] * shape[1], shape[2]]),
            ("{dense: 4}", [*shape[:2], 4])])

    def residual(self, shape, depth):
        """A residual connection of the layers that keep the shape."""
        return f"{{residual: {{layers: [{', '.join(self.keeping(shape, depth)) or 'tanh'}]}}}}", shape

    def parallel(self, shape, depth):
        """Branches of such layers, and for a sum or a product a value of each channel too."""
        branches = [self.keeping(shape, depth) for _ in range(self.random.randrange(1, 4))]
        join = self.random.choice(["concat", "add", "multiply"])
        joined = [*shape[:-1], len(branches) * shape[-1]] if join == "concat" else shape
        if join != "concat" and len(shape) > 1:
            branches.append(["global_avg_pool", "sigmoid"])
        lists = ", ".join(f"[{', '.join(layers)}]" for layers in branches)
        return f"{{parallel: {{branches: [{lists}], join: {join}}}}}", joined

    def keeping(self, shape, depth):
        """Some layers that keep the shape."""
        layers = []
        for _ in range(self.random.randrange(1, 4)):
            text, given = self.layer(shape, depth - 1)
            if given == shape:
                layers.append(text)
        return layers


def check_trees(check, random, count):
    images, tokens = random.integers(0, 256, (24, 9, 8, 3)).astype(numpy.uint8), random.integers(0, 31, (24, 9))
    for seed in range(count):
        of_tokens = seed % 2 == 1
        x = tokens.astype(numpy.uint8) if of_tokens else images
        numpy.savez(check.folder / "data.npz", x=x, y=random.integers(0, 5, 24))
        numpy.save(check.folder / "x.npy", x)
        layers = Tree(Random(seed), of_tokens).text
        config = ARRAYS.replace("TARGETS", "y").replace("LAYERS", layers).replace("LOSS", "softmax_cross_entropy")
        run = check.train(f"tree {seed}", config.replace("DATA", "remainder: drop").replace("3 epochs", "2 steps"))
        found = check.export(run).run(["logits"], {"inputs": x})[0]
        expected = check.predict(run, "logits", check.folder / "x.npy")
        error = numpy.max(numpy.abs(found - expected)) / numpy.max(numpy.abs(expected))
        if not error <= TOLERANCE:
            check.problems.append(f"tree {seed}: {error} apart: {layers}")
        check.compared += 1


def all_layers():
    """All kinds of layers, from the table of keys."""
    text = (ROOT / "docs" / "config.md").read_text()
    return set(re.findall(r"^#### `model\.layers\.([a-z_]+)`", text, re.MULTILINE)) - {"layers"}


def main():
    global numpy, onnx, onnxruntime
    sys.path.insert(0, str(ROOT / "third_party" / "onnx"))
    try:
        import numpy
        import onnx
        import onnx.checker
        import onnxruntime
    except ImportError as error:
        print(f"skipped: {error} (scripts/bootstrap --dev)")
        return 0
    onnxruntime.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as name:
        check = Check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(name))
        random = numpy.random.default_rng(0)
        check_images(check, random)
        check_arrays(check, random)
        check_sequences(check, random)
        check_lengths(check)
        check_tables(check)
        check_trees(check, random, int(sys.argv[2]) if len(sys.argv) > 2 else 20)
        every = all_layers()
        if missing := every - check.layers or not every:
            check.problems.append(f"no network here has the layers {missing}")
    print("\n".join(check.problems) or f"ONNX Runtime computes what predict does: {check.compared} outputs, "
          f"with all {len(every)} kinds of layers")
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main())
