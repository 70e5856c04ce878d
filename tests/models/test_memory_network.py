"""The end-to-end memory network computes its equations, whatever else is in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.attention.hops import hop, place_weights, position_weights, with_empty
from recurra.config import QuestionAnsweringModel
from recurra.models.memory_network import MemoryNetwork, batched
from recurra.stacks.recurrent import Recurrent

Array = NDArray[np.float64]
STORY = [[1, 2, 3], [4, 2], [5, 6, 1, 3]]
QUESTION = [2, 7]
ANSWERS = [3, 6, 7]
LONGEST = 3
"""Of the sentences of STORY, one is longer."""


def encoded(sentences: list[list[int]], question: list[int], answer: int = 0) -> dict[str, NDArray[Any]]:
    return {
        "words": np.array([word for each in sentences for word in each], np.int32),
        "widths": np.array([len(each) for each in sentences], np.int32),
        "question": np.array(question, np.int32),
        "answer": np.array([answer], np.int32),
    }


def network(**settings: Any) -> MemoryNetwork:
    torch.manual_seed(3)
    model = QuestionAnsweringModel(hidden=4, memories=5, spread=0.7, longest=LONGEST, **settings)
    found = MemoryNetwork(model, 9, ANSWERS)
    return found.double().eval()


def sentence(table: Array, words: list[int], kind: str) -> Array:
    """Σ_j l_j ∘ A x_j, a word after the other."""
    d, J = table.shape[1], len(words)
    total = np.zeros(d)
    for j, word in enumerate(words, 1):
        for k in range(1, d + 1):
            weight = {
                "position": (1 - j / J) - (k / d) * (1 - 2 * j / J),
                "place": placed(j, k, d, LONGEST),
                "bag": 1.0,
            }[kind]
            total[k - 1] += weight * table[word, k - 1]
    return total


def placed(j: int, k: int, d: int, J: int) -> float:
    """l_kj of sentence = place."""
    return 1 + 4 * (k - (d + 1) / 2) * (min(j, J) - (J + 1) / 2) / (d * J)


def by_hand(net: MemoryNetwork, sentences: list[list[int]], question: list[int], linear: bool) -> tuple[Array, Array]:
    """The scores of the answers and what each hop looked at, the oldest first; from the equations."""
    settings = net.settings
    tables = net.tables.detach().numpy()
    times = None if net.times is None else net.times.detach().numpy()
    is_adjacent = settings.tying == "adjacent"
    u = sentence(tables[0 if is_adjacent else 2], question, settings.sentence)
    newest = sentences[::-1][: settings.memories]
    looked = []
    for k in range(settings.hops):
        a = k if is_adjacent else 0
        m, c = (
            np.array(
                [
                    sentence(tables[which], words, settings.sentence) + (0 if times is None else times[which][i])
                    for i, words in enumerate(newest)
                ]
            )
            for which in (a, a + 1)
        )
        scores = m @ u
        vacant = settings.memories - len(newest) if settings.vacant else 0  # each with the score 0
        p = scores if linear else np.exp(scores) / (np.exp(scores).sum() + vacant)
        o = p @ c
        u = (u if net.between is None else net.between.detach().numpy() @ u) + o
        looked.append(p[::-1])
    W = tables[-1][ANSWERS] if net.readout is None else net.readout.detach().numpy()
    return W @ u, np.array(looked)


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
@pytest.mark.parametrize("kind", ["position", "place", "bag"])
@pytest.mark.parametrize("temporal", [True, False])
@pytest.mark.parametrize(("linear", "vacant"), [(True, True), (False, True), (False, False)])
def test_a_network_is_its_equations(tying: str, kind: str, temporal: bool, linear: bool, vacant: bool) -> None:
    net = network(tying=tying, sentence=kind, temporal=temporal, vacant=vacant, hops=3)
    net.is_linear.fill_(linear)
    scores, looked = by_hand(net, STORY, QUESTION, linear)
    # Beside a longer story and one without a sentence, whose padding must not matter.
    rows = [encoded(STORY, QUESTION), encoded([[8] * 6] * 4, [1, 2, 3, 4]), encoded([], [1])]
    found, _ = net(batched(rows, 5))
    np.testing.assert_allclose(found[0].detach().numpy(), scores, rtol=1e-12, atol=1e-12)
    [output, *_] = net.predict(batched(rows, 5), detail=True)
    assert output.attention is not None
    np.testing.assert_allclose(output.attention, looked, rtol=1e-12, atol=1e-12)
    shares = np.exp(scores - scores.max())
    np.testing.assert_allclose(output.probabilities, shares / shares.sum(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("vacant", [True, False])
def test_a_question_without_a_story_is_answered_alone_as_beside_others(vacant: bool) -> None:
    net = network(vacant=vacant)
    [alone] = net.predict(batched([encoded([], QUESTION)], 5), detail=True)
    [_, beside] = net.predict(batched([encoded(STORY, QUESTION), encoded([], QUESTION)], 5), detail=True)
    np.testing.assert_allclose(alone.probabilities, beside.probabilities, rtol=0, atol=1e-12)
    assert alone.attention is not None
    assert alone.attention.shape == (3, 0)


def test_only_the_last_sentences_are_read() -> None:
    net, many = network(), [[n % 8 + 1, 2] for n in range(9)]
    _, looked = by_hand(net, many[-5:], QUESTION, False)
    [output] = net.predict(batched([encoded(many, QUESTION)], 5), detail=True)
    assert output.attention is not None
    assert (output.sentences, output.attention.shape) == (5, (3, 5))
    np.testing.assert_allclose(output.attention, looked, rtol=0, atol=1e-12)


def test_sentences_read_by_a_cell_are_its_last_states() -> None:
    net = network(sentence="recurrent", cell="gru", engine="loop", hops=1, vacant=False)
    assert net.reader is not None
    assert net.embedding is not None

    def last(words: list[int]) -> Array:
        h = net.read(torch.tensor([words]), torch.tensor([len(words)]))
        return np.asarray(h[0].detach().numpy())

    A, C = net.tables.detach().numpy()
    T = net.times.detach().numpy()  # type: ignore[union-attr]
    newest = [last(words) for words in STORY[::-1]]
    m = np.array([s @ A + T[0, i] for i, s in enumerate(newest)])
    c = np.array([s @ C + T[1, i] for i, s in enumerate(newest)])
    u = last(QUESTION) @ A
    p = np.exp(m @ u) / np.exp(m @ u).sum()
    scores = net.readout.detach().numpy() @ (u + p @ c)  # type: ignore[union-attr]
    found, _ = net(batched([encoded(STORY, QUESTION), encoded([[1]], [2, 3, 4, 5])], 5))
    np.testing.assert_allclose(found[0].detach().numpy(), scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("mix", "skip"), [("last", "residual"), ("last", "none"), ("concat", "none"), ("mean", "highway")]
)
def test_a_stack_reads_each_sentence_as_it_reads_it_alone_word_by_word(direction: str, mix: str, skip: str) -> None:
    net = network(sentence="recurrent", cell="lstm", layers=2, direction=direction, mix=mix, skip=skip, engine="loop")
    assert net.reader is not None
    assert net.embedding is not None
    widest = max(map(len, STORY))
    words = torch.tensor([each + [0] * (widest - len(each)) for each in [*STORY, []]])
    found = net.read(words, torch.tensor([*map(len, STORY), 0]))
    assert found.shape[1] == net.tables.shape[1] == (8 if mix == "concat" else 4)
    stepped = Recurrent("lstm", 4, 4, layers=2, mix=mix, skip=skip).double().eval()  # type: ignore[arg-type]
    stepped.load_state_dict(net.reader.state_dict())
    for row, sentence in zip(found, STORY, strict=False):
        states = stepped.start(1, net.embedding)
        for word in sentence if direction == "forward" else reversed(sentence):
            output, states = stepped.step(net.embedding[word : word + 1], states)
        np.testing.assert_allclose(row.detach().numpy(), output[0].detach().numpy(), rtol=0, atol=1e-12)
    assert not found[-1].any()


@pytest.mark.parametrize("vacant", [True, False])
def test_gradients_are_those_of_finite_differences(vacant: bool) -> None:
    net = network(tying="layerwise", hops=2, vacant=vacant)
    batch = batched([encoded(STORY, QUESTION, 1), encoded([[8], [7, 7]], [3], 2)], 5)
    parameters = [each.detach().clone().requires_grad_() for each in net.parameters()]
    names = [name for name, _ in net.named_parameters()]

    def run(*values: torch.Tensor) -> torch.Tensor:
        scores, _ = torch.func.functional_call(net, dict(zip(names, values, strict=True)), (batch,))
        return torch.nn.functional.cross_entropy(scores, batch.answer)

    assert torch.autograd.gradcheck(run, parameters, atol=1e-6)


def test_no_memory_at_all_leaves_the_question() -> None:
    u = torch.randn(2, 3)
    o, p = hop(u, torch.randn(2, 4, 3), torch.randn(2, 4, 3), torch.zeros(2, 4, dtype=torch.bool), torch.tensor(False))
    assert (o == 0).all()
    assert (p == 0).all()


def test_large_scores_beside_vacant_places_stay_finite() -> None:
    keys = torch.tensor([[300.0], [-300.0]])
    for u, shares in ((torch.tensor([1.0]), [1.0, 0.0]), (torch.tensor([0.0]), [0.2, 0.2])):
        _, p = hop(u, keys, keys, torch.tensor([True, True]), torch.tensor(False), vacant=3)
        assert p.tolist() == pytest.approx(shares)
    _, p = hop(torch.tensor([1.0]), -keys.abs(), keys, torch.tensor([True, True]), torch.tensor(False), vacant=3)
    assert p.tolist() == [0, 0]  # all weight is on places without a sentence


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.floats(0, 1), st.integers(0, 1000))
def test_empty_memories_keep_every_sentence_in_order(lengths: list[int], noise: float, seed: int) -> None:
    torch.manual_seed(seed)
    places = with_empty(torch.tensor(lengths), max(lengths), noise)
    for n, row, present in zip(lengths, places.sentence.tolist(), places.present.tolist(), strict=True):
        assert [each for each in row if each >= 0] == list(range(n))
        assert n <= present <= n + int(np.ceil(n * noise))
        assert all(each < 0 for each in row[present:])


def test_empty_memories_take_no_more_places_than_are_free() -> None:
    torch.manual_seed(1)
    places = with_empty(torch.tensor([4, 3, 1] * 20), 4, 1.0, 4)
    assert [set(places.present[number::3].tolist()) for number in range(3)] == [{4}, {3, 4}, {1, 2}]
    net = network(noise=0.9, hops=1).train()
    full = batched([encoded([[1], [2], [3], [4], [5]], QUESTION)], 5)
    assert torch.equal(net(full)[0], net(full)[0])  # five sentences in five places: none is pushed out


def test_every_number_and_place_of_empty_memories_is_equally_likely() -> None:
    torch.manual_seed(1)
    places = with_empty(torch.full((30000,), 3), 3, 0.34)  # 0, 1 or 2 empty ones among 3 sentences
    counts = torch.bincount(places.present, minlength=6)[3:]
    assert counts.sum() == 30000
    assert (counts / 30000 - 1 / 3).abs().max() < 0.02
    one = places.sentence[places.present == 4][:, :4]
    shares = (one < 0).float().mean(0)
    assert (shares - 1 / 4).abs().max() < 0.02


def test_empty_memories_come_in_training_alone_and_have_a_time() -> None:
    net = network(noise=0.9, hops=1)
    batch = batched([encoded(STORY, QUESTION)], 5)
    assert torch.equal(net(batch)[0], net(batch)[0])
    net.train()
    torch.manual_seed(5)
    widths = {len(net(batch)[1][0][0].nonzero()) for _ in range(40)}
    assert widths == {3, 4, 5}  # at most as many as there are memories


@given(st.integers(1, 9), st.integers(1, 12))
def test_position_weights_are_the_formula(J: int, d: int) -> None:
    alpha, beta = (each.double().numpy()[0] for each in position_weights(torch.tensor([J]), J + 2, d))
    for j in range(1, J + 1):
        for k in range(1, d + 1):
            assert alpha[j - 1] + k * beta[j - 1] == pytest.approx((1 - j / J) - (k / d) * (1 - 2 * j / J), abs=1e-5)
    assert (alpha[J:] == 0).all()
    assert (beta[J:] == 0).all()


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12))
def test_place_weights_do_not_depend_on_the_length_of_the_sentence(width: int, J: int, d: int) -> None:
    alpha, beta = (each.double().numpy()[0] for each in place_weights(torch.tensor([width]), width + 2, d, J))
    for j in range(1, width + 1):
        for k in range(1, d + 1):
            assert alpha[j - 1] + k * beta[j - 1] == pytest.approx(placed(j, k, d, J), abs=1e-5)
    assert (alpha[width:] == 0).all()
    assert (beta[width:] == 0).all()
