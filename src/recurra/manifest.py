"""Folders whose files change together at one commit point, and are verified when they are read.

manifest.json lists the files of a folder with their sizes and SHA-256 digests. A change is made in four steps:

1. New files are written to the subfolder .new, and synced to the disk.
2. A new manifest, which has their digests, is written beside the old one, and synced.
3. It replaces the old manifest: this is the commit point.
4. The new files are renamed to their places.

Whoever is cut off before the third step leaves the folder as it was; after it, whoever opens the folder next finds the
new files in .new by their digests, and finishes the fourth step. Nothing is ever half changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from recurra.errors import CheckpointError
from recurra.frozen import NamedTuple

MANIFEST, STAGE, LOCK = "manifest.json", ".new", ".lock"

FORMAT = 1
"""The number of the manifest's own format."""

LARGEST = 1 << 20
"""Bytes of a manifest that are read."""

OTHERS = ("tensorboard",)
"""Folders inside of a run that other programs read, and nothing here."""

WRITTEN = (".html", ".json", ".jsonl", ".md", ".safetensors", ".toml")
"""Endings of the files that training writes to a run. What else lies there is the user's, and may change."""

PATIENCE = 1.5
"""Seconds that a reader waits for a process that is just committing a change."""


class UnverifiedWarning(UserWarning):
    """A run has no manifest, because an earlier version of recurra wrote it: damage to its files is not noticed."""


class Entry(NamedTuple):
    """What the manifest says of one file; of a log that grows, of its first bytes."""

    bytes: int
    sha256: str


Manifest = Mapping[str, Entry]
"""The files of a folder by their names, with / between folders."""


# Reading


def is_trained(folder: Path) -> bool:
    """Whether training wrote this folder: a config.toml alone may be that of a training to come."""
    others = (MANIFEST, "model.safetensors", "metrics.jsonl", "summary.json")
    return (folder / "config.toml").is_file() and any((folder / name).exists() for name in others)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, or None where there is none."""
    path = folder / MANIFEST
    try:
        with open(path, "rb", opener=_regular) as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST:,} bytes")
        table = json.loads(content)
        if not isinstance(table, dict) or type(table.get("format")) is not int:
            raise ValueError("it has no format")
        if table["format"] > FORMAT:
            raise CheckpointError(
                f"{path} was written by a later recurra (format {table['format']}); this one reads format {FORMAT}. "
                f"Upgrade recurra."
            )
        return {_name(name): _entry(entry) for name, entry in table["files"].items()}
    except FileNotFoundError:
        return None
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged ({error}). Restore it from a copy of the run.") from error


def _name(name: str) -> str:
    if (
        not isinstance(name, str)
        or set(name) & set("\\:\0")
        or {"", ".", ".."} & set(name.split("/"))
        or name == MANIFEST
    ):
        raise ValueError(f"{name!r} is not the name of a file in this folder")
    return name


def _entry(found: Mapping[str, object]) -> Entry:
    size, digest = found["bytes"], found["sha256"]
    if type(size) is not int or size < 0 or not is_digest(digest):
        raise ValueError("an entry has no size or no digest")
    return Entry(size, digest)


def is_digest(found: object) -> TypeGuard[str]:
    """Whether this is a SHA-256 digest as it is written."""
    return isinstance(found, str) and len(found) == 64 and set(found) <= set("0123456789abcdef")


def verify(folder: Path, which: Callable[[str], bool] = lambda name: True) -> None:
    """Raise a CheckpointError unless files are as the manifest says: all, or those of some names.

    A change that was cut off after its commit point is finished first. A folder without a manifest, as earlier
    versions wrote it, has nothing to be verified by; `notice_unverified` tells the user.
    """
    refuse_links(folder)
    until = time.monotonic() + PATIENCE
    before: tuple[Manifest, Wrong] | None = None
    while (manifest := read_manifest(folder)) is not None:
        found = next(_wrong(folder, manifest, which), None)
        if found is None:
            return
        if _is_being_changed(folder, manifest, until):
            before = None
        elif before != (manifest, found):  # it may have taken its place just after it was looked at
            before = manifest, found
        elif (waiting := folder / STAGE / found.name).exists():
            raise CheckpointError(
                f"the last change of {folder} was cut off, and {waiting} cannot be put in its place. Make the folder "
                f"writable, or copy it to a place that is."
            )
        else:
            raise CheckpointError(
                f"{folder / found.name} {found.what}. Restore it from a copy of the run. If you changed the file on "
                f"purpose, accept it: recurra check {folder} --accept"
            )


class Wrong(NamedTuple):
    """A file that is not as the manifest says."""

    name: str
    what: str


def wrong_files(folder: Path) -> list[Wrong]:
    """All files of a folder that are missing or not as the manifest says."""
    return list(_wrong(folder, read_manifest(folder) or {}, lambda name: True))


def _wrong(folder: Path, manifest: Manifest, which: Callable[[str], bool]) -> Iterator[Wrong]:
    for name, entry in manifest.items():
        if which(name):
            try:
                if digest_of(folder / name, entry.bytes, grows=is_log(name)) != entry.sha256:
                    yield Wrong(name, "is damaged: its content is not what was written (SHA-256 in manifest.json)")
            except FileNotFoundError:
                yield Wrong(name, "is missing, but manifest.json lists it")
            except OSError as error:
                yield Wrong(name, f"cannot be read: {error.strerror or error}")


def digest_of(path: Path, size: int | None = None, *, grows: bool = False) -> str:
    """The SHA-256 of a file; "" where it has another size than it should have, which is quicker to see.

    Of a file that grows, only the first bytes are meant.
    """
    with open(path, "rb", opener=_regular) as file:
        there = os.fstat(file.fileno()).st_size
        if size is None or (there == size and not grows):
            return hashlib.file_digest(file, "sha256").hexdigest()
        if there < size or not grows:
            return ""
        digest, rest = hashlib.sha256(), size
        while rest and (part := file.read(min(rest, 1 << 20))):
            digest.update(part)
            rest -= len(part)
        return digest.hexdigest()


def is_log(name: str) -> bool:
    """Whether a file goes on growing between commits."""
    return name.endswith(".jsonl")


def _regular(path: str, flags: int) -> int:
    """Open a plain file: a pipe would block, and a link may lead anywhere."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(0, "it is not a regular file", path)
    return file


def refuse_links(folder: Path) -> None:
    """Refuse a run whose files are links out of its folder, pipes or devices."""
    try:
        for here in (folder, *(folder / each for each in ("last", STAGE))):
            for each in _entries(here):
                is_out = each.is_symlink() and not Path(each.path).resolve().is_relative_to(folder.resolve())
                if is_out or not (each.is_dir() or each.is_file() or each.is_symlink()):
                    what = "a link to a place outside of the folder" if is_out else "neither a file nor a folder"
                    raise CheckpointError(f"{each.path} is {what}, so the run is not read. Put the file itself there.")
    except OSError as error:
        raise CheckpointError(f"the run folder {folder} cannot be read: {error.strerror or error}.") from error


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where there is none, or where another process has just removed it."""
    try:
        return list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_being_changed(folder: Path, manifest: Manifest, until: float) -> bool:
    """Whether it is worth looking again: a change was just finished, is under way, or has waited to be finished."""
    try:
        if (folder / STAGE).is_dir():
            with locked(folder, "another process is training in {}."):
                return finish_change(folder) or read_manifest(folder) != manifest
    except CheckpointError:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)  # another process is at it, or the folder may only be read
        return True
    return read_manifest(folder) != manifest


def notice_unverified(folder: Path) -> None:
    """Tell the user that a run has no manifest."""
    if not (folder / MANIFEST).exists():
        warnings.warn(
            f"{folder} has no manifest.json, because an earlier version of recurra wrote it: damage to its files "
            f"cannot be noticed. To add one: recurra check {folder} --accept",
            UnverifiedWarning,
            stacklevel=2,
        )


# Writing


@contextlib.contextmanager
def committing(folder: Path, *, logs: Mapping[str, int] | None = None) -> Iterator[Path]:
    """A folder to write new files to; at the end all of them become files of `folder` at once, or none does.

    Of logs, which are written in place, so many bytes are recorded. Whoever commits holds the lock of the folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with committing(folder) as new:
    ...     _ = (new / "a.txt").write_text("one")
    ...     _ = (new / "b.txt").write_text("two")
    >>> sorted(path.name for path in folder.iterdir()), verify(folder)
    (['a.txt', 'b.txt', 'manifest.json'], None)
    """
    stage = folder / STAGE
    try:
        _finish_change(folder)
        entries = dict(old if (old := read_manifest(folder)) is not None else listed(folder, _is_written))
        stage.mkdir(parents=True)
        try:
            yield stage
            new: list[str] = []
            for name, path in _files(stage):
                if (folder / name).is_dir():
                    raise OSError(0, f"{name} is a folder")
                with open(path, "rb+") as file:
                    os.fsync(file.fileno())
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                    entries[name] = Entry(os.fstat(file.fileno()).st_size, digest)
                new.append(name)
            for name, size in (logs or {}).items():
                with open(folder / name, "rb+") as file:
                    os.fsync(file.fileno())
                entries[name] = Entry(size, digest_of(folder / name, size, grows=True))
            for inner, _, _ in os.walk(stage):
                sync_folder(Path(inner))
            sync_folder(folder)
            _replace_manifest(folder, entries)
            _place(folder, new)  # at once: until then readers find files that are not those of the manifest
        finally:
            # The manifest tells whether the commit point was passed, whatever happened and wherever it did.
            _finish_change(folder)
    except OSError as error:
        raise CheckpointError(
            f"{folder} cannot be written ({error.strerror or error}); all that was saved before is still there."
        ) from error


def finish_change(folder: Path) -> bool:
    """Finish a change that was cut off after its commit point, or remove what was left before it.

    Whoever calls this holds the lock of the folder. Returns whether a file was put in its place.
    """
    try:
        return _finish_change(folder)
    except OSError as error:
        raise CheckpointError(
            f"the last change of {folder} was cut off, and {folder / STAGE} cannot be put in its place "
            f"({error.strerror or error}). Make the folder writable, or restore it from a copy of the run."
        ) from error


def _finish_change(folder: Path) -> bool:
    stage = folder / STAGE
    if not stage.is_dir():
        return False
    manifest = read_manifest(folder) or {}
    whole = [
        name
        for name, path in _files(stage)
        if name in manifest and digest_of(path, manifest[name].bytes) == manifest[name].sha256
    ]
    _place(folder, whole)
    _remove_folder(stage)
    return bool(whole)


def _remove_folder(folder: Path) -> None:
    import shutil  # with all that packs files; whoever only reads a folder needs none of it

    shutil.rmtree(folder, ignore_errors=True)


def _place(folder: Path, names: Sequence[str]) -> None:
    """Rename new files to their places."""
    parents = {(folder / name).parent: None for name in names}
    for parent in parents:
        make_folder(parent)  # on the disk before anything is renamed into it
    for name in names:
        os.replace(folder / STAGE / name, folder / name)
    for parent in parents:
        sync_folder(parent)
    if names:
        sync_folder(folder)


def remove_run(folder: Path) -> None:
    """Remove what training wrote to a folder; what else lies there stays. Whoever calls this holds the lock."""
    refuse_links(folder)
    try:
        written = [name for name, _ in _files(folder) if name != MANIFEST and _is_written(name)]
        for name in (MANIFEST, "config.toml", *written):  # the first two make it a run
            (folder / name).unlink(missing_ok=True)
        for name in (STAGE, *OTHERS):
            _remove_folder(folder / name)
        sync_folder(folder)
    except OSError as error:
        raise CheckpointError(f"the run in {folder} cannot be removed ({error.strerror or error}).") from error


def seal(folder: Path) -> None:
    """Write a manifest of all files that are in a folder."""
    _record(folder, lambda name: True)


def accept(folder: Path) -> None:
    """Record the files of a run as they are: those that its manifest lists, or else those that training writes."""
    try:
        known = read_manifest(folder)
    except CheckpointError:  # it is damaged
        known = None
    _record(folder, _is_written if known is None else known.__contains__)


def _record(folder: Path, which: Callable[[str], bool]) -> None:
    try:
        _replace_manifest(folder, listed(folder, which))
    except OSError as error:
        raise CheckpointError(f"{folder / MANIFEST} cannot be written ({error.strerror or error}).") from error


def _is_written(name: str) -> bool:
    return name.endswith(WRITTEN)


def listed(folder: Path, which: Callable[[str], bool] = lambda name: True) -> dict[str, Entry]:
    """The files of a folder as they are, all or those of some names, without hidden ones and other programs' files."""
    return {
        name: Entry(path.stat().st_size, digest_of(path))
        for name, path in _files(folder)
        if name != MANIFEST and which(name)
    }


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The regular files of a folder and of those inside it, with their names, in order."""
    for here, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name not in OTHERS)
        for each in sorted(files):
            path = Path(here) / each
            if not each.startswith(".") and not each.endswith(".unfinished") and stat.S_ISREG(path.lstat().st_mode):
                yield path.relative_to(folder).as_posix(), path


def _replace_manifest(folder: Path, entries: Mapping[str, Entry]) -> None:
    table = {"format": FORMAT, "files": {name: entry._asdict() for name, entry in sorted(entries.items())}}
    unfinished = folder / f".{MANIFEST}.unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, folder / MANIFEST)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(folder)


def make_folder(folder: Path) -> None:
    """A folder, unless it is there, and those that it lies in; their names are on the disk when this returns."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can do that."""
    if sys.platform != "win32":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextlib.contextmanager
def locked(folder: Path, refusal: str) -> Iterator[None]:
    """The folder, for this process alone; one that stays empty is removed again. {} in the refusal is the folder."""
    lock = folder / LOCK
    with contextlib.ExitStack() as closing:
        try:
            while True:
                make_folder(folder)
                refuse_links(folder)  # through which all that is written in the folder could land elsewhere
                try:
                    # Not "w": a second name of another file would empty that.
                    file = closing.enter_context(open(lock, "a", opener=_regular))
                except FileNotFoundError:  # the process that held an empty folder has just removed it
                    continue
                if _is_ours(file.fileno(), lock, refusal.format(folder)):
                    break
                file.close()
        except OSError as error:
            raise CheckpointError(f"the run folder {folder} cannot be written: {error.strerror}.") from error
        try:
            yield
        finally:
            if sys.platform == "win32":  # which removes no file that is open
                closing.close()
            with contextlib.suppress(OSError):
                lock.unlink(missing_ok=True)  # while it is held: whoever waits for this file sees that it is gone
            with contextlib.suppress(OSError):
                folder.rmdir()


def _is_ours(file: int, lock: Path, refusal: str) -> bool:
    """Whether the lock that this process now holds is the one that others would ask for."""
    if sys.platform == "win32":
        msvcrt: Any = importlib.import_module("msvcrt")
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise CheckpointError(refusal) from error
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CheckpointError(refusal) from error
    except OSError:  # of a file system without locks
        return True
    try:
        there = os.stat(lock)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(file))
