"""torch.export and torch.compile(fullgraph=True) of three trained networks, beside eager torch: errors and seconds.

    python benchmarks/torch_compile.py [--rounds 30]

A classifier, a tagger with a softmax and one with a CRF are trained on a few sentences, in sizes that are usual (hidden
128, two directions). Each is read as one graph and computes a batch of 32 sentences of up to 24 words, and another one
of the same shape with other lengths. The error is the largest absolute difference of any number that the network gives.
Engines: `auto` is what recurra chooses in eager torch; where torch reads the network, the loop over the steps runs.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import recurra

MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "classifier, attention": ("classification", {"model.summary": "attention", "model.characters.cell": "none"}),
    "tagger, softmax": ("tagging", {"model.head": "softmax", "model.characters.cell": "none"}),
    "tagger, CRF": ("tagging", {"model.head": "crf", "model.characters.cell": "none"}),
}
SETTINGS = {
    "model.hidden": 128,
    "model.embedding": 64,
    "training.steps": 20,
    "training.threads": 1,
    "data.cache": False,
}
WORDS = [f"word{number}" for number in range(200)]
ROWS, STEPS = 32, 24


def sentences(seed: int) -> list[list[str]]:
    """Sentences, the longest of which has all steps."""
    chance = random.Random(seed)
    return [chance.choices(WORDS, k=STEPS if row == 0 else chance.randint(1, STEPS)) for row in range(ROWS)]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=30)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    print(f"torch {torch.__version__}, one thread; {ROWS} sentences of up to {STEPS} words")
    print(f"{'network':24}{'way':34}{'first call':>11}{'ms':>8}{'error':>10}{'other lengths':>15}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (task, settings)) in enumerate(MODELS.items()):
            compared(name, trained(task, settings, Path(folder) / str(number)), options.rounds)


def trained(task: str, settings: dict[str, object], out: Path) -> Any:
    many = [words for seed in range(4) for words in sentences(seed)]
    if task == "tagging":
        rows: list[dict[str, object]] = [
            {"words": words, "tags": [f"T{int(word[4:]) % 17}" for word in words]} for words in many
        ]
    else:
        rows = [{"text": " ".join(words), "label": f"L{int(words[0][4:]) % 7}"} for words in many]
    return recurra.train(task, train=rows, out=out, settings={**SETTINGS, **settings}, progress=False)


def compared(name: str, model: Any, rounds: int) -> None:
    network: Any = model.model
    batch, other = (model.batch([" ".join(words) for words in sentences(seed)]) for seed in (10, 11))
    exported: Any = None

    def of_export() -> Any:
        nonlocal exported
        exported = torch.export.export(network, (batch,)).module()
        return exported(batch)

    torch._dynamo.reset()
    compiled: Any = torch.compile(network, fullgraph=True)
    with torch.no_grad():
        wanted, of_other = network(batch), network(other)
        ways: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
            "eager": (lambda: network(batch), network),
            "torch.export": (of_export, lambda given: exported(given)),
            "torch.compile(fullgraph=True)": (lambda: compiled(batch), compiled),
        }
        for way, (first, again) in ways.items():
            began = time.perf_counter()
            error = furthest(first(), wanted)
            took = time.perf_counter() - began
            other_error = furthest(again(other), of_other)
            print(
                f"{name:24}{way:34}{took:>10.1f}s{milliseconds(again, batch, rounds):>8.1f}{error:>10.1e}"
                f"{other_error:>15.1e}",
                flush=True,
            )


def milliseconds(network: Callable[[Any], object], batch: object, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        network(batch)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def furthest(found: object, wanted: object) -> float:
    """The largest difference of two numbers that should be equal."""
    pairs = zip(tree_leaves(found), tree_leaves(wanted), strict=True)
    differences = [(one.double() - other.double()).abs().max() for one, other in pairs if one is not None]
    return float(torch.stack(differences).max())


if __name__ == "__main__":
    main()
