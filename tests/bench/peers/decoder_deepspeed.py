#!/usr/bin/env python3
"""Trains a decoder with DeepSpeed on the CPU, on the tokens that dstrain trains on; one rank.

The model, tokens and options of decoder_torch.py, with a ds_config.json; prints one JSON object. Needs
torch, transformers and deepspeed, a compiler for DeepSpeed's own kernels, and for nvme libaio-dev.
"""

import json
import os
import sys
import time

os.environ.setdefault("DS_ACCELERATOR", "cpu")
for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"),
                    ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29612")):
    os.environ.setdefault(name, value)

import deepspeed
import decoder_torch
import torch


def read_config():
    """Takes --deepspeed FILE out of the command line."""
    place = sys.argv.index("--deepspeed")
    with open(sys.argv[place + 1]) as file:
        config = json.load(file)
    del sys.argv[place : place + 2]
    return config


def main():
    config = read_config()
    options = decoder_torch.arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    config["train_micro_batch_size_per_gpu"] = options.batch
    config["optimizer"] = {
        "type": "AdamW",
        "params": {"lr": options.learning_rate, "weight_decay": 0.0},
    }
    model = decoder_torch.make_model(options)
    deepspeed.init_distributed("gloo")
    engine, *_ = deepspeed.initialize(model=model, config=config)
    seconds, losses = [], []
    for inputs, labels in decoder_torch.batches(options):
        begin = time.perf_counter()
        logits = engine(inputs).logits.flatten(0, 1).float()
        loss = torch.nn.functional.cross_entropy(logits, labels.flatten())
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    print(
        json.dumps(
            {"deepspeed": deepspeed.__version__, "step_seconds": seconds, "losses": losses}
        )
    )


main()
