"""A run as one file: a ZIP archive whose files are stored as they are, so that equal runs give equal bytes.

Any program that reads ZIP can open it. manifest.json comes first and lists all others with sizes and SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from recurra.errors import CheckpointError
from recurra.manifest import LARGEST, MANIFEST, Entry, Manifest, read_manifest
from recurra.opening import open_file
from recurra.sharing.contents import (
    MOST_FILES,
    Content,
    Unpacked,
    arriving,
    bad_name,
    check_names,
    check_whole,
    contents,
    license_of,
)

ENDING = ".zip"

BEGAN = (1980, 1, 1, 0, 0, 0)
"""The time of all files in an archive: the earliest that ZIP knows."""

AT_ONCE = 1 << 20


class Packed(NamedTuple):
    """A file that holds a run."""

    file: Path
    files: int
    bytes: int
    sha256: str
    license: str | None

    def __str__(self) -> str:
        size = f"{self.file}: {self.files} files, {self.bytes:,} bytes, SHA-256 {self.sha256}"
        if self.license is None:
            return f"{size}\nIt has no licence, so others may not use it. To name one: --license CC-BY-4.0, or a file"
        return f"{size}\nlicence: {self.license}"


def pack(
    run: str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    *,
    license: str | os.PathLike[str] | None = None,
) -> Packed:
    """Write a finished run, or an exported folder, as one file with its card, its licence and the checksums of all.

    `license` is a file or an SPDX identifier. The checkpoint to resume from is left out. The same run gives the same
    bytes.

    >>> import recurra, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n")
    >>> few = {"training.steps": 20, "model.hidden": 8, "data.cache": False, "data.min_count": 1}
    >>> _ = recurra.train("tagging", train=str(folder / "train.conll"), out=folder / "run", settings=few)
    >>> recurra.pack(folder / "run", folder / "tagger.zip", license="CC-BY-4.0").license
    'CC-BY-4.0'
    >>> recurra.load(recurra.unpack(folder / "tagger.zip", folder / "copy").folder).predict(["the cat"])[0].output
    'DET NOUN'
    """
    folder = Path(run)
    check_whole(folder)
    target = Path(folder.resolve().name + ENDING) if file is None else Path(file)
    if target.exists():
        raise CheckpointError(f"{target} already exists: remove it, or name another file.")
    shared = contents(folder, license)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
            for each in shared:
                _add(archive, each, folder)
        with unfinished.open("rb") as written:
            os.fsync(written.fileno())
            digest = hashlib.file_digest(written, "sha256").hexdigest()
            size = os.fstat(written.fileno()).st_size
        os.replace(unfinished, target)
    except OSError as error:
        raise CheckpointError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return Packed(target, len(shared), size, digest, license_of(shared))


def _add(archive: zipfile.ZipFile, content: Content, folder: Path) -> None:
    about = zipfile.ZipInfo(content.name, BEGAN)
    about.create_system, about.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    about.file_size = content.entry.bytes
    digest = hashlib.sha256()
    with archive.open(about, "w") as file:
        if isinstance(content.source, bytes):
            file.write(content.source)
            digest.update(content.source)
        else:
            with open_file(content.source) as source:
                while part := source.read(AT_ONCE):
                    file.write(part)
                    digest.update(part)
    if digest.hexdigest() != content.entry.sha256:
        raise CheckpointError(f"{folder / content.name} was changed while it was packed. Pack the run again.")


def unpack(file: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Unpacked:
    """The folder of a run that `pack` wrote as a file, verified by its checksums before it is there.

    What the file names is data: nothing of it is imported. Refused are files that lie outside of the folder, links,
    and all that the manifest does not list.

    >>> unpack("none.zip")
    Traceback (most recent call last):
    recurra.errors.CheckpointError: there is no file none.zip.
    """
    source = Path(file)
    target = source.with_suffix("") if folder is None else Path(folder)
    try:
        with open_file(source) as opened, zipfile.ZipFile(opened) as archive:
            entries = _entries(archive, source, os.fstat(opened.fileno()).st_size)
            with arriving(target) as stage:
                return _extracted(archive, entries, source, stage, target)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no file {source}.") from error
    except IsADirectoryError as error:
        raise CheckpointError(f"{source} is a folder already: it need not be unpacked.") from error
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, RuntimeError) as error:
        raise CheckpointError(f"{source} is no file that `recurra pack` wrote, or is damaged ({error}).") from error
    except OSError as error:
        raise CheckpointError(f"{source} cannot be read: {error.strerror or error}.") from error


def _entries(archive: zipfile.ZipFile, source: Path, size: int) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive by their names, all of which may be written; nothing is read of them yet."""
    found: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > MOST_FILES:
        raise CheckpointError(f"{source} is not read: it has more than {MOST_FILES:,} files, as no run has.")
    for each in archive.infolist():
        # zipfile cuts a name at a NUL and turns \ into / where that parts folders; what was written counts.
        name = each.orig_filename
        kind = stat.S_IFMT(each.external_attr >> 16)
        why = bad_name(name)
        if why is None and each.create_system == 3 and kind not in (0, stat.S_IFREG):
            why = "it is a link" if stat.S_ISLNK(kind) else "it is no plain file"
        if why is None and each.flag_bits & 1:
            why = "it is encrypted"
        if why is None and (each.compress_type != zipfile.ZIP_STORED or each.compress_size != each.file_size):
            why = "it is compressed, which `recurra pack` never does"
        if why is None and name in found:
            why = "it is there twice"
        if why is not None:
            raise CheckpointError(f"{source} is not read: of the file {name!r:.200}, {why}. Nothing was written.")
        found[name] = each
    if MANIFEST not in found:
        raise CheckpointError(f"{source} is no file that `recurra pack` wrote: it has no {MANIFEST}.")
    if sum(each.file_size for each in found.values()) > size:
        raise CheckpointError(f"{source} is not read: its files claim to be larger than it is. Nothing was written.")
    if found[MANIFEST].file_size > LARGEST:
        raise CheckpointError(f"{source} is not read: its {MANIFEST} is larger than {LARGEST:,} bytes.")
    return found


def _extracted(
    archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], source: Path, stage: Path, target: Path
) -> Unpacked:
    """All files written to a folder, each with the digest that the manifest says."""
    (stage / MANIFEST).write_bytes(archive.read(entries[MANIFEST]))
    manifest = _manifest(stage, source)
    check_names({name: Entry(each.file_size, "") for name, each in entries.items()}, manifest, source)
    if "config.toml" not in manifest:
        raise CheckpointError(f"{source} holds no run: it has no config.toml.")
    for name, entry in manifest.items():
        path = stage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entries[name]) as packed, path.open("xb") as file:
            if _copied(packed, file) != entry.sha256:  # type: ignore[arg-type]
                raise CheckpointError(
                    f"{source} is damaged: {name} is not what was packed (SHA-256 in its {MANIFEST}). Get it anew."
                )
    return Unpacked(target, len(entries), sum(each.bytes for each in manifest.values()))


def _manifest(stage: Path, source: Path) -> Manifest:
    try:
        return read_manifest(stage) or {}
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(str(stage), str(source))) from error


def _copied(source: BinaryIO, target: BinaryIO) -> str:
    digest = hashlib.sha256()
    while part := source.read(AT_ONCE):
        target.write(part)
        digest.update(part)
    return digest.hexdigest()
