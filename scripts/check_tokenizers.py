#!/usr/bin/env python3
"""Compares the ids of tokenizers with those of the package `tokenizers`, on texts of many languages, code, emoji and
broken UTF-8 that are made from a seed.

    scripts/check_tokenizers.py PROGRAM [MEGABYTES]     default: 10

Needs third_party/tokenizers (scripts/bootstrap --dev); it says so where that is missing. For each style, tokenizers that
the package trained and that the program trained are read by both; the vocabularies of both trainers are compared as well. From a megabyte on it also
says how much faster the program encodes, from the start of its process to its end, than encode_batch_fast in one thread.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "third_party" / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")

# Ranges of code points: Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, Georgian, Hangul, kana, Han, symbols.
SCRIPTS = [(0x61, 0x7a), (0xc0, 0x17f), (0x370, 0x3ff), (0x400, 0x4ff), (0x5d0, 0x5ea), (0x620, 0x64a), (0x904, 0x94d),
           (0xe01, 0xe4e), (0x10d0, 0x10f0), (0xac00, 0xd7a3), (0x3041, 0x30fe), (0x4e00, 0x9fff), (0x2190, 0x2bff)]
EMOJI = ["😀", "👩‍🚀", "🇩🇪", "👍🏽", "❤️", "🏳️‍🌈", "e\u0301", "ﬁ", "Å", "\u1100\u1161\u11a8", "ſ", "'ſ", "İ", "ǅ"]
SPACES = [" ", " ", " ", " ", "  ", "\n", "\n\n", "\t", "\r\n", "    ", " \n ", "\u00a0", "\u3000", "\u180e", "\u200b",
          "\u2028", "\x85", "\x0b", "\x1c"]
CODE = ["for (int i = 0; i < n; ++i) {\n    sum += x[i];\n}\n", "def f(x):\n\treturn x**2  # it's\n", "<|endoftext|>",
        "<s>", "</s>", "x <special> y", "  <keep>  ", "can't WE'LL they'd I'M '", "3.14159 1,234,567 0xff 12345678 ½ Ⅷ",
        "https://example.org/?q=a&b=%20", "\\frac{a}{b}", "...!!!???", "$x_1$", "▁ ▁▁a", "_ __init__ _"]
BROKEN = [b"\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80\x80", b"\xf4\x90\x80\x80"]


def text_of(seed, size):
    """Bytes of words from a vocabulary of each script, so that pairs recur."""
    draw = random.Random(seed)
    words = []
    for low, high in SCRIPTS:
        words += ["".join(chr(draw.randint(low, high)) for _ in range(draw.randint(1, 8))) for _ in range(300)]
    words += [w.capitalize() for w in words[:300]] + [w.upper() for w in words[:100]]
    weights = [1 / (1 + i % 400) for i in range(len(words))]
    out = bytearray()
    while len(out) < size:
        for word in draw.choices(words, weights, k=200):
            kind = draw.random()
            if kind < 0.93:
                out += word.encode()
            elif kind < 0.95:
                out += str(draw.randint(0, 10 ** draw.randint(1, 9))).encode()
            elif kind < 0.97:
                out += draw.choice(EMOJI).encode()
            elif kind < 0.995:
                out += draw.choice(CODE).encode()
            else:
                out += draw.choice(BROKEN)
            if draw.random() < 0.15:
                out += draw.choice([",", ".", "!", "'s", "-", ")", "\"", "؟", "。"]).encode()
            if draw.random() < 0.9:
                out += draw.choice(SPACES).encode()
    return bytes(out)


def trained_by_package(style, files, size):
    import tokenizers as t

    llama2 = style.startswith("llama2")
    tokenizer = t.Tokenizer(t.models.BPE(**(dict(unk_token="<unk>", fuse_unk=True, byte_fallback=True) if llama2 else {})))
    if style == "gpt2":
        tokenizer.pre_tokenizer = t.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = t.decoders.ByteLevel()
    elif style == "llama3":
        tokenizer.normalizer = t.normalizers.NFC()
        tokenizer.pre_tokenizer = t.pre_tokenizers.Sequence(
            [t.pre_tokenizers.Split(t.Regex(LLAMA3), "isolated"), t.pre_tokenizers.ByteLevel(False, use_regex=False)])
        tokenizer.decoder = t.decoders.ByteLevel()
    else:
        tokenizer.pre_tokenizer = t.pre_tokenizers.Metaspace(prepend_scheme="first" if style == "llama2-first" else "always")
        tokenizer.decoder = t.decoders.Sequence([t.decoders.Replace("▁", " "), t.decoders.ByteFallback(),
                                                 t.decoders.Fuse(), t.decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] if llama2 else ["<|endoftext|>"]
    alphabet = dict(limit_alphabet=2000) if llama2 else dict(initial_alphabet=t.pre_tokenizers.ByteLevel.alphabet())
    trainer = t.trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, min_frequency=2,
                                    **alphabet)
    texts = [pathlib.Path(f).read_bytes().decode(errors="replace") for f in files]
    tokenizer.train_from_iterator(texts, trainer)
    if llama2:
        tokenizer.post_processor = t.processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                                   special_tokens=[("<s>", 1)])
        # As the file of Llama 2: changes of the text, and no division. Bytes are no special tokens there.
        made = json.loads(tokenizer.to_str())
        made["added_tokens"] = made["added_tokens"][:3]
        if style == "llama2":
            made["pre_tokenizer"] = None
            made["normalizer"] = {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
        tokenizer = t.Tokenizer.from_str(json.dumps(made))
    if style == "llama3":
        tokenizer.add_tokens([t.AddedToken("<special>", lstrip=True, rstrip=True), t.AddedToken("<keep>", normalized=True),
                              t.AddedToken("can", single_word=True)])
    return tokenizer


def trained_by_program(program, style, files, size, path):
    subprocess.run([program, "tokenize", "train", *files, "--size", str(size), "--style", style, "--output", path,
                    "--overwrite"], check=True, stdout=subprocess.DEVNULL)


def ids_of_program(program, tokenizer, file, output):
    began = time.time()
    subprocess.run([program, "tokenize", "encode", file, "--tokenizer", tokenizer, "--output", output, "--overwrite"],
                   check=True, stdout=subprocess.DEVNULL)
    raw = pathlib.Path(output).read_bytes()
    return [int.from_bytes(raw[i:i + 2], "little") for i in range(0, len(raw), 2)], time.time() - began


def first_difference(ours, theirs, tokenizer):
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            show = lambda ids: [tokenizer.id_to_token(x) for x in ids[max(i - 3, 0):i + 5]]
            return f"id {i} is {a}, in the package {b}: {show(ours)} and {show(theirs)}"
    return f"{len(ours)} ids, in the package {len(theirs)}"


def compare(program, tokenizer_file, test_file, folder):
    import tokenizers as t

    tokenizer = t.Tokenizer.from_file(tokenizer_file)
    text = pathlib.Path(test_file).read_bytes().decode(errors="replace")
    began = time.time()
    theirs = tokenizer.encode_batch_fast([text])[0].ids
    package_seconds = time.time() - began
    ours, seconds = ids_of_program(program, tokenizer_file, test_file, os.path.join(folder, "ids.bin"))
    if ours != theirs:
        return first_difference(ours, theirs, tokenizer), ""
    decoded = subprocess.run([program, "tokenize", "decode", os.path.join(folder, "ids.bin"), "--tokenizer",
                              tokenizer_file, "--tokens", "uint16"], check=True, capture_output=True).stdout.decode()
    if decoded != tokenizer.decode(theirs):
        return "the decoded text is another one", ""
    return None, f", {package_seconds / seconds:.1f} x its speed" if len(text) >= 500_000 else ""


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program, size = os.path.abspath(sys.argv[1]), int(float(sys.argv[2] if len(sys.argv) > 2 else 10) * 1e6)
    if not PACKAGE.is_dir():
        print("third_party/tokenizers is missing (scripts/bootstrap --dev): skipped")
        return 77
    sys.path.insert(0, str(PACKAGE))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        train, test = os.path.join(folder, "train.txt"), os.path.join(folder, "test.txt")
        pathlib.Path(train).write_bytes(text_of(1, min(size, 2_000_000)))
        pathlib.Path(test).write_bytes(text_of(2, size))
        for style in ("gpt2", "llama3", "llama2", "llama2-first"):
            file = os.path.join(folder, f"{style}.json")
            trained_by_package(style, [train], 4096).save(file)
            problem, speed = compare(program, file, test, folder)
            print(f"{style}, trained by the package: {problem or 'equal'}{speed}")
            problems += problem is not None
        for style in ("gpt2", "llama3", "llama2"):
            file = os.path.join(folder, f"own-{style}.json")
            trained_by_program(program, style, [train], 4096, file)
            problem, speed = compare(program, file, test, folder)
            print(f"{style}, trained by the program: {problem or 'equal'}{speed}")
            problems += problem is not None
        # The vocabulary of GPT-2's style does not depend on who trains it.
        own = json.loads(pathlib.Path(folder, "own-gpt2.json").read_text())["model"]
        theirs = json.loads(pathlib.Path(folder, "gpt2.json").read_text())["model"]
        same = own["vocab"] == theirs["vocab"] and [list(m) for m in own["merges"]] == [
            m if isinstance(m, list) else m.split(" ") for m in theirs["merges"]]
        print(f"gpt2, the vocabularies of both trainers: {'equal' if same else 'differ'}")
        problems += not same
    return 1 if problems else 0


sys.exit(main())
