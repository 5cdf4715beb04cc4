#!/usr/bin/env python3
"""Makes families/ beside this script: toy models of several families, trained by transformers.

    venv/bin/python tests/golden/make_families.py [NAME...]    # torch and transformers, as for
                                                               # make_golden.py; without names all

Every folder holds a model at the start (config.json, model.safetensors in F32) and run.json: ten
steps of AdamW over tokens.bin in float64, and what the untrained model says of the first sample.
Runs in bf16 and fp16 over float32 masters tell how far rounding alone takes the losses.
"""
import copy
import json
import math
import pathlib
import shutil
import sys

import torch
import transformers

import make_golden as golden

HERE = pathlib.Path(__file__).resolve().parent
STEPS, RATE = 10, 2e-3
COMMON = {"vocab_size": golden.VOCABULARY, "hidden_size": 32, "intermediate_size": 56,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": None,
          "pad_token_id": None}
GPT2 = {"vocab_size": golden.VOCABULARY, "n_positions": 32, "n_embd": 32, "n_layer": 2,
        "n_head": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "bos_token_id": None, "eos_token_id": None}


def llama3_scaling(theta):
    return {"rope_type": "llama3", "rope_theta": theta, "factor": 4.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


def longrope(pairs):
    return {"rope_type": "longrope", "rope_theta": 500.0,
            "short_factor": [1.0 + 0.05 * i for i in range(pairs)],
            "long_factor": [1.1 + 0.6 * i for i in range(pairs)]}


# Each differs from the others in what a user's model may have.
FAMILIES = {
    # As Llama 2: each head has its own keys; the head is untied.
    "llama2": ("Llama", COMMON | {"num_key_value_heads": 4, "tie_word_embeddings": False}),
    # As Llama 3.1: heads share keys, frequencies are scaled by parts. Tied as Llama 3.2 1B.
    "llama3": ("Llama", COMMON | {"tie_word_embeddings": True,
                                  "rope_parameters": llama3_scaling(500.0)}),
    "llama_linear": ("Llama", COMMON | {"rope_parameters": {"rope_type": "linear", "factor": 2.0,
                                                            "rope_theta": 100.0},
                                        "attention_bias": True, "mlp_bias": True,
                                        "hidden_act": "gelu"}),
    "llama_yarn": ("Llama", COMMON | {"rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "rope_theta": 100.0,
        "original_max_position_embeddings": 16}, "hidden_act": "gelu_pytorch_tanh"}),
    # A window shorter than the sequence; a head size of its own.
    "mistral": ("Mistral", COMMON | {"sliding_window": 9, "head_dim": 12,
                                     "tie_word_embeddings": False}),
    # Biases of queries, keys and values; a window in the last layer alone.
    "qwen2": ("Qwen2", COMMON | {"use_sliding_window": True, "sliding_window": 7,
                                 "max_window_layers": 1, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3", COMMON | {"head_dim": 16, "tie_word_embeddings": True}),
    # Packed projections; a window; half of each head turns.
    "phi3": ("Phi3", COMMON | {"sliding_window": 9, "partial_rotary_factor": 0.5}),
    # As Phi-4-mini: tied, and sequences of more than 16 tokens turn by other frequencies.
    "phi3_longrope": ("Phi3", COMMON | {"partial_rotary_factor": 0.75, "tie_word_embeddings": True,
                                        "original_max_position_embeddings": 16,
                                        "rope_scaling": longrope(3)}),
    "gpt2_options": ("GPT2", GPT2 | {"activation_function": "gelu", "n_inner": 40,
                                     "scale_attn_by_inverse_layer_idx": True,
                                     "reorder_and_upcast_attn": True,
                                     "tie_word_embeddings": False}),
    "gpt2_relu": ("GPT2", GPT2 | {"activation_function": "relu", "n_head": 2}),
}


def make_model(family, options, folder):
    """Weights wider than a model's own start, so that every part shows in the loss."""
    config = getattr(transformers, family + "Config")(**options)
    name = {"GPT2": "GPT2LMHeadModel"}.get(family, family + "ForCausalLM")
    config._attn_implementation = "eager"
    model = getattr(transformers, name)(config).float()
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            matrix = parameter.dim() == 2
            values = torch.randn(parameter.shape, generator=draw) * (0.15 if matrix else 0.1)
            centre = parameter.mean().round() if not matrix else 0  # norms are around 1
            parameter.copy_(values + centre)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return model


def losses_of(model, inputs, labels):
    logits = model(inputs).logits.reshape(-1, golden.VOCABULARY)
    if logits.dtype != torch.float64:
        logits = logits.float()
    return torch.nn.functional.cross_entropy(logits, labels.reshape(-1))


def train(model, tokens, half=None):
    """With `half` weights and activations are rounded, masters and gradients' sums are not."""
    masters = list(model.parameters())
    adam = torch.optim.AdamW(masters, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    scale = 2.0**12 if half == torch.float16 else 1.0
    steps = []
    for step in range(STEPS):
        inputs, labels = golden.batch_of(tokens, step)
        adam.zero_grad()
        if half is None:
            loss = losses_of(model, inputs, labels)
            loss.backward()
        else:
            working = copy.deepcopy(model).to(half)
            loss = losses_of(working, inputs, labels)
            (loss * scale).backward()
            for master, own in zip(masters, working.parameters()):
                master.grad = own.grad.to(master.dtype) / scale
        norm = math.sqrt(sum(p.grad.double().square().sum().item() for p in masters))
        steps.append({"step": step + 1, "loss": loss.item(), "grad_norm": norm,
                      "learning_rate": RATE})
        adam.step()
    return steps


def apart(truth, rough):
    return [max(abs(a[k] - b[k]) / a[k] for a, b in zip(truth, rough))
            for k in ("loss", "grad_norm")]


def fresh(folder, dtype):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    for module in model.modules():  # the same numbers, but transformers insists on float32 there
        if hasattr(module, "reorder_and_upcast_attn"):
            module.reorder_and_upcast_attn = False
    return model.to(dtype).eval()


def greedy(model, prompt, count):
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(model(torch.tensor([tokens])).logits[0, -1].argmax().item())
    return tokens[len(prompt):]


def make_family(name, family, options, tokens):
    folder = HERE / "families" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_model(family, options, folder)
    truth = train(fresh(folder, torch.float64), tokens)
    print(f"{name}: loss {truth[0]['loss']:.6f} -> {truth[-1]['loss']:.6f}")
    loss, norm = apart(truth, train(fresh(folder, torch.float32), tokens))
    print(f"  float32 is apart by {loss:.1e} and {norm:.1e}")
    assert loss < 2e-6 and norm < 2e-5
    halves = {}
    for half, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        loss, norm = apart(truth, train(fresh(folder, torch.float32), tokens, dtype))
        print(f"  {half} is apart by {loss:.1e} and {norm:.1e}")
        halves[half] = {"loss": float(f"{loss:.2g}"), "grad_norm": float(f"{norm:.2g}")}
    inputs, _ = golden.batch_of(tokens, 0)
    model = fresh(folder, torch.float64)
    with torch.no_grad():
        logits = model(inputs[:1]).logits[0, -1]
    run = {"ds_config": {"train_batch_size": golden.BATCH, "gradient_clipping": 0, "optimizer": {
               "type": "AdamW", "params": {"lr": RATE, "betas": [0.9, 0.999], "eps": 1e-8,
                                           "weight_decay": 0.0}}},
           "arguments": ["--model_name_or_path", f"families/{name}", "--train_file", "tokens.bin",
                         "--block_size", str(golden.BLOCK), *golden.IN_ORDER,
                         *golden.CONSTANT, "--max_steps", str(STEPS)],
           "parameters": sum(p.numel() for p in model.parameters()),
           "apart": halves, "steps": truth, "tokens": inputs[0].tolist(),
           "last_logits": [float(f"{x:.8g}") for x in logits.tolist()],
           "greedy": greedy(model, inputs[0, :8].tolist(), 12)}
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    tokens = golden.make_tokens()
    for name in sys.argv[1:] or FAMILIES:
        make_family(name, *FAMILIES[name], tokens)


if __name__ == "__main__":
    main()
