"""Which views a page offers for a task."""

from __future__ import annotations

from pathlib import Path

from tests.runtime.small_tasks import KINDS, of_every_kind


def test_what_is_not_read_in_steps_offers_no_view_of_steps(tmp_path: Path) -> None:
    offered = {name: set(task.viewers()) for name, task in of_every_kind(tmp_path).items()}
    for name, kind in KINDS.items():
        assert ("decoder" in offered[name]) == ("tree" in offered[name])
        assert ("gates" in offered[name]) == (kind in ("text", "frames", "series"))
    assert offered["classification of pictures"] == {"attention"}
    assert offered["seq2seq"] == {"attention", "probabilities", "saliency", "tree", "gates", "decoder"}
    assert offered["forecasting"] == {"forecast", "gates"}
