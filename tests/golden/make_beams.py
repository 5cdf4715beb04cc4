#!/usr/bin/env python3
"""Makes beams.json: what transformers' beam search makes of prompts for the golden models.

    venv/bin/python tests/golden/make_beams.py    # torch and transformers, as for make_families.py

A row has `model` (a folder here), `options` (without those at their defaults), `max_new_tokens` and
`prompts`: for each `ids` (of an encoder-decoder, those of its source) and the texts that follow, the
best first, as `tokens` and `score`. The models run in float64 and without a cache. transformers
itself sums scores in float32. Prompts are left out for which two scores that are compared differ by
less than MARGIN.
"""
import json
import pathlib
import random

import torch
import transformers

import make_families as families
import make_pairs as pairs

HERE = pathlib.Path(__file__).resolve().parent
MARGIN = 5e-5
NONE = -1e8  # scores below are those of beams that do not exist
PROMPTS = 3
MODELS = ["model", "families/llama3", "families/mistral", "families/phi3_longrope", "pairs/t5",
          "pairs/t5_gated"]
DEFAULTS = {"length_penalty": 1.0, "early_stopping": False, "repetition_penalty": 1.0,
            "min_new_tokens": 0, "num_return_sequences": 1, "eos_token_id": []}


class Watch:
    """Tells whether a beam search has compared scores that rounding may turn."""

    def __init__(self, model):
        self.model = model
        self.is_close = False
        for name in ("_get_top_k_continuations", "_update_finished_beams",
                     "_check_early_stop_heuristic"):
            self.wrap(model, name, getattr(model, name), getattr(self, name))

    @staticmethod
    def wrap(model, name, original, look):
        def call(**kwargs):
            look(original, kwargs)
            return original(**kwargs)
        setattr(model, name, call)

    def compare(self, scores):
        scores = scores[scores > NONE].sort().values
        self.is_close |= bool((scores.diff() < MARGIN).any())

    def _get_top_k_continuations(self, _, given):
        scores = given["accumulated_log_probs"][0]
        self.compare(scores.topk(min(given["beams_to_keep"] + 1, len(scores))).values)

    def _update_finished_beams(self, _, given):
        length = given["cur_len"] + 1 - given["decoder_prompt_len"]
        ended = given["next_token_hits_stopping_criteria"] & given["top_num_beam_mask"]
        new = given["topk_log_probs"][ended] / length**given["length_penalty"]
        self.compare(torch.cat((given["beam_scores"][0], new)))

    def _check_early_stop_heuristic(self, original, given):
        scores = given["running_beam_scores"]
        answers = {bool(original(**given | {"running_beam_scores": scores + step}))
                   for step in (-MARGIN, 0.0, MARGIN)}
        self.is_close |= len(answers) > 1


def load(name):
    folder = HERE / name
    model = (pairs if name.startswith("pairs/") else families).fresh(folder, torch.float64)
    model.generation_config = transformers.GenerationConfig(
        pad_token_id=0, decoder_start_token_id=getattr(model.config, "decoder_start_token_id", None))
    return model


def search(watch, ids, options, new_tokens):
    """The texts, or None if rounding may change them."""
    model, ends = watch.model, options.get("eos_token_id", [])
    watch.is_close = False
    with torch.no_grad():
        found = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.int64),
            use_cache=False, do_sample=False, max_new_tokens=new_tokens, output_scores=True,
            return_dict_in_generate=True, **options | {"eos_token_id": ends or None})
    if watch.is_close:
        return None
    texts = []
    given = 1 if model.config.is_encoder_decoder else len(ids)
    for sequence, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
        tokens = sequence[given:given + new_tokens]
        length = next((i + 1 for i, token in enumerate(tokens) if token in ends), new_tokens)
        texts.append({"tokens": tokens[:length], "score": float(f"{score:.8g}")})
    return texts


def draw_options(draw, ends):
    beams = draw.choice((2, 3, 5))
    options = {"num_beams": beams,
               "length_penalty": draw.choice((0.5, 1.0, 1.0, 2.0, 0.0, -1.0)),
               "early_stopping": draw.choice((False, True, "never")),
               "num_return_sequences": draw.choice((1, 2, beams)),
               "repetition_penalty": draw.choice((1.0, 1.0, 1.3, 0.8)),
               "min_new_tokens": draw.choice((0, 0, 3)),
               "eos_token_id": draw.sample(ends, draw.choice((0, 1, 3, 3)))}
    return {key: value for key, value in options.items() if DEFAULTS.get(key) != value}


def draw_prompts(draw, model):
    return [[draw.randrange(2, model.config.vocab_size) for _ in range(draw.randint(3, 14))]
            for _ in range(PROMPTS)]


def likely_tokens(watch, draw):
    """Tokens that beams often have, so that they end texts of many lengths."""
    counts = {}
    for ids in [prompt for _ in range(4) for prompt in draw_prompts(draw, watch.model)]:
        for text in search(watch, ids, {"num_beams": 3, "num_return_sequences": 3}, 10) or []:
            for token in text["tokens"]:
                counts[token] = counts.get(token, 0) + 1
    return sorted(counts, key=lambda token: (-counts[token], token))[:8]


def make_rows(name, draw):
    watch = Watch(load(name))
    ends = likely_tokens(watch, draw)
    rows = []
    for _ in range(20):
        options, new_tokens = draw_options(draw, ends), draw.choice((6, 12, 16))
        prompts = [{"ids": ids, "texts": search(watch, ids, options, new_tokens)}
                   for ids in draw_prompts(draw, watch.model)]
        prompts = [prompt for prompt in prompts if prompt["texts"] is not None]
        if prompts:
            rows.append({"model": name, "options": options, "max_new_tokens": new_tokens,
                         "prompts": prompts})
    texts = [text for row in rows for prompt in row["prompts"] for text in prompt["texts"]]
    short = sum(text["tokens"][-1] in ends for text in texts)
    print(f"{name}: {len(rows)} rows, {sum(len(row['prompts']) for row in rows)} prompts, "
          f"{len(texts)} texts, {short} end in a likely token")
    return rows


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    rows = [row for name in MODELS for row in make_rows(name, random.Random(name))]
    lines = ",\n".join(" " + json.dumps(row) for row in rows)
    (HERE / "beams.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
