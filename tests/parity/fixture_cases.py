"""What make_fixtures.py trains: layers, loss, metrics, optimizer and batch of each case, by name."""

import numpy as np


def kind_and_options(layer):
    return (layer, {}) if isinstance(layer, str) else next(item for item in layer.items() if item[0] not in ("name", "remat"))


SGD, ADAM, ADAMW = {"sgd": {}}, {"adam": {}}, {"adamw": {}}
MOMENTUM, NESTEROV = {"sgd": {"momentum": 0.9}}, {"sgd": {"momentum": 0.8, "nesterov": True}}

# 20 divide over neither 3 nor 8 devices; of the third batch, 12 are left.
MASKED = {"batch_size": 20, "remainder": "mask"}


def dense_layer(features, **options):
    return {"dense": {"features": features, **options}}


def mlp(*activations, outputs=3):
    layers = []
    for activation in activations:
        layers += [dense_layer(8), activation]
    return layers + [dense_layer(outputs)]


def regression(layers, optimizer, rate, **more):
    return {"data": "regression", "layers": layers, "loss": "mean_squared_error", "metrics": ["mean_absolute_error"],
            "optimizer": optimizer, "learning_rate": rate, "batch_size": 24, **more}


def classes(layers, optimizer, rate, **more):
    return {"data": "classes", "layers": layers, "loss": "softmax_cross_entropy", "metrics": ["accuracy"],
            "optimizer": optimizer, "learning_rate": rate, "batch_size": 24, **more}


def images(layers, optimizer=SGD, rate=0.02, **more):
    return classes([*layers, "flatten", dense_layer(3)], optimizer, rate, **{"data": "images", **more})


def signals(layers, *more, **options):
    """Sequences [21, 4] of the images' numbers."""
    return images([{"reshape": {"shape": [21, 4]}}, *layers], *more, **options)


def volumes(layers, *more, **options):
    """Volumes [3, 4, 7, 1] of the images' numbers."""
    return images([{"reshape": {"shape": [3, 4, 7, 1]}}, *layers], *more, **options)


def convolution(features, kernel_size, **options):
    return {"conv": {"features": features, "kernel_size": kernel_size, **options}}


def transposed(features, kernel_size, **options):
    return {"conv_transpose": {"features": features, "kernel_size": kernel_size, **options}}


def pool(kind, window_shape, strides, **options):
    return {kind: {"window_shape": window_shape, "strides": strides, **options}}


ACTIVATIONS = ["relu", "tanh", "gelu", "sigmoid", "silu", "softmax", {"leaky_relu": {"negative_slope": 0.2}},
               {"elu": {"alpha": 1.5}}, "softplus"]


def make_cases() -> dict:
    cases = {
        "linear_sgd": regression([dense_layer(2)], SGD, 0.1),
        "linear_without_bias": regression([dense_layer(2, use_bias=False)], SGD, 0.1),
        "linear_all_at_once": regression([dense_layer(2)], SGD, 0.1, batch_size="all", remainder="mask"),
        "linear_short_last_batch": regression([dense_layer(2)], SGD, 0.1, remainder="mask"),
        "linear_scaled_rate": regression([dense_layer(2)], SGD, 0.05, base_batch_size=16),
    }
    each = {"average": "none"}
    cases |= {
        "smoothed_labels": classes(mlp("tanh"), SGD, 0.2, loss={"softmax_cross_entropy": {"label_smoothing": 0.2}},
                                   metrics=[{"top_k_accuracy": {"k": 2}}, "precision", "recall", "f1", "perplexity"]),
        "weighted_classes": classes(mlp("tanh"), SGD, 0.1,
                                    loss={"softmax_cross_entropy": {"class_weights": [0.5, 1.0, 3.0]}},
                                    metrics=["accuracy", {"precision": each}, {"recall": each}, {"f1": each}]),
        "sigmoid_chances": regression(mlp("tanh", outputs=2), SGD, 0.2, data="chances", loss="sigmoid_cross_entropy",
                                      metrics=["mean_squared_error"]),
        "sigmoid_labels": classes(mlp("tanh", outputs=1), SGD, 0.2, data="answers", loss="sigmoid_cross_entropy",
                                  metrics=["accuracy", "precision", "recall", {"f1": each}]),
        "weighted_labels": classes(mlp("tanh", outputs=1), SGD, 0.2, data="answers",
                                   loss={"sigmoid_cross_entropy": {"class_weights": [0.5, 2.0]}},
                                   metrics=["accuracy"]),
        "absolute_error": regression(mlp("tanh", outputs=2), SGD, 0.05, loss="mean_absolute_error",
                                     metrics=["mean_squared_error"]),
        "labels": regression(mlp("tanh", outputs=4), SGD, 0.4, data="tags", loss="sigmoid_cross_entropy",
                             metrics=["accuracy", "subset_accuracy", "precision", "recall", "f1"]),
        "labels_averaged": regression(
            mlp("tanh", outputs=4), SGD, 0.2, data="tags",
            loss={"sigmoid_cross_entropy": {"positive_weights": [0.5, 2.0, 3.0, 1.0]}},
            metrics=[{"accuracy": {"average": "none", "threshold": 0.4}}, {"subset_accuracy": {"threshold": 0.4}},
                     {"precision": {"average": "micro", "threshold": 0.4}},
                     {"recall": {"average": "weighted", "threshold": 0.6}},
                     {"f1": {"average": "samples", "threshold": 0.4}}]),
        "focal_labels": regression(mlp("tanh", outputs=4), SGD, 0.8, data="tags",
                                   loss={"focal": {"gamma": 1.5, "alpha": 0.25}},
                                   metrics=[{"accuracy": {"average": "weighted"}}, {"f1": each}]),
        "focal": classes(mlp("tanh", outputs=3), SGD, 0.4, loss="focal"),
        "focal_answers": classes(mlp("tanh", outputs=1), SGD, 0.8, data="answers",
                                 loss={"focal": {"gamma": 3.0, "alpha": 0.6}}),
        "quantile": regression(mlp("tanh", outputs=6), SGD, 0.4, loss="quantile", metrics=[]),
        "quantile_of_two": regression(mlp("tanh", outputs=4), SGD, 0.4, loss={"quantile": {"q": [0.25, 0.75]}},
                                      metrics=[]),
        "poisson": regression(mlp("tanh", outputs=2), SGD, 0.05, data="counts", loss="poisson", metrics=[]),
        "percentages": regression(mlp("tanh", outputs=2), SGD, 0.1, loss="mean_absolute_error",
                                  metrics=["mean_absolute_percentage_error"]),
        "huber": regression(mlp("tanh", outputs=2), SGD, 0.4, loss={"huber": {"delta": 0.5}},
                            metrics=["mean_squared_error", "r2"]),
        "log_cosh_masked": regression(mlp("tanh", outputs=2), SGD, 0.4, loss="log_cosh", **MASKED),
        "root_error_masked": regression(mlp("tanh", outputs=2), SGD, 0.3, metrics=["root_mean_squared_error"],
                                        **MASKED),
    }
    for activation in ACTIVATIONS:
        kind, _ = kind_and_options(activation)
        cases[f"mlp_{kind}_classes"] = classes(mlp(activation, activation), SGD, 0.2)
    adam = {"adam": {"b1": 0.8, "b2": 0.95, "eps": 1e-6}}
    adamw = {"adamw": {"b1": 0.85, "b2": 0.97, "eps": 1e-7, "weight_decay": 0.1}}
    cases |= {
        "momentum_conv": images([convolution(4, [3, 3]), "relu"], MOMENTUM, 0.005),
        "nesterov_dense": classes(mlp("tanh", "relu"), NESTEROV, 0.05),
        "nesterov_masked": classes(mlp("gelu"), NESTEROV, 0.05, **MASKED),
        "adam_dense": classes(mlp("tanh", "relu"), adam, 0.01),
        "adamw_conv": images([convolution(4, [3, 3]), "relu"], adamw, 0.001),
        "adamw_masked": classes(mlp("gelu"), adamw, 0.01, **MASKED),
    }
    cases |= {
        "conv_valid": images([convolution(4, [3, 2], padding="VALID"), "tanh"]),
        "conv_strides": images([convolution(4, [3, 3], strides=[2, 2]), "relu"]),
        "conv_uneven_strides": images([convolution(3, [2, 3], strides=[1, 3], padding="VALID"), "tanh"]),
        "conv_explicit_padding": images([convolution(4, [3, 3], strides=[2, 1], padding=[[1, 2], [0, 1]]), "relu"]),
        "conv_even_kernel": images([convolution(4, [2, 4]), "gelu"]),
        "conv_of_one_pixel": images([convolution(5, [1, 1], use_bias=False), "relu"]),
        "conv_larger_than_the_image": images([convolution(2, [9, 7]), "tanh"]),
        "conv_one_channel": images([convolution(1, [3, 3]), "tanh", convolution(3, [3, 3]), "relu"], ADAM, 0.002),
        "max_pool_valid": images([convolution(4, [3, 3]), "relu", pool("max_pool", [2, 2], [2, 2])]),
        "max_pool_same": images([convolution(4, [3, 3]), "tanh", pool("max_pool", [3, 3], [2, 2], padding="SAME")]),
        "max_pool_overlapping": images([convolution(4, [3, 3]), pool("max_pool", [3, 2], [1, 1])]),
        "max_pool_explicit_padding": images(
            [convolution(4, [3, 3]), "gelu", pool("max_pool", [3, 3], [2, 3], padding=[[1, 0], [2, 1]])]),
        "max_pool_with_gaps": images([convolution(4, [3, 3]), pool("max_pool", [2, 1], [3, 2])]),
        "conv_of_sequences": signals([convolution(6, [3], kernel_dilation=[2]), "relu",
                                      pool("max_pool", [2], [2], padding="SAME"),
                                      convolution(4, [4], strides=[2], padding=[[1, 2]])]),
        "conv_causal_masked": signals([convolution(8, [3], padding="CAUSAL", kernel_dilation=[2]), "gelu",
                                       convolution(8, [2], padding="CAUSAL", strides=[2], feature_group_count=4),
                                       pool("avg_pool", [3], [2], padding=[[1, 0]])], ADAM, 0.005, **MASKED),
        "conv_dilation": images([convolution(4, [3, 2], kernel_dilation=[2, 3]), "relu"]),
        "conv_dilation_strides": images(
            [convolution(3, [2, 3], kernel_dilation=[3, 1], strides=[2, 1], padding="VALID"), "tanh"]),
        "conv_groups": images([convolution(6, [3, 3], feature_group_count=2), "relu"]),
        "conv_depthwise": images([convolution(4, [3, 3]), "relu",
                                  convolution(4, [3, 3], feature_group_count=4, strides=[2, 2]), "tanh"]),
        "avg_pool_valid": images([convolution(4, [3, 3]), "relu", pool("avg_pool", [2, 2], [2, 2])]),
        "avg_pool_padding_counts": images(
            [convolution(4, [3, 3]), "tanh", pool("avg_pool", [3, 3], [2, 2], padding="SAME")]),
        "avg_pool_padding_left_out": images(
            [convolution(4, [3, 3]), "tanh", pool("avg_pool", [3, 2], [1, 2], padding=[[1, 0], [1, 1]],
                                                  count_include_pad=False)]),
        "global_avg_pool": classes([convolution(4, [3, 3]), "relu", "global_avg_pool", dense_layer(3)], SGD, 0.2,
                                   data="images"),
        "reshape": images([{"reshape": {"shape": [6, -1, 2]}}, convolution(3, [3, 3]), "relu"]),
        "nested_layers": images(
            [{"name": "block", "layers": [convolution(3, [3, 3]), "relu", {"layers": [convolution(3, [1, 1])]}]},
             {"layers": ["tanh", {"name": "last", **convolution(2, [3, 3])}]}]),
        "residual": images([convolution(4, [3, 3]), {"residual": {"layers": [convolution(4, [3, 3]), "relu"]}, "remat": True},
                            "tanh"]),
        "residual_shortcut_masked": images(
            [{"residual": {"layers": [convolution(4, [3, 3], strides=[2, 2]), "relu", convolution(4, [3, 3])],
                           "shortcut": [convolution(4, [1, 1], strides=[2, 2])]}}, "relu"], ADAM, 0.002, **MASKED),
        "residual_repeated": classes(
            [dense_layer(6), {"repeat": {"times": 3, "layers": [{"residual": {"layers": ["tanh", dense_layer(6)]}}]}},
             {"name": "tail", "residual": {"layers": [{"layers": [dense_layer(3)]}], "shortcut": [dense_layer(3)]}}],
            MOMENTUM, 0.02),
        "layer_norm": classes([dense_layer(8), "layer_norm", "relu", dense_layer(8),
                               {"layer_norm": {"epsilon": 1e-3, "use_bias": False}}, "tanh", dense_layer(3)], SGD, 0.1),
        "layer_norm_without_scale_masked": images(
            [convolution(5, [3, 3]), {"layer_norm": {"use_scale": False}}, "gelu"], ADAM, 0.002, **MASKED),
        "rms_norm": classes([dense_layer(8), "rms_norm", "relu", dense_layer(8),
                             {"rms_norm": {"epsilon": 1e-3, "use_scale": False, "use_bias": True}}, "tanh",
                             dense_layer(3)], SGD, 0.1),
        "group_norm": images([convolution(6, [3, 3]), {"group_norm": {"num_groups": 3}}, "relu",
                              convolution(4, [3, 3]),
                              {"group_norm": {"num_groups": 2, "epsilon": 1e-3, "use_scale": False}}, "tanh"]),
        "group_norm_of_32": classes([dense_layer(256), "group_norm", "tanh", dense_layer(4),
                                     {"group_norm": {"num_groups": 1, "use_bias": False}}, dense_layer(3)], MOMENTUM,
                                    0.02),
        "dense_of_positions": images(
            [{"reshape": {"shape": [14, 6]}}, dense_layer(5), {"transpose": {"permutation": [1, 0]}},
             {"residual": {"layers": ["layer_norm", dense_layer(14), {"gelu": {"approximate": "none"}}]}}], ADAM, 0.002,
            **MASKED),
        "dense_of_pixels": classes([dense_layer(6), "gelu", dense_layer(4, use_bias=False), "global_avg_pool",
                                    dense_layer(3)], SGD, 0.1, data="images"),
        "average_of_a_sequence": classes([{"reshape": {"shape": [21, 4]}}, dense_layer(6), "tanh", "global_avg_pool",
                                          dense_layer(3)], SGD, 0.1, data="images"),
        "scale": classes([dense_layer(8), {"residual": {"layers": [dense_layer(8), "tanh", "scale"]}}, dense_layer(3)], ADAM,
                         0.01, **MASKED),
        "batch_norm": images([convolution(4, [3, 3], use_bias=False), "batch_norm", "relu"]),
        "batch_norm_over_devices": images(
            [convolution(4, [3, 3], use_bias=False), {"batch_norm": {"axes": ["devices"], "momentum": 0.9, "use_bias": False}}, "tanh",
             {"residual": {"layers": [convolution(4, [3, 3], use_bias=False), {"batch_norm": {"axes": ["devices"]}}]}}, "relu"], ADAM,
            0.002),
        "batch_norm_over_devices_masked": classes(
            [dense_layer(8), {"batch_norm": {"axes": ["devices"], "epsilon": 1e-3, "use_scale": False}}, "tanh",
             dense_layer(3)], MOMENTUM, 0.02, **MASKED),
        "batch_norm_in_parts": images(
            [convolution(4, [3, 3], use_bias=False), {"batch_norm": {"momentum": 0.9}}, "relu"], parts=4),
        "batch_norm_in_parts_masked": classes(
            [dense_layer(4, use_bias=False), {"batch_norm": {"momentum": 0.5, "epsilon": 0.1}}, "tanh", dense_layer(3)], SGD, 0.05, parts=2, **MASKED),
        "cnn": images([convolution(4, [3, 3]), "relu", pool("max_pool", [2, 2], [2, 2]), convolution(6, [3, 3]),
                       "relu", pool("max_pool", [2, 2], [2, 2])], ADAM, 0.005),
        "cnn_masked": images([convolution(4, [3, 3]), "relu", pool("max_pool", [2, 2], [2, 2])], ADAM, 0.005,
                             **MASKED),
        "bytes_normalized": images([convolution(3, [3, 3]), "relu"], data="pixels",
                                   normalize={"mean": [0.5], "std": [0.25]}),
        "linear_pmap": regression([dense_layer(2)], SGD, 0.1, also="pmap"),
        "cnn_shard_map": images([convolution(4, [3, 3]), "relu", pool("max_pool", [2, 2], [2, 2])], ADAM, 0.005,
                                also="shard_map"),
    }
    return cases | residual_networks() | masked_cases() | convolution_cases() | default_cases() | rule_cases() | optimizer_cases() | sequence_cases() | table_cases() | branch_cases()


def resnet18(**norm):
    """The layers of configs/resnet18.yaml, narrower, and for images that are halved twice only."""
    normalized = {"batch_norm": norm} if norm else "batch_norm"

    def convolved(features, kernel=3, stride=1):
        strides = {"strides": [stride, stride]} if stride > 1 else {}
        return [convolution(features, [kernel, kernel], use_bias=False, **strides), normalized]

    layers = [*convolved(4), "relu"]
    for features, stride in ((4, 1), (8, 2), (12, 2), (16, 1)):
        shortcut = {"shortcut": convolved(features, 1, stride)} if features > 4 else {}
        first = [*convolved(features, 3, stride), "relu", *convolved(features)]
        layers += [{"residual": {"layers": first, **shortcut}}, "relu",
                   {"residual": {"layers": [*convolved(features), "relu", *convolved(features)]}}, "relu"]
    return [*layers, "global_avg_pool", dense_layer(3)]


def residual_networks() -> dict:
    """Few steps: differences in the last bit grow from step to step through 20 norms."""
    def trained(layers, **more):
        return classes(layers, NESTEROV, 0.05, data="images", steps=5, **more)

    return {
        "resnet18_over_devices": trained(resnet18(axes=["devices"], momentum=0.9)),
        "resnet18_over_devices_masked": trained(resnet18(axes=["devices"], momentum=0.9), **MASKED),
        "resnet18_in_parts": trained(resnet18(momentum=0.9), parts=4),
        "resnet18_in_parts_masked": trained(resnet18(momentum=0.9), parts=2, **MASKED),
    }


def masked_cases() -> dict:
    weights, smoothing = {"class_weights": [0.5, 1.0, 3.0]}, {"label_smoothing": 0.1}
    of_labels = ["accuracy", {"top_k_accuracy": {"k": 2}}, "perplexity"]
    pooled = {"count_include_pad": False, "padding": "SAME"}
    of_each = {"metrics": [{kind: {"average": "none"}} for kind in ("precision", "recall", "f1")]}

    def softmax(**options):
        return {"loss": {"softmax_cross_entropy": options}, "metrics": of_labels}

    return {
        "ignored_labels_masked": classes(mlp("tanh"), ADAM, 0.01, **softmax(ignore_label=1), **MASKED),
        "ignored_weighted_smoothed_masked": classes(mlp("gelu"), SGD, 0.2,
                                                    **softmax(ignore_label=2, **weights, **smoothing), **MASKED),
        "weighted_smoothed_masked": classes(mlp("gelu"), ADAM, 0.01, **softmax(**weights, **smoothing), **MASKED),
        "sigmoid_chances_masked": regression(mlp("relu", outputs=2), SGD, 0.2, data="chances",
                                             loss="sigmoid_cross_entropy", **MASKED),
        "huber_masked": regression(mlp("tanh", outputs=2), SGD, 0.2, loss={"huber": {"delta": 0.5}}, **MASKED),
        "absolute_error_masked": regression(mlp("elu", outputs=2), ADAM, 0.01, loss="mean_absolute_error",
                                            metrics=["mean_squared_error"], **MASKED),
        "avg_pool_masked": images([convolution(4, [3, 3]), "relu", pool("avg_pool", [3, 3], [2, 2], **pooled)],
                                  **MASKED),
        # In the short batch not every class occurs.
        "class_metrics_masked": classes(mlp("relu", outputs=7), SGD, 0.2, data="kinds",
                                        metrics=["precision", "recall", "f1"], **MASKED),
        "each_class_masked": classes(mlp("silu"), ADAM, 0.01, **of_each, **MASKED),
        "binary_metrics_masked": classes(mlp("tanh", outputs=1), MOMENTUM, 0.05, data="answers",
                                         loss="sigmoid_cross_entropy", metrics=["precision", "recall", "f1"], **MASKED),
        "correlation_masked": classes(mlp("relu", outputs=7), SGD, 0.2, data="kinds", metrics=["matthews_corrcoef"],
                                      **MASKED),
        "binary_correlation_masked": classes(mlp("tanh", outputs=1), SGD, 0.2, data="answers",
                                             loss="sigmoid_cross_entropy",
                                             metrics=[{"matthews_corrcoef": {"threshold": 0.4}}], **MASKED),
        "r2_masked": regression(mlp("gelu", outputs=2), SGD, 0.3, metrics=["r2"], **MASKED),
        "top_k_masked": classes(mlp("softplus", outputs=7), SGD, 0.2, data="kinds",
                                metrics=["accuracy", {"top_k_accuracy": {"k": 3}}, "perplexity"], **MASKED),
    }


def convolution_cases() -> dict:
    """Options of convolutions and of means in pairs, with rules that remember gradients."""
    return {
        "conv_dilation_groups": images(
            [convolution(4, [3, 2], kernel_dilation=[2, 2], feature_group_count=2), "tanh"], MOMENTUM, 0.005),
        # Each of three channels becomes two.
        "conv_channel_multiplier": images(
            [convolution(3, [3, 3]), "tanh", convolution(6, [3, 2], feature_group_count=3), "relu"], MOMENTUM, 0.005),
        "conv_every_option": images(
            [convolution(4, [2, 3], strides=[2, 1], padding=[[1, 1], [2, 0]], kernel_dilation=[3, 2],
                         feature_group_count=2, use_bias=False), "silu"], ADAM, 0.002),
        "avg_pool_explicit_counts": images(
            [convolution(4, [3, 3]), "silu", pool("avg_pool", [2, 3], [2, 1], padding=[[1, 0], [0, 2]])], ADAM, 0.002),
    }


def default_cases() -> dict:
    """What a config leaves out is what Optax's function takes for it, so sized that another value would show."""
    # Beside gradients of 1e-6, 1e-8 is not nothing.
    tiny = {"softmax_cross_entropy": {"class_weights": [1e-6, 1e-6, 2e-6]}}
    return {
        "mlp_leaky_relu_huber": regression(mlp("leaky_relu", outputs=2), ADAM, 0.01, loss="huber"),
        "mlp_elu_absolute": regression(mlp("elu", outputs=2), SGD, 0.05, loss="mean_absolute_error",
                                       metrics=["mean_squared_error"]),
        "adam_defaults": classes([dense_layer(3)], ADAM, 0.2, loss=tiny),
        # A rate at which even 1e-4 of the parameters counts.
        "adamw_defaults": classes([dense_layer(3)], ADAMW, 0.5, loss=tiny),
        "top_k_default": classes(mlp("relu", outputs=7), ADAM, 0.01, data="kinds",
                                 metrics=["top_k_accuracy", "perplexity"]),
    }


def rule_cases() -> dict:
    """The other rules, with their options and with their defaults."""
    tiny = {"softmax_cross_entropy": {"class_weights": [1e-6, 1e-6, 2e-6]}}
    torch_like = {"rmsprop": {"decay": 0.95, "eps": 1e-5, "initial_scale": 0.5, "eps_in_sqrt": False}}
    centered = {"rmsprop": {"centered": True, "bias_correction": True, "eps": 1e-2, "momentum": 0.5, "nesterov": True}}
    return {
        "rmsprop_defaults": classes(mlp("tanh"), {"rmsprop": {}}, 0.002),
        "rmsprop_masked": classes(mlp("gelu"), torch_like, 0.005, **MASKED),
        "rmsprop_momentum": classes(mlp("tanh"), {"rmsprop": {"momentum": 0.8, "eps": 1e-4}}, 0.002,
                                    learning_rate={"linear": {"init_value": 0.002, "end_value": 0.001}}),
        "rmsprop_centered": classes(mlp("tanh"), centered, 0.002),
        "adagrad_defaults": classes(mlp("tanh"), {"adagrad": {}}, 0.05),
        "adagrad_masked": classes(mlp("gelu"), {"adagrad": {"initial_accumulator_value": 0.3, "eps": 1e-3}}, 0.1,
                                  **MASKED),
        "nadam_defaults": classes([dense_layer(3)], {"nadam": {}}, 0.2, loss=tiny),
        "nadam_masked": classes(mlp("gelu"), {"nadam": {"b1": 0.8, "b2": 0.95, "eps": 1e-5}}, 0.01, **MASKED),
        "lion_defaults": classes([dense_layer(3)], {"lion": {}}, 0.05),
        "lion_masked": classes(mlp("gelu"), {"lion": {"b1": 0.8, "b2": 0.95, "weight_decay": 0.2}}, 0.01, **MASKED),
        "adadelta_defaults": classes(mlp("tanh"), {"adadelta": {}}, 5.0),
        "adadelta_masked": classes(mlp("gelu"), {"adadelta": {"rho": 0.8, "eps": 1e-3, "weight_decay": 0.05}}, 1.0,
                                   **MASKED),
    }


def optimizer_cases() -> dict:
    """What stands beside the rules: decay, clipping, groups, schedules, the average of the parameters."""
    decayed = {"sgd": {"momentum": 0.9, "weight_decay": 0.1}}
    adamw = {"adamw": {"weight_decay": 0.5}}
    no_bias = {"weight_decay_exclude": ["*.bias"]}
    head = {"parameters": "dense_2.*", "learning_rate_scale": 3.0, "weight_decay": 0.2}
    frozen = {"parameters": ["dense_0.*", "*_1.bias"], "freeze": True}
    warmup = {"warmup_cosine_decay": {"init_value": 0.01, "peak_value": 0.1, "warmup": 4, "decay": 18,
                                      "end_value": 0.02}}
    cycle = {"cosine_onecycle": {"peak_value": 0.2, "pct_start": 0.4}}
    joined = {"join": {"schedules": [{"linear": {"init_value": 0.01, "end_value": 0.1, "transition": 5}}, 0.08,
                                     {"exponential_decay": {"init_value": 0.1, "transition": 3, "decay_rate": 0.5}}],
                       "boundaries": [5, 9]}}
    pieces = {"piecewise_constant": {"init_value": 0.1, "boundaries_and_scales": [[5, 0.5], [12, 0.1]]}}
    return {
        "sgd_weight_decay": classes(mlp("tanh"), decayed, 0.05),
        "sgd_decay_excluded": classes(mlp("tanh"), {"sgd": {"weight_decay": 0.3}}, 0.1, **no_bias, **MASKED),
        "adamw_decay_excluded": classes(mlp("tanh"), adamw, 0.01, **no_bias),
        "lion_decay_excluded": classes([dense_layer(3)], {"lion": {"weight_decay": 0.5}}, 0.02, **no_bias),
        "clip": regression(mlp("tanh", outputs=2), {"sgd": {"momentum": 0.9}}, 0.02, clip=0.1),
        "clip_by_global_norm": regression(mlp("tanh", outputs=2), SGD, 0.1, clip_by_global_norm=0.5),
        "clip_both_masked": regression(mlp("tanh", outputs=2), ADAM, 0.01, clip=0.2, clip_by_global_norm=0.6,
                                       **MASKED),
        "clip_seldom": regression(mlp("tanh", outputs=2), SGD, 0.05, clip=10.0, clip_by_global_norm=1.5),
        "groups_adamw": classes(mlp("tanh", "tanh"), adamw, 0.005, groups=[head, frozen]),
        "groups_momentum": classes(mlp("tanh", "tanh"), decayed, 0.02, groups=[frozen, head],
                                   clip_by_global_norm=0.3, **MASKED),
        "ema_masked": classes(mlp("tanh"), ADAM, 0.01, ema={"decay": 0.9}, **MASKED),
        "ema_not_debiased": classes(mlp("tanh"), SGD, 0.1, ema={"decay": 0.8, "debias": False}),
        "ema_with_groups": classes(mlp("tanh", "tanh"), SGD, 0.1, groups=[frozen], ema={"decay": 0.95}),
        "warmup_cosine_decay": classes(mlp("tanh"), MOMENTUM, warmup, base_batch_size=48),
        "cosine_onecycle": classes(mlp("tanh"), ADAMW, {"cosine_onecycle": {"peak_value": 0.02}}, **MASKED),
        "trapezoid": classes(mlp("tanh"), SGD, {"trapezoid": {"peak_value": 0.2, "warmup": 3, "decay": 5}}, **MASKED),
        "onecycle_groups": classes(mlp("tanh", "tanh"), SGD, cycle, groups=[head]),
        "join": classes(mlp("tanh"), NESTEROV, joined, **MASKED),
        "piecewise_constant": classes(mlp("tanh"), SGD, pieces, clip_by_global_norm=0.4),
    }


def sequence_cases() -> dict:
    """Tokens: 24 of them, sequences of 6. No gradient of a key's bias is more than a rounding, because softmax takes no
    notice of what is added to all scores; so only cases without biases have Adam, which would divide by it."""
    table = {"name": "tokens", "embedding": {"num_embeddings": 24, "features": 8}}

    def block(*layers):
        return {"residual": {"layers": ["layer_norm", *layers]}}

    def sequences(*layers, optimizer=ADAM, rate=0.005, end=("global_avg_pool", dense_layer(3)), **more):
        return classes([table, *layers, *end], optimizer, rate, **{"data": "tokens", **more})

    positions = {"position_embedding": {"length": 6}}
    return {
        "attention": sequences(positions, block({"attention": {"heads": 2}}),
                               block(dense_layer(16), "gelu", dense_layer(8)), optimizer=SGD, rate=0.1),
        "attention_causal_tied_masked": sequences(
            {"position_embedding": {"length": 9}}, block({"attention": {"heads": 4, "causal": True}}), "layer_norm",
            end=({"attend": {"embedding": "tokens"}}, "global_avg_pool"), optimizer=MOMENTUM, rate=0.02, **MASKED),
        "attention_grouped": sequences(
            {"attention": {"heads": 4, "kv_heads": 2, "head_dim": 3, "use_bias": False, "causal": True}}, "tanh",
            optimizer=SGD, rate=0.1),
        "attention_rotary": sequences(block({"attention": {"heads": 2, "kv_heads": 1, "rotary": {"base": 100.0}}}),
                                      "tanh", optimizer=MOMENTUM, rate=0.02),
        "attention_qk_norm": sequences(block({"attention": {"heads": 2, "qk_norm": True}}),
                                       block({"swiglu": {"hidden": 12}}), "rms_norm", optimizer=SGD, rate=0.1),
        "attention_every_option_masked": sequences(
            block({"attention": {"heads": 4, "kv_heads": 2, "head_dim": 6, "causal": True, "use_bias": False,
                                 "rotary": {"base": 50.0}, "qk_norm": True}}), block({"swiglu": {"hidden": 5}}),
            "layer_norm", optimizer=ADAMW, **MASKED),
        # A label at each position, of which some count, and of one sequence none.
        "ignored_positions_masked": sequences(
            positions, block({"attention": {"heads": 2, "causal": True}}), "layer_norm",
            end=({"attend": {"embedding": "tokens"}},), optimizer=MOMENTUM, rate=0.02,
            loss={"softmax_cross_entropy": {"ignore_label": -100}}, metrics=["accuracy", "perplexity"],
            data="labelled", **MASKED),
    }


def table_cases() -> dict:
    """Columns of a table, of which some are categories."""
    def tables(options, *more, **rest):
        first = {"table_embedding": options} if options else "table_embedding"
        return classes([first, *mlp("tanh")], *more, **{"data": "table", **rest})

    return {
        "table_embedding": tables({}, MOMENTUM, 0.02),
        "table_embedding_masked": tables({"width": 3, "dropout": 0.0}, ADAM, 0.01, **MASKED),
    }


def branch_cases() -> dict:
    """Branches that are joined, and positions that are added and taken."""
    def parallel(join, branches):
        return {"parallel": {"branches": branches, "join": join}}

    def patches(*layers, end="first", **more):
        """Images of 7 x 6 as sequences of 9 patches."""
        return classes([convolution(8, [3, 3], strides=[3, 2]), {"reshape": {"shape": [9, 8]}}, *layers,
                        {"take": {"position": end}}, dense_layer(3)], SGD, 0.05, data="images", **more)

    def rows(*layers, **more):
        """Images of 7 x 6 as sequences of 7 rows."""
        *layers, optimizer = layers
        return classes([{"reshape": {"shape": [7, 12]}}, *layers, dense_layer(3)], optimizer, 0.05, data="images",
                       **more)

    def maps(*layers, **more):
        return classes([*layers, convolution(3, [1, 1])], SGD, 0.1, **{"data": "maps", **more})

    inception = {"point": [convolution(3, [1, 1]), "relu"],
                 "wide": [convolution(2, [1, 1]), "tanh", convolution(4, [3, 3])],
                 "pooled": [pool("max_pool", [3, 3], [1, 1], padding="SAME"), convolution(2, [1, 1])]}
    gate = {"skip": [], "gate": ["global_avg_pool", dense_layer(3), "relu", dense_layer(6), "sigmoid"]}
    inner = [convolution(4, [3, 3]), "gelu", parallel("concat", [[], [convolution(2, [3, 3]), "tanh"]])]
    block = {"residual": {"layers": ["layer_norm", {"attention": {"heads": 2}}]}}
    return {
        "parallel_concat": images([parallel("concat", inception), "relu"], MOMENTUM, 0.005),
        "parallel_multiply_masked": images([convolution(6, [3, 3]), "relu", parallel("multiply", gate)], ADAM, 0.002,
                                           **MASKED),
        "parallel_add": images([convolution(4, [3, 3]), "tanh", parallel("add", [
            [], [convolution(4, [3, 3]), "relu"], ["global_avg_pool", dense_layer(4)]])]),
        "parallel_nested": images([parallel("concat", {"skip": [], "deep": inner}), convolution(3, [1, 1]), "relu"]),
        "class_token": patches("class_token", {"position_embedding": {"length": 10}}, block),
        "class_token_masked": patches("class_token", block, end=2, **MASKED),
        "take_last": patches({"attention": {"heads": 2, "causal": True}}, end="last"),
        "global_max_pool": classes([{"conv": {"features": 6, "kernel_size": [3, 3]}}, "tanh", "global_max_pool",
                                    dense_layer(3)], SGD, 0.05, data="images"),
        "upsample_nearest": images([convolution(3, [3, 3], strides=[2, 2]), {"upsample": {"scale": 2}},
                                    convolution(3, [3, 3]), "relu"]),
        "upsample_bilinear_masked": images([convolution(3, [3, 3], strides=[2, 2]),
                                            {"upsample": {"scale": 3, "method": "bilinear"}}, "relu",
                                            {"max_pool": {"window_shape": [3, 3], "strides": [3, 3]}}], **MASKED),
        "upsample_of_sequences": signals([convolution(4, [3], strides=[3]), {"upsample": {"scale": 4, "method": "bilinear"}},
                                          convolution(2, [5])]),
        "lstm": rows({"lstm": {"features": 6}}, "global_avg_pool", MOMENTUM),
        "lstm_reverse_masked": rows({"lstm": {"features": 5, "reverse": True, "return": "last"}}, SGD, **MASKED),
        "lstm_bidirectional": rows({"lstm": {"features": 4, "bidirectional": True}},
                                   {"lstm": {"features": 3, "bidirectional": True, "return": "last"}}, SGD),
        "gru": rows({"gru": {"features": 6, "return": "last"}}, SGD),
        "gru_bidirectional_masked": rows({"gru": {"features": 4, "bidirectional": True}}, "global_avg_pool", SGD, **MASKED),
        "gru_reverse": rows({"gru": {"features": 5, "reverse": True}}, "relu", "global_avg_pool", SGD),
        # A label for each pixel, of which some count, and of one image none.
        "label_maps": maps(parallel("concat", [[], [convolution(4, [3, 3]), "tanh"]]),
                           metrics=["accuracy", "mean_iou", "dice", {"mean_iou": {"average": "none"}}]),
        "label_maps_partial_masked": maps(
            convolution(4, [3, 3]), "tanh", data="partial_maps",
            loss={"softmax_cross_entropy": {"ignore_label": 255, "class_weights": [0.5, 2.0, 1.0]}},
            metrics=["mean_iou", {"dice": {"average": "none"}}], **MASKED),
        "conv_transpose": images([convolution(3, [3, 3], strides=[2, 2]), "relu", transposed(4, [2, 2], strides=[2, 2])]),
        "conv_transpose_valid_masked": images(
            [convolution(4, [3, 3], strides=[3, 2]), "tanh",
             transposed(3, [3, 4], strides=[2, 3], padding="VALID", kernel_dilation=[2, 1])], ADAM, 0.002, **MASKED),
        "conv_transpose_with_gaps": images([transposed(3, [1, 2], strides=[2, 3], use_bias=False), "gelu"]),
        "conv_transpose_of_sequences": signals([convolution(4, [3], strides=[3]), transposed(3, [5], strides=[2]), "relu"]),
        "volumes": volumes([convolution(4, [2, 3, 3]), "relu", pool("max_pool", [2, 2, 2], [1, 2, 2]),
                            convolution(6, [2, 2, 2], padding="VALID", feature_group_count=2), "tanh",
                            transposed(3, [2, 2, 2], strides=[2, 2, 1]),
                            pool("avg_pool", [2, 1, 2], [1, 1, 1], padding="SAME", count_include_pad=False)]),
        "volumes_masked": volumes(
            [convolution(4, [3, 1, 2], strides=[1, 2, 1], padding=[[1, 1], [0, 0], [1, 0]], kernel_dilation=[1, 1, 2]),
             "gelu", transposed(3, [2, 2, 2]), pool("avg_pool", [2, 2, 3], [1, 1, 2])], ADAM, 0.002, **MASKED),
    }


def make_schedules() -> list:
    """Schedules whose rates are compared at each update; durations are steps, and what is left out is 60."""
    linear = {"linear": {"init_value": 0.0, "end_value": 0.1, "transition": 7}}
    return [
        linear,
        {"linear": {"init_value": 0.3, "end_value": 0.001}},
        {"polynomial": {"init_value": 0.5, "end_value": 0.01, "power": 2.5, "transition": 40}},
        {"polynomial": {"init_value": 0.5}},
        {"cosine_decay": {"init_value": 0.1, "decay": 33}},
        {"cosine_decay": {"init_value": 0.1, "alpha": 0.05}},
        {"exponential_decay": {"init_value": 0.2, "transition": 6, "decay_rate": 0.7}},
        {"exponential_decay": {"init_value": 0.2, "transition": 6, "decay_rate": 0.7, "staircase": True}},
        {"exponential_decay": {"init_value": 0.001, "transition": 20, "decay_rate": 3.0}},
        {"warmup_cosine_decay": {"peak_value": 0.3, "warmup": 9}},
        {"warmup_cosine_decay": {"init_value": 0.02, "peak_value": 0.3, "warmup": 1, "decay": 50, "end_value": 0.01}},
        {"warmup_cosine_decay": {"init_value": 0.02, "peak_value": 0.3, "warmup": 0, "decay": 50}},
        {"piecewise_constant": {"init_value": 1.0, "boundaries_and_scales": [[1, 0.5], [20, 0.1], [45, 3.0]]}},
        {"piecewise_constant": {"init_value": 1.0, "boundaries_and_scales": [[0, 0.5], [20, 0.1]]}},
        {"cosine_onecycle": {"peak_value": 0.4}},
        {"trapezoid": {"peak_value": 0.4, "warmup": 9, "decay": 20}},
        {"trapezoid": {"init_value": 0.1, "peak_value": 0.4, "warmup": 1, "decay": 12, "transition": 50, "end_value": 0.02}},
        {"trapezoid": {"peak_value": 0.4, "warmup": 20, "decay": 40}},
        {"cosine_onecycle": {"peak_value": 0.4, "transition": 37, "pct_start": 0.55}},
        {"join": {"schedules": [linear, 0.1, {"cosine_decay": {"init_value": 0.1, "alpha": 0.01}}],
                  "boundaries": [7, 30]}},
        {"join": {"schedules": [{"join": {"schedules": [0.1, 0.2, 0.3], "boundaries": [5, 40]}}, linear],
                  "boundaries": [25]}},
        {"join": {"schedules": [linear, {"cosine_decay": {"init_value": 0.1}}], "boundaries": [0]}},
    ]


def make_plateaus() -> list:
    """Options of reduce_on_plateau with the values of a metric."""
    rng = np.random.default_rng(3)
    falling = [2.0 * 0.9**k * (1.0 + 0.2 * float(noise)) for k, noise in enumerate(rng.standard_normal(60))]
    flat = [1.0 + 2e-4 * float(noise) for noise in rng.standard_normal(60)]
    options = [{}, {"rtol": 0.0, "atol": 1e-9}, {"rtol": 0.0, "atol": 0.01}, {"rtol": 0.05}, {"rtol": 1e-3, "atol": 1e-4},
               {"rtol": 1e-12}]
    return [{"factor": 0.5, "patience": patience, "cooldown": cooldown, **each, "values": values}
            for each in options for values in (falling, flat) for patience, cooldown in [(1, 0), (3, 2)]]
