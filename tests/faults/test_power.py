"""The simulated disk: what a power cut may take, and what it may not."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path, PurePath

from tests.faults.conftest import SmallRuns
from tests.faults.fault import Change, Operation
from tests.faults.power import Disk, cut

ROOT = Path("/disk")


def change(operation: Operation, path: str, *, to: str = "", data: bytes = b"", offset: int = 0) -> Change:
    flags = os.O_CREAT if operation is Operation.OPEN else 0
    return Change(operation, ROOT / path, ROOT / to if to else None, flags, offset, 0, data)


def written(path: str, data: bytes, *, sync: bool = True) -> list[Change]:
    return [
        change(Operation.OPEN, path),
        change(Operation.WRITE, path, data=data),
        *([change(Operation.SYNC, path)] if sync else []),
    ]


def states(changes: Sequence[Change], number: int = 200) -> list[dict[PurePath, bytes | None]]:
    return [cut(changes, len(changes), ROOT, seed) for seed in range(number)]


def test_what_was_not_synced_is_lost_kept_cut_short_or_zero() -> None:
    changes = [*written("a", b"four", sync=False), change(Operation.SYNC, "")]
    found = {state[PurePath("a")] for state in states(changes)}
    assert found == {b"", b"f", b"fo", b"fou", b"four", b"\0\0\0\0"}


def test_a_synced_file_in_a_synced_folder_is_there_whole() -> None:
    changes = [*written("a", b"whole"), change(Operation.SYNC, "")]
    assert states(changes) == [{PurePath("a"): b"whole"}] * 200


def test_the_name_of_a_synced_file_may_be_lost_until_its_folder_is_synced() -> None:
    found = {len(state) for state in states(written("a", b"whole"))}
    assert found == {0, 1}


def test_a_rename_is_there_or_not_and_never_half() -> None:
    old = [*written("a", b"old"), change(Operation.SYNC, "")]
    changes = [*old, *written("b", b"new"), change(Operation.RENAME, "b", to="a")]
    found = {tuple(sorted((str(path), content) for path, content in state.items())) for state in states(changes)}
    assert found == {(("a", b"old"),), (("a", b"old"), ("b", b"new")), (("a", b"new"),)}


def test_a_folder_keeps_the_order_of_its_changes_and_two_folders_do_not() -> None:
    folders = [change(Operation.MKDIR, "x"), change(Operation.MKDIR, "y"), change(Operation.SYNC, "")]
    changes = [*folders, *written("x/1", b"1"), *written("y/2", b"2"), *written("x/3", b"3")]
    found = {frozenset(str(path) for path, content in state.items() if content) for state in states(changes)}
    assert frozenset({"y/2"}) in found
    assert all("x/1" in state for state in found if "x/3" in state)


def test_a_rename_between_folders_is_bound_to_what_came_before_in_both() -> None:
    folders = [change(Operation.MKDIR, "new"), change(Operation.SYNC, "")]
    moved = [*folders, *written("new/a", b"1"), change(Operation.RENAME, "new/a", to="a")]
    found = {tuple(sorted(map(str, state))) for state in states(moved)}
    assert found == {("new",), ("new", "new/a"), ("a", "new")}
    assert {tuple(sorted(map(str, state))) for state in states([*moved, change(Operation.SYNC, "")])} == {("a", "new")}


def test_the_changes_that_were_recorded_lead_to_the_folder_that_there_is(small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    disk = Disk(small.watched)
    disk.apply(small.changes())
    found = {path: content for path, content in disk.contents().items() if content is not None}
    whole = small.folder / "unbroken"
    there = {
        PurePath("run") / path.relative_to(whole): path.read_bytes() for path in whole.rglob("*") if path.is_file()
    }
    assert found == there


def test_a_seed_gives_the_same_state_each_time(small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    changes = small.changes()
    draw = random.Random(1)
    for seed in range(5):
        at = draw.randrange(len(changes)) + 1
        assert cut(changes, at, small.watched, seed) == cut(changes, at, small.watched, seed)
