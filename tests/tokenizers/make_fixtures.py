#!/usr/bin/env python3
"""Writes fixtures.json: small tokenizers that the package tokenizers 0.23.3 trained, and the ids it gives to texts.

    PYTHONPATH=third_party/tokenizers python3 tests/tokenizers/make_fixtures.py
"""

import json
import pathlib
import random

import tokenizers as t

HERE = pathlib.Path(__file__).resolve().parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CORPUS = ["the cat sat on the mat, and the hat was on the cat. It's 2024; they'll see 1234567 cats\n\n  indeed.\n" * 4,
          "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Größe, Köln, Straße.\n" * 4,
          "int main() {\n    return x[i] + 0xff;  // it isn't\n}\n" * 4, "日本語のテキスト、中文文本。日本語のテキスト\n" * 3]
TEXTS = ["", " ", "the cat", " the  cat \n\n sat\t", "It's THE'S they'll WE'VE 'ſ", "12345 1234 ½ Ⅷ ٣", "Zwölf Größe",
         "Zwo\u0308lf A\u030a \u1100\u1161\u11a8", "日本語 テキスト😀👩‍🚀", "x[i]+0xff;  // it isn't\r\n\r\n  }", "a\u00a0b\u3000c\u180ed\u2028e\x85f",
         "▁ ▁▁the", "   the", "the <|endoftext|> cat<|endoftext|>", "<s>the</s> <unk>", "cat <special>  cat<keep>can cannot can.",
         "CAN can_ can", "\ufffd the", "İstanbul Ǆ", "the" * 40, "ab " * 60, "\x00\x01"]
# Bytes that are no UTF-8, and how Python reads them with errors="replace".
BROKEN = [b"\xff", b"a\xe2\x82", b"\xe2\x82z", b"\xf0\x9f\x98\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
          b"\x80", b"\xf0\x9f\x98\x80\xf0\x9f", b"\xe0\x9f\x80", b"\xf1\x80\x80"]


def byte_pairs(pre_tokenizer, normalizer=None, **model):
    tokenizer = t.Tokenizer(t.models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    return tokenizer


def train(tokenizer, special, size, alphabet=()):
    tokenizer.train_from_iterator(CORPUS, t.trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False, min_frequency=2, initial_alphabet=list(alphabet)))
    return tokenizer


def gpt2():
    tokenizer = train(byte_pairs(t.pre_tokenizers.ByteLevel(add_prefix_space=False)), ["<|endoftext|>"], 330,
                      t.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.decoder = t.decoders.ByteLevel()
    return tokenizer


def roberta_like():
    tokenizer = train(byte_pairs(t.pre_tokenizers.ByteLevel(add_prefix_space=True)), ["<s>", "</s>"], 320,
                      t.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.decoder = t.decoders.ByteLevel()
    tokenizer.post_processor = t.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    return tokenizer


def llama3():
    tokenizer = train(byte_pairs(t.pre_tokenizers.Sequence(
        [t.pre_tokenizers.Split(t.Regex(LLAMA3), "isolated"), t.pre_tokenizers.ByteLevel(False, use_regex=False)]),
        t.normalizers.NFC(), ignore_merges=True), ["<|endoftext|>"], 330, t.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.decoder = t.decoders.ByteLevel()
    tokenizer.add_tokens([t.AddedToken("<special>", lstrip=True, rstrip=True), t.AddedToken("<keep>", normalized=True),
                          t.AddedToken("can", single_word=True)])
    return tokenizer


def llama2(form):
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokenizer = train(byte_pairs(t.pre_tokenizers.Metaspace(prepend_scheme="first" if form == "first" else "always"),
                                 unk_token="<unk>", fuse_unk=True, byte_fallback=True), special, 400)
    tokenizer.decoder = t.decoders.Sequence([t.decoders.Replace("▁", " "), t.decoders.ByteFallback(), t.decoders.Fuse(),
                                             t.decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = t.processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                               special_tokens=[("<s>", 1)])
    made = json.loads(tokenizer.to_str())
    made["added_tokens"] = made["added_tokens"][:3]
    if form == "whole":  # as Llama 2's own file: no division
        made["pre_tokenizer"] = None
        made["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    if form == "first":  # unknown characters are one token
        made["model"]["byte_fallback"] = False
        made["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    return t.Tokenizer.from_str(json.dumps(made))


def words():
    tokenizer = t.Tokenizer(t.models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = t.normalizers.Lowercase()
    tokenizer.pre_tokenizer = t.pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(CORPUS, t.trainers.WordLevelTrainer(vocab_size=40, special_tokens=["<pad>", "<unk>"],
                                                                      show_progress=False))
    return tokenizer


def beginnings():
    """Metaspace, which is put before what stands at the beginning of the original text, behind normalizers."""
    draw = random.Random(0)
    vocabulary = {token: i for i, token in enumerate(["<unk>", "▁", *"abhxé\u0301i\u0307"])}
    cases = []
    for _ in range(160):
        steps, text = [], ""
        for _ in range(draw.randrange(1, 4)):
            if draw.random() < 0.7:
                pattern = draw.choice(["a", "ab", "é", "aa", "h", "x", "ha"])
                steps.append(t.normalizers.Replace(pattern, draw.choice(["", "", "x", "xa", "h"])))
                text = text or draw.choice([pattern, "b"])
            else:
                steps.append(draw.choice([t.normalizers.Prepend("h"), t.normalizers.Lowercase(), t.normalizers.NFC()]))
        tokenizer = byte_pairs(t.pre_tokenizers.Metaspace(prepend_scheme="first"), t.normalizers.Sequence(steps),
                               vocab=vocabulary, merges=[], unk_token="<unk>")
        text += "".join(draw.choice("aabbéAe\u0301İ h") for _ in range(draw.randrange(1, 7)))
        cases.append({"normalizer": json.loads(tokenizer.to_str())["normalizer"], "text": text,
                      "ids": tokenizer.encode(text).ids})
    return {"file": json.loads(tokenizer.to_str()), "cases": cases}


def main():
    styles = {"gpt2": gpt2(), "roberta_like": roberta_like(), "llama3": llama3(), "llama2": llama2("whole"),
              "llama2_pieces": llama2("pieces"), "llama2_first": llama2("first"), "words": words()}
    fixtures = {"version": t.__version__, "corpus": CORPUS, "broken": [], "beginnings": beginnings(), "tokenizers": {}}
    for raw in BROKEN:
        fixtures["broken"].append({"bytes": list(raw), "text": raw.decode(errors="replace")})
    for name, tokenizer in styles.items():
        cases = []
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            cases.append({"text": text, "ids": ids, "plain": tokenizer.encode(text, add_special_tokens=False).ids,
                          "decoded": tokenizer.decode(ids),
                          "with_special": tokenizer.decode(ids, skip_special_tokens=False)})
        fixtures["tokenizers"][name] = {"file": json.loads(tokenizer.to_str()), "cases": cases}
    (HERE / "fixtures.json").write_text(json.dumps(fixtures, ensure_ascii=True, separators=(",", ":")) + "\n")


main()
