"""Optimisers by name, the learning rate over time, and averages of the weights."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.named import choose, did_you_mean
from recurra.settings import Part, SettingError, about
from recurra.training.lazy_adam import LazyAdam

OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "adadelta": torch.optim.Adadelta,
    "adagrad": torch.optim.Adagrad,
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "asgd": torch.optim.ASGD,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}

FUSED = ("adagrad", "adam", "adamw", "sgd")
"""Those with a kernel that updates all weights at once, on the CPU too."""

SPARSE: dict[str, type[torch.optim.Optimizer]] = {
    "adagrad": torch.optim.Adagrad,
    "adam": LazyAdam,
    "sgd": torch.optim.SGD,
}
"""Those that can move a few rows of a table and leave the others alone."""

SCHEDULES: dict[str, dict[str, float]] = {
    "constant": {},
    "linear": {"end": 0.0},
    "cosine": {"end": 0.0},
    "inverse_sqrt": {},
    "plateau": {"factor": 0.5, "patience": 2, "least": 0.01},
    "halving": {"times": 4, "after": 0.0},
}
"""Each with its options and their defaults."""

AVERAGES: dict[str, dict[str, float]] = {
    "ema": {"decay": 0.998},
    "mean": {"after": 0.5},
    "triggered": {"patience": 5},
    "checkpoints": {"last": 5},
}


def split(part: Part, known: Iterable[str], what: str) -> tuple[str, dict[str, Any]]:
    """A part's name, which must be known, and its options."""
    options = {"name": part} if isinstance(part, str) else dict(part)
    if "name" not in options:
        said = f'{what} = {part!r} needs a name: {{name = "{next(iter(known))}", …}}.'
        raise SettingError(said, what.split("."))
    with about(*what.split(".")):
        return choose(known, options.pop("name"), what), options


def numbers(part: Part, known: dict[str, dict[str, float]], what: str) -> tuple[str, dict[str, float]]:
    """A part whose options are numbers, with its defaults filled in."""
    name, options = split(part, known, what)
    for option, value in options.items():
        if option not in known[name]:
            said = f"{what} = '{name}' has no option '{option}'. {did_you_mean(option, known[name])}"
            raise SettingError(said, (*what.split("."), option))
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            said = f"{what}.{option} must be a number of at least 0, but is {value!r}."
            raise SettingError(said, (*what.split("."), option))
    return name, {**known[name], **options}


def optimiser(
    part: Part, parameters: Iterable[Tensor], learning_rate: float, *, sparse: bool = False
) -> torch.optim.Optimizer:
    """The optimiser that a config file means; `sparse`: for tables whose gradients name the rows that were met.

    >>> optimiser({"name": "sgd", "momentum": 0.9}, [torch.zeros(1, requires_grad=True)], 0.1).defaults["momentum"]
    0.9
    """
    name, options = split(part, OPTIMISERS, "training.optimizer")
    if sparse and name not in SPARSE:
        raise SettingError(
            f"training.optimizer = '{name}' does not support sparse gradients: use "
            f"{', '.join(SPARSE)}, or set model.bag.sparse = false.",
            ("training", "optimizer"),
        )
    kind = SPARSE[name] if sparse else OPTIMISERS[name]
    known = [key for key in inspect.signature(kind).parameters if key not in ("params", "lr", "foreach", "fused")]
    for option in options:
        if option not in known:
            rows = " with sparse gradients" if sparse else ""
            raise SettingError(
                f"training.optimizer = '{name}' has no option '{option}'{rows}. {did_you_mean(option, known)}",
                ("training", "optimizer", option),
            )
    if sparse and (options.get("momentum") or options.get("weight_decay")):
        raise SettingError(
            f"training.optimizer = '{name}' with momentum or weight_decay does not support sparse gradients: leave "
            "these options out, or set model.bag.sparse = false.",
            ("training", "optimizer"),
        )
    extra = {"fused": True} if name in FUSED and not sparse else {}
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    try:
        return kind(parameters, lr=learning_rate, **options, **extra)  # type: ignore[call-arg, arg-type]
    except (ValueError, TypeError) as error:
        said = f"training.optimizer = '{name}' cannot be created: {error}."
        raise SettingError(said, ("training", "optimizer")) from error


def optimisers(part: Part, model: nn.Module, learning_rate: float) -> list[tuple[list[str], torch.optim.Optimizer]]:
    """Who moves which of a model's parameters, by their names: tables with sparse gradients have one of their own."""
    tables = {id(table) for table in sparse_tables(model)}
    if tables:  # torch warns of checks that are neither wanted nor not; Adagrad makes sparse tensors of its own
        torch.sparse.check_sparse_tensor_invariants.disable()
    found: list[tuple[list[str], torch.optim.Optimizer]] = []
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for sparse in (False, True):
        those = [(name, p) for name, p in named if (id(p) in tables) == sparse]
        if those:
            one = optimiser(part, [p for _, p in those], learning_rate, sparse=sparse)
            found.append(([name for name, _ in those], one))
    return found


def can_skip(one: torch.optim.Optimizer) -> bool:
    """Whether its attribute `found_inf`, a number on the device, makes it leave the weights alone where it is 1.

    >>> weight = torch.zeros(1, requires_grad=True)
    >>> can_skip(optimiser("adam", [weight], 0.1)), can_skip(optimiser("rmsprop", [weight], 0.1))
    (True, False)
    """
    return bool(getattr(one, "_step_supports_amp_scaling", False))


def sparse_tables(model: nn.Module) -> list[Tensor]:
    """Those parameters of a model whose gradients name rows."""
    kinds = (nn.Embedding, nn.EmbeddingBag)
    return [module.weight for module in model.modules() if isinstance(module, kinds) and module.sparse]


class Schedule:
    """The learning rate as a share of its height.

        warm-up        min(1, max((step + 1) / warmup, 10 p)), a tenth of training at most, times
        constant       1
        linear         1 − (1 − end) p                       p: the share of training that is done
        cosine         end + (1 − end) (1 + cos πp) / 2
        inverse_sqrt   √(warmup / max(step, warmup))
        plateau        factor^k, k: how often `patience` validations went by without a better score
        halving        (1/2)^⌊times · q⌋, q = (p − after)⁺ / (1 − after): the same for each of `times` parts of
                       training, once the share `after` of it is over

    >>> Schedule("cosine", warmup=0).share(step=5, progress=0.5, plateaus=0)
    0.5
    """

    def __init__(self, part: Part, *, warmup: int) -> None:
        self.name, self.options = numbers(part, SCHEDULES, "training.schedule")
        if not self.options.get("after", 0) < 1:
            said = f"training.schedule.after must be below 1, but is {self.options['after']}."
            raise SettingError(said, ("training", "schedule", "after"))
        self.warmup = warmup

    def share(self, step: int, progress: float, plateaus: int) -> float:
        warm = min(1.0, max((step + 1) / self.warmup, 10 * progress)) if self.warmup else 1.0
        options, p = self.options, min(1.0, progress)
        if self.name == "linear":
            return warm * (1 - (1 - options["end"]) * p)
        if self.name == "cosine":
            return warm * (options["end"] + (1 - options["end"]) * (1 + math.cos(math.pi * p)) / 2)
        if self.name == "inverse_sqrt":
            height = max(1, self.warmup)
            return warm * math.sqrt(height / max(step + 1, height))
        if self.name == "halving":
            over = max(0.0, p - options["after"]) / (1 - options["after"])
            return float(warm * 0.5 ** math.floor(options["times"] * over))
        if self.name == "plateau":
            return float(warm * max(options["least"], options["factor"] ** plateaus))
        return warm


class Average:
    """A second model whose weights are an average over the steps, and which predicts.

    ema         a ← d a + (1 − d) w,  d = min(decay, (1 + n) / (10 + n)), n: the steps so far
    mean        a ← a + (w − a) / n   over the steps after the share `after` of training
    triggered   the same, over the steps after `patience` validations without a better score (NT-ASGD, Merity 2017)
    checkpoints the mean of the weights at the `last` validations ("average checkpoints")

    A table with sparse gradients is shared and not averaged: a step would have to read all of it.
    """

    def __init__(self, part: Part, model: nn.Module) -> None:
        self.name, self.options = numbers(part, AVERAGES, "training.average")
        if not self.options.get("decay", 0) < 1:
            said = f"training.average.decay must be below 1, but is {self.options['decay']}."
            raise SettingError(said, ("training", "average", "decay"))
        if self.name == "checkpoints" and not (self.options["last"] >= 1 and self.options["last"] % 1 == 0):
            said = f"training.average.last must be a whole number above 0, but is {self.options['last']}."
            raise SettingError(said, ("training", "average", "last"))
        self.kept: dict[int, list[Tensor]] = {}  # the weights at some validations, by their steps
        tables = {id(table): table for table in sparse_tables(model)}
        self.model = copy.deepcopy(model, memo=dict(tables))
        for parameter in self.model.parameters():
            parameter.requires_grad_(id(parameter) in tables)
        self._averaged, self._pairs = model, pairs_of(self.model, model)  # to look through a model takes long

    @torch.no_grad()
    def update(self, model: nn.Module, count: int, progress: float, worse: int = 0) -> int:
        """Take in the weights after a step; `count` of them were taken before. The new count.

        progress: the share of training that is done; worse: validations since the best.
        """
        if self.name == "checkpoints":
            return count
        if self.name == "ema":
            weight = 1 - min(self.options["decay"], (1 + count) / (10 + count))
        else:
            is_early = progress < self.options["after"] if self.name == "mean" else worse < self.options["patience"]
            is_waiting = count == 0 and is_early  # once it has begun, an average goes on
            weight, count = 1 / (count + 1), -1 if is_waiting else count
        pairs = self._pairs if model is self._averaged else pairs_of(self.model, model)
        torch._foreach_lerp_(pairs.ours, pairs.theirs, weight)
        for mine, new in pairs.buffers:
            mine.copy_(new)
        return count + 1

    @torch.no_grad()
    def keep(self, step: int) -> None:
        """Take in the weights at a validation, and leave out those that are too old; a step counts once."""
        if self.name != "checkpoints" or step in self.kept:
            return
        self.kept[step] = [new.detach().clone() for new in self._pairs.theirs]
        for old in sorted(self.kept)[: -int(self.options["last"])]:
            del self.kept[old]
        weights = [self.kept[each] for each in sorted(self.kept)]
        for mine, *those in zip(self._pairs.ours, *weights, strict=True):
            mine.copy_(torch.stack(those).mean(0))
        for buffer, new in self._pairs.buffers:
            buffer.copy_(new)

    def kept_tensors(self) -> dict[str, Tensor]:
        """The weights at validations by name, for a checkpoint."""
        return {f"{step}.{number}": each for step, those in self.kept.items() for number, each in enumerate(those)}

    def put_kept(self, tensors: Mapping[str, Tensor]) -> None:
        """What `kept_tensors` gave."""
        ours = self._pairs.ours
        steps = sorted({int(name.partition(".")[0]) for name in tensors})
        self.kept = {step: [tensors[f"{step}.{n}"].to(mine) for n, mine in enumerate(ours)] for step in steps}


class Pairs(NamedTuple):
    """The tensors of an average, and those that go into it."""

    ours: list[Tensor]
    theirs: list[Tensor]
    buffers: list[tuple[Tensor, Tensor]]


def pairs_of(average: nn.Module, model: nn.Module) -> Pairs:
    """What is averaged, side by side; what both share is left out."""
    both = zip(average.parameters(), model.parameters(), strict=True)
    kept = [(mine, new) for mine, new in both if mine is not new]
    buffers = list(zip(average.buffers(), model.buffers(), strict=True))
    return Pairs([mine for mine, _ in kept], [new for _, new in kept], buffers)
