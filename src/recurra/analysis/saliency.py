"""How much each token that was read speaks for what was answered: gradient × input, and integrated gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from recurra.errors import DataError
from recurra.padding import Padded, fitted, longest
from recurra.views.several import Several
from recurra.views.tokens import FEW, TokenRow, Tokens
from recurra.views.view import labels, rounded
from recurra.views.viewer import MATTERED

Method = Literal["integrated", "gradient"]

NAMES: dict[Method, str] = {"integrated": "integrated gradients", "gradient": "gradient × input"}

TOLERANCE = 0.01
"""Integrated gradients are refined until they add up to the whole but for so much of it."""

FEWEST, AT_ONCE, MOST_POINTS = 16, 128, 512
"""So many points of the way from nothing to the input are looked at: at first, together, and at most."""

LEAST_CHANGE = 0.1
"""Where the input changed less than this, what is missing is a share of this."""

MOST = 60
"""So many answers, such as the tokens of a long text, are explained at most."""

WORK = 60_000
"""So many tokens × answers × points are looked at: of a long text fewer answers are explained, in seconds."""


@dataclass(frozen=True, eq=False)
class Saliency:
    """Tokens that were read, answers, and what each token adds to each answer: values (answers, tokens).

    `whole` is f(x) of each answer, `nothing` is f where every token's vector is 0: integrated gradients add up to the
    difference.

    >>> found = Saliency(["not", "bad"], ["praise"], [[1.5, -0.5]], [2.0], [1.0], "integrated", "log odds")
    >>> found.missing.tolist()
    [0.0]
    """

    tokens: Sequence[str]
    answers: Sequence[str]
    values: ArrayLike
    whole: ArrayLike
    nothing: ArrayLike
    method: Method
    unit: str
    title: str = ""
    left_out: int = 0  # answers that are not explained, for there are too many

    def __post_init__(self) -> None:
        shape = np.asarray(self.values).shape
        if shape != (len(self.answers), len(self.tokens)):
            raise DataError(
                f"{len(self.answers)} answers and {len(self.tokens)} tokens need one row per answer and one column "
                f"per token, but the values have shape {shape}."
            )
        if 0 in shape:
            raise nothing()
        for name in ("values", "whole", "nothing"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))

    @property
    def shares(self) -> NDArray[np.float64]:
        """The values, the largest of each answer being 1 or -1."""
        values = np.asarray(self.values)
        largest = np.abs(values).max(1, keepdims=True)
        shares: NDArray[np.float64] = values / np.where(largest > 0, largest, 1)
        return shares

    @property
    def missing(self) -> NDArray[np.float64]:
        """Of each answer, what the values lack to f(x) - f(0), as a share of it."""
        change = np.asarray(self.whole) - np.asarray(self.nothing)
        lack = np.abs(np.asarray(self.values).sum(1) - change)
        found: NDArray[np.float64] = lack / np.maximum(np.abs(change), LEAST_CHANGE)
        return found


def explained(tokens: int) -> int:
    """So many answers are explained where so many tokens were read.

    >>> explained(10), explained(200)
    (60, 18)
    """
    return max(1, min(MOST, WORK // (FEWEST * max(1, tokens))))


def nothing() -> DataError:
    """Where there are no tokens, or no answers."""
    return DataError("there is nothing to explain: the input or the output is empty.")


class Probe(NamedTuple):
    """What saliency needs: a function f of a batch of equal rows, and the embedding modules."""

    tokens: Sequence[str]
    answers: Sequence[str]
    network: nn.Module
    read: Callable[[nn.Module], Sequence[nn.Module]]  # of a network, the modules
    batch: Callable[[int], Any]  # so many equal rows
    values: Callable[[Any, Any], Tensor]  # of a network and a batch: f, (rows, answers)
    unit: str
    title: str = ""
    left_out: int = 0


def saliency(probe: Probe, method: Method) -> Saliency:
    """What each token adds to each answer.

        gradient × input      a_i = x_i · ∂f(x)/∂x_i
        integrated gradients  a_i = x_i · ∫₀¹ ∂f(αx)/∂x_i dα,   Σ_i a_i = f(x) − f(0)     (Sundararajan et al. 2017)

    with x_i the vector of token i, in double precision. The integral is Gauss's, with as many points as are needed to
    add up to the whole within 1 %, as far as WORK allows.
    """
    if not probe.tokens or not probe.answers:
        raise nothing()
    network = copy.deepcopy(probe.network)
    if longest(next(network.parameters()).device) != torch.float64:
        network = network.cpu()
    network = network.double()
    with _one_thread():
        return _added(probe, network, method)


def _added(probe: Probe, network: nn.Module, method: Method) -> Saliency:
    with torch.no_grad():
        whole, nothing = _values(probe, network, torch.tensor([1.0, 0.0]))[0].cpu().numpy()
    points = 1 if method == "gradient" else FEWEST
    while True:
        values = _weighed(probe, network, points)
        found = Saliency(
            probe.tokens,
            probe.answers,
            values,
            whole,
            nothing,
            method,
            probe.unit,
            probe.title,
            probe.left_out,
        )
        if method == "gradient" or found.missing.max() <= TOLERANCE / 2:
            return found
        points *= 2
        if points > MOST_POINTS or points * len(probe.tokens) * len(probe.answers) > WORK:
            return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products of few rows are quicker by one thread, many times so where others work on the same machine."""
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads)


def _weighed(probe: Probe, network: nn.Module, points: int) -> NDArray[np.float64]:
    """(answers, tokens): the mean of x · ∂f/∂x over points of the way to x; of one point, at x itself."""
    at, weights = np.polynomial.legendre.leggauss(points)
    alphas = torch.from_numpy((at + 1) / 2 if points > 1 else np.ones(1))
    pairs = zip(alphas.split(AT_ONCE), torch.from_numpy(weights / weights.sum()).split(AT_ONCE), strict=True)
    return np.sum([_of_points(probe, network, *pair) for pair in pairs], axis=0)


def _of_points(probe: Probe, network: nn.Module, alphas: Tensor, weights: Tensor) -> NDArray[np.float64]:
    values, vectors = _values(probe, network, alphas)
    found = []
    for answer in values.sum(0):
        slopes = torch.autograd.grad(answer, [leaf for leaf, _ in vectors], retain_graph=True, allow_unused=True)
        each = [
            (slope * own).sum(2) if slope is not None else torch.zeros_like(own[..., 0])
            for slope, (_, own) in zip(slopes, vectors, strict=True)
        ]
        mean: Tensor = (sum(each[1:], each[0]) * weights[:, None].to(each[0])).sum(0)
        found.append(mean[: len(probe.tokens)])
    return torch.stack(found).cpu().numpy()


def _values(probe: Probe, network: nn.Module, alphas: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """f for rows whose tokens' vectors are multiplied by α, (rows, answers); and those vectors, as leaves, with x."""
    with _multiplied(probe.read(network), alphas) as vectors:
        values = probe.values(network, fitted(probe.batch(len(alphas)), network))[:, : len(probe.answers)]
    return values, vectors


@contextmanager
def _multiplied(modules: Sequence[nn.Module], alphas: Tensor) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """While this lasts, what each module gives first is multiplied by α, row by row.

    Later outputs are left alone: sequence to sequence may read and write with one table of vectors.
    """
    found: list[tuple[Tensor, Tensor]] = []
    done: set[nn.Module] = set()

    def multiply(module: nn.Module, _: Any, output: Tensor | Padded) -> Tensor | Padded | None:
        if module in done:
            return None
        done.add(module)
        own = (output.values if isinstance(output, Padded) else output).detach().double()
        leaf = (own * alphas.to(own)[:, None, None]).requires_grad_()
        found.append((leaf, own))
        return Padded(leaf, output.lengths) if isinstance(output, Padded) else leaf

    hooks = [module.register_forward_hook(multiply) for module in modules]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def contributions(probe: Probe) -> Several:
    """The saliency of each input token, by integrated gradients and by gradient × input."""
    methods: tuple[Method, Method] = ("integrated", "gradient")
    return view(*(saliency(probe, method) for method in methods))


def view(*methods: Saliency) -> Several:
    """What each token adds to each answer, by each method.

    >>> one = Saliency(["not", "bad"], ["praise"], [[1.5, -0.5]], [2.0], [1.0], "integrated", "log odds")
    >>> print(view(one).text())
    integrated gradients
    praise: log odds 2.00, without the input 1.00
    token praise
    not   +1.500
    bad   -0.500
    >>> from dataclasses import replace
    >>> two = replace(one, answers=["x", "y"], values=[[1, 0], [-2, 0.5]], whole=[1, 2], nothing=[0, 0])
    >>> print(view(two).text())
    integrated gradients: contributions to the log odds of each
    x 1.00 not +1.000, bad +0.000
    y 2.00 not -2.000, bad +0.500
    """
    first = methods[0]
    numbers = {
        each.method: {name: rounded(getattr(each, name)) for name in ("values", "whole", "nothing")} for each in methods
    }
    return Several(
        [_tokens(each) for each in methods],
        "Method",
        0 if len(first.answers) <= FEW else 1,
        title=MATTERED,
        about="Blue supports the answer, orange speaks against it. Integrated gradients go from a baseline of zero "
        "vectors to the input, and their sum is the total effect of the input; gradient × input uses only the "
        "gradient at the input. Point at a word or a cell for its number.",
        numbers={
            "tokens": list(first.tokens),
            "answers": list(first.answers),
            "unit": first.unit,
            "left_out": first.left_out,
            "methods": numbers,
        },
    )


def _tokens(found: Saliency) -> Tokens:
    values, whole, nothing = (np.asarray(each) for each in (found.values, found.whole, found.nothing))
    name, rows = NAMES[found.method], []
    for number, answer in enumerate(found.answers):
        note = f"{found.unit} {whole[number]:.2f}, without the input {nothing[number]:.2f}"
        lack = found.missing[number]
        if found.method == "integrated" and lack > TOLERANCE:
            note += f"; the colours explain all of the difference except {lack:.0%}"
        said = [f"{value:+.3f}" for value in rounded(values[number])]
        heading = f"{labels([answer])[0]}: {name}"
        rows.append(TokenRow(answer, found.shares[number], said, heading, note, f"{whole[number]:.2f}"))
    return Tokens(
        found.tokens,
        rows,
        ("against", "for"),
        signed=True,
        asked="What is explained?",
        total=found.unit,
        first=int(np.abs(whole - nothing).argmax()),
        left_out=found.left_out,
        title=name,
        caption=found.title,
        subtitle=name if len(found.answers) == 1 else f"{name}: contributions to the {found.unit} of each",
    )
