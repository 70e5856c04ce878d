"""CTC from the command line: texts and frames are learned, answered, aligned, explained; what cannot be is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recurra.cli import main
from recurra.training.trained import load
from tests.once import made_once
from tests.tasks.small_pairs import SMALL, WORDS, jsonl, table, trained

CTC = "model.decoder.kind=ctc"
SETS = [part for override in [*SMALL, CTC] for part in ("--set", override)]
SPOKEN = [*WORDS, ("ox", "AA K S K S")]  # more sounds than letters


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that has learned nine words by heart; each letter is two steps."""

    def make(folder: Path) -> None:
        train = table(folder / "words.tsv", SPOKEN)
        trained(folder, train, CTC, "model.decoder.expand=2", "training.steps=80")
        trained(folder, train, "training.steps=15", run="other")

    folder = made_once(tmp_path_factory, "ctc", make)
    monkeypatch.chdir(folder)
    return folder / "run"


@pytest.mark.parametrize("search", ["beam", "greedy", "path"])
def test_words_are_learned_by_heart_and_found_by_every_search(run: Path, search: str) -> None:
    answers = load(run).predict([word for word, _ in SPOKEN], search=search)
    assert [answer.output for answer in answers] == [sounds for _, sounds in SPOKEN]
    assert all(-1 < answer.score <= 1e-12 for answer in answers)


def test_answers_are_aligned_from_left_to_right(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (Path.cwd() / "asked.txt").write_text("cat\n\nhouse\n", "utf-8")
    assert main(["predict", "run", "asked.txt", "--alignments", "links.txt"]) == 0
    assert capsys.readouterr().out.split("\n")[:3] == ["K AE T", "", "HH AW S"]
    lines = Path("links.txt").read_text("utf-8").split("\n")
    assert lines[1] == ""
    for line in (lines[0], lines[2]):
        read, written = zip(*(map(int, link.split("-")) for link in line.split()), strict=True)
        assert list(written) == sorted(written)
        assert list(read) == sorted(read)
    [answer] = load(run).predict(["cat"], detail=True)
    assert answer.alignment is not None
    assert answer.alignment.shape == (3, len("cat") + 1)


@pytest.mark.usefixtures("run")
def test_every_view_of_an_answer_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for view in ("alignment", "probabilities", "saliency", "tree", "gates"):
        assert main(["explain", "run", "cat", "--show", view, "--json"]) == 0
        found[view] = json.loads(capsys.readouterr().out)["views"][view]
    assert found["alignment"]["rows"] == ["K", "AE", "T"]
    assert found["alignment"]["columns"] == ["c", "a", "t", "</s>"]
    assert main(["explain", "run", "cat", "--out", "why.html"]) == 0
    assert "The best alignment" in Path("why.html").read_text("utf-8")


def test_probabilities_of_tokens_multiply_to_that_of_the_answer(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "run", "tree", "--show", "probabilities", "--json"]) == 0
    capsys.readouterr()
    [answer] = load(run).predict(["tree"], best=3)
    assert answer.detail["log_probability"] <= 0
    scores = [answer.score, *(each["score"] for each in answer.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert sum(np.exp(each["log_probability"]) for each in [answer.detail, *answer.alternatives]) <= 1 + 1e-9


@pytest.mark.usefixtures("run")
def test_a_run_with_a_decoder_and_one_without_answer_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "run,other", "words.tsv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exact_match"] > 0.8
    found = {}
    for names in ("run", "run,other"):
        assert main(["explain", names, "cat", "--show", "alignment", "--json"]) == 0
        found[names] = json.loads(capsys.readouterr().out)["views"]["alignment"]
    [first] = found["run,other"]["views"]
    assert first["weights"] == found["run"]["weights"]
    assert "other has none: the answer is empty" in found["run,other"]["about"]


def test_symbols_are_heard_in_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(1)

    def recording() -> dict[str, object]:
        said = generator.choice(list("abc"), size=int(generator.integers(1, 5)))
        frames = [np.eye(4)[3]]
        for letter in said:
            frames += [np.eye(4)["abc".index(letter)]] * int(generator.integers(1, 4)) + [np.eye(4)[3]]
        noisy = np.array(frames) + 0.05 * generator.normal(size=(len(frames), 4))
        return {"frames": noisy.round(2).tolist(), "target": " ".join(said)}

    train, valid = jsonl(tmp_path / "t.jsonl", [recording() for _ in range(60)]), [recording() for _ in range(20)]
    columns = ("data.frames=frames", "data.target.tokens=symbols", "training.steps=70", CTC)
    model = trained(tmp_path, train, *columns)
    answers = list(model.predict_file(jsonl(tmp_path / "v.jsonl", valid), []))
    right = [answer.output == row["target"] for answer, row in zip(answers, valid, strict=True)]
    assert np.mean(right) > 0.9


REFUSED = [
    (["model.attention=dot"], "model.attention = 'dot' has no effect: model.decoder.kind = 'ctc' has no decoder."),
    (["model.wiring=inside"], "model.wiring = 'inside' has no effect: model.decoder.kind = 'ctc' has no decoder."),
    (['model.conditioning=["every"]'], "has no effect: model.decoder.kind = 'ctc' has no decoder. Leave it out."),
    (["model.tied=output"], "model.tied = 'output' has no effect: model.decoder.kind = 'ctc' has no decoder."),
    (["model.start=mean"], "model.start = 'mean' has no effect: model.decoder.kind = 'ctc' has no state to start"),
    (
        ["model.pointer=dot"],
        "model.pointer needs a decoder that chooses elements, but model.decoder.kind = 'ctc' has no",
    ),
    (["model.copy=true"], "model.copy = true needs attention, but model.decoder.kind = 'ctc' has none"),
    (["model.decoder.layers=2"], "model.decoder.layers has no effect: model.decoder.kind = 'ctc' has no layers"),
    (["decoding.coverage_penalty=0.1"], "uses attention weights, but model.decoder.kind is ctc: remove the penalty"),
    (["decoding.search=path", "decoding.best=2"], "decoding.search = 'path' finds only one: set decoding.search"),
    (["training.r_drop=1"], "training.r_drop = 1.0 has no effect: model.decoder.kind = 'ctc' has no decoder that"),
    (["model.encoder=transformer", "model.cell=gru"], "model.cell = 'gru' has no effect: there are no cells."),
    (
        [],
        "words.tsv:9: CTC needs 5 steps to write this target, one for each of 5 tokens, but there are 3. Set "
        "model.decoder.expand = 2, or use a decoder with attention (model.decoder.kind = 'rnn').",
    ),
    (
        ["model.encoder.kind=pyramid", "model.encoder.layers=2", "model.decoder.expand=2"],
        "but there are 4 (3 of the source; a pyramid merges 2 into one and model.decoder.expand = 2 splits each). Set "
        "model.decoder.expand = 3, use fewer layers of the pyramid, or use a decoder with attention",
    ),
]


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(("sets", "said"), REFUSED, ids=[said[:60] for _, said in REFUSED])
def test_what_ctc_cannot_do_is_refused(sets: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed = [part for override in sets for part in ("--set", override)]
    assert main(["train", "seq2seq", "--train", "words.tsv", "--out", "new", "--quiet", *SETS, *changed]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
    assert not Path("new").exists()


@pytest.mark.usefixtures("run")
def test_what_only_ctc_can_do_is_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    for task, override, said in (
        ("seq2seq", "decoding.search=path", "takes the most probable alignment of CTC, but model.decoder.kind = 'rnn'"),
        ("seq2seq", "model.decoder.expand=2", "splits the steps of CTC, but model.decoder.kind = 'rnn'. Leave it out"),
        ("vec2seq", "decoding.search=path", "the most probable alignment of CTC, which vec2seq has not"),
        (
            "vec2seq",
            CTC,
            "reads a sequence step by step, but vec2seq reads a vector or a picture: use the task seq2seq",
        ),
    ):
        assert main(["train", task, "--train", "words.tsv", "--out", "new", "--quiet", "--set", override]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.usefixtures("run")
def test_an_impossible_target_of_an_evaluation_leaves_the_other_scores(capsys: pytest.CaptureFixture[str]) -> None:
    table(Path("long.tsv"), [("cat", "K AE T"), ("a", "AH AH AH AH")])
    assert main(["evaluate", "run", "long.tsv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["exact_match"] == 0.5
    assert "perplexity" not in found
