"""From names to things, and the sentences that say why a name is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from recurra import Cell, ConfigError, Recurrent
from recurra.cells import build
from recurra.named import catalogue, find
from recurra.tasks.task import Task


def test_the_file_name_is_the_config_name() -> None:
    assert catalogue(Cell) == [
        "coupled_lstm",
        "dnc",
        "elman",
        "gru",
        "gru_d",
        "ind_rnn",
        "layer_norm_lstm",
        "lstm",
        "min_gru",
        "min_lstm",
        "ntm",
        "orthogonal_elman",
        "peephole_lstm",
        "slstm",
    ]
    assert all(build(name, 2, 4).name == name for name in catalogue(Cell))


def test_a_file_whose_class_is_of_another_kind_is_not_listed() -> None:
    assert "pair_texts" not in catalogue(Task)  # its class is PairTexts, which is no task


def test_a_misspelt_cell_is_refused_with_the_right_name() -> None:
    with pytest.raises(ConfigError, match=r"there is no cell 'lsmt'\. Did you mean 'lstm'\?"):
        find(Cell, "lsmt")


def test_a_users_own_cell_knows_its_name() -> None:
    assert build("tests.own_cells:Leaky", 3, 3).name == "tests.own_cells:Leaky"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rnn", "there is no cell 'rnn'"),
        ("", "a cell is named by a string such as 'coupled_lstm', but found ''"),
        ({"name": 3}, "but found 3"),
        ({"nam": "lstm"}, "a cell is a name or a table with a name"),
        (["lstm"], "a cell is a name or a table with a name"),
        ({"name": "lstm", "candidat": "tanh"}, "'lstm' has no option 'candidat'. Did you mean 'candidate'?"),
        ({"name": "lstm", "candidate": "tan"}, "candidate must be 'tanh' or 'sigmoid', but is 'tan'. Did you mean"),
        ({"name": "lstm", "bias": "yes"}, "bias must be true or false, but is 'yes'."),
        ({"name": "lstm", "forget_bias": True}, "forget_bias must be a number, but is True"),
        ({"name": "slstm", "heads": 1.5}, "heads must be a whole number, but is 1.5"),
        ({"name": "slstm", "heads": 3}, "heads must divide hidden_size = 4, but is 3"),
        ({"name": "peephole_lstm", "gates": "if"}, "gates must be a list of strings, but is 'if'"),
        ({"name": "peephole_lstm", "gates": ["i", "i"]}, "names 'i' twice"),
        ({"name": "peephole_lstm", "gates": ["g"]}, "a gate of gates = 'g' is not known. Known: i, f, o."),
        ({"name": "elman", "activation": "thanh"}, "activation = 'thanh' is not known. Did you mean 'tanh'?"),
        ({"name": "elman", "activation": "tests.own_cells:NOT_A_CELL"}, "is not a function"),
        ({"name": "orthogonal_elman", "activation": "modrel"}, "Did you mean 'modrelu'?"),
        ({"name": "orthogonal_elman", "margin": 1.0}, "must be at least 0 and below 1, but is 1.0"),
        ({"name": "orthogonal_elman", "unitary": True}, "an even hidden_size, but it is 3"),
        ({"name": "orthogonal_elman", "state_init": "randm"}, "Did you mean 'random'?"),
        ({"name": "ind_rnn", "horizon": 0}, "horizon must be a whole number of at least 1, but is 0"),
        ({"name": "lstm", "state_init": "orthogonl"}, "Did you mean 'orthogonal'?"),
        ("tests.own_cells:Leeky", "'tests.own_cells' has no 'Leeky'. Did you mean 'Leaky'?"),
        ("tests.no_such:Leaky", "importing 'tests.no_such' failed"),
        (":Leaky", "the cell ':Leaky' cannot be loaded: your own is named as 'package.module:Class'"),
        (
            "tests/own_cells:Leaky",
            "'package.module:Class', with names that Python code could use.",
        ),
        ("..own_cells:Leaky", "your own is named as 'package.module:Class'"),
        ("tests.own_cells:Leaky:", "your own is named as 'package.module:Class'"),
        ("tests.own_cells:NOT_A_CELL", "is not a cell: a cell is a class that inherits from recurra's Cell"),
        ("tests.own_cells:Difference", "is not a cell"),
    ],
)
def test_a_cell_that_cannot_be_is_refused_in_words(spec: Any, message: str) -> None:
    hidden = 3 if "even" in message else 4
    with pytest.raises(ConfigError) as refusal:
        build(spec, 3, hidden)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 4), "input_size must be a whole number of at least 1, but is 0"),
        ((3, -1), "hidden_size must be a whole number of at least 1, but is -1"),
        ((3, 2.5), "hidden_size must be a whole number of at least 1, but is 2.5"),
        ((True, 4), "input_size must be a whole number of at least 1, but is True"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes: tuple[Any, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build("gru", *sizes)


@pytest.mark.parametrize("activation", ["tests.own_cells:softsign", "torch:erf"])
def test_an_activation_may_be_the_users_own_function(activation: str) -> None:
    rnn = Recurrent({"name": "elman", "activation": activation}, 2, 3)
    assert rnn.engine_report().layers[0].engine.name != "vendor"
    y, _ = rnn.step(torch.ones(1, 2))
    weight = rnn.get_parameter("cells.0.0.from_input.weight")
    a = weight.sum(1, keepdim=True).T
    expected = a / (1 + a.abs()) if "softsign" in activation else torch.erf(a)
    torch.testing.assert_close(y, expected)


def test_a_message_says_an_attention_and_a_cell() -> None:
    from recurra.attention import Attention

    with pytest.raises(ConfigError, match=r"^json:loads is not an attention: an attention is a class that inherits"):
        find(Attention, "json:loads")
    with pytest.raises(ConfigError, match=r"^json:loads is not a cell: a cell is a class that inherits"):
        find(Cell, "json:loads")
