"""The recipes of sequence to sequence with a reversed source and of char-RNN: they load, and their models learn."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

from recurra import generate
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import load

ROOT = Path(__file__).parent.parent
BRIEF = ["training.device=cpu", "training.threads=1", "data.cache=false"]


def test_sutskever_reads_the_source_from_its_end_and_hands_its_states_over() -> None:
    settings = setup(str(ROOT / "recipes" / "sutskever.toml")).settings
    model = settings.model
    assert (model.direction, model.bidirectional, model.attention, model.bridge) == (
        "backward",
        False,
        "none",
        "identity",
    )
    assert model.encoder_widths == model.decoder_widths == (512,) * 4
    assert (settings.training.loss, settings.training.clip, settings.decoding.width) == ("sequence", 5.0, 12)


def test_char_rnn_reads_characters_in_chunks_of_fifty() -> None:
    settings = setup(str(ROOT / "recipes" / "char_rnn.toml")).settings
    assert settings.data.text.tokens == "characters"
    assert settings.model.widths == (128, 128)
    assert (settings.reading.steps, settings.training.batch_size, settings.training.clip_value) == (50, 50, 5.0)


@pytest.mark.parametrize("name", ["sutskever", "char_rnn"])
def test_a_benchmark_is_imported_without_data(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.RECIPE.is_file()


@pytest.mark.slow
def test_a_reversed_source_is_learned_faster_than_one_as_it_is(tmp_path: Path) -> None:
    """Letters are said in their order: read backward, the first letter that is said has been read last."""
    draw, lines = random.Random(1), []
    for _ in range(600):
        word = [draw.choice("abcdefgh") for _ in range(draw.randint(5, 8))]
        lines.append(f"{' '.join(word)}\t{' '.join(letter.upper() for letter in word)}\n")
    (tmp_path / "train.tsv").write_text("".join(lines[100:]))
    (tmp_path / "test.tsv").write_text("".join(lines[:100]))
    small = [*BRIEF, "model.hidden=48", "model.embedding=16", "model.layers=2", "model.dropout=0", "training.steps=400"]
    small += ["training.batch_size=32", "training.learning_rate=0.005", "training.warmup=20", "decoding.width=3"]
    found = {}
    for direction in ("forward", "backward"):
        own = [*small, f"model.direction={direction}"]
        this = setup(str(ROOT / "recipes" / "sutskever.toml"), given={"train": tmp_path / "train.tsv"}, overrides=own)
        begin(this, tmp_path / direction, Silent())
        found[direction] = load(tmp_path / direction).evaluate(tmp_path / "test.tsv").values
    assert found["backward"]["perplexity"] < found["forward"]["perplexity"]
    assert found["backward"]["symbol_error_rate"] < 0.2


@pytest.mark.slow
def test_char_rnn_learns_a_rhyme_by_heart(tmp_path: Path) -> None:
    text = "one two buckle my shoe\nthree four knock at the door\nfive six pick up sticks\n" * 20
    (tmp_path / "rhyme.txt").write_text(text)
    small = [*BRIEF, "model.hidden=64", "model.embedding=16", "training.batch_size=4", "training.steps=300"]
    this = setup(str(ROOT / "recipes" / "char_rnn.toml"), given={"train": str(tmp_path / "rhyme.txt")}, overrides=small)
    begin(this, tmp_path / "run", Silent())
    model = load(tmp_path / "run")
    assert model.evaluate(tmp_path / "rhyme.txt").values["bits_per_character"] < 0.5
    [found] = generate(model, "three four", temperature=0, until="\n")
    assert found.text == " knock at the door"
