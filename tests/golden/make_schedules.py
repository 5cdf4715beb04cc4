#!/usr/bin/env python3
"""Makes schedules.json: the learning rates, and momenta, of DeepSpeed's and transformers' own code.

    python3 -m venv venv && venv/bin/pip install torch transformers setuptools wheel
    DS_BUILD_OPS=0 venv/bin/pip download --no-deps --no-binary :all: --no-build-isolation \\
        deepspeed==0.19.6 && tar xzf deepspeed-0.19.6.tar.gz
    venv/bin/python tests/golden/make_schedules.py deepspeed-0.19.6/deepspeed/runtime/lr_schedules.py

Only that file of DeepSpeed is loaded; what it imports from DeepSpeed is a logger. A scheduler is
made over torch.optim.AdamW and stepped after each update, as DeepSpeed's engine and Hugging Face's
Trainer do. The file is described in README.md.
"""
import importlib.util
import json
import logging
import math
import pathlib
import random
import sys
import types

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 30
BETAS = [0.85, 0.98]


def load_deepspeed(path):
    package, utils = types.ModuleType("deepspeed"), types.ModuleType("deepspeed.utils")
    utils.logger = logging.getLogger("deepspeed")
    utils.logger.setLevel(logging.CRITICAL)
    sys.modules |= {"deepspeed": package, "deepspeed.utils": utils}
    spec = importlib.util.spec_from_file_location("lr_schedules", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(make_scheduler, rate, steps):
    """What the optimizer has at each update."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=rate, betas=BETAS)
    scheduler = make_scheduler(optimizer)
    group = optimizer.param_groups[0]
    rates, betas = [], []
    for update in range(steps):
        if update > 0:  # after the last one "polynomial" divides by 0 if all steps are warmup
            scheduler.step()
        rates.append(float(group["lr"]))
        betas.append(list(group["betas"]))
        optimizer.step()
    return {"rates": rates} | ({"betas": betas} if betas != [BETAS] * steps else {})


def deepspeed_cases(draw):
    """(type, optimizer's rate, params): by hand what is special, then drawn ones."""
    warmup = {"warmup_min_lr": 0.1, "warmup_max_lr": 0.2, "warmup_num_steps": 5}
    yield "WarmupLR", 0.5, warmup
    yield "WarmupLR", 0.5, warmup | {"warmup_type": "linear"}
    yield "WarmupLR", 0.5, {"warmup_num_steps": 1}
    yield "WarmupLR", 5e-4, {}
    for last in (0, 3, 4, 7):
        for kind in ("log", "linear"):
            more = {"warmup_type": kind, "last_batch_iteration": last}
            yield "WarmupLR", 0.5, warmup | more
            yield "WarmupDecayLR", 0.5, warmup | more | {"total_num_steps": 10}
            yield "WarmupCosineLR", 0.5, more | {"warmup_num_steps": 5, "total_num_steps": 10}
    for total in (3, 5, 10, 25):
        for kind in ("log", "linear"):
            more = {"warmup_type": kind, "warmup_num_steps": 5, "total_num_steps": total}
            yield "WarmupDecayLR", 0.5, more
            yield "WarmupDecayLR", 0.5, warmup | more
            yield "WarmupCosineLR", 1.5e-3, more
            yield "WarmupCosineLR", 1.5e-3, more | {"warmup_min_ratio": 0.2, "cos_min_ratio": 0.1}
    yield "LRRangeTest", 0.5, {}
    for stairs in (False, True):
        more = {"lr_range_test_step_size": 2, "lr_range_test_staircase": stairs}
        yield "LRRangeTest", 0.5, more
        yield "LRRangeTest", 0.5, more | {"last_batch_iteration": 4}
    ends = {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2}
    yield "OneCycle", 0.5, ends
    for momentum in (True, False):
        more = ends | {"cycle_momentum": momentum, "cycle_first_step_size": 5}
        yield "OneCycle", 0.5, more
        yield "OneCycle", 0.5, more | {"last_batch_iteration": 3}
        yield "OneCycle", 0.5, more | {"decay_step_size": 2, "decay_lr_rate": 0.5}
        yield "OneCycle", 0.5, more | {"decay_step_size": 2, "decay_mom_rate": 0.01}
        yield "OneCycle", 0.5, more | {"cycle_second_step_size": 0}
    yield "OneCycle", 0.5, ends | {"cycle_first_step_size": 8, "cycle_first_stair_count": 2}
    yield "OneCycle", 0.5, ends | {"cycle_first_step_size": 10, "cycle_second_step_size": 11,
                                   "cycle_first_stair_count": 10, "cycle_second_stair_count": 11}
    for _ in range(6):
        yield from drawn_cases(draw)


def drawn_cases(draw):
    rate, last = draw.uniform(1e-5, 1e-2), draw.choice([-1, -1, draw.randrange(0, 12)])
    steps, total = draw.randrange(1, 20), draw.randrange(1, 30)
    kind = draw.choice(["log", "linear"])
    common = {"last_batch_iteration": last}
    warmup = common | {"warmup_num_steps": steps, "warmup_type": kind}
    ends = {"warmup_min_lr": draw.uniform(0, 1e-4), "warmup_max_lr": draw.uniform(1e-4, 1e-2)}
    yield "WarmupLR", rate, warmup | ends
    yield "WarmupDecayLR", rate, warmup | ends | {"total_num_steps": total}
    yield "WarmupCosineLR", rate, warmup | {"total_num_steps": total,
                                            "warmup_min_ratio": draw.uniform(0, 0.3),
                                            "cos_min_ratio": draw.uniform(0, 0.3)}
    yield "LRRangeTest", rate, common | {"lr_range_test_min_lr": draw.uniform(1e-5, 1e-3),
                                         "lr_range_test_step_size": draw.randrange(1, 9),
                                         "lr_range_test_step_rate": draw.uniform(0, 3),
                                         "lr_range_test_staircase": draw.random() < 0.5}
    yield "OneCycle", rate, common | {
        "cycle_min_lr": draw.uniform(0, 1e-3), "cycle_max_lr": draw.uniform(1e-3, 1e-1),
        "decay_lr_rate": draw.uniform(0, 1), "cycle_first_step_size": draw.randrange(1, 14),
        "cycle_second_step_size": draw.randrange(1, 14),
        "cycle_first_stair_count": draw.randrange(0, 5),
        "cycle_second_stair_count": draw.randrange(0, 5), "decay_step_size": draw.randrange(0, 4),
        "cycle_min_mom": draw.uniform(0.5, 0.8), "cycle_max_mom": draw.uniform(0.8, 0.95),
        "decay_mom_rate": draw.uniform(0, 1e-3)}


def huggingface_cases(draw):
    """(type, rate, warmup steps, all steps)"""
    names = ["constant", "constant_with_warmup", "linear", "cosine", "polynomial", "inverse_sqrt"]
    for name in names:
        for warmup, total in ((0, 30), (4, 30), (1, 2), (7, 7), (12, 7)):
            yield name, 5e-5, warmup, total
        for _ in range(3):
            yield name, draw.uniform(1e-5, 1e-2), draw.randrange(0, 20), draw.randrange(1, 40)


def all_cases(lr_schedules):
    draw = random.Random(20261122)
    for name, rate, params in deepspeed_cases(draw):
        values = run(lambda o: getattr(lr_schedules, name)(o, **params), rate, STEPS)
        yield {"ds_config": {
            "train_batch_size": 1,
            "optimizer": {"type": "AdamW", "params": {"lr": rate, "betas": BETAS}},
            "scheduler": {"type": name, "params": params}}, "arguments": []} | values
    for name, rate, warmup, total in huggingface_cases(draw):
        values = run(lambda o: transformers.get_scheduler(name, o, warmup, total), rate, total)
        yield {"arguments": ["--lr_scheduler_type", name, "--warmup_steps", str(warmup),
                             "--max_steps", str(total), "--learning_rate", repr(rate)]} | values


def main():
    lr_schedules = load_deepspeed(sys.argv[1])
    lines = [json.dumps(case, separators=(",", ":")) for case in all_cases(lr_schedules)]
    assert all(math.isfinite(rate) for line in lines for rate in json.loads(line)["rates"])
    (HERE / "schedules.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} schedules")


if __name__ == "__main__":
    main()
