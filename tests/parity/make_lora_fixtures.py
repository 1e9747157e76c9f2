#!/usr/bin/env python3
"""Trains adapters of peft on a small Llama of random weights, and writes what tests/parity/lora.cpp compares with.

    python3 -m venv /tmp/lora
    /tmp/lora/bin/pip install torch==2.15.0 transformers==5.24.0 peft==0.21.2 numpy==2.4.6 safetensors==0.8.0
    /tmp/lora/bin/python tests/parity/make_lora_fixtures.py
    /tmp/lora/bin/python tests/parity/make_lora_fixtures.py --check build/release/pmaptrain

lora/NAME has what one case needs:

    config.yaml          the model, whose base and adapters begin as those of peft
    start.safetensors    their values: those of the base as transformers has them, those of adapters as pmaptrain has
    data.npz             tokens, and the token after each
    expected.json        the loss and the norm of the gradient in each of 5 steps, and then the logits of the first
                         batch
    adapter_config.json, adapter_model.safetensors    what peft writes after these steps

With --check these cases, and a GPT-2 whose queries, keys and values are one array, go the way of a user: `pmaptrain run`,
`export --layout peft`, PeftModel.from_pretrained() beside the same base, and logits as `predict` has them.
"""

import importlib.metadata
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

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
  init: {{from: {{path: start.safetensors, layout: hf_llama}}}}
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


def start_of(model) -> dict:
    """The base as transformers names it, and the adapters as pmaptrain does."""
    start = {}
    for name, value in model.named_parameters():
        name = name.removeprefix("base_model.model.")
        if "original_module" in name:
            continue
        name = name.replace(".base_layer", "").replace(".modules_to_save", "").replace(".default", "")
        if ".lora_" in name:
            layer, rest = name.removeprefix("model.layers.").split(".", 1)
            module, what = rest.split(".lora_")
            name, value = f"repeat_0.{layer}.{PARTS[module]}.lora_{what[0].lower()}", value.T
        start[name] = value.detach().clone().contiguous()
    return start


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


GPT2 = GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=POSITIONS, resid_pdrop=0.0, embd_pdrop=0.0,
                  attn_pdrop=0.0)
GPT2_LAYERS = """    - {name: tokens, embedding: {num_embeddings: 40, features: 16}}
    - position_embedding: {length: 8}
    - repeat:
        times: 2
        layers:
          - residual: {layers: [layer_norm: {epsilon: 1.0e-5}, attention: {heads: 4, causal: true}]}
          - residual: {layers: [layer_norm: {epsilon: 1.0e-5}, dense: 64, gelu, dense: 16]}
    - layer_norm: {epsilon: 1.0e-5}
    - attend: {embedding: tokens}
"""


def check(pmaptrain: str, name: str, base, config: str) -> None:
    x, y = data()
    with tempfile.TemporaryDirectory() as at:
        folder = pathlib.Path(at)
        np.savez(folder / "data.npz", x=x, y=y)
        base.eval()
        tensors = {key: value.contiguous() for key, value in base.state_dict().items() if key != "lm_head.weight" or
                   not base.config.tie_word_embeddings}
        save_file(tensors, folder / "start.safetensors", metadata={"format": "pt"})
        (folder / "config.yaml").write_text(config)

        def call(*arguments: str) -> None:
            subprocess.run([pmaptrain, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)

        call("run", "config.yaml", "--run-dir", "run", "--progress", "none")
        call("export", "run", "--layout", "peft", "--output", "adapters")
        call("predict", "run", "--input", "data.npz", "--output", "logits.npy", "--as", "logits")
        ours = torch.from_numpy(np.load(folder / "logits.npy")).flatten()
        before = logits_of(base, x).flatten()
        found = logits_of(PeftModel.from_pretrained(base, folder / "adapters").eval(), x).flatten()
    apart = ((found - ours).abs().max() / ours.abs().max()).item()
    moved = ((before - ours).abs().max() / ours.abs().max()).item()
    print(f"{name}: peft loads the export; logits {apart:.1e} from pmaptrain's, {moved:.1e} from those of the base")
    if not apart <= 1e-4 or not moved > 5e-4:
        raise SystemExit("these are not the adapters that pmaptrain has trained")


def check_all(pmaptrain: str) -> None:
    for name, (_, lora) in CASES.items():
        check(pmaptrain, name, llama(), CONFIG.format(name=name, lora=lora, batch=BATCH, rate=RATE, steps=STEPS))
    torch.manual_seed(0)
    gpt2 = CONFIG.replace(CONFIG[CONFIG.index("    - {{name: tokens") : CONFIG.index("  init:")],
                          GPT2_LAYERS.replace("{", "{{").replace("}", "}}")).replace("hf_llama", "hf_gpt2")
    for name, patterns in {"gpt2": '"*.query", "*.value", "*.dense_0"', "gpt2_queries": '"*.query"'}.items():
        lora = f"lora: {{rank: 3, alpha: 5.0, parameters: [{patterns}]}}"
        config = gpt2.format(name=name, lora=lora, batch=BATCH, rate=RATE, steps=STEPS)
        check(pmaptrain, name, GPT2LMHeadModel(GPT2), config)


def main() -> None:
    for package, pinned in PINS.items():
        found = importlib.metadata.version(package).split("+")[0]
        if found != pinned:
            raise SystemExit(f"{package} is {found}, expected {pinned}")
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--check"]:
        return check_all(str(pathlib.Path(sys.argv[2]).resolve()))
    x, y = data()
    for name, (options, lora) in CASES.items():
        folder = HERE / name
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "data.npz", x=x, y=y)
        model = get_peft_model(llama(), LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **options))
        save_file(start_of(model), folder / "start.safetensors", metadata={"format": "pt"})
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


if __name__ == "__main__":
    main()
