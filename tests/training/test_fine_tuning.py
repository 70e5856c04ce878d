"""Starting from another run: what of it is kept, what is frozen, and what of its data is seen again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recurra
from recurra.cli import main
from recurra.data.mixed import Mixed
from recurra.data.store import Store
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.runs import Setup, begin, resume, setup
from recurra.tasks.task import Task
from recurra.training.loading import load_task
from recurra.training.progress import Progress, Silent
from tests.training.small import small, small_setup, write_sentences
from tests.training.test_trainer import StopsAt

TUNING = "training.fine_tuning."


class Noted(Progress):
    """A progress that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def start(
        self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None
    ) -> None: ...

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None: ...

    def validating(self, done: int, total: int) -> None: ...

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of a tiny language."""
    folder = tmp_path_factory.mktemp("base")
    begin(small_setup(folder, "training.average=none"), folder / "run", Silent())
    return folder / "run"


def new_data(folder: Path, count: int = 8) -> Path:
    """Sentences with words, letters and a tag that the base has not seen."""
    file = write_sentences(folder / "new.conll", count, seed=7)
    file.write_text(file.read_text("utf-8") + "ouch\tINTJ\nÜbung\tNOUN\n\n", "utf-8")
    return file


def tuned(base: Path, folder: Path, *overrides: str, what: str | None = None) -> Setup:
    given = {"train": str(new_data(folder))}
    few = [f"training.{each}" for each in ("epochs=3", "average=none")]
    changes = small(*few, *overrides) if what else [*few, *overrides]
    return setup(what, given=given, overrides=changes, start_from=base)


def weights(run: Path) -> dict[str, torch.Tensor]:
    return dict(recurra.load(run).model.state_dict())


def digest(run: Path) -> bytes:
    return hashlib.sha256((run / "model.safetensors").read_bytes()).digest()


def prepared(task: str, file: Path, base: Task[Any, Any, Any] | None, *overrides: str) -> Any:
    this = setup(task, given={"train": str(file)}, overrides=list(overrides))
    settings = this.kind.resolved(this.settings)
    return this.kind.prepared(settings) if base is None else this.kind.prepared_from(settings, base)


# Vocabularies


def test_a_vocabulary_keeps_its_ids_and_takes_in_new_tokens_by_its_own_rules() -> None:
    words = recurra.text.Vocabulary(["tea", "cup"])
    more = words.extended({"pot": 3, "jug": 3, "tea": 9, "rare": 1}, min_count=2)
    assert more.tokens == ("<unk>", "tea", "cup", "jug", "pot")
    assert words.extended({"pot": 3}, max_size=3).tokens == words.tokens
    assert words.extended({"pot": 3}, max_size=2).tokens == words.tokens
    assert words.extended({}, specials=("<unk>", "⟨new⟩")).tokens == ("<unk>", "⟨new⟩", "tea", "cup")


STORY = "{who} is {where}.\tWhere is {who}?\t{where}\n"
PAIRS = ("aab\tX Y\nbba\tY X\n", "abc\tX Z\nccb\tZ Y\n")
TEXTS = ("play a song\tmusic\nbye now\tend\n", "play chess\tgame\nbye\tend\n")


@pytest.mark.parametrize(
    ("task", "files", "overrides", "vocabularies"),
    [
        (
            "seq2seq",
            PAIRS,
            ['data.columns=["source", "target"]', "data.source.tokens=characters", "data.target.tokens=symbols"],
            lambda task: [task.texts.source.vocabulary, task.texts.target.vocabulary],
        ),
        (
            "seq2seq",
            PAIRS,
            [
                'data.columns=["source", "target"]',
                "data.source.tokens=characters",
                "data.target.tokens=characters",
                "data.joint=true",
            ],
            lambda task: [task.texts.source.vocabulary],
        ),
        (
            "classification",
            TEXTS,
            ['data.columns=["text", "label"]'],
            lambda task: [task.words, task.characters, task.labels],
        ),
        ("language_model", ("the cat\nthe dog\n", "a cat\nzoo\n"), [], lambda task: [task.vocabulary]),
        (
            "tagging",
            ("they\tPRON\nrun\tVERB\n\n", "the\tDET\nzoo\tNOUN\n\n"),
            ["data.format=conll", "data.min_count=1"],
            lambda task: [task.words, task.characters, *task.tags],
        ),
        (
            "question_answering",
            (
                STORY.format(who="Ann", where="home") + STORY.format(who="Bob", where="away"),
                STORY.format(who="Eve", where="out") + STORY.format(who="Al", where="in"),
            ),
            ['data.columns=["context", "question", "answer"]'],
            lambda task: [task.words, task.answers],
        ),
    ],
)
def test_a_task_keeps_the_vocabularies_of_its_base_and_adds_to_them(
    task: str, files: tuple[str, str], overrides: list[str], vocabularies: Any, tmp_path: Path
) -> None:
    ending = "txt" if task == "language_model" else "tsv"
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    one.write_text(files[0], "utf-8")
    other.write_text(files[1], "utf-8")
    first, alone = (prepared(task, file, None, *overrides) for file in (one, other))
    found = prepared(task, other, first, *overrides)
    for before, new, both in zip(*map(vocabularies, (first, alone, found)), strict=True):
        assert {*both} == {*before} | {*new}
        assert {*new} - {*before}, "the test needs something new"


def test_subwords_of_the_base_cut_the_new_text_and_its_new_letters_are_added(tmp_path: Path) -> None:
    subwords = ['data.text.tokens={name="subwords", size=30}']
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("the cat sat on the mat\n" * 20, "utf-8")
    other.write_text("the ß cat\n" * 20, "utf-8")
    first = prepared("language_model", one, None, *subwords)
    found = prepared("language_model", other, first, *subwords)
    assert found.tokenizer == first.tokenizer
    assert found.vocabulary.tokens[: len(first.vocabulary)] == first.vocabulary.tokens
    assert found.not_in_vocabulary(next(iter(found.read([other])))) == []


def test_a_text_that_is_cut_otherwise_gets_a_vocabulary_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("the cat\n", "utf-8")
    letters = prepared("language_model", file, None, "data.text.tokens=characters")
    found = prepared("language_model", file, letters, "data.text.tokens=words")
    assert "cat" in found.vocabulary
    assert "c" not in found.vocabulary


def test_series_are_scaled_as_in_the_base(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("value\n" + "\n".join(str(number % 5) for number in range(30)) + "\n")
    other.write_text("value\n" + "\n".join(str(1000 + number % 7) for number in range(30)) + "\n")
    first = prepared("forecasting", one, None, "data.window=8")
    found = prepared("forecasting", other, first, "data.window=8")
    assert found.conventions.scale.mean.tolist() == first.conventions.scale.mean.tolist()


def test_what_is_kept_and_added_is_said_and_the_learning_rate_is_lower(base: Path, tmp_path: Path) -> None:
    told = Noted()
    begin(tuned(base, tmp_path), tmp_path / "run", told)
    said = "\n".join(told.notes)
    assert f"starting from {base} with a learning rate of 0.002 instead of 0.004 (training.learning_rate" in said
    assert "heads.0.transitions: 4 of 4 tokens kept, 1 added: 'INTJ'" in said
    task, before = load_task(tmp_path / "run"), load_task(base)
    assert task.settings.model == before.settings.model  # the settings are those of the base
    assert task.settings.data.valid == ""
    assert task.words.tokens[: len(before.words)] == before.words.tokens  # type: ignore[attr-defined]
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["base"] == str(base)


def test_new_rows_are_drawn_as_those_that_are_kept_lie_and_by_the_seed(base: Path, tmp_path: Path) -> None:
    few = ["training.steps=1", "training.learning_rate=1e-12"]
    for name, more in (("one", []), ("two", []), ("other", ["training.seed=5"])):
        begin(tuned(base, tmp_path, *few, *more), tmp_path / name, Silent())
    name = "read_words.spelling.embedding.weight"
    old, (one, two, other) = weights(base)[name], (weights(tmp_path / each)[name] for each in ("one", "two", "other"))
    new = one[len(old) :]
    assert len(new) >= 3
    torch.testing.assert_close(one[: len(old)], old)
    apart = (new - old.mean(0)) / old.std(0, correction=0)
    assert apart.abs().max() < 4.5
    assert 0.5 < float(apart.std()) < 1.6
    assert not torch.allclose(new[0], new[1])
    assert torch.equal(one, two)
    assert not torch.allclose(one, other)


def test_the_vocabulary_can_be_built_anew(base: Path, tmp_path: Path) -> None:
    begin(tuned(base, tmp_path, TUNING + "vocabulary=new"), tmp_path / "run", Silent())
    known = load_task(tmp_path / "run").words.tokens  # type: ignore[attr-defined]
    assert {*load_task(base).words.tokens} - {*known}  # type: ignore[attr-defined]


def test_the_cache_of_encoded_examples_tells_bases_apart(base: Path, tmp_path: Path) -> None:
    for name, start in (("kept", base), ("anew", None)):
        given = {"train": str(new_data(tmp_path))}
        begin(
            setup("tagging", given=given, overrides=small("training.steps=1"), start_from=start),
            tmp_path / name,
            Silent(),
        )
    kept, anew = (load_task(tmp_path / name).words.tokens for name in ("kept", "anew"))  # type: ignore[attr-defined]
    assert kept[: len(load_task(base).words)] == load_task(base).words.tokens  # type: ignore[attr-defined]
    assert kept != anew


# The learning rate


def test_the_learning_rate_of_the_user_wins(base: Path, tmp_path: Path) -> None:
    given = {"train": str(new_data(tmp_path))}
    rates = [
        (0.004, setup("tagging", given=given, overrides=["training.learning_rate=4e-3"], start_from=base)),
        (0.02, setup("tagging", given=given, overrides={"training": {"learning_rate": 0.02}}, start_from=base)),
        (0.002, setup("tagging", given=given, start_from=base)),
        (0.002, setup(base / "config.toml", given=given, start_from=base)),
    ]
    for rate, this in rates:
        assert this.settings.training.learning_rate == pytest.approx(rate)


def test_a_limit_of_the_user_takes_the_place_of_those_of_the_base(base: Path, tmp_path: Path) -> None:
    given = {"train": str(new_data(tmp_path))}
    this = setup(None, given=given, overrides=["training.steps=500"], start_from=base)
    assert (this.settings.training.steps, this.settings.training.epochs) == (500, None)
    assert setup(None, given=given, start_from=base).settings.training.epochs == 3  # as the base


def test_a_run_that_was_fine_tuned_itself_gives_its_own_rate(base: Path, tmp_path: Path) -> None:
    begin(tuned(base, tmp_path, "training.steps=1"), tmp_path / "first", Silent())
    this = setup(None, given={"train": str(new_data(tmp_path))}, start_from=tmp_path / "first")
    assert this.settings.training.learning_rate == pytest.approx(0.002)
    assert this.settings.training.fine_tuning.base == str(tmp_path / "first")


# Frozen parts


def test_frozen_parts_stay_as_they_are_and_the_others_do_not(base: Path, tmp_path: Path) -> None:
    frozen = TUNING + 'frozen=["recurrent", "read_words.spelling"]'
    begin(tuned(base, tmp_path, frozen), tmp_path / "run", Silent())
    before, after = weights(base), weights(tmp_path / "run")
    for name, weight in after.items():
        is_frozen = name.startswith(("recurrent.", "read_words.spelling."))
        same = weight.shape == before[name].shape and bool(torch.equal(weight, before[name]))
        rows = name.endswith("embedding.weight") and torch.equal(weight[: len(before[name])], before[name])
        assert bool(same or rows) == is_frozen, name


@pytest.mark.parametrize("frozen", ["embedding", "encoder", "decoder", "output"])
def test_a_frozen_part_changes_no_gradient_of_the_others(frozen: str, tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("aab\tX Y\nbba\tY X Y\nab\tX\n", "utf-8")
    few = ["data.source.tokens=characters", "data.target.tokens=symbols", "model.hidden=6", "model.embedding=5"]
    few += ["model.dropout=0", "training.steps=1", "training.optimizer=sgd", "training.average=none"]
    few += ["training.clip=none", "training.learning_rate=0.5", "training.warmup=0", "training.device=cpu"]
    few += ["training.threads=1", 'data.columns=["source", "target"]']
    for name, more in (("all", []), ("some", [f"{TUNING}frozen={frozen}"])):
        begin(setup("seq2seq", given={"train": str(file)}, overrides=[*few, *more]), tmp_path / name, Silent())
    one, other = weights(tmp_path / "all"), weights(tmp_path / "some")
    for name, weight in one.items():
        same = torch.allclose(weight, other[name], atol=1e-7)
        assert same == (not name.startswith(f"{frozen}.")), name


def test_gradual_unfreezing_trains_one_more_part_each_epoch_the_last_one_first(base: Path, tmp_path: Path) -> None:
    changed = []
    for epochs in (1, 2, 3):
        told = Noted()
        few = [TUNING + 'frozen=["read_words", "recurrent"]', TUNING + "unfreeze=1", f"training.epochs={epochs}"]
        begin(tuned(base, tmp_path, *few), tmp_path / f"run{epochs}", told)
        before, after = weights(base), weights(tmp_path / f"run{epochs}")
        names = (
            "recurrent.cells.0.0.from_input.weight",
            "read_words.spelling.from_characters.cells.0.0.from_input.weight",
        )
        known = [name for name in names if name in before]
        changed.append([not torch.equal(before[name], after[name]) for name in known])
        assert ("epoch 2: recurrent is trained from here on" in told.notes) == (epochs > 1)
    assert [each[0] for each in changed] == [False, True, True]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            ["frozen=['recurent']"],
            r"fine_tuning\.frozen: the model has no part 'recurent'. Did you mean 'recurrent'\? Known",
        ),
        (
            ["frozen=['read_words', 'recurrent', 'heads']"],
            r"freezes the whole model, so there is nothing to train. Leave out 'h",
        ),
        (["unfreeze=2"], r"fine_tuning\.unfreeze has no effect without training\.fine_tuning\.frozen: name the parts"),
        (["frozen=['heads']", "unfreeze=0"], r"fine_tuning\.unfreeze must be at least 1, but is 0"),
        (["old_share=1"], r"fine_tuning\.old_share must be at least 0 and below 1, but is 1"),
        (
            ["old_data=a.conll"],
            r"fine_tuning\.old_data has no effect without training\.fine_tuning\.old_share: set the",
        ),
    ],
)
def test_what_cannot_be_frozen_or_replayed_is_refused(
    override: list[str], message: str, base: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        begin(tuned(base, tmp_path, *(TUNING + each for each in override)), tmp_path / "run", Silent())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("override", ["old_share=0.2", "vocabulary=new"])
def test_what_needs_a_base_says_so(override: str) -> None:
    with pytest.raises(
        ConfigError, match=r"has no effect without training.fine_tuning.base: give a run to start from, --f"
    ):
        setup("tagging", given={"train": "a.conll"}, overrides=[TUNING + override])


# Old data


def test_each_epoch_draws_its_own_old_rows_and_every_new_one(tmp_path: Path) -> None:
    new = Store.write(tmp_path / "new", [{"ids": np.arange(n), "place": np.array([0, n])} for n in range(1, 7)])
    old = Store.write(tmp_path / "old", [{"ids": -np.arange(n), "place": np.array([0, n])} for n in range(1, 30)])
    mixed = Mixed(new, old, share=0.4, seed=3)
    for epoch in (0, 1):
        numbers, joined = mixed.drawn(epoch), mixed.of_epoch(epoch)
        wanted = [new[n]["ids"].tolist() for n in range(6)] + [old[int(n)]["ids"].tolist() for n in numbers]
        assert len(numbers) == 4
        assert [row["ids"].tolist() for row in joined] == wanted
        assert [row["ids"].tolist() for row in joined.take(np.array([9, 0, 7]))] == [wanted[n] for n in (9, 0, 7)]
        assert joined.lengths("ids").tolist() == [*map(len, wanted)]
        flat = [number for row in wanted for number in row]
        assert joined.size("ids") == len(flat)
        for start, end in ((0, 3), (15, len(flat)), (22, len(flat) - 1), (21, 21)):
            assert joined.span("ids", start, end).tolist() == flat[start:end]
        assert joined.spans("ids", np.array([0, 20]), np.array([2, 24])).values.tolist() == flat[:2] + flat[20:24]
    assert mixed.drawn(0).tolist() != mixed.drawn(1).tolist()
    assert Mixed(new, old, share=0.4, seed=4).drawn(0).tolist() != mixed.drawn(0).tolist()
    assert len(Mixed(new, old, share=0.99, seed=1).drawn(0)) == 29  # all there is


def test_a_running_text_goes_on_with_a_stretch_of_the_old_one(tmp_path: Path) -> None:
    new, old = (
        Store.write(
            tmp_path / str(first), [{"ids": np.arange(first, first + 10)}, {"ids": np.arange(first + 10, last)}]
        )
        for first, last in ((0, 30), (100, 200))
    )
    joined = Mixed(new, old, share=0.25, seed=1).stretch_of_epoch(2, "ids")
    assert joined.size("ids") == 40
    text = joined.span("ids", 0, 40).tolist()
    assert text[:30] == list(range(30))
    assert text[30:] == list(range(text[30], text[30] + 10))
    assert joined.span("ids", 25, 33).tolist() == text[25:33]
    assert joined.span("ids", 31, 35).tolist() == text[31:35]


@pytest.mark.parametrize("broken", [2, 5])
def test_a_broken_fine_tuning_goes_on_bit_for_bit(base: Path, tmp_path: Path, broken: int) -> None:
    few = [TUNING + "old_share=0.5", TUNING + 'frozen=["read_words", "recurrent"]', TUNING + "unfreeze=1"]
    few += ["training.batch_tokens=30", "training.average=ema"]
    begin(tuned(base, tmp_path, *few), tmp_path / "whole", Silent())
    with pytest.raises(MemoryError):
        begin(tuned(base, tmp_path, *few, "training.save_minutes=0.00001"), tmp_path / "broken", StopsAt(broken))
    resume(tmp_path / "broken", Silent())
    assert digest(tmp_path / "whole") == digest(tmp_path / "broken")


def test_a_running_text_with_old_text_goes_on_bit_for_bit(tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("the cat sat on the mat\n" * 30, "utf-8")
    new.write_text("ein Hund saß da\n" * 15, "utf-8")
    tiny = ["model.hidden=8", "model.embedding=6", "reading.steps=8", "training.batch_size=4", "training.device=cpu"]
    tiny += ["training.threads=1", "training.steps=12", "training.average=none"]
    begin(setup("language_model", given={"train": str(old)}, overrides=tiny), tmp_path / "base", Silent())

    def this(*more: str) -> Setup:
        changes = [TUNING + "old_share=0.5", *more]
        return setup(None, given={"train": str(new)}, overrides=changes, start_from=tmp_path / "base")

    begin(this(), tmp_path / "whole", Silent())
    with pytest.raises(MemoryError):
        begin(this("training.save_minutes=0.00001"), tmp_path / "broken", StopsAt(7))
    resume(tmp_path / "broken", Silent())
    assert digest(tmp_path / "whole") == digest(tmp_path / "broken")


def test_old_data_of_the_base_is_needed_to_resume_or_can_be_named(base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    begin(small_setup(base.parent, "training.epochs=1"), copy, Silent())
    begin(tuned(copy, tmp_path, TUNING + "old_share=0.2"), tmp_path / "run", Silent())
    copy.rename(tmp_path / "elsewhere")
    with pytest.raises(
        CheckpointError, match=r"This run replays the training data of .*copy .* Restore that run, or name"
    ):
        resume(tmp_path / "run", Silent(), overrides=["training.epochs=4"])
    named = f"{TUNING}old_data={load_task(tmp_path / 'elsewhere').settings.data.train}"
    resume(tmp_path / "run", Silent(), overrides=["training.epochs=4", named])
    assert json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["epochs"] == 4


def test_what_the_base_held_out_is_not_replayed(tmp_path: Path) -> None:
    file = write_sentences(tmp_path / "old.conll", 20, seed=3)
    given = {"train": str(file), "valid": "40%"}
    begin(setup("tagging", given=given, overrides=small("training.steps=1")), tmp_path / "base", Silent())
    told = Noted()
    begin(tuned(tmp_path / "base", tmp_path, TUNING + "old_share=0.3"), tmp_path / "run", told)
    [said] = [note for note in told.notes if "old data" in note]
    assert said == f"30% of each epoch is drawn from 12 examples of old data ({file})"


def test_a_dry_run_counts_the_vocabulary_that_is_kept(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(new_data(tmp_path))
    assert main(["train", "--from", str(base), "--train", file, "--dry-run", "--quiet"]) == 0
    kept = capsys.readouterr().out
    anew = ["--set", TUNING + "vocabulary=new"]
    assert main(["train", "--from", str(base), "--train", file, "--dry-run", "--quiet", *anew]) == 0
    assert kept != capsys.readouterr().out


def test_old_data_of_another_kind_is_refused(base: Path, tmp_path: Path) -> None:
    old = tmp_path / "frames.jsonl"
    old.write_text('{"frames": [[1], [2]], "tags": ["a", "b"]}\n')
    with pytest.raises(DataError):
        begin(
            tuned(base, tmp_path, TUNING + "old_share=0.2", f"{TUNING}old_data={old}", TUNING + "vocabulary=kept"),
            tmp_path / "run",
            Silent(),
        )


# The command line and Python


def test_from_python_a_run_gives_its_settings_and_its_vocabulary(base: Path, tmp_path: Path) -> None:
    model = recurra.train(
        train=new_data(tmp_path), out=tmp_path / "run", start_from=base, settings={"training.steps": 2}
    )
    assert model.task.settings.model == load_task(base).settings.model
    assert "INTJ" in model.task.tags[0]  # type: ignore[attr-defined]


def test_without_a_task_or_a_run_nothing_can_be_trained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["train", "--train", "a.conll"]) == 2
    assert "what is to be trained? Name a task or a config file" in capsys.readouterr().err
    assert main(["train", "--from", str(tmp_path / "no"), "--train", "a.conll"]) == 2
    assert "there is no run in" in capsys.readouterr().err
    assert main(["train", "--resume"]) == 2
    assert "--resume continues a run: name it, recurra train RUN --resume" in capsys.readouterr().err
