"""Run folders that are damaged, or made to do harm: a typed error or a run that works, and no code, no other file."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import shutil
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import recurra
from recurra.errors import CheckpointError, RecurraError
from recurra.manifest import MANIFEST, seal, verify
from recurra.reports.summary import Run
from recurra.runs import told
from recurra.training.loading import load_task
from recurra.training.position import position_of
from recurra.training.preparation import HeldOut, prepared_again
from recurra.training.progress import Silent
from recurra.training.trainer import Trainer

OLD = sorted(path.parent for path in (Path(__file__).parents[1] / "old_runs").glob("*/*/expected.json"))
EVERY = 64
"""Bytes between two places where a file is cut short, and between two flipped bits."""

FEW, MANY = 30, 300
"""Random changes of one kind of one run, in `make test` and in `make slow-test`."""


@pytest.fixture(params=OLD, ids=lambda path: path.name)
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a small run of each task, with a manifest, in the current folder."""
    shutil.copytree(request.param, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    seal(Path("run"))
    return Path("run")


def test_a_file_that_is_cut_short_or_has_a_flipped_bit_anywhere_is_refused(run: Path) -> None:
    tried = 0
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        good = path.read_bytes()
        for place in range(0, len(good), EVERY):
            for bad in (
                good[:place],
                good[:place] + bytes([good[place] ^ 1 << place // EVERY % 8]) + good[place + 1 :],
            ):
                path.write_bytes(bad)
                try:
                    verify(run, lambda name: path.name == MANIFEST or name.endswith(path.name))  # noqa: B023
                except CheckpointError:
                    tried += 1
                    continue
                assert path.name == MANIFEST, (path, place)  # whose blanks mean nothing
                assert json.loads(bad) == json.loads(good)
        path.write_bytes(good)
    verify(run)
    assert tried > 300


def answers(run: Path) -> None:
    """Describe a run, load it and answer two inputs, as `info`, `compare` and `predict` do."""
    expected = json.loads(Path("expected.json").read_text("utf-8"))
    told(run)
    Run.read(run)
    model = recurra.load(run)
    asked = list(model.task.questions(Path(expected["inputs"]), []))
    model.answers(asked[:2])


NEW_VALUES: list[Any] = [
    None, True, -1, 0, 1e308, 2**70, "", "x", "a" * 10_000, [], {}, [[]], {"a": 1}, [None], 3.5, -(2**31), ["a", "a"],
    "../../etc/passwd", "/etc/passwd", "\ud800", "os:system", [[0] * 5] * 5, float("nan"),
]  # fmt: skip


def changed_json(value: Any, draw: random.Random) -> Any:
    """A JSON value with one value replaced, removed or doubled."""
    places: list[list[Any]] = []

    def walk(part: Any, place: list[Any]) -> None:
        places.append(place)
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, inner in list(items)[:40]:
            walk(inner, [*place, key])

    walk(value, [])
    place, how = draw.choice(places), draw.random()
    if not place:
        return draw.choice(NEW_VALUES)
    part = value
    for key in place[:-1]:
        part = part[key]
    if how < 0.7:
        part[place[-1]] = draw.choice(NEW_VALUES)
    elif how < 0.85:
        del part[place[-1]]
    elif isinstance(part, list):
        part.insert(place[-1], part[place[-1]])
    else:
        part[f"{place[-1]}x"] = part[place[-1]]
    return value


def changed_toml(text: str, draw: random.Random) -> str:
    """A config with one line that has another value, or is gone."""
    lines = text.split("\n")
    number = draw.randrange(len(lines))
    name, is_setting, _ = lines[number].partition("=")
    # Settings that ask for much work are the user's to make; what is tried here are those that make no sense.
    values = ["-1", "0", "1e308", "99999999999999999999", '"x"', "[]", "{}", "true", "nan", '""', "[1,2]", '"a:b"']
    values += ['"../../../etc/passwd"', '{name="x"}', "[[[]]]", '"os:system"', "1000000000000"]
    lines[number : number + 1] = [f"{name}= {draw.choice(values)}"] if is_setting else []
    return "\n".join(lines)


def changed(name: str, good: bytes, draw: random.Random) -> bytes:
    """What somebody might make of a file who writes a fitting manifest too."""
    if draw.random() < 0.25:
        bad = bytearray(good)
        for _ in range(draw.choice((1, 3, 20))):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        return bytes(bad[: draw.choice((len(bad), draw.randint(0, len(bad))))])
    if name.endswith(".toml"):
        return changed_toml(good.decode(), draw).encode()
    if name.endswith(".safetensors"):
        [size] = struct.unpack("<Q", good[:8])
        header = json.dumps(changed_json(json.loads(good[8 : 8 + size]), draw)).encode()
        return struct.pack("<Q", len(header)) + header + good[8 + size :]
    return json.dumps(changed_json(json.loads(good), draw)).encode()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_files_that_fit_their_manifest_but_make_no_sense_are_refused_or_work(
    run: Path, count: int, opened: list[str]
) -> None:
    draw, refused = random.Random(count), list[str]()
    names = [p.relative_to(run).as_posix() for p in sorted(run.rglob("*.*")) if p.suffix in (".json", ".toml")]
    names = [name for name in [*names, "model.safetensors"] if name != MANIFEST]
    for _ in range(count):
        name = draw.choice(names)
        path = run / name
        good = path.read_bytes()
        path.write_bytes(changed(name, good, draw))
        seal(run)
        del opened[:]
        try:
            answers(run)
        except RecurraError as error:
            refused.append(str(error))
        assert not [path for path in opened if path.startswith("/etc")], name
        path.write_bytes(good)
    assert refused
    assert all(said.endswith((".", "?", "--accept")) for said in refused), refused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [FEW // 3, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_checkpoint_that_makes_no_sense_is_refused_or_restored(run: Path, count: int) -> None:
    draw, refused, path = random.Random(count), list[str](), run / "last" / "checkpoint.safetensors"
    task, good = load_task(run), path.read_bytes()
    store = prepared_again(task, None, lambda _: None).store
    for _ in range(count):
        path.write_bytes(changed(path.name, good, draw))
        seal(run)
        try:
            position_of(run)
            Trainer(task, store, HeldOut([], []), run, Silent()).restore()
        except RecurraError as error:
            refused.append(str(error))
    assert all(said.endswith((".", "?", "--accept")) for said in refused), refused


MEGABYTE = 1 << 20
BOMBS = {
    "a config file of many megabytes": ("config.toml", b"#" * (8 * MEGABYTE)),
    "a config file of many lists": ("config.toml", b"a = [" + b"[]," * (MEGABYTE // 3 - 5) + b"]"),
    "a config file of one long key": ("config.toml", b"a" + b".a" * (MEGABYTE // 2 - 5) + b" = 1"),
    "a config file of one long key in quotes": ("config.toml", b"'a'" + b'."\\"#a"' * 100_000 + b" = 1"),
    "a config file of a long number": ("config.toml", b"a = " + b"9" * (MEGABYTE - 10)),
    "a config file of many lines before a mistake": (
        "config.toml",
        b'task = "tagging"\n[data]\ntrain = [\n' + (b'"a",' * 60 + b"\n") * 990 + b"]\n[model]\nhidden = -1\n",
    ),
    "a vocabulary of many megabytes": ("vocabulary.words.json", b'["' + b"a" * (65 * MEGABYTE)),
    "a vocabulary of many lists": ("vocabulary.words.json", b"[" + b"[]," * (8 * MEGABYTE)),
    "a vocabulary of long numbers": ("vocabulary.words.json", b"[" + b"9" * (4 * MEGABYTE) + b"]"),
    "a vocabulary nested deeply": ("vocabulary.words.json", b"[" * (4 * MEGABYTE)),
    "a summary of many lists": ("summary.json", b'{"a":[' + b"[]," * (2 * MEGABYTE) + b"[]]}"),
    "scales of many lists": ("scales.json", b'{"a":[' + b"[]," * (2 * MEGABYTE) + b"[]]}"),
    "a log nested deeply": ("metrics.jsonl", b"[" * MEGABYTE + b"\n"),
    "a log of a long line": ("metrics.jsonl", b'{"a":[' + b"[]," * (16 * MEGABYTE) + b"[]]}\n"),
    "weights with a large header": ("model.safetensors", struct.pack("<Q", 64 * MEGABYTE) + b" " * (64 * MEGABYTE)),
    "weights of impossible size": (
        "model.safetensors",
        b"\x43" + bytes(7) + b'{"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]}}1234',
    ),
}


def peak_memory() -> int:
    """The most bytes that this process has had since `forget_peak`."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


def forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("only Linux tells how much memory a process took at most")


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_is_made_to_take_time_or_memory_is_refused_at_once(
    bomb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [small] = [path for path in OLD if path.name == "tagging"]
    shutil.copytree(small, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    name, content = BOMBS[bomb]
    Path("run", name).write_bytes(content)
    seal(Path("run"))
    forget_peak()
    before, began = peak_memory(), time.process_time()
    with pytest.raises(RecurraError):
        answers(Path("run"))
    assert time.process_time() - began < 5  # minutes without the limits; another program on the core may double it
    assert peak_memory() - before < 200e6


@pytest.fixture(scope="module")
def _watched() -> Iterator[tuple[list[str], Callable[[bool], None]]]:
    """Every file that is opened while this is switched on; a hook of Python's cannot be taken away again."""
    seen: list[str] = []
    is_on = [False]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if is_on[0] and event in (
            "open",
            "os.remove",
            "os.rename",
            "os.mkdir",
            "subprocess.Popen",
            "os.system",
            "exec",
        ):
            seen.append(str(arguments[0]) if event != "exec" else "exec")

    sys.addaudithook(hook)
    yield seen, lambda on: is_on.__setitem__(0, on)
    is_on[0] = False


@pytest.fixture
def opened(_watched: tuple[list[str], Callable[[bool], None]]) -> Iterator[list[str]]:
    seen, switch = _watched
    del seen[:]
    switch(True)
    yield seen
    switch(False)


class Harm:
    """Makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harmed",)


def test_a_pickle_under_the_name_of_weights_is_refused_and_not_unpickled(run: Path) -> None:
    written = io.BytesIO()
    torch.save({"a": Harm()}, written)
    for content in (pickle.dumps(Harm()), written.getvalue()):
        for name in ("model.safetensors", "last/checkpoint.safetensors", "config.toml", "summary.json"):
            good = (run / name).read_bytes()
            (run / name).write_bytes(content)
            seal(run)
            with pytest.raises(RecurraError):
                position_of(run) if name.startswith("last") else answers(run)
            (run / name).write_bytes(good)
    assert not Path("harmed").exists()


def test_a_header_that_claims_gigabytes_and_json_that_is_nested_deeply_are_refused(run: Path) -> None:
    vocabulary = next(path for path in sorted(run.glob("*.json")) if path.name not in (MANIFEST, "summary.json"))
    for path, content in (
        (run / "model.safetensors", struct.pack("<Q", 1 << 40) + b"{}"),
        (run / "model.safetensors", struct.pack("<Q", (1 << 20) - 1) + b"{" * (1 << 20)),
        (run / "config.toml", b"a = " + b"[" * 100_000),
        (vocabulary, b"[" * 100_000),
        (vocabulary, b'{"a": ' * 100_000),
    ):
        good = path.read_bytes()
        path.write_bytes(content)
        seal(run)
        with pytest.raises(RecurraError):
            answers(run)
        path.write_bytes(good)


def test_a_file_that_leads_out_of_the_folder_is_refused(run: Path, tmp_path: Path) -> None:
    for name in ("config.toml", "model.safetensors"):
        outside = tmp_path / "outside"
        shutil.copy(run / name, outside)
        (run / name).unlink()
        (run / name).symlink_to(outside)
        with pytest.raises(CheckpointError, match="a link to a place outside of the folder"):
            answers(run)
        (run / name).unlink()
        shutil.copy(outside, run / name)
