"""What is shown while a run trains: on a terminal, in a pipe, on a narrow screen, and after Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.training.pace import Pace
from recurra.training.progress import Bar, PlainLines, Progress, Silent, fitting, progress


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Unplugged(Terminal):
    """A pipe or a terminal whose other end has gone."""

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def ran(shown: Progress, watch: Watch, steps: int = 40, seconds: float = 1.0) -> None:
    shown.start(0, steps, 2)
    for step in range(1, steps + 1):
        watch.now += seconds
        shown.step(step, 2 * step / steps, 1 / step, 0.001, 500)
        if step % 20 == 0:
            for done in range(5):
                shown.validating(done, 5)
                watch.now += 1
            shown.valid(step, {"f1": 0.5, "accuracy": step / steps}, "accuracy", True)
    shown.note("stopped: [all] steps done")
    shown.stop()


def test_a_pipe_gets_plain_lines_every_ten_seconds_and_at_each_validation() -> None:
    stream, watch = io.StringIO(), Watch()
    ran(PlainLines(stream, clock=watch), watch)
    assert stream.getvalue().splitlines() == [
        "[0:00] training: 40 steps, 2 epochs",
        "[0:10] step 10/40  epoch 0.5/2  loss 0.2929  500 tokens/s  ETA 0:30",
        "[0:20] step 20/40  epoch 1.0/2  loss 0.1799  500 tokens/s  ETA 0:20",
        "[0:25] valid at step 20: accuracy 0.5 (best so far)  f1 0.5",
        # 30 of the 35 seconds were training: 10 steps at one a second, and their share of validation
        "[0:35] step 30/40  epoch 1.5/2  loss 0.1332  accuracy 0.5  500 tokens/s  ETA 0:11",
        "[0:45] step 40/40  epoch 2.0/2  loss 0.107  accuracy 0.5  500 tokens/s  ETA 0:00",
        "[0:50] valid at step 40: accuracy 1 (best so far)  f1 0.5",
        "[0:50] stopped: [all] steps done",
    ]


def test_a_long_validation_says_how_far_it_is() -> None:
    stream, watch = io.StringIO(), Watch()
    shown = PlainLines(stream, clock=watch)
    shown.start(7, None, None)
    for done in range(25):
        shown.validating(done, 25)
        watch.now += 1
    assert stream.getvalue().splitlines() == ["[0:00] training: from step 7"] + [
        f"[0:{done}] validating {done}/25" for done in (10, 20)
    ]


def test_without_a_last_step_the_end_is_not_known() -> None:
    stream, watch = io.StringIO(), Watch()
    shown = PlainLines(stream, clock=watch)
    shown.start(0, None, None)
    watch.now += 11
    shown.step(1, 0.25, 2.0, 0.1, 22)
    assert stream.getvalue().splitlines() == [
        "[0:00] training",
        "[0:11] step 1  epoch 0.2  loss 2  2 tokens/s  ETA ?",
    ]


def test_a_resumed_run_counts_its_own_steps_only() -> None:
    watch = Watch()
    pace = Pace(watch)
    pace.start(first_step=900, total_steps=1000, epochs=None)
    for step in range(901, 911):
        watch.now += 1
        pace.step(step, 9.0, 1.0, 0.1, 10)
    assert pace.remaining == pytest.approx(90)


def test_speed_is_that_of_the_last_half_minute() -> None:
    watch = Watch()
    pace = Pace(watch)
    pace.start(0, 2000, None)
    for step, seconds in enumerate([10.0] * 100 + [0.5] * 100, start=1):
        watch.now += seconds
        pace.step(step, 0.0, 1.0, 0.1, 100)
    assert pace.tokens_per_second == pytest.approx(200)
    assert pace.remaining == pytest.approx(900)


@given(st.lists(st.tuples(st.floats(0.001, 50), st.integers(0, 999)), min_size=1, max_size=80), st.integers(1, 40))
def test_speed_is_tokens_over_training_seconds_however_long_validation_takes(
    steps: list[tuple[float, int]], validate: int
) -> None:
    watch = Watch()
    pace = Pace(watch, window=1e9)
    pace.start(0, None, None)
    for step, (seconds, tokens) in enumerate(steps, start=1):
        watch.now += seconds
        pace.step(step, 0.0, 1.0, 0.1, tokens)
        if step % validate == 0:
            pace.validating(0, 1)
            watch.now += 777
            pace.valid({}, "f1", best=False)
    # Moments less than a tenth of a second apart are one; the last such moment may not have been noted yet.
    ends, seen, last = list(itertools.accumulate(seconds for seconds, _ in steps)), 0, 0.0
    for count, end in enumerate(ends, start=1):
        if end - last >= 0.1 - 1e-9:
            seen, last = count, end
    if seen and all(abs(b - a - 0.1) > 1e-6 for a, b in itertools.combinations([0.0, *ends], 2)):
        assert pace.tokens_per_second == pytest.approx(sum(tokens for _, tokens in steps[:seen]) / last, rel=1e-6)


def test_the_loss_shown_is_smoothed_and_recovers_from_nan() -> None:
    pace = Pace(Watch())
    for step, loss in enumerate([4.0, 2.0, 3.0], start=1):
        pace.step(step, 0.0, loss, 0.1, 1)
    assert pace.loss == pytest.approx(3.0)
    for loss in (float("nan"), 5.0):
        pace.step(4, 0.0, loss, 0.1, 1)
    assert pace.loss == 5.0


@pytest.mark.parametrize("kind", [PlainLines, Bar, Silent])
def test_a_step_costs_next_to_nothing(kind: type[PlainLines | Bar | Silent]) -> None:
    shown: Progress = Silent() if kind is Silent else kind(Terminal())
    with shown:
        shown.start(0, 10**6, None)
        best = min(_seconds_of_steps(shown) for _ in range(20))
    assert best / 500 < 20e-6


def _seconds_of_steps(shown: Progress) -> float:
    began = time.perf_counter()
    for step in range(500):
        shown.step(step, 0.0, 1.0, 0.1, 100)
    return time.perf_counter() - began


@pytest.mark.parametrize("stream", [io.StringIO(), Unplugged()])
def test_a_reader_that_leaves_does_not_end_the_run(stream: io.StringIO) -> None:
    watch = Watch()
    shown = PlainLines(stream, clock=watch)
    shown.start(0, 9, None)
    if not isinstance(stream, Unplugged):
        stream.close()
    before = watch.now
    shown.note("still here")
    ran(shown, watch)
    assert watch.now > before, "the run went on to its end"


def test_a_terminal_that_goes_away_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, watch, before = Terminal(), Watch(), (sys.stdout, sys.stderr)
    shown = Bar(stream, clock=watch)
    shown.start(0, 9, None)
    monkeypatch.setattr(stream, "write", Unplugged().write)
    for step in range(1, 5):
        watch.now += 1
        shown.step(step, 0.0, 1.0, 0.1, 1)
    shown.note("still here")
    shown.stop()
    assert (sys.stdout, sys.stderr) == before


def test_what_a_stream_cannot_say_is_a_question_mark() -> None:
    content = io.BytesIO()
    with io.TextIOWrapper(content, encoding="ascii") as stream:
        PlainLines(stream).note("größer")
        assert content.getvalue().endswith(b"gr??er\n")


def test_the_stream_decides_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(progress(Terminal()), Bar)
    assert isinstance(progress(io.StringIO()), PlainLines)
    assert isinstance(progress(Terminal(), quiet=True), Silent)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress(Terminal()), PlainLines)


def test_without_rich_a_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setitem(sys.modules, "rich", None)
    assert isinstance(progress(Terminal()), PlainLines)


def drawn(monkeypatch: pytest.MonkeyPatch, columns: int) -> list[str]:
    """The lines that a terminal of so many columns has shown, without colours and cursor moves."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "25")
    monkeypatch.setenv("TERM", "xterm")
    stream, watch = Terminal(), Watch()
    ran(Bar(stream, clock=watch), watch, steps=400)
    return [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())) if line]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (20, "step 201/400"),
        (40, "step 201/400  loss 0.0107  ETA 4:08"),
        (60, "████░░░░  step 201/400  loss 0.0107  accuracy 0.5  ETA 4:08"),
        (99, "██████████░░░░░░░░░░  step 201/400  epoch 1.0/2  loss 0.0107  accuracy 0.5  500 tokens/s  ETA 4:08"),
    ],
)
def test_a_bar_says_what_fits(monkeypatch: pytest.MonkeyPatch, columns: int, shown: str) -> None:
    lines = drawn(monkeypatch, columns)
    bars = [line for line in lines if "/400" in line]
    assert max(map(len, bars)) < columns
    assert any(line.startswith(shown) for line in bars), [line for line in bars if "201/" in line]


def test_validations_and_notes_scroll_by_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(monkeypatch, 120)
    assert "stopped: [all] steps done" in lines
    assert any(line.endswith("step 20: accuracy 0.05 (best so far)  f1 0.5") for line in lines)
    assert any("validating 3/5" in line for line in lines)
    assert "accuracy 1 " in lines[-1]


@given(st.lists(st.tuples(st.integers(0, 9), st.text("ab", max_size=9))), st.integers(0, 60))
def test_what_fits_is_the_most_important_and_in_order(parts: list[tuple[int, str]], width: int) -> None:
    kept = fitting(parts, width)
    assert len("  ".join(kept)) <= width
    rest = iter(text for _, text in parts)
    assert all(text in rest for text in kept)
    if len("  ".join(text for _, text in parts if text)) <= width:
        assert kept == [text for _, text in parts if text]


TRAIN_FOR_EVER = """
import signal, sys, time
from recurra.training.progress import progress
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
with progress(sys.stderr) as shown:
    shown.start(0, 100000, None)
    for step in range(100000):
        time.sleep(0.01)
        shown.step(step, 0.0, 1.0, 0.1, 100)
        if step == 20:
            print("a line of output")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_leaves_the_cursor_visible_on_a_real_terminal(tmp_path: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 40, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", TRAIN_FOR_EVER],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment | {"TERM": "xterm"},
        cwd=tmp_path,
    )
    os.close(terminal)
    output, is_asked = b"", False
    try:
        for piece in _pieces(controller):
            output += piece
            if not is_asked and b"step 3" in output and b"a line of output" in output:
                process.send_signal(signal.SIGINT)
                is_asked = True
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    text = output.decode()
    assert text.index("\x1b[?25l") < text.rindex("\x1b[?25h")
    assert "\x1b[?25l" not in text[text.rindex("\x1b[?25h") :]
    after = text[text.rindex("\x1b[?25h") :]
    assert "KeyboardInterrupt" in after  # the traceback of this bare script comes after the bar, on lines of its own
    before = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text[: text.rindex("\x1b[?25h")])
    assert max(len(line) for line in re.split(r"[\r\n]+", before)) < 40


def _pieces(controller: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # how Linux says that the other side has closed
        while piece := os.read(controller, 4096):
            yield piece


def test_stopping_twice_is_stopping_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for kind, stream in ((Bar, Terminal()), (PlainLines, io.StringIO())):
        shown = kind(stream)
        shown.stop()
        shown.start(0, 2, None)
        shown.stop()
        once = stream.getvalue()
        shown.stop()
        assert stream.getvalue() == once


def test_several_runs_may_be_shown_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, watch = io.StringIO(), Watch()
    shown = PlainLines(stream, clock=watch)
    ran(shown, watch)
    once = stream.getvalue()
    ran(shown, watch)
    assert stream.getvalue() == once * 2
    bar = Bar(Terminal(), clock=watch)
    ran(bar, watch)
    ran(bar, watch)


def test_neither_torch_nor_rich_is_imported_for_a_pipe() -> None:
    code = (
        "import sys; from recurra.training.progress import progress\n"
        "progress(sys.stderr).note('x'); sys.exit('torch' in sys.modules or 'rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


def test_a_run_that_is_limited_by_the_clock_has_an_eta() -> None:
    now = 0.0
    shown = io.StringIO()
    lines = PlainLines(shown, clock=lambda: now)
    lines.start(0, None, None, 60.0)
    now = 20.0
    lines.step(4, 1.0, 0.5, 0.001, 600)
    assert shown.getvalue().splitlines() == [
        "[0:00] training: 1:00 at most",
        "[0:20] step 4  epoch 1.0  loss 0.5  30 tokens/s  ETA 0:40",
    ]


def test_the_nearer_of_two_limits_makes_the_eta() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    pace.start(0, 10, None, 60.0)
    now = 2.0
    pace.step(1, 0.1, 1.0, 0.1, 100)
    assert pace.remaining == 18.0
    pace.start(0, 1000, None, 60.0)
    now = 4.0
    pace.step(1, 0.1, 1.0, 0.1, 100)
    assert pace.remaining == 58.0
