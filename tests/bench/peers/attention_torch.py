#!/usr/bin/env python3
"""Times PyTorch's causal attention on the shapes of cuda_ops_bench; prints a line for each.

Scaled dot-product attention of bf16 by flash attention and by cuDNN, forward and backward, with the
operations counted as there: half of the products' forward, 2.5 times that backward. Before them,
the rates of a large copy and of a large matrix product. Needs torch and a GPU.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

# sequences, tokens, heads, heads of keys, features of a head
SHAPES = [
    (8, 1024, 12, 12, 64),
    (8, 1024, 8, 8, 128),
    (2, 4096, 32, 8, 128),
    (1, 8192, 32, 8, 128),
]


def seconds_of(call):
    """The median of nine groups of ten calls, by events."""
    for _ in range(5):
        call()
    times = []
    for _ in range(9):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e4)
    return sorted(times)[4]


def show(what, seconds, rate):
    print(f"{what:<52} {seconds * 1e6:>9.1f} us  {rate}", flush=True)


def measure_ceilings():
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    time = seconds_of(lambda: target.copy_(source))
    show("PyTorch: copy of 1 GiB", time, f"{2 * source.nbytes / time / 1e9:.0f} GB/s")
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    time = seconds_of(lambda: a @ b)
    show("PyTorch: product of 8192 x 8192 x 8192", time, f"{2 * 8192**3 / time / 1e12:.1f} TFLOP/s")


def measure(backend, sequences, tokens, heads, kv_heads, size):
    def values(count):
        shape = (sequences, tokens, count, size)
        made = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        return made.transpose(1, 2).requires_grad_()

    query, key, value = values(heads), values(kv_heads), values(kv_heads)
    gradient = torch.randn_like(query)

    def forward():
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=heads != kv_heads
        )

    flops = 2 * sequences * heads * size * tokens**2
    name = f"{backend.name} {sequences} x {tokens} x {heads}/{kv_heads} x {size}"
    with sdpa_kernel(backend):
        time = seconds_of(forward)
        show(name, time, f"{flops / time / 1e12:.1f} TFLOP/s")
        output = forward()
        inputs = (query, key, value)
        back = seconds_of(lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True))
        show(f"{name}, gradients", back, f"{2.5 * flops / back / 1e12:.1f} TFLOP/s")


def main():
    torch.manual_seed(0)
    measure_ceilings()
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        for shape in SHAPES:
            try:
                measure(backend, *shape)
            except RuntimeError as error:
                print(f"{backend.name} {shape}: {str(error).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
