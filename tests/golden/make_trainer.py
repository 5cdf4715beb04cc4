#!/usr/bin/env python3
"""Hugging Face's own Trainer on commands of `dstrain train` with options drawn at random.

    venv/bin/python tests/golden/make_trainer.py                        # makes trainer.json
    venv/bin/python tests/golden/make_trainer.py --check build/release/bin/dstrain [--commands 30]

Needs torch, transformers and accelerate. The Trainer runs in one process, in float64, and takes the
samples in their order. Rows are laid here from the description in docs/data.md. --check runs each
command by dstrain, too, on one rank and on two at the same global batch, and compares the steps, the
rates, losses, norms, evaluations and the weights that come out.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.numpy import load_file

import make_records as records

HERE = pathlib.Path(__file__).resolve().parent
BLOCK, HELD_OUT = 31, 20
GOLDEN = (3, 4, 12, 20, 21)  # seeds whose commands meet every kind of option between them
TOLERANCE = {"loss": 1e-5, "step_loss": 1e-5, "grad_norm": 1e-4, "learning_rate": 1e-12,
             "eval_loss": 1e-5, "epoch": 1e-12}
WEIGHT_TOLERANCE = 2e-4  # absolute; Adam makes whole steps of gradients near zero
# The gradient of the keys' bias is zero: Adam makes steps of what rounding leaves of it.
NOISE = "attn.c_attn.bias"


def draw_command(seed):
    """Options of both programs, and those that only divide the batch: (common, batch, accumulation)."""
    draw = random.Random(seed)
    batch, accumulation = draw.choice([1, 2, 3, 4, 6, 8]), draw.choice([1, 1, 2, 3])
    options = {"max_train_samples": draw.randrange(5, 60), "learning_rate": draw.choice([1e-3, 3e-3]),
               "logging_steps": draw.choice([1, 2, 3, 5])}
    if draw.random() < 0.7:
        options["num_train_epochs"] = draw.choice([1, 1.5, 2, 2.25])
    else:
        options["max_steps"] = draw.randrange(4, 15)
    if draw.random() < 0.6:
        options["weight_decay"] = draw.choice([0.01, 0.1])
    if draw.random() < 0.6:
        options["lr_scheduler_type"] = draw.choice(
            ["constant", "constant_with_warmup", "linear", "cosine", "polynomial", "inverse_sqrt"])
    if draw.random() < 0.5 and options.get("lr_scheduler_type") != "constant":
        options["warmup_steps"] = draw.choice([1, 2, 4, 0.2])
    elif options.get("lr_scheduler_type") == "inverse_sqrt":
        options["warmup_steps"] = 2
    if draw.random() < 0.4:
        options["max_grad_norm"] = draw.choice([0, 0.5])
    if draw.random() < 0.3:
        options["adam_beta2"] = 0.95
    if draw.random() < 0.25 and accumulation == 1 and options["max_train_samples"] >= batch:
        options["dataloader_drop_last"] = True
    if draw.random() < 0.5:
        options["eval_strategy"] = draw.choice(["steps", "epoch"])
        if options["eval_strategy"] == "steps":
            options["eval_steps"] = draw.choice([2, 3])
        # The Trainer would drop held-out samples, too.
        options["per_device_eval_batch_size"] = draw.choice(
            [4, 5] if "dataloader_drop_last" in options else [3, 8])
        if draw.random() < 0.5:
            options["load_best_model_at_end"] = True
            options["save_strategy"] = options["eval_strategy"]
            if options["eval_strategy"] == "steps":
                options["save_steps"] = options["eval_steps"]
    return options, batch, accumulation


def training_rows(count):
    rows = []
    for record in records.make_records():
        tokens = records.tokens_of(record)[:BLOCK + 1]
        if not any(learnt for _, learnt in tokens):
            continue
        tokens += [(0, False)] * (BLOCK + 1 - len(tokens))
        rows.append({"input_ids": torch.tensor([token for token, _ in tokens]),
                     "labels": torch.tensor([token if learnt else -100 for token, learnt in tokens])})
    return rows[:count]


def held_out_rows():
    tokens = numpy.fromfile(HERE / "tokens.bin", dtype=numpy.uint16, offset=1024).astype(numpy.int64)
    rows = [torch.from_numpy(tokens[k * BLOCK:(k + 1) * BLOCK + 1]) for k in range(HELD_OUT)]
    # Nothing predicts the first token, which the Trainer would count as a label.
    return [{"input_ids": row, "labels": torch.cat([torch.tensor([-100]), row[1:]])} for row in rows]


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class InOrder(transformers.Trainer):
    def _get_train_sampler(self, train_dataset=None):
        return torch.utils.data.SequentialSampler(train_dataset or self.train_dataset)


def run_trainer(seed):
    options, batch, accumulation = draw_command(seed)
    model = transformers.GPT2LMHeadModel.from_pretrained(HERE / records.FOLDER).double()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulation,
            use_cpu=True, report_to=[], disable_tqdm=True, logging_first_step=True,
            remove_unused_columns=False, log_level="error",
            **{"save_strategy": "no"} | {k: v for k, v in options.items() if k != "max_train_samples"})
        trainer = InOrder(model, arguments, train_dataset=Rows(training_rows(options["max_train_samples"])),
                          eval_dataset=Rows(held_out_rows()))
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        log = trainer.state.log_history
        weights = {name: value.detach().numpy().ravel() for name, value in model.named_parameters()
                   if not name.endswith(NOISE)}
    steps = [{k: row[k] for k in ("step", "epoch", "loss", "learning_rate", "grad_norm") if k in row}
             for row in log if "loss" in row]
    evaluations = [{k: row[k] for k in ("step", "eval_loss")} for row in log if "eval_loss" in row]
    return {"global_step": trainer.state.global_step, "steps": steps, "evaluations": evaluations}, weights


def arguments_of(seed, ranks):
    """Those of `dstrain train` on so many ranks; none where these cannot share the batch."""
    options, batch, accumulation = draw_command(seed)
    if batch % ranks == 0:
        batch //= ranks
    elif accumulation % ranks == 0:
        accumulation //= ranks
    else:
        return None
    words = ["--model_name_or_path", records.FOLDER, "--train_file", "records.jsonl", "--packing",
             "false", "--block_size", str(BLOCK), "--no_shuffle", "--per_device_train_batch_size",
             str(batch), "--gradient_accumulation_steps", str(accumulation)]
    if "eval_strategy" in options:
        words += ["--validation_file", "tokens.bin", "--max_eval_samples", str(HELD_OUT)]
    if "save_strategy" not in options:
        words += ["--save_strategy", "no"]
    for name, value in options.items():
        words += [f"--{name}", str(value).lower()]
    return words


def sample(values):
    """Some values of a tensor, from the first to the last."""
    last = len(values) - 1
    return [float(f"{values[last * i // 3]:.9g}") for i in range(4)]


def make_golden():
    runs = []
    for seed in GOLDEN:
        truth, weights = run_trainer(seed)
        runs.append({"arguments": {str(ranks): arguments_of(seed, ranks) for ranks in (1, 2)}} | truth |
                    {"weights": {name: sample(values) for name, values in weights.items()}})
        print(seed, draw_command(seed), truth["global_step"], "steps")
    (HERE / "trainer.json").write_text(json.dumps(runs, indent=1) + "\n")


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def compare(seed, ranks, truth, weights, output):
    wrong, by_step = [], {}
    rows = rows_of(output / "metrics.jsonl")
    for row in rows:
        by_step.setdefault(("eval" if "eval_loss" in row else "train", row["step"]), row)
    last = max(row["step"] for row in rows if "loss" in row)
    if last != truth["global_step"]:
        wrong.append(f"{last} steps instead of {truth['global_step']}")
    pairs = [("train", row) for row in truth["steps"]] + [("eval", row) for row in truth["evaluations"]]
    for kind, row in pairs:
        own = by_step.get((kind, row["step"]))
        for key in row if own else ():
            if key != "step" and abs(own[key] - row[key]) > TOLERANCE[key] * max(abs(row[key]), 1e-30):
                wrong.append(f"step {row['step']}: {key} {own[key]} instead of {row[key]}")
        if not own:
            wrong.append(f"no {kind} row of step {row['step']}")
    found = load_file(output / "model.safetensors")
    for name, values in weights.items():
        apart = abs(found[name].ravel() - values).max()
        if not apart < WEIGHT_TOLERANCE:
            wrong.append(f"{name} is apart by {apart:.2g}")
    return wrong


def check(dstrain, commands):
    failures = 0
    for seed in range(commands):
        truth, weights = run_trainer(seed)
        for ranks in (1, 2):
            arguments = arguments_of(seed, ranks)
            if arguments is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                output = pathlib.Path(folder) / "out"
                command = [dstrain, "-q", "--device", "cpu", "--num_gpus", str(ranks), "train",
                           *arguments, "--output_dir", str(output)]
                done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
                wrong = ([f"status {done.returncode}: {done.stderr}"] if done.returncode
                         else compare(seed, ranks, truth, weights, output))
            failures += bool(wrong)
            print(f"{seed} on {ranks}: {'; '.join(wrong[:4]) or 'as the Trainer'} "
                  f"({truth['global_step']} steps)", flush=True)
            if wrong:
                print("   ", " ".join(arguments), flush=True)
    print(f"{failures} of the runs are unlike the Trainer's" if failures else "all as the Trainer")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", metavar="DSTRAIN")
    parser.add_argument("--commands", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if options.check:
        sys.exit(1 if check(str(pathlib.Path(options.check).resolve()), options.commands) else 0)
    make_golden()


if __name__ == "__main__":
    main()
