"""Subwords: learnt the same each time, cut and joined without loss, and kept in a file that others read."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.text import END, UNKNOWN, Subwords, Vocabulary, load_tokenizer, tokenizer
from recurra.text.tokenizers.subword_training import said_in_words
from recurra.text.tokenizers.subwords import merged, normalised

KINDS: tuple[Literal["bpe", "unigram"], ...] = ("bpe", "unigram")
# Rare characters are what the library's unigram trainer adds in a random order; "<unk>" and "</s>" are there because
# real corpora hold them.
TEXTS = [
    "the cat sat on the mat and the dog sat on the log",
    "a catalogue of cats, a log of dogs; dogmatic cats",
    "<unk> and </s> stand in texts too: x<unk>y, <unk> <unk> </s> </s>",
    "κόσμε 東京 ñ ø ß 😀 e\u0301 ★ ☆ Ω ж",
] * 3
LETTERS = sorted(set("".join(TEXTS)))
OVER_THE_ALPHABET = st.text(st.sampled_from([*LETTERS, "\t", "\u3000", "▁", "\x1c", "\x85"]))
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | OVER_THE_ALPHABET


@functools.cache
def trained(kind: Literal["bpe", "unigram"], dropout: float = 0.0) -> Subwords:
    return Subwords(kind=kind, size=120, dropout=dropout).trained(TEXTS)


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
def test_only_the_number_of_blanks_is_forgotten(kind: Literal["bpe", "unigram"], text: str) -> None:
    pieces = trained(kind).split(text)
    assert "".join(pieces) == "".join(f"▁{word}" for word in text.replace("▁", " ").split())
    assert trained(kind).join(pieces) == normalised(text)
    assert trained(kind).split(normalised(text)) == pieces


@pytest.mark.parametrize("kind", KINDS)
@given(text=OVER_THE_ALPHABET)
def test_over_the_alphabet_of_the_training_texts_every_piece_is_known(
    kind: Literal["bpe", "unigram"], text: str
) -> None:
    assert set(trained(kind).split(text)) <= set(trained(kind).pieces)


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY_TEXT)
def test_a_piece_that_was_not_learnt_is_made_of_unseen_characters(kind: Literal["bpe", "unigram"], text: str) -> None:
    unknown = set("".join(set(trained(kind).split(text)) - set(trained(kind).pieces)))
    assert unknown == set(normalised(text)) - set(LETTERS)


@pytest.mark.parametrize("kind", KINDS)
@given(text=OVER_THE_ALPHABET)
def test_the_library_itself_cuts_in_the_same_way(kind: Literal["bpe", "unigram"], text: str) -> None:
    core = tokenizers.Tokenizer.from_str(json.dumps(trained(kind).to_json()))
    assert core.encode(text).tokens == trained(kind).split(text)
    assert core.decode(core.encode(text).ids) == normalised(text)


@given(OVER_THE_ALPHABET)
def test_a_unigram_cut_is_the_likeliest_of_all_cuts(text: str) -> None:
    model: Any = trained("unigram").to_json()["model"]
    scores = dict(model["vocab"][1:])

    def best(word: str) -> float:
        totals = [0.0]
        for end in range(1, len(word) + 1):
            ways = (totals[start] + scores.get(word[start:end], -1e9) for start in range(end))
            totals.append(max(ways))
        return totals[-1]

    cut = trained("unigram").split(text)
    expected = sum(best(f"▁{word}") for word in normalised(text).split())
    assert sum(scores[piece] for piece in cut) == pytest.approx(expected, abs=1e-9)


@given(OVER_THE_ALPHABET)
def test_merges_without_dropout_are_those_of_the_library(text: str) -> None:
    model: Any = trained("bpe").to_json()["model"]
    merges = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}
    words = normalised(text).split()
    assert [piece for word in words for piece in merged(f"▁{word}", merges, 0.0, random.Random(0))] == trained(
        "bpe"
    ).split(text)


@given(ANY_TEXT, st.integers())
def test_dropout_cuts_by_the_seed_and_loses_nothing(text: str, seed: int) -> None:
    dropping = trained("bpe", 0.3)
    pieces = dropping.split(text, seed=seed)
    assert dropping.join(pieces) == normalised(text)
    assert dropping.split(text, seed=seed) == pieces
    assert dropping.split(text) == trained("bpe").split(text)
    assert set(pieces) - set(dropping.pieces) <= set(text)


def test_dropout_cuts_in_many_ways_and_at_one_into_characters() -> None:
    ways = {tuple(trained("bpe", 0.3).split("the cat sat", seed=seed)) for seed in range(50)}
    assert len(ways) > 5
    assert trained("bpe", 1.0).split("the cat", seed=0) == list("▁the▁cat")
    assert trained("bpe").split("the cat", seed=0) == trained("bpe").split("the cat")


def test_a_table_of_options_makes_subwords() -> None:
    made = tokenizer({"name": "subwords", "kind": "unigram", "size": 50})
    assert made == Subwords(kind="unigram", size=50)
    assert made.trained(TEXTS[:1]) == Subwords(kind="unigram", size=50).trained(TEXTS[:1])


def test_byte_pair_merges_take_the_most_frequent_pair_first() -> None:
    # By hand: ▁-a 6, a-b 5, ▁-c 3, c-b 3; after the first merge ▁a-b 5. Five places go to a, b, c, ▁ and the unknown.
    texts = ["ab"] * 5 + ["cb"] * 3 + ["a"]
    model: Any = Subwords(size=7).trained(texts).to_json()["model"]
    assert model["merges"] == [["▁", "a"], ["▁a", "b"]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_holds_the_pieces_and_the_specials(kind: Literal["bpe", "unigram"]) -> None:
    subwords = trained(kind)
    assert subwords.size == len(subwords.pieces) + 1 <= 120
    vocabulary = subwords.vocabulary(specials=(UNKNOWN, END))
    assert vocabulary.specials == (UNKNOWN, END)
    assert vocabulary.tokens[2:] == tuple(piece for piece in subwords.pieces if piece not in (UNKNOWN, END))
    pieces = subwords.split("the cat 猫")
    assert vocabulary.tokens_of(vocabulary.ids(pieces)) == [*pieces[:-1], UNKNOWN]


def test_a_text_that_holds_the_name_of_a_special_does_not_touch_it() -> None:
    for kind in KINDS:
        subwords = trained(kind)
        vocabulary = Vocabulary.counted(dict.fromkeys(subwords.pieces, 1), specials=(UNKNOWN, END))
        ids = vocabulary.ids(subwords.split("x</s> </s> 猫<unk> <unk>")).tolist()
        assert vocabulary.id(END) not in ids
        assert subwords.join(subwords.split("猫<unk> <unk>")) == "猫<unk> <unk>"


def test_the_same_texts_give_the_same_bytes_in_other_processes_and_with_threads(tmp_path: Path) -> None:
    code = (
        "import sys; from recurra.text import Subwords; from tests.text.tokenizers.test_subwords import TEXTS; "
        "[Subwords(kind=kind, size=120).trained(TEXTS).save(f'{sys.argv[1]}.{kind}') for kind in ('bpe', 'unigram')]"
    )
    environments = [("0", "false"), ("1", "true"), ("2", None)]
    running = []
    for seed, parallel in environments:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": "4"}
        environment.pop("TOKENIZERS_PARALLELISM", None)
        if parallel is not None:
            environment["TOKENIZERS_PARALLELISM"] = parallel
        running.append(subprocess.Popen([sys.executable, "-c", code, str(tmp_path / seed)], env=environment))
    assert [process.wait() for process in running] == [0, 0, 0]
    for kind in KINDS:
        trained(kind).save(tmp_path / f"here.{kind}")
        digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob(f"*.{kind}")}
        assert len(digests) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_training_many_times_gives_one_answer(kind: Literal["bpe", "unigram"]) -> None:
    # Words that mirror each other have cuts of equal score, where noise would decide.
    texts = ["ab ba abab baba aabb bbaa", "cd dc cdcd dcdc ccdd ddcc", "★ ☆ ♠ ♣ ♥ ♦"] * 3
    answers = {json.dumps(Subwords(kind=kind, size=30).trained(texts).to_json()) for _ in range(10)}
    assert len(answers) == 1


@pytest.mark.parametrize("subwords", [trained("bpe"), trained("unigram"), trained("bpe", 0.25), Subwords(size=9)])
def test_subwords_come_back_from_their_file_and_from_pickle(tmp_path: Path, subwords: Subwords) -> None:
    path = tmp_path / "tokenizer.json"
    subwords.save(path)
    for back in (load_tokenizer(path), Subwords.from_json(subwords.to_json()), pickle.loads(pickle.dumps(subwords))):
        assert isinstance(back, Subwords)
        assert back == subwords
        assert repr(back) == repr(subwords)
        if "not trained" not in repr(subwords):
            assert back.split("the cat ★猫", seed=3) == subwords.split("the cat ★猫", seed=3)


def test_the_file_is_one_that_the_library_reads(tmp_path: Path) -> None:
    trained("bpe").save(tmp_path / "tokenizer.json")
    core = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert core.encode("the cat").tokens == trained("bpe").split("the cat")


def test_training_leaves_the_wish_and_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    seen: list[str | None] = []

    def texts() -> Iterator[str]:
        seen.append(os.environ.get("TOKENIZERS_PARALLELISM"))
        yield "a b"

    wish = Subwords(size=10)
    wish.trained(texts())
    assert repr(wish) == "Subwords(kind='bpe', size=10, dropout=0.0), not trained"
    assert "TOKENIZERS_PARALLELISM" not in os.environ
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    wish.trained(texts())
    assert seen == ["false", "true"]
    assert os.environ["TOKENIZERS_PARALLELISM"] == "true"


def test_empty_text_has_no_pieces() -> None:
    assert [trained(kind).split(" \n") for kind in KINDS] == [[], []]
    assert trained("bpe").join([]) == ""


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Subwords().split("a"), ConfigError, "not trained yet: call trained(texts), or load trained ones."),
        (lambda: Subwords().pieces, ConfigError, "not trained yet"),
        (lambda: Subwords(kind="wordpiece"), ConfigError, "kind = 'wordpiece' is not known."),  # type: ignore[arg-type]
        (lambda: tokenizer({"name": "subwords", "size": 1}), ConfigError, "must be at least 2, but is 1."),
        (lambda: Subwords(dropout=1.5), ConfigError, "must be a probability between 0 and 1, but is 1.5."),
        (
            lambda: Subwords(kind="unigram", dropout=0.1),
            ConfigError,
            "works only with kind = 'bpe'. Leave it out, or set that kind.",
        ),
        (lambda: Subwords().trained([]), DataError, "subwords cannot be trained: the texts are empty."),
        (lambda: Subwords(kind="unigram").trained([" ", ""]), DataError, "the texts are empty."),
        (
            lambda: Subwords().trained(["a", "b\ud800"]),
            DataError,
            r"'b\ud800' is not valid Unicode: it contains a lone",
        ),
        (lambda: trained("bpe").split("\udfff"), DataError, "is not valid Unicode"),
        (lambda: Subwords(size=4).trained(["abc"]), ConfigError, "size = 4 cannot hold the 3 different characters"),
        (lambda: Subwords(kind="unigram", size=4).trained(["abc"]), ConfigError, "size must be at least 5."),
    ],
)
def test_what_cannot_be_is_refused_in_words(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        make()
    assert message in str(refusal.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_size_that_is_named_is_enough(kind: Literal["bpe", "unigram"]) -> None:
    assert Subwords(kind=kind, size=5).trained(["abc"]).split("cab") == ["▁", "c", "a", "b"]


def altered(kind: Literal["bpe", "unigram"], part: str | None, **changes: object) -> dict[str, object]:
    value: Any = trained(kind).to_json()
    (value if part is None else value[part]).update(changes)
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (altered("bpe", None, model=[1]), "the model of subwords must be a JSON object, but is a list."),
        (
            altered("bpe", "model", type="WordPiece"),
            "the type of subwords must be BPE or Unigram, but is 'Wo",
        ),
        (
            altered("bpe", None, pre_tokenizer=None),
            "these subwords do not mark spaces with ▁ (pre_tokenizer Metaspace)",
        ),
        (altered("bpe", "model", unk_token="[UNK]"), "these subwords have no <▁unk> token for unknown characters"),
        (altered("unigram", "model", unk_id=1), "these subwords have no <▁unk> token"),
        (altered("unigram", "model", unk_id=None), "these subwords have no <▁unk> token"),
        (altered("bpe", "model", byte_fallback=True), "these subwords have no <▁unk> token"),
        (altered("bpe", "model", dropout=2), "the dropout of these subwords must be between 0 and 1, but is 2."),
        (altered("bpe", "model", dropout="much"), "must be between 0 and 1, but is 'much'."),
        (altered("bpe", "model", merges=[["q", "q"]]), "these subwords cannot be loaded: "),
        (altered("bpe", "model", vocab={"a": "b"}), "these subwords cannot be loaded: "),
        (altered("bpe", None, normalizer={"type": "None such"}), "these subwords cannot be loaded: "),
        (altered("unigram", "model", vocab=[["<▁unk>", 0], ["a"]]), "these subwords cannot be loaded: "),
        ({"name": "words"}, "this is not the JSON of a 'subwords' tokenizer"),
        ([], "this is not the JSON of a 'subwords' tokenizer"),
    ],
)
def test_broken_or_foreign_json_is_refused_in_words(value: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        Subwords.from_json(value)
    assert message in str(refusal.value)


def test_a_panic_of_the_library_is_said_in_words() -> None:
    panic = type("PanicException", (BaseException,), {})
    with (
        pytest.raises(DataError, match=r"subwords cannot be trained: likelihood is NAN\."),
        said_in_words("subwords cannot be trained"),
    ):
        raise panic("likelihood is NAN")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_goes_wrong_while_reading_the_texts_is_not_hidden(error: type[BaseException]) -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise error

    with pytest.raises(error):
        Subwords().trained(texts())


def test_without_the_library_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"subwords need the package 'tokenizers'.*pip install tokenizers"):
        Subwords().trained(["a"])
