"""The crash programme: runs that are killed, stopped, cut off from power or refused by the disk, then gone on with.

Each function breaks a small run in one way, lets it recover, and tells what came of it; tests and the benchmark
`crashes.py` decide how often.
"""

from __future__ import annotations

import errno
import random
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.manifest import MANIFEST, STAGE, wrong_files
from tests.faults.fault import EVERY, GROWING, Action, Change, Fault, Operation
from tests.faults.fork_server import Ended
from tests.faults.power import cut, lay_out
from tests.faults.small_runs import Bits, SmallRun, is_one_sentence

LOGGED = ("metrics.jsonl", ".lock")
"""Files that are written while nothing is being saved."""


class Outcome(NamedTuple):
    """One fault and what came of it."""

    what: str
    mistake: str  # "" where the run recovered as promised
    in_save: bool = False  # whether it came while files were being saved
    came: bool = True  # False where the run was over before it: one that takes long logs more, and counts otherwise


def mistakes(outcomes: Iterable[Outcome]) -> list[str]:
    return [f"{outcome.what}: {outcome.mistake}" for outcome in outcomes if outcome.mistake]


def is_in_save(hit: str) -> bool:
    """Whether an operation, as the shim tells it, is a part of saving."""
    path = Path(hit.partition(" ")[2])
    return bool(hit) and path.name not in LOGGED and "tensorboard" not in path.parts


def is_staged(run: Path) -> bool:
    """Whether a save was cut short: it leaves what it had written."""
    return (run / STAGE).exists()


def is_committed(run: Path) -> bool:
    return (run / MANIFEST).exists()


def recovery(small: SmallRun, unbroken: Bits, *, must_resume: bool = False) -> str:
    """Go on with a broken run to its end: "" where it ends as the unbroken one, else what is wrong."""
    must_resume = must_resume or is_committed(small.run)
    recovered = small.recovered()
    if recovered.bits is None:
        return f"it can neither be resumed nor begun: {recovered.said_before} {recovered.ended.said}"
    if must_resume and recovered.way != "resumed":
        return f"a saved run is lost: {recovered.ended.said}"
    if recovered.bits != unbroken:
        return f"{recovered.way}, it ends with other bits: {recovered.bits} instead of {unbroken}"
    if wrong := wrong_files(small.run):
        return f"{recovered.way}, its manifest is wrong about {wrong}"
    if (files := files_of(small.run)) != (whole := files_of(small.folder / "unbroken")):
        return f"{recovered.way}, it leaves other files: {files} instead of {whole}"
    return ""


def goes_on(small: SmallRun, fault: Fault | None) -> Ended:
    """The run resumed with a fault in it; where there is none yet, begun with the fault in it."""
    ended = small.server.run(small.resume(), fault)
    if ended.code != 2 or ended.hit:
        return ended
    begun = small.server.run(small.train(), fault)
    return ended if begun.code == 2 and not begun.hit else begun


def killed_in_operations(small: SmallRun, draw: random.Random, kills: int) -> list[Outcome]:
    """One run, killed again and again at (or in the middle of) a change of its files, then let go on to its end."""
    unbroken, total = small.unbroken, len(small.changes())
    small.clear()
    found: list[Outcome] = []
    for _ in range(kills):
        at = draw.randrange(total) + 1
        how = draw.choice([Action.KILL, Action.TORN])
        ended = goes_on(small, Fault(str(small.watched), how, at))
        if not ended.killed:  # the rest of the run has fewer changes: it is whole
            if ended.code != 0 or Bits.of(small.run) != unbroken:
                found.append(Outcome(f"{small.task}, not killed after all", f"{ended} or other bits"))
            small.clear()
            ended = goes_on(small, Fault(str(small.watched), how, at))
        what = f"{small.task}, killed at change {at}: {ended.hit}"
        found.append(Outcome(what, "", is_in_save(ended.hit), ended.killed))
    return [*found[:-1], found[-1]._replace(mistake=recovery(small, unbroken))]


def killed_after_a_commit(small: SmallRun, which: float) -> Outcome:
    """Killed when a commit was made and its files are not in their places yet; `which` from 0, the first, to 1."""
    unbroken = small.unbroken
    all_of_them = commits(small.changes(), small.run)
    small.clear()
    at = all_of_them[round(which * (len(all_of_them) - 1))]
    ended = small.server.run(small.train(), Fault(str(small.watched), Action.KILL, at + 1))
    return Outcome(f"{small.task}, killed after the commit at {at}: {ended.hit}", recovery(small, unbroken), True)


def killed_at_moments(small: SmallRun, draw: random.Random, kills: int) -> list[Outcome]:
    """One run, killed again and again at random moments, then let go on to its end."""
    unbroken = small.unbroken
    small.clear()
    found: list[Outcome] = []
    lasts = small.seconds
    while len(found) < kills:
        arguments = small.resume() if is_committed(small.run) else small.train()
        life = small.server.start(arguments)
        moment = draw.uniform(0.0, 0.8) * lasts
        time.sleep(moment)
        life.kill()
        ended = life.wait()
        if ended.killed:
            found.append(Outcome(f"{small.task}, killed after {moment:.2f} s", "", is_staged(small.run)))
            continue
        lasts = max(0.1, 0.8 * ended.seconds)  # it was over before the kill
        if ended.code != 0 or Bits.of(small.run) != unbroken:
            found.append(Outcome(f"{small.task}, over before the kill", f"{ended} or other bits"))
        small.clear()
    return [*found[:-1], found[-1]._replace(mistake=recovery(small, unbroken))]


def power_cut(small: SmallRun, changes: Sequence[Change], at: int, seed: int) -> Outcome:
    """The power fails after so many changes of the unbroken run; what the disk still has is gone on with."""
    small.clear()
    lay_out(cut(changes, at, small.watched, seed), small.watched)
    mistake = recovery(small, small.unbroken, must_resume=at >= commits(changes, small.run)[0])
    change = changes[at - 1]
    in_save = is_in_save(f"{change.operation.name} {change.path}")
    return Outcome(f"{small.task}, power cut after change {at} ({seed})", mistake, in_save)


def commits(changes: Sequence[Change], run: Path) -> list[int]:
    """After which changes a commit was made and is on the disk: the folder was synced after the renaming."""
    found = []
    has_commit = False
    for number, change in enumerate(changes, start=1):
        if change.operation is Operation.RENAME and change.other == run / MANIFEST:
            has_commit = True
        if has_commit and change.operation is Operation.SYNC and change.path == run:
            found.append(number)
            has_commit = False
    return found


def stopped(small: SmallRun, at: int, number: signal.Signals, again: int = 0) -> Outcome:
    """A signal comes at a change of files, and another so many changes later; then the run is gone on with."""
    unbroken = small.unbroken
    small.clear()
    ended = small.server.run(small.train(), Fault.stop(small.watched, at, number, again))
    what = f"{small.task}, {number.name}{' twice' if again else ''} at change {at}: {ended.hit}"
    if "Traceback" in ended.said or ended.code not in (0, 130, -number):
        return Outcome(what, f"it ends with {ended.code}: {ended.said}")
    return Outcome(what, recovery(small, unbroken), is_in_save(ended.hit), bool(ended.hit))


class Refusal(NamedTuple):
    """What the disk answers from some operation on."""

    name: str
    action: Action
    number: int
    operations: tuple[Operation, ...]


REFUSALS = (
    Refusal("I/O error on write", Action.ERROR, errno.EIO, (Operation.WRITE,)),
    Refusal("I/O error on sync", Action.ERROR, errno.EIO, (Operation.SYNC,)),
    Refusal("I/O error on rename", Action.ERROR, errno.EIO, (Operation.RENAME,)),
    Refusal("disk full", Action.ERRORS, errno.ENOSPC, GROWING),
    Refusal("read-only disk", Action.ERRORS, errno.EROFS, EVERY),
    Refusal("no permission", Action.ERROR, errno.EACCES, (Operation.OPEN,)),
    Refusal("short write", Action.SHORT, 0, (Operation.WRITE,)),
)


def places(changes: Sequence[Change], refusal: Refusal, file: str) -> list[int]:
    """Which of the operations that a refusal counts are about this file."""
    counted = [change for change in changes if change.operation in refusal.operations]
    return [
        number
        for number, change in enumerate(counted, start=1)
        if file in change.path.name or (change.other is not None and file in change.other.name)
    ]


def refused(small: SmallRun, refusal: Refusal, at: int) -> Outcome:
    """The disk refuses an operation: the command says so in a sentence, and the run is gone on with afterwards."""
    unbroken = small.unbroken
    small.clear()
    fault = Fault(str(small.watched), refusal.action, at, refusal.number, operations=refusal.operations)
    ended = small.server.run(small.train(), fault)
    what = f"{small.task}, {refusal.name} at {at}: {ended.hit}"
    if ended.code == 0:
        same = Bits.of(small.run) == unbroken
        mistake = "" if same else "it ends well, but with other bits"
        return Outcome(what, mistake, is_in_save(ended.hit), bool(ended.hit))
    if refusal.action is Action.SHORT:
        return Outcome(what, f"a short write is not an error, but it ends with {ended.code}: {ended.said}")
    if ended.code != 2 or not is_one_sentence(ended.said):
        return Outcome(what, f"it ends with {ended.code} and says: {ended.said}")
    return Outcome(what, recovery(small, unbroken), is_in_save(ended.hit))


STOPS = ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGINT, 5))
"""Signals, and after how many changes of files a second one comes."""


def many_kills(small: SmallRun, draw: random.Random, number: int) -> Iterator[Outcome]:
    """So many kills, at four in a row of each run: two thirds in changes of files, the others at any moment."""
    for first in range(0, number, 4):
        way = killed_at_moments if first // 4 % 3 == 2 else killed_in_operations
        yield from way(small, draw, min(4, number - first))


def many_power_cuts(small: SmallRun, draw: random.Random, number: int) -> Iterator[Outcome]:
    changes = small.changes()
    for _ in range(number):
        yield power_cut(small, changes, draw.randrange(len(changes)) + 1, draw.randrange(1 << 30))


def many_signals(small: SmallRun, draw: random.Random, number: int) -> Iterator[Outcome]:
    total = len(small.changes())
    for each in range(number):
        yield stopped(small, draw.randrange(total) + 1, *STOPS[each % len(STOPS)])


def refused_at_every_file(small: SmallRun, draw: random.Random, refusals: Sequence[Refusal]) -> Iterator[Outcome]:
    changes = small.changes()
    for file in files_of(small.folder / "unbroken"):
        for refusal in refusals:
            if found := places(changes, refusal, Path(file).name):
                yield refused(small, refusal, draw.choice(found))


def files_of(run: Path) -> list[str]:
    """All files that a run consists of, hidden ones too; TensorBoard's, one for each life, are not a part of it."""
    files = (path.relative_to(run) for path in run.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in files if path.parts[0] != "tensorboard")


def put_back(small: SmallRun) -> None:
    """The unbroken run, in place of the one that is broken."""
    small.clear()
    shutil.copytree(small.folder / "unbroken", small.run)
