#!/usr/bin/env python3
"""What tokenizers.sh has checked: dstrain's tokens beside those of tokenizers and sentencepiece.

    texts PROGRAM COUNT DIRECTORY...   COUNT random texts, tokens and decoded texts
    characters PROGRAM [STEP...]       what every character is taken for, and becomes
    speed BENCH DIRECTORY...           MB per second of processor time, beside the library's
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
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


def replaced(regex):
    return {"type": "Replace", "pattern": {"Regex": regex}, "content": "~"}


# Steps that show what a library takes a character for.
PROBES = {name: ("normalizer", replaced(name)) for name in
          (r"\p{L}", r"\p{N}", r"\p{M}", r"\p{Lu}", r"\p{Ll}", r"\p{P}", r"\p{S}", r"\s", r"\d",
           r"\w", r"[\w_]", r"\W", "(?i:'s)", "(?i:k)")}
PROBES |= {name: ("normalizer", {"type": name}) for name in
           ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")}
PROBES["Punctuation"] = ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [
    {"type": "Punctuation", "behavior": "Removed"},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]})
PROBES["WhitespaceSplit"] = ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [
    {"type": "WhitespaceSplit"}, PROBES["Punctuation"][1]["pretokenizers"][1]]})
PROBES["single_word"] = ("added_tokens", [{"id": 1000, "content": "word", "single_word": True}])
FLAGS = {"lstrip": False, "rstrip": False, "normalized": False, "special": False}


def check_characters(program, *names):
    """Prints the characters that are not the same to both, besides those that Python's tables lack."""
    # Beyond these, nothing is assigned or all of it is private.
    codes = [*range(1, 0xD800), *range(0xE000, 0x33480), *range(0xE0000, 0xE0200)]
    texts = [f"{chr(code)}word'{chr(code)} e{chr(code)}\u0301".encode() for code in codes]
    tokenizers = golden.OUT / "gpt2" / "tokenizer.json"
    with tempfile.TemporaryDirectory() as folder:
        for name in names or PROBES:
            key, step = PROBES[name]
            document = json.loads(tokenizers.read_text())
            document[key] = step if key != "added_tokens" else [token | FLAGS for token in step]
            pathlib.Path(folder, "tokenizer.json").write_text(json.dumps(document))
            print_apart(name, [text.decode()[0] for text, _, _ in differences(program, folder, texts)])
    if names:
        return
    clusters = [f"a{chr(code)}\u0301{chr(code)} \u0f71\u0f72{chr(code)}".encode() for code in codes]
    apart = [text.decode()[1] for text, _, _ in differences(program, golden.OUT / "t5", clusters)]
    print_apart("Precompiled", apart)


def print_apart(name, apart):
    older = [char for char in apart if unicodedata.ucd_3_2_0.category(char) != "Cn"]
    known = [char for char in apart if unicodedata.category(char) != "Cn"]
    print(f"{name}: {len(apart)} characters differ, {len(known)} of them in Unicode "
          f"{unicodedata.unidata_version}, {len(older)} in 3.2: {ranges(known)}; others "
          f"{ranges(set(apart) - set(known))}", flush=True)


def ranges(chars):
    runs = []
    for code in sorted(map(ord, chars)):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return " ".join(f"{a:04X}" if a == b else f"{a:04X}-{b:04X}" for a, b in runs)


def check_speed(bench, *directories):
    os.environ["RAYON_NUM_THREADS"] = "1"
    for directory in directories:
        line = subprocess.run([bench], capture_output=True, text=True, check=True,
                              env=os.environ | {"DSTRAIN_TOKENIZER": directory}).stdout
        mine = json.loads(line.split("\n")[0])
        text = pathlib.Path(mine["file"]).read_text(errors="replace")
        tokenizer = golden.open_tokenizer(pathlib.Path(directory))
        speeds = []
        for _ in range(3):
            begin = time.process_time()
            for start in range(0, len(text), mine["piece"]):
                tokenizer.encode_fast(text[start:start + mine["piece"]])
            speeds.append(len(text.encode()) / 1e6 / (time.process_time() - begin))
        library = sorted(speeds)[1]
        print(f"{directory}: dstrain {mine['MB/s']:.1f} MB/s, library {library:.1f} MB/s, "
              f"{mine['MB/s'] / library:.1f} times", flush=True)


if __name__ == "__main__":
    {"texts": check_texts, "characters": check_characters, "speed": check_speed}[sys.argv[1]](*sys.argv[2:])
