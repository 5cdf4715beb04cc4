#!/usr/bin/env python3
"""What tokenizers.sh has checked: dstrain's tokens beside those of tokenizers and sentencepiece.

    texts PROGRAM COUNT DIRECTORY...   COUNT random texts, tokens and decoded texts
    characters PROGRAM DIRECTORY...    every character by itself and between letters
    speed BENCH DIRECTORY...           MB/s of one thread, beside the library in the same minute
"""
import json
import os
import pathlib
import subprocess
import sys
import time
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import make_tokenizers as golden

BATCH = 20000


def ours(program, directory, texts):
    lines = "".join(text.hex() + "\n" for text in texts)
    answer = subprocess.run([program, directory], input=lines, capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(f"{directory}: {answer.stderr}")
    for line in answer.stdout.splitlines():
        ids, kept, skipped = line.split("|")
        yield [int(each) for each in ids.split()], bytes.fromhex(kept).decode(), bytes.fromhex(skipped).decode()


def theirs(tokenizer, texts):
    for text in texts:
        ids = tokenizer.encode(golden.text_of(text))
        yield ids, tokenizer.decode(ids, False), tokenizer.decode(ids, True)


def differences(program, directory, texts):
    tokenizer = golden.open_tokenizer(pathlib.Path(directory))
    for text, left, right in zip(texts, ours(program, directory, texts), theirs(tokenizer, texts)):
        if left != right:
            yield text, left, right


def check_texts(program, count, *directories):
    for directory in directories:
        tokenizer = golden.open_tokenizer(pathlib.Path(directory))
        lists = golden.alphabets(golden.specials_of(tokenizer))
        for first in range(0, int(count), BATCH):
            # Other texts than those of the golden blocks.
            numbers = range(10**9 + first, 10**9 + min(first + BATCH, int(count)))
            texts = [golden.random_text(number, lists) for number in numbers]
            for text, left, right in differences(program, directory, texts):
                sys.exit(f"{directory}: {text!r}\n dstrain {left}\n library {right}")
        print(f"{directory}: {int(count)} texts, all the same", flush=True)


def check_characters(program, *directories):
    """Prints what differs, by Python's Unicode: characters that other versions know otherwise."""
    for directory in directories:
        codes = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
        texts = [f"a{chr(code)}1{chr(code)} {chr(code)}.e{chr(code)}\u0301".encode() for code in codes]
        apart = [text.decode()[1] for text, _, _ in differences(program, directory, texts)]
        known = [char for char in apart if unicodedata.category(char) != "Cn"]
        older = [char for char in apart if unicodedata.ucd_3_2_0.category(char) != "Cn"]
        print(f"{directory}: {len(apart)} of {len(codes)} characters differ, {len(known)} of them in "
              f"Unicode {unicodedata.unidata_version}, {len(older)} in 3.2: {ranges(known)}", flush=True)


def ranges(chars):
    runs = []
    for code in map(ord, chars):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return " ".join(f"{a:04X}" if a == b else f"{a:04X}-{b:04X}" for a, b in runs)


def check_speed(bench, *directories):
    os.environ["RAYON_NUM_THREADS"] = os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for directory in directories:
        line = subprocess.run([bench], capture_output=True, text=True, check=True,
                              env=os.environ | {"DSTRAIN_TOKENIZER": directory}).stdout
        mine = json.loads(line.split("\n")[0])
        text = pathlib.Path(mine["file"]).read_text(errors="replace")
        tokenizer = golden.open_tokenizer(pathlib.Path(directory))
        speeds = []
        for _ in range(5):
            begin = time.perf_counter()
            for start in range(0, len(text), mine["piece"]):
                tokenizer.encode(text[start:start + mine["piece"]])
            speeds.append(len(text.encode()) / 1e6 / (time.perf_counter() - begin))
        library = sorted(speeds)[2]
        print(f"{directory}: dstrain {mine['MB/s']:.1f} MB/s, library {library:.1f} MB/s, "
              f"{mine['MB/s'] / library:.1f} times", flush=True)


if __name__ == "__main__":
    {"texts": check_texts, "characters": check_characters, "speed": check_speed}[sys.argv[1]](*sys.argv[2:])
