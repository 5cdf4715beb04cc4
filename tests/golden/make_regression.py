#!/usr/bin/env python3
"""Makes regression.json: the losses of small models with mean squared errors, in float64 PyTorch.

    python3 -m venv venv && venv/bin/pip install torch && venv/bin/python tests/golden/make_regression.py

Weights and data are sines, so that tests/library/library_rank.cpp makes the same. Described in
README.md.
"""
import json
import math
import pathlib

import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
STEPS, SEQUENCES, LENGTH = 8, 12, 4
FEATURES, TARGETS, VOCABULARY, CLASSES, WIDTH = 6, 3, 11, 5, 16


def numbers(count, first, step):
    values = [math.sin(first + step * i) for i in range(count)]
    return torch.tensor(values, dtype=torch.float32).double()


class Regression(nn.Module):
    """Two linear layers; positions with label -100 do not count."""

    def __init__(self):
        super().__init__()
        self.linear1 = nn.Linear(FEATURES, WIDTH)
        self.linear2 = nn.Linear(WIDTH, TARGETS)

    def loss(self, x, y, tokens, labels):
        counted = labels != -100
        return nn.functional.mse_loss(self.linear2(self.linear1(x).relu())[counted], y[counted])


class Both(nn.Module):
    """Tokens and features in, half a cross-entropy and two mean squared errors out."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.linear = nn.Linear(FEATURES, WIDTH)
        self.predict = nn.Linear(WIDTH, TARGETS)
        self.classes = nn.Linear(WIDTH, CLASSES, bias=False)

    def loss(self, x, y, tokens, labels):
        hidden = torch.nn.functional.silu(self.tokens(tokens) + self.linear(x))
        counted = labels != -100
        entropy = nn.functional.cross_entropy(self.classes(hidden)[counted], labels[counted])
        return 0.5 * entropy + 2 * nn.functional.mse_loss(self.predict(hidden)[counted], y[counted])


class Own(nn.Module):
    """Tokens in, a loss that PyTorch does not have out: the mean of log(cosh(error))."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, FEATURES)

    def loss(self, x, y, tokens, labels):
        return (self.tokens(tokens) - x).cosh().log()[labels != -100].mean()


def batch(step, counts_all):
    rows = SEQUENCES * LENGTH
    first = step * rows
    positions = torch.arange(first, first + rows)
    x = numbers(rows * FEATURES, 0.37 * first * FEATURES, 0.37).view(rows, FEATURES)
    y = numbers(rows * TARGETS, 0.23 * first * TARGETS, 0.23).view(rows, TARGETS)
    labels = positions % CLASSES
    if not counts_all:
        labels[positions % 7 == 3] = -100
    return x, y, positions * 7 % VOCABULARY, labels


def train(model, counts_all):
    model.double()
    for i, (_, parameter) in enumerate(model.named_parameters()):
        values = 0.3 * numbers(parameter.numel(), 1 + 3 * i, 0.7)
        parameter.data.copy_(values.float().view(parameter.shape))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    steps = []
    for step in range(STEPS):
        loss = model.loss(*batch(step, counts_all))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.4)
        optimizer.step()
        steps.append({"loss": loss.item(), "grad_norm": norm.item()})
    return steps


def main():
    torch.set_default_dtype(torch.float64)
    runs = {"regression": train(Regression(), True), "both": train(Both(), False),
            "own": train(Own(), False)}
    (HERE / "regression.json").write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
