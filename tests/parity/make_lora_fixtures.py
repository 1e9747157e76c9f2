#!/usr/bin/env python3
"""Trains adapters of peft on a small Llama of random weights, and writes what tests/parity/lora.cpp compares with.

    python3 -m venv /tmp/lora
    /tmp/lora/bin/pip install torch==2.15.0 transformers==5.24.0 peft==0.21.2 numpy==2.4.6 safetensors==0.8.0
    /tmp/lora/bin/python tests/parity/make_lora_fixtures.py
    /tmp/lora/bin/python tests/parity/make_lora_fixtures.py --check FOLDER CASE

lora/NAME has what one case needs:

    config.yaml          the model, whose base and adapters begin as those of peft
    start.safetensors    their values, under the names and in the shapes of pmaptrain
    data.npz             tokens, and the token after each
    expected.json        the loss and the norm of the gradient in each of 5 steps, and then the logits of the first
                         batch
    adapter_config.json, adapter_model.safetensors    what peft writes after these steps

--check loads such files from FOLDER, which `pmaptrain export --layout peft` wrote after the same steps, into the same
Llama, and compares the logits.
"""

import importlib.metadata
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

PINS = {"torch": "2.15.0", "transformers": "5.24.0", "peft": "0.21.2", "numpy": "2.4.6", "safetensors": "0.8.0"}
STEPS, RATE, BATCH, POSITIONS = 5, 0.01, 4, 8
HERE = pathlib.Path(__file__).resolve().parent / "lora"
LLAMA = LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, max_position_embeddings=POSITIONS, rms_norm_eps=1e-6,
                    tie_word_embeddings=False, attn_implementation="eager")

# Name: what peft is told, and what the config of pmaptrain says of it.
CASES = {
    "attention": (
        {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
        'lora: {rank: 4, alpha: 8.0, parameters: ["*.query", "*.value"]}',
    ),
    "all": (
        {"r": 2, "lora_alpha": 3, "modules_to_save": ["lm_head"],
         "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]},
        'lora: {rank: 2, alpha: 3.0, parameters: ["repeat_0.*"], also_train: ["head.*"]}',
    ),
}

CONFIG = """name: {name}
mesh:
  axes: {{devices: 1}}
data:
  source: {{npz: {{file: data.npz, train: [x, y]}}}}
  batch_size: {batch}
  shuffle: false
model:
  layers:
    - {{name: tokens, embedding: {{num_embeddings: 40, features: 16}}}}
    - repeat:
        times: 2
        layers:
          - residual:
              layers:
                - rms_norm: {{epsilon: 1.0e-6}}
                - attention: {{heads: 4, kv_heads: 2, causal: true, use_bias: false, rotary: {{base: 10000.0}}}}
          - residual:
              layers:
                - rms_norm: {{epsilon: 1.0e-6}}
                - swiglu: 24
    - rms_norm: {{epsilon: 1.0e-6}}
    - {{name: head, dense: {{features: 40, use_bias: false}}}}
  init: {{from: start.safetensors}}
{lora}
loss: softmax_cross_entropy
optimizer: {{adam: {{}}, learning_rate: {rate}}}
train:
  duration: {steps} steps
  log_every: 1 step
  eval_every: never
"""

PARTS = {
    "self_attn.q_proj": "residual_0.attention_0.query",
    "self_attn.k_proj": "residual_0.attention_0.key",
    "self_attn.v_proj": "residual_0.attention_0.value",
    "self_attn.o_proj": "residual_0.attention_0.out",
    "mlp.gate_proj": "residual_1.swiglu_0.gate",
    "mlp.up_proj": "residual_1.swiglu_0.up",
    "mlp.down_proj": "residual_1.swiglu_0.down",
}
HEADS = {"query": 4, "key": 2, "value": 2, "out": 4}


def ours(name: str, value: torch.Tensor) -> tuple[str, torch.Tensor]:
    """The name and the shape that a parameter of the Llama, or of its adapters, has in pmaptrain."""
    name = name.removeprefix("base_model.model.").replace(".base_layer", "").replace(".default", "")
    name = name.replace(".modules_to_save", "").removeprefix("model.")
    fixed = {"embed_tokens.weight": "tokens.embedding", "norm.weight": "rms_norm_0.scale"}
    if name in fixed:
        return fixed[name], value
    if name == "lm_head.weight":
        return "head.kernel", value.T
    layer, rest = name.removeprefix("layers.").split(".", 1)
    path = f"repeat_0.{layer}."
    if rest == "input_layernorm.weight":
        return path + "residual_0.rms_norm_0.scale", value
    if rest == "post_attention_layernorm.weight":
        return path + "residual_1.rms_norm_0.scale", value
    module = next(each for each in PARTS if rest.startswith(each))
    path += PARTS[module]
    what = rest.removeprefix(module + ".")
    if what == "lora_A.weight":
        return path + ".lora_a", value.T
    if what == "lora_B.weight":
        return path + ".lora_b", value.T
    kernel, part = value.T, path.rsplit(".", 1)[1]
    if part == "out":
        kernel = kernel.reshape(HEADS[part], -1, kernel.shape[1])
    elif part in HEADS:
        kernel = kernel.reshape(kernel.shape[0], HEADS[part], -1)
    return path + ".kernel", kernel


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LLAMA)
    with torch.no_grad():
        for parameter in model.parameters():  # larger than transformers' 0.02, so that layers have an effect
            if parameter.ndim > 1:
                parameter.normal_(0, 0.2)
    return model


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 40, (STEPS * BATCH, POSITIONS + 1)).astype(np.int32)
    return tokens[:, :-1], tokens[:, 1:]


def logits_of(model, x: np.ndarray) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.from_numpy(x.astype(np.int64))).logits


def trained(model, x: np.ndarray, y: np.ndarray) -> dict:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(parameters, RATE)
    losses, norms = [], []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        logits = model(torch.from_numpy(x[rows].astype(np.int64))).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(y[rows].astype(np.int64)).flatten())
        loss.backward()
        norms.append(torch.sqrt(sum((p.grad**2).sum() for p in parameters)).item())
        losses.append(loss.item())
        optimizer.step()
    return {"loss": losses, "grad_norm": norms, "logits": logits_of(model, x[:BATCH]).flatten().tolist()}


def check(folder: pathlib.Path, case: str) -> None:
    x, _ = data()
    expected = torch.tensor(json.loads((HERE / case / "expected.json").read_text())["logits"])
    found = logits_of(PeftModel.from_pretrained(llama(), folder).eval(), x[:BATCH]).flatten()
    apart = ((found - expected).abs().max() / expected.abs().max()).item()
    print(f"{case}: peft loads {folder}; logits {apart:.1e} from its own")
    if not apart <= 1e-4:
        raise SystemExit("these are not the adapters that peft has trained")


def main() -> None:
    for package, pinned in PINS.items():
        found = importlib.metadata.version(package).split("+")[0]
        if found != pinned:
            raise SystemExit(f"{package} is {found}, expected {pinned}")
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--check"]:
        return check(pathlib.Path(sys.argv[2]), sys.argv[3])
    x, y = data()
    for name, (options, lora) in CASES.items():
        folder = HERE / name
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "data.npz", x=x, y=y)
        model = get_peft_model(llama(), LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **options))
        start = dict(ours(*each) for each in model.named_parameters() if "original_module" not in each[0])
        save_file({key: value.detach().contiguous() for key, value in start.items()}, folder / "start.safetensors")
        found = trained(model, x, y)
        print(f"{name}: loss {found['loss'][0]:.4f} -> {found['loss'][-1]:.4f}")
        with tempfile.TemporaryDirectory() as saved:
            model.save_pretrained(saved)
            for file in ("adapter_config.json", "adapter_model.safetensors"):
                shutil.copy(pathlib.Path(saved) / file, folder / file)
        print("  " + ", ".join(f"{key} {list(value.shape)}" for key, value in
                               list(load_file(folder / "adapter_model.safetensors").items())[:3]))
        (folder / "config.yaml").write_text(
            CONFIG.format(name=name, lora=lora, batch=BATCH, rate=RATE, steps=STEPS))
        (folder / "expected.json").write_text(json.dumps(found) + "\n")
        check(folder, name)


if __name__ == "__main__":
    main()
