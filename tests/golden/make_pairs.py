#!/usr/bin/env python3
"""Makes pairs/ beside this script: toy encoder-decoders, trained by transformers on padded pairs.

    venv/bin/python tests/golden/make_pairs.py    # torch and transformers, as for make_golden.py

pairs.jsonl holds pairs of token ids of many lengths. Every folder holds a model at the start and
run.json, as make_families.py writes it for models without a source.
"""
import copy
import json
import math
import pathlib
import random
import shutil
import types

import torch
import transformers

import make_families as families

HERE = pathlib.Path(__file__).resolve().parent / "pairs"
VOCABULARY, BATCH, SOURCE, TARGET = 61, 6, 20, 12
START, PADDING, IGNORED = 3, 0, -100
EPSILON = 1e-6  # of AdamW: large enough that tiny gradients, which rounding turns, do not decide
COMMON = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 12, "num_heads": 3, "dropout_rate": 0.0,
          "pad_token_id": PADDING, "decoder_start_token_id": START, "eos_token_id": 1}

MODELS = {
    # As t5-small: the table of tokens is also the head, which then scales what it reads.
    "t5": COMMON | {"d_ff": 40, "num_layers": 2, "num_decoder_layers": 3},
    # As T5 1.1 and T0: a gated MLP and a head of its own. Buckets fill up within a sequence.
    "t5_gated": COMMON | {"d_ff": 24, "num_layers": 3, "num_decoder_layers": 2,
                          "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
                          "relative_attention_num_buckets": 8,
                          "relative_attention_max_distance": 12},
    # As transformers 5 makes them where a T5 is said to be untied: tied, but the head does not scale.
    "t5_unscaled": COMMON | {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1,
                             "tie_word_embeddings": False},
}


def make_pairs():
    """Some lines are longer than what a batch takes, some labels do not count."""
    draw = random.Random(7)
    lines = []
    for index in range(families.STEPS * BATCH):
        longest = 24 if index % 9 == 0 else SOURCE
        source = [draw.randrange(4, VOCABULARY) for _ in range(draw.randint(2, longest))]
        labels = [(token * 7 + 3) % (VOCABULARY - 4) + 4 for token in source[:draw.randint(2, 14)]]
        if index % 5 == 0:
            labels[0] = IGNORED
        lines.append({"input_ids": source, "labels": labels + [1]})
    return lines


def batch_of(pairs, step):
    source = torch.full((BATCH, SOURCE), PADDING)
    labels = torch.full((BATCH, TARGET), IGNORED)
    for row, pair in enumerate(pairs[step * BATCH:(step + 1) * BATCH]):
        for target, values in ((source, pair["input_ids"]), (labels, pair["labels"])):
            values = values[:target.shape[1]]
            target[row, :len(values)] = torch.tensor(values)
    counts = torch.tensor([min(len(pair["input_ids"]), SOURCE)
                           for pair in pairs[step * BATCH:(step + 1) * BATCH]])
    return source, (torch.arange(SOURCE) < counts[:, None]).long(), labels


def loss_of(model, source, mask, labels):
    logits = model(input_ids=source, attention_mask=mask, labels=labels).logits
    if logits.dtype != torch.float64:
        logits = logits.float()
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1),
                                             ignore_index=IGNORED)


def train(model, pairs, half=None):
    """With `half` weights and activations are rounded, masters and gradients' sums are not."""
    masters = list(model.parameters())
    adam = torch.optim.AdamW(masters, lr=families.RATE, betas=(0.9, 0.999), eps=EPSILON,
                             weight_decay=0.0)
    scale = 2.0**12 if half == torch.float16 else 1.0
    steps = []
    for step in range(families.STEPS):
        batch = batch_of(pairs, step)
        adam.zero_grad()
        if half is None:
            loss = loss_of(model, *batch)
            loss.backward()
        else:
            working = copy.deepcopy(model).to(half)
            loss = loss_of(working, *batch)
            (loss * scale).backward()
            for master, own in zip(masters, working.parameters()):
                master.grad = own.grad.to(master.dtype) / scale
        norm = math.sqrt(sum(p.grad.double().square().sum().item() for p in masters))
        steps.append({"step": step + 1, "loss": loss.item(), "grad_norm": norm,
                      "learning_rate": families.RATE})
        adam.step()
    return steps


def make_model(options, folder):
    """Weights wider than a model's own start, so that every part shows in the loss."""
    config = transformers.T5Config(**options)
    config._attn_implementation = "eager"
    model = transformers.T5ForConditionalGeneration(config).float()
    if folder.name == "t5_gated":
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            matrix = parameter.dim() == 2
            wide = 0.5 if "shared" in name or "bias" in name else 0.12
            values = torch.randn(parameter.shape, generator=draw) * (wide if matrix else 0.1)
            parameter.copy_(values + (0 if matrix else 1))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def norm_in_double(self, x):
    return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


def fresh(folder, dtype):
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder,
                                                                    attn_implementation="eager")
    if dtype == torch.float64:  # transformers would take the mean of squares in float32
        for module in model.modules():
            if type(module).__name__ == "T5LayerNorm":
                module.forward = types.MethodType(norm_in_double, module)
    return model.to(dtype).eval()


def greedy(model, source, count):
    tokens = [START]
    with torch.no_grad():
        for _ in range(count):
            logits = model(input_ids=torch.tensor([source]),
                           decoder_input_ids=torch.tensor([tokens])).logits
            tokens.append(logits[0, -1].argmax().item())
    return tokens[1:]


def make_toy(name, options, pairs):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_model(options, folder)
    truth = train(fresh(folder, torch.float64), pairs)
    print(f"{name}: loss {truth[0]['loss']:.6f} -> {truth[-1]['loss']:.6f}")
    loss, norm = families.apart(truth, train(fresh(folder, torch.float32), pairs))
    print(f"  float32 is apart by {loss:.1e} and {norm:.1e}")
    assert loss < 2e-6 and norm < 5e-5  # where rounding turns a relu, a gradient jumps
    halves = {}
    for half, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        loss, norm = families.apart(truth, train(fresh(folder, torch.float32), pairs, dtype))
        print(f"  {half} is apart by {loss:.1e} and {norm:.1e}")
        halves[half] = {"loss": float(f"{loss:.2g}"), "grad_norm": float(f"{norm:.2g}")}
    model = fresh(folder, torch.float64)
    source = pairs[1]["input_ids"]
    decoder = [START] + pairs[1]["labels"][:6]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([source]),
                       decoder_input_ids=torch.tensor([decoder])).logits[0, -1]
    run = {"ds_config": {"train_batch_size": BATCH, "gradient_clipping": 0, "optimizer": {
               "type": "AdamW", "params": {"lr": families.RATE, "betas": [0.9, 0.999], "eps": EPSILON,
                                           "weight_decay": 0.0}}},
           "arguments": ["--model_name_or_path", f"pairs/{name}", "--train_file",
                         "pairs/pairs.jsonl", "--max_source_length", str(SOURCE),
                         "--max_target_length", str(TARGET), *families.golden.IN_ORDER,
                         *families.golden.CONSTANT, "--max_steps", str(families.STEPS)],
           "parameters": sum(p.numel() for p in model.parameters()),
           "apart": halves, "steps": truth, "source": source, "tokens": decoder,
           "last_logits": [float(f"{x:.8g}") for x in logits.tolist()],
           "greedy": greedy(model, source, 12)}
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    pairs = make_pairs()
    HERE.mkdir(exist_ok=True)
    (HERE / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    for name, options in MODELS.items():
        make_toy(name, options, pairs)


if __name__ == "__main__":
    main()
