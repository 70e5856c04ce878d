"""A model that writes: its encoder and one step of its decoder are functions of a program; the search is here."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recurra.data.extents import Extents
from recurra.data.store import Encoded, Rows
from recurra.errors import DataError
from recurra.predictors.predictor import Predictor, padded, pictured
from recurra.predictors.trees import kind_of, leaves, named, refilled
from recurra.programs.inputs import Input, Recordable, Running, called
from recurra.programs.searchable import Usual
from recurra.programs.searching import Begun, Wanted, searched_in_c, usual, why_not_in_c
from recurra.search.decoding import SearchTokens, bounds, numbers_of_rows, searched_on_host
from recurra.search.search import Hypothesis
from recurra.sequences.written import Written

if TYPE_CHECKING:
    from torch import Tensor

    from recurra.config import ImageModel, Seq2SeqDecoding
    from recurra.generation.describer import Draw
    from recurra.generation.generated import Manner, TextSource
    from recurra.search.tree import Tree

TRIED = {"B": (2, 3, 5, 4), "S": (7, 4, 9, 11), "X": (3, 5, 2, 6), "H": (80, 200, 310, 470), "W": (330, 90, 150, 580)}
"""Sizes of batches from which the shapes of states are told."""


class Writes(Protocol):
    """What is needed of the task: how it searches, and what it makes of hypotheses."""

    settings: Any

    @property
    def search_tokens(self) -> SearchTokens: ...

    @property
    def attends(self) -> bool: ...

    def describer(self, draw: Draw, manner: Manner) -> TextSource | None: ...

    def written(
        self,
        found: Sequence[Sequence[Hypothesis]],
        golds: Sequence[tuple[float, int] | None],
        extents: Extents | None,
    ) -> list[Written]: ...


class ToSequencePredictor(Predictor[Written]):
    """Tokens, frames, vectors or pictures to tokens.

    start    source (B, S), lengths -> the states before the first token, and what stays the same for all of them;
             or of pictures (B, C, H, W), heights, widths
    step     tokens (B·K,), states, what stays the same -> log p of what comes next (B·K, V), and states
    """

    is_aligned = False
    """Whether each token of an answer stands at places of the source."""

    def __init__(
        self,
        task: Writes,
        *,
        source: int | None,
        frames: int | None,
        tokens: int,
        start: int,
        copies: bool,
        image: ImageModel | None = None,
        channels: int | None = None,
    ) -> None:
        self.task, self.source, self.frames, self.tokens = task, source, frames, tokens
        self.first, self.copies = start, copies  # whether places of the source have names in the target
        self.image, self.channels = image, channels  # of pictures

    # What is recorded

    def functions(self, model: Any) -> list[Recordable]:
        import torch

        from recurra.models.seq2seq import PairBatch
        from recurra.padding import Grid, Padded

        if self.image is not None:
            refuse_columns(model)
        inputs = self.of_source()
        if self.copies:
            inputs += [Input("copied", ("B", "S"), "copies", below=self.tokens, along="X"), Input("extra", ("X",))]

        def begun(source: Tensor, *others: Tensor) -> tuple[Any, Any]:
            copied = others[1:] if self.image is None else ()
            extra = copied[1].shape[0] if copied else 0
            read = Padded(source, others[0]) if self.image is None else Grid(source, torch.stack(others, dim=1))
            batch = PairBatch(read, None, copied[0] if copied else None, extra)
            _, state, fixed = model.start(batch)
            return bare(state), fixed

        def start(*tensors: Tensor) -> Mapping[str, Tensor]:
            state, fixed = begun(*tensors)
            found = named("state", state) | named("fixed", fixed)
            masks = [leaf for leaf in leaves(fixed) if leaf.dtype == torch.bool and leaf.dim() == 2]
            return {**found, **({"mask": masks[0]} if masks else {})}

        shapes = self.shapes(begun)
        sample_state, sample_fixed = begun(*self.drawn(0))
        is_tied = len(leaves(sample_fixed)) > 0
        rows = "B*K" if is_tied else "N"
        # What has no columns before the first token has one more after each: keys and values of a Transformer.
        of_states = [
            Input(f"state{number}", (rows, *("P" if size == 0 else size for size in shape[1:])), kind)
            for number, (shape, kind) in enumerate(shapes[0])
        ]
        of_fixed = [Input(f"fixed{number}", shape, kind) for number, (shape, kind) in enumerate(shapes[1])]
        tokens = Input("tokens", (rows,), "ids", below=self.tokens)
        extra = []
        if self.copies:
            tokens, extra = Input("tokens", (rows,), "copies", below=self.tokens, along="X"), [Input("extra", ("X",))]
            of_fixed = [
                each._replace(kind="copies", below=self.tokens, along="X") if each.kind == "counts" else each
                for each in of_fixed
            ]

        def step(given: Tensor, *tensors: Tensor) -> Mapping[str, Tensor]:
            left = iter(tensors)
            state, fixed = refilled(sample_state, left), refilled(sample_fixed, left)
            rest = list(left)
            log_p, after = model.step(given, state, fixed, extra=rest[0].shape[0] if rest else 0)
            found = {"log_p": log_p, **named("state", bare(after))}
            return {**found, **({} if after.weights is None else {"weights": after.weights})}

        return [
            Recordable("start", inputs, start, least=self.least(model)),
            Recordable("step", [tokens, *of_states, *of_fixed, *extra], step),
        ]

    def of_source(self) -> list[Input]:
        """The source and its lengths, as `start` takes them."""
        if self.image is not None:
            pictures = Input("source", ("B", self.channels or 1, "H", "W"), "bytes")
            sides = {"heights": "H", "widths": "W"}
            return [pictures, *(Input(name, ("B",), "lengths", along=side) for name, side in sides.items())]
        return [
            Input("source", ("B", "S"), "ids", below=self.source)
            if self.source is not None
            else Input("source", ("B", "S", self.frames or 1)),
            Input("lengths", ("B",), "lengths", along="S"),
        ]

    def least(self, model: Any) -> dict[str, int]:
        """How long sources that are recorded must be at least: where steps or pixels become one place, so long that a
        shorter row stays shorter."""
        from recurra.encoders.pyramid import Pyramid

        if self.image is not None:
            return dict.fromkeys(("H", "W"), 2 ** len(self.image.widths) + 1)
        layers = [len(each.layers) for each in model.modules() if isinstance(each, Pyramid)]
        return {"S": 2 ** (max(layers) - 1) + 1} if layers else {}

    def drawn(self, number: int) -> list[Any]:
        """Inputs of `start` of certain sizes."""
        import torch

        B, S, X, H, W = (TRIED[name][number] for name in "BSXHW")
        if self.image is not None:
            pictures = torch.zeros(B, self.channels or 1, H, W, dtype=torch.uint8)
            return [pictures, torch.full((B,), H), torch.full((B,), W)]
        source = torch.zeros(B, S, dtype=torch.long) if self.source is not None else torch.zeros(B, S, self.frames or 1)
        found = [source, torch.full((B,), S)]
        return [*found, torch.zeros(B, S, dtype=torch.long), torch.zeros(X)] if self.copies else found

    def shapes(self, begun: Any) -> list[list[tuple[tuple[str | int, ...], str]]]:
        """The shape and kind of each state, and of what stays the same; sizes beside B have names of their own."""
        import torch

        with torch.no_grad():
            trees = [begun(*self.drawn(number)) for number in range(4)]
        from recurra.programs.solving import NotExportable

        names: dict[tuple[int, ...], str] = {}
        found = []
        for part in range(2):
            each = [leaves(tree[part]) for tree in trees]
            shapes = []
            for tensors in zip(*each, strict=True):
                dims: list[str | int] = []
                for number, values in enumerate(zip(*(tensor.shape for tensor in tensors), strict=True)):
                    if len(set(values)) == 1:
                        dims.append(values[0])
                    elif values == TRIED["B"] and number == 0:
                        dims.append("B")
                    else:
                        dims.append(names.setdefault(values, f"M{len(names)}"))
                if not dims or dims[0] != "B":
                    raise NotExportable("it keeps something for all rows together")
                shapes.append((tuple(dims), kind_of(tensors[0])))
            found.append(shapes)
        return found

    # What is computed

    def usual(self) -> Usual:
        return usual(self.task.settings.decoding, self.task.search_tokens, self.first)

    def given(self, every: Rows) -> dict[str, NDArray[Any]]:
        """Rows as the inputs of `start`."""
        if self.image is not None:
            source, heights, widths = pictured(every)
            return {"source": source, "heights": heights, "widths": widths}
        source, lengths = padded(
            every, "frames" if self.source is None else "source", np.float32 if self.source is None else np.int64
        )
        found: dict[str, NDArray[Any]] = {"source": source, "lengths": lengths}
        if self.copies:
            found["copied"] = padded(every, "copied", np.int64)[0]
            most = int(found["copied"].max()) + 1 - self.tokens if found["copied"].size else 0
            found["extra"] = np.zeros(max(0, most), np.float32)
        return found

    def writer(self, running: Running, manner: Manner) -> TextSource | None:
        def draw(task: Any, row: Encoded, draws: Sequence[int]) -> list[Hypothesis]:
            predictor: ToSequencePredictor = task.predictor()
            return [each for [each] in predictor.texts_drawn(running, row, draws)]

        return self.task.describer(draw, manner)

    def texts_drawn(self, running: Running, row: Encoded, draws: Sequence[int]) -> list[list[Hypothesis]]:
        """What is written of one source each time, by the numbers of the draws."""
        given = self.given(Rows.of([row] * len(draws)))
        begun = called(running, "start", given)
        search, decoding = Decoding(running, begun, given.get("extra")), self.task.settings.decoding
        return self.searched(search, decoding, given, watch=False, mask=begun.get("mask"), draws=draws)

    def hypotheses(self, running: Running, row: Encoded, *, record: list[Tree] | None = None) -> list[Hypothesis]:
        """What the search finds for one source, best first; a beam writes its way down in `record`."""
        given = self.given(Rows.of([row]))
        begun = called(running, "start", given)
        search = Decoding(running, begun, given.get("extra"))
        [found] = self.searched(
            search,
            self.task.settings.decoding,
            given,
            watch=False,
            mask=begun.get("mask"),
            record=record,
        )
        return found

    def token_log_likelihoods(self, running: Running, row: Encoded) -> NDArray[np.float64]:
        """log p of each token of the target of one row."""
        every = Rows.of([row])
        given = self.given(every)
        search = Decoding(running, called(running, "start", given), given.get("extra"))
        return search.token_log_likelihoods(self.first, padded(every, "target", np.int64)[0])[0]

    def elements(self, given: Mapping[str, NDArray[Any]]) -> list[int] | None:
        """How many elements of each source have names in the target."""
        return (given["copied"] >= self.tokens).sum(1).tolist() if self.copies else None

    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[Written]:
        every, decoding = Rows.of(rows), self.task.settings.decoding
        given = self.given(every)
        begun = called(running, "start", given)
        is_given = decoding.search == "given"
        golds: list[tuple[float, int] | None] = [None] * len(rows)
        search = Decoding(running, begun, given.get("extra"))
        if every.has("target"):
            golds = list(search.likelihoods(self.first, *padded(every, "target", np.int64)))
        elif is_given:
            raise DataError(
                "decoding.search = 'given' scores given targets, but a row has no target: give rows with a source and "
                "a target."
            )
        is_shown = (detail or not every.has("target")) and not is_given
        watch = is_shown and self.task.attends and "mask" in begun
        extents = self.extents(given, begun) if watch or (is_shown and self.is_aligned) else None
        found: list[list[Hypothesis]] = [[] for _ in rows]
        if not is_given:
            found = self.searched(search, decoding, given, watch=watch, mask=begun.get("mask"))
            found = self.shown(found, begun) if is_shown else found
        return self.task.written(found, golds, extents)

    def shown(self, found: list[list[Hypothesis]], begun: Mapping[str, NDArray[Any]]) -> list[list[Hypothesis]]:
        """What was found with what is shown of it beside where each token looked."""
        return found

    def extents(self, given: Mapping[str, NDArray[Any]], begun: Mapping[str, NDArray[Any]]) -> Extents | None:
        """How many places each source has that a token can look at; None where there is no mask of them."""
        if self.image is not None:
            stride = 2 ** len(self.image.widths)
            sides = (-(-given[name] // stride) for name in ("heights", "widths"))
            return Extents(
                [*zip(*(side.tolist() for side in sides), strict=True)], -(-given["source"].shape[3] // stride)
            )
        return Extents([(1, int(n)) for n in begun["mask"].sum(1)], None) if "mask" in begun else None

    def searched(
        self,
        search: Decoding,
        decoding: Seq2SeqDecoding,
        given: Mapping[str, NDArray[Any]],
        *,
        watch: bool,
        mask: NDArray[np.bool_] | None,
        record: list[Tree] | None = None,
        draws: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        source, rows = given["source"], len(given["source"])
        lengths = None if self.image is not None else given["lengths"].tolist()
        most, rules = bounds(
            decoding, self.task.search_tokens, rows=rows, source_lengths=lengths, elements=self.elements(given)
        )
        ends = [self.task.search_tokens.end]
        if lengths is None:
            sides = zip(given["heights"].tolist(), given["widths"].tolist(), strict=True)
            real = [row[:, :height, :width] for row, (height, width) in zip(source, sides, strict=True)]
        else:
            real = [row[:length] for row, length in zip(source, lengths, strict=True)]
        numbers = numbers_of_rows(real) if decoding.search == "sampling" else []
        if draws is not None:
            numbers = [*map(operator.add, numbers, draws)]
        tokens = np.full(rows, self.first, np.int64)
        is_watched = watch or decoding.coverage_penalty > 0
        places = mask if decoding.coverage_penalty else None
        wanted = Wanted.by(
            decoding, length=most, ends=ends, rules=rules, numbers=numbers, watches=is_watched, places=places
        )
        if record is None and why_not_in_c(search.running, wanted) is None:
            begun = Begun(tokens, search.moving[:-1], search.fixed, search.extra)
            return searched_in_c(search.running, begun, wanted)
        every: dict[str, Any] = {
            "length": most,
            "ends": ends,
            "rules": rules,
            "length_penalty": decoding.length_penalty,
            "watch": search.watched if is_watched else None,
            "coverage_penalty": decoding.coverage_penalty,
            "places": places,
        }
        host = (search.step, tokens, search.moving, search.fixed)
        return searched_on_host(host, decoding, every, numbers=numbers, record=record)


class Decoding:
    """The step of a decoder, as a search takes it; what moves are its states and, last, where it has looked."""

    def __init__(self, running: Running, begun: Mapping[str, NDArray[Any]], extra: NDArray[Any] | None) -> None:
        self.running = running
        self.moving: tuple[Any, ...] = (*(each for name, each in begun.items() if name.startswith("state")), None)
        self.fixed = tuple(each for name, each in begun.items() if name.startswith("fixed"))
        self.extra = [] if extra is None else [extra]
        self.looks = any(name == "weights" for name, _ in running.program.functions["step"].outputs)

    def step(self, tokens: NDArray[np.int64], moving: Any, fixed: Any) -> tuple[NDArray[Any], Any]:
        log_p, *found = self.running.run("step", [tokens, *moving[:-1], *fixed, *self.extra])
        return log_p, tuple(found) if self.looks else (*found, None)

    def watched(self, moving: Any) -> Any:
        return moving[-1]

    def likelihoods(
        self, first: int, targets: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> list[tuple[float, int]]:
        """log p of each target, its end among its tokens, and how many these are."""
        each = self.token_log_likelihoods(first, targets)
        sums = np.where(np.arange(targets.shape[1]) < lengths[:, None], each, 0).sum(1)
        return list(zip(sums.tolist(), lengths.tolist(), strict=True))

    def token_log_likelihoods(self, first: int, targets: NDArray[np.int64]) -> NDArray[np.float64]:
        """log p of each token of targets (B, T); those behind a target's last one mean nothing."""
        found, moving = np.zeros(targets.shape), self.moving
        tokens = np.full(len(targets), first, np.int64)
        for t in range(targets.shape[1]):
            log_p, moving = self.step(tokens, moving, self.fixed)
            tokens = targets[:, t]
            found[:, t] = np.take_along_axis(log_p, tokens[:, None], 1)[:, 0]
        return found


def refuse_columns(model: Any) -> None:
    """A NotExportable for attention that must know how many columns a picture has, which is recorded as one number."""
    from recurra.attention import Attention
    from recurra.programs.solving import NotExportable

    for each in model.modules():
        if isinstance(each, Attention) and (each.location is not None or len(each.terms)):
            raise NotExportable(
                "this model cannot be exported: its attention has a location or terms, which go by rows and columns "
                "of pictures (model.attention)."
            )


def bare(state: Any) -> Any:
    """A decoder's state without where the last step has looked, which no step reads."""
    return state._replace(weights=None, chance=None)
