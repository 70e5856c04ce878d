"""recurra.generate: texts that a trained model writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from recurra.generation.generated import Generated, Manner, TextSource

__all__ = ["Generated", "Manner", "TextSource", "generate"]


class Writes(Protocol):
    """A trained or an exported model."""

    def writer(self, manner: Manner) -> TextSource: ...


def generate(
    trained: Writes,
    prompt: str | Sequence[Any] | NDArray[Any] = "",
    *,
    count: int = 1,
    seed: int = 1,
    length: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    until: str | None = None,
    allow_unknown: bool = False,
) -> list[Generated]:
    """Generate `count` texts from a prompt, or from each of several prompts.

    For vector to sequence, a prompt is an input of `Trained.predict`: "255 0 0", [255, 0, 0] in a list of prompts, or
    the path of a picture.

    Defaults come from the run's [decoding]. A text has at most `length` tokens and ends before `until`; if the model
    was trained on independent lines, it also ends with its line. The same seed gives the same texts, and the first of
    five is the text of count = 1. "<unk>" is neither read nor generated unless allow_unknown.

    >>> import recurra, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.txt").write_text("one two three four\\n" * 40)
    >>> few = {"steps": 80, "batch_size": 4, "learning_rate": 0.03, "average": "none"}
    >>> small = {"model": {"hidden": 32, "layers": 1}, "reading": {"steps": 20}, "training": few}
    >>> model = recurra.train("language_model", train=str(folder / "train.txt"), out=folder / "run", settings=small)
    >>> [found] = generate(model, "one t", temperature=0, until="\\n")
    >>> found.text, found.whole, found.ended
    ('wo three four', 'one two three four', True)
    """
    manner = Manner(seed, length, temperature, top_k, top_p, until, allow_unknown)
    prompts = [prompt] if isinstance(prompt, str) else list(prompt)
    return trained.writer(manner).texts(prompts, count=count)
