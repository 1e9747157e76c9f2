// The rows of a whole config and of `mesh`.
#include "core/spec/rows/row.h"
#include "core/spec/types/axes.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/memory.h"

namespace pmaptrain::spec {

static constexpr std::array<Word<Backend>, 4> words_of(Tag<Backend>) {
  return {{{"cpu", Backend::cpu},
           {"cuda", Backend::cuda},
           {"auto", Backend::automatic},
           {"reference", Backend::reference}}};
}

static auto row(Tag<MeshSpec>) {
  return keys_of<MeshSpec>(
      option(
          &MeshSpec::mesh,
          {.path = "axes",
           .fallback = "{devices: 1}",
           .meaning = "Named axes, outermost first; the product of their sizes is the number of logical devices. One "
                      "axis is written as a map, several as a list. --devices N sets the size if there is one axis.",
           .example = "axes: {devices: 8}\naxes: [{model_replicas: 2}, {data_shards: 4}]"}),
      option(&MeshSpec::backend,
             {.path = "backend",
              .meaning =
                  "The backend that runs the program: cpu, cuda (GPUs), or reference (the interpreter: slow, for "
                  "checking). auto is cuda where GPUs are found that can run the config, else cpu; validate, explain "
                  "and run say which, and why.",
              .example = "backend: cpu"}),
      option(
          &MeshSpec::deterministic,
          {.path = "deterministic",
           .meaning = "Of backend cuda: whether the bits of all results are the same in each run and on any number of "
                      "GPUs of a kind. Other backends always have the same bits for any number of workers.",
           .example = "deterministic: true"}),
      option(&MeshSpec::blocks,
             {.path = "blocks",
              .fallback = "auto",
              .low = 1,
              .high = 65536,
              .words = {"auto"},
              .meaning = "Runs of neighbouring devices, of equal length, in which sums over devices are added: first "
                         "within each block, then the blocks in a tree. The bits of results depend on this number, and "
                         "not on how many workers carry the devices. It must divide the number of devices (of a member "
                         "of an ensemble). auto is 1, or the number of processes; with deterministic on GPUs, the "
                         "largest divisor up to 8, and a GPU has whole blocks.",
              .example = "blocks: 4"}),
      option(
          &MeshSpec::timeout,
          {.path = "timeout",
           .fallback = "auto",
           .words = {"auto"},
           .steps = false,
           .time = true,
           .meaning = "Of several processes: the time after which a process that is silent, or that does not get on, "
                      "ends the run. auto is ten times the longest that a process has taken for a step so far, at "
                      "least 5 seconds; a minute before that is known; of a sweep, 30 seconds.",
           .example = "timeout: 30 seconds"}),
      option(&MeshSpec::tf32,
             {.path = "tf32",
              .meaning = "Of backend cuda: whether tensor cores may multiply float32 values that are rounded to TF32, "
                         "which has 10 of 23 bits of the mantissa, in convolutions and matrix products. Sums are "
                         "float32.",
              .example = "tf32: true"}),
      option(&MeshSpec::gpu_memory,
             {.path = "gpu_memory",
              .meaning = "Of backend cuda: the memory of one GPU that the plan may use. A config that needs more is "
                         "refused. Where no GPU is, validate and explain plan for one with this memory.",
              .example = "gpu_memory: 80GiB",
              .fallback_text = "all memory of the GPUs that are found"}),
      option(&MeshSpec::workers,
             {.path = "workers",
              .fallback = "auto",
              .low = 1,
              .high = 65536,
              .words = {"auto"},
              .meaning = "The number of threads, or of GPUs, that run the logical devices; auto uses "
                         "all cores that affinity and cgroups allow, or all GPUs over which the "
                         "mesh divides.",
              .example = "workers: 4"}));
}

static auto row(Tag<Fsdp>) {
  return keys_of<Fsdp>(
      option(&Fsdp::axis, {.path = "axis",
                           .need = Need::required,
                           .meaning = "The axis of the data, or a list of them, along which devices have shards.",
                           .example = "axis: shards"}),
      option(&Fsdp::stage,
             {.path = "stage",
              .need = Need::required,
              .low = 1,
              .high = 3,
              .meaning = "What is sharded. 1: the optimizer's state and the update; 2: also the summed gradients; 3: "
                         "also the parameters.",
              .example = "stage: 3"}));
}

static auto row(Tag<Tensor>) {
  return keys_of<Tensor>(
      option(&Tensor::axis, {.path = "axis",
                             .need = Need::required,
                             .meaning = "The axis along which devices divide layers; the data does not use it.",
                             .example = "axis: model"}));
}

static auto row(Tag<Parallelism>) {
  return keys_of<Parallelism>(
      section(
          &Parallelism::fsdp,
          {.path = "fsdp",
           .meaning =
               "Fully sharded data parallelism: of what data parallelism keeps on every device, each device along an "
               "axis keeps a shard. No bit of a result changes, and no file: only where arrays are, and what "
               "devices send.",
           .example = "fsdp: {axis: devices, stage: 3}",
           .fallback_text = "none"}),
      section(&Parallelism::tensor,
              {.path = "tensor",
               .meaning =
                   "Tensor parallelism: of attention, swiglu, embedding, and pairs of dense or conv layers each device "
                   "along an axis has a part, and they add up what the parts give. All devices along the axis see the "
                   "same examples. The order of sums changes; files do not.",
               .example = "tensor: {axis: model}",
               .fallback_text = "none"}));
}

static auto row(Tag<Ensemble>) {
  return keys_of<Ensemble>(
      option(&Ensemble::axis, {.path = "axis",
                               .need = Need::required,
                               .meaning = "The axis of the members; the data does not use it.",
                               .example = "axis: model_replicas"}),
      by_hand<Ensemble>(
          {.path = "vary",
           .type = Type::varied,
           .need = Need::required,
           .meaning =
               "The keys in which the members differ, each with one value for each member. The lists are paired, "
               "not multiplied. seed varies the initial values and dropout; the order of the data is shared "
               "unless data.seed varies too. At the command line: --set 'ensemble.vary.optimizer.learning_rate=[0.1, "
               "0.2]'.",
           .example = "vary: {seed: [0, 1], optimizer.learning_rate: [0.001, 0.0003]}"}));
}

static auto row(Tag<Spec>) {
  return keys_of<Spec>(
      option(&Spec::name, {.path = "name",
                           .type = Type::run_name,
                           .meaning = "The name of the run; the default run folder is runs/<name>.",
                           .example = "name: cnn",
                           .fallback_text = "the file's name"}),
      option(
          &Spec::seed,
          {.path = "seed",
           .varies = true,
           .fixed = "what dropout leaves out, and the order of the examples, are drawn from it",
           .meaning = "The seed of all random numbers: initial values, order of the examples, dropout, synthetic data.",
           .example = "seed: 7"}),
      option(&Spec::precision,
             {.path = "precision",
              .meaning = "float32: everything. mixed_bfloat16: the operands of convolutions and matrix products, "
                         "activations and their gradients are bfloat16; parameters and their gradients, the "
                         "optimizer, the loss and the metrics are float32, and so are sums.",
              .example = "precision: mixed_bfloat16"}),
      section(&Spec::mesh, {.path = "mesh",
                            .fallback = "{}",
                            .meaning = "The logical devices, and the backend and threads that run them.",
                            .example = "mesh:\n  axes: {devices: 8}"}),
      section(&Spec::data, {.path = "data",
                            .need = Need::required,
                            .meaning = "The dataset, its preprocessing and its batches.",
                            .example = "data:\n  source: fashion_mnist\n  batch_size: 128"}),
      section(&Spec::model, {.path = "model",
                             .need = Need::required,
                             .meaning = "The layers of the model and its initial parameters.",
                             .example = "model:\n  layers:\n    - flatten\n    - dense: 10"}),
      section(&Spec::lora,
              {.path = "lora",
               .meaning = "Low-rank adapters: the kernels that it names stay as they are, and to each a product a @ b "
                          "of two small matrices is added, which alone are trained. Checkpoints hold what is trained.",
               .example = "lora: {rank: 8, alpha: 16.0, parameters: [\"*.query\", \"*.value\"]}",
               .fallback_text = "none: all parameters are trained"}),
      choice(&Spec::loss, {.path = "loss",
                           .need = Need::required,
                           .meaning = "The loss function, averaged over the examples of the global batch.",
                           .example = "loss: softmax_cross_entropy"}),
      choices(&Spec::metrics, {.path = "metrics",
                               .fallback = "[]",
                               .meaning = "Metrics reported with the loss. Over several batches, a metric is computed "
                                          "from sums over all examples, not as a mean of means.",
                               .example = "metrics: [accuracy, top_k_accuracy: 5]",
                               .item = "metric"}),
      section(&Spec::optimizer, {.path = "optimizer",
                                 .type = Type::choice,
                                 .need = Need::required,
                                 .meaning = "The optimizer: one of the update rules, with the learning rate beside it.",
                                 .example = "optimizer:\n  adam: {}\n  learning_rate: 0.001"}),
      section(&Spec::train, {.path = "train",
                             .need = Need::required,
                             .meaning = "The duration of the training, the intervals of logging, evaluation and "
                                        "checkpoints, and what stops it early.",
                             .example = "train:\n  duration: 10 epochs"}),
      section(&Spec::parallelism, {.path = "parallelism",
                                   .meaning = "What is divided over the devices beside the data.",
                                   .example = "parallelism:\n  fsdp: {axis: devices, stage: 3}",
                                   .fallback_text = "none"}),
      section(&Spec::ensemble,
              {.path = "ensemble",
               .meaning = "Independent members along one axis of the mesh, which differ in the values of some keys and "
                          "are trained as one program. Each has the values that it would have alone.",
               .example = "ensemble:\n  axis: model_replicas\n  vary: {seed: [0, 1]}",
               .fallback_text = "none"}));
}

template struct Section<Spec>;
template struct Section<MeshSpec>;
template struct Section<Parallelism>;
template struct Section<Fsdp>;
template struct Section<Tensor>;
template struct Section<Ensemble>;

}  // namespace pmaptrain::spec
