#!/usr/bin/env python3
"""Makes chats.json beside this script: conversations as transformers' chat templates render them.

    python3 -m venv venv && venv/bin/pip install transformers jinja2
    venv/bin/python tests/golden/make_chats.py TEMPLATES

TEMPLATES is a folder with the published templates, a file each, which are not kept here:
llama2.jinja (meta-llama/Llama-2-7b-chat-hf), llama3.jinja (Meta-Llama-3-8B-Instruct),
llama3.1.jinja (Llama-3.1-8B-Instruct), llama3.3.jinja (Llama-3.3-70B-Instruct),
mistral_v0.1.jinja, mistral_v0.2.jinja (mistralai/Mistral-7B-Instruct, as first published),
mistral_v1.jinja (the same with system messages), mistral_v0.3.jinja,
mistral_nemo.jinja (Mistral-Nemo-Instruct-2407), qwen2.jinja, qwen2.5.jinja,
qwen3_first.jinja (April 2025), qwen3.jinja, qwen3_instruct_2507.jinja (Qwen), chatml.jinja,
smollm2.jinja (HuggingFaceTB/SmolLM2-1.7B-Instruct). With DSTRAIN_CHAT_TEMPLATES=TEMPLATES,
data_test also recognises each of them and renders through it.
"""
import json
import pathlib
import random
import sys

import jinja2
from transformers.utils.chat_template_utils import render_jinja_template

HERE = pathlib.Path(__file__).resolve().parent
BOS, EOS = "<s>", "</s>"
NAMES = ["llama2", "llama3", "llama3.1", "llama3.3", "mistral_v0.1", "mistral_v0.2", "mistral_v1",
         "mistral_v0.3", "mistral_nemo", "qwen2", "qwen2.5", "qwen3_first", "qwen3",
         "qwen3_instruct_2507", "chatml", "smollm2"]
TEXTS = ["", "Hi", " padded \n", "\n\nlines\n\n", "\u00a0\u3000wide\u2029", "\x1cfs\x85",
         "two\nlines",
         "<think>\nplan\n</think>\n\nanswer", "no opening</think>rest", "<think></think>",
         "a<think>b</think>c<think>d</think>\ne", "<think>\n\n\nx\n\n</think>y",
         "caf\u00e9 \U0001f600",
         "<tool_response>r</tool_response>", "it's \"quoted\" {{ not a tag }}"]


def made_up(draw):
    """Mostly in order, sometimes not."""
    turns = []
    if draw.random() < 0.4:
        turns.append("system")
    for i in range(draw.randrange(0, 6)):
        turns.append(("user", "assistant")[i % 2])
    for i in range(len(turns)):
        if draw.random() < 0.06:
            turns[i] = draw.choice(["system", "user", "assistant"])
    turns = turns or ["user"]
    return [{"role": role, "content": draw.choice(TEXTS)} for role in turns]


def render(template, messages):
    try:
        rendered, _ = render_jinja_template([messages], chat_template=template, bos_token=BOS,
                                            eos_token=EOS)
        return {"text": rendered[0]}
    except jinja2.exceptions.TemplateError as error:
        return {"error": str(error)}


def main():
    folder = pathlib.Path(sys.argv[1])
    draw = random.Random(5)
    conversations = [
        [{"role": "user", "content": "Hi"}],
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
         {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"},
         {"role": "assistant", "content": "Bye."}],
        [{"role": "assistant", "content": "First"}],
        [{"role": "system", "content": ""}],
    ] + [made_up(draw) for _ in range(40)]
    templates = {name: (folder / f"{name}.jinja").read_text() for name in NAMES}
    cases = [{"messages": messages,
              "rendered": {name: render(text, messages) for name, text in templates.items()}}
             for messages in conversations]
    lines = ",\n".join(json.dumps(case) for case in cases)
    head = f'{{"bos": "{BOS}", "eos": "{EOS}", "cases": ['
    (HERE / "chats.json").write_text(f"{head}\n{lines}\n]}}\n")


if __name__ == "__main__":
    main()
