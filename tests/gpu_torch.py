"""Tokens a second of GPT-2 124M in PyTorch, eager and compiled: what dstrain's are set beside."""
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SEQUENCES, LENGTH, STEPS = 8, 1024, 10


def measure(compiled):
    torch.manual_seed(0)
    config = GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="sdpa")
    model = GPT2LMHeadModel(config).cuda()
    step_model = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, 50257, (SEQUENCES, LENGTH), device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = step_model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / STEPS
    kind = "compiled" if compiled else "eager"
    print(f"PyTorch {torch.__version__} {kind}: {SEQUENCES * LENGTH / seconds:.0f} tokens/s, "
          f"{seconds * 1e3:.1f} ms a step, "
          f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB", flush=True)


for mode in sys.argv[1:]:
    measure(mode == "compiled")
