"""Answers of networks whose steps are few kernels: on a GPU, or on the CPU where TRITON_INTERPRET=1 is set.

TRITON_INTERPRET=1 pytest tests/models/test_searching_by_kernels.py    with triton, and numpy below 2.3 for triton 3.6
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recurra.config import Seq2SeqDecoding
from recurra.engines.triton_kernels import is_interpreted
from recurra.models.searching import searched
from recurra.search.continuing import FAILURES
from recurra.search.decoding import SearchTokens
from recurra.search.graphs import Graphs
from recurra.search.search import Hypothesis
from tests.models.pairs import END, START, batch, network

WHERE = "cuda" if torch.cuda.is_available() else "cpu"
if WHERE == "cpu" and not is_interpreted():
    pytest.skip("there is neither a GPU nor TRITON_INTERPRET=1 here", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of the interpreter

ASKED = batch([[3, 4, 5, 6, 3, 4, 5, 6, 3, 4], [6, 3], [4, 4, 4, 4, 4]])
WORDS = SearchTokens(end=END, never=(START,))
NETWORKS: list[dict[str, Any]] = [
    {"wiring": "feeding", "attention": {"name": "projected_dot", "heads": 2}, "conditioning": ["output", "every"]},
    {"wiring": "outside", "tied": "output", "decoder": {"hidden": 3}},
    {"wiring": "inside", "cell": "gru", "attention": "additive", "layers": 2},
    {"wiring": "conditional", "cell": "gru", "attention": "bilinear", "copy": True},
]
DECODINGS: list[dict[str, Any]] = [
    {"width": 3, "best": 2, "coverage_penalty": 0.2},
    {"search": "greedy"},
    {"search": "greedy", "min_length": 3},  # and nothing watched
    {"search": "sampling", "top_k": 4, "no_repeat": 3},
]


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("options", NETWORKS, ids=str)
def test_few_kernels_answer_as_the_host_does(
    options: dict[str, Any], decoding: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # of the encoder, beside one on the CPU
    model = network(engine="auto", **options).float()
    asked = ASKED
    if options.get("copy"):
        places = ASKED.source.values.shape[1]
        asked = ASKED._replace(copied=torch.arange(3 * places).view(3, places) % 6 + 3, extra=3)
    settings, watch = Seq2SeqDecoding(**{"max_length": 5, **decoding}), "min_length" not in decoding
    with torch.no_grad():
        expected = searched(model, asked, settings, WORDS, watch=watch)
        model = model.to(WHERE)
        there = asked._replace(
            source=asked.source._replace(values=asked.source.values.to(WHERE)),
            copied=None if asked.copied is None else asked.copied.to(WHERE),
        )
        _, state, fixed = model.start(there)
        assert model.decoder.advancing(state, fixed.source) is not None
        graphs = Graphs(from_visit=2)
        for _ in range(3 if WHERE == "cuda" else 1):  # launched, recorded, replayed
            found = searched(model, there, settings, WORDS, watch=watch, on_device=True, graphs=graphs)
            for some, others in zip(found, expected, strict=True):
                for one, other in zip(some, others, strict=True):
                    same(one, other)
    assert not FAILURES


def same(one: Hypothesis, other: Hypothesis) -> None:
    assert (one.tokens, one.ended) == (other.tokens, other.ended)
    assert one.score == pytest.approx(other.score, abs=1e-4)
    assert (one.watched is None) == (other.watched is None)
    if one.watched is not None and other.watched is not None:
        places = other.watched.shape[1]
        assert_close(one.watched[:, :places], other.watched, rtol=0, atol=1e-4)
