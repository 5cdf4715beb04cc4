#!/usr/bin/env python3
"""Makes choices.json: which tokens transformers' `generate` draws from, and how likely each is.

    python3 -m venv venv && venv/bin/pip install torch transformers==5.24.0
    venv/bin/python tests/golden/make_choices.py

The logits processors are those that `generate` itself makes of the options, in its order. A case
has `options` (without those at their defaults), `logits`, the tokens so far (`context`), how many
of them are new (`new_tokens`), and `candidates`: the tokens that are left, [id, probability], the
likeliest first and lower ids first among equals. Greedy cases have the one token that `generate`
takes. torch does not say which of several equal tokens top_p removes, so no case depends on it, and
none on how probabilities that meet a threshold are rounded.
"""
import json
import pathlib
import random
import types

import torch
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.utils import GenerationMixin

HERE = pathlib.Path(__file__).resolve().parent
SLACK = 1e-4


class Model(GenerationMixin):
    config = types.SimpleNamespace(is_encoder_decoder=False)


def process(options, logits, context, new_tokens):
    """The scores of the tokens, -inf for those that are removed."""
    config = GenerationConfig(**{"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
                              | options)
    ends = options.get("eos_token_id")
    config._eos_token_tensor = None if ends is None else torch.tensor(ends)
    processors = Model()._get_logits_processor(
        config, input_ids_seq_length=len(context) - new_tokens,
        logits_processor=LogitsProcessorList())
    return processors(torch.tensor([context]), torch.tensor([logits], dtype=torch.float32))[0]


def is_certain(options, *row):
    """Whether nothing depends on the order of equal tokens or on rounding."""
    scores = process(options, *row)
    unlimited = process(options | {"top_p": 1.0}, *row)
    least = scores[scores > -torch.inf].min()
    if ((unlimited >= least) & (scores == -torch.inf)).any():
        return False
    for name in ("top_p", "min_p"):
        value = options.get(name)
        if value is None or value in (0.0, 1.0):
            continue
        for near in (value - SLACK, value + SLACK):
            other = process(options | {name: min(max(near, 0.0), 1.0)}, *row)
            if not torch.equal(other, scores):
                return False
    return True


def case(options, *row):
    scores = process(options, *row)
    if not options.get("do_sample", True):
        candidates = [[int(scores.argmax()), 1.0]]
    else:
        shares = torch.softmax(scores.double(), 0)
        left = [token for token in range(len(shares)) if scores[token] > -torch.inf]
        left.sort(key=lambda token: (-float(scores[token]), token))
        candidates = [[token, float(shares[token])] for token in left]
    logits, context, new_tokens = row
    return {"options": options, "logits": logits, "context": context, "new_tokens": new_tokens,
            "candidates": candidates}


def draw_row(draw, size):
    """Logits, of which many are equal in every second row, and a context with repeated tokens."""
    spread, digits = draw.choice([0.5, 2.0, 5.0]), draw.choice([3, 0])
    logits = [round(draw.gauss(0, spread), digits) + 0.0 for _ in range(size)]
    context = [draw.randrange(size) for _ in range(draw.randrange(1, 30))]
    return logits, context, draw.randrange(0, len(context))


def draw_options(draw, size):
    options = {}
    if draw.random() < 0.5:
        options["temperature"] = draw.choice([0.1, 0.6, 0.7, 1.3, 3.0])
    if draw.random() < 0.5:
        options["top_k"] = draw.choice([1, 2, 5, 20, size - 1, size, 1000])
    if draw.random() < 0.5:
        options["top_p"] = draw.choice([0.1, 0.5, 0.8, 0.9, 0.95, 0.999])
    if draw.random() < 0.3:
        options["min_p"] = draw.choice([0.02, 0.05, 0.1, 0.5])
    if draw.random() < 0.4:
        options["repetition_penalty"] = draw.choice([0.8, 1.05, 1.3, 2.0])
    if draw.random() < 0.4:
        options["min_new_tokens"] = draw.choice([1, 5, 100])
        options["eos_token_id"] = draw.sample(range(size + 3), draw.randrange(1, 4))
    return options


def all_cases(draw):
    everything = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.02,
                  "repetition_penalty": 1.2, "min_new_tokens": 30, "eos_token_id": [3, 5]}
    chosen = [{}, {"top_p": 0.0}, {"min_p": 1.0}, {"min_p": 0.0}, {"top_k": 1}, everything,
              {"do_sample": False}, {"do_sample": False, "repetition_penalty": 1.5},
              {"do_sample": False, "min_new_tokens": 100, "eos_token_id": list(range(15))}]
    for options in chosen * 2 + [None] * 60:
        while True:
            size = draw.choice([16, 21, 50, 64, 130])
            options_now = draw_options(draw, size) if options is None else options
            row = draw_row(draw, size)
            if is_certain(options_now, *row):
                break
        yield case(options_now, *row)


def main():
    lines = [json.dumps(each, separators=(",", ":")) for each in all_cases(random.Random(20261129))]
    (HERE / "choices.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
