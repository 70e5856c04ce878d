"""Texts that vector to sequence draws of what it is given: by what seed, how probable, and what is refused."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import recurra
from recurra import ConfigError, DataError, Trained
from recurra.cli import main
from recurra.training.writing import Generated, generate
from recurra.views.pixels import write_png
from tests.tasks.small_givens import COLOURS, colours, picture, pixels, trained, untrained


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("names")
    return trained(folder, colours(folder), "training.steps=40", "training.precision=float64")


def texts(found: list[Generated]) -> list[str]:
    return [each.text for each in found]


def test_the_same_seed_gives_the_same_names_and_the_first_of_five_is_the_one_alone(names: Trained) -> None:
    five = generate(names, "200 100 100", count=5, seed=3)
    assert generate(names, "200 100 100", count=5, seed=3) == five
    [alone] = generate(names, "200 100 100", seed=3)
    assert alone.text == five[0].text
    assert alone.log_probability == pytest.approx(five[0].log_probability)
    others = {*texts(generate(names, "200 100 100", count=5, seed=4))}
    assert len({*texts(five)}) > 1
    assert others != {*texts(five)}
    assert texts(recurra.generate(names, "200 100 100", count=5, seed=3)) == texts(five)


def test_a_prompt_is_written_as_it_is_asked_and_alike_wherever_it_stands(names: Trained) -> None:
    several = ["0 0 9", "200 100 100", [200, 100, 100], np.array([200, 100, 100]), "[200, 100, 100]"]
    found = generate(names, several, count=2)
    assert len(found) == 10
    assert {each.prompt for each in found[2:]} == {"200 100 100"}
    assert texts(found[2:4]) == texts(found[4:6]) == texts(found[6:8]) == texts(found[8:])
    assert texts(found[2:4]) == texts(generate(names, "200 100 100", count=2))
    assert texts(generate(names, np.array([[200, 100, 100]]), count=2)) == texts(found[2:4])


def test_names_are_as_frequent_as_they_are_probable(names: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 400
    drawn = generate(names, "120 30 30", count=count, seed=1)
    frequent, times = Counter(texts(drawn)).most_common(1)[0]
    p = np.exp(next(each.log_probability for each in drawn if each.text == frequent))
    assert times == pytest.approx(count * p, abs=4 * (count * p * (1 - p)) ** 0.5 + 1)
    monkeypatch.setattr("recurra.generation.describer.MOST_ROWS", 7)
    assert texts(generate(names, "120 30 30", count=count, seed=1)) == texts(drawn)


def test_the_log_probability_is_the_one_that_the_model_gives_the_text(names: Trained, tmp_path: Path) -> None:
    found = [each for each in generate(names, "10 200 30", count=4, temperature=0.7) if each.ended]
    assert found
    for each in found:
        assert each.tokens == [*each.text, "</s>"]
        file = tmp_path / "asked.tsv"
        file.write_text(f"{each.text}\t10\t200\t30\n")
        [scored] = names.with_settings(["decoding.search=given"]).predict_file(str(file), [])
        assert scored.score == pytest.approx(each.log_probability, abs=1e-9)


def test_temperature_0_is_greedy_and_a_length_cuts_off(names: Trained) -> None:
    for name, rgb in COLOURS[:3]:
        prompt = " ".join(map(str, rgb))
        [found] = generate(names, prompt, temperature=0)
        assert found.text == names.predict([prompt], search="greedy")[0].output
        [short] = generate(names, prompt, temperature=0, length=2)
        assert (short.text, short.ended) == (found.text[:2], False), name
    assert {each.text[:1] for each in generate(names, "255 0 0", count=20, top_k=1)} == {
        generate(names, "255 0 0", top_k=1)[0].text[:1]
    }


def test_the_command_line_writes_one_a_line_or_json(names: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(names.folder)
    assert main(["generate", run, "--prompt", "255 0 0", "--count", "3", "--seed", "2", "--temperature", "0.8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = generate(names, "255 0 0", count=3, seed=2, temperature=0.8)
    assert lines == texts(expected)
    assert (
        main(["generate", run, "--prompt", "255 0 0", "--count", "3", "--seed", "2", "--temperature", "0.8", "--json"])
        == 0
    )
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["text"] for each in found] == texts(expected)
    assert {*found[0]} == {"prompt", "text", "whole", "tokens", "log_probability", "ended"}
    assert found[0]["prompt"] == "255 0 0"


def test_every_line_of_a_file_is_written_of(
    names: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "asked.txt").write_text("255 0 0\n0 0 255\n")
    assert main(["generate", str(names.folder), "--prompts", str(tmp_path / "asked.txt"), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["line"], each["text"]) for each in found] == [
        *enumerate(texts(generate(names, ["255 0 0", "0 0 255"])), 1)
    ]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 2 3\n1 2\n")))
    assert main(["generate", str(names.folder), "--prompts", "-"]) == 2
    assert "recurra: -:2: found 2 numbers, but training has 3." in capsys.readouterr().err


def test_a_picture_is_written_of_by_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    model = untrained(tmp_path, pixels(tmp_path), "decoding.max_length=6")
    (tmp_path / "a.png").write_bytes(write_png(picture(2)))
    found = generate(model, str(tmp_path / "a.png"), count=2)
    assert texts(found) == texts(generate(model, [picture(2)], count=2))
    assert found[0].prompt == str(tmp_path / "a.png")
    assert main(["generate", str(model.folder), "--prompt", str(tmp_path / "none.png")]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the prompt '' has no input: give numbers such as '255 0 0', or the path of a picture"),
        (["--prompt", "255 0"], "input:1: found 2 numbers, but training has 3"),
        (["--prompt", "red"], "input:1: 'vector' must hold numbers"),
        (
            ["--prompt", "1 2 3", "--until", "e"],
            "until has no effect here: the generated text has its",
        ),
        (["--prompt", "1 2 3", "--temperature", "-1"], "temperature must be a number of at least 0, but is -1.0"),
        (["--prompt", "1 2 3", "--count", "0"], "count must be a whole number of at least 1"),
        (["--prompt", "1 2 3", "--length", "0"], "length must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_written_is_said(
    names: Trained, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(names.folder), *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("\n") == 1


def test_a_flat_list_of_numbers_is_no_list_of_prompts(names: Trained) -> None:
    with pytest.raises(DataError, match=r"the prompt 255 has no input: .*in Python also .* \[\[255, 0, 0\]\]"):
        generate(names, [255, 0, 0])
    with pytest.raises(ConfigError, match="top_p"):
        generate(names, "1 2 3", top_p=0)


def test_unknown_tokens_are_written_only_where_they_may_be(tmp_path: Path) -> None:
    model = untrained(tmp_path, colours(tmp_path), "data.target.max_size=6")
    assert all("<unk>" not in each.tokens for each in generate(model, "1 2 3", count=30, length=8))
    assert any("<unk>" in each.tokens for each in generate(model, "1 2 3", count=30, length=8, allow_unknown=True))


def test_several_runs_write_together(tmp_path: Path) -> None:
    other = untrained(tmp_path, colours(tmp_path))
    both = recurra.load([other.folder, other.folder])
    assert texts(generate(both, "1 2 3", count=3, length=5)) == texts(generate(other, "1 2 3", count=3, length=5))
