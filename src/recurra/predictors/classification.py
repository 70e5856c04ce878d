"""A classifier: each member's outputs are computed by a program; probabilities and their means are made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.spellings import spellings_of
from recurra.data.store import Encoded, Rows
from recurra.models.classified import ClassifierOutput
from recurra.predictors.by_length import called_by_length
from recurra.predictors.predictor import GO_ON, Predictor, of_stream, padded, pictured, softmax
from recurra.predictors.spelling import SPELL, spelling_function, spelt_by
from recurra.programs.inputs import Input, Recordable, Running, called


class ClassificationPredictor(Predictor[ClassifierOutput]):
    """Words, their spelling, n-grams, frames, pictures or two texts to classes or numbers."""

    def __init__(
        self,
        kind: str,
        *,
        words: int | None,
        characters: int | None,
        features: int | None,
        frame_size: int | None,
        paired: bool,
        candidates: int | None,
        channels: int | None = None,
        stride: int = 1,
    ) -> None:
        self.kind, self.words, self.characters, self.features = kind, words, characters, features
        self.frame_size, self.paired, self.candidates = frame_size, paired, candidates
        self.channels, self.stride = channels, stride  # of pictures, and how many of their pixels a side are one place

    def inputs(self, spelt: int | None) -> list[Input]:
        found = []
        if self.frame_size is not None:
            found += [Input("frames", ("B", "T", self.frame_size)), Input("lengths", ("B",), "lengths", along="T")]
        if self.channels is not None:
            found += [Input("pictures", ("B", self.channels, "H", "W"), "bytes")]
            found += [Input("heights", ("B",), "lengths", along="H"), Input("widths_of", ("B",), "lengths", along="W")]
        if self.words is not None:
            found += [Input("words", ("B", "T"), "ids", below=self.words)]
            found += [Input("lengths", ("B",), "lengths", along="T")]
        if self.characters is not None:
            words = [Input("characters", ("N", "W"), "ids", below=self.characters)]
            words += [Input("widths", ("N",), "lengths", along="W")]
            found += words if spelt is None else [Input("spelt", ("N", spelt))]
            found += [Input("places", ("B", "T"), "places", along="N")]
        if self.features is not None:
            found += [
                Input("bag", ("B", "F"), "ids", below=self.features),
                Input("counts", ("B",), "lengths", along="F"),
            ]
        if self.paired:
            for text in ("1", "2"):
                found += [Input(f"text{text}", ("B", f"U{text}"), "places", along="T")]
                found += [Input(f"lengths{text}", ("B",), "lengths", along=f"U{text}")]
        if self.candidates is not None:
            found += [Input("candidates", ("B", self.candidates), "flags")]
        return found

    def functions(self, model: Any) -> list[Recordable]:
        import torch

        from recurra.encoders.words import Spellings
        from recurra.models.classifier import ClassifierBatch
        from recurra.padding import Grid, Padded
        from recurra.pairings import Paired

        # Members that spell words by weights of their own do so where they read them.
        spellings = [] if self.characters is None else [reader.spelling for reader in model.readers]
        inputs = self.inputs(spellings[0].output_size if len(spellings) == 1 else None)
        names = [each.name for each in inputs]

        def batch_of(tensors: Sequence[Any]) -> Any:
            given = dict(zip(names, tensors, strict=True))
            lengths: Any = given.get("lengths", given.get("counts", given.get("heights")))
            return ClassifierBatch(
                Padded(given["words"], lengths) if "words" in given else None,
                Spellings(given["spelt"], given["places"])
                if "spelt" in given
                else Spellings(Padded(given["characters"], given["widths"]), given["places"])
                if "characters" in given
                else None,
                Padded(given["bag"], given["counts"]) if "bag" in given else None,
                Padded(given["frames"], lengths) if "frames" in given else None,
                lengths,
                None,
                None,
                None,
                texts=tuple(Padded(given[f"text{text}"], given[f"lengths{text}"]) for text in "12")  # type: ignore[arg-type]
                if self.paired
                else None,
                pictures=Grid(given["pictures"], torch.stack([given["heights"], given["widths_of"]], dim=1))
                if "pictures" in given
                else None,
                candidates=given.get("candidates"),
            )

        def scores(*tensors: Any) -> Mapping[str, Any]:
            outputs, seen = model(batch_of(tensors))
            found = {"scores": torch.stack(outputs)}
            if isinstance(seen, Paired):
                found |= {name: each for name in ("weights", "back") if (each := getattr(seen, name)) is not None}
            elif seen is not None:
                found["attention"] = seen
            return found

        def go_on(*given: Any) -> tuple[Mapping[str, Any], Any]:
            *tensors, states = given
            outputs, states = model.go_on(batch_of(tensors), states)
            return {"scores": torch.stack(outputs)}, states

        # Where pixels become one place, pictures must be so large that a smaller one stays smaller.
        least = {} if self.channels is None else dict.fromkeys(("H", "W"), self.stride + 1)
        found = [Recordable("scores", inputs, scores, least=least)]
        if self.refusal_of_streams(model) is None:
            found += of_stream(model.begin(), inputs, go_on)
        if len(spellings) == 1 and self.characters is not None:
            found.append(spelling_function(spellings[0], self.characters))
        return found

    def refusal_of_streams(self, model: Any) -> str | None:
        if self.candidates is not None:
            return "the classes it may answer are those in the whole text (model.candidates = 'text')"
        found: str | None = model.refusal_of_streams()
        return found

    def arrays(self, running: Running, rows: Rows) -> dict[str, NDArray[Any]]:
        """The inputs of `scores` for some rows."""
        found: dict[str, NDArray[Any]] = {}
        if self.frame_size is not None:
            found["frames"], found["lengths"] = padded(rows, "frames", np.float32)
        if self.channels is not None:
            found["pictures"], found["heights"], found["widths_of"] = pictured(rows)
        if self.words is not None:
            found["words"], found["lengths"] = padded(rows, "words", np.int64)
        if self.characters is not None:
            words = spellings_of(rows)
            found |= {"characters": words.characters, "widths": words.widths, "places": words.places}
            if SPELL in running.program.functions:
                found["spelt"] = spelt_by(running, words)
        if self.features is not None:
            found["bag"], found["counts"] = padded(rows, "bag", np.int64)
        if self.paired:
            lengths = rows.flat("steps").values if rows.has("steps") else rows.lengths("words")
            first = rows.flat("first").values.astype(np.int64)
            for text, start, length in (("1", np.zeros_like(first), first), ("2", first, lengths - first)):
                steps = np.arange(int(length.max(initial=0)))
                found[f"text{text}"] = np.where(steps < length[:, None], start[:, None] + steps, 0)
                found[f"lengths{text}"] = length
        if self.candidates is not None:
            found["candidates"] = padded(rows, "candidates", np.bool_)[0]
        return found

    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[ClassifierOutput]:
        every = Rows.of(rows)
        given = self.arrays(running, every)
        lengths = given.get("lengths")
        found = (
            called(running, "scores", given) if lengths is None else called_by_length(running, "scores", given, lengths)
        )
        values = self.mean(found["scores"])
        steps = (
            every.flat("steps").values
            if every.has("steps")
            else every.lengths("frames" if every.has("frames") else "words")
        ).tolist()
        attention = found.get("attention") if detail else None
        there, back = (found.get(name) if detail else None for name in ("weights", "back"))
        firsts, seconds = ((given[f"lengths{text}"].tolist() if self.paired else [0] * len(steps)) for text in "12")
        outputs = []
        for row, length in enumerate(steps):
            one, other = firsts[row], seconds[row]
            looked = (
                None if there is None else there[row, : other if there.shape[1] != 1 else 1, :one].astype(np.float64)
            )
            outputs.append(
                ClassifierOutput(
                    values[row],
                    length,
                    None if attention is None else attention[row, :, :length].astype(np.float64),
                    None,
                    looked,
                    None if back is None else back[row, :one, :other].astype(np.float64),
                )
            )
        return outputs

    def gone_on(
        self, running: Running, row: Encoded, states: Mapping[str, NDArray[Any]]
    ) -> tuple[ClassifierOutput, dict[str, NDArray[Any]]]:
        given = self.arrays(running, Rows.of([row]))
        found = called(running, GO_ON, {**given, **states})
        values = self.mean(found["scores"])
        after = {name: found[name] for name in states}
        return ClassifierOutput(values[0], int(given["lengths"][0]), None), after

    def mean(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """(B, L): what all members say together, from the outputs of each, (M, B, L)."""
        each = scores.astype(np.float64)
        if self.kind == "label":
            each = softmax(each)
        elif self.kind == "labels":
            each = 1 / (1 + np.exp(-each))
        found: NDArray[np.float64] = each.sum(0) / len(each)
        return found
