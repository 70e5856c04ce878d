"""From files to a task and its encoded examples; a second run on the same files finds both in the cache."""

from __future__ import annotations

import atexit
import hashlib
import inspect
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recurra.cache import cache_folder
from recurra.data.files import parallel_files
from recurra.data.store import Encoded, Store
from recurra.errors import CheckpointError, ConfigError, DataError, RecurraError
from recurra.manifest import Manifest, listed, read_manifest, seal, sync_folder, verify
from recurra.reading.tables import header_in_words
from recurra.settings import SettingError, table_of
from recurra.tasks.task import Task
from recurra.text.json_file import read_json, write_json

VERSION = 7
"""Raised when the meaning of what is cached changes."""

UNUSED_DAYS = 30
UNFINISHED_DAYS = 2
"""After so long without use, what is in the cache is removed."""

AT_ONCE, MOST_COMPARED = 4096, 200_000
"""Training examples that are compared with the held-out ones: so many together, and in all."""

PLACES = "store/place.values"

LEFT_OUT = "left_out.json"
"""How many examples are not trained with, by the reason."""

OF_THE_RUN = ("train", "valid", "test", "seed", "cache", "vectors")
"""Settings of data that do not change how an example is encoded."""


class Prepared(NamedTuple):
    """A task that has seen its training data, and the data encoded."""

    task: Task[Any, Any, Any]
    store: Store


class HeldOut(NamedTuple):
    """Examples that training does not learn from, and the same encoded, once for the whole run."""

    examples: Sequence[Any]
    rows: Sequence[Encoded]

    @classmethod
    def of(cls, task: Task[Any, Any, Any], files: Sequence[str | Path]) -> HeldOut:
        """The examples of some files."""
        examples = list(task.read(files))
        return cls(examples, list(task.encode_all(examples)))

    def digest(self) -> str:
        """The same for the same examples."""
        return hashlib.sha256(b"".join(map(_fingerprint, self.rows))).hexdigest()


def repeated(rows: Sequence[Encoded], store: Store) -> int:
    """How many encoded examples are among the first of a store too, answer included."""
    wanted = Counter(_fingerprint(row) for row in rows)
    number = min(len(store), MOST_COMPARED)  # to look at more would take longer than it is worth
    found: set[bytes] = set()
    for first in range(0, number, AT_ONCE) if wanted else ():
        for row in store.take(np.arange(first, min(first + AT_ONCE, number))):
            if (mark := _fingerprint(row)) in wanted:
                found.add(mark)
    return sum(wanted[mark] for mark in found)


def _fingerprint(row: Encoded) -> bytes:
    """A mark that is the same for examples that are encoded alike, wherever they stand."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(row):
        # Features of equal words differ in their last bits with the batch; written: with blanks around the same words.
        if name not in ("place", "features") and not name.startswith("written"):
            array = np.ascontiguousarray(row[name])
            digest.update(f"{name} {array.dtype} {array.shape} ".encode())
            digest.update(array.tobytes())
    return digest.digest()


def digest_of(store: Store) -> str:
    """A mark of what a prepared store holds; where the rows stood in their files does not matter."""
    files = (read_manifest(store.folder.parent) or {}).items()
    kept = [f"{name} {entry.sha256}" for name, entry in files if name.startswith("store/") and name != PLACES]
    return hashlib.sha256("\n".join(sorted(kept)).encode()).hexdigest() if kept else ""


def prepared(kind: type[Task[Any, Any, Any]], settings: Any, say: Callable[[str], None]) -> Prepared:
    """Read, count and encode the training files, or take what an earlier run made of the same files."""
    found = _cached_or_made(kind, settings, say)
    for file in settings.data.files("train"):
        if (said := header_in_words(file, found.task.settings.data)) is not None:
            say(said)
    found.task.check()
    if (said := found.task.noticed_in_training(found.store)) is not None:
        say(said)
    return found


def prepared_again(task: Task[Any, Any, Any], digest: str | None, say: Callable[[str], None]) -> Prepared:
    """The training data of a run that is resumed, encoded by its own task, however the files have changed since.

    The digest is that of the data it was begun with; None where its checkpoint does not know it.
    """
    try:
        found = prepared(type(task), task.settings, say)
    except (SettingError, CheckpointError):  # a run that it takes features from is gone: it has a copy of its own
        return _encoded(task, _private(), lambda _: None)
    # The same numbers may stand for other words or labels, such as two labels that were swapped in the file.
    if digest_of(found.store) == digest and _learned(found.task) == _learned(task):
        return found._replace(task=task)
    return _encoded(task, _private(), lambda _: None)


def _learned(task: Task[Any, Any, Any]) -> Manifest:
    """The files in which a task keeps what it learned of its data, by their digests."""
    with tempfile.TemporaryDirectory(prefix="recurra-") as folder:
        task.save(Path(folder))
        return listed(Path(folder))


def _cached_or_made(kind: type[Task[Any, Any, Any]], settings: Any, say: Callable[[str], None]) -> Prepared:
    files = settings.data.files("train")
    if not files:
        raise ConfigError("there is no training data: set data.train, or give --train FILE.")
    for file in (part for each in files for part in parallel_files(each)):
        if os.path.exists(file) and not os.path.isfile(file) and not os.path.isdir(file):
            raise DataError(
                f"'{file}' is a pipe or a device, but training reads its files several times. Write the data to a "
                f"file first."
            )
    settings = kind.resolved(settings)
    if not settings.data.cache:
        return _made(kind, settings, _private(), say)
    mark = _mark(kind, settings, files)
    entry = cache_folder() / "data" / mark
    if os.path.exists(entry):  # False where one may not look
        try:
            found = _found(kind, settings, entry)
        except (RecurraError, OSError):
            say(f"the cache in {entry} is broken and is rebuilt")
            _remove(entry)
        else:
            with suppress(OSError):  # of one that may only be read
                os.utime(entry)
            _say_left_out(entry, found.store, say)
            return found
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        _tidy(entry.parent)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{mark}.", suffix=".unfinished", dir=entry.parent))
    except OSError as error:
        say(f"the cache folder {entry.parent} cannot be used ({error.strerror}); the encoded examples are not kept")
        return _made(kind, settings, _private(), say)
    try:
        _made(kind, settings, unfinished, say)
        try:
            sync_folder(unfinished)
            os.rename(unfinished, entry)
        except OSError as error:
            if not os.path.isdir(entry):  # else another process was quicker, with the same
                raise DataError(f"the encoded examples cannot be kept in {entry}: {error.strerror}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return _found(kind, settings, entry)


def source_of(kind: type) -> str:
    """A mark of the code of a user's own task, which may encode otherwise tomorrow; ours has VERSION for that."""
    file = None if kind.__module__.startswith("recurra.") else inspect.getsourcefile(kind)
    return "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _mark(kind: type[Task[Any, Any, Any]], settings: Any, files: list[str]) -> str:
    seen = []
    for file in (part for each in files for part in parallel_files(each)):
        try:
            found = os.stat(file)
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}.") from error
        seen.append([os.path.abspath(file), found.st_size, found.st_mtime_ns])
    known = {name: value for name, value in table_of(settings.data).items() if name not in OF_THE_RUN}
    known["shares"] = settings.data.shares  # that are held out of the files
    others = kind.encoding(settings)
    text = json.dumps([VERSION, kind.__module__, kind.__name__, source_of(kind), seen, known, others], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _made(kind: type[Task[Any, Any, Any]], settings: Any, folder: Path, say: Callable[[str], None]) -> Prepared:
    began = time.monotonic()
    return _encoded(kind.prepared(settings), folder, say, began)


def _encoded(
    task: Task[Any, Any, Any], folder: Path, say: Callable[[str], None], began: float | None = None
) -> Prepared:
    """Write what a task makes of its training files to a folder, and what it learned of them."""
    began = time.monotonic() if began is None else began
    try:
        task.save(folder)
    except OSError as error:
        raise DataError(
            f"the vocabularies and statistics of the data cannot be written to {folder}: {error.strerror}."
        ) from error
    left_out: list[str] = []

    def encoded() -> Iterator[Encoded]:
        for row in task.encode_all(task.read(task.settings.data.files("train"))):
            if (reason := task.left_out(row)) is None:
                yield row
            else:
                left_out.append(reason)

    store = Store.write(folder / "store", encoded())
    write_json(folder / LEFT_OUT, Counter(left_out))
    examples = "1 example" if len(store) == 1 else f"{len(store):,} examples"
    say(f"read {examples} in {time.monotonic() - began:.1f} s")
    _say_left_out(folder, store, say)
    if not len(store):
        raise DataError(f"no training examples are left: {left_out[0] if left_out else 'the files are empty'}.")
    seal(folder)
    return Prepared(task, store)


def _found(kind: type[Task[Any, Any, Any]], settings: Any, entry: Path) -> Prepared:
    verify(entry)
    return Prepared(kind.load(settings, entry), Store(entry / "store"))


def _say_left_out(folder: Path, store: Store, say: Callable[[str], None]) -> None:
    """What of the training data is not in the store; said each time, for the cache is nothing to think of."""
    try:
        counts = read_json(folder / LEFT_OUT)
    except RecurraError:
        return  # nothing that training needs
    known = counts if isinstance(counts, dict) else {}
    for reason, count in known.items():
        say(f"left out {count:,} of {len(store) + sum(known.values()):,} examples: {reason}")


def _private() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="recurra-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _tidy(folder: Path) -> None:
    """Remove what was not used for a month, and what was never finished."""
    for entry in folder.iterdir():
        with suppress(OSError):  # another process tidies too
            days = (time.time() - entry.stat().st_mtime) / 86_400
            if days > (UNFINISHED_DAYS if entry.name.endswith(".unfinished") else UNUSED_DAYS):
                _remove(entry)


def _remove(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)
