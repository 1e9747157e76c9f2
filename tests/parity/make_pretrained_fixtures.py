#!/usr/bin/env python3
"""Runs models of transformers and torchvision, and writes what tests/parity/pretrained.cpp compares pmaptrain with.

    python3 -m venv /tmp/pretrained
    /tmp/pretrained/bin/pip install torch==2.15.0 torchvision==0.29.2 transformers==5.24.0 numpy==2.4.6 safetensors==0.8.0
    /tmp/pretrained/bin/python tests/parity/make_pretrained_fixtures.py
    /tmp/pretrained/bin/python tests/parity/make_pretrained_fixtures.py --check build/release/pmaptrain

pretrained/NAME.json has the config.json of a model, its tensors by name, shape and the numbers that they are made of,
and what the model gives. A file of the weights themselves would be megabytes: value(), here and in the test, is a
function of a tensor's name and an element's number. All values are exact in bfloat16 and float16.

With --check the same models, and larger ones, go the way of a user: save_pretrained(), `pmaptrain init hf`, `run` with a
learning rate that changes nothing, `predict`, `export --layout`, and from_pretrained() again.
"""

import argparse
import importlib.metadata
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, ViTConfig,
                          ViTForImageClassification)

PINS = {"torch": "2.15.0", "torchvision": "0.29.2", "transformers": "5.24.0", "numpy": "2.4.6", "safetensors": "0.8.0"}
HERE = pathlib.Path(__file__).resolve().parent / "pretrained"
PROMPT, GENERATED = [71, 12, 200, 5, 5, 97], 50
NEAR = 1e-4  # of the largest logit
CLEAR = 1e-4  # the least distance of the two largest logits, of the largest: rounding must not decide a token


def value(name, count):
    """Odd numbers -31 to 31 by a hash of the name and of the index: FNV-1a, then Murmur3's finaliser."""
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    h = np.arange(count, dtype=np.uint32) * np.uint32(2654435761) + np.uint32(seed)
    h ^= h >> 16
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> 13
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> 16
    return (h >> 27).astype(np.float32) * 2 - 31


def numbers_of(name, shape):
    """[offset, gain]: a tensor is offset + gain * value(), which keeps activations of a sensible size."""
    if name.endswith("running_var"):
        return 1.0, 1 / 64
    if len(shape) == 1 or name.endswith(("cls_token", "position_embeddings")):
        is_scale = name.endswith("weight")
        return (1.0, 1 / 64) if is_scale else (0.0, 1 / 128)
    fan_in = math.prod(shape[1:])
    return 0.0, 2.0 ** round(math.log2(1 / (0.58 * math.sqrt(fan_in)))) / 32


def in_files(model):
    """The tensors as files have them: transformers names some otherwise in memory, and a tied table is there once."""
    if not hasattr(model, "config"):
        return {name: t for name, t in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(pathlib.Path(folder) / "model.safetensors")


def filled(model):
    """The model with all parameters and statistics set, and the entries of the fixture."""
    tensors, values = {}, {}
    for name, tensor in in_files(model).items():
        offset, gain = numbers_of(name, tuple(tensor.shape))
        numbers = np.float32(offset) + np.float32(gain) * value(name, tensor.numel())
        values[name] = torch.from_numpy(numbers.reshape(tuple(tensor.shape)))
        tensors[name] = {"shape": list(tensor.shape), "offset": offset, "gain": gain}
    if hasattr(model, "config"):
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            save_file(values, pathlib.Path(folder) / "model.safetensors", metadata={"format": "pt"})
            model = type(model).from_pretrained(folder)
    else:
        model.load_state_dict(values, strict=False)
    return model.eval(), tensors


def causal(kind, config, **how):
    return {"make": lambda: kind(config), "ids": True, **how}


TINY = dict(bos_token_id=None, eos_token_id=None)
CASES = {
    # A tied head, masks as older files have them, a vocabulary of the size of GPT-2's.
    "gpt2": causal(GPT2LMHeadModel, GPT2Config(n_layer=2, n_embd=24, n_head=3, vocab_size=50257, n_positions=64, **TINY),
                   every=97, masks=True),
    # Without the prefix of names, as GPT2Model has them; another activation, width and epsilon; in float16.
    "gpt2_other": causal(GPT2LMHeadModel,
                         GPT2Config(n_layer=2, n_embd=16, n_head=2, vocab_size=320, n_positions=64, n_inner=40,
                                    activation_function="gelu", layer_norm_epsilon=1e-3, **TINY),
                         prefix="transformer.", dtype="F16"),
    "llama": causal(LlamaForCausalLM,
                    LlamaConfig(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6,
                                num_key_value_heads=2, vocab_size=300, max_position_embeddings=64, rms_norm_eps=1e-5,
                                attention_bias=True, **TINY), dtype="BF16", shards=3),
    # Scaled rotary embedding with few positions, so that all three of its ranges are met; heads of another size.
    "llama_scaled": causal(LlamaForCausalLM,
                           LlamaConfig(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
                                       num_key_value_heads=1, head_dim=16, vocab_size=300, max_position_embeddings=64,
                                       tie_word_embeddings=True,
                                       rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0,
                                                        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                        "original_max_position_embeddings": 32}, **TINY)),
    "vit": {"make": lambda: ViTForImageClassification(
                ViTConfig(hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=3, image_size=16,
                          patch_size=4, num_labels=7)),
            "mean": [0.4, 0.5, 0.6], "std": [0.25, 0.5, 0.3], "side": 16},
    "resnet": {"make": lambda: torchvision.models.resnet.ResNet(torchvision.models.resnet.BasicBlock, [1, 2, 1, 1],
                                                                num_classes=6),
               "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "side": 40},
}
# These are only checked: their weights are large.
LARGER = {
    "resnet50": {"make": lambda: torchvision.models.resnet50(num_classes=5), "side": 224},
    "resnext50": {"make": lambda: torchvision.models.resnext50_32x4d(num_classes=5), "side": 224},
    "wide_resnet50": {"make": lambda: torchvision.models.wide_resnet50_2(num_classes=5), "side": 224},
    "llama_one_kv": causal(LlamaForCausalLM,
                           LlamaConfig(hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4,
                                       num_key_value_heads=1, vocab_size=50257, max_position_embeddings=128, **TINY)),
}
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def pixels(side):
    """Two images of bytes, NHWC."""
    return ((value("pixels", 2 * side * side * 3) + 31) * 4).astype(np.uint8).reshape(2, side, side, 3)


def logits_of_images(model, images, mean, std):
    x = torch.from_numpy(images.astype(np.float32) / 255)
    x = ((x - torch.tensor(mean)) / torch.tensor(std)).permute(0, 3, 1, 2)
    out = model(x)
    return (out if isinstance(out, torch.Tensor) else out.logits).numpy()


def rounded(rows):
    return [[float(f"{x:.7g}") for x in row] for row in rows]


def generate(model, prompt, count):
    ids = list(prompt)
    for _ in range(count):
        logits = model(torch.tensor([ids])).logits[0, -1]
        two = torch.topk(logits, 2).values
        if (two[0] - two[1]) < CLEAR * logits.abs().max():
            raise SystemExit("rounding may decide a token: change the numbers of the case")
        ids.append(int(logits.argmax()))
    return ids[len(prompt):]


@torch.no_grad()
def fixture_of(name, case):
    model, tensors = filled(case["make"]())
    entry = {"dtype": case.get("dtype", "F32"), "shards": case.get("shards", 1), "tensors": tensors}
    if hasattr(model, "config"):
        with tempfile.TemporaryDirectory() as folder:
            model.config.save_pretrained(folder)
            entry["config"] = json.loads((pathlib.Path(folder) / "config.json").read_text())
        entry["config"]["architectures"] = [type(model).__name__]
    if case.get("ids"):
        every = case.get("every", 1)
        logits = model(torch.tensor([PROMPT])).logits[0].numpy()
        entry |= {"prompt": PROMPT, "every": every, "logits": rounded(logits[:, ::every]),
                  "largest": float(np.abs(logits).max()), "generated": generate(model, PROMPT, GENERATED)}
    else:
        images = pixels(case["side"])
        logits = logits_of_images(model, images, case["mean"], case["std"])
        entry |= {"side": case["side"], "mean": case["mean"], "std": case["std"], "logits": rounded(logits),
                  "largest": float(np.abs(logits).max())}
    if "prefix" in case:
        cut = lambda key: key[len(case["prefix"]):] if key.startswith(case["prefix"]) else key
        entry["renamed"] = {key: cut(key) for key in entry["tensors"]}
    if case.get("masks"):
        entry["masks"] = {f"transformer.h.{i}.attn.bias": [1, 1, 64, 64] for i in range(2)}
    return entry


def call(*arguments, cwd):
    done = subprocess.run([str(a) for a in arguments], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout


# A step that changes nothing: no number is near 0. Running statistics stay where all of a norm is frozen.
NOTHING = ["--set", "optimizer={sgd: {}, learning_rate: 1.0e-30}", "--max-steps", "1", "--quiet", "--set",
           "train.eval_every=null"]
FROZEN = ["--set", "optimizer.groups=[{parameters: ['head.*'], learning_rate_scale: 1}, {parameters: ['*'], freeze: true}]"]


@torch.no_grad()
def check(name, case, program, folder):
    """A user's way, with commands alone; returns how far the logits are apart, of the largest."""
    model, _ = filled(case["make"]())
    source = folder / name
    if case.get("ids"):
        model.save_pretrained(source, max_shard_size="20KB" if case.get("shards", 1) > 1 else "5GB")
        call(program, "init", "hf", source, folder / f"{name}.yaml", cwd=folder)
        layout = "hf_gpt2" if "gpt2" in name else "hf_llama"
        back = folder / f"{name}_back"
    elif hasattr(model, "config"):
        model.save_pretrained(source)
        (source / "preprocessor_config.json").write_text(json.dumps({"image_mean": case["mean"], "image_std": case["std"]}))
        call(program, "init", "hf", source, folder / f"{name}.yaml", cwd=folder)
        layout, back = "hf_vit", folder / f"{name}_back"
    else:
        source = folder / f"{name}.safetensors"
        save_file(model.state_dict(), source)
        call(program, "init", "torchvision", source, folder / f"{name}.yaml", cwd=folder)
        layout, back = "torchvision_resnet", folder / f"{name}_back"
    back.mkdir()
    sizes = [] if case.get("ids") else ["--set", "data.batch_size=2", *FROZEN]
    if sizes:
        for key, size in {"height": case["side"], "width": case["side"], "train": 4, "test": 2}.items():
            sizes += ["--set", f"data.source.synthetic_images.{key}={size}"]
    call(program, "validate", f"{name}.yaml", cwd=folder)
    call(program, "run", f"{name}.yaml", *NOTHING, *sizes, cwd=folder)
    call(program, "export", f"runs/{name}", "--layout", layout, "--output", back / "model.safetensors", cwd=folder)
    here = load_file(back / "model.safetensors")
    there = in_files(model)
    if case.get("ids"):
        shutil.copy(source / "config.json", back)
        again = AutoModelForCausalLM.from_pretrained(back)
        if generate(again, PROMPT, 8) != generate(model, PROMPT, 8):
            raise SystemExit(f"{name}: another text")
        ours, theirs = again(torch.tensor([PROMPT])).logits.numpy(), model(torch.tensor([PROMPT])).logits.numpy()
    else:
        images = pixels(case["side"])
        mean, std = case.get("mean", [0.485, 0.456, 0.406]), case.get("std", [0.229, 0.224, 0.225])
        np.savez(folder / f"{name}.npz", x=images)
        call(program, "predict", f"runs/{name}", "--input", f"{name}.npz", "--as", "logits", "--output", f"{name}.npy",
             cwd=folder)
        ours, theirs = np.load(folder / f"{name}.npy"), logits_of_images(model, images, mean, std)
        if hasattr(model, "config"):
            shutil.copy(source / "config.json", back)
            again = ViTForImageClassification.from_pretrained(back)
            if np.abs(logits_of_images(again, images, mean, std) - theirs).max() > 0:
                raise SystemExit(f"{name}: other logits")
        else:
            again = case["make"]()
            again.load_state_dict(here, strict=False)
    for key, tensor in there.items():
        if key not in here or not torch.equal(here[key], tensor.float()):
            raise SystemExit(f"{name}: '{key}' did not come back as it was")
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="PROGRAM", help="go the way of a user with this program")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    for package, version in PINS.items():
        if (found := importlib.metadata.version(package).split("+")[0]) != version:
            raise SystemExit(f"{package} {found} is installed; the fixtures are made with {version}")
    torch.manual_seed(0)
    if arguments.check:
        program = pathlib.Path(arguments.check).resolve()
        with tempfile.TemporaryDirectory() as folder:
            for name, case in (CASES | LARGER).items():
                if arguments.cases and name not in arguments.cases:
                    continue
                apart = check(name, case, program, pathlib.Path(folder))
                print(f"{name}: {apart:.1e}")
                if apart > NEAR:
                    raise SystemExit(f"{name}: logits are {apart:.1e} apart, of the largest")
        return
    HERE.mkdir(exist_ok=True)
    for name, case in CASES.items():
        if not arguments.cases or name in arguments.cases:
            (HERE / f"{name}.json").write_text(json.dumps(fixture_of(name, case)) + "\n")
            print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
