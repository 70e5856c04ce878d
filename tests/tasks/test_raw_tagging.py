"""Tagging from raw text: a run that finds tokens and sentences itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recurra
from recurra.cli import main
from recurra.data.checking.treebank import faults_in
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, setup
from recurra.runtime.hosted import Hosted
from recurra.sequences import tagged_text
from recurra.training.preparation import prepared
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.reading.test_raw_text import restored
from tests.training.breaking import weights, weights_of_a_broken_run

Printed = pytest.CaptureFixture[str]

SENTENCES = [
    [("Du", 2), ("thé", 1), ("!", 1)],
    [("Il", 1), ("va", 1), ("au", 2), ("bar", 1), (",", 1), ("dit", 1), ("-", 1), ("il", 1), (".", 1)],
    [("Un", 1), ("thé", 1), ("du", 2), ("bar", 1), (".", 1)],
    [("Il", 1), ("dit", 1), ("non", 1), (".", 1)],
]
WORDS = {"du": ("de", "le"), "Du": ("De", "le"), "au": ("à", "le")}
TAGS = {"de": "ADP", "De": "ADP", "le": "DET", "à": "ADP", "Un": "DET", "thé": "NOUN", "bar": "NOUN", "Il": "PRON"}
TAGS |= {"il": "PRON", "va": "VERB", "dit": "VERB", "non": "ADV"} | dict.fromkeys("!,-.", "PUNCT")
NO_SPACE_BEFORE, NO_SPACE_AFTER = "!,.-", "-"


def treebank(copies: int) -> str:
    """CoNLL-U with ranges, SpaceAfter=No and a paragraph at each copy."""
    found = []
    for _ in range(copies):
        for number, sentence in enumerate(SENTENCES):
            lines, word = ["# newpar"] if number == 0 else [], 0
            for place, (form, count) in enumerate(sentence):
                following = sentence[place + 1][0] if place + 1 < len(sentence) else ""
                is_close = form in NO_SPACE_AFTER or (following and following in NO_SPACE_BEFORE)
                misc = "SpaceAfter=No" if is_close else "_"
                if count > 1:
                    lines.append(f"{word + 1}-{word + count}\t{form}" + "\t_" * 7 + f"\t{misc}")
                for each in WORDS[form] if count > 1 else [form]:
                    word += 1
                    lines.append(f"{word}\t{each}\t_\t{TAGS[each]}" + "\t_" * 5 + f"\t{'_' if count > 1 else misc}")
            found.append("\n".join(lines) + "\n\n")
    return "".join(found)


FEW = {
    "model.hidden": 12,
    "model.characters.hidden": 6,
    "model.splitter.hidden": 24,
    "model.splitter.dropout": 0.0,
    "training.learning_rate": 0.02,
    "training.epochs": 30,
    "training.average": "none",
    "training.threads": 1,
    "training.device": "cpu",
    "data.cache": False,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("raw")
    (folder / "train.conllu").write_text(treebank(20), "utf-8")
    return recurra.train("tagging", train=str(folder / "train.conllu"), out=folder / "run", settings=FEW)


def test_a_treebank_teaches_to_cut_raw_text(run: Trained) -> None:
    found = list(run.predict_raw(["Il va au bar. Du thé!\n\nUn thé du ", "bar, dit-il."]))
    assert [answer.detail["tokens"] for answer in found] == [
        ["Il", "va", "à", "le", "bar", "."],
        ["De", "le", "thé", "!"],
        ["Un", "thé", "de", "le", "bar", ",", "dit", "-", "il", "."],
    ]
    assert found[0].detail["upos"] == ["PRON", "VERB", "ADP", "DET", "NOUN", "PUNCT"]
    assert found[0].detail["offsets"][2:5] == [[6, 8], [6, 8], [9, 12]]
    assert found[1].detail["start"] == 14


def test_one_command_makes_conllu_of_a_text(run: Trained, tmp_path: Path, capsys: Printed) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes("\ufeff Il va au bar.\r\nDu thé!\n".encode())
    assert main(["predict", str(run.folder), str(text), "--format", "conllu"]) == 0
    assert capsys.readouterr().out.replace("\t", " ") == (
        "# newdoc\n# newpar\n# sent_id = 1\n# text = Il va au bar.\n"
        "1 Il _ PRON _ _ _ _ _ SpacesBefore=\\s\n2 va _ VERB _ _ _ _ _ _\n3-4 au _ _ _ _ _ _ _ _\n"
        "3 à _ ADP _ _ _ _ _ _\n4 le _ DET _ _ _ _ _ _\n5 bar _ NOUN _ _ _ _ _ SpaceAfter=No\n"
        "6 . _ PUNCT _ _ _ _ _ SpacesAfter=\\r\\n\n\n"
        "# sent_id = 2\n# text = Du thé!\n1-2 Du _ _ _ _ _ _ _ _\n1 De _ ADP _ _ _ _ _ _\n2 le _ DET _ _ _ _ _ _\n"
        "3 thé _ NOUN _ _ _ _ _ SpaceAfter=No\n4 ! _ PUNCT _ _ _ _ _ SpacesAfter=\\n\n\n"
    )


def test_conllu_of_raw_text_is_valid_and_goes_to_a_file(run: Trained, tmp_path: Path, capsys: Printed) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Il va\tau bar 😀 e\u0301!\n\n\n «\u00a0Du thé\u00a0» | \\n", "utf-8")
    assert main(["predict", str(run.folder), str(text), "--raw", "--out", str(tmp_path / "found.conllu")]) == 0
    assert "answers written to" in capsys.readouterr().out
    found = (tmp_path / "found.conllu").read_text("utf-8")
    assert list(faults_in(enumerate(found.removesuffix("\n").split("\n"), 1))) == []
    assert restored(found) == text.read_text("utf-8")


def written_word_by_word(run: Trained, pieces: list[str]) -> str:
    return "".join(run.task.printed_file(None, run.predict_raw(pieces), "conllu"))


TEXTS = [
    " Il va au bar. Du thé!\n\nUn thé du bar, dit-il. ",
    "Il va\tau bar 😀 e\u0301!\n\n\n «\u00a0Du thé\u00a0» | \\n",
    "Du thé! " * 40,
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_short_way_to_conllu_writes_what_the_long_one_does(
    run: Trained, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagged_text, "AHEAD", 16)
    monkeypatch.setattr(tagged_text, "MOST_FORMS", 8)
    told: list[tuple[int, list[str]]] = []
    found = "".join(run.printed_raw([text], "conllu", lambda *of: told.append(of)))
    assert found == written_word_by_word(run, [text])
    answers = run.predict_raw([text])
    assert told == [(each.line, each.not_in_vocabulary) for each in answers if each.not_in_vocabulary]


def test_the_short_way_writes_lemmas_features_and_other_columns_too(tmp_path: Path) -> None:
    lines = treebank(2).replace("\tdit\t_\tVERB\t_\t_", "\tdit\tdire\tVERB\tV\tMood=Ind|Tense=Pres")
    (tmp_path / "train.conllu").write_text(lines, "utf-8")
    tags = ["upos", "lemma", "feats:Tense", "feats:Mood", "xpos", "misc:Entity"]
    settings = {**FEW, "training.epochs": 2, "data.tags": tags, "model.together": ["upos", "xpos"]}
    run = recurra.train("tagging", train=str(tmp_path / "train.conllu"), out=tmp_path / "run", settings=settings)
    assert "".join(run.printed_raw(TEXTS, "conllu")) == written_word_by_word(run, TEXTS)


def test_where_there_is_no_short_way_the_long_one_is_gone(run: Trained) -> None:
    both = load(f"{run.folder},{run.folder}")
    assert "".join(both.printed_raw([TEXTS[0]], "conllu")) == "".join(run.printed_raw([TEXTS[0]], "conllu"))
    assert run.task.printed_raw(both.model, [TEXTS[0]], "conllu", lambda *_: None) is None


def test_a_served_run_finds_the_sentences_of_raw_texts(run: Trained) -> None:
    served = Hosted("thé", run.folder)
    assert served.about["cuts"] is True
    texts = ["Il va au bar. Du thé!", " ", "Il dit non."]
    answers = served.predict(texts, {}, raw=True)["answers"]
    assert [(answer["of"], answer["text"]) for answer in answers] == [
        (0, "Il va au bar."),
        (0, "Du thé!"),
        (2, "Il dit non."),
    ]
    assert answers[1]["tokens"] == ["De", "le", "thé", "!"]
    assert answers[1]["upos"] == ["ADP", "DET", "NOUN", "PUNCT"]
    assert "of" not in served.predict(["Il dit"], {})["answers"][0]
    view = served.explain(texts[0], {}, show=["saliency"], best=2, raw=True)["views"]["saliency"]
    assert "thé" in json.dumps(view, ensure_ascii=False)
    assert "bar" not in json.dumps(view, ensure_ascii=False)
    with pytest.raises(DataError, match=r"the text has 2 sentences, but number 3 is asked for"):
        served.explain(texts[0], {}, best=3, raw=True)
    with pytest.raises(DataError, match=r"a raw text must be a text, not a list"):
        served.predict([["Il", "dit"]], {}, raw=True)


def test_json_of_raw_text_says_where_sentences_stand(run: Trained, tmp_path: Path, capsys: Printed) -> None:
    text = tmp_path / "text"
    text.write_text("Du thé! Il dit non.", "utf-8")
    assert main(["predict", str(run.folder), str(text), "--raw", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["start"], first["end"], first["ranges"]) == (0, 7, [[1, 2]])
    assert (second["text"], second["start"], second["sentence"]) == ("Il dit non.", 8, 2)


def test_lines_of_words_are_read_as_before_and_have_offsets(run: Trained) -> None:
    [answer] = run.predict(["Il  dit non ."])
    assert answer.detail["tokens"] == ["Il", "dit", "non", "."]
    assert answer.detail["offsets"] == [[0, 2], [4, 7], [8, 11], [12, 13]]


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t", "\u00a0\u2028".encode()])
def test_a_text_without_words_has_no_answers(run: Trained, tmp_path: Path, capsys: Printed, content: bytes) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(content)
    assert main(["predict", str(run.folder), str(text), "--format", "conllu"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a\nb\xff", "text.txt:2: the byte 0xff is not UTF-8"), (b"a\n\nb\0c", "text.txt:3: a NUL character was found")],
)
def test_bytes_that_are_no_text_are_refused_with_their_line(
    run: Trained, tmp_path: Path, capsys: Printed, content: bytes, said: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(content)
    assert main(["predict", str(run.folder), str(text), "--raw"]) == 2
    assert said in capsys.readouterr().err


def test_scores_from_raw_text_and_from_words(run: Trained, tmp_path: Path) -> None:
    file = tmp_path / "test.conllu"
    file.write_text(treebank(2), "utf-8")
    assert run.evaluate(file).values["accuracy"] > 0.95
    scores = run.with_settings({"evaluation.raw": True}).evaluate(file).values
    assert scores["tokens_f1"] > 0.95
    assert scores["words_f1"] >= scores["upos_f1"] > 0.9
    assert scores["upos_aligned_accuracy"] == pytest.approx(scores["upos_f1"] / scores["words_f1"])


def test_a_run_is_the_same_after_loading_and_after_saving(run: Trained, tmp_path: Path) -> None:
    text = "Il va au bar. Du thé!"
    found = [answer.detail for answer in run.predict_raw([text])]
    assert [answer.detail for answer in load(run.folder).predict_raw([text])] == found
    assert [answer.detail for answer in load(run.save(tmp_path / "copy")).predict_raw([text])] == found


def test_resuming_goes_on_with_the_same_windows_of_text(tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_text(treebank(6), "utf-8")
    changes = {**FEW, "training.epochs": 2, "training.batch_tokens": 40, "data.train": str(tmp_path / "train.conllu")}
    this = setup("tagging", overrides=changes)
    begin(this, tmp_path / "unbroken", Silent())
    assert weights_of_a_broken_run(this, tmp_path / "broken", last=7) == weights(tmp_path / "unbroken")


def test_runs_without_a_splitter_refuse_raw_text(tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_text(treebank(1), "utf-8")
    few = {**FEW, "training.epochs": 1, "data.raw": False}
    del few["model.splitter.hidden"], few["model.splitter.dropout"]
    run = recurra.train("tagging", train=str(tmp_path / "train.conllu"), out=tmp_path / "run", settings=few)
    assert run.model.splitter is None
    with pytest.raises(ConfigError, match="has not learned to find tokens and sentences in raw text"):
        list(run.predict_raw(["Il dit non."]))
    with pytest.raises(ConfigError, match=r"evaluation\.raw = true needs a run that finds tokens"):
        run.with_settings({"evaluation.raw": True})


def test_settings_of_a_splitter_that_is_not_trained_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_text(treebank(1), "utf-8")
    with pytest.raises(ConfigError, match=r"model\.splitter\.hidden.* no effect: data\.raw is false"):
        recurra.train(
            "tagging",
            train=str(tmp_path / "train.conllu"),
            out=tmp_path / "run",
            settings={"data.raw": False, "model.splitter.hidden": 8},
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "conllu", "--json"], "exclude each other"),
        (["--raw", "--out", "new.csv"], "leave it or --raw out"),
        (["--format", "xml"], "--format xml is not known"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    run: Trained,
    tmp_path: Path,
    capsys: Printed,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("Il dit non.", "utf-8")
    assert main(["predict", str(run.folder), "text.txt", *options]) == 2
    assert said in capsys.readouterr().err


def test_raw_text_is_no_table(run: Trained, capsys: Printed) -> None:
    assert main(["predict", str(run.folder), "some.conllu", "--raw"]) == 2
    assert "--raw reads plain text" in capsys.readouterr().err


def test_a_treebank_without_space_after_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_text(treebank(1).replace("SpaceAfter=No", "_"), "utf-8")
    said: list[str] = []
    changes = {"data.train": str(tmp_path / "train.conllu"), "data.cache": False}
    asked = setup("tagging", overrides=changes)
    prepared(asked.kind, asked.settings, said.append)
    assert any("raw text will be cut at blanks alone" in line for line in said)
