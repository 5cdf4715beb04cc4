#!/usr/bin/env python3
"""What transformers.sh has checked: dstrain's files in the real transformers and safetensors.

    weights SOURCE DTYPE EXPORT...   each holds SOURCE's weights, rounded as torch rounds
    logits EXPORT                    the logits of tests/golden/logits.json
    loss MODEL RUN                   the loss that RUN, started from MODEL, reports for its first step
    arguments TOY CONFIG             nothing: prints those of a toy's run, and writes its ds_config
    family TOY EXPORT                logits and greedy tokens of an export of a toy of tests/golden
    family_loss TOY MODEL RUN        as loss, of a toy that was trained to MODEL
    tokenizer SOURCE EXPORT          a tokenizer that makes SOURCE's tokens, and a model of its size
"""
import json
import pathlib
import sys

import numpy
import torch
from safetensors import safe_open
from transformers import (AutoConfig, AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel,
                          T5ForConditionalGeneration)

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_families as families
import make_golden as golden
import make_pairs as pairs
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
BATCH, BLOCK = 12, 32


def load(directory, kind=GPT2LMHeadModel, **options):
    model, report = kind.from_pretrained(directory, output_loading_info=True, **options)
    for keys in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[keys], (directory, keys, report[keys])
    return model.eval()


def tensors_of(directory):
    tensors = {}
    for path in sorted(pathlib.Path(directory).glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            assert file.metadata() == {"format": "pt"}, path
            for name in file.keys():
                assert name not in tensors, (path, name)
                tensors[name] = file.get_tensor(name)
    return tensors


def check_weights(source, dtype, *exports):
    plain = {name.removeprefix("transformer."): value for name, value in tensors_of(source).items()}
    expected = {f"transformer.{name}": value.to(DTYPES[dtype]) for name, value in plain.items()}
    for export in exports:
        found = tensors_of(export)
        assert found.keys() == expected.keys(), export
        for name, value in expected.items():
            assert found[name].dtype == value.dtype and torch.equal(found[name], value), name
        config = AutoConfig.from_pretrained(export)
        assert (getattr(config, "dtype", None) or config.torch_dtype) == DTYPES[dtype], config
        loaded = load(export, dtype="auto").state_dict()
        for name, value in expected.items():
            assert torch.equal(loaded[name], value), name
        index = pathlib.Path(export, "model.safetensors.index.json")
        if index.exists():
            size = sum(value.numel() * value.element_size() for value in found.values())
            assert json.loads(index.read_text())["metadata"]["total_size"] == size


def check_logits(export):
    stored = json.loads((GOLDEN / "logits.json").read_text())
    with torch.no_grad():
        found = load(export, dtype=torch.float32)(torch.tensor([stored["tokens"]])).logits[0]
    expected = torch.tensor(stored["logits"])
    apart = ((found - expected).abs().max() / expected.abs().max()).item()
    print(f"logits: {apart:.1e} of the largest apart")
    assert apart < 1e-4


def check_loss(model, run):
    header, tokens = 512, numpy.fromfile(GOLDEN / "tokens.bin", numpy.uint16)
    rows = numpy.stack([tokens[header:][k * BLOCK : k * BLOCK + BLOCK + 1] for k in range(BATCH)])
    rows = torch.from_numpy(rows.astype(numpy.int64))
    with torch.no_grad():
        logits = load(model, dtype=torch.float64)(rows[:, :-1]).logits
    found = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()
    reported = json.loads(pathlib.Path(run, "metrics.jsonl").read_text().splitlines()[0])["loss"]
    print(f"loss: transformers {found:.7f}, dstrain {reported:.7f}")
    assert abs(found - reported) < 1e-5 * found


def print_arguments(folder, config):
    """And writes the configuration."""
    toy = json.loads(pathlib.Path(folder, "run.json").read_text())
    pathlib.Path(config).write_text(json.dumps(toy["ds_config"]))
    print(*toy["arguments"], sep="\n")


def load_toy(toy, directory):
    kind = T5ForConditionalGeneration if "source" in toy else AutoModelForCausalLM
    return load(directory, kind, dtype=torch.float32, attn_implementation="eager")


def check_family(folder, export):
    toy = json.loads(pathlib.Path(folder, "run.json").read_text())
    model = load_toy(toy, export)
    tokens = torch.tensor([toy["tokens"]])
    with torch.no_grad():
        if "source" in toy:
            given = {"input_ids": torch.tensor([toy["source"]]), "decoder_input_ids": tokens}
            text = pairs.greedy(model, toy["source"], len(toy["greedy"]))
        else:
            given = {"input_ids": tokens}
            text = families.greedy(model, toy["tokens"][:8], len(toy["greedy"]))
        found = model(**given).logits[0, -1]
    expected = torch.tensor(toy["last_logits"])
    apart = ((found - expected).abs().max() / expected.abs().max()).item()
    print(f"{folder}: logits {apart:.1e} of the largest apart, {len(text)} greedy tokens")
    assert apart < 1e-4 and text == toy["greedy"]


def check_family_loss(folder, model, run):
    toy = json.loads(pathlib.Path(folder, "run.json").read_text())
    trained = load_toy(toy, model)
    with torch.no_grad():
        if "source" in toy:
            found = pairs.loss_of(trained, *pairs.batch_of(pairs.make_pairs(), 0)).item()
        else:
            batch = golden.batch_of(golden.make_tokens(), 0)
            found = families.losses_of(trained, *batch).item()
    reported = json.loads(pathlib.Path(run, "metrics.jsonl").read_text().splitlines()[0])["loss"]
    print(f"{folder}: loss, transformers {found:.7f}, dstrain {reported:.7f}")
    assert abs(found - reported) < 1e-5 * found


def check_tokenizer(source, export):
    found, expected = (AutoTokenizer.from_pretrained(place) for place in (export, source))
    text = pathlib.Path("README.md").read_text() + "<|endoftext|>caf\u00e9 \U0001f600"
    tokens = found(text)["input_ids"]
    assert tokens == expected(text)["input_ids"]
    assert found.decode(tokens, clean_up_tokenization_spaces=False) == text
    assert max(tokens) < load(export, dtype=torch.float32).config.vocab_size
    print(f"tokenizer: {len(tokens)} tokens alike")


if __name__ == "__main__":
    checks = {"weights": check_weights, "logits": check_logits, "loss": check_loss,
              "arguments": print_arguments, "family": check_family,
              "family_loss": check_family_loss,
              "tokenizer": check_tokenizer}
    checks[sys.argv[1]](*sys.argv[2:])
