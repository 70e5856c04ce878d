"""Answers to many examples: by several processes, and kept on the disk until all are there. Torch is not needed for it.

Examples are answered in groups of AHEAD, by which also one process goes. So the same examples are computed together
by any number of processes, and after a stop.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

from recurra.cache import remove
from recurra.data.store import Encoded
from recurra.errors import CheckpointError, ConfigError, WorkerError
from recurra.manifest import MANIFEST, digest_of, locked
from recurra.text.json_file import json_text, read_json, write_json
from recurra.version import __version__
from recurra.views.prediction import Prediction
from recurra.workers import Crew

if TYPE_CHECKING:
    from recurra.exported import Exported
    from recurra.training.answering import Answering
    from recurra.training.trained import Trained

Groups: TypeAlias = Iterable[Sequence[Any]]
Answers: TypeAlias = Iterator[list[Prediction]]


class Which(NamedTuple):
    """Which model answers and how it searches: all that a process needs to load it."""

    folder: str
    device: str = "cpu"
    trust: bool = False
    changes: tuple[str, ...] = ()
    search: str | None = None
    width: int | None = None
    best: int | None = None
    history: str | None = None

    def load(self) -> Trained | Exported:
        """The model."""
        model = self._load()
        model.check_used(self.changes, scoring=False)
        model = model.searching(search=self.search, width=self.width, best=self.best, changes=self.changes)
        return model if self.history is None else model.preceded_by(self.history)

    def load_to_score(self) -> Trained | Exported:
        """The model as it is evaluated."""
        model = self._load()
        model.check_used(self.changes, scoring=True)
        model = model.with_settings(self.changes)
        return model if self.history is None else model.preceded_by(self.history)

    def _load(self) -> Trained | Exported:
        from recurra.exported import load

        return load(self.folder, device=self.device, trust=self.trust)

    def mark(self) -> dict[str, object]:
        """What the answers depend on, as JSON: another model under the same name has another mark."""
        marks = []
        for folder in map(Path, self.folder.split(",")):
            with suppress(OSError):
                marks.append(digest_of(folder / MANIFEST))
        found = {name: value for name, value in self._asdict().items() if name != "trust"}
        return {**found, "changes": list(self.changes), "history": file_mark(self.history), "models": marks}


def file_mark(path: str | None) -> list[object] | None:
    """A file as it is now; of parallel files with commas between them the names alone."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return [os.path.abspath(path)]
    return [os.path.abspath(path), found.st_size, found.st_mtime_ns]


def as_json(mark: Mapping[str, object]) -> Any:
    """A mark as it is read back from its file."""
    return json.loads(json_text(mark))


# By several processes


@final
class Sharded:
    """Answers by so many processes, which are started when there are two groups to answer.

    `one`, the model here, is asked where there are no more, or no other processes.
    """

    def __init__(self, which: Which, one: Answering, processes: int) -> None:
        if processes > 1 and which.device != "cpu":
            raise ConfigError(
                f"--processes {processes} shares the work out over the cores of a CPU: leave it out with --device "
                f"{which.device}."
            )
        self.which, self.one, self.processes = which, one, processes
        self._crew: Crew[Any, Any] | None = None

    def answered(self, groups: Groups, *, detail: bool = False) -> Answers:
        """The answers to each group, in order."""
        make = partial(_answering, self.which, detail)
        return self._shared(groups, make, lambda group: self.one.answers(group, detail=detail))

    def outputs(self, batches: Iterable[Sequence[Encoded]]) -> Iterator[list[Any]]:
        """The outputs of each batch of encoded examples, in order."""
        return self._shared(batches, partial(_scoring, self.which), self.one.outputs)

    def _shared(
        self, jobs: Iterable[Sequence[Any]], make: Callable[[], Any], here: Callable[[Sequence[Any]], list[Any]]
    ) -> Iterator[list[Any]]:
        rest = iter(jobs)
        first = list(islice(rest, 2))
        if len(first) > 1:
            self.one.settle()  # also puts the compiled program into the cache, where the others find it
        if len(first) < 2 or self.processes == 1:
            return map(here, chain(first, rest))
        if self._crew is None:
            self._crew = Crew(self.processes, make)
        return self._crew.map(chain(first, rest))

    def close(self) -> None:
        """End the other processes."""
        if self._crew is not None:
            self._crew.close()

    def __enter__(self) -> Sharded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _answering(which: Which, detail: bool) -> Callable[[Sequence[Any]], list[Prediction]]:
    model = which.load()
    model.settle()
    return lambda examples: model.answers(examples, detail=detail)


def _scoring(which: Which) -> Callable[[Sequence[Encoded]], list[Any]]:
    model = which.load_to_score()
    model.settle()
    return model.outputs


# Kept until all are there


ENDING = ".parts"
"""The folder that holds what is answered of a file to be, beside it."""

ABOUT, WHOLE = "about.json", "whole"


@final
class Kept:
    """The answers to groups, each written to a file of its own; what an earlier process wrote is read.

    A file that is broken, or of a kind that is not known, is as good as none: its group is answered again.
    """

    def __init__(self, folder: Path, full: int) -> None:
        self.folder = folder
        self.full = full  # of the examples of a group; one with fewer is the last, and is not worth keeping
        self.found = 0  # answers that were there

    def answered(self, groups: Groups, answer: Callable[[Groups], Answers], say: Callable[[str], None]) -> Answers:
        """The answers to each group, of which `answer` is asked for those that are not there."""
        rest = iter(groups)
        number = 0
        for group in rest:
            answers = self._read(number, len(group))
            if answers is None:
                rest = chain([group], rest)
                break
            self.found += len(answers)
            number += 1
            yield answers
        if number:
            say(f"goes on after {self.found:,} answers, which an earlier run of this command has kept")
        for later, answers in enumerate(answer(rest), number):
            if len(answers) == self.full:
                self._write(later, answers)
            yield answers

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08}.answers"

    def _read(self, number: int, count: int) -> list[Prediction] | None:
        try:
            content = self._file(number).read_bytes()
            if hashlib.sha256(content[32:]).digest() != content[:32]:
                return None
            answers = _Answers(io.BytesIO(content[32:])).load()
            return answers if len(answers) == count else None
        except (OSError, pickle.UnpicklingError, ValueError, TypeError, AttributeError, ImportError, EOFError):
            return None

    def _write(self, number: int, answers: list[Prediction]) -> None:
        content = pickle.dumps(answers, pickle.HIGHEST_PROTOCOL)
        aside = self.folder / f"{number:08}.part"
        with open(aside, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, self._file(number))


class _Answers(pickle.Unpickler):
    """Reads answers, and nothing that could do more than hold them: the folder may have been written by anybody."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (Prediction.__module__, Prediction.__name__):
            return Prediction
        is_array = module in ("numpy", "numpy._core.multiarray", "numpy._core.numeric", "numpy.core.multiarray")
        if is_array and name in ("ndarray", "dtype", "_reconstruct", "_frombuffer", "scalar"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of an answer")


@contextmanager
def unfinished(out: Path, mark: Mapping[str, object]) -> Iterator[Path]:
    """A folder beside a file to be, for this process alone, and where it is written; at the end it takes its name.

    The folder stays where answers are kept in it, and is refused by whatever has another mark.
    """
    folder = out.with_name(f"{out.name}{ENDING}")
    about = as_json({"recurra": __version__, **mark})
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}.") from error
    try:
        with locked(folder, f"--out {out}: another process is writing it just now."):
            if (folder / ABOUT).is_file():
                found: Any = read_json(folder / ABOUT)
                if found != about and (folder / f"{0:08}.answers").exists():
                    differing = [name for name in about if found.get(name) != about[name]]
                    raise CheckpointError(
                        f"--out {out}: {folder} holds answers of another command ({', '.join(differing)} differ). "
                        "Remove that folder, or choose another name."
                    )
            write_json(folder / ABOUT, about)
            is_kept = False
            try:
                yield folder
                os.replace(folder / WHOLE, out)
            except BaseException as error:
                is_kept = (folder / f"{0:08}.answers").exists()  # what was answered is right, whatever stopped the rest
                kept = f"hat was answered is kept in {folder}: the same command goes on from there."
                if is_kept and isinstance(error, KeyboardInterrupt):
                    raise KeyboardInterrupt(f"stopped; w{kept}") from error
                if is_kept and isinstance(error, WorkerError):
                    raise WorkerError(f"{error} W{kept}") from error
                raise
            finally:
                (folder / WHOLE).unlink(missing_ok=True)
                if not is_kept:
                    for path in folder.iterdir():
                        if path.name != ".lock":
                            remove(path)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror or error}.") from error
