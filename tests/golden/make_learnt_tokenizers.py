#!/usr/bin/env python3
"""Makes learnt_tokenizers.json: what the library `tokenizers` learns from texts.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python tests/golden/make_learnt_tokenizers.py

A case has the size that was asked for, the texts (a list of them, a file of this folder, or numbers
of the random texts of tokenizers/README.md), the size that was reached, and the SHA-256 of the file
that the library saves.
"""
import hashlib
import json
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import make_tokenizers as golden

HERE = pathlib.Path(__file__).resolve().parent
RUNS = [character * length + "b" * (length % 3) for character in "=a " for length in range(1, 40)]
CASES = [
    {"asked": 257, "texts": ["nothing is learnt"]},
    {"asked": 5000, "texts": []},
    {"asked": 5000, "texts": ["each pair comes once"]},
    {"asked": 262, "texts": ["ab cd ab cd ef ef gh gh ij ij kl kl", "xy\"\\ xy\"\\"]},  # equal counts
    {"asked": 400, "texts": RUNS},  # tokens that overlap themselves
    {"asked": 5000, "texts": ["'s 't 're 've 'm 'll 'd 'S", "a<|endoftext|>b<|endoftext|>c"] * 2},
    {"asked": 1000, "file": "records.jsonl"},
    {"asked": 700, "file": "chats.json"},
    {"asked": 300, "first": 0, "count": 100},
    {"asked": 1000, "first": 0, "count": 2000},
    {"asked": 3000, "first": 5000, "count": 4000},
    {"asked": 100000, "first": 20000, "count": 1000},
]


def new_tokenizer():
    """What `learn` trains: GPT-2's steps around an empty model."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def learn(texts, size):
    tokenizer = new_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def texts_of(case):
    if "texts" in case:
        return case["texts"]
    if "file" in case:
        return [(HERE / case["file"]).read_text()]
    lists = golden.alphabets([])
    numbers = range(case["first"], case["first"] + case["count"])
    return [golden.text_of(golden.random_text(number, lists)) for number in numbers]


def main():
    rows = []
    for case in CASES:
        tokenizer = learn(texts_of(case), case["asked"])
        saved = tokenizer.to_str(pretty=True).encode()
        rows.append(case | {"size": tokenizer.get_vocab_size(), "sha256": hashlib.sha256(saved).hexdigest()})
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (HERE / "learnt_tokenizers.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
