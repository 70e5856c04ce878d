"""What a sequence-to-sequence model answers: searches, alternatives, alignments, ensembles, and odd questions."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.analysis.alignment import alignment as alignment_view
from recurra.analysis.alignment import alignment_of, pharaoh
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import WORDS, table, task_of, trained, untrained, words

SOURCES = [source for source, _ in WORDS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with the same tokens, `run` and `other`; neither knows its words by heart."""
    found = tmp_path_factory.mktemp("seq2seq")
    trained(found, words(found), "training.steps=25")
    trained(found, words(found), "training.steps=25", "training.seed=2", "model.hidden=16", run="other")
    return found


@pytest.fixture(scope="module")
def model(folder: Path) -> Trained:
    return load(folder / "run")


def test_each_row_of_an_alignment_adds_up_to_one(model: Trained) -> None:
    for answer in model.predict(SOURCES):
        alignment = answer.alignment
        assert alignment is not None
        tokens, read = answer.detail["tokens"], answer.detail["source_tokens"]
        assert read == [*answer.input, "</s>"]
        assert alignment.shape == (len(tokens) + (not answer.detail.get("cut_off")), len(read))
        np.testing.assert_allclose(alignment.sum(1), 1, atol=1e-5)
        assert alignment.min() >= 0
        pairs = [pair.split("-") for pair in pharaoh(alignment_view(read, tokens, alignment)).split()]
        best = alignment[: len(tokens), : len(read) - 1].argmax(1)
        assert all(int(read_at) == best[int(written_at)] for read_at, written_at in pairs)


def test_links_are_written_a_line_for_each_answer(
    folder: Path, model: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, links = tmp_path / "asked.txt", tmp_path / "links.txt"
    asked.write_text("cat\n\ndog\n", "utf-8")
    assert main(["predict", str(folder / "run"), str(asked), "--alignments", str(links)]) == 0
    answers = model.predict(["cat", "", "dog"], detail=True)
    assert capsys.readouterr().out.split("\n")[:3] == [answer.output for answer in answers]
    found = links.read_text("utf-8").split("\n")
    assert found == [pharaoh(alignment_of(each)) if each.output else "" for each in answers] + [""]
    assert main(["predict", str(folder / "run"), str(asked), "--alignments", str(tmp_path / "no" / "links")]) == 2
    assert "cannot be written: No such file or directory." in capsys.readouterr().err


def test_an_answer_without_attention_has_no_alignment(tmp_path: Path) -> None:
    [answer] = untrained(tmp_path, words(tmp_path), "model.attention=none").predict(["cat"], detail=True)
    assert answer.alignment is None
    assert "alignment" not in answer.detail


def test_alternatives_come_in_the_order_of_their_scores_and_are_all_different(model: Trained) -> None:
    for answer in model.predict(SOURCES, width=6, best=6):
        scores = [answer.score, *(other["score"] for other in answer.alternatives)]
        assert len(scores) == 6
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(other["tokens"]) for other in answer.alternatives} | {tuple(answer.detail["tokens"])}) == 6
    assert model.predict(["cat"])[0].alternatives == []
    [drawn] = model.predict(["cat"], search="sampling", best=3)
    assert len(drawn.alternatives) == 2


def test_batch_and_order_change_no_answer(model: Trained) -> None:
    sources = [*SOURCES, "treehouse", "oo", "catcatcat"]
    alone = [model.predict([source], best=3)[0] for source in sources]
    for tokens in (7, 20, 8192):
        for step in (1, -1):
            found = model.predict(sources[::step], best=3, batch_tokens=tokens)[::step]
            for one, other in zip(alone, found, strict=True):
                assert one.output == other.output
                assert one.score == pytest.approx(other.score, abs=1e-4)
                scores = [each["score"] for each in one.alternatives]
                assert scores == pytest.approx([each["score"] for each in other.alternatives], abs=1e-4)


def test_a_score_is_what_the_model_gives_that_answer(model: Trained, tmp_path: Path) -> None:
    found = model.with_settings(["decoding.length_penalty=0"]).predict(SOURCES)
    file = table(tmp_path / "answers.tsv", [(answer.input, answer.output) for answer in found])
    given = list(model.with_settings(["decoding.search=given"]).predict_file(file, []))
    for answer, likelihood in zip(found, given, strict=True):
        assert answer.score == answer.detail["log_probability"]
        assert likelihood.score == pytest.approx(answer.score, abs=1e-4)
        count = len(answer.detail["tokens"]) + 1
        assert likelihood.output == f"{likelihood.score:.4f}\t{count}"
        assert likelihood.detail == {"target": answer.output, "nll": pytest.approx(-likelihood.score / count)}


def test_a_wider_beam_finds_what_is_at_least_as_probable(model: Trained) -> None:
    plain = model.with_settings(["decoding.length_penalty=0"])
    narrow, wide = plain.predict(SOURCES, search="greedy"), plain.predict(SOURCES, width=60)
    assert all(one.score <= other.score + 1e-5 for one, other in zip(narrow, wide, strict=True))


def test_decoding_is_obeyed(model: Trained) -> None:
    def first(*settings: str) -> list[str]:
        tokens: list[str] = model.with_settings(settings).predict(["cat"])[0].detail["tokens"]
        return tokens

    assert first('decoding.prefix="D AO"')[:2] == ["D", "AO"]
    assert "HH" in first('decoding.forced=["HH"]')
    assert not {"K", "T"} & {*first('decoding.banned=["K", "T"]')}
    assert len(first("decoding.min_length=9")) >= 9
    assert len(first("decoding.max_length=2")) <= 2
    assert len(first("decoding.max_ratio=0", "decoding.min_length=30")) >= 30
    repeated = first("decoding.no_repeat=1", "decoding.min_length=9")
    assert len({*repeated}) == len(repeated)


def test_specials_are_never_written_but_the_unknown_token_where_that_is_asked_for(model: Trained) -> None:
    specials = {*task_of(model).texts.target.vocabulary.specials}

    def written(*overrides: str) -> set[str]:
        [found] = model.with_settings(["decoding.width=24", "decoding.best=24", *overrides]).predict(["cat"])
        return {token for each in (found.detail, *found.alternatives) for token in each["tokens"]}

    assert not written() & specials
    assert written("decoding.unknown=true") & specials == {"<unk>"}
    assert not written("decoding.unknown=true", 'decoding.banned=["<unk>"]') & specials
    assert written("decoding.unknown=true", 'decoding.forced=["<unk>"]') & specials == {"<unk>"}


def test_alternatives_say_where_they_looked_too(model: Trained, tmp_path: Path) -> None:
    [found] = model.predict(["cat"], width=4, best=4)
    for each in found.alternatives:
        assert each["alignment"].shape == (len(each["tokens"]) + (not each.get("cut_off")), 4)
        np.testing.assert_allclose(each["alignment"].sum(1), 1, atol=1e-5)
    without = untrained(tmp_path, words(tmp_path), "model.attention=none").predict(["cat"], best=2)[0]
    assert all("alignment" not in each for each in without.alternatives)


def test_several_runs_answer_as_one(folder: Path, model: Trained) -> None:
    runs = [folder / "run", folder / "other"]
    both = load(runs)
    twice = load([runs[0], runs[0]])
    for one, other in zip(model.predict(SOURCES), twice.predict(SOURCES), strict=True):
        assert one.output == other.output
        assert one.score == pytest.approx(other.score, abs=1e-5)
    assert load(f"{runs[0]}, {runs[1]}").predict(["cat"])[0].score == both.predict(["cat"])[0].score
    file = str(folder / "words.tsv")
    likelihoods = [
        np.array([answer.score for answer in each.with_settings(["decoding.search=given"]).predict_file(file, [])])
        for each in (model, load(runs[1]), both)
    ]
    assert (likelihoods[2] > np.minimum(*likelihoods[:2])).all()
    alignment = both.predict(["cat"])[0].alignment
    assert alignment is not None
    np.testing.assert_allclose(alignment.sum(1), 1, atol=1e-5)


def test_runs_with_other_tokens_cannot_answer_as_one(folder: Path, tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("dog", "D AO G"), ("fox", "F AA K S")])
    untrained(tmp_path, file, run="strange")
    with pytest.raises(CheckpointError, match=r"differ in tokenizer.source.json|differ in vocabulary.source.json"):
        load([folder / "run", tmp_path / "strange"])
    with pytest.raises(CheckpointError, match="there is no folder"):
        load(f"{folder / 'run'},{folder / 'none'}")
    with pytest.raises(CheckpointError, match="there is no run to load: name a folder"):
        load([])
    untrained(tmp_path, words(tmp_path), "model.copy=true", run="copies")
    with pytest.raises(
        ConfigError, match=r"some of these runs copy words from the source \(model.copy\) and others do not"
    ):
        load([folder / "run", tmp_path / "copies"])


def test_several_runs_are_told_and_not_saved_as_one(folder: Path) -> None:
    both = load([folder / "run", folder / "other"]).with_settings(["decoding.width=2"])
    assert f"{folder / 'run'}, {folder / 'other'}" in repr(both)
    with pytest.raises(CheckpointError, match="an ensemble of runs cannot be saved as one run"):
        both.save(folder / "saved")
    assert not (folder / "saved").exists()


def test_empty_lines_are_answered_by_empty_lines(model: Trained) -> None:
    answers = model.predict(["", "cat", "   ", "dog"], detail=True)
    assert [bool(answer.output) for answer in answers] == [False, True, False, True]
    assert (answers[0].score, answers[0].detail) == (0.0, {"tokens": [], "alternatives": []})
    assert model.predict([]) == []


def test_where_empty_sources_were_learned_they_are_answered_as_learned(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("", "a b"), ("x", "c"), ("y", "")])
    model = trained(tmp_path, file, "data.empty=keep", "data.target.tokens=words")
    assert [answer.output for answer in model.predict(["", "x", "y"])] == ["a b", "c", ""]
    assert model.evaluate(file).values["exact_match"] == 1


def test_strange_letters_and_very_long_lines_are_answered(model: Trained) -> None:
    strange, long = model.predict(["ςatχ☃\0", "cat" * 3334])
    assert strange.detail["source_tokens"] == [*"ςatχ☃\0", "</s>"]
    assert strange.output
    assert len(long.detail["tokens"]) <= model.task.settings.decoding.max_length
    assert len(long.detail["source_tokens"]) == 10_003


def test_a_question_may_stand_in_a_table_with_its_target_or_without(folder: Path, model: Trained) -> None:
    expected = [answer.output for answer in model.predict(SOURCES)]
    assert [answer.output for answer in model.predict_file(folder / "words.tsv", [])] == expected
    table(folder / "asked.tsv", [(source,) for source in SOURCES])
    assert [answer.output for answer in model.predict_file(folder / "asked.tsv", [])] == expected


def test_what_is_likely_is_asked_of_pairs_and_not_scored(folder: Path, model: Trained) -> None:
    given = model.with_settings(["decoding.search=given"])
    with pytest.raises(DataError, match="but a row has no target: give rows with a source and a target"):
        given.predict(["cat"])
    with pytest.raises(ConfigError, match="generates nothing that can be scored: choose a search"):
        given.evaluate(folder / "words.tsv")


def test_the_same_seed_draws_the_same(model: Trained) -> None:
    def drawn(*settings: str) -> list[str]:
        hot = ["decoding.search=sampling", "decoding.temperature=3", *settings]
        return [answer.output for answer in model.with_settings(hot).predict(SOURCES)]

    assert drawn() == drawn() != drawn("decoding.seed=2")
    hot = model.with_settings(["decoding.search=sampling", "decoding.temperature=3"])
    assert drawn() == [hot.predict([source])[0].output for source in SOURCES]
    assert drawn() == [answer.output for answer in hot.predict(SOURCES[::-1], batch_tokens=9)][::-1]
    assert drawn("decoding.top_k=1") == [answer.output for answer in model.predict(SOURCES, search="greedy")]


# The command line


def test_the_command_line_searches_as_it_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, file = str(folder / "run"), str(folder / "words.tsv")
    assert main(["predict", run, file, "--search", "beam", "--width", "3", "--best", "2", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["input"] for answer in found] == SOURCES
    assert [answer["line"] for answer in found] == list(range(1, 9))
    assert all(len(answer["alternatives"]) == 1 for answer in found)
    assert {"input", "output", "score", "tokens", "alternatives", "alignment", "line"} <= found[0].keys()
    assert sum(found[0]["alignment"][0]) == pytest.approx(1, abs=1e-4)
    outputs = {}
    for search in ("greedy", "beam"):
        assert main(["predict", run, file, "--search", search]) == 0
        outputs[search] = capsys.readouterr().out.splitlines()
    greedy = load(run).predict(SOURCES, search="greedy")
    assert outputs["greedy"] == [answer.text for answer in greedy]
    assert main(["predict", f"{run},{folder / 'other'}", file]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8


def on_standard_input(monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))


def test_lines_on_standard_input_are_answered_in_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_standard_input(monkeypatch, b"cat\n\nxyzzy\n")
    assert main(["predict", str(folder / "run"), "-", "--json"]) == 0
    assert [json.loads(line)["input"] for line in capsys.readouterr().out.splitlines()] == ["cat", "", "xyzzy"]


def test_standard_input_that_is_no_text_is_refused_after_what_was_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_standard_input(monkeypatch, "cat\ncaf\xe9\n".encode("latin-1"))
    assert main(["predict", str(folder / "run")]) == 2
    assert capsys.readouterr().err.startswith("recurra: standard input:2: byte 4 of the line, 0xe9, is not UTF-8")


def test_on_a_terminal_each_line_is_answered_at_once(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "recurra", "predict", str(folder / "run")]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        expected = [answer.output for answer in load(folder / "run").predict(["cat", "", "dog"])]
        for line, answer in zip(("cat", "", "dog"), expected, strict=True):
            os.write(ours, f"{line}\n".encode())
            assert process.stdout.readline() == f"{answer}\n"  # before the next line is there
        os.write(ours, b"\x04")  # the end
        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--search", "bem"], "'path' or 'given', but is 'bem'. Did you mean 'beam'?"),
        (["--width", "0"], "decoding.width must be at least 1, but is 0"),
        (
            ["--best", "9", "--json"],
            "decoding.best = 9 answers need a beam of at least that width, but decoding.width = 5",
        ),
        (["--best", "2"], "--best 2 asks for several answers, but only --json prints them: add --json"),
        (
            ["--search", "greedy", "--width", "3"],
            "width = 3 has an effect only in beam search, but the search is 'gr",
        ),
        (["--search", "greedy", "--best", "2", "--json"], "but greedy search finds only one: set decoding.search = 'b"),
        (["--set", 'decoding.banned=["Q"]'], "decoding.banned has 'Q', which is not a token of the targets."),
        (["--set", 'decoding.banned=["<s>"]'], "decoding.banned has '<s>', which is not a token of the targets"),
        (["--set", 'decoding.banned=["</s>"]'], "decoding.banned has '</s>', which is not a token of the targets"),
        (["--set", 'decoding.prefix="K </s>"'], "decoding.prefix has '</s>', which is not a token of the targets"),
        (["--set", 'decoding.forced=["AEE"]'], "has 'AEE', which is not a token of the targets. Did you mean 'AE'?"),
        (["--set", 'decoding.prefix="K Q"'], "decoding.prefix has 'Q', which is not a token of the targets"),
        (["--set", "decoding.top_p=0"], "decoding.top_p must be above 0 and at most 1, but is 0"),
        (["--set", "decoding.min_length=300"], "decoding.min_length = 300 is above decoding.max_length = 200"),
        (["--set", "decoding.max_ratio=-1"], "decoding.max_ratio must be at least 0, but is -1"),
        (["--set", "decoding.temperature=-1"], "decoding.temperature must be at least 0, but is -1"),
        (["--set", "decoding.widht=3"], "there is no setting 'decoding.widht'. Did you mean 'width'?"),
        (
            ["--set", "model.hidden=3"],
            "the settings of a trained model cannot be changed, except evaluation and decoding: remove --set "
            "model.hidden=3",
        ),
        (["--set", "decoding.search=given"], "but a row has no target: give rows with a source and a target"),
        (["--device", "tpu9"], "the device 'tpu9' cannot be used"),
    ],
)
def test_what_cannot_be_searched_for_is_said_in_a_sentence(
    folder: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table(folder / "one.tsv", [("cat",)])
    assert main(["predict", str(folder / "run"), str(folder / "one.tsv"), *options]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert shown.err.count("\n") == 1


def test_a_task_that_searches_for_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from recurra.runs import begin
    from recurra.training.progress import Silent
    from tests.training.small import small_setup

    begin(small_setup(tmp_path, "training.steps=1", "training.epochs=none"), tmp_path / "run", Silent())
    assert main(["predict", str(tmp_path / "run"), "--width", "3", str(tmp_path / "train.conll")]) == 2
    said = "width is an option of search, but tagging does not use a search: leave it out."
    assert said in capsys.readouterr().err
    with pytest.raises(ConfigError, match="search is an option of search"):
        load(tmp_path / "run").predict(["the run"], search="beam")


@pytest.mark.parametrize(
    ("asked", "settings"),
    [
        ({"search": "sampling", "temperature": 0.7, "seed": 3}, {"search": "sampling", "temperature": 0.7, "seed": 3}),
        ({"search": "sampling", "top_p": 0.6, "top_k": 4}, {"search": "sampling", "top_p": 0.6, "top_k": 4}),
        ({"width": 4, "best": 3, "length_penalty": 0.0}, {"width": 4, "best": 3, "length_penalty": 0.0}),
        ({"forced": ["AO", "G"]}, {"forced": ["AO", "G"]}),
        ({"forced": "AO"}, {"forced": ["AO"]}),
    ],
)
def test_python_asks_by_the_settings_of_decoding(model: Trained, asked: dict[str, Any], settings: Any) -> None:
    found = model.predict(SOURCES, **asked)
    same = model.with_settings({"decoding": settings}).predict(SOURCES)
    options = [f"decoding.{name}={json.dumps(value)}" for name, value in settings.items()]
    also = model.with_settings(options).predict(SOURCES)
    assert [(answer.output, answer.score) for answer in found] == [(answer.output, answer.score) for answer in same]
    assert [answer.output for answer in same] == [answer.output for answer in also]
    if "forced" in asked:
        assert all("AO" in answer.detail["tokens"] for answer in found)
    if "length_penalty" in asked:
        assert [answer.score for answer in found] != [answer.score for answer in model.predict(SOURCES, width=4)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"temperature": 0.5}, "temperature = 0.5 has an effect only in sampling, but the search is 'beam': set sear"),
        ({"search": "greedy", "seed": 2}, "seed = 2 has an effect only in sampling, but the search is 'greedy': set"),
        ({"search": "sampling", "top_p": 0.0}, "top_p = 0.0: decoding.top_p must be above 0 and at most 1, but is 0"),
        ({"forced": ["Q"]}, "decoding.forced has 'Q', which is not a token of the targets"),
    ],
)
def test_what_a_search_cannot_use_is_refused_in_python(model: Trained, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model.predict(["cat"], **asked)
    assert said in str(caught.value)
