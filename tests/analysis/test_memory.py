"""What a cell with an external memory wrote and read is drawn, in every task that reads steps by a cell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from recurra import Padded, Recurrent
from recurra.analysis.gates import gates_of
from recurra.analysis.memory import MOST, memory_view
from recurra.cli import main
from recurra.errors import ConfigError
from recurra.views.several import Several

WORDS = ["a", "b", "c"]


def view_of(cell: object, **options: object) -> Several:
    torch.manual_seed(2)
    rnn = Recurrent({"name": cell, **options}, 3, 4, engine="loop")
    x = Padded.full(torch.randn(1, 3, 3))
    view = memory_view(gates_of(rnn, WORDS, lambda: rnn(x)))
    assert isinstance(view, Several)
    return view


def test_every_head_has_a_map_of_its_weights() -> None:
    view = view_of("ntm", rows=3, width=2, reads=2, writes=1)
    assert [each.title for each in view.views] == ["writes", "head 1 reads", "head 2 reads"]
    for each in view.views:
        assert np.sum(each.weights, axis=0) == pytest.approx(1, abs=1e-3)  # type: ignore[attr-defined]
    assert [each.title for each in view_of("dnc", rows=3, width=2).views] == ["writes", "reads"]


def test_the_maps_are_the_weights_of_the_equations() -> None:
    torch.manual_seed(2)
    rnn = Recurrent({"name": "dnc", "rows": 3, "width": 2}, 3, 4, engine="loop")
    x = Padded.full(torch.randn(1, 3, 3))
    [[parts]] = rnn.parts(x)
    writes, reads = memory_view(gates_of(rnn, WORDS, lambda: rnn(x))).views  # type: ignore[attr-defined]
    shown = [int(name) - 1 for name in writes.rows]
    np.testing.assert_allclose(writes.weights, parts.write_weights[0].T.detach().numpy()[shown], atol=1e-6)
    np.testing.assert_allclose(reads.weights, parts.read_weights[0].T.detach().numpy()[shown], atol=1e-6)


def test_rows_that_are_hardly_used_are_left_out() -> None:
    view = view_of("ntm", rows=200, width=2)
    assert 1 <= len(view.views[0].rows) <= MOST  # type: ignore[attr-defined]
    assert "of 200 rows" in view.about


def test_a_cell_without_a_memory_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'gru' has no external memory: train with model\.cell = 'ntm' or 'dnc'"):
        view_of("gru")


SMALL = ["training.steps=1", "training.threads=1", "training.device=cpu", "data.cache=false", "model.hidden=4"]
CELL = 'model.cell={name="ntm",rows=4,width=3}'


@pytest.mark.parametrize(
    ("task", "file", "content", "asked", "settings"),
    [
        ("tagging", "a.conll", "a\tX\nb\tY\n\n", "a b", ["model.embedding=3", "model.characters.cell=none"]),
    ],
)
def test_explain_shows_the_memory_of_a_run(
    task: str,
    file: str,
    content: str,
    asked: str,
    settings: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / file
    data.write_text(content)
    options = [word for each in [*SMALL, CELL, "model.engine=loop", *settings] for word in ("--set", each)]
    assert main(["train", task, "--train", str(data), "--out", str(tmp_path / "run"), "--quiet", *options]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "run"), asked, "--show", "memory", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)["views"]["memory"]
    assert [each["title"] for each in view["views"]] == ["writes", "reads"]
    picture = tmp_path / "memory.svg"
    assert main(["explain", str(tmp_path / "run"), asked, "--show", "memory", "--out", str(picture)]) == 0
    assert "writes" in picture.read_text()


PAIRS = "a b\tx y\nb a\ty x\n"
WRITER = ["model.embedding=3", "training.batch_size=2", "data.source.tokens=words", "data.target.tokens=words"]


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["encoder.cell=lstm", 'decoder.cell={name="dnc",rows=4,width=3}'], "decoder_memory"),
        (['encoder.cell={name="dnc",rows=4,width=3}', "decoder.cell=lstm"], "memory"),
    ],
)
def test_the_memories_of_encoder_and_decoder_are_shown_apart(
    cells: list[str], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_text(PAIRS)
    own = [f"model.{each}" for each in cells]
    options = [word for each in [*SMALL, *WRITER, "model.engine=loop", *own] for word in ("--set", each)]
    run = str(tmp_path / "run")
    assert main(["train", "seq2seq", "--train", f"{tmp_path}/a.tsv", "--out", run, "--quiet", *options]) == 0
    capsys.readouterr()
    long = ["decoding.search=greedy", "decoding.min_length=2", "decoding.max_length=3"]
    asked = ["explain", run, "a b", *(word for each in long for word in ("--set", each)), "--show"]
    assert main([*asked, shown, "--json"]) == 0
    writes, reads = json.loads(capsys.readouterr().out)["views"][shown]["views"]
    assert [writes["title"], reads["title"]] == ["writes", "reads"]
    assert len(writes["weights"][0]) == 3  # two words, and their start or end
    assert np.all(np.sum(reads["weights"], axis=0) <= 1 + 1e-6)  # shares of all rows, of which some are left out
    other = "memory" if shown == "decoder_memory" else "decoder_memory"
    assert main([*asked, other]) == 2
    assert "has no such view" in capsys.readouterr().err
