#!/usr/bin/env python3
"""Trains a decoder with PyTorch on the tokens that dstrain trains on; prints one JSON object.

Hugging Face's AutoModelForCausalLM (GPT-2 124M without --config) with scaled dot-product attention and fused AdamW, global-norm
clipping at 1, no shuffling: step s takes samples [s B, (s + 1) B) of T tokens, as
`dstrain train --no_shuffle` does. A token is a byte of the file, or of an llm.c file (.bin) two.
With --model, weights come from that directory; --save writes them to one before the first step.
--compile compiles model and loss together. Needs torch and transformers.
"""

import argparse
import json
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", required=True, help="a file of bytes, or llm.c's .bin")
    parser.add_argument("--config", help="a config.json or its directory; GPT-2 124M without")
    parser.add_argument("--model", help="a Hugging Face directory; random weights without")
    parser.add_argument("--save", help="a directory for the weights that training begins with")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "autocast", "bf16"], default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--block_size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def make_model(options):
    if options.model:
        model = AutoModelForCausalLM.from_pretrained(
            options.model, attn_implementation="sdpa", dtype=torch.float32
        )
    else:
        if options.config:
            config = AutoConfig.from_pretrained(options.config)
        else:
            config = GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        with torch.device(options.device):
            model = AutoModelForCausalLM.from_config(
                config, attn_implementation="sdpa", dtype=torch.float32
            )
    if options.save:
        model.save_pretrained(options.save)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.config.use_cache = False
    model.train()
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    return model.to(options.device, dtype)


def read_tokens(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    if path.endswith(".bin"):
        return torch.frombuffer(data, dtype=torch.uint16, offset=1024).long()
    return torch.frombuffer(data, dtype=torch.uint8).long()


def batches(options):
    data = read_tokens(options.tokens)
    size = options.block_size
    for step in range(options.steps):
        first = step * options.batch
        rows = [data[i * size : (i + 1) * size + 1] for i in range(first, first + options.batch)]
        sample = torch.stack(rows).to(options.device)
        yield sample[:, :-1], sample[:, 1:]


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = make_model(options)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=options.learning_rate, weight_decay=0.0, fused=True
    )

    def loss_of(inputs, labels):
        logits = model(inputs).logits.flatten(0, 1).float()
        return torch.nn.functional.cross_entropy(logits, labels.flatten())

    if options.compile:
        loss_of = torch.compile(loss_of)
    autocast = torch.autocast(
        options.device, dtype=torch.bfloat16, enabled=options.precision == "autocast"
    )
    seconds, losses = [], []
    for inputs, labels in batches(options):
        begin = time.perf_counter()
        with autocast:
            loss = loss_of(inputs, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    print(
        json.dumps(
            {
                "precision": options.precision,
                "compile": options.compile,
                "torch": torch.__version__,
                "device_bytes": torch.cuda.max_memory_allocated() if options.device == "cuda" else 0,
                "step_seconds": seconds,
                "losses": losses,
            }
        )
    )


if __name__ == "__main__":
    main()
