"""The log of a run: each step once whatever happens to the process, and nothing lost that was written."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.training.log import EventLine, Line, Log, TrainLine, ValidLine, read_log
from recurra.training.loggers.tensorboard import TensorBoard

LINES: list[Line] = [
    TrainLine(120, 2, 0.41, 0.001, 1.2, 5300.0, 12.1),
    TrainLine(121, 2, 0.40, 0.001, 1.2, 5300.0, 12.2, {"forcing": 0.9}),
    ValidLine(400, 2, {"accuracy": 0.93, "f1": 0.9}, 0.3, True, 40.2),
    EventLine(400, "resumed from step 400"),
]


def written(folder: Path, lines: list[Line]) -> Path:
    with Log(folder) as log:
        for line in lines:
            log.write(line)
    return folder / "metrics.jsonl"


def test_each_kind_of_line_is_one_json_object_with_the_names_promised(tmp_path: Path) -> None:
    texts = written(tmp_path, LINES).read_text().splitlines()
    assert [json.loads(text) for text in texts] == [
        {
            "kind": "train",
            "step": 120,
            "epoch": 2,
            "loss": 0.41,
            "learning_rate": 0.001,
            "gradient_norm": 1.2,
            "tokens_per_second": 5300.0,
            "seconds": 12.1,
        },
        {
            "kind": "train",
            "step": 121,
            "epoch": 2,
            "loss": 0.40,
            "learning_rate": 0.001,
            "gradient_norm": 1.2,
            "tokens_per_second": 5300.0,
            "seconds": 12.2,
            "logged": {"forcing": 0.9},
        },
        {
            "kind": "valid",
            "step": 400,
            "epoch": 2,
            "scores": {"accuracy": 0.93, "f1": 0.9},
            "loss": 0.3,
            "best": True,
            "seconds": 40.2,
        },
        {"kind": "event", "step": 400, "text": "resumed from step 400"},
    ]


finite = st.floats(allow_nan=False, allow_infinity=False)
by_name = st.dictionaries(st.text(), finite)
lines_of_any_kind = st.lists(
    st.builds(TrainLine, st.integers(0, 10**9), finite, finite, finite, finite, finite, finite, by_name)
    | st.builds(ValidLine, st.integers(0, 10**9), finite, by_name, finite, st.booleans(), finite)
    | st.builds(EventLine, st.integers(0, 10**9), st.text()),
    max_size=3,
)


@given(lines_of_any_kind)
def test_what_is_written_is_what_is_read(lines: list[Line]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert read_log(written(Path(folder), lines)) == lines


def test_a_line_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        for count, line in enumerate(LINES, start=1):
            log.write(line)
            assert read_log(log.path) == LINES[:count]
            assert log.position == log.path.stat().st_size


def test_a_killed_and_resumed_run_has_each_step_once(tmp_path: Path) -> None:
    with Log(tmp_path) as log:
        for step in range(1, 8):
            log.write(TrainLine(step, 0, 1 / step))
            if step == 4:
                checkpoint = log.position
    with Log(tmp_path, keep=checkpoint) as log:
        assert log.position == checkpoint
        for step in range(5, 10):
            log.write(TrainLine(step, 0, 1 / step))
    assert [line.step for line in read_log(log.path)] == list(range(1, 10))


@given(st.integers(0, 200), st.integers(0, 300))
def test_whatever_is_left_of_the_file_only_whole_lines_are_kept(size: int, keep: int) -> None:
    whole = b'{"kind": "event", "step": 1, "text": "a"}\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "metrics.jsonl")
        path.write_bytes((whole * 9)[:size])
        Log(folder, keep=keep).close()
        assert path.read_bytes() == whole * (min(size, keep) // len(whole))


def test_without_a_checkpoint_the_log_begins_anew(tmp_path: Path) -> None:
    written(tmp_path, LINES)
    assert read_log(written(tmp_path, LINES[:1])) == LINES[:1]


def test_numbers_that_json_cannot_say_come_back_as_nan(tmp_path: Path) -> None:
    path = written(tmp_path, [TrainLine(1, 0, math.nan, math.inf), ValidLine(1, 0, {"bleu": math.nan})])
    assert "NaN" not in path.read_text()
    train, valid = read_log(path)
    assert isinstance(train, TrainLine)
    assert isinstance(valid, ValidLine)
    assert all(math.isnan(x) for x in (train.loss, train.learning_rate, valid.scores["bleu"]))


def test_scalars_of_numpy_and_torch_are_plain_numbers_in_the_file(tmp_path: Path) -> None:
    step, best = int(np.int64(3)), bool(np.bool_(True))
    array = ValidLine(np.int64(3), np.float32(1), {"f1": torch.tensor(0.5)}, torch.tensor(2.0), np.bool_(True))  # type: ignore[arg-type, dict-item]
    [line] = read_log(written(tmp_path, [array]))
    assert line[:5] == (step, 1.0, {"f1": 0.5}, 2.0, best)


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_half_written_last_line_is_left_out(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path, [LINES[1], EventLine(1, "à la fin, un mot assez long pour être coupé en deux ÿÿÿÿ")])
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_log(path) == [LINES[1]] or cut == 1
    assert read_log(path)[0] == LINES[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("[" * 100_000, "metrics.jsonl:2: this line is not a JSON object", id="nested deeply"),
        pytest.param("1" * (1 << 21), "metrics.jsonl:2: a line of a log has at most 1,048,576 bytes", id="a long line"),
        ("hello", "metrics.jsonl:2: this line is not a JSON object, as each line of a log must be."),
        (
            "[1, 2]",
            "metrics.jsonl:2: the kind of a log line must be one of train, valid, event, but this line has none",
        ),
        ('{"kind": "test"}', "metrics.jsonl:2: the kind of a log line must be one of"),
        ('{"kind": "train", "step": 1, "epoch": 1}', "metrics.jsonl:2: the train line has no 'loss'"),
        ('{"kind": "event", "step": 1.5, "text": ""}', "metrics.jsonl:2: 'step' cannot be 1.5"),
        ('{"kind": "event", "step": null, "text": ""}', "'step' cannot be null"),
        ('{"kind": "event", "step": true, "text": ""}', "'step' cannot be true"),
        (
            '{"kind": "train", "step": 1, "epoch": 1, "loss": "low"}',
            "'loss' cannot be \"low\" in a train line",
        ),
        ('{"kind": "valid", "step": 1, "epoch": 1, "scores": {"f1": "?"}}', "'scores' cannot be"),
    ],
)
def test_rubbish_in_a_log_is_refused_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, LINES[:1])
    path.write_text(f"{path.read_text()}{line}\n{path.read_text()}")
    with pytest.raises(DataError) as refusal:
        read_log(path)
    assert message in str(refusal.value)


def test_a_log_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"metrics\.jsonl cannot be read: No such file"):
        read_log(tmp_path / "metrics.jsonl")


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"metrics\.jsonl cannot be written: .*Choose another folder"):
        Log(tmp_path / "file")


def test_a_full_disk_is_said_and_the_log_is_whole_lines_again_when_resumed(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="no limits on the size of files here")
    log = Log(tmp_path)
    log.write(LINES[0])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.position + 9, limits[1]))
    try:
        with pytest.raises(DataError, match=r"cannot be written: File too large\. Make room, then resume the run"):
            log.write(LINES[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.close()
    Log(tmp_path, keep=10**6).close()
    assert read_log(log.path) == LINES[:1]


def test_without_tensorboard_its_folder_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    written(tmp_path, LINES)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


def test_tensorboard_reads_the_same_numbers_and_forgets_what_was_cut_off(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with Log(tmp_path, loggers=[TensorBoard.open]) as log:
        log.write(TrainLine(1, 0, 4.0, 0.5))
        log.write(ValidLine(1, 0, {"accuracy": 0.25}, loss=3.0))
        checkpoint = log.position
        log.write(TrainLine(2, 0, 3.0, 0.5))
    with Log(tmp_path, checkpoint, [TensorBoard.open]) as log:
        log.write(TrainLine(2, 0, 2.0, 0.5, logged={"forcing": 0.75}))
        log.write(TrainLine(3, 0, math.nan, 0.5))
    # In a process of its own: the reader's other imports warn, and warnings are errors here.
    read = subprocess.run(
        [sys.executable, "-c", READ_EVENTS, tmp_path / "tensorboard"], capture_output=True, text=True, check=True
    )
    assert json.loads(read.stdout) == {
        "train/loss": [[1, 4.0], [2, 2.0]],
        "train/learning_rate": [[1, 0.5], [2, 0.5], [3, 0.5]],
        "train/forcing": [[2, 0.75]],
        "valid/loss": [[1, 3.0]],
        "valid/accuracy": [[1, 0.25]],
    }


def test_a_log_needs_neither_torch_nor_tensorflow(tmp_path: Path) -> None:
    code = (
        "import sys; from recurra.training.log import Log, TrainLine\n"
        "with Log(sys.argv[1]) as log: log.write(TrainLine(1, 0, 0.0))\n"
        "sys.exit('torch' in sys.modules or 'tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == 0
