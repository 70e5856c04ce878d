"""Functions of torch, recorded: NumPy, C and onnxruntime compute the same numbers, at sizes that were not recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from recurra.exporting.joining import (
    difference,
    program_of,
    refuse_broken,
    relative_error,
    rounding,
    runners,
)
from recurra.exporting.recording import record, samples
from recurra.padding import Padded
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy
from recurra.programs.in_onnx import InOnnx
from recurra.programs.inputs import Input, Recordable, Running
from recurra.programs.onnx_file import has_runtime, write_graphs
from recurra.programs.onnx_functions import graphs
from recurra.programs.program import KINDS
from recurra.programs.solving import NotExportable
from recurra.programs.weights import read_weights, weights_content, write_weights

X = Input("x", ("B", "T", 6))
Y = Input("y", ("B", "T", 6))
LENGTHS = Input("lengths", ("B",), "lengths", along="T")
IDS = Input("ids", ("B", "T"), "ids", below=6)
PLACES = Input("places", ("B", "N"), "places", along="T")

WEIGHT = nn.Linear(6, 5)
NORM, GROUPS = nn.LayerNorm(6), nn.GroupNorm(2, 6)
BATCHES = nn.BatchNorm1d(6).eval()
with torch.no_grad():
    for each in (BATCHES.weight, BATCHES.bias, BATCHES.running_mean, BATCHES.running_var):
        assert each is not None
        each.add_(torch.linspace(0.1, 2, 6))
ALONG, OVER = nn.Conv1d(6, 4, 3, padding=1, stride=2), nn.Conv2d(1, 2, (3, 2), padding=1, dilation=(1, 2))
TABLE = nn.Embedding(6, 3)
SCALE = nn.Parameter(torch.tensor(0.7), requires_grad=False)


def rows(x: Tensor) -> Tensor:
    return torch.arange(len(x)).unsqueeze(1)


ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": WEIGHT,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1),
    "layer_norm": NORM,
    "group_norm": lambda x: GROUPS(x.transpose(1, 2)),
    "batch_norm": lambda x: BATCHES(x.transpose(1, 2)),
    "running_logarithms": lambda x: x.masked_fill(x < -0.5, -torch.inf).logcumsumexp(1) + x.logcumsumexp(0),
    "exact_products": lambda x: (x.double() @ x.double().transpose(1, 2)).exp().log1p().float(),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x + 1, x - 1),
    "pairs": lambda x: torch.cat([x[:, ::2], functional.pad(x, (0, 0, 0, 1))[:, 1::2]], dim=2).flatten(0, 1),
    "gelu": functional.gelu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "leaky": functional.leaky_relu,
    "powers": lambda x: x.square() + (x.abs() + 0.1).sqrt() + (x.abs() + 0.1).pow(1.5),
    "logarithms": lambda x: (x.abs() + 1).log() + x.exp().log1p() + torch.expm1(x / 3),
    "circles": lambda x: x.sin() * x.cos() + torch.atan2(x, x + 2),
    "rounded": lambda x: x.floor() + x.ceil() + x.round() + x.trunc() + x.sign(),
    "clamped": lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0.0),
    "mean": lambda x: x.mean(1) + x.mean(2).amax(1, keepdim=True) + x.var((1, 2)).unsqueeze(1),
    "largest": lambda x: x.max(1).values + x.amin(1) + x.argmax(1),
    "places": lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5]), x.contiguous()).float(),
    "unknown": lambda x: torch.where((x / x.relu()).isnan(), x, x.relu()),
    "normal": lambda x: (
        torch.special.ndtri((x / 2).sigmoid()) + torch.special.ndtri((9 * x).sigmoid().clamp(0.05, 0.98))
    ),
    "sums": lambda x: x.cumsum(1) + x.flip(1).cumsum(2),
    "ordered": lambda x: x.sort(1, descending=True).values + x.argsort(2).float(),
    "moved": lambda x: torch.cat([x[:, :, 1::2], x.roll(1, 2), x.transpose(1, 2).transpose(1, 2)[:, :, :2]], 2),
    "chunks": lambda x: torch.stack([a * b for a, b in zip(x.chunk(2, 2), x.chunk(2, 2), strict=True)]).sum(0),
    "first_and_last": lambda x: x[:, 0] + x[:, -1],
    "unfolded": lambda x: x.unflatten(2, (2, 3)).permute(0, 2, 1, 3).flatten(2),
    "windows": lambda x: x.unfold(1, 2, 1).sum(1) + x.unfold(2, 3, 2).sum((1, 2)).unsqueeze(1)[:, :, :2] * SCALE,
    "padded": lambda x: functional.pad(x, (1, 2, 0, 1), value=-1.0),
    "convolution": lambda x: ALONG(x.transpose(1, 2)),
    "picture": lambda x: OVER(x.unsqueeze(1)),
    "einsum": lambda x: torch.einsum("btd,bsd->bts", x, x) @ x,
    "where": lambda x: torch.where((x > 0) & ~(x > 1), x, -x.masked_fill(x < -1, 0.0)),
    "counted": lambda x: x / x.shape[1] + torch.arange(x.shape[1]).unsqueeze(1),
    "any": lambda x: (x > 1).any(2) | (x < 0).all(2),
    "repeated": lambda x: x.repeat(1, 2, 1).repeat_interleave(2, dim=0),
    "whole": lambda x: ((x * 7).long() % 5 + (x * 9).long() // 4).float(),
    "halves": lambda x: functional.glu(x),
    "remainders": lambda x: x.remainder(0.7) + torch.fmod(x, 0.7),
    "doubled": lambda x: (x.double().exp().sum(1) + 1).log().float(),
    "maxima": lambda x: torch.maximum(x, x.mean(1, keepdim=True)) - torch.minimum(x, -x),
    "multiplied_up": lambda x: x.cumprod(1),
    "product": lambda x: x.prod(1) + x.argmin(2).amin(1, keepdim=True),
    "turned": lambda x: x.tan() + x.sinh() + x.cosh() + x.asinh() + x.tanh(),
    "turned_back": lambda x: (x / 9).asin() + (x / 9).acos() + x.atan() + (x.abs() + 1).acosh() + (x / 9).atanh(),
    "bases": lambda x: x.exp2() + (x.abs() + 1).log2() + (x.abs() + 1).log10() + x.reciprocal().clamp(-9, 9),
    "compared": lambda x: ((x <= 0.5) & (x >= -0.5) & (x != 0) | (x.long() == 1) & (x < 3)).float() + x.sigmoid(),
    "chosen_flags": lambda x: torch.where(x > 0, x > 1, x < -1),
    "quadrants": lambda x: torch.atan2(x, x.flip(2)) + torch.atan2(x.round(), x.flip(1).round()),
    "whole_parts": lambda x: torch.div(x, 0.3, rounding_mode="floor") + ((x * 9).long() // -4).float(),
    "whole_remainders": lambda x: (x * 9).long().remainder(-4).float() + torch.fmod((x * 9).long(), 4).float(),
    "inverse_root": lambda x: (x.abs() + 1).rsqrt() + x.relu(),
    "smallest_steps": lambda x: torch.expm1(x * 1e-6) * 1e6 + torch.log1p(x.abs() * 1e-6) * 1e6,
    "largest_of_all": lambda x: x.argmax() + x.flatten().argmin(),
}

TWO: dict[str, tuple[list[Input], Callable[..., Tensor]]] = {
    "added": ([X, Y], lambda x, y: x.add(y, alpha=2) - x * y / (y.abs() + 1)),
    "masked": ([X, LENGTHS], lambda x, n: Padded(x, n).zeroed().values),
    "reversed": ([X, LENGTHS], lambda x, n: Padded(x, n).reversed().values),
    "embedded": ([IDS], TABLE),
    "gathered": ([X, IDS], lambda x, ids: x.gather(2, ids.unsqueeze(2)).squeeze(2)),
    "indexed": ([X, PLACES], lambda x, places: x[rows(x), places]),
    "scattered": ([X, IDS], lambda x, ids: x.scatter_add(2, ids.unsqueeze(2), x[:, :, :1])),
    "put": ([X, IDS], lambda x, ids: torch.zeros_like(x).scatter(2, ids.unsqueeze(2), 3.0)),
    "put_where_computed": (
        [X, IDS],
        lambda x, ids: x.scatter(2, torch.where(ids >= 4, ids - 4, ids + 1).unsqueeze(2), (x[:, :, :1] + 1).tanh()),
    ),
    "indexed_where_computed": (
        [X, PLACES],
        lambda x, places: x[rows(x) * (places >= 0), torch.where(places > 1, places - 1, places)],
    ),
    "picked": ([X, IDS], lambda x, ids: x.index_select(1, ids[0] % 2)),
}


def functions() -> list[Recordable]:
    def named(call: Callable[..., Tensor]) -> Callable[..., Mapping[str, Tensor]]:
        return lambda *given: {"out": call(*given)}

    found = [Recordable(name, [X], named(call)) for name, call in ONE.items()]
    return [*found, *(Recordable(name, inputs, named(call)) for name, (inputs, call) in TWO.items())]


class Every:
    """The functions as one program, run by NumPy, by C, compiled once for all, and by onnxruntime where it is."""

    def __init__(self, folder: Path) -> None:
        model = nn.ModuleList([WEIGHT, NORM, GROUPS, ALONG, OVER, TABLE])
        self.recordables = {each.name: each for each in functions()}
        program, arrays = program_of({name: record(model, each) for name, each in self.recordables.items()})
        write_weights(folder / "weights.bin", program, arrays)
        content, read = read_weights(folder / "weights.bin", program)
        self.runners: dict[str, Running] = {"numpy": InNumpy(program, read), "c": InC(program, content)}
        if find_spec("onnx") is not None and has_runtime():
            write_graphs(folder, graphs(program, arrays))
            self.runners["onnx"] = InOnnx(program, folder)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Every:
    return Every(tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_an_operation_gives_the_same_numbers_as_torch(every: Every, name: str) -> None:
    function = every.recordables[name]
    for seed, (B, T, N) in enumerate([(1, 2, 1), (4, 17, 3), (2, 64, 5)]):
        given = samples(function.inputs, {"B": B, "T": T, "N": N}, seed)
        with torch.no_grad():
            right: NDArray[Any] = function.call(*given)["out"].numpy()
        for by, running in every.runners.items():
            [found] = running.run(name, [each.numpy() for each in given])
            assert found.dtype == right.dtype, by
            assert found.shape == right.shape, by
            assert relative_error(found, right) < 3e-6, by


def test_every_kind_of_operation_is_tried(every: Every) -> None:
    """Narrow weights are tried in tests/programs; torch takes `all` apart."""
    program = every.runners["numpy"].program
    tried = {op.kind for function in program.functions.values() for op in function.operations}
    assert set(KINDS) - tried == {"all", "narrow_matmul", "narrow_take"}


def test_nan_and_infinity_stay_what_they_are(every: Every) -> None:
    x = np.array([[[0.0, np.inf, -np.inf, np.nan, 1.0, 2.0]] * 2], np.float32)
    for name in ("softmax", "largest", "maxima", "where"):
        right = every.recordables[name].call(torch.from_numpy(x))["out"].numpy()
        for by, running in every.runners.items():
            [found] = running.run(name, [x])
            assert np.array_equal(np.isnan(found), np.isnan(right)), (name, by)


def test_ids_that_are_nowhere_are_refused_by_c_too(every: Every) -> None:
    from recurra.errors import DataError

    x, places = np.zeros((1, 3, 6), np.float32), np.array([[3]])
    with pytest.raises(DataError, match="an id is out of range"):
        every.runners["c"].run("indexed", [x, places])
    with pytest.raises(DataError, match="cannot compute indexed"):
        every.runners["numpy"].run("indexed", [x, places])


class Own(nn.Module):
    """A module that nobody here has seen."""

    def __init__(self, call: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"out": self.call(x)}


def _looped(x: Tensor) -> Tensor:
    for x_t in x.unbind(1):
        x = x + x_t.unsqueeze(1).cumsum(2)
    return x


def _written(x: Tensor) -> Tensor:
    found = torch.zeros_like(x)
    found[:, 1:] += x[:, :-1]
    return found


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x if x.sum() > 0 else -x, "depends on the values of its inputs"),
        (lambda x: x[x > 0], "sizes depend on the values of its inputs"),
        (functional.dropout, "it draws random numbers"),
        (_looped, "it does other things for inputs of other sizes"),
        (lambda x: torch.fft.rfft(x).abs(), "which a program does not have"),
        (lambda x: x.half().exp().float(), "it computes in torch.float16"),
    ],
)
def test_what_a_program_cannot_do_is_refused_in_words(call: Callable[[Tensor], Tensor], words: str) -> None:
    module = Own(call)
    with pytest.raises(NotExportable, match=words) as refused:
        record(module, Recordable("own", [X], module))
    assert str(refused.value).startswith("this model cannot be exported: in `own`, ")


def test_a_module_that_writes_in_place_is_recorded_as_one_that_does_not() -> None:
    module = Own(_written)
    program, weights = program_of({"own": record(module, Recordable("own", [X], module))})
    x = torch.randn(2, 9, 6)
    [found] = InNumpy(program, weights).run("own", [x.numpy()])
    assert np.allclose(found, _written(x).numpy())


# How the export compares


def one_function(call: Callable[[Tensor], Tensor]) -> tuple[Recordable, Any, Any]:
    module = Own(call)
    function = Recordable("own", [X], module)
    return function, *program_of({"own": record(module, function)})


def test_c_is_compared_with_the_model_too() -> None:
    """Weights that are off by 3e-5 stand for a function of C that loses digits."""
    function, program, weights = one_function(WEIGHT)
    assert [each.name for each in runners(program, weights)] == ["numpy", "c"]
    assert all(difference(each, function, WEIGHT) < 1e-6 for each in runners(program, weights))
    changed = {name: array * np.float32(1 + 3e-5) for name, array in weights.items()}
    with pytest.raises(NotExportable, match=r"gives out that is off by \d\.\de-05 .* run by C"):
        difference(InC(program, weights_content(program, changed)), function, WEIGHT)


def test_rounding_is_allowed_for_where_the_model_itself_rounds() -> None:
    """What is divided by a sum that is nearly 0 has few digits."""
    x = torch.tensor([[[1.0, -0.9999]], [[0.5, 2.0]]])
    by = nn.Linear(2, 1).requires_grad_(False)
    before = {name: weight.clone() for name, weight in by.state_dict().items()}
    divided, doubled = Own(lambda x: 1 / x.sum(2)), Own(lambda x: by(x) * 2)
    assert 1e-5 < rounding(Recordable("own", [X], divided), divided, [x], divided(x))["out"] < 1e-3
    assert 0 < rounding(Recordable("own", [X], doubled), by, [x], doubled(x))["out"] < 1e-6
    assert all(torch.equal(weight, before[name]) for name, weight in by.state_dict().items()), "as it was"


def test_a_model_whose_training_went_wrong_is_not_exported() -> None:
    broken = nn.Linear(2, 2)
    with torch.no_grad():
        broken.bias[1] = float("nan")
    with pytest.raises(NotExportable, match="its weight bias has a number that is NaN or infinite"):
        refuse_broken(broken)
    refuse_broken(nn.Linear(2, 2))
