"""A tagger: the scores of tags, values and labels are computed by a program, the best of them are chosen here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.spellings import spellings_of
from recurra.data.store import Encoded, Rows
from recurra.heads.lattice import Chain, best_path, filtered, marginals
from recurra.models.tagged import TaggerOutput, TagScores, TagShares
from recurra.predictors.by_length import called_by_length
from recurra.predictors.predictor import GO_ON, Predictor, of_stream, padded, softmax
from recurra.predictors.spelling import spelling_function, spelt_by
from recurra.programs.inputs import Input, Recordable, Running, called

CHAIN = ("transitions", "start", "end")


class TaggingPredictor(Predictor[TaggerOutput]):
    """Words, their spelling or frames to the tags of columns, values and a label of the whole."""

    def __init__(self, *, words: int, characters: int | None, frame_size: int | None, columns: int) -> None:
        self.words, self.characters, self.frame_size, self.columns = words, characters, frame_size, columns
        self._chains: dict[int, list[Chain | None]] = {}

    def inputs(self, spelt: int) -> list[Input]:
        found = [Input("lengths", ("B",), "lengths", along="T")]
        if self.frame_size is not None:
            return [Input("frames", ("B", "T", self.frame_size)), *found]
        found.insert(0, Input("words", ("B", "T"), "ids", below=self.words))
        if self.characters is not None:
            found += [
                Input("spelt", ("N", spelt)),
                Input("places", ("B", "T"), "places", along="N"),
            ]
        return found

    def functions(self, model: Any) -> list[Recordable]:
        from recurra.encoders.words import Spellings
        from recurra.models.tagger import Known, TaggerBatch
        from recurra.padding import Padded

        spelling = None if self.characters is None else model.read_words.spelling
        inputs = self.inputs(0 if spelling is None else spelling.output_size)
        names = [each.name for each in inputs]

        def batch_of(tensors: Sequence[Any]) -> Any:
            given = dict(zip(names, tensors, strict=True))
            lengths = given["lengths"]
            spellings = Spellings(given["spelt"], given["places"]) if "spelt" in given else None
            return TaggerBatch(
                Padded(given["words"], lengths) if "words" in given else None,
                spellings,
                Padded(given["frames"], lengths) if "frames" in given else None,
                (),
                None,
                None,
                Known(0, ()),
            )

        def told(features: Any) -> dict[str, Any]:
            found = {f"tags{number}": head.scored(features) for number, head in enumerate(model.heads)}
            return found if model.value is None else {**found, "values": model.value.best(features)}

        def scores(*tensors: Any) -> Mapping[str, Any]:
            features, whole = model._read(batch_of(tensors))
            found = told(features)
            if model.label is not None:
                found["label"] = model.label(whole).log_softmax(-1)
            return found

        def go_on(*given: Any) -> tuple[Mapping[str, Any], Any]:
            *tensors, states = given
            features, states = model.go_on(batch_of(tensors), states)
            return told(features), states

        found = [Recordable("scores", inputs, scores)]
        if self.refusal_of_streams(model) is None:
            found += of_stream(model.begin(), inputs, go_on)
        if spelling is not None and self.characters is not None:
            found.append(spelling_function(spelling, self.characters))
        for number, head in enumerate(model.heads):
            if head.chain() is not None:

                def chain(head: Any = head) -> Mapping[str, Any]:
                    return dict(zip(CHAIN, head.chain(), strict=True))

                found.append(Recordable(f"chain{number}", [], chain))
        return found

    def refusal_of_streams(self, model: Any) -> str | None:
        found: str | None = model.refusal_of_streams()
        return found

    def arrays(self, running: Running, rows: Rows) -> dict[str, NDArray[Any]]:
        """The inputs of `scores` for some rows."""
        if self.frame_size is not None:
            values, lengths = padded(rows, "frames", np.float32)
            return {"frames": values, "lengths": lengths}
        values, lengths = padded(rows, "words", np.int64)
        found = {"words": values, "lengths": lengths}
        if self.characters is not None:
            words = spellings_of(rows)
            found |= {"spelt": spelt_by(running, words), "places": words.places}
        return found

    def chains(self, running: Running) -> list[Chain | None]:
        """The scores of neighbouring tags of each column; None where tags are chosen each by itself."""
        if id(running) not in self._chains:
            known = [f"chain{number}" for number in range(self.columns)]
            self._chains = {
                id(running): [
                    Chain(
                        **{
                            {"transitions": "A"}.get(name, name): array
                            for name, array in called(running, each, {}).items()
                        }
                    )
                    if each in running.program.functions
                    else None
                    for each in known
                ]
            }
        return self._chains[id(running)]

    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[TaggerOutput]:
        given = self.arrays(running, Rows.of(rows))
        lengths = given["lengths"]
        found = called_by_length(running, "scores", given, lengths)
        mask = np.arange(next(iter(given.values())).shape[1]) < lengths[:, None]
        tags, scores, chosen = [], np.zeros(len(lengths)), []
        for number, chain in enumerate(self.chains(running)):
            each = found[f"tags{number}"]
            best, log_p, p = self.best(each, chain, lengths, mask, detail=detail)
            tags.append(best)
            scores = scores + log_p
            chosen.append(p)
        values = found["values"].astype(np.float64) if "values" in found else None
        labels = certain = None
        if "label" in found:
            logs = found["label"].astype(np.float64)
            labels, certain = logs.argmax(-1), logs.max(-1)
            scores = scores + certain
        return [
            TaggerOutput(
                tuple(column[row, :length] for column in tags),
                float(scores[row]),
                values[row, :length] if values is not None else None,
                int(labels[row]) if labels is not None else None,
                tuple(column[row, :length] for column in chosen) if detail else None,
                float(np.exp(certain[row])) if certain is not None else None,
            )
            for row, length in enumerate(lengths.tolist())
        ]

    def begun(self, running: Running) -> dict[str, NDArray[Any]]:
        """The states, and for each column whose tags depend on each other log p of the last tag, NaN as yet."""
        last = {
            f"last{number}": np.full(len(chain.start), np.nan)
            for number, chain in enumerate(self.chains(running))
            if chain is not None
        }
        return super().begun(running) | last

    def gone_on(
        self, running: Running, row: Encoded, states: Mapping[str, NDArray[Any]]
    ) -> tuple[TaggerOutput, dict[str, NDArray[Any]]]:
        """The tag of each step is the most probable one given what was read up to it: later steps are not known."""
        found = called(running, GO_ON, {**self.arrays(running, Rows.of([row])), **states})
        after = {name: found.get(name, each) for name, each in states.items()}
        tags, probabilities, rated, score = [], [], list[TagScores](), 0.0
        for number, chain in enumerate(self.chains(running)):
            each = found[f"tags{number}"][0].astype(np.float64)
            logs = each - each.max(-1, keepdims=True)
            logs -= np.log(np.exp(logs).sum(-1, keepdims=True))
            if chain is not None:
                last = states[f"last{number}"]
                logs = filtered(chain, each, None if np.isnan(last).any() else last)
                after[f"last{number}"] = logs[-1]
            tags.append(logs.argmax(-1))
            probabilities.append(np.exp(logs.max(-1)))
            rated.append(TagScores(logs, None))
            score += float(logs.max(-1).sum())
        values = found["values"][0].astype(np.float64) if "values" in found else None
        return TaggerOutput(
            tuple(tags), score, values, None, tuple(probabilities), None, TagShares(tuple(rated), None)
        ), after

    def best(
        self,
        scores: NDArray[Any],
        chain: Chain | None,
        lengths: NDArray[np.int64],
        mask: NDArray[np.bool_],
        *,
        detail: bool,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], Any]:
        """The best tags (B, T), 0 on padding, their log p (B,), and with detail the probability of each."""
        p: Any = None
        if chain is None:
            best = np.where(mask, scores.argmax(-1) if scores.shape[1] else 0, 0)
            log_p = np.where(mask, scores.max(-1, initial=-np.inf), 0).sum(1, dtype=np.float64)
            if detail:
                p = np.where(mask[..., None], softmax(scores), 0)
        else:
            emissions = np.where(mask[..., None], scores, 0)
            best, log_p = best_path(chain, emissions, lengths)
            if detail:
                doubled = Chain(*(each.astype(np.float64) for each in chain))
                p = marginals(doubled, emissions.astype(np.float64), lengths)
        if detail:
            p = np.take_along_axis(p, best[..., None], -1)[..., 0].astype(np.float32)
        return best, log_p, p
