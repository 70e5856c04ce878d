"""Training files piece by piece, by several processes where there are some: what is counted is the same by any number.

The pieces depend on the files alone, and what is counted in each is added up in their order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar, final

from recurra.config.share import FilePart
from recurra.frozen import NamedTuple

if TYPE_CHECKING:
    from recurra.workers import Crew

T = TypeVar("T")


class Piece(NamedTuple):
    """A file, or a part of one, and which of the training files it is of."""

    file: int
    path: str


def pieces(files: Sequence[str], format: str | Mapping[str, object] | None) -> Iterator[Piece]:
    """The pieces of some files in their order."""
    from recurra.data.cutting import cut

    return (Piece(number, path) for number, file in enumerate(files) for path in cut(file, format))


def are_whole(files: Sequence[str]) -> bool:
    """Whether files are read as they are; of what a share is held out of, a row's part depends on all rows."""
    return not any(isinstance(file, FilePart) for file in files)


@final
class _Counting:
    """Worker processes that are started when there are two pieces to count."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self.crew: Crew[Any, Any] | None = None

    def map(self, work: Callable[[Sequence[str]], T], found: Iterator[Piece]) -> Iterator[T]:
        first = list(islice(found, 2))
        rest = chain(first, found)
        if len(first) < 2 or self.processes < 2 or not _can_be_sent(work):
            return (work([piece.path]) for piece in rest)
        if self.crew is None:
            from recurra.workers import Crew

            self.crew = Crew(self.processes, _calling)
        return self.crew.map((work, piece.path) for piece in rest)


_COUNTING: ContextVar[_Counting | None] = ContextVar("worker processes that count", default=None)


@contextmanager
def counted_by(processes: int) -> Iterator[None]:
    """Inside, so many processes count."""
    counting = _Counting(processes)
    token = _COUNTING.set(counting)
    try:
        yield
    finally:
        _COUNTING.reset(token)
        if counting.crew is not None:
            counting.crew.close()


def over_pieces(
    files: Sequence[str], format: str | Mapping[str, object] | None, work: Callable[[Sequence[str]], T]
) -> Iterator[T]:
    """What `work` says of each piece of some files, in their order; it is called with a list of one path.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = file.write_text("one\\ntwo\\n")
    >>> list(over_pieces([str(file)], None, len))
    [1]
    """
    if not are_whole(files):
        yield work(files)
        return
    yield from (_COUNTING.get() or _Counting(1)).map(work, pieces(files, format))


def _can_be_sent(work: Callable[..., Any]) -> bool:
    """Whether another process can be told what to do; not so with code of a script or of a notebook."""
    try:
        return b"__main__" not in pickle.dumps(work)
    except Exception:
        return False


def _calling() -> Callable[[tuple[Callable[[Sequence[str]], Any], str]], Any]:
    return _called


def _called(job: tuple[Callable[[Sequence[str]], Any], str]) -> Any:
    work, path = job
    return work([path])
