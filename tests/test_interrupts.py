from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.interrupts import ended_by_ctrl_c, last_words, watch_of_this_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

PRELUDE = """
import hashlib, sys, time
from recurra.cli import main
from recurra.interrupts import ended_by_ctrl_c, last_words, watch_of_this_command

def computes(rounds=10**9):
    "One call of C, which Python's own handler of Ctrl-C waits for."
    print("begun", flush=True)
    print("an answer")  # still in Python's buffer
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", rounds)

"""


def ctrl_c_within(code: str) -> tuple[int, str, str, float]:
    """Status, output, errors and the seconds since Ctrl-C of a program that gets it when it has begun."""
    began = time.monotonic()
    program = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    )
    try:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline() == "begun\n"
        to_start = time.monotonic() - began  # which is how busy this machine is
        time.sleep(0.2 + to_start)  # until it is inside of the call
        asked = time.monotonic()
        program.send_signal(signal.SIGINT)
        # Not communicate, which misses what readline has read ahead.
        output, errors = program.stdout.read(), program.stderr.read()
        program.wait()
        return program.returncode, output, errors, time.monotonic() - asked - to_start
    finally:
        program.kill()
        with program:  # which closes its pipes
            program.wait()


def test_ctrl_c_ends_a_command_in_the_middle_of_a_long_call_of_c() -> None:
    status, output, errors, seconds = ctrl_c_within("with ended_by_ctrl_c():\n    computes()\n")
    assert (status, output, errors) == (130, "an answer\n", "\nrecurra: stopped.\n")
    assert seconds < 2


def test_a_command_ended_in_a_long_call_of_c_says_what_is_saved() -> None:
    status, _, errors, seconds = ctrl_c_within(
        "with ended_by_ctrl_c(), last_words('nothing is saved.'):\n    computes()\n"
    )
    assert (status, errors) == (130, "\nrecurra: nothing is saved.\n")
    assert seconds < 2


def test_a_command_is_not_ended_while_it_saves() -> None:
    status, output, _, _ = ctrl_c_within(
        "with ended_by_ctrl_c(), watch_of_this_command().saying(lambda: None):\n"
        "    until = time.monotonic() + 2.5\n"
        "    print('begun', flush=True)\n"
        "    while time.monotonic() < until:\n"
        "        try: time.sleep(0.1)\n"
        "        except KeyboardInterrupt: pass\n"
        "    print('saved', flush=True)\n"
        "sys.exit(7)\n"
    )
    assert (status, output) == (7, "saved\n")


def test_python_ends_a_command_by_itself_where_it_can() -> None:
    status, _, errors, seconds = ctrl_c_within(
        "try:\n"
        "    with ended_by_ctrl_c():\n"
        "        print('begun', flush=True)\n"
        "        time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(9)\n"
    )
    assert (status, errors) == (9, "")
    assert seconds < 1


def test_programs_that_use_the_package_are_never_ended() -> None:
    assert watch_of_this_command() is None
    with pytest.raises(KeyboardInterrupt, match="nothing is saved"), last_words("nothing is saved."):
        raise KeyboardInterrupt


def test_words_that_were_said_inside_are_kept() -> None:
    with pytest.raises(KeyboardInterrupt, match="all is saved"), last_words("nothing is saved."):
        raise KeyboardInterrupt("all is saved.")


def test_what_another_program_made_of_ctrl_c_stays_during_and_after_a_command() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ended_by_ctrl_c():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with ended_by_ctrl_c():
            assert watch_of_this_command() is not None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_the_command_line_is_imported_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("raise KeyboardInterrupt\n")
    code = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_module('recurra', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "\nrecurra: stopped.\n")


def test_a_stopped_command_ends_before_its_memory_is_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab.py").write_text(
        "order = []\n"
        "class Held:\n"
        "    def __del__(self): order.append('freed')\n"
        "def read():\n"
        "    examples = Held()\n"
        "    raise KeyboardInterrupt\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slow.py").write_text("import lab\nlab.read()\n")
    lab = importlib.import_module("lab")

    def stopped() -> int:
        lab.order.append("ended")
        return 130

    assert main(["cells", "slow:Cell"], stopped=stopped) == 130
    assert lab.order == ["ended", "freed"]
