"""A language model: a program reads tokens on from states, one step or many; texts are scored and written here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded
from recurra.generation.generated import Manner, TextSource
from recurra.generation.growing import Language
from recurra.generation.writer import Writer
from recurra.predictors.predictor import Predictor
from recurra.predictors.trees import kind_of, leaves, refilled
from recurra.programs.inputs import Input, Recordable, Running, called
from recurra.programs.searching import Begun, Wanted, searched_in_c, why_not_in_c
from recurra.search.rules import Rules
from recurra.search.sampling import Filter
from recurra.search.search import Hypothesis, Step, selected

Output = TypeVar("Output")

Carried: TypeAlias = Callable[[NDArray[np.int64], int, int], NDArray[np.float64]]
"""Tokens (N,) of a text, how many parts of it are read side by side, and from how far before -> log p of each but the
first."""

SCORES = 1 << 22
"""So many probabilities, tokens × vocabulary, are in memory together."""


class LanguageModelPredictor(Predictor[Output]):
    """Tokens and states to log p and states.

    likelihoods    tokens (B, T), lengths, targets (B, T), states -> log p of each target, 0 on padding, and states
    step           tokens (B,), states -> log p of what may come next, (B, V), and states
    """

    def __init__(
        self,
        language: Language,
        *,
        tokens: int,
        in_order: Callable[[NDArray[Any]], NDArray[Any]],
        scored: Callable[[NDArray[np.float64], NDArray[Any], bool, NDArray[Any] | None], Output],
        whole: Callable[[Sequence[Encoded], Carried], list[Output] | None],
    ) -> None:
        self.language, self.tokens, self.in_order, self.scored, self.whole = language, tokens, in_order, scored, whole

    def functions(self, model: Any) -> list[Recordable]:
        from recurra.padding import Padded

        # A Transformer's states have all columns from the start, none of them real: so they keep their size.
        start = model.start(1) if model.transformer is None else model.transformer.empty(1)
        states = [
            Input(f"state{number}", ("B", *each.shape[1:]), kind_of(each)) for number, each in enumerate(leaves(start))
        ]

        def nested(tensors: Sequence[Any]) -> Any:
            return refilled(start, iter(tensors))

        def named(found: Any) -> dict[str, Any]:
            return {f"state{number}": leaf for number, leaf in enumerate(leaves(found))}

        def likelihoods(tokens: Any, lengths: Any, targets: Any, *given: Any) -> Mapping[str, Any]:
            h, found = model(Padded(tokens, lengths), nested(given))
            log_p = model.output.log_probabilities(model.drop_output(h).values.flatten(0, 1))
            each = log_p.gather(1, targets.flatten().unsqueeze(1)).view(targets.shape)
            mask = Padded(tokens, lengths).mask
            return {"log_p": each.masked_fill(~mask, 0.0), **named(found)}

        def read(tokens: Any, lengths: Any, *given: Any) -> Mapping[str, Any]:
            return named(model(Padded(tokens, lengths), nested(given))[1])

        def step(tokens: Any, *given: Any) -> Mapping[str, Any]:
            log_p, found = model.stepping()(tokens, nested(given), ())
            return {"log_p": log_p, **named(found)}

        def begin() -> Mapping[str, Any]:
            return named(start)

        ids = Input("tokens", ("B", "T"), "ids", below=self.tokens)
        lengths = Input("lengths", ("B",), "lengths", along="T")
        targets = Input("targets", ("B", "T"), "ids", below=self.tokens)
        return [
            Recordable("likelihoods", [ids, lengths, targets, *states], likelihoods),
            Recordable("read", [ids, lengths, *states], read),
            Recordable("step", [Input("tokens", ("B",), "ids", below=self.tokens), *states], step),
            Recordable("begin", [], begin),
        ]

    def start(self, running: Running, rows: int) -> dict[str, NDArray[Any]]:
        """The states before the first token, for so many rows."""
        return {name: np.repeat(state, rows, axis=0) for name, state in called(running, "begin", {}).items()}

    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[Output]:
        lines = [self.in_order(row["tokens"]) for row in rows]
        lengths = np.array([len(line) for line in lines], np.int64)
        read = np.full((len(lines), int(lengths.max())), self.language.end, np.int64)
        targets = np.zeros_like(read)
        for number, line in enumerate(lines):
            targets[number, : len(line)] = line
            read[number, 1 : len(line)] = line[:-1]
        logs = self.likelihoods(running, read, lengths, targets)
        return [
            self.scored(self.in_order(logs[row, :length]), targets[row, :length], detail, None)
            for row, length in enumerate(lengths.tolist())
        ]

    def refusal_of_streams(self, model: Any) -> str | None:
        return None

    def begun(self, running: Running) -> dict[str, NDArray[Any]]:
        """The states before the last token, and that token; at first, the end of the line before."""
        return {**self.start(running, 1), "before": np.array([self.language.end], np.int64)}

    def gone_on(
        self, running: Running, row: Encoded, states: Mapping[str, NDArray[Any]]
    ) -> tuple[Output, dict[str, NDArray[Any]]]:
        """How likely the next tokens were, and what may follow them."""
        tokens = row["tokens"].astype(np.int64)
        before = {name: each for name, each in states.items() if name != "before"}
        read = np.concatenate([states["before"], tokens[:-1]])
        given = {"tokens": read[None], "targets": tokens[None], "lengths": np.array([len(tokens)], np.int64)}
        after = called(running, "likelihoods", {**given, **before})
        logs = after.pop("log_p").astype(np.float64)[0]
        last = tokens[-1:]
        following = called(running, "step", {"tokens": last, **after})["log_p"][0]
        return self.scored(logs, tokens, True, following), {**after, "before": last}

    def scored_whole(self, running: Running, rows: Sequence[Encoded]) -> list[Output] | None:
        return self.whole(rows, lambda tokens, streams, ahead: self.carried(running, tokens, streams, ahead))

    def carried(self, running: Running, tokens: NDArray[np.int64], streams: int, ahead: int) -> NDArray[np.float64]:
        """log p of every token (N,) but the first, given all before it, as recurra.models.likelihood has it."""
        count = len(tokens) - 1
        streams = max(1, min(streams, count // ahead))
        length = -(-count // streams)
        streams = -(-count // length)
        states = self.start(running, streams)
        if streams > 1:
            starts = length * np.arange(streams)
            before = tokens[np.maximum(starts[:, None] - ahead + np.arange(ahead), 0)]
            read = np.where(np.arange(streams) > 0, ahead, 0)  # nothing is before the first
            states = called(running, "read", {"tokens": before, "lengths": read, **states})
        padded = np.concatenate([tokens, np.zeros(streams * length - count, np.int64)])
        lengths = np.full(streams, length)
        lengths[-1] = count - length * (streams - 1)
        inputs, targets = (each.reshape(streams, length) for each in (padded[:-1], padded[1:]))
        return self.likelihoods(running, inputs, lengths, targets, states).reshape(-1)[:count]

    def writer(self, running: Running, manner: Manner) -> TextSource:
        return Writer(self.language, ProgramVoice(self, running), manner)

    def likelihoods(
        self,
        running: Running,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        targets: NDArray[np.int64],
        states: dict[str, NDArray[Any]] | None = None,
    ) -> NDArray[np.float64]:
        """(B, T): log p of each target; long rows are read in parts."""
        states, found = self.start(running, len(tokens)) if states is None else states, []
        steps = max(16, SCORES // max(1, len(tokens) * self.tokens))
        for first in range(0, tokens.shape[1], steps):
            part = slice(first, first + steps)
            here = {"tokens": tokens[:, part], "targets": targets[:, part]}
            here["lengths"] = np.clip(lengths - first, 0, here["tokens"].shape[1])
            states = called(running, "likelihoods", {**here, **states})
            found.append(states.pop("log_p").astype(np.float64))
        return np.concatenate(found, axis=1)


class ProgramVoice:
    """An exported language model as the voice of a writer."""

    def __init__(self, predictor: LanguageModelPredictor[Any], running: Running) -> None:
        self.predictor, self.running = predictor, running
        self.on_device = why_not_in_c(running, Wanted("sampling", 1, ())) is None  # C draws whole texts

    def after(self, read: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], Any]:
        distinct = {tuple(tokens): number for number, tokens in enumerate(dict.fromkeys(map(tuple, read)))}
        lengths = np.array([len(tokens) - 1 for tokens in distinct], np.int64)
        values = np.zeros((len(distinct), int(lengths.max())), np.int64)
        for row, tokens in zip(values, distinct, strict=True):
            row[: len(tokens) - 1] = tokens[:-1]
        states = self.predictor.start(self.running, len(distinct))
        if values.shape[1]:
            states = called(self.running, "read", {"tokens": values, "lengths": lengths, **states})
        rows = np.array([distinct[tuple(tokens)] for tokens in read])
        return np.array([tokens[-1] for tokens in read]), selected(tuple(states.values()), rows)

    def stepping(self) -> Step[Any, Any]:
        def step(tokens: NDArray[np.int64], states: Any, _: Any) -> tuple[NDArray[Any], Any]:
            log_p, *found = self.running.run("step", [tokens, *states])
            return log_p, tuple(found)

        return step

    def drawn(
        self,
        read: Sequence[Sequence[int]],
        *,
        length: int,
        ends: Sequence[int],
        keep: Filter,
        seed: int,
        numbers: Sequence[int],
    ) -> list[Hypothesis]:
        tokens, states = self.after(read)
        wanted = Wanted(
            search="sampling",
            length=length,
            ends=ends,
            rules=Rules(banned=keep.banned),
            keep=keep._replace(banned=()),
            seed=seed,
            numbers=numbers,
        )
        return [drawn for [drawn] in searched_in_c(self.running, Begun(tokens, states), wanted)]
