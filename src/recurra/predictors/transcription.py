"""CTC: what the places of a source say, and the step from one beginning of an answer to the next; see decoding/ctc."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.extents import Extents
from recurra.predictors.to_sequence import Decoding, ToSequencePredictor
from recurra.programs.inputs import Input, Recordable
from recurra.search.alignment import aligned
from recurra.search.score import divisor
from recurra.search.search import Hypothesis


class TranscriptionPredictor(ToSequencePredictor):
    """Tokens or frames to tokens, each place saying one or nothing.

    start    source (B, S), lengths -> the empty beginning, what the places say, and which there are
    step     tokens (B·K,), beginnings, what the places say -> log p of what comes next (B·K, V), and beginnings
    """

    is_aligned = True

    def functions(self, model: Any) -> list[Recordable]:
        from recurra.decoding import ctc
        from recurra.padding import Padded

        first, blank = model.sizes.start, model.end

        def start(source: Any, lengths: Any) -> Mapping[str, Any]:
            spoken = model.spoken(Padded(source, lengths))
            said = ctc.said_of(spoken.log_p, spoken.mask, blank)
            return {
                **beginning(ctc.empty(said, first, blank)),
                "fixed0": said.log_p,
                "fixed1": said.p,
                "mask": spoken.mask,
            }

        def step(tokens: Any, *given: Any) -> Mapping[str, Any]:
            said, before = ctc.Said(*given[4:]), ctc.Prefix(*given[:4])
            prefix = ctc.extended(before, tokens, said, first, blank)
            return {"log_p": ctc.next_tokens(prefix, said, blank).float(), **beginning(prefix)}

        def beginning(prefix: Any) -> dict[str, Any]:
            return {f"state{number}": each for number, each in enumerate(prefix)}

        ids = [Input(name, ("B*K",), "ids", below=self.tokens) for name in ("tokens", "state0")]
        sums = [Input(f"state{number}", ("B*K", "P+1"), "exact") for number in (1, 2)]
        of_places = [
            Input(f"fixed{number}", ("B", "P", self.tokens), kind) for number, kind in enumerate(("exact", "chances"))
        ]
        return [
            Recordable("start", self.of_source(), start, least=self.least(model)),
            Recordable("step", [*ids, *sums, Input("state3", ("B*K",), "exact"), *of_places], step),
        ]

    # What is computed

    def searched(
        self, search: Decoding, decoding: Any, given: Mapping[str, NDArray[Any]], **more: Any
    ) -> list[list[Hypothesis]]:
        if decoding.search == "path":
            return self.best_paths(search, decoding.length_penalty)
        return super().searched(search, decoding, given, **more)

    def best_paths(self, search: Decoding, length_penalty: float) -> list[list[Hypothesis]]:
        """What the most probable alignment of each source writes, with log P of that."""
        end = self.task.search_tokens.end
        # Where there is no place a blank is certain, so that the path writes nothing there.
        paths = search.fixed[0].argmax(2).tolist()
        written = [[token for token, _ in groupby(path) if token != end] + [end] for path in paths]
        target = np.full((len(written), max(map(len, written), default=0)), end, np.int64)
        for row, tokens in zip(target, written, strict=True):
            row[: len(tokens)] = tokens
        found = []
        for row, tokens in zip(search.token_log_likelihoods(self.first, target), written, strict=True):
            total = float(row[: len(tokens)][np.array(tokens) != self.first].sum())  # <s>, if untrained, adds nothing
            found.append([Hypothesis(tokens, total, True, total / divisor(len(tokens), length_penalty))])
        return found

    def shown(self, found: list[list[Hypothesis]], begun: Mapping[str, NDArray[Any]]) -> list[list[Hypothesis]]:
        end, expand = self.task.search_tokens.end, self.expand
        rows = zip(found, begun["fixed0"], begun["mask"].sum(1).tolist(), strict=True)
        return [[aligned(each, log_p[:n], blank=end, expand=expand) for each in some] for some, log_p, n in rows]

    def extents(self, given: Mapping[str, NDArray[Any]], begun: Mapping[str, NDArray[Any]]) -> Extents | None:
        return Extents([(1, int(n) // self.expand) for n in begun["mask"].sum(1)], None)

    @property
    def expand(self) -> int:
        """Into how many places one of the memory is split."""
        found: int = self.task.settings.model.decoder.expand
        return found
