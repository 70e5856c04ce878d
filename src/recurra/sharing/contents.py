"""What of a run or an exported folder is shared, and how a folder that came from elsewhere is put in its place."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from recurra.errors import CheckpointError, ConfigError
from recurra.manifest import (
    FORMAT,
    MANIFEST,
    WRITTEN,
    Entry,
    is_log,
    listed,
    make_folder,
    read_manifest,
    verify,
)
from recurra.opening import SMALL, read_file
from recurra.training.loading import EXPORT

LICENSE = "LICENSE.model"
"""How the model may be used, as whoever shares it says. The LICENSE of an exported folder is that of its code."""

UNSHARED = ("last/", "tensorboard/")
"""What only whoever trains goes on with: the checkpoint is three times as large as the model."""

MOST_FILES = 10_000
"""Files of a run that came from elsewhere."""


class Content(NamedTuple):
    """One file that is shared: where it lies here, or what it holds."""

    name: str
    entry: Entry
    source: Path | bytes


class Unpacked(NamedTuple):
    """A folder that came from elsewhere and was verified."""

    folder: Path
    files: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.folder}: {self.files} files of {self.bytes:,} bytes are as written, by their SHA-256"


def contents(folder: Path, license: str | os.PathLike[str] | None = None) -> list[Content]:
    """The files of a finished run or an exported folder, verified, and a manifest of them as the first.

    `license` is a file, or the SPDX identifier of a licence such as CC-BY-4.0.
    """
    check_whole(folder)
    verify(folder)
    known = read_manifest(folder)
    if known is None:  # a run of an early version
        known = listed(folder, lambda name: name.endswith(WRITTEN))
    found = [_content(folder, name, entry) for name, entry in sorted(known.items()) if not name.startswith(UNSHARED)]
    if license is not None:
        text = license_text(license)
        found = [each for each in found if each.name != LICENSE]
        found.append(Content(LICENSE, Entry(len(text), hashlib.sha256(text).hexdigest()), text))
        found.sort()
    table = {"format": FORMAT, "files": {each.name: each.entry._asdict() for each in found}}
    manifest = (json.dumps(table, indent=1, ensure_ascii=False) + "\n").encode()
    return [Content(MANIFEST, Entry(len(manifest), hashlib.sha256(manifest).hexdigest()), manifest), *found]


def _content(folder: Path, name: str, entry: Entry) -> Content:
    path = folder / name
    if is_log(name):  # which may have grown since it was recorded
        with path.open("rb") as file:
            return Content(name, entry, file.read(entry.bytes))
    return Content(name, entry, path)


def check_whole(folder: Path) -> None:
    """Refuse what is no finished run and no exported folder."""
    if not (folder / "config.toml").is_file():
        what = "there is no folder" if not folder.exists() else "there is no config.toml in"
        raise CheckpointError(
            f"{what} {folder}: name the folder of a run, or one that `recurra export` wrote, to share it."
        )
    is_exported = (folder / EXPORT).is_file()
    if not is_exported and not (folder / "summary.json").is_file():
        raise CheckpointError(
            f"{folder} is not finished, so there is nothing to share yet. Continue with: recurra train {folder} "
            "--resume"
        )


def license_text(license: str | os.PathLike[str]) -> bytes:
    """What LICENSE.model holds.

    >>> license_text("CC-BY-4.0")
    b'SPDX-License-Identifier: CC-BY-4.0\\n'
    """
    path = Path(license)
    if path.is_file():
        try:
            return read_file(path)
        except OSError as error:
            raise ConfigError(f"--license {path} cannot be read: {error.strerror}.") from error
    if isinstance(license, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]*", license) and path.suffix != ".txt":
        return f"SPDX-License-Identifier: {license}\n".encode()
    raise ConfigError(
        f"--license {license} is neither a file nor an identifier of a licence such as CC-BY-4.0 or Apache-2.0 "
        "(https://spdx.org/licenses)."
    )


def license_of(shared: list[Content]) -> str | None:
    """The licence of what is shared, in a word or two; None where it has none."""
    for each in shared:
        if each.name == LICENSE:
            text = each.source if isinstance(each.source, bytes) else read_file(each.source, SMALL)
            found = re.match(rb"SPDX-License-Identifier: ([A-Za-z0-9.+-]+)", text)
            return LICENSE if found is None else found[1].decode()
    return None


def bad_name(name: str) -> str | None:
    """Why a file of this name is not written; None where it may be.

    >>> bad_name("last/../../x"), bad_name(".lock"), bad_name("code/my/lab.py")
    ("a part of it is '..'", 'it is hidden', None)
    """
    parts = name.split("/")
    if ".." in parts:
        return "a part of it is '..'"
    if name.startswith("/") or re.search(r"[\\:\0]", name):
        return "it leads out of the folder"
    if "" in parts:
        return "a part of it is empty"
    if any(part.startswith(".") for part in parts):
        return "it is hidden"
    return None


def check_names(names: Mapping[str, Entry], manifest: Mapping[str, Entry], what: object) -> None:
    """Refuse files that a manifest does not list, or lists otherwise."""
    for name in manifest:
        if name not in names:
            raise CheckpointError(f"{what} is damaged: it has no {name}, which its {MANIFEST} lists. Get it anew.")
    for name, entry in names.items():
        if name == MANIFEST:
            continue
        if name not in manifest:
            raise CheckpointError(f"{what} is not read: its {MANIFEST} does not list {name}. Get it anew.")
        if manifest[name].bytes != entry.bytes:
            raise CheckpointError(
                f"{what} is damaged: {name} has {entry.bytes:,} bytes, but {manifest[name].bytes:,} by its {MANIFEST}. "
                "Get it anew."
            )


@contextlib.contextmanager
def arriving(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which becomes `folder` at the end, or is removed where anything fails."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder} already exists and is not empty. Choose another folder.")
    stage = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.unfinished")
    try:
        make_folder(stage)
        yield stage
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
        os.replace(stage, folder)
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
