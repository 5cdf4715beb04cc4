#!/usr/bin/env python3
"""Makes records.jsonl and the golden runs on it beside this script: PyTorch on masked completions.

    venv/bin/python tests/golden/make_records.py     # torch and transformers, as for make_golden.py

The model is that of transformers, GPT2LMHeadModel, over the 256 bytes, started as make_golden.py
starts its own. Rows are laid and masked here from the description in docs/data.md, in a way of
their own: records of prompt and completion as bytes, rows of 33 tokens, the loss on completions.
"""
import json
import math
import pathlib
import random

import numpy
import torch
import transformers

import make_golden as golden

HERE = pathlib.Path(__file__).resolve().parent
STEPS, BATCH, BLOCK, VOCABULARY = 10, 8, 32, 256
FOLDER = "byte_model"


def make_records():
    draw = random.Random(11)
    words = ["one", "two", "three", "four", "five", "six", "caf\u00e9", "\u2260"]
    records = []
    for _ in range(150):
        asked = [draw.choice(words) for _ in range(draw.randrange(1, 5))]
        records.append({"prompt": " ".join(asked) + " =", "completion": " " + asked[-1] + "."})
    records[7]["completion"] = " " + "long " * 10  # loses its end
    records[20]["prompt"] = "p" * 40               # has no label within a row
    return records


def tokens_of(record):
    prompt, completion = (record[k].encode() for k in ("prompt", "completion"))
    learnt = [False] * len(prompt) + [True] * len(completion)
    learnt[0] = False
    return list(zip(prompt + completion, learnt))[: BLOCK + 1]


def lay(records, packing):
    """Inputs and labels, (rows, T) each."""
    rows = []
    for record in records:
        tokens = tokens_of(record)
        if not any(learnt for _, learnt in tokens):
            continue
        if not rows or not packing or len(rows[-1]) + len(tokens) > BLOCK + 1:
            rows.append([])
        rows[-1] += tokens
    padded = [row + [(0, False)] * (BLOCK + 1 - len(row)) for row in rows]
    inputs = [[token for token, _ in row[:-1]] for row in padded]
    labels = [[token if learnt else -100 for token, learnt in row[1:]] for row in padded]
    return torch.tensor(inputs), torch.tensor(labels)


def make_model():
    golden.VOCABULARY = VOCABULARY
    config = golden.CONFIG | {"vocab_size": VOCABULARY, "dstrain_tokenizer": "byte"}
    folder = HERE / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    golden.write_safetensors(folder / "model.safetensors", golden.make_parameters())


def train(inputs, labels, rate):
    model = transformers.GPT2LMHeadModel.from_pretrained(HERE / FOLDER).double()
    adam = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.999), eps=1e-8,
                             weight_decay=0.0)
    per_epoch = len(inputs) // BATCH
    steps = []
    for step in range(STEPS):
        at = slice(step % per_epoch * BATCH, (step % per_epoch + 1) * BATCH)
        logits = model(inputs[at]).logits.reshape(-1, VOCABULARY)
        loss = torch.nn.functional.cross_entropy(logits, labels[at].reshape(-1))
        adam.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(p.grad.square().sum().item() for p in model.parameters()))
        adam.step()
        steps.append({"step": step + 1, "loss": loss.item(), "grad_norm": norm,
                      "learning_rate": rate})
    return steps


def main():
    torch.set_num_threads(1)
    make_model()
    records = make_records()
    text = "".join(json.dumps(record, ensure_ascii=bool(i % 2)) + "\n"
                   for i, record in enumerate(records))
    (HERE / "records.jsonl").write_text(text)
    for name, packing in (("packed", True), ("unpacked", False)):
        inputs, labels = lay(records, packing)
        steps = train(inputs, labels, 1e-3)
        print(f"{name}: {len(inputs)} rows, {(labels != -100).sum()} labels, loss "
              f"{steps[0]['loss']:.6f} -> {steps[-1]['loss']:.6f}")
        config = {"train_batch_size": BATCH, "gradient_clipping": 0,
                  "optimizer": {"type": "AdamW", "params": {
                      "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}}}
        arguments = ["--model_name_or_path", FOLDER, "--train_file", "records.jsonl",
                     "--block_size", str(BLOCK), "--packing", str(packing).lower(),
                     *golden.IN_ORDER, *golden.CONSTANT, "--max_steps", str(STEPS)]
        (HERE / f"records_{name}.json").write_text(json.dumps(
            {"name": f"records_{name}", "ds_config": config, "arguments": arguments,
             "rows": len(inputs), "steps": steps}, indent=1) + "\n")


if __name__ == "__main__":
    main()
