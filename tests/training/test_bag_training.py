"""Training a table of which a step meets few rows: the same weights as a dense one, and resumed bit for bit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from recurra.errors import ConfigError
from recurra.models.saved import read_tensors
from recurra.runs import Setup, begin, resume, setup
from recurra.settings import SettingError
from recurra.training.optimisation import Average, optimiser, optimisers, sparse_tables
from recurra.training.progress import Silent

SMALL = [
    "model.encoder=bag",
    "model.bag.size=6",
    "model.bag.buckets=50",
    "model.dropout=0.2",
    "training.batch_size=4",
    "training.threads=1",
    "training.device=cpu",
    "data.cache=false",
]


def small_setup(folder: Path, *overrides: str) -> Setup:
    """Texts that ask for a thing or thank for it."""
    draw = random.Random(0)
    for name, count in (("train", 30), ("valid", 10)):
        lines = []
        for _ in range(count):
            label, words = draw.choice([("ask", ["may", "i", "have"]), ("thank", ["thanks", "for", "my"])])
            lines.append(" ".join([*words, draw.choice(["tea", "milk", f"no{draw.randint(0, 50)}"])]) + f"\t{label}\n")
        (folder / f"{name}.tsv").write_text("".join(lines), "utf-8")
    given = {"train": str(folder / "train.tsv"), "valid": str(folder / "valid.tsv")}
    return setup("classification", given=given, overrides=[*SMALL, *overrides])


def weights(run: Path) -> dict[str, Tensor]:
    return read_tensors(run / "last" / "checkpoint.safetensors")[0]


@pytest.mark.parametrize(
    "others", [[], ["training.clip=0.01"], ["training.clip_value=0.001"], ["training.accumulate=3"]], ids=str
)
def test_a_sparse_and_a_dense_table_learn_the_same_by_sgd(tmp_path: Path, others: list[str]) -> None:
    for sparse in ("true", "false"):
        plain = [f"model.bag.sparse={sparse}", "training.optimizer=sgd", "training.learning_rate=0.5"]
        begin(small_setup(tmp_path, *plain, "training.epochs=3", *others), tmp_path / sparse, Silent())
    found, wanted = weights(tmp_path / "true"), weights(tmp_path / "false")
    table = "model.encoders.0.table.weight"
    assert found[table].abs().max() > 0
    for name in (table, "model.readouts.0.weight", "average.readouts.0.bias"):
        torch.testing.assert_close(found[name], wanted[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["adam", "adagrad", "sgd"])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path, name: str) -> None:
    plain = [f"training.optimizer={name}", "training.schedule=constant", "training.warmup=0"]
    begin(small_setup(tmp_path, *plain, "training.epochs=4"), tmp_path / "one", Silent())
    begin(small_setup(tmp_path, *plain, "training.epochs=2"), tmp_path / "two", Silent())
    resume(tmp_path / "two", Silent(), overrides=["training.epochs=4"])
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)
    if name == "adam":
        assert "optimiser.encoders.0.table.weight|exp_avg" in one


def test_several_threads_learn_what_one_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.encoders.c_bag.WORTH_A_THREAD", 16)
    before = torch.get_num_threads()
    try:
        for run, threads in (("one", 1), ("two", 2), ("again", 2)):
            this = small_setup(tmp_path, "training.epochs=2", f"training.threads={threads}")
            begin(this, tmp_path / run, Silent())
    finally:
        torch.set_num_threads(before)
    one, two, again = (weights(tmp_path / run) for run in ("one", "two", "again"))
    table = "model.encoders.0.table.weight"
    torch.testing.assert_close(one[table], two[table], atol=1e-5, rtol=1e-4)
    assert all(torch.equal(two[name], again[name]) for name in two)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 2, sparse=True)
        self.out = nn.Linear(2, 1)


def test_a_table_is_not_averaged_but_shared() -> None:
    model = Reader()
    average = Average("ema", model)
    assert isinstance(average.model, Reader)
    assert average.model.table.weight is model.table.weight
    before = model.out.weight.detach().clone()
    with torch.no_grad():
        model.out.weight += 1.0
        model.table.weight += 1.0
    average.update(model, 0, 0.0)
    torch.testing.assert_close(average.model.out.weight, before + 0.9, check_stride=False)
    assert model.table.weight.requires_grad
    assert not average.model.out.weight.requires_grad


def test_tables_have_an_optimiser_of_their_own() -> None:
    model = Reader()
    [table] = sparse_tables(model)
    assert table is model.table.weight
    found = [(names, type(one).__name__) for names, one in optimisers("adam", model, 0.1)]
    assert found == [(["out.weight", "out.bias"], "Adam"), (["table.weight"], "LazyAdam")]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("rmsprop", "'rmsprop' does not support sparse gradients: use adagrad, adam, sgd, or set"),
        ({"name": "sgd", "momentum": 0.9}, "with momentum or weight_decay does not support sparse gradients:"),
        ({"name": "adam", "amsgrad": True}, "'adam' has no option 'amsgrad' with sparse gradients"),
        ({"name": "adam", "betas": [1.0, 0.9]}, "cannot be created: betas must be between 0 and 1"),
    ],
)
def test_an_optimiser_that_needs_all_rows_is_refused(part: str | dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        optimiser(part, [torch.zeros(2, 2, requires_grad=True)], 0.1, sparse=True)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model.bag.buckets=0", "model.bag.buckets must be at least 1, but is 0"),
        ("model.bag.words=0", "model.bag.words must be at least 1, but is 0"),
        ("model.bag.dropout=1.5", "model.bag.dropout must"),
        ("model.bag.gain=0", "model.bag.gain must be above 0, but is 0"),
        ("model.bag.characters=[5, 3]", r"model.bag.characters must be the shortest and the longest n-gram, as in"),
        ("model.bag.characters=[3]", r"but is \[3\]"),
        ("model.members=['bag', 'tree']", "model.members must name rnn, pyramid, transformer, cnn and bag"),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        small_setup(tmp_path, override)


def test_a_bag_is_a_member_of_an_ensemble(tmp_path: Path) -> None:
    few = ["model.encoder=ensemble", "model.members=['bag', 'cnn']", "model.embedding=4", "model.convolution.filters=3"]
    few += ["model.characters.cell=none", "training.steps=3"]
    begin(small_setup(tmp_path, *few), tmp_path / "run", Silent())
    assert {"model.encoders.0.table.weight", "model.readers.0.embedding.weight"} <= weights(tmp_path / "run").keys()


def test_a_bag_of_numbers_is_refused(tmp_path: Path) -> None:
    rows = ['{"frames": [1, 2], "label": "a"}', '{"frames": [1], "label": "b"}']
    (tmp_path / "train.jsonl").write_text("\n".join(rows), "utf-8")
    this = setup("classification", given={"train": str(tmp_path / "train.jsonl")}, overrides=SMALL)
    with pytest.raises(ConfigError, match=r"a bag of n-grams needs text, but data.frames is a series of numbers"):
        begin(this, tmp_path / "run", Silent())


def test_the_encoding_is_part_of_the_mark_of_the_cache(tmp_path: Path) -> None:
    marks = []
    recurrent = setup("classification", overrides=["model.encoder=rnn"])
    bags = [small_setup(tmp_path, *each) for each in ([], ["model.bag.buckets=7"], ["model.bag.size=9"])]
    for this in (recurrent, *bags):
        marks.append(str(this.kind.encoding(this.settings)))
    assert len({*marks}) == 3
    assert marks[1] == marks[3]
