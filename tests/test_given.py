"""Settings by file, by option and by keyword mean the same, and a mistake in them is said with its place."""

from __future__ import annotations

import contextlib
import re
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import recurra
from recurra.cli import main
from recurra.config import ClassificationSettings, Seq2SeqSettings, TaggingSettings, renamed
from recurra.config.given import Given
from recurra.config.renamed import Renamed, RenamedWarning
from recurra.config.run_file import FORMAT
from recurra.config.tagging import TaggingDecoding
from recurra.errors import CheckpointError, ConfigError
from recurra.runs import setup, setup_of
from recurra.settings import SettingError, setting
from recurra.tasks.tagging import Tagging
from recurra.training.trained import Trained, load
from tests.test_settings import VALUES

OLD = Path(__file__).parent / "old_runs" / "0.1"
TAGGED = "the\tDET\ncat\tNOUN\n\na\tDET\ndog\tNOUN\n"
FEW: dict[str, Any] = {
    "model": {"hidden": 4, "embedding": 4, "characters": {"cell": "none"}},
    "training": {"steps": 1, "threads": 1, "device": "cpu"},
    "data.cache": False,
}


def by_file(folder: Path, text: str) -> Given:
    path = folder / "config.toml"
    path.write_text(text)
    return Given.of_file(path)


def refused(given: Given, kind: type = TaggingSettings) -> str:
    with pytest.raises(ConfigError) as refusal:
        given.settings(kind)
    return str(refusal.value)


def test_file_option_and_keyword_mean_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tagger.toml"
    path.write_text('task = "tagging"\n[model]\nhidden = 5\ncell = {name = "gru", reset = "after"}\n')
    typed = setup("tagging", overrides=["model.hidden=5", "model.cell=gru", "model.cell.reset=after"]).settings
    assert setup(path).settings == typed
    cell = {"name": "gru", "reset": "after"}
    for given in ({"model": {"hidden": 5, "cell": cell}}, {"model.hidden": 5, "model": {"cell": cell}}):
        assert setup_of(Given.of("tagging").keywords(given, "settings")).settings == typed
        assert setup_of(Given.of({"task": "tagging", **given})).settings == typed


def test_a_mistake_is_said_with_the_line_the_option_or_the_keyword(tmp_path: Path) -> None:
    wrong = "model.hidden must be a whole number or a list of whole numbers, but is 'x'."
    file = by_file(tmp_path, "[training]\nepochs = 2\n[model]\nhidden = 'x'\n")
    assert refused(file) == f"{tmp_path / 'config.toml'}:4: {wrong}"
    good = by_file(tmp_path, "[model]\nhidden = 3\n")
    assert refused(good.options(["model.hidden=x"])) == f"--set model.hidden=x: {wrong}"
    assert refused(good.keywords({"model": {"hidden": "x"}}, "settings")) == f"settings['model']['hidden']: {wrong}"
    assert refused(good.keywords({"model.hidden": "x"}, "settings")) == f"settings['model.hidden']: {wrong}"
    files = Given().files({"train": 5}, "{}=")
    assert refused(files) == "train=: data.train must be a string or a list of strings, but is 5."


def test_what_was_given_last_is_named_even_where_it_is_an_option_of_a_part(tmp_path: Path) -> None:
    file = by_file(tmp_path, "[model.cell]\nname = 'lstm'\n[model.characters]\nhidden = 3\n")
    assert refused(file.options(["model.cell.name=3"])).startswith("--set model.cell.name=3: model.cell needs a name")
    assert refused(file.options(["model.characters.hidden=0"])).startswith("--set model.characters.hidden=0: ")
    assert refused(file.options(["model.characters.x.y=1"])).startswith("--set model.characters.x.y=1: there is no")
    assert refused(file.options(["model.hidden=3", "model.hidden.x=1"])) == (
        "--set model.hidden.x=1: hidden is not a section: it is 3."
    )
    kind = by_file(tmp_path, "[model]\nencoder = 'cmn'\n")
    assert refused(kind, Seq2SeqSettings).startswith(f"{tmp_path / 'config.toml'}:2: model.encoder.kind must be")


def test_what_no_one_gave_is_refused_without_a_place() -> None:
    given = Given.of("seq2seq").options(["model.wiring=between", "model.decoder.hidden=[5]"])
    assert refused(given, Seq2SeqSettings).startswith("model.wiring = 'between' puts attention between two decoder")


def test_an_unknown_task_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("# mine\ntask = 'taging'\n")
    with pytest.raises(ConfigError, match=r"a\.toml:2: there is no task 'taging'\. Did you mean 'tagging'\?"):
        setup(path)
    with pytest.raises(ConfigError, match=r"^there is no task 'taging'"):
        setup("taging")
    with pytest.raises(ConfigError, match=r"^task\['task'\]: there is no task 'taging'"):
        setup({"task": "taging"})
    with pytest.raises(ConfigError, match=r"^task = None is not the name of a task\. Known: classification, "):
        setup({"model": {}})
    with pytest.raises(ConfigError, match="a name, a config file or a table of settings, but is 5"):
        setup(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "table", [{"model.hidden": 3, "model": {"hidden": 4}}, {"model": {"hidden": 3}, "model.hidden": 4}]
)
def test_a_keyword_that_gives_a_setting_twice_is_refused(table: dict[str, Any]) -> None:
    assert "model.hidden is given twice" in refused(Given().keywords(table, "settings"))


def test_later_ones_win_and_a_named_part_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = by_file(tmp_path, "[model]\nhidden = 3\nlayers = 2\ncell = {name = 'gru', reset = 'after'}\n")
    over = file.keywords({"model": {"hidden": 4, "cell": {"name": "lstm"}}}, "settings").options(["model.hidden=5"])
    assert over.table() == {"model": {"hidden": 5, "layers": 2, "cell": {"name": "lstm"}}}
    options = file.keywords({"model": {"cell": {"reset": "before"}}}, "settings")
    assert options.table()["model"]["cell"] == {"name": "gru", "reset": "before"}


def test_a_table_of_the_user_is_one_value_whose_names_may_have_dots(tmp_path: Path) -> None:
    weights = {"U.S.": 2.0, "x": 1.0}
    for given in ({"model": {"class_weights": weights}}, {"model.class_weights": weights}):
        keyword = Given().keywords(given, "settings")
        assert keyword.settings(ClassificationSettings).model.class_weights == weights
    file = by_file(tmp_path, '[model.class_weights]\n"U.S." = 2.0\nx = 1.0\n')
    assert file.settings(ClassificationSettings).model.class_weights == weights
    for less in (
        file.options(["model.class_weights={x=3.0}"]),
        file.keywords({"model": {"class_weights": {"x": 3.0}}}, "settings"),
    ):
        assert less.settings(ClassificationSettings).model.class_weights == {"x": 3.0}
    none = file.keywords({"model": {"class_weights": {}}}, "settings")
    assert none.settings(ClassificationSettings).model.class_weights == {}
    made = Given.of_settings(file.settings(ClassificationSettings))
    assert made.settings(ClassificationSettings).model.class_weights == weights


def test_a_table_given_by_an_option_replaces_what_the_file_says(tmp_path: Path) -> None:
    file = by_file(
        tmp_path,
        "[model]\nhidden = 3\ncell = {name = 'gru', reset = 'after'}\n[model.image]\nwidths = [8, 8]\nlayers = 3\n",
    )
    usual = ClassificationSettings().model
    image = file.options(["model.image={widths=[3]}"]).settings(ClassificationSettings).model.image
    assert (image.widths, image.layers) == ([3], usual.image.layers)
    assert file.options(["model.image={}"]).settings(ClassificationSettings).model.image == usual.image
    cell = file.options(['model.cell={reset="before"}']).settings(ClassificationSettings).model.cell
    assert cell == {"name": "lstm", "reset": "before"}
    assert file.options(["model={layers=1}"]).settings(ClassificationSettings).model.hidden == usual.hidden
    over = file.keywords({"model": {"image": {"widths": [3]}}}, "settings").settings(ClassificationSettings).model
    assert (over.hidden, over.image.widths, over.image.layers) == (3, [3], 3)
    wrong = refused(file.options(['model={layers=1, image={layers="x"}}']), ClassificationSettings)
    assert wrong.startswith("--set model={layers=1, image={layers=")
    with pytest.warns(RenamedWarning, match="is now called 'model.wiring'") as told:
        old = file.options(['model={context="feeding"}']).settings(Seq2SeqSettings)
    assert (old.model.wiring, len(told)) == ("feeding", 1)


@pytest.mark.parametrize("table", [{"": 1}, {"model.": 1}, {".hidden": {"x": 1}}])
def test_a_keyword_without_a_name_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"settings are written as 'model\.hidden'"):
        Given().keywords(table, "settings")


NAMES = st.sampled_from(["model", "model.hidden", "hidden", "cell", "name", "characters", "training", "x", "", "."])
TABLES = st.recursive(
    VALUES | st.none() | st.just(Path("a")) | st.sampled_from([b"", {1}, object()]),
    lambda inner: st.dictionaries(NAMES | st.integers(0, 1), inner, max_size=3),
    max_leaves=9,
)


@hypothesis.given(TABLES)
def test_whatever_python_gives_only_a_config_error_comes_out(table: Any) -> None:
    with contextlib.suppress(ConfigError):
        assert Given().keywords(table, "settings").settings(TaggingSettings)


# Python


def test_train_takes_paths_and_tables_and_returns_a_model(tmp_path: Path) -> None:
    file = tmp_path / "train.conll"
    file.write_text(TAGGED)
    by_name = recurra.train("tagging", train=file, valid=[file], out=tmp_path / "a", settings=FEW)
    assert isinstance(by_name, Trained)
    assert by_name.task.settings.data.files("valid") == [str(file)]
    by_table = recurra.train({"task": "tagging", "data": {"train": file, "valid": [file]}, **FEW}, out=tmp_path / "b")
    assert by_table.task.settings == by_name.task.settings
    config = tmp_path / "a" / "config.toml"  # of a run, with its format and version
    by_file = recurra.train(config, train=str(file), out=str(tmp_path / "c"))
    assert by_file.task.settings.model == by_name.task.settings.model
    assert by_file.predict(["the cat"])[0].output == by_name.predict(["the cat"])[0].output


def test_a_mistake_in_python_names_the_keyword(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^settings\['model'\]\['hidden'\]: model\.hidden must be"):
        recurra.train("tagging", train="x", out=tmp_path / "run", settings={"model": {"hidden": "wide"}})
    with pytest.raises(ConfigError, match="settings must be a table such as"):
        recurra.train("tagging", train="x", out=tmp_path / "run", settings=[("model", 1)])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^valid=: data\.valid must be a string or a list of strings, but is 3"):
        recurra.train("tagging", train="x", valid=3, out=tmp_path / "run")  # type: ignore[arg-type]


def test_a_model_takes_settings_as_a_table_too() -> None:
    model = load(OLD / "seq2seq" / "run")
    typed = model.with_settings(["decoding.best=2", "decoding.width=3"]).task.settings
    assert model.with_settings({"decoding": {"best": 2, "width": 3}}).task.settings == typed
    assert model.with_settings({"decoding.best": 2, "decoding.width": 3}).task.settings == typed
    assert model.with_settings({}) is model
    with pytest.raises(
        ConfigError, match=r"cannot be changed, except evaluation and decoding: remove changes\['model.hidden'\]"
    ):
        model.with_settings({"model.hidden": 3})
    with pytest.raises(ConfigError, match=r"^changes\['decoding'\]\['width'\]: decoding\.width must be"):
        model.with_settings({"decoding": {"width": 0}})
    with pytest.raises(ConfigError, match=r"^width = 0: decoding\.width must be"):
        model.predict(["cat"], width=0)


def test_a_score_that_a_model_does_not_have_is_refused_before_it_is_scored() -> None:
    model = load(OLD / "seq2seq" / "run")
    with pytest.raises(ConfigError, match=r"^changes\['evaluation'\]\['first'\]: evaluation\.first = 'x' is not"):
        model.with_settings({"evaluation": {"first": "x"}})
    assert model.with_settings(["evaluation.first=bleu"]).task.settings.evaluation.first == "bleu"
    assert model.with_settings(["decoding.search=given"]).task.decoding.search == "given"  # asked, though not scored


def test_a_model_refuses_changes_without_effect_but_not_what_it_was_saved_with() -> None:
    model = load(OLD / "seq2seq" / "run")
    greedy = model.with_settings(["decoding.width=9", "decoding.best=1"]).with_settings(["decoding.search=greedy"])
    assert (greedy.task.decoding.search, greedy.task.decoding.width) == ("greedy", 9)
    with pytest.raises(SettingError) as refused:
        model.with_settings(["decoding.top_k=3"])
    assert str(refused.value) == (
        "--set decoding.top_k=3: decoding.top_k = 3 has no effect: decoding.search = 'beam' draws nothing. "
        "Leave it out."
    )
    with pytest.raises(
        SettingError, match=r"^changes\['decoding'\]\['width'\]: .*'greedy' keeps no beam\. Leave it out\.$"
    ):
        model.with_settings({"decoding": {"search": "greedy", "width": 9}})
    drawn = model.searching(search="sampling", changes=["decoding.top_k=3"])
    assert drawn.task.decoding.top_k == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["predict", "forecasting", "evaluation.season=6"],
            "evaluation.season has no effect: answers are not scored here. Leave it out, or use recurra evaluate.",
        ),
        (["explain", "seq2seq", "evaluation.lowercase=true"], "evaluation.lowercase has no effect: answers are not"),
        (["evaluate", "forecasting", "decoding.paths=9"], "decoding.paths has no effect: no score depends on it."),
        (["evaluate", "classification", "decoding.alternatives=2"], "decoding.alternatives has no effect: no score"),
        (["evaluate", "language_model", "decoding.top_k=2"], "decoding.top_k has no effect: no score depends on it."),
        (["predict", "classification", "decoding.threshold=0.9"], "has no effect: each input has one class"),
        (["compare", "forecasting", "decoding.paths=9"], "decoding.paths has no effect: no score depends on it."),
    ],
)
def test_a_command_refuses_settings_that_it_makes_no_use_of(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, task, override = words
    run = str(OLD / task / "run")
    (tmp_path / "data.tsv").write_text("cat\tK AE T\n")
    assert main([command, run, *[run] * (command == "compare"), str(tmp_path / "data.tsv"), "--set", override]) == 2
    assert f"--set {override}: " in (heard := capsys.readouterr().err)
    assert said in heard


@dataclass(frozen=True)
class Widths(TaggingDecoding):
    """Settings of a search that is always the same one."""

    width: int = setting(1, "hypotheses that are kept")


@dataclass(frozen=True)
class WideSettings(TaggingSettings):
    decoding: Widths = field(default_factory=Widths)


class Wide(Tagging):
    Settings = WideSettings


def test_a_width_is_for_every_task_whose_decoding_has_one() -> None:
    plain = load(OLD / "tagging" / "run")
    task = Wide.load(Given.of_settings(plain.task.settings).settings(WideSettings), plain.folder)
    model = Trained(task, plain.model, plain.folder)
    assert model.searching(width=3).task.decoding.width == 3
    with pytest.raises(ConfigError, match="search is an option of search, but tagging does not use a search"):
        model.searching(search="beam")


def test_a_mistake_that_only_the_data_shows_has_its_place_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "colours.tsv").write_text("red\t255\t0\t0\nblue\t0\t0\t255\n")
    typed = ["--train", str(tmp_path / "colours.tsv"), "--set", "augmentation.rotate=5", "--out", str(tmp_path / "run")]
    assert main(["train", "vec2seq", *typed]) == 2
    assert capsys.readouterr().err.startswith(
        "recurra: --set augmentation.rotate=5: augmentation.rotate cannot be applied"
    )


def test_a_mistake_that_only_the_model_shows_has_its_place_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.tsv").write_text("text\tlabel\ngood\tx\nbad\ty\n")
    config = tmp_path / "mine.toml"
    config.write_text("task = 'classification'\n[augmentation]\nrotate = 5\n")
    typed = ["train", str(config), "--train", str(tmp_path / "train.tsv"), "--out", str(tmp_path / "run")]
    for more in ([], ["--dry-run"]):
        assert main([*typed, "--set", "data.cache=false", *more]) == 2
        assert f"recurra: {config}:3: augmentation.rotate applies to series and pictures," in capsys.readouterr().err


LATE = [
    ("classification", "data.positive=z", "data.positive = 'z' is not a class."),
    ("classification", "model.class_weights.z=2", "model.class_weights: 'z' is not a class."),
    ("classification", "training.optimizer=adm", "training.optimizer = 'adm' is not known."),
    ("classification", "training.optimizer.mood=1", "training.optimizer = 'adam' has no option 'mood'."),
    ("classification", "training.schedule=cosin", "training.schedule = 'cosin' is not known."),
    ("classification", "training.average.decay=1", "training.average.decay must be below 1, but is 1."),
    ("seq2seq", "evaluation.first=blue", "evaluation.first = 'blue' is not known."),
    ("seq2seq", 'decoding.banned=["Q"]', "decoding.banned has 'Q', which is not a token of the targets."),
    ("forecasting", "model.output=bernoulli", "model.output = 'bernoulli' is for values that are 0 or 1"),
]


@pytest.mark.parametrize(("task", "option", "sentence"), LATE)
def test_every_setting_that_is_refused_late_has_its_place(
    task: str, option: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ("train.csv" if task == "forecasting" else "train.tsv")
    pairs = "good\tx\nbad\ty\n"
    text = {"classification": f"text\tlabel\n{pairs}", "seq2seq": pairs}
    file.write_text(text.get(task, "time,level\n" + "".join(f"{t},{t % 7}\n" for t in range(40))))
    few = ["data.cache=false", "training.device=cpu", 'training.average={name="ema"}', option]
    typed = [word for each in few for word in ("--set", each)]
    assert main(["train", task, "--train", str(file), "--out", str(tmp_path / "run"), *typed]) == 2
    assert f"recurra: --set {option}: {sentence}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.engine=fast", "engine = 'fast' is not known."),
        ("model.engine=scan", "the engine 'scan' cannot run the cell 'lstm'"),
        ("model.cell=lstn", "there is no cell 'lstn'."),
        ("model.cell.forget=1", "'lstm' has no option 'forget'."),
        ("model.characters.cell=lstn", "there is no cell 'lstn'."),
        ("model.merge=max_min", "merge = 'max_min' is not known."),
        ("model.head=crv", "there is no head 'crv'."),
        ("training.device=tpu", "training.device = 'tpu' cannot be used"),
        ("training.precision=float16", "training.precision = 'float16' needs a GPU"),
        ("data.format=conl", "there is no reader 'conl'."),
    ],
)
def test_a_mistake_in_a_part_of_the_model_has_its_place_too(
    setting: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if setting.endswith("float16") and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    (tmp_path / "train.conll").write_text("a\tX\nb\tY\n")
    train = ["--train", str(tmp_path / "train.conll"), "--out", str(tmp_path / "run")]
    small = ["data.cache=false", "model.hidden=4", "model.embedding=4", "model.characters.hidden=4", "training.steps=1"]
    sets = [part for each in [*small, setting] for part in ("--set", each)]
    assert main(["train", "tagging", *train, *sets]) == 2
    assert f"recurra: --set {setting}: {said}" in capsys.readouterr().err


def test_vectors_of_another_size_are_refused_with_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.conll").write_text("a\tX\nb\tY\n")
    (tmp_path / "words.vec").write_text("a 1 2 3\nb 1 2 3\n")
    config = tmp_path / "mine.toml"
    config.write_text(f"task = 'tagging'\n[data]\ncache = false\nvectors = '{tmp_path / 'words.vec'}'\n")
    typed = ["train", str(config), "--train", str(tmp_path / "train.conll"), "--out", str(tmp_path / "run")]
    assert main([*typed, "--set", "model.hidden=4"]) == 2
    assert f"recurra: {config}:4: {tmp_path / 'words.vec'} has vectors of size 3" in capsys.readouterr().err


def test_a_mistake_in_a_cell_is_not_placed_where_two_were_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.conll").write_text("a\tX\nb\tY\n")
    train = ["--train", str(tmp_path / "train.conll"), "--out", str(tmp_path / "run"), "--set", "data.cache=false"]
    assert main(["train", "tagging", *train, "--set", "model.cell=lstn", "--set", "model.characters.cell=gru"]) == 2
    assert "recurra: there is no cell 'lstn'." in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_mistake_that_a_resumed_run_shows_has_its_place_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.conll").write_text("a\tX\nb\tY\n")
    run = tmp_path / "run"
    small = ["data.cache=false", "model.hidden=4", "model.embedding=4", "model.characters.hidden=4", "training.steps=1"]
    sets = [part for each in small for part in ("--set", each)]
    assert main(["train", "tagging", "--train", str(tmp_path / "train.conll"), "--out", str(run), *sets]) == 0
    assert main(["train", str(run), "--resume", "--set", "training.device=cuda"]) == 2
    assert "recurra: --set training.device=cuda: training.device = 'cuda' cannot be used" in capsys.readouterr().err


# Old names


def test_an_old_name_works_everywhere_with_a_notice(tmp_path: Path) -> None:
    notice = "'model.context' is now called 'model.wiring'. The old name works until recurra 0.4."
    file = by_file(tmp_path, "[model]\nhidden = 8\ncontext = 'feeding'\n")
    keyword = Given().keywords({"model": {"context": "feeding"}}, "settings")
    option = Given().options(["model.context=feeding"])
    for given, place in (
        (file, f"{tmp_path / 'config.toml'}:3"),
        (keyword, "settings['model']['context']"),
        (option, "--set model.context=feeding"),
    ):
        with pytest.warns(RenamedWarning, match=f"^{re.escape(f'{place}: {notice}')}$") as told:
            assert given.settings(Seq2SeqSettings).model.wiring == "feeding"
        assert len(told) == 1
        assert told[0].filename == __file__


def test_a_mistake_under_an_old_name_is_found_where_it_was_written(tmp_path: Path) -> None:
    file = by_file(tmp_path, "[model]\nhidden = 8\ncontext = 'feding'\n")
    with pytest.warns(RenamedWarning):
        message = refused(file, Seq2SeqSettings)
    assert message.startswith(f"{tmp_path / 'config.toml'}:3: model.wiring = 'feding' is not known.")


def test_the_old_name_and_the_new_one_beside_each_other_are_refused(tmp_path: Path) -> None:
    file = by_file(tmp_path, "[model]\ncontext = 'feeding'\nwiring = 'inside'\n")
    with pytest.warns(RenamedWarning):
        message = refused(file, Seq2SeqSettings)
    assert f":3: model.wiring is given twice, here as model.wiring and as model.context by {tmp_path}" in message
    with pytest.warns(RenamedWarning):  # whoever types later decides
        assert Given().options(["model.context=inside", "model.wiring=feeding"]).settings(Seq2SeqSettings)


def test_a_setting_of_the_same_name_in_another_task_is_no_old_name() -> None:
    assert refused(Given().options(["model.context=3"])).startswith(
        "--set model.context=3: there is no setting 'model.context'."
    )


def test_an_old_name_is_refused_with_the_new_one_when_its_time_is_over() -> None:
    one = Renamed("model.context", "model.wiring", "0.4")
    with pytest.raises(ConfigError, match=r"^here: 'model\.context' was renamed .*: write 'model\.wiring'\.$"):
        renamed.tell(one, "here", version="0.4.0")
    with pytest.warns(RenamedWarning, match="works until"):
        renamed.tell(one, "here", version="0.3.7")


def test_every_renaming_leads_to_a_setting_that_exists_and_has_an_end() -> None:
    for one in renamed.SETTINGS:
        kinds = [setup(task).kind.Settings for task in ("tagging", "seq2seq", "vec2seq")]
        assert any(renamed.renamed_setting(one.old.split("."), kind) == one for kind in kinds)
        assert not renamed.is_over(one), f"{one.old} may go now"


def test_the_command_line_tells_an_old_name_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "seq2seq", "--set", "model.context=feeding"]) == 0
    told = capsys.readouterr()
    assert told.err == (
        "recurra: --set model.context=feeding: 'model.context' is now called 'model.wiring'. The old name works until "
        "recurra 0.4.\n"
    )
    assert 'wiring = "feeding"' in told.out


def test_a_renamed_command_works_with_a_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(renamed, "COMMANDS", (Renamed("settings", "config", "9.0"),))
    assert main(["settings", "tagging"]) == 0
    told = capsys.readouterr()
    assert told.err == "recurra: 'settings' is now called 'config'. The old name works until recurra 9.0.\n"
    assert 'task = "tagging"' in told.out
    monkeypatch.setattr(renamed, "COMMANDS", (Renamed("settings", "config", "0.0"),))
    assert main(["settings", "tagging"]) == 2
    assert "'settings' was renamed in an earlier version: write 'config'." in capsys.readouterr().err


# The format of a run


def test_a_run_says_its_format_and_its_version(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text(TAGGED)
    recurra.train("tagging", train=tmp_path / "train.conll", out=tmp_path / "run", settings=FEW)
    head = (tmp_path / "run" / "config.toml").read_text().splitlines()[:3]
    assert head == [f"format = {FORMAT}", f'version = "{recurra.__version__}"', 'task = "tagging"']


def test_a_run_without_a_format_is_of_the_first_and_nothing_is_said_of_old_names() -> None:
    config = (OLD / "seq2seq" / "run" / "config.toml").read_text()
    assert "context = " in config
    assert "format = " not in config.split("[")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        assert load(OLD / "seq2seq" / "run").task.settings.model.wiring == "outside"


@pytest.mark.parametrize("command", ["predict", "evaluate", "train"])
def test_a_newer_format_is_refused_in_words(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(OLD / "tagging", "old")
    config = Path("old/run/config.toml")
    config.write_text(f'format = {FORMAT + 1}\nversion = "0.9.0"\nmood = "new"\n{config.read_text()}')
    rest = {"predict": ["old/data/inputs.txt"], "evaluate": ["old/data/valid.conll"], "train": ["--resume"]}[command]
    assert main([command, "old/run", *rest]) == 2
    words = f"(format {FORMAT + 1}); this is recurra {recurra.__version__}, which reads formats up to {FORMAT}. Upgrade"
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"recurra: run old/run was written by recurra 0.9.0 {words}")
    with pytest.raises(CheckpointError):
        load("old/run")
    assert main(["train", str(config)]) == 2
    assert f"the config file {config} was written by recurra 0.9.0 {words}" in capsys.readouterr().err


def test_a_format_that_is_no_number_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("task = 'tagging'\nformat = 'tsv'\n")
    with pytest.raises(ConfigError, match=r"a\.toml:2: format must be the version number .*use data\.format\."):
        setup(path)


def test_names_with_dots_may_stand_in_a_section_and_words_with_dots_in_a_value() -> None:
    given = Given().keywords({"data": {"source.tokens": "characters"}, "model.hidden": 7}, "settings")
    made: Any = given.settings(Seq2SeqSettings)
    assert (made.data.source.tokens, made.model.hidden) == ("characters", 7)
    weights = {"model": {"class_weights": {"U.S.": 2.0}}}
    classes: Any = Given().keywords(weights, "settings").settings(ClassificationSettings)
    assert classes.model.class_weights == {"U.S.": 2.0}


@pytest.mark.parametrize(
    ("task", "short", "keys", "column"),
    [
        ("classification", "data.text=remark", ("text", "column"), "remark"),
        ("classification", "data.image=photo", ("image", "column"), "photo"),
        ("classification", "data.label=kind", ("label",), "kind"),
        ("language_model", "data.text=body", ("text", "column"), "body"),
        ("seq2seq", "data.source=en", ("source", "column"), "en"),
        ("seq2seq", "data.target=de", ("target", "column"), "de"),
        ("vec2seq", "data.target=caption", ("target", "column"), "caption"),
        ("vec2seq", "data.vector=rgb", ("vector",), ["rgb"]),
        ("tagging", "data.tokens=form", ("tokens",), "form"),
        ("tagging", "data.tags=xpos", ("tags",), ["xpos"]),
        ("forecasting", "data.time=day", ("time",), "day"),
    ],
)
def test_the_column_of_a_role_is_given_alike_in_every_task(
    task: str, short: str, keys: tuple[str, ...], column: object
) -> None:
    found: object = setup(task, overrides=[short]).settings.data
    for key in keys:
        found = getattr(found, key)
    assert found == column


@pytest.mark.parametrize("order", [1, -1])
def test_a_column_and_what_else_is_said_of_its_text_stay_beside_each_other(order: int, tmp_path: Path) -> None:
    given = ["data.text=remark", "data.text.tokens=characters"][::order]
    text = setup("classification", overrides=given).settings.data.text
    assert (text.column, text.tokens) == ("remark", "characters")
    config = tmp_path / "a.toml"
    config.write_text('task = "classification"\n[data.text]\ntokens = "characters"\n', "utf-8")
    text = setup(config, overrides=["data.text=remark"]).settings.data.text
    assert (text.column, text.tokens) == ("remark", "characters")
    config.write_text('task = "classification"\n[data]\ntext = "remark"\nlabel = "kind"\n', "utf-8")
    data = setup(config, overrides=["data.text.min_count=2"]).settings.data
    assert (data.text.column, data.text.min_count, data.label) == ("remark", 2, "kind")


def test_a_column_that_is_given_at_length_is_told_its_short_name(tmp_path: Path) -> None:
    with pytest.warns(RenamedWarning, match=r"'data.text.column' is now called 'data.text'. The old name works until"):
        data = setup("classification", overrides=["data.text.column=remark"]).settings.data
    assert data.text.column == "remark"
    with pytest.warns(RenamedWarning, match=r"'data.source.column' is now called 'data.source'"):
        setup_of(Given.of("seq2seq").keywords({"data": {"source": {"column": "en"}}}, "settings"))
    config = tmp_path / "a.toml"  # a section of a file has no value of its own, so that its column keeps a name
    config.write_text('task = "classification"\n[data.text]\ncolumn = "remark"\ntokens = "characters"\n', "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert setup(config).settings.data.text.column == "remark"


def test_a_column_is_refused_where_it_is_no_name_or_given_twice() -> None:
    with pytest.raises(ConfigError, match=r"--set data.text=5: data.text.column must be .*, but is 5"):
        setup("classification", overrides=["data.text=5"])
    twice = Given.of("seq2seq").keywords({"data.source": "en", "data": {"source": {"column": "de"}}}, "settings")
    with pytest.raises(ConfigError, match=r"data.source.column is given twice"):
        setup_of(twice)
