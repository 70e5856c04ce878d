"""From files to a task and its encoded examples; a second run on the same files finds both in the cache."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recurra.cache import cache_folder, private_folder, remove, tidy
from recurra.config.fine_tuning import fine_tuning_of
from recurra.data.cutting import is_bounded
from recurra.data.files import parallel_files
from recurra.data.mixed import Mixed
from recurra.data.store import Block, Encoded, Store, Writer, Written, blocks
from recurra.errors import CheckpointError, ConfigError, DataError, RecurraError, WorkerError
from recurra.manifest import Manifest, listed, locked, read_manifest, seal, sync_folder, verify
from recurra.reading.pieces import Piece, are_whole, counted_by, pieces
from recurra.reading.tables import header_in_words
from recurra.settings import SettingError, table_of
from recurra.tasks.task import Task
from recurra.text.json_file import read_json, write_json
from recurra.workers import Crew, cores

VERSION = 7
"""Raised when the meaning of what is cached changes."""

AT_ONCE, MOST_COMPARED = 4096, 200_000
"""Training examples that are compared with the held-out ones: so many together, and in all."""

PLACES = "store/place.values"

LEFT_OUT = "left_out.json"
"""How many examples are not trained with, by the reason."""

PROGRESS = "progress.json"
"""How far an unfinished folder has come: what is written of its store, and how many pieces of the files that are."""

SAVED_EVERY = 5.0
"""Seconds after which the progress of a long preparation is saved."""

LARGE = 64 << 20
"""Bytes of training files from which on several processes are worth starting."""

OF_THE_RUN = ("train", "valid", "test", "seed", "cache", "vectors", "processes")
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


def digest_of(store: Store | Mixed) -> str:
    """A mark of what a prepared store holds; where the rows stood in their files does not matter."""
    if isinstance(store, Mixed):
        return f"{digest_of(store.new)} and of old data {digest_of(store.old)}"
    files = (read_manifest(store.folder.parent) or {}).items()
    kept = [f"{name} {entry.sha256}" for name, entry in files if name.startswith("store/") and name != PLACES]
    return hashlib.sha256("\n".join(sorted(kept)).encode()).hexdigest() if kept else ""


def prepared(
    kind: type[Task[Any, Any, Any]],
    settings: Any,
    say: Callable[[str], None],
    base: Task[Any, Any, Any] | None = None,
) -> Prepared:
    """Read, count and encode the training files, or take what an earlier run made of the same files.

    The base is the task of the run that training starts from, where its vocabularies and scales are kept.
    """
    found = _cached_or_made(kind, settings, say, base)
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
    if fine_tuning_of(task.settings.training).base:  # what it learned came of other data too
        return _encoded(task, private_folder(), lambda _: None)
    try:
        found = prepared(type(task), task.settings, say)
    except (SettingError, CheckpointError):  # a run that it takes features from is gone: it has a copy of its own
        return _encoded(task, private_folder(), lambda _: None)
    # The same numbers may stand for other words or labels, such as two labels that were swapped in the file.
    if digest_of(found.store) == digest and _learned(found.task) == _learned(task):
        return found._replace(task=task)
    return _encoded(task, private_folder(), lambda _: None)


def with_old_data(
    task: Task[Any, Any, Any], store: Store, base: Task[Any, Any, Any] | None, say: Callable[[str], None]
) -> Store | Mixed:
    """The encoded training examples, with those of old data where the settings replay some.

    Old files that are named are read as the new ones are; otherwise they are those of the base, read as it read them.
    """
    training, data = task.settings.training, task.settings.data
    tuning = fine_tuning_of(training)
    if not tuning.old_share:
        return store
    if tuning.old_files:
        data = dataclasses.replace(data, train=tuning.old_files, valid="", test="", seed=1)
    elif base is not None:
        data = base.settings.data
    folder = private_folder()
    task.save(folder)
    reader = type(task).load(dataclasses.replace(task.settings, data=data), folder)
    old = _encoded(reader, private_folder(), lambda _: None).store
    if not {*store.fields} <= {*old.fields}:
        missing = ", ".join(sorted({*store.fields} - {*old.fields}))
        raise DataError(
            f"the old data ({', '.join(data.files('train'))}) cannot be mixed with the new: it has no {missing}. Give "
            f"data of the same kind by training.fine_tuning.old_data, or set training.fine_tuning.old_share = 0."
        )
    said = f"{tuning.old_share:.0%} of each epoch is drawn from {len(old):,} examples of old data"
    say(f"{said} ({', '.join(data.files('train'))})")
    return Mixed(store, old, share=tuning.old_share, seed=training.seed)


def _learned(task: Task[Any, Any, Any]) -> Manifest:
    """The files in which a task keeps what it learned of its data, by their digests."""
    with tempfile.TemporaryDirectory(prefix="recurra-") as folder:
        task.save(Path(folder))
        return listed(Path(folder))


def _cached_or_made(
    kind: type[Task[Any, Any, Any]], settings: Any, say: Callable[[str], None], base: Task[Any, Any, Any] | None
) -> Prepared:
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
        return _made(kind, settings, private_folder(), say, base)
    mark = _mark(kind, settings, files, base)
    entry = cache_folder() / "data" / mark
    if os.path.exists(entry):  # False where one may not look
        try:
            found = _found(kind, settings, entry)
        except (RecurraError, OSError):
            say(f"the cache in {entry} is broken and is rebuilt")
            remove(entry)
        else:
            with suppress(OSError):  # of one that may only be read
                os.utime(entry)
            _say_left_out(entry, found.store, say)
            return found
    with ExitStack() as closing:
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            tidy(entry.parent)
            unfinished = closing.enter_context(_unfinished(entry))
        except OSError as error:
            say(f"the cache folder {entry.parent} cannot be used ({error.strerror}); the encoded examples are not kept")
            return _made(kind, settings, private_folder(), say, base)
        if (task := _begun(kind, settings, unfinished)) is None:
            _made(kind, settings, unfinished, say, base)
        else:
            _encoded(task, unfinished, say)
        try:
            sync_folder(unfinished)
            os.rename(unfinished, entry)
        except OSError as error:
            if not os.path.isdir(entry):  # else another process was quicker, with the same
                raise DataError(f"the encoded examples cannot be kept in {entry}: {error.strerror}.") from error
    return _found(kind, settings, entry)


@contextmanager
def _unfinished(entry: Path) -> Iterator[Path]:
    """A folder beside one of the cache to prepare it in: the one that an earlier process left, where it is free.

    What a process leaves when it is stopped is kept, where it has saved some progress.
    """
    folder = entry.with_name(f"{entry.name}.unfinished")
    with ExitStack() as closing:
        try:
            closing.enter_context(locked(entry.with_name(f"{entry.name}.lock"), "{} is in use."))
            folder.mkdir(exist_ok=True)
        except CheckpointError:  # another process prepares the same just now
            folder = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", suffix=".unfinished", dir=entry.parent))
        is_kept = False
        try:
            yield folder
        except (KeyboardInterrupt, WorkerError):
            is_kept = (folder / PROGRESS).is_file()
            raise
        finally:
            if not is_kept:
                shutil.rmtree(folder, ignore_errors=True)


def _begun(kind: type[Task[Any, Any, Any]], settings: Any, folder: Path) -> Task[Any, Any, Any] | None:
    """The task of a preparation that was stopped while it encoded; None, and an empty folder, where there is none."""
    if (folder / PROGRESS).is_file():
        with suppress(RecurraError, OSError):
            return kind.load(settings, folder)
    for left in folder.iterdir():
        remove(left)
    return None


def source_of(kind: type) -> str:
    """A mark of the code of a user's own task, which may encode otherwise tomorrow; ours has VERSION for that."""
    file = None if kind.__module__.startswith("recurra.") else inspect.getsourcefile(kind)
    return "" if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _mark(kind: type[Task[Any, Any, Any]], settings: Any, files: list[str], base: Task[Any, Any, Any] | None) -> str:
    seen = []
    for file in (part for each in files for part in parallel_files(each)):
        try:
            found = os.stat(file)
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}.") from error
        seen.append([os.path.abspath(file), found.st_size, found.st_mtime_ns])
    known = {name: value for name, value in table_of(settings.data).items() if name not in OF_THE_RUN}
    known["shares"] = settings.data.shares  # that are held out of the files
    marked = [VERSION, kind.__module__, kind.__name__, source_of(kind), seen, known, kind.encoding(settings)]
    if base is not None:
        marked.append({name: entry.sha256 for name, entry in _learned(base).items()})
    text = json.dumps(marked, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _made(
    kind: type[Task[Any, Any, Any]],
    settings: Any,
    folder: Path,
    say: Callable[[str], None],
    base: Task[Any, Any, Any] | None,
) -> Prepared:
    began = time.monotonic()
    with counted_by(_processes(kind, settings)):
        task = kind.prepared(settings) if base is None else kind.prepared_from(settings, base)
    return _encoded(task, folder, say, began)


def _processes(kind: type[Task[Any, Any, Any]], settings: Any) -> int:
    """How many processes prepare the training files of a run."""
    if not _is_apart(kind) or kind.__module__ == "__main__":
        return 1
    if settings.data.processes is not None:
        return int(settings.data.processes)
    size = 0
    for file in (part for each in settings.data.files("train") for part in parallel_files(each)):
        with suppress(OSError):  # said when it is read
            size += os.path.getsize(file)
    return cores() if size >= LARGE else 1


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
    left_out = _write_store(task, folder, say)
    store = Store(folder / "store")
    write_json(folder / LEFT_OUT, left_out)
    (folder / PROGRESS).unlink(missing_ok=True)
    examples = "1 example" if len(store) == 1 else f"{len(store):,} examples"
    say(f"read {examples} in {time.monotonic() - began:.1f} s")
    _say_left_out(folder, store, say)
    if not len(store):
        raise DataError(f"no training examples are left: {next(iter(left_out), 'the files are empty')}.")
    seal(folder)
    return Prepared(task, store)


class Progress(NamedTuple):
    """How far a preparation has come: how many pieces of the files are encoded, and what of them was left out."""

    pieces: int = 0
    written: Written = Written()
    left_out: Mapping[str, int] = MappingProxyType({})

    @classmethod
    def of(cls, folder: Path) -> Progress:
        """That of an unfinished folder; nothing where none was saved."""
        with suppress(RecurraError, OSError, LookupError, TypeError, ValueError):
            found: Any = read_json(folder / PROGRESS)
            return cls(found["pieces"], Written.from_json(found["written"]), found["left_out"])
        return cls()

    def save(self, folder: Path) -> None:
        """Write what `of` reads."""
        write_json(folder / PROGRESS, {**self._asdict(), "written": self.written.to_json()})


def _write_store(task: Task[Any, Any, Any], folder: Path, say: Callable[[str], None]) -> Counter[str]:
    """Encode the training files, from where an earlier process has come; what was left out, by the reason."""
    progress = Progress.of(folder)
    try:
        with ExitStack() as closing:
            try:
                writer = closing.enter_context(Writer(folder / "store", progress.written))
            except OSError:  # less has reached the disk than was said
                progress = Progress()
                writer = closing.enter_context(Writer(folder / "store"))
            if progress.pieces:
                say(f"goes on after {progress.written.rows:,} examples, which an earlier run has encoded")
            left_out = Counter(progress.left_out)
            saved = time.monotonic()
            found = _encoded_pieces(task, folder, progress.pieces, closing)
            for number, (piece, counts) in enumerate(found, progress.pieces + 1):
                for block in piece:
                    writer.add(block)
                left_out.update(counts)
                if time.monotonic() - saved > SAVED_EVERY:
                    writer.sync()
                    Progress(number, writer.written, left_out).save(folder)
                    saved = time.monotonic()
            writer.finish()
    except OSError as error:
        raise DataError(f"the encoded examples cannot be written to {folder}: {error.strerror or error}.") from error
    (folder / PROGRESS).unlink(missing_ok=True)
    return left_out


Piecewise: TypeAlias = "tuple[Iterable[Block], Counter[str]]"
"""Encoded examples of a piece, and the reasons why others are left out, which are known once these are taken."""


def _encoded_pieces(task: Task[Any, Any, Any], folder: Path, done: int, closing: ExitStack) -> Iterator[Piecewise]:
    """The training files piece by piece, after so many that are done."""
    files = task.settings.data.files("train")
    if not _is_apart(type(task)) or not are_whole(files):
        yield _encoded_files(task, files)
        return
    found = islice(pieces(files, task.settings.data.format), done, None)
    processes = _processes(type(task), task.settings)
    first = list(islice(found, 2))
    crew: Crew[Piece, Piecewise] | None = None
    if processes > 1 and len(first) > 1:
        crew = closing.enter_context(Crew(processes, partial(_encoder, type(task), task.settings, folder)))
    for is_small, some in groupby(chain(first, found), lambda piece: is_bounded(piece.path)):
        if is_small and crew is not None:
            yield from crew.map(some)
        else:
            yield from (_encoded_piece(task, piece) for piece in some)


def _is_apart(kind: type[Task[Any, Any, Any]]) -> bool:
    return bool(vars(kind).get("reads_apart"))


def _encoder(kind: type[Task[Any, Any, Any]], settings: Any, folder: Path) -> Callable[[Piece], Piecewise]:
    """What a worker process does with pieces."""
    task = kind.load(settings, folder)

    def encoder(piece: Piece) -> Piecewise:
        found, left_out = _encoded_piece(task, piece)
        return list(found), left_out

    return encoder


def _encoded_piece(task: Task[Any, Any, Any], piece: Piece) -> Piecewise:
    found, left_out = _encoded_files(task, [piece.path])

    def placed() -> Iterator[Block]:
        for block in found:
            if "place" in block.columns:  # the first number says which file it is
                block.columns["place"].values[::2] = piece.file
            yield block

    return placed(), left_out


def _encoded_files(task: Task[Any, Any, Any], files: Sequence[str]) -> Piecewise:
    left_out: Counter[str] = Counter()

    def kept() -> Iterator[Encoded]:
        for row in task.encode_all(task.read(files)):
            if (reason := task.left_out(row)) is None:
                yield row
            else:
                left_out[reason] += 1

    return blocks(kept()), left_out


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
