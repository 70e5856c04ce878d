"""What holds for every tokenizer: names, options, files, and what each may forget."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.named import catalogue
from recurra.text import Characters, Symbols, Tokenizer, Words, load_tokenizer, tokenizer

# Also lone surrogates: a text that is read must not fail on its way to the vocabulary.
ANY_TEXT = st.text(st.characters())
OWN = "tests.text.tokenizers.own_tokenizers:Commas"


def test_the_file_name_is_the_config_name() -> None:
    assert catalogue(Tokenizer) == ["characters", "subwords", "symbols", "words"]
    assert all(tokenizer(name).name == name for name in catalogue(Tokenizer))


@given(ANY_TEXT)
def test_characters_forget_nothing(text: str) -> None:
    tokens = Characters().split(text)
    assert Characters().join(tokens) == text
    assert all(len(token) == 1 for token in tokens)


@given(ANY_TEXT)
def test_lower_case_characters_forget_capitals_alone(text: str) -> None:
    assert Characters(lowercase=True).join(Characters(lowercase=True).split(text)) == text.lower()


@given(ANY_TEXT)
def test_symbols_forget_only_how_many_blanks_there_were(text: str) -> None:
    normalised = " ".join(text.split())
    assert Symbols().join(Symbols().split(text)) == normalised
    assert Symbols().split(normalised) == Symbols().split(text)


@pytest.mark.parametrize("name", catalogue(Tokenizer))
def test_what_learns_nothing_is_trained_as_it_is(name: str) -> None:
    made = tokenizer(name)
    if name != "subwords":
        assert made.trained(iter(["never read"])) is made


@pytest.mark.parametrize(
    "spec", ["words", "characters", "symbols", {"name": "words", "lowercase": True}, {"name": OWN, "strip": False}]
)
def test_a_tokenizer_comes_back_from_its_file(tmp_path: Path, spec: Any) -> None:
    made = tokenizer(spec)
    path = tmp_path / "tokenizer.json"
    made.save(path)
    back = load_tokenizer(path, spec)
    assert back == made
    assert back.to_json() == made.to_json() == json.loads(path.read_text(encoding="utf-8"))
    assert hash(back) == hash(made)
    assert tokenizer(made.to_json()) == made
    assert back.split("A b, c") == made.split("A b, c")


def test_options_and_kind_are_part_of_what_is_equal() -> None:
    assert Words() != Words(lowercase=True)
    assert Words() != Characters()
    assert Words() != "words"
    assert repr(Words(lowercase=True)) == "Words(lowercase=True)"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("word", "there is no tokenizer 'word'. Did you mean 'words'?"),
        ("vocabulary", "there is no tokenizer 'vocabulary'."),
        ("", "a tokenizer is named by a string such as 'characters', but found ''"),
        ({"name": 3}, "but found 3"),
        ({"lowercase": True}, "a tokenizer is a name or a table with a name, such as {name = 'words'}, but found"),
        (["words"], "a tokenizer is a name or a table with a name"),
        ({"name": "words", "lowercas": True}, "'words' has no option 'lowercas'. Did you mean 'lowercase'?"),
        ({"name": "words", "lowercase": "yes"}, "'words': lowercase must be true or false, but is 'yes'."),
        ({"name": "symbols", "lowercase": True}, "'symbols' has no option 'lowercase'."),
        ({"name": "subwords", "kind": "bpee"}, "kind must be 'bpe' or 'unigram', but is 'bpee'. Did you mean 'bpe'?"),
        (
            "recurra.text:Vocabulary",
            "is not a tokenizer: a tokenizer is a class that inherits from recurra's Tokenizer",
        ),
    ],
)
def test_a_tokenizer_that_cannot_be_is_refused_in_words(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        tokenizer(spec)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", 'a tokenizer must be a JSON object with a "name", or with the "model" of subwords.'),
        ("{}", 'a tokenizer must be a JSON object with a "name"'),
        ('{"name": "wrods"}', "there is no tokenizer 'wrods'. Did you mean 'words'?"),
        ('{"name": ["words"]}', "a tokenizer is named by a string"),
        ('{"name": "words", "lowercase": 1}', "'words': lowercase must be true or false, but is 1."),
        ('{"name": "words", "model": 1}', "'words' has no option 'model'."),
        ('{"name": "wor', "this is not JSON"),
    ],
)
def test_a_broken_file_is_refused_in_words(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(DataError) as refusal:
        load_tokenizer(path)
    assert str(refusal.value).startswith(str(path))
    assert message in str(refusal.value)


def test_the_json_of_another_tokenizer_is_refused() -> None:
    with pytest.raises(DataError, match="this is not the JSON of a 'words' tokenizer"):
        Words.from_json({"name": "characters"})
    with pytest.raises(DataError, match="this is not the JSON of a 'words' tokenizer"):
        Words.from_json(None)


def test_text_needs_neither_torch_nor_the_tokenizers_library_to_be_imported() -> None:
    code = (
        "import sys, recurra.text as text; text.tokenizer('words').split('a'); text.tokenizer('subwords'); "
        "assert not {'torch', 'tokenizers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
