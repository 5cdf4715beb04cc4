#!/usr/bin/env python3
"""Makes choices/ beside this script: the likelihoods of choices, and losses of a text, by transformers.

    venv/bin/python tests/golden/make_questions.py    # torch and transformers, as for make_golden.py

Every folder holds a toy model and choices.json: `questions` with the tokens and the log-likelihood of each
choice, as lm-evaluation-harness asks for it (written anew here from its rules), in float64, and for models
without a source the `text`: mean loss, labels and bits per byte of text.txt in blocks of `block_size`.
The tokenizers are those of tokenizers/.
"""
import json
import math
import pathlib
import random
import shutil

import tokenizers
import torch
import transformers

import make_pairs as pairs

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "choices"
POSITIONS, BLOCK, START = 48, 24, 0

MODELS = {
    "gpt2": ("gpt2", lambda size: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=size, n_embd=16, n_layer=2, n_head=2, n_positions=POSITIONS, attn_pdrop=0,
        embd_pdrop=0, resid_pdrop=0, bos_token_id=0, eos_token_id=0))),
    "llama": ("llama2", lambda size: transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=size, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=POSITIONS,
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2))),
    "t5": ("t5", lambda size: transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=size, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_decoder_layers=2,
        num_heads=2, dropout_rate=0, decoder_start_token_id=START, pad_token_id=0,
        eos_token_id=1))),
}
WORDS = ("the launcher starts one agent on each host and every rank reads its own shard of the "
         "weights before a step begins caf\u00e9 \u2260 \u4e2d\u6587 options checkpoint memory").split()


def sentence(draw, least, most):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def make_questions():
    draw = random.Random(3)
    questions = []
    for index in range(24):
        query = sentence(draw, 2, 9).capitalize()
        choices = [" " + sentence(draw, 3, 4) for _ in range(draw.randint(2, 5))]
        if index % 4 == 1:  # white space that belongs to the choice
            query += draw.choice([" ", "  ", "\n", "\u00a0"])
            choices = [choice.strip() for choice in choices]
        if index % 4 == 2:  # a choice goes on with a word
            choices[0] = "s" + choices[0]
        questions.append({"query": query, "choices": choices})
    questions[5]["query"] = sentence(draw, 60, 60)  # longer than the positions
    questions[8]["query"] = ""
    return questions


def scored(logits, labels):
    sums = torch.log_softmax(logits, -1).gather(-1, torch.tensor(labels)[:, None]).sum()
    return float(f"{sums.item():.10g}"), labels


def likelihood(model, encode, question, choice):
    """As TemplateLM._encode_pair and HFLM._loglikelihood_tokens."""
    query = question["query"]
    spaces = len(query) - len(query.rstrip())
    if spaces:
        query, choice = query[:-spaces], query[-spaces:] + choice
    if model.config.is_encoder_decoder:
        labels = encode(choice, False)
        logits = model(input_ids=torch.tensor([encode(query, True)]),
                       decoder_input_ids=torch.tensor([[START] + labels[:-1]])).logits[0]
        return scored(logits, labels)
    before = encode(query, True)
    whole = encode(query + choice, True)
    if not before:
        before, whole = [model.config.bos_token_id], [model.config.bos_token_id] + whole
    labels = whole[len(before):]
    inputs = whole[-(POSITIONS + 1):][:-1]
    logits = model(input_ids=torch.tensor([inputs])).logits[0, -len(labels):]
    return scored(logits, labels)


def bytes_of(token):
    """Of a token of GPT-2's alphabet, or of SentencePiece's with byte fallback."""
    if token.startswith("<0x"):
        return 1
    if "\u2581" in token:
        return len(token.replace("\u2581", " ").encode())
    return None


def evaluate_text(model, tokenizer, is_byte_level, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    losses, bits_bytes = [], 0
    for first in range(0, len(ids) - BLOCK, BLOCK):
        block = torch.tensor(ids[first:first + BLOCK + 1])
        logits = model(input_ids=block[None, :-1]).logits[0]
        losses += torch.nn.functional.cross_entropy(logits, block[1:], reduction="none").tolist()
        for token in map(tokenizer.id_to_token, block[1:].tolist()):
            bits_bytes += len(token) if is_byte_level else bytes_of(token) or len(token.encode())
    return {"block_size": BLOCK, "eval_loss": sum(losses) / len(losses), "tokens": len(losses),
            "bits_per_byte": sum(losses) / math.log(2) / bits_bytes}


def make_model(make, size, folder):
    """Wide weights, so that the likelihoods of choices differ."""
    model = make(size).float()
    draw = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            values = torch.randn(parameter.shape, generator=draw)
            parameter.copy_(values * 0.4 if parameter.dim() > 1 else 1 + values * 0.1)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def fresh(folder):
    if folder.name == "t5":
        return pairs.fresh(folder, torch.float64)
    kind = transformers.GPT2LMHeadModel if folder.name == "gpt2" else transformers.LlamaForCausalLM
    model = kind.from_pretrained(folder, attn_implementation="eager").double().eval()
    for module in model.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = pairs.types.MethodType(pairs.norm_in_double, module)
    return model


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    draw = random.Random(4)
    text = "\n".join(sentence(draw, 5, 14).capitalize() + "." for _ in range(40)) + "\n"
    (FOLDER / "text.txt").write_text(text)
    for name, (files, make) in MODELS.items():
        tokenizer = tokenizers.Tokenizer.from_file(str(HERE / "tokenizers" / files / "tokenizer.json"))
        folder = FOLDER / name
        make_model(make, tokenizer.get_vocab_size(), folder)
        model = fresh(folder)

        def encode(text, special):
            return tokenizer.encode(text, add_special_tokens=special).ids

        questions = make_questions()
        if name == "t5":
            questions[8]["query"] = "Memory"  # a source is never empty
        with torch.no_grad():
            for question in questions:
                question["log_likelihoods"], question["labels"] = zip(*(
                    likelihood(model, encode, question, choice) for choice in question["choices"]))
            made = {"tokenizer": files, "questions": questions}
            if name != "t5":
                made["text"] = evaluate_text(model, tokenizer, name == "gpt2", text)
        lines = ",\n  ".join(json.dumps(question) for question in questions)
        made["questions"] = "QUESTIONS"
        written = json.dumps(made, indent=1).replace('"QUESTIONS"', f"[\n  {lines}\n ]")
        (folder / "choices.json").write_text(written + "\n")
        gaps = []
        for question in questions:
            sums = question["log_likelihoods"]
            means = [a / len(b.encode()) for a, b in zip(sums, question["choices"])]
            gaps += [sorted(values)[-1] - sorted(values)[-2] for values in (sums, means)]
        print(f"{name}: the likeliest choice leads by {min(gaps):.2g} at least, {made.get('text')}")
        assert min(gaps) > 1e-3


if __name__ == "__main__":
    main()
