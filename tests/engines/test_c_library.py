"""The cache of compiled libraries: what is damaged, or written by somebody else, is never loaded."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from recurra.cli import notices_in_words
from recurra.engines import c_library

TEXT = "long answer(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i * i; return sum; }\n"
RIGHT = sum(number * number for number in range(100))

needs_compiler = pytest.mark.skipif(c_library.compiler() is None, reason="there is no C compiler")
needs_root = pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root can give files away")

DAMAGED = f"""
import os, sys, warnings
from pathlib import Path
from recurra.engines import c_library
TEXT = {TEXT!r}
def answer():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = c_library.library.__wrapped__(TEXT).answer(100)
    return found, [str(one.message) for one in said if str(one.message).startswith("recurra:")]
assert answer() == ({RIGHT}, [])
[library] = Path(os.environ["RECURRA_CACHE"]).glob("*/*.so")
digest = library.with_name(library.name + c_library.DIGEST)
whole, whole_digest = library.read_bytes(), digest.read_bytes()
def damaged():
    for number in range(12):
        place = number * len(whole) // 12
        yield whole[:place], whole_digest
        yield whole[:place] + bytes([whole[place] ^ 1 << number % 8]) + whole[place + 1:], whole_digest
    for number in (0, 63):
        yield whole, whole_digest[:number]
        yield whole, whole_digest[:number] + bytes([whole_digest[number] ^ 1]) + whole_digest[number + 1:]
    yield whole + b"more", whole_digest
tried = 0
for content, of_it in damaged():
    library.write_bytes(content)
    digest.write_bytes(of_it)
    if not os.fork():
        right, said = answer()
        was_mended = right == {RIGHT} and len(said) == 1 and "compiled again" in said[0] and answer() == ({RIGHT}, [])
        os._exit(0 if was_mended else 1)
    status = os.wait()[1]
    assert status == 0, (tried, len(content), status)
    tried += 1
print(tried)
"""


@needs_compiler
def test_a_damaged_library_is_compiled_again_and_answers_right(tmp_path: Path) -> None:
    # In a process of its own, which forks one for each damage: a library that was loaded broken would end it.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RECURRA_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", DAMAGED], capture_output=True, text=True, env=environment, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.strip()) == (0, "29"), done.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of libraries, with one library in it."""
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    assert answer() == RIGHT
    return tmp_path / "cache" / f"libraries-{c_library.user()}"


def answer() -> int:
    found: int = c_library.library.__wrapped__(TEXT).answer(100)
    return found


@needs_compiler
def test_only_the_user_may_read_or_write_the_libraries(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600, 0o600]


@needs_compiler
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir())
    with pytest.warns(RuntimeWarning, match=r"cannot be used \(other users may write to it\); compiling for this"):
        assert answer() == RIGHT
    assert sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir()) == before


@needs_compiler
@needs_root
def test_a_folder_or_file_of_another_user_is_not_used(folder: Path) -> None:
    [library] = folder.glob("*.so")
    os.chown(library, 54321, -1)
    with pytest.warns(RuntimeWarning, match=r"it belongs to the user with the number 54321, not to you"):
        assert answer() == RIGHT
    assert library.stat().st_uid == 0
    os.chown(folder, 54321, -1)
    with pytest.warns(RuntimeWarning, match=r"cannot be used \(it belongs to the user with the number 54321"):
        assert answer() == RIGHT


@needs_compiler
def test_links_and_pipes_in_the_place_of_a_library_are_replaced(folder: Path, tmp_path: Path) -> None:
    [library] = folder.glob("*.so")
    kept = library.rename(tmp_path / "elsewhere.so")
    library.symlink_to(kept)
    with pytest.warns(RuntimeWarning, match="is broken and is compiled again"):
        assert answer() == RIGHT
    library.unlink()
    os.mkfifo(library, 0o600)
    with pytest.warns(RuntimeWarning, match="is broken and is compiled again"):
        assert answer() == RIGHT
    assert library.is_file()
    assert not library.is_symlink()


@needs_compiler
def test_a_library_that_was_cut_short_after_loading_still_answers(folder: Path) -> None:
    loaded = c_library.library.__wrapped__(TEXT)
    for path in folder.iterdir():
        os.truncate(path, 0)
    assert loaded.answer(100) == RIGHT
    assert sorted(path.suffix for path in folder.iterdir()) == [".sha256", ".so"]  # no copies are left behind


@needs_compiler
def test_a_system_that_has_no_flag_for_folders_has_compiled_code_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path))
    monkeypatch.delattr(os, "O_DIRECTORY")  # as on Windows
    assert c_library.library.__wrapped__(TEXT).answer(100) == RIGHT


@needs_compiler
def test_a_command_says_in_one_line_that_a_folder_of_libraries_cannot_be_used(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.chmod(0o777)
    with notices_in_words(), warnings.catch_warnings():
        warnings.simplefilter("always")
        assert answer() == RIGHT
    said = f"recurra: the cache folder {folder} cannot be used (other users may write to it); compiling for this"
    assert capsys.readouterr().err == f"{said} process alone.\n"


def test_a_compiler_that_does_not_end_is_stopped_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a one stands for text that takes a compiler hours; a shell and what it waits for end both."""
    (tmp_path / "slow").write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/child\nwait\n")
    (tmp_path / "slow").chmod(0o755)
    monkeypatch.setattr(c_library, "MOST_SECONDS", 0.5)
    with pytest.raises(c_library.NoCompiler, match=r"slow took longer than 0.5 seconds"):
        c_library.compiled((str(tmp_path / "slow"),), "int x;")
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        found = subprocess.run(["ps", "-o", "stat=", "-p", str(child)], capture_output=True, text=True, check=False)
        if not found.stdout.strip() or found.stdout.startswith("Z"):
            return
        time.sleep(0.02)
    pytest.fail("the compiler's child still runs")
