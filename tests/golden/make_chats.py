#!/usr/bin/env python3
"""Makes chats.json beside this script: conversations as transformers renders them with the templates
of chat_templates/, which are our own spellings of the formats of models.

    python3 -m venv venv && venv/bin/pip install transformers==5.24.0 jinja2
    venv/bin/python tests/golden/make_chats.py

chats.json: "tokens" and "date", which the templates are given; "cases" with "messages", where there are
any "variables", and "rendered": by template its "text" or the "error" that it raises, true where it is
no error of its own. "dropped" names what a text lacks: numbers of messages, and variables.
"""
import copy
import datetime
import json
import pathlib
import random

import jinja2
from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import _normalize_chat_messages, render_jinja_template

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
DATE = "2026-11-29"
# Those that were compared with the templates that models are published with, in these 44 cases.
PUBLISHED = ["llama2", "llama3", "llama3.1", "llama3.3", "mistral_v0.1", "mistral_v0.2", "mistral_v1",
             "mistral_v0.3", "mistral_nemo", "qwen2", "qwen2.5", "qwen3_first", "qwen3",
             "qwen3_instruct_2507", "chatml", "smollm2"]
TEXTS = ["", "Hi", " padded \n", "\n\nlines\n\n", "\u00a0\u3000wide\u2029", "\x1cfs\x85",
         "two\nlines",
         "<think>\nplan\n</think>\n\nanswer", "no opening</think>rest", "<think></think>",
         "a<think>b</think>c<think>d</think>\ne", "<think>\n\n\nx\n\n</think>y",
         "caf\u00e9 \U0001f600",
         "<tool_response>r</tool_response>", "it's \"quoted\" {{ not a tag }}"]
PARAMETERS = {"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string", "description": "A <city>, \"Z\u00fcrich\""},
    "days": {"type": "integer", "default": 3}, "unit": {"type": "string", "enum": ["c", "f"]},
    "options": {"type": "object", "properties": {
        "deep": {"type": "array", "items": {"type": ["number", "null"]}}, "any": {"anyOf": [{"type": "string"}, {}]}}}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells & more", "parameters": PARAMETERS}},
         {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}}]
DOCUMENTS = [{"title": "One", "text": "caf\u00e9"}, {"title": "", "text": "two\nlines"}]


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


def plain_conversations():
    draw = random.Random(5)
    return [
        [{"role": "user", "content": "Hi"}],
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
         {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"},
         {"role": "assistant", "content": "Bye."}],
        [{"role": "assistant", "content": "First"}],
        [{"role": "system", "content": ""}],
    ] + [made_up(draw) for _ in range(40)]


def call(arguments, number="abcdef012"):
    return {"id": number, "type": "function", "function": {"name": "weather", "arguments": arguments}}


def conversations_with_more():
    """Messages and variables that not every template knows."""
    def with_tools(calls, content="", **more):
        results = [{"role": "tool", "tool_call_id": each["id"], "name": "weather", "content": "{\"t\": 21.5}"} for each in calls]
        return [{"role": "user", "content": "How warm?"}, {"role": "assistant", "content": content, "tool_calls": calls, **more},
                *results, {"role": "assistant", "content": "Warm."}]

    paris = call({"city": "Paris"})
    system = [{"role": "system", "content": "Be brief."}]
    thinks = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So.", "reasoning_content": "\nHm.\n"}]
    yield with_tools([paris]), {"tools": TOOLS}
    yield system + with_tools([paris], content=None), {"tools": TOOLS[:1]}
    yield with_tools([paris, call({"city": "Z\u00fcrich \"x\"", "days": 2, "f": 1.5, "n": None, "b": True, "l": [1, {}]}, "012345678")],
                     content="Let me see."), {"tools": TOOLS}
    yield with_tools([paris], thinking="Ask for <it>."), {"tools": TOOLS}
    yield with_tools([call("{\"city\": \"Rome\"}")]) + [{"role": "user", "content": "And there?"}], \
        {"tools": TOOLS, "add_generation_prompt": True}
    yield system + [{"role": "user", "content": "Hi"}], {"tools": TOOLS}
    yield [{"role": "user", "content": "Hi"}], {"add_generation_prompt": True}
    yield [{"role": "user", "content": "Hi"}], {"add_generation_prompt": True, "enable_thinking": False, "reasoning_effort": "low"}
    yield thinks, {}
    yield thinks + [{"role": "user", "content": "And?"}, {"role": "assistant", "content": "So.", "thinking": "Again."}], {}
    yield thinks[:1] + [{"role": "assistant", "content": "So.", "reasoning": "Hm."}], {}
    yield [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}], {"documents": DOCUMENTS}
    yield [{"role": "user", "content": [{"type": "text", "text": "Two "}, {"type": "text", "text": "parts"}]},
           {"role": "assistant", "content": [{"type": "text", "text": "One"}]}], {}
    yield [{"role": "developer", "content": "Rules."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}], {}
    yield [{"role": "user", "content": "Hi"}, {"role": "ipython", "content": "4"}, {"role": "assistant", "content": "Four."}], {}


def knows(name, template, messages, variables):
    """Whether a template is for such a conversation; chatml shows what becomes of others."""
    wanted = [word for word in ("tools", "documents", "enable_thinking") if word in variables]
    wanted += ["tool_calls"] * any("tool_calls" in message for message in messages)
    wanted += [".type == 'text'"] * any(isinstance(message["content"], list) for message in messages)
    wanted += [message["role"] for message in messages if message["role"] in ("developer", "ipython")]
    if any(key in message for message in messages for key in ("reasoning_content", "reasoning", "thinking")):
        wanted.append("reasoning_content" if name != "gpt_oss" else "thinking")
    is_plain = all(isinstance(message["content"], (str, type(None))) for message in messages)
    return name == "chatml" and is_plain or all(word in template for word in wanted)


def render(template, messages, variables):
    try:
        rendered, _ = render_jinja_template(
            [_normalize_chat_messages(messages)], chat_template=template, tools=variables.get("tools"),
            documents=variables.get("documents"), **TOKENS,
            **{name: value for name, value in variables.items() if name not in ("tools", "documents")})
        return {"text": rendered[0]}
    except jinja2.exceptions.TemplateError as error:
        return {"error": str(error) if type(error) is jinja2.exceptions.TemplateError else True}
    except (TypeError, ValueError, AttributeError):
        return {"error": True}


def dropped(template, messages, variables, found):
    """What another text would not change: variables, and numbers of messages."""
    names = [name for name in ("tools", "documents") if name in variables and name not in template]
    for i, message in enumerate(messages):
        for key in ("content", "tool_calls", "reasoning_content", "thinking", "reasoning"):
            is_thought = key not in ("content", "tool_calls")
            if not message.get(key) or is_thought and i + 1 < len(messages):
                continue
            # Templates drop the thoughts of earlier answers, which may be all that these are.
            if message["role"] == "assistant" and key == "content" and "</think>" in message[key]:
                continue
            other = copy.deepcopy(messages)
            if key == "tool_calls":
                other[i][key][0]["function"].update(name="another", arguments={"k": "another"})
            else:
                other[i][key] = "another"
            if render(template, other, variables) == found:
                names.append(i)
                break
    return names


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(DATE)


def rendered_by(templates, messages, variables):
    by_name = {}
    for name, template in templates.items():
        found = render(template, messages, variables)
        lacks = dropped(template, messages, variables, found) if "text" in found else []
        by_name[name] = found | ({"dropped": lacks} if lacks else {})
    return by_name


def main():
    chat_template_utils.datetime = Clock
    templates = {path.stem: path.read_text() for path in sorted((HERE / "chat_templates").glob("*.jinja"))}
    published = {name: templates[name] for name in PUBLISHED}
    cases = []
    for i, messages in enumerate(plain_conversations()):
        # The other templates in a third of them.
        rendered = rendered_by(templates if i < 4 or i % 3 == 0 else published, messages, {})
        cases.append({"messages": messages, "rendered": rendered})
    for messages, variables in conversations_with_more():
        case = {"messages": messages}
        if variables:
            case["variables"] = variables
        knowing = {name: text for name, text in templates.items() if knows(name, text, messages, variables)}
        cases.append(case | {"rendered": rendered_by(knowing, messages, variables)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    head = f'{{"tokens": {json.dumps(TOKENS)}, "date": "{DATE}", "cases": ['
    (HERE / "chats.json").write_text(f"{head}\n{lines}\n]}}\n")


if __name__ == "__main__":
    main()
