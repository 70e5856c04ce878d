"""The training text of IWSLT: lines of talks, between lines that tell of the talk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row

_ABOUT = re.compile(
    r"\s*</?(doc|url|keywords|speaker|talkid|title|description|translator|reviewer)\b.*", re.IGNORECASE | re.DOTALL
)
_NAME = re.compile(r"\.tags\.\w+-\w+\.")


class Tagged(Reader):
    """One text a line; lines such as <url>…</url>, <title>…</title> or <doc …>, which tell of a talk, are passed over.

    So files as train.tags.de-en.de and train.tags.de-en.en match line by line: of translators and reviewers they may
    have different numbers.
    """

    def read(self, path: PathLike) -> Iterator[Row]:
        for number, line in lines(path):
            if not _ABOUT.fullmatch(line):
                yield Row({"text": line.strip()}, number)


def is_tagged(path: PathLike) -> bool:
    """Whether a file is called as those of IWSLT are.

    >>> is_tagged("train.tags.de-en.de.gz"), is_tagged("train.tags.txt")
    (True, False)
    """
    return _NAME.search(Path(path).name) is not None
