"""Tagging: from files to tags and back, and everything that can be wrong with a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import recurra
from recurra.errors import ConfigError, DataError
from recurra.reports.unrolled import unrolled
from recurra.runs import begin, setup
from recurra.tasks.tagging import Tagging
from recurra.training.evaluation import outputs_of
from recurra.training.explaining import example_of
from recurra.training.preparation import prepared
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.views.svg import as_svg

SMALL = [
    "model.hidden=16",
    "model.embedding=12",
    "model.characters.hidden=6",
    "model.characters.embedding=6",
    "model.dropout=0",
    "model.word_dropout=0",
    "data.min_count=1",
    "data.cache=false",
    "training.device=cpu",
    "training.threads=1",
    "training.average=none",
    "training.learning_rate=0.02",
    "training.epochs=60",
]

FORM_OF_2017 = ["model.encoder=transformer", "model.transformer.form=vaswani", "training.warmup=20"]
FORM_OF_2017 += ["training.learning_rate=0.003", "training.epochs=120", "model.characters.cell=none"]

SENTENCES = [
    ("play the hits of Mozart now", "O O O O B-artist B-time", "PlayMusic"),
    ("book a table for two", "O O O O B-size", "BookRestaurant"),
    ("rain in New York tomorrow ?", "O O B-city I-city B-time O", "GetWeather"),
    ("play Bach", "O B-artist", "PlayMusic"),
    ("a table in New York", "O O O B-city I-city", "BookRestaurant"),
    ("tomorrow", "B-time", "GetWeather"),
    ("now play the Mozart Bach hits", "B-time O O B-artist I-artist O", "PlayMusic"),
    ("is it cold ?", "O O O O", "GetWeather"),
]


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def trained(folder: Path, file: str, *overrides: str, valid: str = "") -> Trained:
    unspelt = "model.characters.cell=none" in overrides
    few = [each for each in SMALL if not (unspelt and each.startswith("model.characters."))]
    this = setup("tagging", given={"train": file, "valid": valid}, overrides=[*few, *overrides])
    begin(this, folder / "run", Silent())
    return load(folder / "run")


def slots(folder: Path) -> str:
    return write(folder / "slots.tsv", "".join(f"{tokens}\t{tags}\t{label}\n" for tokens, tags, label in SENTENCES))


@pytest.mark.parametrize("head", ["softmax", "crf", '{name = "crf", constraints = "none"}'])
def test_eight_sentences_are_learned_by_heart_and_predicted_back(tmp_path: Path, head: str) -> None:
    columns = 'data.columns=["tokens", "tags", "label"]'
    model = trained(tmp_path, slots(tmp_path), columns, f"model.head={head}")
    answers = model.predict([tokens for tokens, _, _ in SENTENCES])
    assert [answer.output for answer in answers] == [f"{tags}\t{label}" for _, tags, label in SENTENCES]
    scores = model.evaluate(tmp_path / "slots.tsv").values
    assert scores["f1"] == scores["accuracy"] == scores["sentence_accuracy"] == scores["label_accuracy"] == 1.0


@pytest.mark.parametrize(
    "options",
    [
        ["model.cell=gru", "model.layers=2", "model.skip=residual", "model.mix=learned"],
        ['model.cell={name="peephole_lstm"}', "model.merge=mean", "model.summary=mean"],
        ["model.characters.cell=none", "model.bidirectional=false", "model.summary=last"],
        ["model.embedding=0", "data.lowercase=true", "training.epochs=150"],
        ["model.encoder=cnn", "model.convolution.filters=16", "model.hidden=256", "model.non_local=scaled_dot"],
        [*FORM_OF_2017, 'model.summary={name = "attention", similarity = "bilinear", values = 8}'],
    ],
)
def test_any_wiring_learns_eight_sentences(tmp_path: Path, options: list[str]) -> None:
    if "model.bidirectional=false" in options:  # what comes later cannot tell what came before
        text = "".join(f"{tokens}\t{tags}\t{label}\n" for tokens, tags, label in SENTENCES)
        file = write(tmp_path / "slots.tsv", text.replace("is it cold", "cold is it"))
    else:
        file = slots(tmp_path)
    model = trained(tmp_path, file, 'data.columns=["tokens", "tags", "label"]', *options)
    assert model.evaluate(file).values["sentence_accuracy"] == 1.0


@pytest.mark.parametrize("encoder", ["cnn", "transformer"])
def test_a_tagger_without_cells_is_described_drawn_and_has_no_gates(tmp_path: Path, encoder: str) -> None:
    columns = 'data.columns=["tokens", "tags", "_"]'
    own = [f"model.encoder={encoder}", "training.epochs=1", *WIDE.get(encoder, ())]
    model = trained(tmp_path, slots(tmp_path), columns, *own)
    name = {"cnn": "2-layer CNN 384", "transformer": "2-layer Transformer 16"}[encoder]
    assert name in model.task.described()
    assert f"{encoder}</text>" in as_svg(unrolled(model.task))
    with pytest.raises(ConfigError, match="has no recurrent encoder"):
        model.task.gates(model.asked(example_of(model.task, "play Bach")))
    # Padding and the rows beside it change nothing.
    model.model.double()
    asked = [tokens for tokens, _, _ in SENTENCES]
    for answer, text in zip(model.predict(asked), asked, strict=True):
        assert model.predict([text])[0].score == pytest.approx(answer.score, abs=1e-9)


WIDE = {"cnn": ["model.hidden=256"]}  # as it is where nothing is said: convolutions have sizes of their own


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["model.encoder=cnn", "model.hidden=8"], "model.hidden = 8 has no effect: model.convolution sets its sizes"),
        (["model.encoder=cnn", "model.hidden=256", "model.cell=gru"], "has no recurrent layers"),
        (["model.convolution.filters=8"], "model.convolution.filters = 8 has no effect"),
        (["model.transformer.heads=2"], "model.transformer.heads has no effect: model.encoder = 'rnn' has no Transf"),
        (["model.encoder=transformer", "model.hidden=18"], "model.hidden = 18 is not a multiple of 8"),
        (["model.encoder=transformer", "model.summary=last"], "model.summary = 'last' needs the last state"),
        (["model.encoder=transformer", "model.cell=gru"], "model.cell = 'gru' has no effect"),
        (["model.encoder=transformer", "model.mix=mean"], "model.mix = 'mean' has no effect"),
        (
            ["model.encoder=transformer", "model.bidirectional=false", "model.direction=backward"],
            "model.direction = 'backward' has no effect: model.encoder = 'transformer' has no cells",
        ),
        (["model.encoder=transformer", "model.transformer.form=post"], "model.transformer.form"),
    ],
)
def test_a_network_that_cannot_be_is_refused(tmp_path: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        trained(tmp_path, slots(tmp_path), *overrides)


def test_several_columns_are_tagged_at_once(tmp_path: Path) -> None:
    rows = [("1\tdogs\tdog\tNOUN\tNNS\t_", "2\tbark\tbark\tVERB\tVBP\t_"), ("1\tBark\tbark\tNOUN\tNN\t_",)]
    text = "".join("".join(f"{row}\t0\t_\t_\t_\n" for row in sentence) + "\n" for sentence in rows)
    file = write(tmp_path / "a.conllu", text)
    model = trained(tmp_path, file, 'data.tags=["upos", "xpos", "lemma"]')
    [answer] = model.predict(["dogs bark"])
    assert answer.output == "NOUN VERB\tNNS VBP\tdog bark"
    scores = model.evaluate(file).values
    assert scores["accuracy"] == scores["accuracy.xpos"] == scores["accuracy.lemma"] == 1.0


def test_frames_get_tags(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    lines = []
    for _ in range(8):
        frames = draw.normal(size=(int(draw.integers(1, 9)), 3)) * 100 + 7
        tags = ["high" if step[1] > 7 else "low" for step in frames]
        lines.append(json.dumps({"frames": frames.round(3).tolist(), "tags": tags}))
    file = write(tmp_path / "a.jsonl", "\n".join(lines) + "\n")
    model = trained(tmp_path, file)
    assert model.evaluate(file).values["accuracy"] == 1.0
    [answer] = model.predict(["[[0, 300, 0], [0, -300, 0]]"])
    assert answer.output == "high low"


def test_an_example_without_a_frame_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    rows = [{"frames": [[1, 2]], "values": [3]}, {"frames": [], "values": []}]
    file = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"a\.jsonl:2: this example is empty"):
        trained(tmp_path, file)
    model = trained(tmp_path, file, "data.empty=keep", "training.steps=1")
    empty, one = model.predict(["[]", "[[1, 2]]"])
    assert empty.output == "" != one.output
    assert model.evaluate(file).values["count"] == 1


def test_a_number_per_step_is_learned_in_its_own_unit(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    lines = []
    for _ in range(8):
        frames = draw.normal(size=(6, 2))
        values = 1000 + 50 * frames.sum(1)
        lines.append(json.dumps({"frames": frames.tolist(), "values": [*values[:5].tolist(), None]}))
    file = write(tmp_path / "a.jsonl", "\n".join(lines) + "\n")
    model = trained(tmp_path, file, "training.epochs=300")
    scores = model.evaluate(file)
    assert scores.first == "rmse"
    assert not scores.higher_is_better
    assert scores.values["rmse"] < 15  # the spread of the values is about 70
    [answer] = model.predict(["[[0.5, 0.5]]"])
    assert 900 < float(answer.output) < 1100


def test_missing_tags_count_neither_in_training_nor_in_scores(tmp_path: Path) -> None:
    rows = [{"tokens": ["a", "b"], "tags": ["A", None]}, {"tokens": ["b", "a"], "tags": ["B", "A"]}]
    file = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    model = trained(tmp_path, file)
    assert sorted(model.task.tags[0].tokens) == ["A", "B"]  # type: ignore[attr-defined]
    assert model.evaluate(file).values["accuracy"] == 1.0


def random_sentences(count: int) -> list[tuple[str, ...]]:
    draw = np.random.default_rng(1)
    words = ["play", "Mozart", "unseen", "Überraschung", "x" * 60, "?", "New", "York"]
    return [tuple(draw.choice(words, int(draw.integers(0, 9)))) for _ in range(count)]


@pytest.mark.parametrize("head", ["softmax", "crf"])
def test_padding_batch_and_order_never_change_a_prediction(tmp_path: Path, head: str) -> None:
    columns = 'data.columns=["tokens", "tags", "label"]'
    model = trained(tmp_path, slots(tmp_path), columns, f"model.head={head}", "training.epochs=5")
    model.model.double()
    sentences = random_sentences(30)
    together = model.predict(sentences, detail=True)
    alone = [model.predict([sentence], detail=True)[0] for sentence in sentences]
    backwards = model.predict(sentences[::-1], detail=True, batch_tokens=17)[::-1]
    for one, two, three in zip(together, alone, backwards, strict=True):
        assert one.output == two.output == three.output
        assert_close(torch.tensor([two.score, three.score]), torch.full((2,), one.score), atol=1e-9, rtol=0)
        for other in (two, three):
            for a, b in zip(one.detail["probabilities"], other.detail["probabilities"], strict=True):
                assert np.allclose(a, b, atol=2e-6)


def test_words_given_as_a_list_are_taken_as_they_are(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"tokens": ["New York", "sleeps"], "tags": ["CITY", "VERB"]}\n')
    model = trained(tmp_path, file)
    assert model.predict([["New York", "sleeps"]])[0].output == "CITY VERB"
    with pytest.raises(DataError, match="an input must be a text or a list, but is 3"):
        model.predict([3])  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"predict needs a list of inputs: predict\(\[text\]\)"):
        model.predict("New York")


def test_an_empty_line_gets_an_answer_of_its_own(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conll", "they\tPRON\n\n")
    model = trained(tmp_path, file, "training.steps=2")
    assert [answer.output for answer in model.predict(["", "they they", "  "])] == ["", "PRON PRON", ""]


def test_probabilities_are_those_of_the_chosen_tags(tmp_path: Path) -> None:
    model = trained(
        tmp_path, slots(tmp_path), 'data.columns=["tokens", "tags", "_"]', "training.steps=3", "model.head=softmax"
    )
    example = next(model.task.questions(None, ["play the unseen"]))
    batch = model.task.batch([model.task.encode(example)])
    logits = model.model.heads[0].readout(model.model.features(batch).values)  # type: ignore[operator, union-attr, index]
    [answer] = model.answers([example], detail=True)
    assert_close(torch.tensor(answer.detail["probabilities"][0]), logits.softmax(-1).amax(-1)[0], atol=2e-6, rtol=0)
    assert answer.score == pytest.approx(float(logits.detach().log_softmax(-1).amax(-1).sum()), abs=1e-5)


def test_unknown_words_are_those_without_a_vector(tmp_path: Path) -> None:
    train = write(tmp_path / "a.conll", "they\tPRON\nsing\tVERB\n\nthey\tPRON\n\n")
    test = write(tmp_path / "b.conll", "they\tPRON\ngo\tX\nsing\tVERB\n\n")
    model = trained(tmp_path, train, "data.min_count=2")
    scores = model.evaluate(test).values
    # 'go' has a tag that is not known, so of the two unknown words 'sing' alone can be right.
    assert scores["unknown_accuracy"] in (0.0, 0.5)
    assert scores["count"] == 3


def test_upper_case_letters_are_known_to_the_spelling_of_words_that_are_looked_up_in_lower_case(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conll", "THEY\tPRON\nthey\tX\n\n")
    model = trained(tmp_path, file, "data.lowercase=true")
    assert model.task.words.tokens == ("<unk>", "they")  # type: ignore[attr-defined]
    assert {"T", "t"} <= set(model.task.characters.tokens)  # type: ignore[attr-defined]
    assert model.predict(["THEY they"])[0].output == "PRON X"


def test_a_run_of_marked_texts_cuts_what_it_tags_as_they_were_cut(tmp_path: Path) -> None:
    text, spans = "Ada Byron (Lovelace) is in Oslo.", [[0, 9, "person"], [27, 31, "place"]]
    file = write(tmp_path / "marked.jsonl", json.dumps({"text": text, "spans": spans}) + "\n")
    model = trained(tmp_path, file)
    expected = [
        {"start": 1, "end": 10, "label": "person", "text": "Ada Byron"},
        {"start": 28, "end": 32, "label": "place", "text": "Oslo"},
    ]
    [line] = model.predict([f" {text}"], detail=True)
    assert line.detail["tokens"] == ["Ada", "Byron", "(", "Lovelace", ")", "is", "in", "Oslo", "."]
    assert line.detail["spans"] == expected
    unmarked = write(tmp_path / "unmarked.jsonl", json.dumps({"text": f" {text}"}) + "\n")
    [of_file] = model.predict_file(unmarked, [], detail=True)
    assert of_file.detail["spans"] == expected
    assert model.predict(["", "  "])[1].output == ""
    other = write(tmp_path / "other.conll", "Oslo.\tplace\n\n")
    (tmp_path / "other").mkdir()
    [kept] = trained(tmp_path / "other", other, "training.steps=1").predict(["Oslo."], detail=True)
    assert kept.detail["tokens"] == ["Oslo."], "words of other runs are what stands between blanks"


def test_numbers_are_not_cut() -> None:
    with pytest.raises(ConfigError, match=r"data\.cut cuts text into words, but data\.frames holds numbers"):
        setup("tagging", overrides=["data.train=a.jsonl", "data.frames=frames", "data.cut=signs"])


def test_tags_in_another_scheme_than_bio_are_not_held_to_bio(tmp_path: Path) -> None:
    file = write(tmp_path / "iob1.conll", "New\tI-city\nYork\tI-city\nRome\tB-city\nis\tO\n\n")
    model = trained(tmp_path, file)
    assert model.predict(["New York Rome is"])[0].output == "I-city I-city B-city O"
    assert model.task.settings.model.head == {"name": "crf", "constraints": "none"}


@pytest.mark.parametrize(("given", "head"), [([], "softmax"), (["model.head=crf"], "crf")])
def test_very_many_tags_are_chosen_by_a_softmax_unless_a_crf_is_asked_for(
    tmp_path: Path, given: list[str], head: str
) -> None:
    file = write(tmp_path / "lemmas.conll", "\n".join(f"w{n}\tlemma{n}" + "\n" * (n % 9 == 0) for n in range(101)))
    said: list[str] = []
    this = setup("tagging", overrides=[f"data.train={file}", *SMALL, *given])
    task, _ = prepared(this.kind, this.settings, said.append)
    assert task.settings.model.head == head
    notice = "has 101 tags: a softmax head is used, because a CRF would learn 10,201 transitions"
    assert any(notice in line for line in said) == (head == "softmax")


def test_the_chosen_head_is_written_down_in_the_run(tmp_path: Path) -> None:
    model = trained(tmp_path, write(tmp_path / "a.conll", "they\tPRON\nsing\tVERB\n\n"), "training.steps=2")
    assert model.task.settings.model.head == "crf"
    assert 'head = "crf"' in (model.folder / "config.toml").read_text()


CONLL_2003 = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\nBlackburn NNP I-NP I-PER\n\n"


def test_conll_2003_in_a_text_file_is_recognised(tmp_path: Path) -> None:
    file = write(tmp_path / "eng.txt", f"-DOCSTART- -X- -X- O\n\n{CONLL_2003}")
    task, store = prepared(Tagging, settings_of(file), lambda _: None)
    assert len(store) == 2
    assert {*task.tags[0].tokens} == {"B-ORG", "O", "B-PER", "I-PER"}  # type: ignore[attr-defined]


def test_tags_in_a_text_file_are_not_found_and_the_format_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "eng.txt", CONLL_2003)
    with pytest.raises(DataError, match=r"eng.txt:1: tagging needs tags, but .* plain text. .* add --format conll"):
        prepared(Tagging, settings_of(file), lambda _: None)
    this = setup("tagging", given={"train": file, "format": "conll"}, overrides=SMALL)
    assert len(prepared(this.kind, this.settings, lambda _: None).store) == 2


def settings_of(file: str) -> Any:
    return setup("tagging", given={"train": file}, overrides=SMALL).settings


def test_word_vectors_are_a_start(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conll", "they\tPRON\nsing\tVERB\n\n")
    vectors = write(tmp_path / "v.txt", "they 1 0 0\nunseen 0 0 9\n")
    options = (f"data.vectors={vectors}", "model.embedding=3", "training.steps=1", "training.learning_rate=1e-9")
    model = trained(tmp_path, file, *options)
    weight = model.model.read_words.embedding.weight  # type: ignore[union-attr]
    number = model.task.words.id("they")  # type: ignore[attr-defined]
    assert_close(weight[number].detach(), torch.tensor([1.0, 0.0, 0.0]), atol=1e-6, rtol=0)  # type: ignore[index]


def test_vectors_of_another_size_are_refused_with_the_setting_to_change(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conll", "they\tPRON\n\n")
    vectors = write(tmp_path / "v.txt", "they 1 0 0\n")
    with pytest.raises(ConfigError, match=r"vectors of size 3: set model.embedding = 3 \(it is 12\)"):
        trained(tmp_path, file, f"data.vectors={vectors}")


MALFORMED: Sequence[tuple[str, str, list[str], str]] = [
    ("a.tsv", "a b\tX\n", ["tokens", "tags"], r"a.tsv:1: found 2 elements, but 1 tags in 'tags'"),
    ("a.tsv", "a\tX\n\tX\n", ["tokens", "tags"], r"a.tsv:2: this example is empty. .*data.empty = \"keep\""),
    ("a.tsv", "a\tX\n", ["_", "tags"], r"a.tsv:1: tagging reads words from a column 'tokens'"),
    ("a.tsv", "a\tX\n", ["tokens", "_"], r"a.tsv:1: tagging needs a column with tags"),
    ("a.tsv", "a\tX\t \n", ["tokens", "tags", "label"], r"a.tsv:1: the label in 'label' must be a word"),
    ("a.jsonl", '{"tokens": ["a"], "tags": [1]}\n', [], r"a.jsonl:1: 'tags' must contain words"),
    ("a.jsonl", '{"tokens": ["a", ""], "tags": ["X", "X"]}\n', [], r"a.jsonl:1: word 2 of 'tokens' is empty"),
    ("a.jsonl", '{"tokens": 3, "tags": ["X"]}\n', [], r"a.jsonl:1: 'tokens' must contain words"),
    ("a.jsonl", '{"frames": [[1], [1, 2]], "tags": ["X", "X"]}\n', [], r"steps of 1 and of 2 numbers"),
    ("a.jsonl", '{"frames": [["x"]], "tags": ["X"]}\n', [], r"a.jsonl:1: 'frames' must contain only numbers,"),
    ("a.jsonl", '{"frames": [[[1]]], "tags": ["X"]}\n', [], r"nested deeper"),
    ("a.jsonl", '{"frames": [[1]], "tags": ["X"]}\n{"frames": [[1, 2]], "tags": ["X"]}\n', [], r"a.jsonl:2: found 2"),
    (
        "a.jsonl",
        '{"frames": [[1]], "values": [1, 2]}\n',
        [],
        r"'values' has 2 numbers, but the sequence has 1 elements",
    ),
    ("a.jsonl", '{"tokens": ["a"], "tags": ["X"]}\n{"tokens": ["a"]}\n', [], r"a.jsonl:2: there is no column 'tags'"),
    ("a.txt", "a b c\n", [], r"a.txt:1: tagging needs tags, but this file was read as plain text"),
]


@pytest.mark.parametrize(("name", "text", "columns", "said"), MALFORMED)
def test_a_file_that_does_not_fit_is_said_with_its_line(
    tmp_path: Path, name: str, text: str, columns: list[str], said: str
) -> None:
    file = write(tmp_path / name, text)
    options = [f"data.columns={json.dumps(columns)}"] if columns else []
    with pytest.raises(DataError, match=said):
        trained(tmp_path, file, *options)
    assert not (tmp_path / "run").exists()


def test_a_tag_column_that_is_not_there_has_a_near_one(tmp_path: Path) -> None:
    file = write(tmp_path / "a.conll", "they\tPRON\n\n")
    with pytest.raises(DataError, match=r"there is no column 'tag'. Did you mean 'tags'"):
        trained(tmp_path, file, 'data.tags=["tag"]')


def test_frames_of_another_size_are_refused_in_prediction(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"frames": [[1, 2]], "tags": ["X"]}\n')
    model = trained(tmp_path, file, "training.steps=1")
    with pytest.raises(DataError, match="found frames of 3 numbers, but the model expects frames of 2 numbers"):
        model.predict(["[[1, 2, 3]]"])
    with pytest.raises(DataError, match="input:1: each line must be a JSON list"):
        model.predict(["hello"])


def test_a_model_saved_elsewhere_predicts_the_same(tmp_path: Path) -> None:
    model = trained(tmp_path, slots(tmp_path), 'data.columns=["tokens", "tags", "_"]', "training.steps=3")
    model.save(tmp_path / "elsewhere")
    again = recurra.load(tmp_path / "elsewhere")
    sentences = random_sentences(5)
    assert [a.output for a in again.predict(sentences)] == [a.output for a in model.predict(sentences)]
    assert [a.score for a in again.predict(sentences)] == [a.score for a in model.predict(sentences)]
    with pytest.raises(recurra.CheckpointError, match="already exists"):
        model.save(tmp_path / "elsewhere")


def test_outputs_come_in_the_order_of_the_rows(tmp_path: Path) -> None:
    model = trained(tmp_path, slots(tmp_path), 'data.columns=["tokens", "tags", "_"]', "training.steps=1")
    examples: list[Any] = list(model.task.questions(None, ["a b c", "a", "", "a b"]))
    outputs = outputs_of(model.task, model.model, [model.task.encode(example) for example in examples])
    assert [len(output.tags[0]) for output in outputs] == [3, 1, 0, 2]
