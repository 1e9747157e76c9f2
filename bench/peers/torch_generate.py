"""Greedy continuation with the transformer of configs/gpt.yaml in PyTorch, with keys and values in memory.

    torch_generate.py TOKENS [THREADS]

Prints the seconds of a token. A token attends to the positions before it by a slice of what is in memory, without a mask.
Past the 128 positions the last half of the context is computed anew, as pmaptrain does.
"""

import sys
import time

import torch
from torch_gpt import POSITIONS, Transformer

PROMPT = 17


@torch.inference_mode()
def generate(model, prompt, count):
    context, known = list(prompt), 0
    for _ in range(count):
        if len(context) > POSITIONS:
            context, known = context[POSITIONS // 2 :], 0
        logits = model(torch.tensor([context[known:]]), known)
        known = len(context)
        context.append(int(logits[0, -1].argmax()))
    return context


def main():
    count = int(sys.argv[1])
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    model, prompt = Transformer().eval(), range(PROMPT)
    generate(model, prompt, 20)
    begin = time.perf_counter()
    generate(model, prompt, count)
    print((time.perf_counter() - begin) / count)


if __name__ == "__main__":
    main()
