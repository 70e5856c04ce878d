"""fastText's format: labels, marked by their beginning, and a text on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row
from recurra.errors import ConfigError, DataError

PREFIX = "__label__"


class FastText(Reader):
    r"""One text a line: `__label__sports __label__news the text` has the labels sports and news.

    Each row has `text` and the list `labels`. Where every line of the file has exactly one label, it is `label` too, so
    that several = None reads the file twice. several = false asks for exactly one on each line, and several = true for
    any number of them, none included. A label may stand anywhere in the line, and blank lines are passed over, as
    fastText has it; prefix is its -label.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "train.ft"
    >>> _ = file.write_text("__label__good a fine film\n__label__bad dull\n")
    >>> [row.values for row in FastText().read(file)][0]
    {'text': 'a fine film', 'labels': ['good'], 'label': 'good'}
    """

    extensions = ("ft", "fasttext")

    def __init__(self, *, several: bool | None = None, prefix: str = PREFIX) -> None:
        if not prefix or any(character.isspace() for character in prefix):
            raise ConfigError(f"prefix must be characters without blanks, such as {PREFIX}, but is {prefix!r}.")
        self.several = several
        self.prefix = prefix
        # What fastText takes for the end of a word.
        self._label = re.compile(rf"(?:(?<=[ \t\v\f\r])|^){re.escape(prefix)}[^ \t\v\f\r]*")

    def read(self, path: PathLike) -> Iterator[Row]:
        one = not self.several
        if self.several is None:
            one = all(len(labels) == 1 for _, labels, _ in self._rows(path))
        for number, labels, text in self._rows(path):
            if one:
                yield Row({"text": text, "labels": labels, "label": labels[0]}, number)
            else:
                yield Row({"text": text, "labels": labels}, number)

    def _rows(self, path: PathLike) -> Iterator[tuple[int, list[str], str]]:
        """The number of each line that is not blank, its labels and its text."""
        for number, line in lines(path):
            found = self._label.findall(line)
            text = (self._label.sub("", line) if found else line).strip(" \t\v\f\r")
            if not text and not found:
                continue
            labels = list(dict.fromkeys(label.removeprefix(self.prefix) for label in found))
            if "" in labels:
                raise DataError(f"{path}:{number}: a label has no name: write it right after {self.prefix}.")
            if not labels and not self.several:
                begun = line if len(line) <= 30 else f"{line[:29]}…"
                raise DataError(
                    f"{path}:{number}: this line has no label: {begun!r}. Begin it with {self.prefix}name, or set "
                    "several = true in data.format if texts without a label are allowed."
                )
            if len(labels) > 1 and self.several is False:
                raise DataError(
                    f"{path}:{number}: this line has {len(labels)} labels ({', '.join(labels)}), but several = false "
                    f"allows one. Leave several out of data.format."
                )
            yield number, labels, text
