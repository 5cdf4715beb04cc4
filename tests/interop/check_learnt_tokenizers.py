#!/usr/bin/env python3
"""What learnt_tokenizers.sh has checked: learnt files beside those of tokenizers, and the speed.

    PROGRAM VOCABULARY [FILE...]
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import make_learnt_tokenizers as learnt
import make_tokenizers as golden

GATHERED = 100_000_000
SUFFIXES = {".h", ".html", ".md", ".pod", ".py", ".rst", ".txt"}
PIECE = 1 << 16


def gather(files):
    """The texts of files, or of what looks like text on this machine, as valid UTF-8."""
    if files:
        return "".join(pathlib.Path(file).read_bytes().decode(errors="replace") for file in files)
    texts, size = [], 0
    for folder in ("/usr/share/doc", "/usr/share/perl", "/usr/lib/python3.11", "/usr/include", sys.prefix):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if size < GATHERED and path.suffix in SUFFIXES and path.is_file():
                texts.append(path.read_bytes().decode(errors="replace"))
                size += path.stat().st_size
    return "".join(texts)


def pieces(text):
    """Cuts before ends of lines that follow something else, where the library's words end, too."""
    piece, size = [], 0
    for part in re.split(r"(?<=\S)(?=\n)", text):
        piece.append(part)
        size += len(part)
        if size > PIECE:
            yield "".join(piece)
            piece, size = [], 0
    yield "".join(piece)


def ours(program, file, size, threads, folder):
    answer = subprocess.run([program, file, str(size), str(threads), folder], capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(answer.stderr)
    return [float(seconds) for seconds in answer.stdout.split()]


def compare(size, library, folder, what):
    saved = library.to_str(pretty=True)
    mine = pathlib.Path(folder, "tokenizer.json").read_text()
    if mine == saved:
        return
    for number, (left, right) in enumerate(zip(mine.split("\n"), saved.split("\n")), 1):
        if left != right:
            sys.exit(f"{what}: {size} tokens: line {number}: dstrain {left!r}, library {right!r}")
    sys.exit(f"{what}: {size} tokens: one file is longer")


def learn_there(text, size, threads):
    """In a process of its own, as the library settles the number of its threads once."""
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    given = list(pieces(text))
    begin = time.monotonic()
    tokenizer = learnt.learn(given, size)
    return tokenizer, time.monotonic() - begin


def check_large(program, size, files, folder):
    text = gather(files)
    file = os.path.join(folder, "text")
    pathlib.Path(file).write_bytes(text.encode())
    print(f"{os.path.getsize(file) / 1e6:.0f} MB of text, {size} tokens", flush=True)
    for threads in (1, 2):
        counting, learning = ours(program, file, size, threads, folder)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            tokenizer, seconds = learn_there(text, size, threads)
            compare(size, tokenizer, folder, "the large text")
            os.write(writer, str(seconds).encode())
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(1)
        library = float(os.read(reader, 100))
        here = counting + learning
        print(f"{threads} threads: the same file; dstrain {counting:.2f} s of counting, {learning:.2f} s of "
              f"merging; library {library:.1f} s, {library / here:.1f} times", flush=True)


def check_transformers(folder):
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "Sailors' songs,  déjà vu \n\n and 12 more.<|endoftext|>"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert (tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer("<|endoftext|>")["input_ids"]) == (0, 0, [0])
    print("transformers loads the files", flush=True)


def small_text(draw, lists):
    kind = draw.randrange(4)
    if kind == 0:
        count = draw.choice([5, 50, 300])
        return b" ".join(golden.random_text(draw.randrange(10**9), lists) for _ in range(count))
    if kind == 1:
        return "".join(draw.choice("ab ") for _ in range(draw.choice([50, 500, 5000]))).encode()
    if kind == 2:
        return "".join("a" * draw.randrange(30) + draw.choice(" b\n") for _ in range(200)).encode()
    return bytes(draw.choice(b"=- \n'st") for _ in range(3000))


def check_small(program, folder):
    lists = golden.alphabets(["<|endoftext|>"])
    file = os.path.join(folder, "text")
    for seed in range(300):
        draw = random.Random(seed)
        text = small_text(draw, lists)
        pathlib.Path(file).write_bytes(text)
        size = draw.choice([257, 258, 300, 500, 5000])
        ours(program, file, size, draw.choice([1, 2, 5]), folder)
        compare(size, learnt.learn([golden.text_of(text)], size), folder, f"the small text {seed}")
    print("300 small texts: the same files", flush=True)


def main(program, size, *files):
    with tempfile.TemporaryDirectory() as folder:
        check_large(program, int(size), files, folder)
        check_transformers(folder)
        check_small(program, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
