#!/usr/bin/env python3
"""Makes the golden training runs beside this script: a plain PyTorch GPT-2, nothing of dstrain.

    python3 -m venv venv && venv/bin/pip install torch numpy          # CPU builds will do
    venv/bin/python tests/golden/make_golden.py                        # rewrites tests/golden
    venv/bin/python tests/golden/make_golden.py --check                # also needs transformers

Every case is run in float64, which is what gets written, and again in float32, which must agree
to 1e-6 (loss) and 1e-5 (gradient norm) relative: the numbers are those of the mathematics and not
of one order of summation. Two more runs are in bf16 over float32 masters, once with all weights and
activations bf16, once under autocast; they must agree to 4e-4 and 5e-3. One is in fp16 over float32
masters, with the loss scaled by 65536; it must agree to 8e-5 and 1.2e-3. The last ones keep what is
trained with in 16 bits, masters and states rounded stochastically; how far these are apart is in
README.md. --check compares the model with transformers' GPT2LMHeadModel too.
The files are described in README.md.
"""
import json
import math
import pathlib
import struct
import sys

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
LAYERS, WIDTH, HEADS, POSITIONS, VOCABULARY, EPSILON = 2, 48, 4, 32, 160, 1e-5
STEPS, BATCH, BLOCK, SAMPLES = 20, 12, 32, 130
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# What is kept in 16 bits, and the run that it is kept of.
KEPT = {"bf16 gradients": ("bf16", {"gradients"}),
        "bf16 masters": ("bf16", {"gradients", "masters"}),
        "bf16 masters and states": ("bf16", {"gradients", "masters", "states"}),
        "fp16 masters": ("fp16", {"gradients", "masters"})}
CONFIG = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
    "vocab_size": VOCABULARY, "n_positions": POSITIONS, "n_ctx": POSITIONS, "n_embd": WIDTH,
    "n_layer": LAYERS, "n_head": HEADS, "n_inner": None, "layer_norm_epsilon": EPSILON,
    "initializer_range": 0.02, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0,
    "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
}


def make_parameters():
    """Larger than GPT-2's own start, biases included, so that every part shows in the loss."""
    shapes = {"wte.weight": (VOCABULARY, WIDTH), "wpe.weight": (POSITIONS, WIDTH)}
    for layer in range(LAYERS):
        block = {"ln_1.weight": (WIDTH,), "ln_1.bias": (WIDTH,),
                 "attn.c_attn.weight": (WIDTH, 3 * WIDTH), "attn.c_attn.bias": (3 * WIDTH,),
                 "attn.c_proj.weight": (WIDTH, WIDTH), "attn.c_proj.bias": (WIDTH,),
                 "ln_2.weight": (WIDTH,), "ln_2.bias": (WIDTH,),
                 "mlp.c_fc.weight": (WIDTH, 4 * WIDTH), "mlp.c_fc.bias": (4 * WIDTH,),
                 "mlp.c_proj.weight": (4 * WIDTH, WIDTH), "mlp.c_proj.bias": (WIDTH,)}
        shapes |= {f"h.{layer}.{name}": shape for name, shape in block.items()}
    shapes |= {"ln_f.weight": (WIDTH,), "ln_f.bias": (WIDTH,)}
    draw = numpy.random.Generator(numpy.random.PCG64(20240520))
    parameters = {}
    for name, shape in shapes.items():
        matrix = len(shape) == 2
        values = draw.normal(0, 0.15 if matrix else 0.1, shape)
        if not matrix and name.endswith(".weight"):
            values += 1
        parameters[name] = values.astype(numpy.float32)
    return parameters


def make_tokens():
    """A noisy Markov chain: something to learn, and every id below the vocabulary."""
    draw = numpy.random.Generator(numpy.random.PCG64(7))
    follower = draw.permutation(VOCABULARY)
    tokens = [0]
    while len(tokens) < SAMPLES * BLOCK + 1 + 7:  # the last seven fill no sample
        known = draw.random() < 0.7
        tokens.append(int(follower[tokens[-1]] if known else draw.integers(VOCABULARY)))
    return numpy.array(tokens, numpy.uint16)


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + EPSILON) * weight + bias


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention(x, weight, bias):
    batch, length, _ = x.shape
    split = (x @ weight + bias).view(batch, length, 3, HEADS, WIDTH // HEADS)
    query, key, value = split.permute(2, 0, 3, 1, 4)
    scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    probabilities = torch.softmax(scores.masked_fill(future, -math.inf), -1)
    return (probabilities @ value).transpose(1, 2).reshape(batch, length, WIDTH)


def logits_of(p, tokens):
    x = p["wte.weight"][tokens] + p["wpe.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        own = f"h.{layer}."
        of = {name[len(own):]: v for name, v in p.items() if name.startswith(own)}
        y = layer_norm(x, of["ln_1.weight"], of["ln_1.bias"])
        y = attention(y, of["attn.c_attn.weight"], of["attn.c_attn.bias"])
        x = x + y @ of["attn.c_proj.weight"] + of["attn.c_proj.bias"]
        y = layer_norm(x, of["ln_2.weight"], of["ln_2.bias"])
        y = gelu(y @ of["mlp.c_fc.weight"] + of["mlp.c_fc.bias"])
        x = x + y @ of["mlp.c_proj.weight"] + of["mlp.c_proj.bias"]
    return layer_norm(x, p["ln_f.weight"], p["ln_f.bias"]) @ p["wte.weight"].T


def loss_sum(p, tokens, labels, precision=None):
    """precision: bf16 and fp16 round weights and activations, "autocast" is PyTorch's own choice."""
    if precision in HALVES:
        p = {k: v.to(HALVES[precision]) for k, v in p.items()}
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
        logits = logits_of(p, tokens).reshape(-1, VOCABULARY)
    if precision is not None:
        logits = logits.float()
    return torch.nn.functional.cross_entropy(logits, labels.reshape(-1), reduction="sum")


def batch_of(tokens, step):
    """Step s of an epoch takes samples [sG, (s+1)G) in file order; what is left over is dropped."""
    first = step % (SAMPLES // BATCH) * BATCH
    rows = [tokens[k * BLOCK : k * BLOCK + BLOCK + 1] for k in range(first, first + BATCH)]
    rows = torch.from_numpy(numpy.stack(rows).astype(numpy.int64))
    return rows[:, :-1], rows[:, 1:]


def warmup(params, step):
    low, high, length = (params[k] for k in ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps"))
    done = step - 1
    if done < 0:
        return low
    part = math.log(done + 1) / math.log(length) if done < length else 1.0
    return low + (high - low) * part


def one_cycle(params, step):
    """Rate and first beta: up and down between their ends, then both decay."""
    low, high = params["cycle_min_lr"], params["cycle_max_lr"]
    least, most = params["cycle_min_mom"], params["cycle_max_mom"]
    first, second = params["cycle_first_step_size"], params["cycle_second_step_size"]
    if step > first + second:
        decay = (step - first - second) / params["decay_step_size"]
        return (low / (1 + params["decay_lr_rate"] * decay),
                most * (1 + params["decay_mom_rate"] * decay))
    part = step / first if step <= first else (first + second - step) / second
    # At the start DeepSpeed has the momentum of the top.
    return low + (high - low) * part, least if step == 0 else most - (most - least) * part


def rate_and_betas(config, step):
    """Of update `step` (from 0). DeepSpeed's schedulers advance after the update."""
    adam = config["optimizer"]["params"]
    if "scheduler" not in config:
        return adam["lr"], *adam["betas"]
    params = config["scheduler"]["params"]
    if config["scheduler"]["type"] == "WarmupLR":
        return warmup(params, step), *adam["betas"]
    return *one_cycle(params, step), 0.99


def adamw(params, value, m, v, step, rate, beta1, beta2):
    """What the update adds to a parameter."""
    mean = m / (1 - beta1 ** (step + 1))
    root = torch.sqrt(v / (1 - beta2 ** (step + 1))) + params["eps"]
    return -rate * (mean / root + params["weight_decay"] * value)


def lamb(params, value, m, v, step, rate, beta1, beta2):
    """Likewise, as DeepSpeed's FusedLamb: moments are corrected by the rate alone."""
    update = m / (torch.sqrt(v) + params["eps"]) + params["weight_decay"] * value
    ratio = (value.norm() / update.norm()).clamp(params["min_coeff"], params["max_coeff"])
    correction = math.sqrt(1 - beta2 ** (step + 1)) / (1 - beta1 ** (step + 1))
    return -rate * correction * ratio * update


def lion(params, value, m, v, step, rate, beta1, beta2):
    """Likewise, as the paper's: `v` is the gradient and `m` the momentum before the update."""
    return -rate * (torch.sign(beta1 * m + (1 - beta1) * v) + params["weight_decay"] * value)


def round_stochastically(values, dtype):
    """To one of the neighbours in bf16 or fp16, in place."""
    digits, least = (8, -133) if dtype == torch.bfloat16 else (11, -24)
    exponent = torch.frexp(values)[1].sub(digits).clamp(min=least)
    step = torch.pow(2.0, exponent.double())
    values.copy_(torch.floor(values.double() / step + torch.rand(values.shape)) * step)


def train(config, parameters, tokens, dtype, precision=None, skipped=()):
    """Steps whose number, from 0, is in `skipped` are left out."""
    precision, kept = KEPT.get(precision, (precision, set()))
    half = HALVES.get(precision)
    params = config["optimizer"]["params"]
    rule = {"AdamW": adamw, "Lamb": lamb, "Lion": lion}[config["optimizer"]["type"]]
    p = {k: torch.from_numpy(v.copy()).to(dtype).requires_grad_() for k, v in parameters.items()}
    m = {k: torch.zeros_like(v) for k, v in p.items()}
    v2 = {k: torch.zeros_like(v) for k, v in p.items()}
    micro = config.get("train_micro_batch_size_per_gpu", BATCH)
    if "masters" in kept:
        p = {k: v.detach().to(half).to(dtype).requires_grad_() for k, v in p.items()}
    records, updates = [], 0
    scale = 2.0**16 if precision == "fp16" else 1
    for step in range(STEPS):
        inputs, labels = batch_of(tokens, step)
        total = 0.0
        for begin in range(0, BATCH, micro):
            rows = slice(begin, begin + micro)
            part = loss_sum(p, inputs[rows], labels[rows], precision)
            (part * scale / labels.numel()).backward()
            total += part.item()
            if "gradients" in kept:
                for value in p.values():
                    value.grad = value.grad.to(half).to(dtype)
        norm = math.sqrt(sum(v.grad.double().square().sum().item() for v in p.values())) / scale
        clip = config.get("gradient_clipping", 0)
        factor = (min(1.0, clip / (norm + 1e-6)) if clip else 1.0) / scale
        rate, beta1, beta2 = rate_and_betas(config, updates)
        records.append({"step": step + 1, "loss": total / labels.numel(), "grad_norm": norm,
                        "learning_rate": rate})
        if step in skipped:
            records[-1]["skipped"] = True
            for value in p.values():
                value.grad = None
            continue
        with torch.no_grad():
            for k, value in p.items():
                gradient = value.grad * factor
                if rule is lion:
                    value += lion(params, value, m[k], gradient, updates, rate, beta1, beta2)
                    m[k].mul_(beta2).add_(gradient, alpha=1 - beta2)
                else:
                    m[k].mul_(beta1).add_(gradient, alpha=1 - beta1)
                    v2[k].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
                    value += rule(params, value, m[k], v2[k], updates, rate, beta1, beta2)
                value.grad = None
                for name, tensors in (("masters", [value]), ("states", [m[k], v2[k]])):
                    for tensor in tensors if name in kept else ():
                        round_stochastically(tensor, half)
        updates += 1
    return records


def case(name, decay=0.0, **more):
    optimizer = {"type": "AdamW", "params": {"lr": 2e-3, "betas": [0.9, 0.999], "eps": 1e-8,
                                             "weight_decay": decay}}
    # Clipping is said either way: the default is to clip at 1.0.
    return name, {"train_batch_size": BATCH, "optimizer": optimizer, "gradient_clipping": 0} | more


# Of dstrain: whole batches in the order of the file, and one rate.
IN_ORDER = ["--no_shuffle", "--dataloader_drop_last"]
CONSTANT = ["--lr_scheduler_type", "constant"]
WARMUP = {"type": "WarmupLR", "params": {"warmup_min_lr": 1e-4, "warmup_max_lr": 2e-3,
                                         "warmup_num_steps": 8, "warmup_type": "log"}}
ONE_CYCLE = {"type": "OneCycle", "params": {
    "cycle_min_lr": 2e-4, "cycle_max_lr": 3e-3, "cycle_first_step_size": 6,
    "cycle_second_step_size": 8, "cycle_min_mom": 0.7, "cycle_max_mom": 0.9, "decay_step_size": 2,
    "decay_lr_rate": 0.5, "decay_mom_rate": 0.01}}
# In some steps the ratios of some parameters are at the bounds.
LAMB = {"type": "Lamb", "params": {"lr": 2e-2, "betas": [0.9, 0.999], "eps": 1e-6,
                                   "weight_decay": 0.01, "max_coeff": 0.15, "min_coeff": 0.04}}
LION = {"type": "Lion", "params": {"lr": 3e-4, "betas": [0.9, 0.99], "weight_decay": 0.1}}
# At a loss scale of 2^21 nothing overflows in fp16 but PyTorch's gradients of weights, which are
# fp16 as well; from 2^24 it takes three steps to get there.
SKIPPED = {"overflow": range(3)}
CASES = [case("plain"), case("accumulation", train_micro_batch_size_per_gpu=2),
         case("weight_decay", decay=0.1), case("clipping", gradient_clipping=0.5),
         case("everything", decay=0.1, gradient_clipping=0.5, scheduler=WARMUP,
              train_micro_batch_size_per_gpu=2),
         case("one_cycle", scheduler=ONE_CYCLE),
         case("overflow", decay=0.1, train_micro_batch_size_per_gpu=2, scheduler=WARMUP,
              fp16={"enabled": True, "initial_scale_power": 24, "hysteresis": 1}),
         case("lamb", train_micro_batch_size_per_gpu=2, gradient_clipping=0.5, optimizer=LAMB),
         case("lion", train_micro_batch_size_per_gpu=2, gradient_clipping=0.5, optimizer=LION)]


def write_safetensors(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(tensors):
        size = tensors[name].nbytes
        header["transformer." + name] = {"dtype": "F32", "shape": list(tensors[name].shape),
                                         "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(tensors[name].tobytes() for name in sorted(tensors))
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_case(name, config, parameters, tokens):
    skipped = SKIPPED.get(name, ())
    truth = train(config, parameters, tokens, torch.float64, skipped=skipped)
    print(f"{name}: loss {truth[0]['loss']:.6f} -> {truth[-1]['loss']:.6f}, norm "
          f"{truth[0]['grad_norm']:.4f} -> {truth[-1]['grad_norm']:.4f}")
    for precision, loss_bound, norm_bound in ((None, 1e-6, 1e-5), ("bf16", 4e-4, 5e-3),
                                              ("autocast", 4e-4, 5e-3), ("fp16", 8e-5, 1.2e-3),
                                              *((kept, 3e-3, 2e-2) for kept in KEPT)):
        rough = train(config, parameters, tokens, torch.float32, precision, skipped)
        loss, norm = (max(abs(a[k] - b[k]) / a[k] for a, b in zip(truth, rough)
                          if "skipped" not in a) for k in ("loss", "grad_norm"))
        print(f"  {precision or 'float32'} is apart by {loss:.1e} and {norm:.1e}")
        assert loss < loss_bound and norm < norm_bound
    arguments = ["--model_name_or_path", "model", "--train_file", "tokens.bin", "--block_size",
                 str(BLOCK), *IN_ORDER, *([] if "scheduler" in config else CONSTANT),
                 "--max_steps", str(STEPS)]
    head = {"name": name, "ds_config": config, "arguments": arguments}
    lines = ",\n".join("    " + json.dumps(record) for record in truth)
    text = json.dumps(head, indent=2)[:-2] + ',\n  "steps": [\n' + lines + "\n  ]\n}\n"
    (HERE / f"{name}.json").write_text(text)


def write_logits(parameters, tokens):
    p = {k: torch.from_numpy(v).double() for k, v in parameters.items()}
    inputs, labels = (rows[:1] for rows in batch_of(tokens, 0))
    logits = logits_of(p, inputs)[0].tolist()
    rows = ",\n".join("[" + ",".join(f"{x:.7g}" for x in row) + "]" for row in logits)
    loss = loss_sum(p, inputs, labels).item() / BLOCK
    (HERE / "logits.json").write_text(
        f'{{"tokens": {inputs[0].tolist()},\n"labels": {labels[0].tolist()},\n"loss": {loss!r},\n'
        f'"logits": [\n{rows}\n]}}\n')


def check_with_transformers(parameters, tokens):
    import transformers
    model = transformers.GPT2LMHeadModel.from_pretrained(HERE / "model").double().eval()
    inputs, _ = batch_of(tokens, 0)
    p = {k: torch.from_numpy(v).double() for k, v in parameters.items()}
    with torch.no_grad():
        apart = (model(inputs).logits - logits_of(p, inputs)).abs().max().item()
    print(f"logits differ from transformers {transformers.__version__} by at most {apart:.1e}")
    assert apart < 1e-9


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    parameters, tokens = make_parameters(), make_tokens()
    (HERE / "model").mkdir(exist_ok=True)
    (HERE / "model" / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    write_safetensors(HERE / "model" / "model.safetensors", parameters)
    header = numpy.zeros(256, numpy.int32)
    header[:3] = 20240520, 1, len(tokens)
    (HERE / "tokens.bin").write_bytes(header.tobytes() + tokens.tobytes())
    for name, config in CASES:
        write_case(name, config, parameters, tokens)
    write_logits(parameters, tokens)
    if "--check" in sys.argv[1:]:
        check_with_transformers(parameters, tokens)


if __name__ == "__main__":
    main()
