"""Question answering: which columns are read, what is refused, and a memory network that learns to look."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recurra
from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.runs import begin, setup
from recurra.tasks.question_answering import QuestionAnswering
from recurra.tasks.task import Moment
from recurra.training.explaining import explain
from recurra.training.progress import Silent

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "answer_questions.py"))
story: Callable[..., dict[str, Any]] = EXAMPLE["story"]
ROW = {"context": ["Ann went home."], "question": "Where is Ann?", "answer": "home"}
OTHER = {"context": ["Ann went out."], "question": "Where is Ann?", "answer": "out"}
SMALL = ["training.device=cpu", "training.threads=1", "training.steps=2", "data.cache=false", "model.hidden=4"]


def jsonl(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return str(path)


def prepared(train: str, *settings: str) -> QuestionAnswering:
    found = setup("question_answering", given={"train": train}, overrides=[*SMALL, *settings])
    task = QuestionAnswering.prepared(QuestionAnswering.resolved(found.settings))
    task.check()
    return task


def where(told: list[str], asked: str) -> str | None:
    """A second simulation, from the sentences alone: who is where, and who holds what."""
    place: dict[str, str] = {}
    holder: dict[str, str] = {}
    for sentence in told:
        who, verb, *_, last = sentence.rstrip(".").split()
        if verb in ("went", "moved"):
            place[who] = last
            place |= {thing: last for thing, person in holder.items() if person == who}
        elif verb == "took":
            holder[last] = who
            place[last] = place[who]
        else:
            assert holder.pop(last) == who
    return place.get(asked)


def test_the_simulator_tells_stories_that_follow() -> None:
    asked = set()
    for seed in range(300):
        found = story(seed, steps=12)
        name = found["question"].rstrip("?").split()[-1]
        assert where(found["context"], name) == found["answer"]
        asked.add(name)
    assert asked == {*EXAMPLE["PEOPLE"], *EXAMPLE["THINGS"]}


@pytest.mark.slow
def test_a_memory_network_learns_to_follow_things(tmp_path: Path) -> None:
    train, valid = tmp_path / "train.jsonl", tmp_path / "valid.jsonl"
    EXAMPLE["write"](train, range(4000), steps=8)
    EXAMPLE["write"](valid, range(10000, 10400), steps=8)
    settings = {
        "data": {"cache": False},
        "model": {"hidden": 20, "memories": 10},
        "training": {"steps": 1500, "epochs": None, "learning_rate": 0.01, "device": "cpu", "threads": 1},
    }
    model = recurra.train(
        "question_answering", train=str(train), valid=str(valid), out=tmp_path / "run", settings=settings
    )
    assert model.evaluate(valid).values["accuracy"] > 0.95


def test_a_memory_network_learns_where_people_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    places, people = ["garden", "kitchen", "office"], ["Ann", "Bob", "Cid"]

    def drawn() -> dict[str, Any]:
        moves = [(str(rng.choice(people)), str(rng.choice(places))) for _ in range(4)]
        asked = moves[rng.integers(4)][0]
        context = [f"{who} went to the {place}." for who, place in moves]
        return {"context": context, "question": f"Where is {asked}?", "answer": dict(moves)[asked]}

    train = jsonl(tmp_path / "train.jsonl", *(drawn() for _ in range(600)))
    valid = jsonl(tmp_path / "valid.jsonl", *(drawn() for _ in range(200)))
    options = [
        "training.steps=120",
        "training.learning_rate=0.03",
        "model.hidden=16",
        "model.hops=1",
        "model.memories=4",
    ]
    given = {"train": train, "valid": valid}
    begin(setup("question_answering", given=given, overrides=[*SMALL, *options]), tmp_path / "run", Silent())
    model = recurra.load(tmp_path / "run")
    assert model.evaluate(valid).values["accuracy"] > 0.95  # a guess finds a third
    [answer] = model.predict(
        ["Ann went to the garden. Bob went to the office. Ann went to the kitchen.\tWhere is Ann?"], detail=True
    )
    assert answer.output == "kitchen"
    assert int(np.argmax(answer.detail["attention"][0])) == 2


def test_the_view_of_attention_has_a_column_for_each_hop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = jsonl(tmp_path / "a.jsonl", ROW, OTHER)
    begin(
        setup("question_answering", given={"train": train}, overrides=[*SMALL, "model.hops=2", "model.vacant=false"]),
        tmp_path / "run",
        Silent(),
    )
    question = "Bob slept. Ann went out.\tWhere is Ann?"
    assert main(["explain", str(tmp_path / "run"), question, "--show", "attention", "--json"]) == 0
    view = json.loads(capsys.readouterr().out)["views"]["attention"]
    assert (view["rows"], view["columns"]) == (["Bob slept.", "Ann went out."], ["hop 1", "hop 2"])
    assert np.sum(view["weights"], axis=0) == pytest.approx([1, 1], abs=1e-3)
    assert main(["explain", str(tmp_path / "run"), "\tWhere is Ann?", "--show", "attention"]) == 2
    assert "the context has no sentence" in capsys.readouterr().err
    assert main(["explain", str(tmp_path / "run"), question, "--show", "gates"]) == 2
    assert "reads sentences without a cell (model.sentence = 'place')" in capsys.readouterr().err


def test_a_context_is_a_list_of_sentences_or_a_text(tmp_path: Path) -> None:
    text = {**ROW, "context": "Ann went home. Bob slept!\nIt rained"}
    task = prepared(jsonl(tmp_path / "a.jsonl", ROW, {**text, "answer": "out"}))
    _, second = task.read([tmp_path / "a.jsonl"])
    assert second.sentences == ("Ann went home.", "Bob slept!", "It rained")
    assert task.sent(second) == "Ann went home. Bob slept! It rained.\tWhere is Ann?"
    [again] = task.questions(None, [task.sent(second)])
    assert again.sentences == ("Ann went home.", "Bob slept!", "It rained.")
    assert task.encode(again)["words"].tolist() == task.encode(second)["words"].tolist()


def test_columns_have_usual_names_or_those_that_are_set(tmp_path: Path) -> None:
    usual = {"story": ["A."], "question": "b?", "label": "c"}
    task = prepared(jsonl(tmp_path / "a.jsonl", usual, {**usual, "label": "d"}))
    data = task.settings.data
    assert (data.context, data.question, data.answer) == ("story", "question", "label")
    own = {"told": ["A."], "asked": "b?", "said": "c"}
    names = ["data.context=told", "data.question=asked", "data.answer=said"]
    assert prepared(jsonl(tmp_path / "b.jsonl", own, {**own, "said": "d"}), *names).answers.tokens == ("c", "d")
    table = tmp_path / "c.tsv"
    table.write_text("A b.\tb?\tx\nA c.\tc?\ty\n")
    assert prepared(str(table)).words.tokens == ("<unk>", "a", "b", "c", "x", "y")


def test_an_answer_that_is_rare_or_no_word_of_a_story_is_still_tied(tmp_path: Path) -> None:
    rows = [ROW, ROW, {**OTHER, "answer": "N,E"}]
    task = prepared(jsonl(tmp_path / "a.jsonl", *rows), "data.min_count=2")
    assert "n,e" in task.words.tokens
    assert "out" not in task.words.tokens
    model = task.build()
    assert model.readout is None
    assert model.answer_words.tolist() == [task.words.id("home"), task.words.id("n,e")]


def test_a_linear_start_ends_after_its_updates_or_when_validation_stalls(tmp_path: Path) -> None:
    task = prepared(jsonl(tmp_path / "a.jsonl", ROW, OTHER), "model.linear_start=10")
    model, batch = task.build(), task.batch([task.encode(each) for each in task.read([tmp_path / "a.jsonl"])])
    found = []
    for moment in (Moment(0), Moment(9, (), 2), Moment(9, (), 3), Moment(10)):
        task.loss(model, batch, moment)
        found.append(bool(model.is_linear))
    assert found == [True, True, False, False]
    model.is_linear.fill_(True)
    model.eval()
    task.loss(model, batch)  # validation leaves it as training left it
    assert bool(model.is_linear)


def test_a_linear_start_has_a_learning_rate_of_its_own(tmp_path: Path) -> None:
    task = prepared(jsonl(tmp_path / "a.jsonl", ROW, OTHER), "model.linear_start=10", "model.linear_rate=0.25")
    model, batch = task.build(), task.batch([task.encode(each) for each in task.read([tmp_path / "a.jsonl"])])
    assert [task.loss(model, batch, Moment(step)).weight for step in (0, 9, 10)] == [0.25, 0.25, 1.0]
    model.eval()
    assert task.loss(model, batch).weight == 1.0  # of a score, not of an update


def test_the_first_update_of_a_linear_start_goes_that_share_of_the_way(tmp_path: Path) -> None:
    given = {"train": jsonl(tmp_path / "a.jsonl", ROW, OTHER)}
    own = [*SMALL, "model.noise=0", "training.optimizer=sgd", "training.schedule=constant", "training.warmup=0"]
    found = {}
    for rate, share in ((1e-30, 1.0), (0.1, 1.0), (0.1, 0.25)):
        changed = [*own, "training.steps=1", f"training.learning_rate={rate}", f"model.linear_rate={share}"]
        run = tmp_path / f"{rate}-{share}"
        begin(setup("question_answering", given=given, overrides=changed), run, Silent())
        network: Any = recurra.load(run).model
        found[rate, share] = network.tables.detach().double()
    start, whole, part = found.values()
    assert (whole - start).abs().max() > 1e-4
    torch.testing.assert_close(part - start, 0.25 * (whole - start), rtol=1e-3, atol=1e-7)


def test_a_linear_start_is_a_tenth_of_training_where_no_number_is_set(tmp_path: Path) -> None:
    task = prepared(jsonl(tmp_path / "a.jsonl", ROW, OTHER))
    model, batch = task.build(), task.batch([task.encode(each) for each in task.read([tmp_path / "a.jsonl"])])
    found = []
    for progress in (0.0, 0.09, 0.1, 0.9):
        task.loss(model, batch, Moment(1000, progress=progress))
        found.append(bool(model.is_linear))
    assert found == [True, True, False, False]


def test_words_are_carried_over_to_another_run_by_their_spelling(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "a.jsonl", ROW, OTHER)
    more = jsonl(tmp_path / "b.jsonl", {**ROW, "context": ["A zebra went home."]}, OTHER)
    begin(setup("question_answering", given={"train": train}, overrides=SMALL), tmp_path / "first", Silent())
    changes = [word for each in [*SMALL, "training.learning_rate=1e-9"] for word in ("--set", each)]
    begun = ["--from", str(tmp_path / "first"), "--out", str(tmp_path / "second"), "--quiet", *changes]
    assert main(["train", "question_answering", "--train", more, *begun]) == 0
    one, other = (recurra.load(tmp_path / name) for name in ("first", "second"))
    for word in ("ann", "went", "home"):
        rows = [model.model.tables[:, model.task.words.id(word)] for model in (one, other)]  # type: ignore[attr-defined, index]
        torch.testing.assert_close(*rows, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([{"question": "b?", "answer": "c"}], [], r"a\.jsonl:1: question answering needs a column 'context', but the"),
        ([{"context": "A.", "answer": "c"}], [], r"needs a column 'question', .* Name it: data\.question"),
        ([ROW, OTHER], ["data.answer=anser"], r"a\.jsonl:1: there is no column 'anser'. Did you mean 'answer'"),
        ([ROW, {**ROW, "context": 3}], [], r"a\.jsonl:2: 'context' must hold a text or a list of sentences, but is 3"),
        ([ROW, {**ROW, "question": 3}], [], r"a\.jsonl:2: 'question' must hold a question, but is 3"),
        ([ROW, {**ROW, "context": []}], [], r"a\.jsonl:2: the context has no sentence. Remove the row, or set"),
        ([ROW, {**ROW, "question": "?"}], [], r"a\.jsonl:2: the question has no word"),
        ([ROW, {**ROW, "answer": None}], [], r"a\.jsonl:2: the class in 'answer' is missing"),
        ([ROW, ROW], [], r"every question of .* has the answer 'home': there is nothing to learn"),
    ],
)
def test_data_that_cannot_be_learned_from_is_refused(
    rows: list[object], settings: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        prepared(jsonl(tmp_path / "a.jsonl", *rows), *settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.hops=0"], "model.hops must be at least 1, but is 0"),
        (["model.noise=1.5"], "model.noise must be"),
        (["model.tying=none"], "model.tying"),
        (["model.cell=lstm"], r"model.sentence = 'place' reads sentences without a cell"),
        (["model.direction=backward"], r"model.sentence = 'place' reads sentences without a cell"),
        (["model.sentence=recurrent", "model.mix=concat"], "there is only one layer"),
        (["model.layers=0"], "model.layers must be at least 1, but is 0"),
        (["data.context=x", "data.question=x"], "data.context and data.question are the same column, 'x'"),
        (["task=tagging"], "but these are the settings of question answering"),
        (["training.batch_tokens=10"], "has no effect beside training.batch_size"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        setup("question_answering", overrides=settings)


@pytest.mark.parametrize(
    "settings", [["model.mix=concat", "model.direction=backward"], ["model.skip=residual"], ["model.mix=learned"]]
)
def test_sentences_are_read_by_a_stack_of_cells(tmp_path: Path, settings: list[str]) -> None:
    file = jsonl(tmp_path / "a.jsonl", ROW, OTHER)
    reads = ["model.sentence=recurrent", "model.layers=2", "model.engine=loop", *settings]
    begin(setup("question_answering", given={"train": file}, overrides=[*SMALL, *reads]), tmp_path / "run", Silent())
    model = recurra.load(tmp_path / "run")
    assert "2-layer" in repr(model)
    assert ("backward GRU" in repr(model)) == ("model.direction=backward" in settings)
    gates = explain(model, "Ann went home.\tWhere is Ann?", show="gates", layer=2)
    assert "layer 2" in gates.text
    asked = ["Ann went home. Ann went out and home.\tWhere is Ann?", "Ann went out.\tAnn?", "\t"]
    for one, text in zip(model.predict(asked, detail=True), asked, strict=True):
        [alone] = model.predict([text], detail=True)
        assert one.detail["probabilities"] == pytest.approx(alone.detail["probabilities"], abs=1e-6)


def test_answers_that_training_has_not_seen_are_told_of(tmp_path: Path) -> None:
    task = prepared(jsonl(tmp_path / "a.jsonl", ROW, OTHER))
    valid = jsonl(tmp_path / "b.jsonl", ROW, {**ROW, "answer": "Mars"})
    said = task.noticed(list(task.read([valid])))
    assert said is not None
    assert "('Mars'): 1 of 2 questions cannot be answered correctly" in said
    assert task.noticed(list(task.read([tmp_path / "a.jsonl"]))) is None


def test_questions_may_come_as_a_babi_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = jsonl(tmp_path / "a.jsonl", ROW, OTHER)
    begin(setup("question_answering", given={"train": train}, overrides=SMALL), tmp_path / "run", Silent())
    asked = tmp_path / "asked.txt"
    asked.write_text("1 Ann went out.\n2 Where is Ann?\n3 Bob slept.\n4 Where is Ann?\tout\t1\n")
    assert main(["predict", str(tmp_path / "run"), str(asked), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["line"] for each in found] == [2, 4]
    assert found[1]["sentences"] == ["Ann went out.", "Bob slept."]
    assert "not_in_vocabulary" not in found[0]
    assert found[1]["not_in_vocabulary"] == ["bob", "slept"]


def test_a_damaged_run_is_refused(tmp_path: Path) -> None:
    task = prepared(jsonl(tmp_path / "a.jsonl", ROW, OTHER))
    task.save(tmp_path)
    (tmp_path / "answers.json").write_text('["home"]')
    with pytest.raises(DataError, match="must contain the answers and their counts"):
        QuestionAnswering.load(task.settings, tmp_path)


def test_networks_of_other_hops_answer_together_but_are_not_seen_looking(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "a.jsonl", ROW, OTHER)
    for hops in (1, 2):
        this = setup("question_answering", given={"train": file}, overrides=[*SMALL, f"model.hops={hops}"])
        begin(this, tmp_path / str(hops), Silent())
    both = recurra.load([tmp_path / "1", tmp_path / "2"])
    asked = next(iter(both.task.read([file])))
    each = [recurra.load(tmp_path / name).answers([asked], detail=True)[0] for name in "12"]
    [answer] = both.answers([asked], detail=True)
    mean = {name: np.mean([one.detail["probabilities"][name] for one in each]) for name in ("home", "out")}
    assert answer.detail["probabilities"] == pytest.approx(mean, abs=1e-5)
    with pytest.raises(ConfigError, match="look at other sentences, or in another number of hops: name one of them"):
        explain(both, f"{file}:1", show="attention")
