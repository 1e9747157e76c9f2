"""Works in PyTorch, one after another in this process; each prints its line when it is done.

    torch_peer.py WORK VARIANT DEVICES SECONDS [WORK VARIANT DEVICES SECONDS]...

WORK is linear_regression, cnn, cnn_BATCH, mlp, wide_mlp, transformer, transformer_large, gpt2, resnet18 or unet.
What fails
among several is told on its line, and the others are run.

VARIANT joins words with '-': eager, compile or graph (a CUDA graph of the whole eager step), then perhaps channels_last,
autocast (to bfloat16) or bf16 (all of it, parameters and Adam too), and cuda, which runs it on the first GPU, in float32
without TF32; else on the CPU. Otherwise DEVICES sets the size of linear regression's batch, which is one process's.

Or ddp, DistributedDataParallel over gloo with one process for each device, of linear_regression_EXAMPLES (100 without) or
cnn_BATCH, which are the examples of one process.
"""

import functools
import os
import re
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

from measure import measure, report
from torch_models import TRANSFORMERS, loss_of_positions, resnet18, transformer, unet

WORDS = {"channels_last", "autocast", "bf16", "cuda"}  # of a variant, behind its first one


def linear_regression(examples):
    x, y = torch.randn(examples, 5), torch.randn(examples, 1)
    model = nn.Linear(5, 1)
    return model, F.mse_loss, functools.partial(torch.optim.SGD, lr=0.05, fused=True), x, y


def cnn(examples, channels_last):
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4096, 10),
    )  # fmt: skip
    x, y = torch.randn(examples, 3, 32, 32), torch.randint(0, 10, (examples,))
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return model, F.cross_entropy, functools.partial(torch.optim.Adam, lr=1e-3, fused=True), x, y


def mlp(width):
    model = nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    x, y = torch.randn(256, 784), torch.randint(0, 10, (256,))
    return model, F.cross_entropy, functools.partial(torch.optim.Adam, lr=1e-3, fused=True), x, y


def tokens(work):
    model, x, y = transformer(work)
    if work == "gpt2":
        adamw = functools.partial(torch.optim.AdamW, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        return model, loss_of_positions, adamw, x, y
    return model, loss_of_positions, functools.partial(torch.optim.Adam, lr=1e-3, fused=True), x, y


def images(channels_last):
    model, x, y = resnet18(), torch.randn(128, 3, 32, 32), torch.randint(0, 10, (128,))
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    sgd = functools.partial(torch.optim.SGD, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.0005, fused=True)
    return model, F.cross_entropy, sgd, x, y


def pixels(channels_last):
    model, x, y = unet(), torch.randn(20, 1, 64, 64), torch.randint(0, 3, (20, 64, 64))
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return model, F.cross_entropy, functools.partial(torch.optim.Adam, lr=4e-3, fused=True), x, y


def in_bf16(model, loss, optimizer, x, y):
    return model.to(torch.bfloat16), loss, optimizer, x.to(torch.bfloat16) if x.is_floating_point() else x, y


def on_gpu(model, loss, optimizer, x, y):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    if optimizer.func in (torch.optim.Adam, torch.optim.AdamW):
        optimizer = functools.partial(optimizer, capturable=True)  # it counts on the GPU, as a graph needs it
    return model.cuda(), loss, optimizer, x.cuda(), y.cuda()


def graphed(step):
    """The step as a CUDA graph: a function that replays it and returns the loss, which stays where it is."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):  # libraries allocate and choose before the capture
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()

    def replay():
        graph.replay()
        return value

    return replay


def stepper(model, loss, optimizer, x, y, words=(), most_norm=None):
    optimizer = optimizer(model.parameters())
    losses = []  # of the first step

    def forward(inputs, targets):
        # What a graph has cast must not come from a step before it.
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled="autocast" in words,
                            cache_enabled="graph" not in words):  # fmt: skip
            return loss(model(inputs), targets)

    if "compile" in words:
        forward = torch.compile(forward)

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = forward(x, y)
        value.backward()
        if most_norm:
            nn.utils.clip_grad_norm_(model.parameters(), most_norm)
        optimizer.step()
        return value

    if "graph" in words:
        step = graphed(step)

    def steps(count):
        for _ in range(count):
            value = step()
        if not torch.isfinite(value):  # waits for the GPU
            sys.exit("torch_peer.py: the loss is not finite")
        if not losses:
            losses.append(value.item())

    steps.work = lambda: {"parameters": sum(p.numel() for p in model.parameters()), "first_loss": losses[0]}
    return steps


def distributed(rank, size, seconds, store, results, work):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    torch.manual_seed(rank)
    name, _, examples = work.rpartition("_") if work[-1].isdigit() else (work, "", "")
    model, *others = cnn(int(examples), False) if name == "cnn" else linear_regression(int(examples or 100))
    model = nn.parallel.DistributedDataParallel(model)

    def agree(number):
        common = torch.tensor([float(number)])
        torch.distributed.broadcast(common, src=0)
        return common.item()

    results.put((rank, measure(stepper(model, *others), seconds, agree)))
    torch.distributed.destroy_process_group()


def run_distributed(work, devices, seconds):
    from measure import peak_rss_bytes, seconds_since_process_start

    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    before = seconds_since_process_start()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(distributed, (devices, seconds, os.path.join(folder, "store"), results, work),
                                    devices)
    by_rank = dict(results.get() for _ in range(devices))
    result = by_rank[0]
    # The processes started after this one had loaded the library.
    result["first_step_seconds"] = before + max(one["first_step_seconds"] for one in by_rank.values())
    result["peak_rss_bytes"] = peak_rss_bytes() + sum(one["peak_rss_bytes"] for one in by_rank.values())
    return result


def run(work, variant, devices, seconds):
    words, devices, seconds = variant.split("-"), int(devices), float(seconds)
    if words[0] not in ("eager", "compile", "graph", "ddp") or not set(words[1:]) <= WORDS:
        sys.exit(f"torch_peer.py: there is no variant '{variant}'")
    torch.manual_seed(0)
    if "ddp" in words:
        if not re.fullmatch(r"linear_regression(_\d+)?|cnn_\d+", work):
            sys.exit("torch_peer.py: ddp runs linear_regression, linear_regression_EXAMPLES or cnn_BATCH")
        result = run_distributed(work, devices, seconds)
    else:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        if work == "linear_regression":
            parts = linear_regression(100 * devices)
        elif work.partition("_")[0] == "cnn":
            parts = cnn(int(work.partition("_")[2] or 128), "channels_last" in words)
        elif work in TRANSFORMERS:
            parts = tokens(work)
        elif work == "resnet18":
            parts = images("channels_last" in words)
        elif work == "unet":
            parts = pixels("channels_last" in words)
        elif work == "mlp":
            parts = mlp(512)
        elif work == "wide_mlp":
            parts = mlp(4096)
        else:
            sys.exit(f"torch_peer.py: there is no work '{work}'")
        if "bf16" in words:
            parts = in_bf16(*parts)
        if "cuda" in words and not torch.cuda.is_available():
            sys.exit("torch_peer.py: error: PyTorch finds no GPU")
        if "cuda" in words:
            parts = on_gpu(*parts)
        steps = stepper(*parts, words, most_norm=1.0 if work == "gpt2" else None)
        result = measure(steps, seconds) | steps.work()
    return {"work": work, "variant": variant} | result | {"version": torch.__version__}


def main():
    works = [sys.argv[i : i + 4] for i in range(1, len(sys.argv), 4)]
    for work in works:
        try:
            report(run(*work))
        except (Exception, SystemExit) as error:
            if len(works) == 1:
                raise
            report({"work": work[0], "variant": work[1], "error": str(error)})
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
