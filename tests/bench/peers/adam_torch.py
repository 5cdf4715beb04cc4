#!/usr/bin/env python3
"""Times the AdamW step of PyTorch, and of DeepSpeed where it is installed, on one flat parameter.

Prints one JSON object: name to the seconds of each run, or to why there are none. fp32 parameters,
gradients and moments, as `dstrain bench adam`. Needs torch.
"""

import argparse
import json
import time

import torch


def timed(optimizer, parameter, runs):
    parameter.grad = torch.full_like(parameter, 1e-3)
    seconds = []
    for run in range(runs + 2):  # two to warm up
        begin = time.perf_counter()
        optimizer.step()
        if run >= 2:
            seconds.append(time.perf_counter() - begin)
    return seconds


def torch_adam(parameter, runs, **options):
    return timed(torch.optim.AdamW([parameter], lr=1e-4, **options), parameter, runs)


def deepspeed_adam(parameter, runs):
    try:
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        optimizer = DeepSpeedCPUAdam([parameter], lr=1e-4, adamw_mode=True)
    except Exception as error:  # not installed, or it does not build
        return str(error).strip().splitlines()[-1]
    return timed(optimizer, parameter, runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numel", type=int, default=1 << 25)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parameter = torch.nn.Parameter(torch.randn(options.numel))
    print(
        json.dumps(
            {
                "PyTorch": torch_adam(parameter, options.runs),
                "PyTorch fused": torch_adam(parameter, options.runs, fused=True),
                "DeepSpeed": deepspeed_adam(parameter, options.runs),
            }
        )
    )


main()
