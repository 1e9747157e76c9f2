"""What is compared on a GPU (bench/compare --gpu), and how busy the GPU is meanwhile.

Everything computes in float32 without TF32, or in bfloat16 where a work says so; the batch is on the GPU.
"""

import subprocess
import threading

from contender import ROOT, Contender, Work

BENCH = ROOT / "bench"
WORKS = ("gpu_linear_regression", "gpu_cnn_128", "gpu_cnn_4096", "gpu_cnn_128_mixed", "gpu_cnn_4096_mixed")


class Sampler:
    """Asks nvidia-smi several times a second for how much of the time a kernel was running."""

    command = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0", "--loop-ms=100")

    def __init__(self, seconds):
        self.least = max(2, int(seconds / 0.1 / 2))  # samples of half the time that steps take

    def __enter__(self):
        self.samples = []
        try:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except FileNotFoundError:
            self.process = None
            return self
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        self.samples = [float(line) for line in self.process.stdout if line.strip().isdigit()]

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.reader.join()
            self.process.wait()

    def found(self):
        """The idle share in the busiest stretch: before it a process starts and compiles, and after it it ends."""
        stretches = [self.samples[i : i + self.least] for i in range(len(self.samples) - self.least + 1)]
        return {"idle_share": 1 - max(map(sum, stretches)) / self.least / 100} if stretches else {}


def works(options, python):
    def ours(config, devices, *settings):
        command = [options.pmaptrain, "bench", ROOT / config, "--devices", devices, "--json", "--workers", 1]
        for setting in ("mesh.backend=cuda", *settings):
            command += ["--set", setting]
        return [Contender(f"pmaptrain, {devices} devices", command, lasts=options.seconds)]

    def jax(work, *variants, devices=1):
        return [Contender(f"jax {variant}", [python, BENCH / "peers/jax_peer.py", work, f"{variant}-cuda", devices,
                                             options.seconds])
                for variant in variants if "jax" in options.peer]  # fmt: skip

    def torch(work, *variants, devices=1):
        return [Contender(f"torch {variant}", [python, BENCH / "peers/torch_peer.py", work, f"{variant}-cuda", devices,
                                               options.seconds])
                for variant in variants if "torch" in options.peer]  # fmt: skip

    found = [
        Work("gpu_linear_regression", "linear regression, 8 x 100 examples, SGD",
             ours("configs/linear_regression.yaml", 8)
             + jax("linear_regression", "jit", devices=8) + jax("linear_regression", "pmap", devices=8)
             + torch("linear_regression", "eager", "compile", "graph", devices=8)),
    ]  # fmt: skip
    kinds = ("eager-channels_last", "compile-channels_last", "graph-channels_last")
    for precision in ("float32", "mixed_bfloat16"):
        for batch in (128, 4096):
            work = "cnn" if batch == 128 else f"cnn_{batch}"
            is_mixed = precision != "float32"
            contenders = []
            for devices in (1, 8):
                contenders += ours("configs/cnn.yaml", devices, f"data.batch_size={batch}", f"precision={precision}")
            contenders += jax(work, *(("jit-bf16", "pmap-bf16") if is_mixed else ("jit", "pmap")))
            contenders += torch(work, *(f"{kind}-autocast" if is_mixed else kind for kind in kinds))
            found.append(Work(f"gpu_cnn_{batch}" + ("_mixed" if is_mixed else ""),
                              f"CNN 32x32x3, batch {batch}, Adam, {precision}", contenders))  # fmt: skip
    return found


def figures(pick):
    """What is to be reached; `pick(work, name, *fields)` is a figure of the fastest contender whose name begins so."""

    def by_ours(work, *names):
        ours = pick(work, "pmaptrain", "step_seconds", "median")
        peers = [peer for name in names if (peer := pick(work, name, "step_seconds", "median"))]
        return min(peers) / ours if ours and peers else None

    idle = pick("gpu_cnn_4096", "pmaptrain", "idle_share")
    return [
        ("linear regression on a GPU, the better peer by pmaptrain", "{:.2f} ×", "≥ 1.2 ×",
         by_ours("gpu_linear_regression", "jax jit", "torch")),
        ("linear regression on a GPU, JAX pmap by pmaptrain", "{:.2f} ×", "≥ 5 ×",
         by_ours("gpu_linear_regression", "jax pmap")),
        ("CNN at batch 128 on a GPU, the better peer by pmaptrain", "{:.2f} ×", "≥ 1.2 ×",
         by_ours("gpu_cnn_128", "jax jit", "torch")),
        ("CNN at batch 128 on a GPU, JAX pmap by pmaptrain", "{:.2f} ×", "≥ 5 ×", by_ours("gpu_cnn_128", "jax pmap")),
        ("CNN at batch 4096 on a GPU, the better peer by pmaptrain", "{:.2f} ×", "≥ 1.0 ×",
         by_ours("gpu_cnn_4096", "jax", "torch")),
        ("CNN at batch 4096 on a GPU, idle", "{:.1f} %", "< 2 %", None if idle is None else 100 * idle),
        ("CNN at batch 4096 on a GPU in bfloat16, the better peer by pmaptrain", "{:.2f} ×", "≥ 1.0 ×",
         by_ours("gpu_cnn_4096_mixed", "jax", "torch")),
    ]  # fmt: skip
