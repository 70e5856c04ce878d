"""Words to be followed, and the automaton that is found in a network whose weights are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Generator

from recurra.analysis.automata import PROBLEMS, all_words
from recurra.analysis.extraction import extracted
from recurra.analysis.problems import Answering
from recurra.analysis.tracking import SILENT, Tracking, accepted
from recurra.analysis.widths import size_of, width_for
from recurra.errors import ConfigError
from recurra.stacks.recurrent import Recurrent


def parity_by_hand(steep: float = 40.0) -> Answering:
    """Elman with sigmoid: one unit is x OR p, one is x AND p, and p, their difference, is the parity so far."""
    network = Answering({"name": "elman", "activation": "sigmoid"}, 2, 2, 2)
    cell = network.rnn.cells[0][0]  # type: ignore[index]
    with torch.no_grad():
        cell.from_input.weight.copy_(steep * torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
        cell.from_input.bias.copy_(steep * torch.tensor([-0.5, -1.5]))
        cell.from_state.copy_(steep * torch.tensor([[1.0, -1.0], [1.0, -1.0]]))
        network.head.weight.copy_(torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
        network.head.bias.copy_(torch.tensor([0.5, -0.5]))
    return network.eval()


def test_a_network_that_computes_parity_is_right_at_any_length_and_shows_two_states() -> None:
    problem, network = Tracking("parity", 4), parity_by_hand()
    assert problem.right(network, 200, rows=50) == 1.0
    found = extracted(network, problem)
    assert found.is_right
    assert (found.automaton.states, found.disagreement) == (2, 0.0)


def test_a_network_that_forgets_shows_another_automaton_and_is_right_half_of_the_time() -> None:
    problem, network = Tracking("parity", 4), parity_by_hand()
    with torch.no_grad():
        network.rnn.cells[0][0].from_state.zero_()  # type: ignore[index]  # it says whether the last symbol is 1
    assert problem.right(network, 50) == pytest.approx(0.5, abs=0.05)
    found = extracted(network, problem)
    assert not found.is_right
    assert found.disagreement == 0.0
    assert found.automaton.moves.tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("name", ["parity", "tomita2", "tomita4"])
def test_targets_are_what_the_automaton_says_and_padding_is_silent(name: str) -> None:
    problem = Tracking(name, 9)
    x, y = problem.draw(40, Generator().manual_seed(3))
    words = x.values.argmax(2).numpy()
    real = torch.arange(9) < x.lengths.unsqueeze(1)
    assert (y[~real] == SILENT).all()
    assert (y.numpy()[real.numpy()] == problem.automaton.read(words)[real.numpy()]).all()
    assert int(x.lengths.min()) < int(x.lengths.max()) == 9
    again = problem.draw(40, Generator().manual_seed(3))
    assert torch.equal(y, again[1])


def test_words_of_a_language_are_drawn_evenly_and_as_often_as_others() -> None:
    automaton = PROBLEMS["tomita4"].automaton()
    words = accepted(automaton, np.full(6000, 4), np.random.default_rng(1))
    every = all_words(2, 4)
    belong = every[automaton.read(every)[:, -1] == 1]
    found, counts = np.unique(words, axis=0, return_counts=True)
    assert found.tolist() == belong.tolist()  # 13 of 16 words have no 000
    assert counts.min() > 0.75 * 6000 / len(belong)
    for name in ("tomita1", "tomita4", "tomita7"):
        problem = Tracking(name, 20)
        drawn = problem.words(np.full(2000, 20), Generator().manual_seed(0))
        assert problem.automaton.read(drawn)[:, -1].mean() == pytest.approx(0.5, abs=0.05)


def test_without_memory_parity_costs_hardly_less_than_a_coin() -> None:
    # The first symbol tells the parity of itself; from the second on, a coin.
    assert 0.6 < Tracking("parity", 16).without_memory < np.log(2)
    uniform = Tracking("parity", 16)
    _, y = uniform.draw(50, Generator().manual_seed(0))
    assert uniform.loss(torch.zeros(50, 16, 2), y).item() == pytest.approx(np.log(2))


def test_a_width_is_found_at_which_networks_are_as_large() -> None:
    wanted = size_of(Recurrent("lstm", 8, 32))
    width = width_for(wanted, lambda width: size_of(Recurrent("elman", 8, width)))
    sizes = [abs(size_of(Recurrent("elman", 8, each)) - wanted) for each in (width - 1, width, width + 1)]
    assert min(sizes) == sizes[1]
    heads = width_for(wanted, lambda width: size_of(Recurrent({"name": "slstm", "heads": 4}, 8, width)))
    assert heads % 4 == 0
    with pytest.raises(ConfigError, match="never"):
        width_for(10, refused)


def refused(width: int) -> int:
    raise ConfigError(f"{width} is never possible")
