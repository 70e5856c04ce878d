"""Files of weights: the same for the same weights, and read with care."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from recurra.errors import CheckpointError
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.training.checkpoint import optimiser_tensors, put_optimiser


def test_what_is_written_is_read_and_the_same_tensors_are_the_same_file(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 2), "b": torch.arange(4), "empty": torch.zeros(0)}
    for name in ("one", "two"):
        write_tensors(tmp_path / name, tensors, {"step": 3, "words": ["ä"]})
    found, about = read_tensors(tmp_path / "one")
    assert about == {"step": 3, "words": ["ä"]}
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_weights_that_are_tied_are_stored_once(tmp_path: Path) -> None:
    shared = torch.randn(100, 100)
    write_tensors(tmp_path / "tied", {"a": shared, "b": shared})
    assert (tmp_path / "tied").stat().st_size < 45_000
    found, _ = read_tensors(tmp_path / "tied")
    assert torch.equal(found["a"], found["b"])


def test_a_missing_file_says_that_the_run_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist: this is not a finished run"):
        read_tensors(tmp_path / "none")


def header(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


BROKEN = [
    b"",
    b"1234567",
    b"hello, I am not a file of weights at all",
    header(b"{"),
    header(b'{"a": 3}'),
    header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'),
    header(b'{"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}}') + bytes(8),
    header(b'{"__metadata__": {"recurra": "{"}}'),
    header(b'{"__metadata__": {"recurra": "[]"}}'),
    header(b'{"__metadata__": {"recurra": "{\\"shared\\": {}}"}}'),
    header(b'{"__metadata__": {"recurra": "{\\"shared\\": {}, \\"about\\": 3}"}}'),
    struct.pack("<Q", 1 << 40) + bytes(100),
    struct.pack("<Q", 0),
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_file_is_said_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(CheckpointError):
        read_tensors(tmp_path / "a")


@given(st.integers(0, 400), st.integers(0, 255), st.integers(0, 500))
def test_no_changed_byte_and_no_cut_breaks_out_of_the_error(place: int, byte: int, cut: int) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        write_tensors(path, {"a": torch.ones(20), "b": torch.ones(2, 2)}, {"x": 1})
        content = bytearray(path.read_bytes())
        content[place % len(content)] = byte
        path.write_bytes(bytes(content[: max(1, len(content) - cut)]))
        try:
            found, _ = read_tensors(path)
        except CheckpointError:
            return
        assert all(isinstance(tensor, torch.Tensor) for tensor in found.values())


def test_weights_that_do_not_fit_are_refused_with_the_first_that_does_not(tmp_path: Path) -> None:
    model = nn.Linear(2, 3)
    good = dict(model.state_dict())
    for tensors, said in (
        ({"weight": good["weight"]}, "lacks bias"),
        ({**good, "more": good["bias"]}, "has more, which the model does not have"),
        ({**good, "bias": torch.zeros(4)}, r"bias has shape \(4,\) in the file, but \(3,\) in the model"),
        ({**good, "bias": torch.full((3,), torch.nan)}, "bias contains infinite values or NaN."),
    ):
        with pytest.raises(CheckpointError, match=said):
            put_weights(model, tensors, tmp_path / "a")


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.ASGD, torch.optim.RMSprop])
def test_an_optimiser_goes_on_as_if_it_had_never_stopped(kind: type, tmp_path: Path) -> None:
    def step(model: nn.Linear, optimiser: torch.optim.Optimizer) -> None:
        optimiser.zero_grad()
        model(torch.ones(1, 2)).square().sum().backward()
        optimiser.step()

    torch.manual_seed(1)
    whole = nn.Linear(2, 3)
    options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
    first = kind(whole.parameters(), lr=0.01, **options)
    for _ in range(3):
        step(whole, first)
    again = nn.Linear(2, 3)
    again.load_state_dict(whole.state_dict())
    tensors, plain = optimiser_tensors(first, ["weight", "bias"])
    write_tensors(tmp_path / "a", tensors, plain)
    second = kind(again.parameters(), lr=0.01, **options)
    found, about = read_tensors(tmp_path / "a")
    put_optimiser(second, ["weight", "bias"], found, json.loads(json.dumps(about)))
    for _ in range(3):
        step(whole, first)
        step(again, second)
    assert torch.equal(whole.weight, again.weight)
