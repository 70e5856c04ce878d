"""What a disk may hold after a power cut, from a record of every change that was made.

A disk keeps what was synced. Of the rest:

- bytes of a file since its last fsync are lost, kept, kept in part, or kept as zeros of the right length;
- the entries of a folder (made, renamed, removed) since its last fsync are kept up to some point: in order within one
  folder, in any order between folders;
- a rename from one folder to another happens in both or in neither, as on every journalling file system;
- fsync of a file does not keep its name: that is an entry of its folder.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from tests.faults.fault import Change, Operation


@dataclass(eq=False)
class File:
    """The bytes of a file: as the process sees them, and as the disk is bound to have them."""

    content: bytes = b""
    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut off there

    def change(self, offset: int, data: bytes | None) -> None:
        self.content = changed(self.content, offset, data)
        self.pending.append((offset, data))

    def sync(self) -> None:
        self.synced, self.pending = self.content, []

    def after_the_cut(self, draw: random.Random | None) -> bytes:
        if not self.pending or draw is None:
            return self.synced
        how = draw.choice(["lost", "kept", "in part", "zeros"])
        if how == "lost":
            return self.synced
        if how == "kept":
            return self.content
        if how == "zeros":
            old = zip(self.synced.ljust(len(self.content), b"\0"), self.content, strict=False)
            return bytes(new if new == before else 0 for before, new in old)
        found = self.synced
        for offset, data in self.pending[: draw.randrange(len(self.pending)) + 1]:
            last = found, offset, data
            found = changed(found, offset, data)
        before, offset, data = last
        return found if data is None else changed(before, offset, data[: draw.randrange(len(data) + 1)])


def changed(content: bytes, offset: int, data: bytes | None) -> bytes:
    """Content with data written there; cut off or lengthened with zeros to that size where data is None."""
    start = content[:offset].ljust(offset, b"\0")
    return start if data is None else start + data + content[offset + len(data) :]


@dataclass(eq=False)
class Folder:
    """The entries of a folder as the process sees them."""

    entries: dict[str, File | Folder] = field(default_factory=dict)


@dataclass(eq=False)
class Edit:
    """A change of the entries of one folder, or of two at once."""

    parts: list[tuple[Folder, str, File | Folder | None]]  # None: the entry is removed
    is_synced: bool = False


class Disk:
    """A folder that is empty at first, all changes of it, and what a power cut may leave."""

    def __init__(self, root: PurePath) -> None:
        self._root_path = root
        self._root = Folder()
        self._edits: list[Edit] = []

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.result >= 0:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        path, operation = change.path, change.operation
        if operation is Operation.SYNC:
            node = self._node(path)
            if isinstance(node, File):
                node.sync()
            elif isinstance(node, Folder):
                self._sync(node)
        elif operation is Operation.OPEN:
            if self._node(path) is None and change.flags & os.O_CREAT:
                self._edit((path, File()))
            if change.flags & os.O_TRUNC and (file := self._file(path)).content:
                file.change(0, None)
        elif operation is Operation.WRITE:
            self._file(path).change(change.offset, change.data)
        elif operation is Operation.TRUNCATE:
            self._file(path).change(change.offset, None)
        elif operation is Operation.MKDIR:
            if path != self._root_path:
                self._edit((path, Folder()))
        elif operation in (Operation.UNLINK, Operation.RMDIR):
            self._edit((path, None))
        else:
            assert change.other is not None
            node = self._node(path)
            assert node is not None, f"{path} is renamed, but was never made"
            if operation is Operation.RENAME:
                self._edit((path, None), (change.other, node))
            else:
                self._edit((change.other, node))

    def _node(self, path: PurePath) -> File | Folder | None:
        node: File | Folder | None = self._root
        for name in path.relative_to(self._root_path).parts:
            node = node.entries.get(name) if isinstance(node, Folder) else None
        return node

    def _file(self, path: PurePath) -> File:
        node = self._node(path)
        # An open file that has lost its name holds nothing that a power cut could leave.
        return node if isinstance(node, File) else File()

    def _edit(self, *parts: tuple[PurePath, File | Folder | None]) -> None:
        edit = Edit([])
        for path, node in parts:
            folder = self._node(path.parent)
            assert isinstance(folder, Folder), f"{path.parent} is no folder"
            edit.parts.append((folder, path.name, node))
            if node is None:
                del folder.entries[path.name]
            else:
                folder.entries[path.name] = node
        self._edits.append(edit)

    def _sync(self, folder: Folder) -> None:
        """All entries of a folder, and what came before in another where a rename binds the two."""
        bound = {folder}
        for edit in reversed(self._edits):
            if any(each in bound for each, _, _ in edit.parts):
                edit.is_synced = True
                bound |= {each for each, _, _ in edit.parts}

    def contents(self) -> dict[PurePath, bytes | None]:
        """Files with their bytes, and folders (None), as the process sees them."""
        return self._found(lambda folder: folder.entries, lambda file: file.content)

    def after_the_cut(self, draw: random.Random | None) -> dict[PurePath, bytes | None]:
        """The same when the power is back: the draw chooses what the disk has kept; None: only what it must keep."""
        stopped: set[Folder] = set()  # what follows in these folders is lost
        entries: dict[Folder, dict[str, File | Folder]] = {}
        keeps = {}
        for edit in self._edits:
            for folder, _, _ in edit.parts:
                if folder not in keeps:  # how much is kept of what is not synced
                    keeps[folder] = 0.0 if draw is None else draw.choice([0.0, 0.5, 0.9, 1.0])
        for edit in self._edits:
            folders = {folder for folder, _, _ in edit.parts}
            chance = 0.0 if draw is None else draw.random()
            if not edit.is_synced and (folders & stopped or chance >= min(keeps[folder] for folder in folders)):
                stopped |= folders
                continue
            for folder, name, node in edit.parts:
                if node is None:
                    entries.setdefault(folder, {}).pop(name, None)
                else:
                    entries.setdefault(folder, {})[name] = node
        return self._found(lambda folder: entries.get(folder, {}), lambda file: file.after_the_cut(draw))

    def _found(
        self,
        entries: Callable[[Folder], Mapping[str, File | Folder]],
        content: Callable[[File], bytes],
    ) -> dict[PurePath, bytes | None]:
        found: dict[PurePath, bytes | None] = {}
        contents: dict[File, bytes] = {}
        left: list[tuple[PurePath, Folder]] = [(PurePath(), self._root)]
        while left:
            path, folder = left.pop()
            for name, node in entries(folder).items():
                if isinstance(node, Folder):
                    found[path / name] = None
                    left.append((path / name, node))
                else:
                    if node not in contents:  # a file may have two names
                        contents[node] = content(node)
                    found[path / name] = contents[node]
        return found


def cut(changes: Sequence[Change], at: int, root: Path, seed: int) -> dict[PurePath, bytes | None]:
    """What the folder may hold when the power fails after so many changes; the seed chooses among the possible."""
    disk = Disk(root)
    disk.apply(changes[:at])
    return disk.after_the_cut(random.Random(seed))


def lay_out(found: dict[PurePath, bytes | None], root: Path) -> None:
    """Make the folder hold that; it is empty before."""
    for path, content in found.items():
        if content is None:
            (root / path).mkdir(parents=True, exist_ok=True)
    for path, content in found.items():
        if content is not None:
            (root / path).write_bytes(content)
