"""Config files: values as TOML writes them, and errors with the line of what is wrong."""

from __future__ import annotations

import datetime
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recurra.config import TaggingSettings
from recurra.config.given import Given
from recurra.errors import ConfigError
from recurra.settings import read_toml
from recurra.toml import toml_value
from tests.test_settings import VALUES, nested


@given(VALUES)
def test_a_value_is_written_as_toml_reads_it(value: Any) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


def test_numbers_that_are_none_and_those_of_numpy_are_written_as_toml_has_them() -> None:
    assert [toml_value(x) for x in (math.nan, math.inf, -math.inf)] == ["nan", "inf", "-inf"]
    assert toml_value([np.float64(0.1), 1e16, 1e-7]) == "[0.1, 1e+16, 1e-07]"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "but is none"),
        ({"rate": None}, "but is none"),
        (b"bytes", "but is b'bytes'"),
        (datetime.date(2024, 5, 1), "but is datetime.date"),
        ({1, 2}, "but is {1, 2}"),
        ({3: "x"}, "the keys of a table must be strings, but one is 3."),
        (2**63, "whole numbers must fit in 64 bits."),
        (-(2**63) - 1, "whole numbers must fit in 64 bits."),
        (10**5000, "whole numbers must fit in 64 bits."),
        ("\udcff", r"'\udcff' is not valid Unicode."),
        ({"\ud800": 1}, "is not valid Unicode."),
        (nested(100_000), "a setting is nested too deeply."),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() else "value",
)
def test_what_toml_cannot_hold_is_not_written(value: object, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        toml_value(value)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[model]\nhiden = 3", 2, "there is no setting 'model.hiden'"),
        ("[modle]\nhidden = 3", 1, "there is no setting 'modle'"),
        ("\n# a comment\n\n[model]\n\n# hiden = 4\nhiden = 3\n", 7, "there is no setting 'model.hiden'"),
        ("model.hidden = 3\nmodel.layers = 0", 2, "model.layers must be at least 1"),
        ("model = {hidden = 3, layers = 0}", 1, "model.layers must be at least 1"),
        ("model = 3", 1, "model must be a section"),
        ("[[model]]\nhidden = 3", 1, "model must be a section"),
        ("[ 'model' . \"characters\" ]\n'cell' = 'x'\n\"hidden\" = 0", 3, "model.characters.hidden must be at least 1"),
        ("[model]\nhidden = [\n 3,\n 4,\n]\nlayers = 0", 6, "model.layers must be at least 1"),
        ("[model]\nlayers = 2\nhidden = [ # layers = 0\n 3,\n 'x',\n]\n", 3, "model.hidden must be"),
        ("[data]\ntrain = '''\n[model]\nlayers = 0\n'''\n[model]\nlayers = 0", 7, "model.layers must be at least 1"),
        ("[training]\r\nseed = 1\r\nepochs = 0\r\n", 3, "training.epochs must be at least 1"),
        ("\ufeff[training]\nepochs = 0", 2, "training.epochs must be at least 1"),
        ("[model]\ncell = {name = 'lstm', x = 1}\nskip = 'nun'", 3, "model.skip must be"),
        ("[data]\ntrain = 'a'\nvalid = 2024-05-01", 3, "data.valid: a setting must be"),
        ("[model]\nlayers = 1\ndropout = nan", 3, "model.dropout must be"),
        ("[model.characters]\ncell = 'none'\n[model]\nembedding = 0", 4, "disable both word and character"),
        ("[data]\ntokens = 'a'\nframes = 'b'", 3, "cannot be used together"),
        ('"model"."hid.den" = 3', 1, "there is no setting 'model.\"hid.den\"'"),
        ("# \u2028 is no line end\x0b\nmodel.layers = 0".replace("\x0b", ""), 2, "model.layers must be at least 1"),
    ],
)  # fmt: skip
def test_an_error_names_the_line_of_the_key(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    with pytest.raises(ConfigError) as refusal:
        Given.of_file(path).settings(TaggingSettings)
    assert str(refusal.value).startswith(f"{path}:{line}: ")
    assert message in str(refusal.value)


@given(before=st.integers(0, 40), after=st.integers(0, 40), long=st.integers(0, 30))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_line_is_right_wherever_the_key_stands(tmp_path: Path, before: int, after: int, long: int) -> None:
    path = tmp_path / "config.toml"
    lines = ["[data]", *["# text"] * before, "columns = [", *["  'a',"] * long, "]", "[model]", "layers = 0"]
    path.write_text("\n".join([*lines, *["# text"] * after]))
    with pytest.raises(ConfigError, match=f":{len(lines)}: model.layers must"):
        Given.of_file(path).settings(TaggingSettings)


def test_a_value_given_by_set_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[model]\nlayers = 2\n")
    with pytest.raises(ConfigError, match=r"^--set model\.layers=0: model\.layers must be at least 1"):
        Given.of_file(path).options(["model.layers=0"]).settings(TaggingSettings)
    with pytest.raises(ConfigError, match=r"^--set training\.epochs=0: training\.epochs must be at least 1"):
        Given.of_file(path).options(["training.epochs=0"]).settings(TaggingSettings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = 1\nb 2\n", ":2: this is not TOML: Expected '=' after a key in a key/value pair."),
        (b"a = 1\nb = [1,\n\n\n", ":2: this is not TOML: "),
        (b"a = 1\na = 2", ":2: this is not TOML: Cannot overwrite a value."),
        (b"a = 1\nb = '\xff'", ":2: this is not UTF-8 text (byte 11). A config is TOML."),
        (b"a = " + b"9" * 5000, " holds a number that is too long."),
        (b"a = " + b"[" * 5000 + b"]" * 5000, ""),
    ],
)
def test_a_file_that_is_not_toml_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refusal:
        read_toml(path)
    assert str(refusal.value).startswith(f"{path}{message}")


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no config file .*no\.toml\."):
        read_toml(tmp_path / "no.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_toml(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        read_toml(tmp_path / "file" / "config.toml")
    with pytest.raises(ConfigError, match="cannot be read: embedded null byte"):
        read_toml("a\0b.toml")


def test_a_file_of_too_many_values_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    for many in ("a = [" + "[]," * 100_001 + "]", "a = 1\n" * 100_001):
        file.write_text(many, "utf-8")
        with pytest.raises(ConfigError, match=r"a\.toml holds more than 100,000 values, so it is not a config file\."):
            read_toml(file)
    file.write_text(f"a = '{',' * 100_001}'", "utf-8")
    assert read_toml(file) == {"a": "," * 100_001}


def test_a_key_of_many_parts_is_refused_and_dots_in_strings_and_comments_are_not(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    many = "a" + ".a" * 40
    for key in (many, f"[{many}]\n#", f'b = {{c = """x""""", {many}', '"\\"#".' + "'\"' . " * 40 + "a"):
        file.write_text(f"{key} = 1", "utf-8")
        with pytest.raises(ConfigError, match=r"a\.toml is nested too deeply: a key has more than 32 parts\."):
            read_toml(file)
    for value in (f"'{many}'", f'"\\"{many}"', f'"""\n{many}\n""""', f"'''\n'{many}\n'''", f"1 # {many}", "[1.5, 2.5]"):
        file.write_text(f"b = {value}", "utf-8")
        assert read_toml(file) == tomllib.loads(file.read_text("utf-8"))


def test_an_error_in_a_very_large_config_comes_without_its_line(tmp_path: Path) -> None:
    for comment, place in (("#" * 1_000, ":3"), ("#" * 300_000, "")):
        (tmp_path / "a.toml").write_text(f"{comment}\n[model]\nlayers = 0\n", "utf-8")
        with pytest.raises(ConfigError, match=rf"a\.toml{place}: model.layers must be at least 1"):
            Given.of_file(tmp_path / "a.toml").settings(TaggingSettings)
