"""Settings: what is written is read back, and whatever cannot be read is refused in words, with its line."""

# ruff: noqa: RUF009  # setting() and section() make fields; they return no default that could be shared
from __future__ import annotations

import datetime
import math
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recurra import runs
from recurra.config import TaggingSettings
from recurra.config.given import Given
from recurra.errors import ConfigError
from recurra.settings import Part, SettingError, field_type, section, setting, settings_from, table_of, toml_text
from recurra.toml import toml_value


@dataclass(frozen=True)
class Inner:
    """Every type that a setting may have."""

    whole: int = setting(3, "a whole number")
    real: float = setting(0.5, "a number")
    text: str = setting("", "a string")
    flag: bool = setting(True, "a claim")
    choice: Literal["none", "some", "all"] = setting("some", "one of three")
    limit: float | None = setting(5.0, "a number that may be absent, though it is usually there")
    count: int | None = setting(None, "a number that is usually absent")
    names: list[str] | None = setting(None, "strings")
    files: str | list[str] = setting([], "one or several")
    widths: int | list[int] = setting(8, "one or several")
    part: Part = setting("lstm", "a part")
    average: Part | None = setting(None, "a part that may be absent")


@dataclass(frozen=True)
class Outer:
    name: str = setting("outer", "at the top")
    inner: Inner = section(Inner, "as it usually is")
    other: Inner = field(default_factory=lambda: Inner(whole=7, limit=None, average={"name": "ema", "decay": 0.9}))


TEXTS = st.text() | st.sampled_from(
    ['"', "'''", "\\", "\n", "\r\n", "\x00", "\x7f", "\x85\u2028", "\\\x7f", "=# [", "é"]
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(allow_nan=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | WHOLE | REAL | TEXTS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3),
    max_leaves=8,
)
PARTS = TEXTS.filter(lambda text: text != "none") | st.builds(
    lambda name, options: {**options, "name": name}, TEXTS, st.dictionaries(TEXTS, VALUES, max_size=3)
)
INNERS = st.builds(
    Inner,
    whole=WHOLE,
    real=REAL,
    text=TEXTS,
    flag=st.booleans(),
    choice=st.sampled_from(["none", "some", "all"]),
    limit=st.none() | REAL,
    count=st.none() | WHOLE,
    names=st.none() | st.lists(TEXTS),
    files=TEXTS | st.lists(TEXTS),
    widths=WHOLE | st.lists(WHOLE),
    part=PARTS,
    average=st.none() | PARTS,
)


@given(st.builds(Outer, name=TEXTS, inner=INNERS, other=INNERS), st.booleans())
@example(
    Outer(inner=Inner(part={"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.1}]}, limit=None, average="x")), True
)
def test_what_is_written_is_read_back(made: Outer, about: bool) -> None:
    assert settings_from(Outer, tomllib.loads(toml_text(made, about=about))) == made
    assert settings_from(Outer, table_of(made)) == made


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_the_explained_text_is_toml_and_means_the_defaults() -> None:
    text = toml_text(TaggingSettings(), about=True)
    assert settings_from(TaggingSettings, tomllib.loads(text)) == TaggingSettings()
    for name, value in table_of(TaggingSettings()).items():
        assert name in text
        assert not isinstance(value, dict) or all(key in text for key in value)
    assert all(line.startswith("[") or not line or "# " in line for line in text.splitlines())


def test_what_a_task_usually_has_and_was_taken_away_stays_away() -> None:
    usual = TaggingSettings()
    made = replace(usual, training=replace(usual.training, clip=None, average=None))
    assert settings_from(TaggingSettings, tomllib.loads(toml_text(made))) == made
    resumed = settings_from(TaggingSettings, Given.of_settings(made).options(["training.epochs=9"]).table())
    assert resumed == replace(made, training=replace(made.training, epochs=9))


def test_a_section_keeps_the_defaults_of_its_task() -> None:
    made = settings_from(Outer, {"other": {"real": 1}})
    assert made.other == Inner(whole=7, real=1.0, limit=None, average={"name": "ema", "decay": 0.9})
    assert isinstance(made.other.real, float)


def test_options_alone_are_those_of_the_usual_part() -> None:
    made = settings_from(Outer, {"inner": {"part": {"reset": "after"}}, "other": {"average": {"decay": 0.5}}})
    assert made.inner.part == {"name": "lstm", "reset": "after"}
    assert made.other.average == {"name": "ema", "decay": 0.5}


def test_the_table_that_is_given_is_not_the_one_that_is_kept() -> None:
    table = {"inner": {"part": {"name": "lstm", "wrap": [{"name": "zoneout"}]}}}
    made = settings_from(Outer, table)
    table["inner"]["part"]["wrap"].append({"name": "weight_drop"})  # type: ignore[attr-defined]
    assert made.inner.part == {"name": "lstm", "wrap": [{"name": "zoneout"}]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"tsk": "tagging"},
            "there is no setting 'tsk'. Did you mean 'task'? Known: task, data, model, training, eval",
        ),
        ({"model": {"hiden": 3}}, "there is no setting 'model.hiden'. Did you mean 'hidden'?"),
        ({"model": {"characters": {"cel": 3}}}, "there is no setting 'model.characters.cel'. Did you mean 'cell'?"),
        ({"model": {"odd key": 3}}, "there is no setting 'model.\"odd key\"'. Known:"),
        ({"model": {"k" * 1000: 3}}, "k…'. Known:"),
        ({"model": 3}, "model must be a section, [model], but is 3."),
        ({"model": {"characters": "lstm"}}, "model.characters must be a section, [model.characters], but is 'lstm'."),
        ({"training": None}, "training must be a section, [training], but is none."),
        ({"model": {"hidden": "x"}}, "model.hidden must be a whole number or a list of whole numbers, but is 'x'."),
        ({"model": {"hidden": True}}, "but is True."),
        ({"model": {"hidden": None}}, "model.hidden must be a whole number or a list of whole numbers, but is 'none'."),
        ({"model": {"layers": 1.5}}, "model.layers must be a whole number or nothing, but is 1.5."),
        ({"model": {"bidirectional": "yes"}}, "model.bidirectional must be true or false, but is 'yes'."),
        ({"model": {"skip": "resdual"}}, "must be 'none' or 'residual' or 'highway', but is 'resdual'. Did you mean"),
        ({"model": {"skip": []}}, "must be 'none' or 'residual' or 'highway', but is []. Known: none"),
        ({"model": {"cell": {"reset": 1, "name": 3}}}, 'model.cell needs a name: {name = "…", …}, but is {'),
        ({"data": {"format": {"separator": " "}}}, 'data.format needs a name: {name = "…", …}, but is {'),
        ({"model": {"cell": ["lstm"]}}, "model.cell must be a string or a table of values, but is ['lstm']."),
        ({"data": {"tags": ["a", 3]}}, "data.tags must be a list of strings or nothing, but is ['a', 3]."),
        ({"data": {"tags": ["a", None]}}, "data.tags: a setting must be a string, a number,"),
        ({"data": {"train": datetime.date(2024, 5, 1)}}, "data.train: a setting must be a string, a number,"),
        ({"data": {"train": "\udcff"}}, "data.train: '\\udcff' is not valid Unicode."),
        ({"training": {"seed": 2**63}}, "training.seed: whole numbers must fit in 64 bits."),
        ({"training": {"learning_rate": 2**5000}}, "training.learning_rate: whole numbers must fit in 64 bits."),
        ({"training": {"epochs": 0}}, "training.epochs must be at least 1, but is 0."),
        ({"training": {"learning_rate": 0}}, "training.learning_rate must be above 0, but is 0.0."),
        ({"training": {"learning_rate": math.nan}}, "training.learning_rate must be above 0, but is nan."),
        ({"training": {"clip": math.inf}}, "training.clip must be above 0, but is inf."),
        ({"model": {"dropout": 1}}, "model.dropout must be at least 0 and below 1, but is 1.0."),
        ({"model": {"dropout": -math.nan}}, "model.dropout must be at least 0 and below 1, but is nan."),
        ({"model": {"characters": {"layers": 0}}}, "model.characters.layers must be at least 1, but is 0."),
        ({"model": {"cell": {"name": "lstm", "x": nested(17)}}}, "model.cell is nested more than 16 levels deep."),
        ({"model": nested(100_000)}, "model must be a section, [model], but is a list too large to show."),
        ({"model": {"cell": {"name": "lstm", "x": {3: 4}}}}, "model.cell: the keys of a table must be strings"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_words(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        settings_from(TaggingSettings, table)
    assert message in str(refusal.value)
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("model.layers=2", {"model": {"cell": "gru", "layers": 2}}),
        (" model . layers = 2 ", {"model": {"cell": "gru", "layers": 2}}),
        ("model.hidden=[64, 32]", {"model": {"cell": "gru", "hidden": [64, 32]}}),
        ("model.bidirectional=false", {"model": {"cell": "gru", "bidirectional": False}}),
        ("model.cell=lstm", {"model": {"cell": "lstm"}}),
        ("model.cell={name = 'lstm'}", {"model": {"cell": {"name": "lstm"}}}),
        ("model.cell.reset=after", {"model": {"cell": {"name": "gru", "reset": "after"}}}),
        ("model.cell=none", {"model": {"cell": None}}),
        ("data.train=a=b.tsv", {"model": {"cell": "gru"}, "data": {"train": "a=b.tsv"}}),
        ("data.train=2024-05-01", {"model": {"cell": "gru"}, "data": {"train": "2024-05-01"}}),
        ("data.train=1\nmodel=3", {"model": {"cell": "gru"}, "data": {"train": "1\nmodel=3"}}),
        ("data.train=", {"model": {"cell": "gru"}, "data": {"train": ""}}),
        ("data.train=" + "9" * 5000, {"model": {"cell": "gru"}, "data": {"train": "9" * 5000}}),
        ("training.device=cuda:1", {"model": {"cell": "gru"}, "training": {"device": "cuda:1"}}),
        ("task=tagging", {"model": {"cell": "gru"}, "task": "tagging"}),
    ],
)
def test_set_puts_a_value_in(override: str, expected: dict[str, Any]) -> None:
    table = {"model": {"cell": "gru"}}
    assert Given().keywords(table, "settings").options([override]).table() == expected
    assert table == {"model": {"cell": "gru"}}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.hidden", "--set takes section.key=value, such as model.hidden=256, but got 'model.hidden'."),
        ("=3", "but got '=3'."),
        ("model.=3", "but got 'model.=3'."),
        (".hidden=3", "but got '.hidden=3'."),
        ("", "but got ''."),
        ("model.layers.x=3", "--set model.layers.x=3: layers is not a section: it is 2."),
    ],
)
def test_a_set_that_cannot_be_is_refused_in_words(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Given().keywords({"model": {"layers": 2}}, "settings").options([override]).table()
    assert message in str(refusal.value)


def tagging(*overrides: str) -> TaggingSettings:
    return Given().files({"test": "test.tsv"}, "{}=").options(overrides).settings(TaggingSettings)


def test_none_takes_a_setting_away() -> None:
    assert tagging("training.clip=none").training.clip is None
    assert tagging("training.average=None").training.average is None
    assert tagging("data.test=none").data.test == ""
    assert tagging("model.characters.cell=none").model.characters.cell == "none"
    assert tagging("model.skip=none").model.skip == "none"
    assert tagging("model.cell=gru", "model.cell.reset=after", "model.cell.reset=none").model.cell == {"name": "gru"}


def test_a_part_named_nowhere_gains_options_by_set() -> None:
    assert tagging("model.cell.candidate=sigmoid").model.cell == {"name": "lstm", "candidate": "sigmoid"}
    assert tagging("model.cell=none", "model.cell.candidate=sigmoid") == tagging("model.cell.candidate=sigmoid")
    assert tagging("training.average.decay=0.5").training.average == {"name": "ema", "decay": 0.5}


def test_settings_are_read_without_torch() -> None:
    code = (
        "import sys, recurra.config\n"
        "from recurra.config.given import Given\n"
        "Given().options(['model.hidden=3']).settings(recurra.config.TaggingSettings)\n"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


ODD = [
    "0x" + "f" * 5000, "9" * 5000, "1979-05-27", "07:32:00", "nan", "-inf", "1e999", "[" * 300 + "]" * 300, "'none'",
    "{name='lstm'}", "{}", "[]", "[[]]", "a." * 3000 + "a=1", "[" + "a." * 3000 + "a]", "'''", '"""', "\x00", "\ufeff",
    "\\ud800", "[[model]]", "[model]", "model.cell", "=", "\n", "#", "true", "-1", "0", "''", "\u2028", "cell.",
]  # fmt: skip
EXPLAINED = toml_text(TaggingSettings(), about=True)


def refused_in_words(path: Path, content: bytes) -> None:
    """Settings, or a ConfigError; never anything else."""
    path.write_bytes(content)
    try:
        made = Given.of_file(path).settings(TaggingSettings)
    except ConfigError:
        return
    assert repr(settings_from(TaggingSettings, tomllib.loads(toml_text(made)))) == repr(made)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_a_file_only_a_config_error_comes_out(tmp_path: Path, content: bytes) -> None:
    refused_in_words(tmp_path / "config.toml", content)


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(EXPLAINED)),
            st.integers(0, 30),
            st.sampled_from(ODD) | st.text("azAZ09.=[]{}'\"#,_ \n-", max_size=8),
        ),
        max_size=4,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_however_a_config_is_changed_only_a_config_error_comes_out(
    tmp_path: Path, changes: list[tuple[int, int, str]]
) -> None:
    text = EXPLAINED
    for start, length, instead in changes:
        text = text[:start] + instead + text[start + length :]
    refused_in_words(tmp_path / "config.toml", text.encode("utf-8", "replace"))


KEYS = [
    f"{part}.{key}" for part, table in table_of(TaggingSettings()).items() if isinstance(table, dict) for key in table
]
NAMES = st.sampled_from([*KEYS, "task", "data", "model", "model.characters.cell", "training.clip"]) | st.text(
    max_size=9
)
SETS = st.builds(
    lambda name, more, equals, value: name + more + equals + value,
    NAMES,
    st.sampled_from(["", "", "", ".", ".x", ".name", ".a" * 3000]),
    st.sampled_from(["=", "=", "=", ""]),
    st.sampled_from(ODD) | st.text(st.characters(), max_size=9) | VALUES.map(toml_value) | st.just("\udcff"),
)


@given(st.lists(SETS | st.text(st.characters()), max_size=4))
def test_whatever_is_set_only_a_config_error_comes_out(overrides: list[str]) -> None:
    try:
        made = Given().options(overrides).settings(TaggingSettings)
    except ConfigError:
        return
    assert repr(settings_from(TaggingSettings, tomllib.loads(toml_text(made)))) == repr(made)


@pytest.mark.parametrize("odd", ODD, ids=[f"odd{number}" for number in range(len(ODD))])
@pytest.mark.parametrize(
    "key", ["model.cell.x", "model.hidden", "training.learning_rate", "data.tags", "training.seed"]
)
def test_odd_values_are_taken_or_refused(tmp_path: Path, key: str, odd: str) -> None:
    refused_in_words(tmp_path / "config.toml", f"{key} = {odd}".encode())


@pytest.mark.parametrize(
    ("typed", "advised"),
    [
        ("model.attention={name=additive, size=8}", """--set 'model.attention={name="additive", size=8}'."""),
        ("model.conditioning=[every, output]", """--set 'model.conditioning=["every", "output"]'."""),
    ],
)
def test_a_table_whose_quotes_the_shell_took_away_is_said_with_them(typed: str, advised: str) -> None:
    with pytest.raises(ConfigError, match="this is not a valid TOML table or list") as caught:
        Given().options([typed])
    assert str(caught.value).endswith(advised)


@pytest.mark.parametrize(
    ("task", "settings", "said"),
    [
        ("tagging", ["model.bidirectional=false", "model.merge=sum"], "model.merge = 'sum' has no effect: model.bid"),
        ("tagging", ["model.skip=residual"], "model.skip = 'residual' has no effect: "),
        ("tagging", ["model.mix=mean"], "model.mix = 'mean' has no effect: there is only one layer"),
        ("classification", ["model.mix=mean"], "model.mix = 'mean' has no effect: there is only one layer"),
        ("classification", ["model.encoder=cnn", "model.mix=mean"], "has no recurrent layers"),
        (
            "classification",
            ["model.encoder=bag", "model.bidirectional=false", "model.direction=backward"],
            "has no recurrent layers",
        ),
        ("language_model", ["model.layers=1", "model.skip=residual"], "there is only one layer"),
        ("language_model", ["model.hidden=[8]", "model.mix=concat"], "there is only one layer"),
        ("forecasting", ["model.mix=learned"], "there is only one layer"),
        ("language_model", ['training.forcing={name="constant", unit="sequence"}'], "never reads its own outputs"),
        ("seq2seq", ["model.mix=learned"], "there is one layer on either side, and nothing to mix"),
        ("vec2seq", ["model.mix=concat"], "there is one layer, and nothing to mix"),
        ("tagging", ["data.frames=x", "data.vectors=y"], "data.vectors = 'y' has no effect: the inputs are"),
        ("tagging", ["data.values=x", "model.head=softmax"], "model.head = 'softmax' has no effect: the targets"),
        ("forecasting", ["model.skip=highway"], "model.skip = 'highway' has no effect"),
        ("classification", ["model.encoder=cnn", "model.cell=gru"], "model.cell = 'gru' has no effect"),
        ("classification", ["model.share=true"], "model.share = True has no effect: model.encoder is not 'ensemble'"),
        ("classification", ["data.image=x", "model.cell=gru"], "what reads pictures has no recurrent layers"),
        (
            "classification",
            ["model.encoder=bag", "model.word_dropout=0.1"],
            "has vectors of its own",
        ),
        ("classification", ["model.encoder=cnn", "model.summary=mean"], "sums up a text in a way of its own"),
        (
            "classification",
            ["data.frames=x", "data.text.min_count=2"],
            "the inputs are numbers (data.frames), not words",
        ),
        ("classification", ["data.image=x", "data.image.stroke=9.0"], "no strokes are drawn"),
        ("classification", ["data.text=x", "data.image.channels=3"], "the inputs are texts (data.text), not pictures"),
        ("classification", ["data.label=x", "decoding.threshold=0.7"], "each input has one class (data.label)"),
        (
            "classification",
            ["data.targets=x", "decoding.alternatives=3"],
            "the targets are numbers",
        ),
        ("tagging", ["model.embedding=0", "model.word_dropout=0.1"], "leaves words without vectors"),
        ("tagging", ["training.batch_size=8", "training.batch_tokens=99"], "training.batch_size = 8 limits a batch"),
        ("forecasting", ["decoding.seed=7"], "decoding.paths = 0 draws nothing"),
        ("language_model", ["model.layers=1", "model.dropout=0.2"], "it lies between layers, and there is one"),
        ("language_model", ["data.independent=true", "reading.carry=0.5"], "reads each line by itself, whole"),
        ("language_model", ["decoding.temperature=0", "decoding.top_k=9"], "always takes the most probable token"),
        ("seq2seq", ["decoding.search=greedy", "decoding.width=9"], "decoding.search = 'greedy' keeps no beam"),
        ("seq2seq", ["decoding.temperature=0.5"], "decoding.search = 'beam' draws nothing"),
        ("seq2seq", ["decoding.search=given", "decoding.no_repeat=2"], "scores a given target, and searches nothing"),
        ("seq2seq", ["model.dropout=0", "model.locked=true"], "there is no dropout whose masks it could lock"),
        ("seq2seq", ["model.dropout=0", "training.r_drop=1.0"], "two passes without dropout are the same"),
        ("seq2seq", ["model.bidirectional=false", "model.merge=sum"], "leaves one direction, and nothing to merge"),
        ("seq2seq", ["model.skip=residual"], "there is one layer on either side"),
        ("seq2seq", ["data.frames=x", "data.source.lowercase=true"], "the source is numbers (data.frames), not text"),
        ("vec2seq", ["data.vector=x", "model.image.layers=3"], "the inputs are vectors (data.vector), not pictures"),
        ("vec2seq", ["data.image=x", "model.encoder.layers=2"], "pictures are read by model.image"),
        ("vec2seq", ["model.skip=highway"], "there is one layer"),
        ("classification", ["model.encoder=cnn", "model.hidden=9"], "has no recurrent layers; model.convolution sets"),
        ("classification", ["model.encoder=bag", "model.layers=2"], "has no recurrent layers; model.bag sets its"),
        ("classification", ["data.image=x", "model.hidden=9"], "has no recurrent layers; model.image sets its sizes"),
        ("classification", ["model.encoder=bag", "model.embedding=9"], "has vectors of its own, of size model.bag"),
        ("classification", ["model.encoder=bag", "model.characters.hidden=9"], "has vectors of its own"),
        ("classification", ["model.encoder=bag", "model.engine=loop"], "has no recurrent layers"),
        ("classification", ["model.bag.size=9"], "model.encoder = 'rnn' has no bag of n-grams"),
        ("classification", ["model.convolution.filters=9"], "model.encoder = 'rnn' has no convolutions over time"),
        (
            "classification",
            ["model.encoder=ensemble", 'model.members=["transformer", "cnn"]', "model.cell=gru"],
            "model.encoder = 'ensemble' has no recurrent layers",
        ),
        (
            "classification",
            ["model.encoder=ensemble", 'model.members=["bag", "rnn"]', "model.share=true"],
            "no two members have word embeddings",
        ),
        (
            "classification",
            ["model.encoder=pyramid", "model.bidirectional=false", "model.merge=sum"],
            "leaves only one direction",
        ),
        (
            "classification",
            ["model.characters.cell=none", "model.characters.hidden=9"],
            "are not read by their charact",
        ),
        (
            "classification",
            ["data.text.tokens=characters", "model.characters.cell=gru"],
            "data.text.tokens = 'characters' are not words",
        ),
        ("classification", ["model.embedding=0", "model.word_dropout=0.1"], "leaves words without vectors"),
        ("tagging", ["model.characters.cell=none", "model.characters.layers=2"], "are not read by their characters"),
        ("tagging", ["data.frames=x", "model.embedding=9"], "the inputs are numbers (data.frames), not words"),
        ("tagging", ["data.frames=x", "model.characters.hidden=9"], "the inputs are numbers (data.frames), not words"),
        ("tagging", ["training.patience=3"], "there is no validation data (data.valid)"),
        ("forecasting", ["data.frames=x", "data.overlap=9"], "data.window is none, so whole sequences"),
        ("forecasting", ["model.output=bernoulli", "evaluation.stride=9"], "without a forecast"),
        (
            "forecasting",
            ["model.output=bernoulli", "data.frames=x", "evaluation.context=9"],
            "all steps of data.frames are scored",
        ),
        ("language_model", ["evaluation.stride=9"], "evaluation.manner = 'carried' has no windows that move by it"),
        ("language_model", ["evaluation.manner=windowed", "evaluation.streams=9"], "reads windows, not parallel parts"),
        ("language_model", ["data.independent=true", "evaluation.window=9"], "reads each line by itself, whole"),
        ("seq2seq", ["model.encoder.hidden=8", "model.decoder.hidden=8", "model.hidden=9"], "set the sizes"),
        ("seq2seq", ["model.encoder.layers=2", "model.decoder.layers=2", "model.layers=3"], "layers of their own"),
        ("seq2seq", ["model.encoder.cell=gru", "model.decoder.cell=gru", "model.cell=elman"], "no layer uses it"),
        (
            "seq2seq",
            ["model.encoder=cnn", "model.start=mean", "model.encoder.layers=3", "model.skip=residual"],
            "there is one layer on either side",
        ),
        (
            "seq2seq",
            ["decoding.search=sampling", "decoding.temperature=0", "decoding.top_k=9"],
            "always takes the most probable token",
        ),
        ("seq2seq", ["decoding.search=greedy", "training.validate_with=decoding"], "is 'greedy' already"),
        (
            "seq2seq",
            ['training.forcing={name="constant", unit="sequence"}'],
            "with probability 1 the model never reads its own outputs",
        ),
        ("vec2seq", ["model.encoder.layers=0", "model.encoder.hidden=9"], "leaves no layer of this size"),
        ("vec2seq", ["data.image=x", "model.decoder.hidden=8", "model.hidden=9"], "no layer takes its size from it"),
        ("vec2seq", ["model.decoder.layers=2", "model.layers=3"], "model.decoder has a number of layers of its own"),
        ("vec2seq", ["model.decoder.cell=gru", "model.cell=elman"], "model.decoder.cell is the decoder's cell"),
        ("vec2seq", ["decoding.seed=7"], "decoding.search = 'beam' draws nothing"),
        ("vec2seq", ["decoding.search=given", "decoding.width=9"], "scores a given target, and searches nothing"),
    ],
)
def test_a_setting_that_the_others_leave_without_effect_is_refused(task: str, settings: list[str], said: str) -> None:
    with pytest.raises(SettingError) as refused:
        runs.setup(task, overrides=settings)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"--set {settings[-1]}: ")
    assert str(refused.value).endswith("Leave it out.")


def test_the_head_that_earlier_runs_of_numbers_were_saved_with_may_stay() -> None:
    this = runs.setup("tagging", overrides=["data.values=x", "model.head=crf"])
    assert this.settings.model.head == "crf"


def test_to_switch_off_what_is_not_there_is_no_mistake() -> None:
    off = ["model.layers=1", "model.dropout=0", "decoding.temperature=0", "decoding.top_k=none"]
    assert runs.setup("language_model", overrides=off).settings.model.dropout == 0


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("vec2seq", ["decoding.temperature=0.5", "decoding.top_k=9"]),  # by which `recurra generate` draws
        ("vec2seq", ["data.image=x", "model.dropout=0", "training.r_drop=1.0"]),  # model.image.dropout is not 0
        ("seq2seq", ["data.frames=x", "model.dropout=0", "augmentation.noise=0.1", "training.r_drop=1.0"]),
        ("classification", ["model.encoder=cnn", "model.characters.hidden=9", "model.engine=loop"]),  # words are spelt
    ],
)
def test_a_setting_that_only_seems_without_effect_is_taken(task: str, settings: list[str]) -> None:
    runs.setup(task, overrides=settings)


@pytest.mark.parametrize(
    "task", ["classification", "forecasting", "language_model", "question_answering", "seq2seq", "tagging", "vec2seq"]
)
def test_all_that_a_task_says_to_be_without_effect_are_settings_of_it(task: str) -> None:
    settings = runs.setup(task).settings
    for keys in settings.without_effect():
        assert field_type(type(settings), keys) is not None, keys


def test_a_run_that_was_saved_with_a_setting_without_effect_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('task = "tagging"\n[model]\nembedding = 0\nword_dropout = 0.1\n')
    assert Given.of_run(tmp_path).settings(TaggingSettings).model.word_dropout == 0.1
