"""For tokenize.sh: token files beside the tokenizers library, Python's csv, gzip and zstandard."""
import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy
import zstandard
from tokenizers import Tokenizer

WORDS = ["plain", "two\nlines", 'a "quote"', "comma, and", "\ttab", "été", "\U0001f600", "",
         "  spaces ", "日本語のテキスト", "x" * 50, "\r\n", "1234567", "don't", "<|endoftext|>"]


def documents(generator, count):
    return [" ".join(generator.choices(WORDS, k=generator.randrange(60))) for _ in range(count)]


def write(path, data):
    if path.endswith(".gz"):
        data = gzip.compress(data[:len(data) // 2]) + gzip.compress(data[len(data) // 2:])
    elif path.endswith(".zst"):
        data = zstandard.compress(data)
    with open(path, "wb") as file:
        file.write(data)


def table(texts, delimiter):
    class Lines(list):
        write = list.append
    lines = Lines()
    writer = csv.writer(lines, delimiter=delimiter)
    writer.writerow(["id", "text", "more"])
    for number, text in enumerate(texts):
        writer.writerow([number, text, "x" * (number % 3)])
    return "".join(lines).encode()


def write_corpus(folder, generator):
    """Files of every kind; the texts of their documents in the order of the names."""
    texts = []
    for name in ("0.txt", "1.jsonl", "2.jsonl.gz", "3.csv", "4.tsv.zst", "5.txt.gz", "6.csv.gz"):
        kind = name.split(".")[1]
        some = documents(generator, 3000)
        if kind == "txt":
            some = ["\n".join(some)]
            data = some[0].encode()
        elif kind == "jsonl":
            ascii_only = name.endswith("gz")
            data = "".join(json.dumps({"id": 1, "text": text}, ensure_ascii=ascii_only) + "\n"
                           for text in some).encode()
        else:
            data = table(some, "," if kind == "csv" else "\t")
        write(os.path.join(folder, name), data)
        texts += some
    return texts


def expected_ids(directory, texts):
    tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
    with open(os.path.join(directory, "tokenizer_config.json")) as file:
        end = json.load(file)["eos_token"]
    end = tokenizer.token_to_id(end["content"] if isinstance(end, dict) else end)
    plain = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a").ids
    begin = whole[:len(whole) - len(plain)] if whole[-len(plain):] == plain else whole[:1]
    result = []
    for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
        ids = begin + encoding.ids
        result.append(ids if ids and ids[-1] == end else ids + [end])
    return result


def llmc_ids(folder):
    shards = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".bin"):
            continue
        path = os.path.join(folder, name)
        header = numpy.fromfile(path, dtype="<i4", count=256)
        dtype = {20240520: "<u2", 20240801: "<u4"}[header[0]]
        ids = numpy.fromfile(path, dtype=dtype, offset=1024)
        assert len(ids) == header[2], path
        shards.append(ids.astype(numpy.int64))
    return numpy.concatenate(shards)


def megatron_documents(folder):
    """As megatron/core/datasets/indexed_dataset.py describes the index."""
    result = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".idx"):
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = file.read()
        assert data[:9] == b"MMIDIDX\0\0" and data[9:17] == (1).to_bytes(8, "little")
        dtype = {4: numpy.int32, 8: numpy.uint16}[data[17]]
        sequences = int.from_bytes(data[18:26], "little")
        indices = int.from_bytes(data[26:34], "little")
        lengths = numpy.frombuffer(data, numpy.int32, sequences, 34)
        pointers = numpy.frombuffer(data, numpy.int64, sequences, 34 + 4 * sequences)
        starts = numpy.frombuffer(data, numpy.int64, indices, 34 + 12 * sequences)
        assert len(data) == 34 + 12 * sequences + 8 * indices
        assert list(starts) == list(range(sequences + 1)), path
        ids = numpy.fromfile(path[:-4] + ".bin", dtype=dtype)
        for length, pointer in zip(lengths, pointers):
            first = pointer // ids.itemsize
            result.append(ids[first:first + length].tolist())
    return result


def main():
    program, *directories = sys.argv[1:]
    for number, directory in enumerate(directories):
        with tempfile.TemporaryDirectory() as folder:
            corpus = os.path.join(folder, "corpus")
            os.mkdir(corpus)
            texts = write_corpus(corpus, random.Random(number))
            expected = expected_ids(directory, texts)
            flat = [token for ids in expected for token in ids]
            for form in ("llmc", "megatron"):
                out = os.path.join(folder, form)
                subprocess.run([program, "tokenize", "--tokenizer", directory, "--output_dir", out,
                                "--format", form, "--shard_tokens", "200000", corpus], check=True)
                if form == "llmc":
                    assert llmc_ids(out).tolist() == flat, directory
                else:
                    assert megatron_documents(out) == expected, directory
            print(f"{directory}: {len(texts)} documents, {len(flat)} tokens: the same")


if __name__ == "__main__":
    main()
