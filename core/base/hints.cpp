#include "core/base/hints.h"

#include <algorithm>

#include "core/base/text.h"

namespace pmaptrain {
namespace {

constexpr std::string_view no_recurrent =
    "there are no recurrent layers; attention is over the positions of a sequence";
constexpr std::string_view inferred = "leave it out: shapes follow from the data and the layer before";

constexpr HintRow rows[] = {
    // ---- alternatives ----
    {"loss", "mse mse_loss l2 l2_loss squared_error", "mean_squared_error", ""},
    {"loss", "mae l1 l1_loss absolute_error", "mean_absolute_error", ""},
    {"loss", "smooth_l1 smooth_l1_loss huber_loss", "huber", ""},
    {"loss",
     "cross_entropy crossentropy cross_entropy_loss ce xent categorical_crossentropy sparse_categorical_crossentropy "
     "softmax softmax_cross_entropy_with_integer_labels sparse_softmax_cross_entropy",
     "softmax_cross_entropy", "It takes logits; for labels 0 and 1 and one output there is sigmoid_cross_entropy"},
    {"loss", "nll nll_loss log_loss logistic", "softmax_cross_entropy",
     "It takes logits, so the model has no softmax at its end"},
    {"loss",
     "bce bce_loss bce_with_logits bce_with_logits_loss binary_cross_entropy binary_crossentropy sigmoid "
     "sigmoid_binary_cross_entropy binary_cross_entropy_with_logits",
     "sigmoid_cross_entropy", "It takes logits, so the model has no sigmoid at its end"},
    {"loss", "hinge hinge_loss multi_margin_loss", "", "the nearest is softmax_cross_entropy"},
    {"loss", "kl kl_div kl_divergence kldiv_loss", "",
     "the nearest is softmax_cross_entropy, which takes class probabilities too: its gradient is the same"},
    {"loss", "focal_loss sigmoid_focal_loss", "focal", ""},
    {"loss", "pinball pinball_loss quantile_loss", "quantile", ""},
    {"loss", "poisson_nll poisson_nll_loss poisson_loss", "poisson", ""},
    {"loss", "ctc ctc_loss triplet triplet_loss contrastive cosine_similarity dice", "",
     "the losses are in pmaptrain help loss"},

    {"kernel_init embedding_init", "glorot xavier xavier_uniform", "glorot_uniform", ""},
    {"kernel_init embedding_init", "xavier_normal", "glorot_normal", ""},
    {"kernel_init embedding_init", "he kaiming msra kaiming_normal", "he_normal", ""},
    {"kernel_init embedding_init", "kaiming_uniform", "he_uniform", ""},
    {"kernel_init embedding_init", "lecun", "lecun_normal", ""},
    {"kernel_init embedding_init bias_init scale_init", "random_normal gaussian", "normal", ""},
    {"kernel_init embedding_init bias_init scale_init", "trunc_normal", "truncated_normal", ""},
    {"kernel_init embedding_init bias_init scale_init", "random_uniform", "uniform", "Its values are in [0, scale)"},
    {"kernel_init embedding_init bias_init scale_init", "zero zeros_init", "zeros", ""},
    {"kernel_init embedding_init bias_init scale_init", "one ones_init", "ones", ""},
    {"normal truncated_normal", "std sigma scale", "stddev", ""},
    {"kernel_init embedding_init", "delta_orthogonal identity dirac sparse", "",
     "model.init.values sets the values themselves"},
    {"bias_init scale_init",
     "lecun_normal lecun_uniform he_normal he_uniform glorot_normal glorot_uniform variance_scaling orthogonal", "",
     "it is for kernels: a vector has no fans; normal, truncated_normal and uniform draw values too"},

    {"layer", "linear fully_connected fc inner_product", "dense", "For Keras's activation linear, leave the layer out"},
    {"layer", "conv2d convolution conv2d_layer", "conv", ""},
    {"layer", "maxpool2d max_pooling max_pooling2d", "max_pool", ""},
    {"layer", "avgpool2d average_pool average_pooling average_pooling2d mean_pool", "avg_pool", ""},
    {"layer", "global_average_pooling global_average_pooling2d gap adaptive_avg_pool2d global_mean_pool",
     "global_avg_pool", ""},
    {"layer", "swish", "silu", ""},
    {"layer", "lrelu", "leaky_relu", ""},
    {"layer", "sequential", "layers", ""},
    {"layer", "view unflatten", "reshape", ""},
    {"layer", "dropout2d spatial_dropout spatial_dropout2d", "", "the nearest is dropout, which drops single values"},
    {"layer", "identity noop", "", "leave the layer out"},
    {"layer", "conv1d conv3d", "",
     "conv is over height and width; data of one dimension can be reshaped to [length, 1, channels]"},
    {"layer",
     "conv_transpose conv2d_transpose conv_transpose2d conv_transposed transposed_conv transposed_conv2d deconv "
     "deconvolution",
     "",
     "there is no transposed convolution, and no layer that enlarges images: conv and pooling keep their size or "
     "shrink "
     "them; an image of any size is made by dense and reshape: [height, width, channels]"},
    {"layer", "depthwise_conv depthwise_conv2d separable_conv separable_conv2d", "",
     "a depthwise convolution is conv with feature_group_count equal to its input channels"},
    {"layer", "lstm gru rnn simple_rnn bidirectional", "", no_recurrent},
    {"layer",
     "self_attention multi_head_attention multihead_attention multi_head_dot_product_attention mha causal_attention",
     "attention", "For example attention: {heads: 4, causal: true}"},
    {"layer", "transformer transformer_block transformer_encoder_layer transformer_decoder_layer encoder_block", "",
     "a block is residual with [layer_norm, {attention: {heads: 4}}], and residual with dense layers or swiglu"},
    {"layer", "embed embeddings token_embedding", "embedding",
     "For example embedding: {num_embeddings: 256, features: 128}"},
    {"layer", "positional_encoding positional_embedding pos_embedding wpe", "position_embedding",
     "For example position_embedding: {length: 128}"},
    {"layer", "tied_output lm_head unembed unembedding", "attend",
     "It takes the table of an embedding layer: attend: {embedding: tokens}"},
    {"layer", "gated_mlp feed_forward ffn", "swiglu", "For example swiglu: 512"},
    {"attention", "num_heads n_heads n_head nhead", "heads", ""},
    {"attention", "num_kv_heads n_kv_heads num_key_value_heads", "kv_heads", ""},
    {"attention", "dropout_rate attention_dropout attn_dropout", "dropout", ""},
    {"attention", "normalize_qk", "qk_norm", ""},
    {"attention", "is_causal mask", "causal", ""},
    {"attention", "qkv_features", "",
     "the features of a head are head_dim; by default they are those of the input / heads"},
    {"attention", "rope rotary_embedding", "rotary", "For example rotary: {base: 10000.0}"},
    {"embedding", "vocab vocab_size num_tokens input_dim", "num_embeddings", ""},
    {"embedding", "embedding_dim dim output_dim", "features", ""},
    {"swiglu", "hidden_size hidden_features intermediate_size features", "hidden", ""},
    {"layer", "batch_normalization batchnorm2d batchnorm1d bn", "batch_norm", ""},
    {"layer", "sync_batch_norm", "batch_norm", "Its axes say over which devices its statistics are"},
    {"layer", "layer_normalization", "layer_norm", ""},
    {"layer", "group_normalization", "group_norm", ""},
    {"layer", "rms_normalization", "rms_norm", ""},
    {"layer", "instance_norm instancenorm2d", "",
     "instance normalisation is group_norm with a group for each channel: group_norm: {num_groups: C}"},
    {"layer", "permute", "transpose", ""},
    {"layer", "skip shortcut resnet_block add", "residual", ""},
    {"layer", "concat concatenate", "",
     "layers are applied one after another; residual adds what two lists of layers give"},
    {"layer", "upsample upsampling2d interpolate resize", "",
     "convolutions and pooling with strides only shrink images"},
    {"layer", "log_softmax", "",
     "softmax_cross_entropy takes logits, so a model for training needs neither softmax nor log_softmax at its end"},
    {"layer", "hardswish hard_swish mish prelu selu celu relu6 glu hardtanh softsign", "",
     "the nearest are silu, gelu, leaky_relu and elu"},
    {"layer", "max_pool1d max_pool3d avg_pool1d avg_pool3d global_max_pool globalmaxpooling2d", "",
     "max_pool and avg_pool are over height and width; a window of the whole image pools all of it"},

    {"optimizer", "name type kind class_name target class", "", "the kind is itself the key: write '{}:' in its place"},
    {"loss", "name type kind class_name target", "", "the kind is itself the key: write '{}:' in its place"},
    {"layer", "type kind class_name target op", "", "the kind is itself the key: write '{}:' in its place"},
    {"layer", "input inputs input_layer input_shape", "", inferred},
    {"augmentation", "random_horizontal_flip horizontal_flip flip random_flip_left_right hflip", "random_flip", ""},
    {"augmentation", "crop", "random_crop", ""},
    {"augmentation", "resized_crop random_size_crop random_zoom zoom", "random_resized_crop", ""},
    {"augmentation", "rotation rotate random_rotate", "random_rotation", "Its angles are in degrees"},
    {"augmentation",
     "jitter random_color_jitter random_brightness random_contrast random_saturation random_hue brightness contrast "
     "saturation hue color colour",
     "color_jitter", "For example color_jitter: {brightness: 0.2}"},
    {"augmentation", "random_erasing erasing", "cutout", ""},
    {"augmentation", "normalize", "", "it is a key beside augment: data.normalize"},
    {"augmentation", "resize", "", "images are resized by the source: image_folder: {size: [32, 32]}"},
    {"augmentation",
     "rand_augment auto_augment trivial_augment_wide augmix random_vertical_flip vertical_flip "
     "random_affine random_perspective random_grayscale gaussian_blur random_translation",
     "",
     "there are random_crop, random_resized_crop, random_flip, random_rotation, color_jitter, cutout, mixup and "
     "cutmix"},
    {"optimizer", "momentum nesterov", "sgd", "Momentum is its option: sgd: {momentum: 0.9}"},
    {"optimizer", "rms", "rmsprop", ""},
    {"optimizer", "adam_w", "adamw", ""},
    {"optimizer", "adamax amsgrad radam adabelief adan nadamw lamb adafactor adadelta novograd sophia yogi muon", "",
     "the nearest are adam and adamw"},
    {"optimizer", "lars ftrl rprop asgd sgdw", "", "the nearest is sgd, which has momentum and weight_decay"},
    {"optimizer", "lbfgs l_bfgs newton shampoo kfac", "", "the optimizers use gradients alone; the nearest is adam"},
    {"learning_rate", "cosine cosine_annealing cosineannealinglr", "cosine_decay", ""},
    {"learning_rate", "constant fixed", "", "write the number itself: learning_rate: 0.001"},
    {"learning_rate", "warmup_cosine warmup cosine_with_warmup", "warmup_cosine_decay", ""},
    {"learning_rate", "step steplr step_decay multistep multisteplr multi_step", "piecewise_constant", ""},
    {"learning_rate", "exponential exponentiallr exp_decay", "exponential_decay", ""},
    {"learning_rate", "onecycle onecyclelr one_cycle", "cosine_onecycle", ""},
    {"learning_rate", "reducelronplateau plateau", "", "it is beside the rate: optimizer.reduce_on_plateau"},

    {"metric", "acc top1 top_1 categorical_accuracy sparse_categorical_accuracy binary_accuracy", "accuracy", ""},
    {"metric", "top5 top_5 topk top_5_accuracy top5_accuracy", "top_k_accuracy", "For example top_k_accuracy: 5"},
    {"metric", "mse", "mean_squared_error", ""},
    {"metric", "mae", "mean_absolute_error", ""},
    {"metric", "r2_score r_squared", "r2", ""},
    {"metric", "f1_score fscore", "f1", ""},
    {"metric", "ppl", "perplexity", ""},
    {"metric", "rmse", "root_mean_squared_error", ""},
    {"metric", "auc auroc rocauc roc_auc_score", "roc_auc", ""},
    {"metric", "confusion confusionmatrix", "confusion_matrix", ""},
    {"metric", "loss", "", "the loss is always reported"},
    {"metric", "mape", "mean_absolute_percentage_error", ""},
    {"metric", "median_ae medae", "median_absolute_error", ""},
    {"metric", "ap map auprc pr_auc average_precision_score", "average_precision", ""},
    {"metric", "exact_match exact_match_ratio", "subset_accuracy", ""},
    {"metric", "iou bleu", "", "the metrics are in pmaptrain help metrics; precision and recall are the nearest"},

    {"source", "mnist emnist kmnist", "", "the nearest is fashion_mnist; files in MNIST's format are read by idx"},
    {"source", "cifar cifar_10_binary", "cifar10", ""},
    {"source", "cifar100 svhn imagenet coco", "", "images in a folder for each class are read by image_folder"},
    {"source", "imagefolder images folder directory", "image_folder", ""},
    {"source", "tsv table pandas dataframe", "csv", ""},
    {"source", "numpy npy array", "npz", "Archives are written by numpy.savez"},
    {"source", "tokens txt bytes", "text", ""},
    {"source", "parquet arrow feather", "",
     "write it as CSV, which csv reads: in Python, `pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)`"},
    {"source", "xlsx xls excel", "", "save it as CSV, which csv reads"},
    {"source", "hdf5 h5 tfrecord tfds huggingface hf webdataset lmdb json jsonl sql", "",
     "convert it to NumPy arrays, which npz reads"},
    {"source", "synthetic random", "synthetic_images", "For regression there is synthetic_linear"},

    // ---- values ----
    {"backend", "gpu nvidia cudnn", "cuda", ""},
    {"backend", "tpu xla mps metal rocm hip sycl vulkan opencl", "", "the backends are cpu and cuda"},
    {"backend", "nccl gloo mpi ddp", "",
     "it names the hardware; devices exchange gradients by the backend's own collectives"},
    {"precision", "bf16 bfloat16 bf16_mixed mixed mixed_bf16 amp autocast", "mixed_bfloat16", ""},
    {"precision", "fp32 f32 single 32 full", "float32", ""},
    {"precision", "fp16 f16 float16 half 16 16_mixed mixed_float16 mixed_precision", "",
     "the nearest is mixed_bfloat16, which needs no loss scaling"},
    {"precision", "f64 fp64 float64 double fp8 int8", "", "there are float32 and mixed_bfloat16"},
    {"precision", "tf32 tensorfloat32", "", "the nearest is float32 with mesh.tf32: true, on GPUs"},
    {"padding", "zero zeros same_lower same_upper", "SAME", ""},
    {"padding", "none no", "VALID", ""},
    {"mode", "minimize minimise lower decrease", "min", ""},
    {"mode", "maximize maximise higher increase", "max", ""},

    {"duration", "s sec secs", "seconds", ""},
    {"duration", "m min mins", "minutes", ""},
    {"duration", "h hr hrs", "hours", ""},
    {"duration", "d day days", "", "a day has 24 hours"},
    {"duration", "ms millisecond milliseconds", "", "the shortest is 1 second"},
    {"duration", "ep eps", "epochs", ""},
    {"duration", "it its iter iters iteration iterations update updates", "steps", ""},
    {"duration", "batch batches", "steps", ""},
    {"duration", "ex sample samples row rows", "examples", ""},

    // ---- keys in particular maps ----
    {"dense", "units out_features hidden_size num_units n_units out_dim output_dim size width", "features", ""},
    {"conv", "filters out_channels num_filters channels", "features", ""},
    {"conv", "kernel kernel_shape ksize window_shape", "kernel_size", ""},
    {"conv", "stride", "strides", ""},
    {"conv", "dilation dilation_rate", "kernel_dilation", ""},
    {"conv", "groups", "feature_group_count", ""},
    {"dense conv", "bias", "use_bias", ""},
    {"max_pool avg_pool", "kernel_size pool_size size window", "window_shape", ""},
    {"max_pool avg_pool", "stride", "strides", ""},
    {"dropout", "p prob probability keep_prob", "rate", ""},
    {"leaky_relu", "alpha slope", "negative_slope", ""},
    {"dense", "in_features input_dim input_shape in_dim", "", inferred},
    {"conv", "in_channels input_shape in_features", "", inferred},
    {"dense conv", "activation", "",
     "an activation is a layer of its own: add '- {}' after this one; losses of logits apply softmax and sigmoid "
     "themselves"},
    {"dense conv attention swiglu", "kernel_initializer init initializer weight_init", "kernel_init", ""},
    {"dense conv attention layer_norm rms_norm group_norm batch_norm", "bias_initializer beta_initializer", "bias_init",
     ""},
    {"layer_norm rms_norm group_norm batch_norm", "gamma_initializer scale_initializer weight_init", "scale_init", ""},
    {"embedding position_embedding", "embeddings_initializer embedding_initializer init weight_init", "embedding_init",
     ""},
    {"dense conv", "kernel_regularizer", "", "the nearest is weight_decay of adamw or sgd"},
    {"adam adamw nadam lion", "betas", "", "there are b1 and b2"},
    {"adam adamw nadam lion", "beta1 beta_1", "b1", ""},
    {"adam adamw nadam lion", "beta2 beta_2", "b2", ""},
    {"adam adamw nadam rmsprop adagrad", "epsilon", "eps", ""},
    {"adam", "weight_decay l2 wd", "", "adamw has weight_decay, decoupled from the gradient; adam has none"},
    {"adam", "amsgrad", "", "there is adam without it"},
    {"adamw sgd", "wd decay l2", "weight_decay", ""},
    {"rmsprop", "rho alpha", "decay", ""},
    {"softmax_cross_entropy", "smoothing", "label_smoothing", ""},
    {"softmax_cross_entropy", "weight weights class_weight", "class_weights", ""},
    {"softmax_cross_entropy", "ignore_index ignore ignored_label ignore_class", "ignore_label", ""},
    {"sigmoid_cross_entropy", "ignore_label ignore_index", "",
     "softmax_cross_entropy has ignore_label, for labels of classes"},
    {"softmax_cross_entropy sigmoid_cross_entropy", "from_logits", "", "the loss always takes logits"},
    {"softmax_cross_entropy mean_squared_error", "reduction", "",
     "the loss is always the mean over the examples of the global batch"},
    {"warmup_cosine_decay", "warmup_steps warmup_epochs", "warmup", ""},
    {"warmup_cosine_decay cosine_decay", "decay_steps", "decay", ""},
    {"warmup_cosine_decay cosine_decay exponential_decay", "initial_learning_rate", "init_value", ""},
    {"exponential_decay", "transition_steps decay_steps", "transition", ""},
    {"linear", "transition_steps", "transition", ""},
    {"linear", "from start", "init_value", ""},
    {"linear", "to end", "end_value", ""},
    {"random_rotation", "angle angles degree", "degrees", ""},
    {"random_rotation", "factor", "", "degrees: 36 are what Keras calls factor 0.1, a tenth of a turn"},
    {"random_rotation", "interpolation resample", "", "a pixel is the nearest one of the image"},
    {"random_rotation", "fill fillcolor fill_mode fill_value", "", "what is outside of the image is zero"},
    {"random_rotation", "expand", "", "images keep their size, and what is turned out of them is lost"},
    {"random_resized_crop", "size height width", "",
     "the result has the size of the images; the source sets it: image_folder: {size: [32, 32]}"},
    {"random_resized_crop", "interpolation antialias", "", "the part is resized bilinearly, with antialiasing"},
    {"random_resized_crop", "area", "scale", ""},
    {"random_resized_crop", "aspect_ratio", "ratio", ""},
    {"csv", "sep separator", "delimiter", ""},
    {"csv", "label labels y label_column target_column", "target", ""},
    {"csv", "features columns x feature_columns", "inputs", ""},
    {"csv", "path file filename files", "train", ""},
    {"checkpoint", "monitor metric mode", "best", "For example best: {metric: accuracy}"},
    {"early_stopping best", "monitor", "metric", ""},
    {"checkpoint", "save_top_k max_to_keep keep_last", "keep", ""},
    {"checkpoint", "save_every interval every_n_epochs", "every", ""},
    {"mesh", "devices num_devices n_devices", "axes", "For example axes: {devices: {}}"},
    {"mesh", "shape", "axes", "For example axes: [{replicas: 2}, {shards: 4}]"},

    // ---- keys in any map ----
    {"key", "lr rate step_size", "optimizer.learning_rate", ""},
    {"key", "epochs max_epochs num_epochs n_epochs epoch num_train_epochs", "train.duration",
     "For epochs write duration: {} epochs"},
    {"key", "steps max_steps num_steps iterations max_iters num_iterations n_steps", "train.duration",
     "For steps write duration: {} steps"},
    {"key", "batch batchsize bs train_batch_size global_batch_size minibatch_size", "data.batch_size", ""},
    {"key", "per_device_batch_size per_device_train_batch_size micro_batch_size local_batch_size",
     "data.batch_size_per_device", ""},
    {"key",
     "gradient_accumulation_steps gradient_accumulation accumulate_grad_batches accumulate_gradients accumulate "
     "accumulation accumulate_steps accumulation_steps grad_accum grad_accum_steps num_microbatches",
     "data.microbatches", "The batch is computed in so many parts, and their gradients are added"},
    {"key",
     "pretrained pretrained_model pretrained_path pretrained_weights from_pretrained init_from load_from restore_from "
     "finetune_from fine_tune",
     "model.init.from", "It takes a run folder or a safetensors file: init: {from: runs/NAME}"},
    {"key", "gpus num_gpus devices num_devices world_size nproc nproc_per_node n_devices", "mesh.axes",
     "For example axes: {devices: {}}"},
    {"key", "num_workers threads num_threads n_jobs", "mesh.workers", ""},
    {"key", "device accelerator hardware", "mesh.backend", ""},
    {"key", "optim opt solver", "optimizer", ""},
    {"key", "criterion loss_fn loss_function objective", "loss", ""},
    {"key", "network net architecture arch layers", "model", "Its layers are model.layers"},
    {"data", "dataset datasets train_data train", "source", ""},
    {"key", "dataset datasets train_data", "data", ""},
    {"key", "transforms transform augmentation augmentations data_augmentation", "data.augment", ""},
    {"key", "test_size test_split", "data.validation", "A test split is one of the source's own"},
    {"key", "trainer training fit", "train", ""},
    {"key", "scheduler lr_scheduler schedule lr_schedule", "optimizer.learning_rate",
     "A schedule stands in place of the number: pmaptrain help optimizer.learning_rate"},
    {"key",
     "gradient_clip_val grad_clip max_grad_norm clip_grad_norm clipnorm gradient_clipping clip_norm gradient_clip "
     "gradient_clip_norm",
     "optimizer.clip_by_global_norm", ""},
    {"key", "clipvalue clip_value clip_grad_value", "optimizer.clip", ""},
    {"key", "random_seed manual_seed rng_seed prng_seed random_state", "seed", ""},
    {"key", "val_split validation_split val_share val_fraction", "data.validation", ""},
    {"key", "drop_last drop_remainder", "data.remainder", "It takes drop, mask or error"},
    {"key", "mixed_precision amp fp16 bf16 dtype param_dtype", "precision", "There is precision: mixed_bfloat16"},
    {"key", "log_interval log_every_n_steps logging_steps log_steps print_every", "train.log_every", ""},
    {"key", "val_interval eval_interval eval_steps val_check_interval check_val_every_n_epoch validate_every",
     "train.eval_every", ""},
    {"key", "save_steps save_every save_interval checkpoint_every checkpointing", "train.checkpoint.every", ""},
    {"key", "patience", "train.early_stopping.patience", ""},
    {"key", "ema_decay", "train.ema.decay", ""},
    {"key", "label_smoothing", "loss.softmax_cross_entropy.label_smoothing", ""},
    {"key", "ignore_label ignore_index", "loss.softmax_cross_entropy.ignore_label", ""},
    {"key", "weight_decay wd", "optimizer.adamw.weight_decay", ""},
    {"key", "metric", "metrics", ""},
    {"key", "output_dir save_dir logdir log_dir run_dir out_dir workdir default_root_dir", "",
     "the run folder is chosen on the command line: --run-dir DIR, or --name NAME for runs/NAME"},
    {"key", "resume resume_from resume_from_checkpoint ckpt_path", "",
     "a run is continued on the command line: pmaptrain run CONFIG --resume"},
    {"key", "callbacks callback hooks plugins", "",
     "what runs beside training is in train: checkpoint, early_stopping, ema, eval_every"},
    {"key", "logger loggers wandb mlflow", "",
     "every run writes metrics.jsonl, summary.json and event files for TensorBoard to its folder"},
    {"key", "strategy ddp fsdp distributed deepspeed sharding pmap parallel", "",
     "gradients are averaged over mesh.axes; nothing else is to be configured"},
    {"key", "compile jit donate torch_compile", "", "every program is compiled before its first step"},
    {"key", "pin_memory prefetch prefetch_factor persistent_workers", "", "the loader always reads batches ahead"},
    {"key", "defaults _target_ hydra", "", "a config is one file; --set KEY=VALUE changes it"},

    // ---- the command line ----
    {"option", "epochs max_epochs num_epochs", "--set", "--set 'train.duration={} epochs'"},
    {"option", "fast_dev_run", "--max-steps", "--max-steps 1"},
    {"option", "steps num_steps iterations", "--max-steps", "For the duration itself: --set train.duration={}"},
    {"option", "batch_size batchsize batch bs b", "--set", "--set data.batch_size={}"},
    {"option", "lr learning_rate", "--set", "--set optimizer.learning_rate={}"},
    {"option", "optimizer optim", "--set", "--set optimizer.{}={}"},
    {"option", "loss", "--set", "--set loss={}"},
    {"option", "precision amp bf16 fp16 mixed_precision", "--set", "--set precision=mixed_bfloat16"},
    {"option", "backend device accelerator", "--set", "--set mesh.backend={}"},
    {"option", "num_devices nproc_per_node nproc world_size n_devices", "--devices", ""},
    {"option", "gpus num_gpus n_gpus", "--workers", "With mesh.backend: cuda it is the number of GPUs"},
    {"option", "num_workers threads num_threads jobs j", "--workers", ""},
    {"option", "output_dir output out_dir logdir log_dir save_dir workdir run_folder", "--run-dir", ""},
    {"option", "resume_from resume_from_checkpoint ckpt ckpt_path continue restart", "--resume", ""},
    {"option", "force f replace clobber", "--overwrite", ""},
    {"option", "random_seed manual_seed", "--seed", ""},
    {"option", "config c cfg config_file config_name", "", "the config is the argument itself: pmaptrain run CONFIG"},
    {"option", "profile profiler", "",
     "run --trace FILE traces some steps; pmaptrain bench CONFIG times steps; explain --kernels --measure times ops"},
    {"option", "multirun m sweep", "", "a loop over --set KEY=VALUE and --name NAME runs several configs"},
    {"command", "train fit start launch", "run", ""},
    {"command", "test evaluate evaluation val", "eval", ""},
    {"command", "check lint dry_run plan", "validate", ""},
    {"command", "new create example examples template", "init", ""},
    {"command", "benchmark time profile", "bench", ""},
    {"command", "gpus hardware info device", "devices", ""},
    {"command", "infer inference predictions serve", "predict", ""},
    {"command", "list ls history status", "runs", ""},
    {"command", "html plot plots curves chart dashboard visualize", "report", ""},
    {"command", "compare comparison", "diff", ""},
    {"command", "resume continue", "", "pmaptrain run CONFIG --resume continues a run"},
    {"command", "sweep tune search", "", "a loop over pmaptrain run CONFIG --set KEY=VALUE --name NAME does it"},
    {"command", "convert save to_onnx", "export", ""},
    {"collective", "allreduce all_reduce reduce sum", "psum", ""},
    {"collective", "mean average allreduce_mean", "pmean", ""},
    {"collective", "allgather gather", "all_gather", ""},
    {"collective", "reducescatter reduce_scatter scatter", "psum_scatter", ""},
    {"collective", "alltoall", "all_to_all", ""},
    {"collective", "permute send recv sendrecv shift", "ppermute", ""},
    {"collective", "max", "pmax", ""},
    {"collective", "min", "pmin", ""},
    {"op", "reduce_mean mean average", "",
     "there is reduce_sum, whose result is divided by the count of its addends; over mesh axes there is pmean"},
    {"op", "reduce_min reduce_prod prod", "", "there are reduce_sum and reduce_max"},
    {"op", "sum", "reduce_sum", "Over mesh axes it is psum"},
    {"op", "subtract", "sub", ""},
    {"op", "multiply", "mul", ""},
    {"op", "divide true_divide", "div", ""},
    {"op", "maximum", "max", ""},
    {"op", "minimum", "min", ""},
    {"op", "negative negate", "neg", ""},
    {"op", "exponential", "exp", ""},
    {"op", "power", "pow", ""},
    {"op", "where", "select", ""},
    {"op", "convert astype convert_element_type", "cast", ""},
    {"op", "dot dot_general mm gemm", "matmul", ""},
    {"op", "bmm einsum", "batch_matmul", ""},
    {"op", "permute", "transpose", ""},
    {"op", "broadcast_in_dim expand broadcast_to", "broadcast", ""},
    {"op", "view", "reshape", ""},
    {"op", "sigmoid logistic gelu silu swish softmax", "",
     "it is written in ops that there are, such as exp, tanh and div: pmaptrain explain CONFIG shows how"},
    {"op", "conv_general_dilated convolution conv2d", "conv", ""},
};

template <class Is>
bool any_word(std::string_view words, Is is) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (is(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

// The places that are not of a config.
constexpr std::string_view elsewhere[] = {"duration", "option", "command", "collective", "op"};

bool is_for(const HintRow& row, std::string_view where) {
  return any_word(row.where, [&](std::string_view one) { return one == where; });
}
bool has_word(const HintRow& row, const std::string& letters) {
  return any_word(row.words, [&](std::string_view one) { return letters_of(one) == letters; });
}

std::string with_value(std::string_view text, std::string_view value) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find("{}", at)) != std::string::npos; at += value.size())
    out.replace(at, 2, value);
  return out;
}

const HintRow* find_row(std::string_view where, std::string_view word) {
  const std::string letters = letters_of(word);
  if (letters.empty()) return nullptr;
  const auto* const found = std::find_if(std::begin(rows), std::end(rows), [&](const HintRow& row) {
    return is_for(row, where) && has_word(row, letters);
  });
  return found == std::end(rows) ? nullptr : found;
}

Hint make_hint(const HintRow& row, std::string_view meant, std::string_view value) {
  const std::string help = with_value(row.help, value.empty() ? "N" : value);
  if (meant.empty()) return {help, meant};
  if (help.starts_with(meant)) return {"write " + help, meant};
  return {"did you mean '" + std::string(meant) + "'?" + (help.empty() ? "" : " " + help), meant};
}

}  // namespace

std::span<const HintRow> hint_rows() { return rows; }

std::optional<Hint> hint_for(std::string_view where, std::string_view word, std::string_view value) {
  const HintRow* row = find_row(where, word);
  if (row == nullptr) return std::nullopt;
  return make_hint(*row, row->meant, value);
}

std::optional<Hint> hint_in_config(std::string_view word) {
  const std::string letters = letters_of(word);
  for (const HintRow& row : rows) {
    const bool in_config = std::none_of(std::begin(elsewhere), std::end(elsewhere),
                                        [&](std::string_view place) { return is_for(row, place); });
    if (!in_config || !has_word(row, letters)) continue;
    Hint hint = make_hint(row, row.meant, "");
    hint.path = row.where == "key" ? row.meant : row.where.substr(0, row.where.find(' '));
    return hint;
  }
  return std::nullopt;
}

std::optional<Hint> hint_for_key(std::string_view path, std::string_view word, std::string_view value) {
  const HintRow* row = find_row(path.substr(path.rfind('.') + 1), word);
  if (row == nullptr) row = find_row("key", word);
  if (row == nullptr) return std::nullopt;
  std::string_view meant = row->meant;
  const std::string prefix = path.empty() ? "" : std::string(path) + ".";
  if (meant.starts_with(prefix) && meant.find('.', prefix.size()) == std::string_view::npos) {
    meant.remove_prefix(prefix.size());
  }
  Hint hint = make_hint(*row, meant, value);
  hint.path = row->where == "key" || path.empty() ? row->meant : std::string(path) + "." + std::string(row->meant);
  return hint;
}

}  // namespace pmaptrain
