#include "core/spec/keys.h"

namespace pmaptrain::spec {
namespace {

// clang-format off
const std::vector<Key>& table() {
  static const std::vector<Key> all = {
    {.path = "name", .type = Type::run_name, .meaning = "What the run is called; its folder is runs/<name>.",
     .example = "name: cnn", .fallback_text = "the file's name"},
    {.path = "seed", .type = Type::seed, .fallback = "0",
     .meaning = "Everything random (initial values, order of examples, dropout, synthetic data) follows from it.",
     .example = "seed: 7"},
    {.path = "precision", .type = Type::word, .fallback = "float32", .words = {"float32"}, .absent = {"mixed_bfloat16"},
     .meaning = "The element type of parameters, activations and gradients.", .example = "precision: float32"},

    {.path = "mesh", .type = Type::map, .fallback = "{}",
     .meaning = "The logical devices, and what carries them.", .example = "mesh:\n  axes: {devices: 8}"},
    {.path = "mesh.axes", .type = Type::axes, .fallback = "{devices: 1}",
     .meaning = "Named axes, outermost first; the product of their sizes is the number of logical devices. One axis is "
                "a map, several are a list. --devices N sets the size of a single axis.",
     .example = "axes: {devices: 8}\naxes: [{model_replicas: 2}, {data_shards: 4}]"},
    {.path = "mesh.backend", .type = Type::word, .fallback = "cpu", .words = {"cpu", "auto"}, .absent = {"cuda"},
     .meaning = "The hardware that computes; auto takes the best there is.", .example = "backend: cpu"},
    {.path = "mesh.workers", .type = Type::integer, .fallback = "auto", .low = 1, .high = 65536, .words = {"auto"},
     .meaning = "How many threads carry the logical devices; auto takes what affinity and cgroups allow. The results "
                "do not depend on it.",
     .example = "workers: 4"},

    {.path = "data", .type = Type::map, .need = Need::required, .meaning = "The examples and how they are batched.",
     .example = "data:\n  source: fashion_mnist\n  batch_size: 128"},
    {.path = "data.source", .type = Type::choice, .need = Need::required, .meaning = "Where the examples come from.",
     .example = "source: fashion_mnist"},
    {.path = "data.source.fashion_mnist", .type = Type::map, .need = Need::alternative,
     .meaning = "Fashion-MNIST: 60,000 training and 10,000 test images of 28x28 in 10 classes, as Debian's "
                "dataset-fashion-mnist installs them.",
     .example = "source: fashion_mnist"},
    {.path = "data.source.fashion_mnist.dir", .type = Type::path, .fallback = "/usr/share/datasets/fashion-mnist",
     .meaning = "The folder that holds the four files.", .example = "dir: datasets/fashion-mnist"},
    {.path = "data.source.idx", .type = Type::map, .need = Need::alternative,
     .meaning = "Files in MNIST's IDX format, plain or gzip.",
     .example = "source: {idx: {train: [images.gz, labels.gz], test: [test-images.gz, test-labels.gz]}}"},
    {.path = "data.source.idx.train", .type = Type::paths, .need = Need::required,
     .meaning = "The file of inputs and the file of targets to train on.", .example = "train: [images.gz, labels.gz]"},
    {.path = "data.source.idx.test", .type = Type::paths,
     .meaning = "The files of inputs and of targets to evaluate on.",
     .example = "test: [test-images.gz, test-labels.gz]"},
    {.path = "data.source.npz", .type = Type::map, .need = Need::alternative,
     .meaning = "NumPy archives: one file with named arrays for each split, or one file a split with the same two "
                "names in each.",
     .example = "source: {npz: {file: f.npz, train: [x_train, y_train], test: [x_test, y_test]}}\n"
                "source: {npz: {train: train.npz, test: test.npz, inputs: x, targets: y}}"},
    {.path = "data.source.npz.file", .type = Type::path, .meaning = "One archive that holds every split.",
     .example = "file: digits.npz"},
    {.path = "data.source.npz.train", .type = Type::npz_split, .need = Need::required,
     .meaning = "With file: the names of the arrays of inputs and targets. Without: the archive to train on.",
     .example = "train: [x_train, y_train]"},
    {.path = "data.source.npz.test", .type = Type::npz_split,
     .meaning = "The same for the examples to evaluate on.", .example = "test: [x_test, y_test]"},
    {.path = "data.source.npz.inputs", .type = Type::text,
     .meaning = "Without file: the name of the array of inputs in each archive.", .example = "inputs: x"},
    {.path = "data.source.npz.targets", .type = Type::text,
     .meaning = "Without file: the name of the array of targets in each archive.", .example = "targets: y"},
    {.path = "data.source.synthetic_linear", .type = Type::map, .need = Need::alternative,
     .meaning = "Linear regression with true weights and bias drawn from the seed, normal inputs and normal noise; the "
                "run ends with the learned values against the true ones.",
     .example = "source: {synthetic_linear: {features: 5, examples_per_device: 100, noise: 0.1}}"},
    {.path = "data.source.synthetic_linear.features", .type = Type::integer, .fallback = "5", .low = 1,
     .meaning = "Inputs of an example.", .example = "features: 5"},
    {.path = "data.source.synthetic_linear.examples_per_device", .type = Type::integer, .fallback = "100", .low = 1,
     .meaning = "Examples for each logical device.", .example = "examples_per_device: 100"},
    {.path = "data.source.synthetic_linear.noise", .type = Type::number, .fallback = "0.1", .high = unbounded,
     .meaning = "Standard deviation of what is added to the targets.", .example = "noise: 0.1"},
    {.path = "data.source.synthetic_images", .type = Type::map, .need = Need::alternative,
     .meaning = "Images of a pattern for each class plus noise, made from the seed one by one as they are needed.",
     .example = "source: {synthetic_images: {height: 32, width: 32, channels: 3, train: 50000}}"},
    {.path = "data.source.synthetic_images.height", .type = Type::integer, .fallback = "32", .low = 1,
     .high = 65536, .meaning = "Rows of an image.", .example = "height: 32"},
    {.path = "data.source.synthetic_images.width", .type = Type::integer, .fallback = "32", .low = 1,
     .high = 65536, .meaning = "Columns of an image.", .example = "width: 32"},
    {.path = "data.source.synthetic_images.channels", .type = Type::integer, .fallback = "3", .low = 1,
     .high = 65536, .meaning = "Values of a pixel.", .example = "channels: 3"},
    {.path = "data.source.synthetic_images.classes", .type = Type::integer, .fallback = "10", .low = 2,
     .high = 1e6, .meaning = "Labels run from 0 to one less than this.", .example = "classes: 10"},
    {.path = "data.source.synthetic_images.train", .type = Type::integer, .fallback = "50000", .low = 1,
     .meaning = "Examples to train on.", .example = "train: 50000"},
    {.path = "data.source.synthetic_images.test", .type = Type::integer, .fallback = "10000", .low = 0,
     .meaning = "Examples to evaluate on; 0 for none.", .example = "test: 10000"},
    {.path = "data.source.synthetic_images.noise", .type = Type::number, .fallback = "0.3", .high = unbounded,
     .meaning = "Standard deviation of what is added to each value.", .example = "noise: 0.3"},
    {.path = "data.source.values", .type = Type::map, .need = Need::alternative,
     .meaning = "Examples written into the config.",
     .example = "source: {values: {inputs: [[0.0], [1.0]], targets: [[0.5], [2.5]]}}"},
    {.path = "data.source.values.inputs", .type = Type::matrix, .need = Need::required, .low = -unbounded,
     .high = unbounded, .meaning = "One list of numbers for each example; a plain number is a list of one.",
     .example = "inputs: [[0.0], [1.0]]"},
    {.path = "data.source.values.targets", .type = Type::matrix, .need = Need::required, .low = -unbounded,
     .high = unbounded, .meaning = "One list of numbers for each example, in the same order.",
     .example = "targets: [[0.5], [2.5]]"},
    {.path = "data.batch_size", .type = Type::integer, .low = 1, .words = {"all"},
     .meaning = "Examples a step, over all devices; all takes the whole train split. Either this or "
                "batch_size_per_device is needed.",
     .example = "batch_size: 128", .fallback_text = "none"},
    {.path = "data.batch_size_per_device", .type = Type::integer, .low = 1,
     .meaning = "Examples a step on each device, instead of batch_size.", .example = "batch_size_per_device: 16",
     .fallback_text = "none"},
    {.path = "data.axes", .type = Type::axis_names,
     .meaning = "The axes that the batch is split over and gradients are averaged over: in this version all axes of "
                "the mesh.",
     .example = "axes: [devices]", .fallback_text = "all axes of the mesh"},
    {.path = "data.remainder", .type = Type::word, .fallback = "drop", .words = {"drop", "mask", "error"},
     .meaning = "The short last batch of an epoch: drop skips it, mask pads it with rows that count for nothing, error "
                "refuses it. mask also allows a batch that does not divide over the devices. Evaluation always counts "
                "every example once.",
     .example = "remainder: mask"},
    {.path = "data.shuffle", .type = Type::boolean, .fallback = "true",
     .meaning = "Whether each epoch has an order of its own; false keeps the order of the file.",
     .example = "shuffle: false"},
    {.path = "data.microbatches", .type = Type::integer, .fallback = "1", .low = 1,
     .meaning = "Gradient accumulation: each device's share of the batch is computed in this many slices, with one "
                "synchronisation a step.",
     .example = "microbatches: 4"},
    {.path = "data.normalize", .type = Type::map,
     .meaning = "Subtract a mean from the inputs and divide by a standard deviation; bytes reach it as 0 to 1.",
     .example = "normalize: {mean: [0.5], std: [0.5]}", .fallback_text = "none"},
    {.path = "data.normalize.mean", .type = Type::numbers, .need = Need::required, .low = -unbounded,
     .high = unbounded, .meaning = "One for each channel, or one for all.", .example = "mean: [0.5]"},
    {.path = "data.normalize.std", .type = Type::numbers, .need = Need::required, .high = unbounded,
     .open_low = true, .meaning = "One for each channel, or one for all.", .example = "std: [0.5]"},
    {.path = "data.seed", .type = Type::seed, .meaning = "A seed of its own for the order of the examples and for "
     "synthetic data.", .example = "seed: 1", .fallback_text = "the seed of the run"},

    {.path = "model", .type = Type::map, .need = Need::required, .meaning = "What is trained.",
     .example = "model:\n  layers:\n    - flatten\n    - dense: 10"},
    {.path = "model.layers", .type = Type::choices, .need = Need::required,
     .meaning = "The layers, in order. Images are (height, width, channels). A layer is a bare name or one key with "
                "its options.",
     .example = "layers:\n  - conv: {features: 32, kernel_size: [3, 3]}\n  - relu\n  - flatten\n"
                "  - {name: head, dense: 10}",
     .item = "layer"},
    {.path = "model.layers.name", .type = Type::layer_name,
     .meaning = "What the layer's parameters are called: head.kernel, head.bias.",
     .example = "{name: head, dense: 10}", .fallback_text = "its kind and its index among that kind: conv_0"},
    {.path = "model.layers.dense", .type = Type::map, .need = Need::alternative,
     .meaning = "Every output is a weighted sum of all inputs. Parameters: kernel (in, out) and bias.",
     .example = "- dense: 10"},
    {.path = "model.layers.dense.features", .type = Type::integer, .need = Need::required, .low = 1,
     .shorthand = true, .meaning = "Outputs.", .example = "features: 10"},
    {.path = "model.layers.dense.use_bias", .type = Type::boolean, .fallback = "true",
     .meaning = "Whether a learned constant is added.", .example = "use_bias: false"},
    {.path = "model.layers.conv", .type = Type::map, .need = Need::alternative,
     .meaning = "Convolution over height and width. Parameters: kernel (height, width, in, out) and bias.",
     .example = "- conv: {features: 32, kernel_size: [3, 3]}"},
    {.path = "model.layers.conv.features", .type = Type::integer, .need = Need::required, .low = 1,
     .meaning = "Channels of the output.", .example = "features: 32"},
    {.path = "model.layers.conv.kernel_size", .type = Type::integers, .need = Need::required, .low = 1,
     .high = 65536, .length = 2, .meaning = "Height and width of the kernel.", .example = "kernel_size: [3, 3]"},
    {.path = "model.layers.conv.strides", .type = Type::integers, .fallback = "[1, 1]", .low = 1, .high = 65536,
     .length = 2, .meaning = "Steps of the kernel along height and width.", .example = "strides: [2, 2]"},
    {.path = "model.layers.conv.padding", .type = Type::padding, .fallback = "SAME", .high = 65536,
     .meaning = "SAME gives ceil(size / stride) outputs, VALID pads nothing, or the zeros before and after, for height "
                "and for width.",
     .example = "padding: [[1, 1], [1, 1]]"},
    {.path = "model.layers.conv.kernel_dilation", .type = Type::integers, .fallback = "[1, 1]", .low = 1, .high = 65536,
     .length = 2, .meaning = "How far apart the kernel's elements meet the image, along height and width.",
     .example = "kernel_dilation: [2, 2]"},
    {.path = "model.layers.conv.feature_group_count", .type = Type::integer, .fallback = "1", .low = 1,
     .meaning = "Into how many groups the channels are cut: each group of outputs sees its own inputs alone. With as "
                "many groups as channels, a depthwise convolution.",
     .example = "feature_group_count: 2"},
    {.path = "model.layers.conv.use_bias", .type = Type::boolean, .fallback = "true",
     .meaning = "Whether a learned constant is added to each channel.", .example = "use_bias: false"},
    {.path = "model.layers.max_pool", .type = Type::map, .need = Need::alternative,
     .meaning = "The largest value of each window.",
     .example = "- max_pool: {window_shape: [2, 2], strides: [2, 2]}"},
    {.path = "model.layers.max_pool.window_shape", .type = Type::integers, .need = Need::required, .low = 1,
     .high = 65536, .length = 2, .meaning = "Height and width of a window.", .example = "window_shape: [2, 2]"},
    {.path = "model.layers.max_pool.strides", .type = Type::integers, .need = Need::required, .low = 1, .high = 65536,
     .length = 2, .meaning = "Steps of the window along height and width (required: libraries disagree on a default).",
     .example = "strides: [2, 2]"},
    {.path = "model.layers.max_pool.padding", .type = Type::padding, .fallback = "VALID", .high = 65536,
     .meaning = "As for conv; what is padded never wins.", .example = "padding: SAME"},
    {.path = "model.layers.avg_pool", .type = Type::map, .need = Need::alternative,
     .meaning = "The mean of each window.", .example = "- avg_pool: {window_shape: [2, 2], strides: [2, 2]}"},
    {.path = "model.layers.avg_pool.window_shape", .type = Type::integers, .need = Need::required, .low = 1,
     .high = 65536, .length = 2, .meaning = "Height and width of a window.", .example = "window_shape: [2, 2]"},
    {.path = "model.layers.avg_pool.strides", .type = Type::integers, .need = Need::required, .low = 1, .high = 65536,
     .length = 2, .meaning = "Steps of the window along height and width (required: libraries disagree on a default).",
     .example = "strides: [2, 2]"},
    {.path = "model.layers.avg_pool.padding", .type = Type::padding, .fallback = "VALID", .high = 65536,
     .meaning = "As for conv.", .example = "padding: SAME"},
    {.path = "model.layers.avg_pool.count_include_pad", .type = Type::boolean, .fallback = "true",
     .meaning = "Whether padding counts as zeros; else a mean is that of the image's elements.",
     .example = "count_include_pad: false"},
    {.path = "model.layers.global_avg_pool", .type = Type::map, .need = Need::alternative,
     .meaning = "The mean of each channel over height and width.", .example = "- global_avg_pool"},
    {.path = "model.layers.reshape", .type = Type::map, .need = Need::alternative,
     .meaning = "The same values in another shape, row by row.", .example = "- reshape: [7, 7, 64]"},
    {.path = "model.layers.reshape.shape", .type = Type::integers, .need = Need::required, .low = -1, .shorthand = true,
     .meaning = "The sizes of one example; one of them may be -1, which takes what the others leave.",
     .example = "shape: [7, 7, -1]"},
    {.path = "model.layers.layers", .type = Type::choices, .need = Need::alternative,
     .meaning = "Layers in a list of their own: its name leads theirs, as in block.conv_0.kernel.",
     .example = "- name: block\n  layers:\n    - conv: {features: 32, kernel_size: [3, 3]}\n    - relu",
     .item = "layer", .like = "model.layers"},
    {.path = "model.layers.flatten", .type = Type::map, .need = Need::alternative,
     .meaning = "All dimensions of an example become one.", .example = "- flatten"},
    {.path = "model.layers.dropout", .type = Type::map, .need = Need::alternative,
     .meaning = "While training, sets a share of the values to zero and scales the others up; nothing in evaluation.",
     .example = "- dropout: 0.5"},
    {.path = "model.layers.dropout.rate", .type = Type::number, .need = Need::required, .high = 1, .open_high = true,
     .shorthand = true, .meaning = "The share that is set to zero.", .example = "rate: 0.5"},
    {.path = "model.layers.relu", .type = Type::map, .need = Need::alternative, .meaning = "max(x, 0).",
     .example = "- relu"},
    {.path = "model.layers.tanh", .type = Type::map, .need = Need::alternative, .meaning = "The hyperbolic tangent.",
     .example = "- tanh"},
    {.path = "model.layers.gelu", .type = Type::map, .need = Need::alternative,
     .meaning = "The Gaussian error linear unit, in its tanh form.", .example = "- gelu"},
    {.path = "model.layers.sigmoid", .type = Type::map, .need = Need::alternative,
     .meaning = "The logistic function, 1 / (1 + exp(-x)).", .example = "- sigmoid"},
    {.path = "model.layers.silu", .type = Type::map, .need = Need::alternative,
     .meaning = "x times its sigmoid, also called swish.", .example = "- silu"},
    {.path = "model.layers.softmax", .type = Type::map, .need = Need::alternative,
     .meaning = "Exponentials divided by their sum, along the last dimension. softmax_cross_entropy takes what is before "
                "it: it has a softmax of its own.",
     .example = "- softmax"},
    {.path = "model.layers.leaky_relu", .type = Type::map, .need = Need::alternative,
     .meaning = "x where it is at least 0, else negative_slope times x.", .example = "- leaky_relu: 0.01"},
    {.path = "model.layers.leaky_relu.negative_slope", .type = Type::number, .fallback = "0.01", .low = -unbounded,
     .high = unbounded, .shorthand = true, .meaning = "The slope below 0.", .example = "negative_slope: 0.01"},
    {.path = "model.layers.elu", .type = Type::map, .need = Need::alternative,
     .meaning = "x where it is above 0, else alpha times (exp(x) - 1).", .example = "- elu"},
    {.path = "model.layers.elu.alpha", .type = Type::number, .fallback = "1.0", .low = -unbounded, .high = unbounded,
     .shorthand = true, .meaning = "Minus the limit far below 0.", .example = "alpha: 1.0"},
    {.path = "model.layers.softplus", .type = Type::map, .need = Need::alternative,
     .meaning = "log(1 + exp(x)), without overflow.", .example = "- softplus"},
    {.path = "model.init", .type = Type::choice,
     .meaning = "Values to start from instead of random ones, by the names of parameters. Kernels start LeCun normal "
                "and biases at zero.",
     .example = "init: {from: params.safetensors}", .fallback_text = "random values from the seed"},
    {.path = "model.init.from", .type = Type::path, .need = Need::alternative, .meaning = "A safetensors file.",
     .example = "init: {from: params.safetensors}"},
    {.path = "model.init.values", .type = Type::tensors, .need = Need::alternative, .low = -unbounded,
     .high = unbounded, .meaning = "Nested lists of numbers; what is not named keeps its random values.",
     .example = "init: {values: {dense_0: {kernel: [[1.0]], bias: [0.0]}}}"},

    {.path = "loss", .type = Type::choice, .need = Need::required, .meaning = "What is minimised.",
     .example = "loss: softmax_cross_entropy"},
    {.path = "loss.softmax_cross_entropy", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: minus the logarithm of the label's softmax probability. For a chance of each class, such as "
                "one-hot labels: its mean over the classes by these chances; metrics take the likeliest for the label.",
     .example = "loss: softmax_cross_entropy\nloss: {softmax_cross_entropy: {label_smoothing: 0.1}}"},
    {.path = "loss.softmax_cross_entropy.label_smoothing", .type = Type::number, .fallback = "0.0", .high = 1,
     .open_high = true, .meaning = "The share of each label's probability that is spread over all classes equally.",
     .example = "label_smoothing: 0.1"},
    {.path = "loss.softmax_cross_entropy.class_weights", .type = Type::numbers, .high = unbounded,
     .meaning = "One for each class: what the loss of an example with that label is multiplied by. The mean is still "
                "over the number of examples.",
     .example = "class_weights: [1.0, 5.0]", .fallback_text = "1 for every class"},
    {.path = "loss.sigmoid_cross_entropy", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers from 0 to 1, or for labels 0 and 1 and one output: the binary cross-entropy of the outputs' "
                "sigmoids, of which it is the mean.",
     .example = "loss: sigmoid_cross_entropy"},
    {.path = "loss.mean_squared_error", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers: the mean of the squared differences; targets are (N, outputs), never broadcast.",
     .example = "loss: mean_squared_error"},
    {.path = "loss.mean_absolute_error", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers: the mean of the absolute differences.", .example = "loss: mean_absolute_error"},
    {.path = "loss.huber", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers: half the squared difference up to delta, beyond it delta times (the difference less half of "
                "delta); the mean of these.",
     .example = "loss: huber\nloss: {huber: {delta: 2.0}}"},
    {.path = "loss.huber.delta", .type = Type::number, .fallback = "1.0", .high = unbounded, .open_low = true,
     .shorthand = true, .meaning = "Where the squares end.", .example = "delta: 1.0"},
    {.path = "metrics", .type = Type::choices, .fallback = "[]",
     .meaning = "What is shown beside the loss. Over several batches each is computed from sums over all examples.",
     .example = "metrics: [accuracy, top_k_accuracy: 5]", .item = "metric"},
    {.path = "metrics.accuracy", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: the share of examples whose largest output is their label (with sigmoid_cross_entropy: whose "
                "output is above 0 where the label is 1).",
     .example = "metrics: [accuracy]"},
    {.path = "metrics.top_k_accuracy", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: the share of examples whose label is among their k largest outputs; called top_5_accuracy "
                "where k is 5.",
     .example = "metrics: [top_k_accuracy: 5]"},
    {.path = "metrics.top_k_accuracy.k", .type = Type::integer, .fallback = "5", .low = 1, .shorthand = true,
     .meaning = "How many outputs count.", .example = "k: 3"},
    {.path = "metrics.precision", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: of the examples that the model gives to a class, the share that belongs to it; 0 where it "
                "gives it none.",
     .example = "metrics: [precision, precision: {average: none}]"},
    {.path = "metrics.precision.average", .type = Type::word, .fallback = "macro", .words = {"macro", "none"},
     .meaning = "macro: the mean over the classes that occur, in the labels or in what the model says; of labels 0 and 1, "
                "class 1 alone. none: each class for itself, as precision_0, precision_1, ...",
     .example = "average: none"},
    {.path = "metrics.recall", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: of the examples of a class, the share that the model gives to it; 0 where there are none.",
     .example = "metrics: [recall]"},
    {.path = "metrics.recall.average", .type = Type::word, .fallback = "macro", .words = {"macro", "none"},
     .meaning = "As for precision.", .example = "average: none"},
    {.path = "metrics.f1", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: the harmonic mean of a class's precision and recall; 0 where both are.",
     .example = "metrics: [f1]"},
    {.path = "metrics.f1.average", .type = Type::word, .fallback = "macro", .words = {"macro", "none"},
     .meaning = "As for precision.", .example = "average: none"},
    {.path = "metrics.perplexity", .type = Type::map, .need = Need::alternative,
     .meaning = "For labels: e to the power of the mean softmax cross-entropy.", .example = "metrics: [perplexity]"},
    {.path = "metrics.mean_absolute_error", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers: the mean of the absolute differences.", .example = "metrics: [mean_absolute_error]"},
    {.path = "metrics.mean_squared_error", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers: the mean of the squared differences.", .example = "metrics: [mean_squared_error]"},
    {.path = "metrics.r2", .type = Type::map, .need = Need::alternative,
     .meaning = "For numbers: the share of the targets' variance that the outputs explain, R²; the mean over several "
                "outputs. Of targets that are all equal: 1 where every output is right, else 0.",
     .example = "metrics: [r2]"},

    {.path = "optimizer", .type = Type::choice, .need = Need::required,
     .meaning = "How parameters follow from gradients: one of the rules, and the learning rate beside it.",
     .example = "optimizer:\n  adam: {}\n  learning_rate: 0.001"},
    {.path = "optimizer.sgd", .type = Type::map, .need = Need::alternative,
     .meaning = "Gradient descent, with momentum if that is not 0.", .example = "sgd: {momentum: 0.9}"},
    {.path = "optimizer.sgd.momentum", .type = Type::number, .fallback = "0.0", .high = 1, .open_high = true,
     .meaning = "The share of the last step that is kept.", .example = "momentum: 0.9"},
    {.path = "optimizer.sgd.nesterov", .type = Type::boolean, .fallback = "false",
     .meaning = "Nesterov's form of momentum.", .example = "nesterov: true"},
    {.path = "optimizer.adam", .type = Type::map, .need = Need::alternative,
     .meaning = "Adam: steps scaled by running moments of the gradient.",
     .example = "adam: {b1: 0.9, b2: 0.999, eps: 1.0e-8}"},
    {.path = "optimizer.adam.b1", .type = Type::number, .fallback = "0.9", .high = 1, .open_high = true,
     .meaning = "Decay of the first moment.", .example = "b1: 0.9"},
    {.path = "optimizer.adam.b2", .type = Type::number, .fallback = "0.999", .high = 1, .open_high = true,
     .meaning = "Decay of the second moment.", .example = "b2: 0.999"},
    {.path = "optimizer.adam.eps", .type = Type::number, .fallback = "1.0e-8", .high = unbounded, .open_low = true,
     .meaning = "Added to the denominator.", .example = "eps: 1.0e-8"},
    {.path = "optimizer.adamw", .type = Type::map, .need = Need::alternative,
     .meaning = "Adam with decoupled weight decay.", .example = "adamw: {weight_decay: 0.01}"},
    {.path = "optimizer.adamw.b1", .type = Type::number, .fallback = "0.9", .high = 1, .open_high = true,
     .meaning = "Decay of the first moment.", .example = "b1: 0.9"},
    {.path = "optimizer.adamw.b2", .type = Type::number, .fallback = "0.999", .high = 1, .open_high = true,
     .meaning = "Decay of the second moment.", .example = "b2: 0.999"},
    {.path = "optimizer.adamw.eps", .type = Type::number, .fallback = "1.0e-8", .high = unbounded, .open_low = true,
     .meaning = "Added to the denominator.", .example = "eps: 1.0e-8"},
    {.path = "optimizer.adamw.weight_decay", .type = Type::number, .fallback = "1.0e-4", .high = unbounded,
     .meaning = "The share of each parameter that a step at learning rate 1 takes away.",
     .example = "weight_decay: 0.01"},
    {.path = "optimizer.learning_rate", .type = Type::number, .need = Need::required, .high = unbounded,
     .meaning = "The size of a step.", .example = "learning_rate: 0.001"},
    {.path = "optimizer.base_batch_size", .type = Type::integer, .low = 1,
     .meaning = "The learning rate is multiplied by batch_size / base_batch_size.", .example = "base_batch_size: 32",
     .fallback_text = "no scaling"},

    {.path = "train", .type = Type::map, .need = Need::required, .meaning = "How long, and what is reported when.",
     .example = "train:\n  duration: 10 epochs"},
    {.path = "train.duration", .type = Type::duration, .need = Need::required, .meaning = "How long to train.",
     .example = "duration: 10 epochs"},
    {.path = "train.log_every", .type = Type::interval, .fallback = "100 steps",
     .meaning = "How often loss and metrics are reported; the first and the last step always are.",
     .example = "log_every: 100 steps"},
    {.path = "train.eval_every", .type = Type::interval, .fallback = "1 epoch",
     .meaning = "How often the examples kept for evaluation are evaluated, and after the last step. never: not at all.",
     .example = "eval_every: 1 epoch"},
    {.path = "train.verify_replicas", .type = Type::interval, .fallback = "never",
     .meaning = "How often every device's private copy of the parameters is compared.",
     .example = "verify_replicas: 100 steps"},
    {.path = "train.on_nonfinite", .type = Type::word, .fallback = "halt", .words = {"halt", "skip"},
     .meaning = "On a NaN or an infinity in the loss, the gradients or what they make of the parameters: stop with the last "
                "good parameters, or leave the step out and go on.",
     .example = "on_nonfinite: skip"},
  };
  return all;
}
// clang-format on

bool is_child(std::string_view path, std::string_view parent) {
  if (!parent.empty()) {
    if (path.size() <= parent.size() + 1 || !path.starts_with(parent) || path[parent.size()] != '.') return false;
    path.remove_prefix(parent.size() + 1);
  }
  return path.find('.') == std::string_view::npos;
}

std::string_view path_below(const Key& key) { return key.like.empty() ? key.path : key.like; }

}  // namespace

std::span<const Key> keys() { return table(); }

const Key& root_key() {
  static const Key root{.type = Type::map, .meaning = "The whole config."};
  return root;
}

std::vector<const Key*> children(const Key& key) {
  std::vector<const Key*> found;
  for (const Key& other : table()) {
    if (is_child(other.path, path_below(key))) found.push_back(&other);
  }
  return found;
}

const Key* child(const Key& key, std::string_view name) {
  for (const Key& other : table()) {
    if (other.name() == name && is_child(other.path, path_below(key))) return &other;
  }
  return nullptr;
}

const Key* find_key(std::string_view path) {
  for (const Key& key : table()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::vector<const Key*> find_ending(std::string_view path) {
  std::vector<const Key*> found;
  for (const Key& key : table()) {
    if (!key.like.empty() && key.path != path) continue;  // the key that it is like says it all
    if (key.path == path || (key.path.size() > path.size() && key.path.ends_with(path) &&
                             key.path[key.path.size() - path.size() - 1] == '.')) {
      found.push_back(&key);
    }
  }
  return found;
}

std::vector<const Key*> alternatives(const Key& key) {
  std::vector<const Key*> found = children(key);
  std::erase_if(found, [](const Key* other) { return other->need != Need::alternative; });
  return found;
}

}  // namespace pmaptrain::spec
