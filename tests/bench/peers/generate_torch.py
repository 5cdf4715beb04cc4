#!/usr/bin/env python3
"""Times transformers' greedy `generate` on the prompts of a JSON lines file with `prompt_ids`.

Prints one JSON object: `first`, the seconds until each text of the batch has one new token, and `all`,
those until each has NEW tokens. Needs torch and transformers.
"""

import argparse
import json
import time

import torch
import transformers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("new", type=int)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype="auto").eval()
    model.generation_config.eos_token_id = None
    with open(arguments.prompts) as lines:
        ids = torch.tensor([json.loads(line)["prompt_ids"] for line in lines])

    def seconds_of(new):
        begin = time.perf_counter()
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new,
                           do_sample=False, pad_token_id=0)
        return time.perf_counter() - begin

    seconds_of(2)  # to warm up
    print(json.dumps({"first": seconds_of(1), "all": seconds_of(arguments.new)}))


main()
