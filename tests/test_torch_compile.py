"""torch.compile(fullgraph=True) and torch.export read our networks as they are, and compute what eager torch does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves

import recurra
from recurra import Padded, Recurrent
from recurra.errors import ConfigError, EngineError

FEW = {"training.steps": 1, "training.threads": 1, "model.hidden": 8, "model.embedding": 8}
LABELLED = [{"text": "good day", "label": "+"}, {"text": "bad", "label": "-"}] * 4
TAGGED = [{"words": ["a", "dog", "runs"], "tags": ["D", "N", "V"]}, {"words": ["the", "cat"], "tags": ["D", "N"]}] * 4


class Read(nn.Module):
    """A stack as a function of tensors."""

    def __init__(self, rnn: Recurrent) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, values: Tensor, lengths: Tensor) -> tuple[Tensor, Any]:
        outputs, states = self.rnn(Padded(values, lengths))
        return outputs.values, states


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(3, 5, 4), torch.tensor([5, 2, 0])


@pytest.mark.parametrize("options", [{"cell": "lstm"}, {"cell": "gru"}, {"cell": "peephole_lstm", "skip": "highway"}])
def test_a_stack_is_exported_and_answers_for_other_lengths(options: Any, inputs: tuple[Tensor, Tensor]) -> None:
    network = Read(Recurrent(options["cell"], 4, 6, layers=2, bidirectional=True, skip=options.get("skip", "none")))
    exported = torch.export.export(network, inputs).module()
    for lengths in (inputs[1], torch.tensor([1, 4, 5]), torch.tensor([5, 5, 5])):
        assert_close(tree_leaves(exported(inputs[0], lengths)), tree_leaves(network(inputs[0], lengths)))


def test_the_number_of_rows_may_be_left_open(inputs: tuple[Tensor, Tensor]) -> None:
    network, rows = Read(Recurrent("gru", 4, 6)), torch.export.Dim("rows", min=1, max=64)
    exported = torch.export.export(network, inputs, dynamic_shapes=({0: rows}, {0: rows})).module()
    x, lengths = torch.randn(9, 5, 4), torch.arange(9) % 6
    assert_close(exported(x, lengths)[0], network(x, lengths)[0])


def test_a_stack_is_compiled_as_one_graph_and_has_the_gradients_of_eager_torch(inputs: tuple[Tensor, Tensor]) -> None:
    network = Read(Recurrent("lstm", 4, 6, layers=2, bidirectional=True))
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")

    def gradients(of: Any) -> list[Tensor]:
        network.zero_grad()
        of(*inputs)[0].square().sum().backward()
        return [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]

    assert_close(gradients(compiled), gradients(network))
    assert len(gradients(network)) == 12


def trained(task: str, folder: Path, **settings: object) -> Any:
    rows = TAGGED if task == "tagging" else LABELLED
    given = {**FEW, "data.cache": False, **{name.replace("__", "."): value for name, value in settings.items()}}
    return recurra.train(task, train=rows, out=folder, settings=given)


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("classification", {"model__summary": "attention", "model__cell": "gru"}),
        ("tagging", {"model__head": "softmax"}),
        ("tagging", {"model__head": "crf", "model__characters__cell": None}),
    ],
)
def test_classifiers_and_taggers_are_exported_and_compiled(task: str, settings: Any, tmp_path: Path) -> None:
    model = trained(task, tmp_path / "run", **settings)
    batch, other = model.batch(["a good dog", "bad"]), model.batch(["the cat runs", "dog"])
    with torch.no_grad():
        exported: Any = torch.export.export(model.model, (batch,)).module()
        compiled: Any = torch.compile(model.model, fullgraph=True, backend="eager")
        for found in (exported(batch), compiled(batch)):
            assert_close(numbers(found), numbers(model.model(batch)))
        assert_close(numbers(compiled(other)), numbers(model.model(other)))


def numbers(found: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(found) if leaf is not None]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_compiles_a_stack(inputs: tuple[Tensor, Tensor]) -> None:
    network = Read(Recurrent("lstm", 4, 6, bidirectional=True)).eval()
    with torch.no_grad():
        assert_close(torch.compile(network, fullgraph=True)(*inputs)[0], network(*inputs)[0])


def test_an_engine_that_torch_cannot_read_is_refused_by_its_name(inputs: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(EngineError, match="the engine 'vendor' cannot be compiled or exported by torch, for 'lstm'"):
        torch.export.export(Read(Recurrent("lstm", 4, 6, engine="vendor")), inputs)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning")
def test_jit_trace_is_refused_because_it_would_keep_lengths(inputs: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(ConfigError, match=r"torch\.jit\.trace would keep the number of steps .*use torch\.export"):
        torch.jit.trace(Read(Recurrent("lstm", 4, 6)), inputs)
