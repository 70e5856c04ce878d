"""Sequence to sequence from the command line: look at a file, train as told, break off, go on, score."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.training.trained import load
from tests.tasks.small_pairs import SMALL, WORDS, jsonl, table, trained, words

TINY = [part for override in [*SMALL, "training.steps=2"] for part in ("--set", override)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([(source, target) for source, target in WORDS], "a.tsv"),
        ([("walk", "walked", "V;PST"), ("walk", "walks", "V;3;SG"), ("talk", "talked", "V;PST")], "a.tsv"),
        ([("a little cat", "un petit chat"), ("a dog", "un chien")], "a.en,a.de"),
        ([("a little cat", "un petit chat"), ("a dog", "un chien")], "a.jsonl"),
    ],
)
def test_what_check_says_to_type_trains(
    here: Path, rows: list[tuple[str, ...]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith(".jsonl"):
        jsonl(here / name, [{"source": source, "target": target} for source, target in rows])
    elif name.endswith(".tsv"):
        table(here / name, rows)
    else:
        for file, column in zip(name.split(","), zip(*rows, strict=True), strict=True):
            (here / file).write_text("".join(f"{text}\n" for text in column))
    assert main(["check", name, "--valid", name]) == 0
    [command] = [line.strip() for line in capsys.readouterr().out.splitlines() if "recurra train seq2seq" in line]
    program, *arguments = shlex.split(command)
    assert program == "recurra"
    assert main([*arguments, *TINY, "--quiet"]) == 0
    run = arguments[arguments.index("--out") + 1]
    assert f"{run}: seq2seq: " in capsys.readouterr().out
    assert main(["predict", run, name]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows)
    assert main(["evaluate", run, name, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert {"bleu", "chrf", "rouge_l", "meteor", "exact_match", "word_error_rate", "symbol_error_rate"} <= scores.keys()
    assert {"perplexity", "nll", "count", "seconds"} <= scores.keys()


def test_a_dry_run_tells_shapes_steps_and_what_is_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "seq2seq", "--train", words(here), *TINY, "--set", "data.max_length=4", "--dry-run"]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    said = " ".join(shown.out.split())
    assert "characters, BiLSTM 12 encoder, projected_dot attention (outside), LSTM 24 decoder, 19 symbols" in said
    assert "6 examples of 2 to 5 elements" in said
    assert "a side is longer than data.max_length = 4" in shown.err + said
    assert "output.readout.weight 19x24 456" in said
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "BiLSTM 12 encoder, projected_dot attention (outside), LSTM 24 decoder, 19 symbols"),
        (
            ["model.attention=none", "model.bidirectional=false"],
            ", LSTM 24 encoder, no attention, LSTM 24 decoder, 19 symbols",
        ),
        (
            ["model.encoder.kind=cnn", "model.start=mean", "model.decoder.cell=gru", "model.decoder.hidden=[9, 8]"],
            "CNN 24 encoder, projected_dot attention (outside), GRU 9 + 8 decoder, 19 symbols",
        ),
    ],
)
def test_a_run_is_told_in_a_line(here: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    trained(here, words(here), "training.steps=1", *options)
    assert main(["info", "run"]) == 0
    assert said in capsys.readouterr().out
    assert said in repr(load("run"))
    assert main(["info", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "seq2seq"


def test_all_settings_are_printed_and_read_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "seq2seq", "--set", "model.attention=additive"]) == 0
    printed = capsys.readouterr().out
    assert 'attention = "additive"' in printed
    (here / "mine.toml").write_text(printed)
    assert main(["config", "mine.toml"]) == 0
    assert capsys.readouterr().out == printed


def test_answers_of_a_file_score_as_evaluate_says(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = words(here)
    trained(here, file, "training.steps=30")
    assert main(["predict", "run", file]) == 0
    (here / "answers.txt").write_text(capsys.readouterr().out)
    assert main(["score", file, "answers.txt", "--task", "seq2seq", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "run", file, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    for name in ("bleu", "chrf", "exact_match", "word_error_rate", "rouge_l", "meteor"):
        assert alone[name] == pytest.approx(whole[name])
