#!/usr/bin/env python3
"""Makes generate.json: the tokens with which transformers' `generate` goes on, greedily.

    venv/bin/python tests/golden/make_generate.py    # torch and transformers, as for make_golden.py

For `model`, each of `families/` and each of `pairs/` it has `prompts` of several lengths up to the
positions of the model (of an encoder-decoder: sources), `max_new_tokens`, which goes beyond the
positions of a model that has some, and `cases`: `options` and, by prompt, the new tokens. The model
runs in float64, a prompt at a time, with its cache; without it the tokens are the same. A text ends
behind the token that takes it past the last position. Null stands for a text of which a token leads
by less than 1e-5 only. `reviews` has texts for `choices/t5`, with the tokens that follow them.
"""
import json
import pathlib
import random
import warnings

import tokenizers
import torch
import transformers
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

import make_families

HERE = pathlib.Path(__file__).resolve().parent
LENGTHS = (1, 2, 5, 8, 16, 17, 31, 64)
SOURCES = (1, 2, 3, 7, 12, 20, 33)
PAIR_TOKENS = 24
LEAD = 1e-5
REVIEWS = ("Is this review positive or negative? Review: this is the best cast iron skillet you "
           "will ever buy",
           "Is this review positive or negative? Review: this is the worst restaurant ever")


def load(folder):
    if json.loads((folder / "config.json").read_text())["model_type"] != "t5":
        return make_families.fresh(folder, torch.float64)
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).to(torch.float64).eval()


def positions_of(config):
    return config.n_positions if config.model_type == "gpt2" else config.max_position_embeddings


def leads(scores):
    best = scores[0].topk(2).values
    return (best[0] - best[1]).item() >= LEAD


def complete(model, prompt, most, options):
    """The new tokens, or None if a near-tie decides one of them."""
    settings = transformers.GenerationConfig(
        **{"do_sample": False, "max_new_tokens": most, "pad_token_id": 0, "eos_token_id": None,
           "decoder_start_token_id": getattr(model.config, "decoder_start_token_id", None)}
        | options)
    ids = torch.tensor([prompt])
    found = []
    for cached in (True, False):
        settings.use_cache = cached
        more = {}
        if cached and model.config.is_encoder_decoder:  # whose own has the encoder's depth
            more["cache"] = EncoderDecoderCache(DynamicCache(), DynamicCache())
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings,
                             output_scores=True, return_dict_in_generate=True, **more)
        if not all(leads(scores) for scores in out.scores):
            return None
        found.append(out.sequences[0, 1 if model.config.is_encoder_decoder else len(prompt):])
    assert found[0].tolist() == found[1].tolist(), (model.name_or_path, len(prompt), options)
    return found[0].tolist()


def make(name):
    model = load(HERE / name)
    model.generation_config = transformers.GenerationConfig()
    pairs = model.config.is_encoder_decoder
    draw = random.Random(name)
    positions = None if pairs else positions_of(model.config)
    lengths = SOURCES if pairs else sorted({min(length, positions) for length in LENGTHS})
    prompts = [[draw.randrange(model.config.vocab_size) for _ in range(length)]
               for length in lengths]

    def complete_all(options):
        return [complete(model, prompt, PAIR_TOKENS if pairs else positions + 1 - len(prompt),
                         options) for prompt in prompts]

    plain = complete_all({})
    # Tokens that end some texts soon and others late, or never.
    ends = {row[at] for row, at in zip(plain, (9, 4, 1, 6)) if row and len(row) > at}
    ends = sorted(ends)[:3] + ([model.config.eos_token_id] if pairs else [])
    cases = [({}, plain)]
    for options in ({"repetition_penalty": 1.3}, {"eos_token_id": ends},
                    {"repetition_penalty": 1.15, "min_new_tokens": 7, "eos_token_id": ends}):
        cases.append((options, complete_all(options)))
    rows = sum(len(texts) for _, texts in cases)
    missing = sum(texts.count(None) for _, texts in cases)
    print(f"{name}: {rows} texts, {missing} of them left out")
    return {"prompts": prompts, "max_new_tokens": PAIR_TOKENS if pairs else positions + 9,
            "cases": [{"options": options, "texts": texts} for options, texts in cases]}


def make_reviews():
    model = load(HERE / "choices/t5")
    model.generation_config = transformers.GenerationConfig()
    tokenizer = tokenizers.Tokenizer.from_file(str(HERE / "tokenizers/t5/tokenizer.json"))
    ends = {"eos_token_id": [model.config.eos_token_id]}
    return {"texts": REVIEWS, "completions": [
        complete(model, tokenizer.encode(text).ids, 20, ends) for text in REVIEWS]}


def compact(value):
    """JSON with a line per list of numbers."""
    dump = json.dumps
    if isinstance(value, dict):
        inner = ",\n".join(f"{dump(key)}: {compact(item)}" for key, item in value.items())
        return "{" + inner + "}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (list, dict)) for item in value):
        return "[" + ",\n".join(compact(item) for item in value) + "]"
    return dump(value, separators=(",", ":"))


def main():
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Unfeasible length constraints")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    names = ["model"] + [f"{kind}/{path.name}" for kind in ("families", "pairs")
                         for path in sorted((HERE / kind).iterdir()) if path.is_dir()]
    made = {name: make(name) for name in names} | {"reviews": make_reviews()}
    (HERE / "generate.json").write_text(compact(made) + "\n")


if __name__ == "__main__":
    main()
