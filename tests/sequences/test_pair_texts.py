"""Pairs to ids and back: nothing is lost, nothing in a text passes for a special, and dropout obeys its seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.config import Seq2SeqData, Seq2SeqSettings
from recurra.config.given import Given
from recurra.errors import ConfigError, DataError
from recurra.reading.pairs import Pair, pairs, with_columns
from recurra.sequences.pair_texts import SEPARATOR, SPECIALS, PairTexts, Side, feature_token
from recurra.text import END, UNKNOWN, Characters, Symbols, Vocabulary, Words, tokenizer
from tests.tasks.small_pairs import spelt

SENTENCES = [
    ("the cat sees the dog", "die Katze sieht den Hund"),
    ("the dog sees the cat", "der Hund sieht die Katze"),
    ("a small cat sleeps here", "eine kleine Katze schläft hier"),
    ("the small dogs sleep", "die kleinen Hunde schlafen"),
]


def learned(file: Path, rows: Sequence[tuple[str, ...]], *overrides: str) -> tuple[PairTexts, Seq2SeqData, list[Pair]]:
    file.write_text("".join("\t".join(row) + "\n" for row in rows))
    given_settings = Given().files({"train": file}, "{}=").options(overrides).settings(Seq2SeqSettings)
    data = with_columns(given_settings.data)
    return PairTexts.of(data), data, list(pairs(data.files("train"), data))


def source(*texts: str, features: tuple[str, ...] = ()) -> Pair:
    return Pair(texts, features, None, None, 0, 1)


SUBWORDS = '{name="subwords", size=60, dropout=0.4}'
BOTH_SUBWORDS = (f"data.source.tokens={SUBWORDS}", f"data.target.tokens={SUBWORDS}")


@pytest.mark.parametrize(
    "tokens", ["characters", "symbols", "words", "subwords", '{name="subwords", kind="unigram", size=40}']
)
@pytest.mark.parametrize("joint", [False, True])
def test_a_target_comes_back_from_its_ids(tmp_path: Path, tokens: str, joint: bool) -> None:
    given_tokens = (f"data.source.tokens={tokens}", f"data.target.tokens={tokens}")
    texts, _, found = learned(tmp_path / "a.tsv", SENTENCES, *given_tokens, f"data.joint={str(joint).lower()}")
    for pair in found:
        assert pair.target is not None
        ids = texts.target_ids(pair.target)
        assert ids.dtype == np.int32
        assert ids.tolist()[-1] == 2
        assert 2 not in ids.tolist()[:-1]
        assert spelt(texts, ids) == pair.target
        assert texts.target.vocabulary.tokens_of(ids) == texts.target_tokens(pair.target)


def test_the_specials_of_both_sides_are_the_same_and_come_first(tmp_path: Path) -> None:
    texts, _, _ = learned(tmp_path / "a.tsv", SENTENCES)
    assert texts.source is not None
    for side in (texts.source, texts.target):
        assert side.vocabulary.tokens[:4] == SPECIALS == ("<unk>", "<s>", "</s>", "<sep>")


def test_features_stand_before_the_source_and_no_text_can_produce_one(tmp_path: Path) -> None:
    rows = [("walk ⟨PST⟩", "walked", "V;PST"), ("see", "sees", "V;3")]
    texts, _, [first, _] = learned(
        tmp_path / "a.tsv", rows, "data.source.tokens=symbols", "data.target.tokens=characters"
    )
    assert texts.source_tokens(first) == ["⟨V⟩", "⟨PST⟩", "walk", "⟨PST⟩", "</s>"]
    ids = texts.source_ids(first).tolist()
    known, unknown, word, spelt, end = ids
    assert texts.source is not None
    assert texts.source.vocabulary.tokens_of([known, unknown, word]) == ["⟨V⟩", "⟨PST⟩", "walk"]
    assert (spelt, end) == (0, 2)
    assert texts.source_ids(source("see", features=("FUT", "see"))).tolist()[:2] == [0, 0]


def test_several_sources_are_joined_by_a_separator(tmp_path: Path) -> None:
    rows = [("a b", "x", "b"), ("b <sep> a", "x", "a")]
    texts, _, [first, second] = learned(
        tmp_path / "a.tsv", rows, 'data.columns=["source", "target", "source"]', "data.source.tokens=symbols"
    )
    assert texts.source_tokens(first) == ["a", "b", SEPARATOR, "b", END]
    a, b, separator, again, end = texts.source_ids(first).tolist()
    assert (separator, again, end) == (3, b, 2)
    assert texts.source_ids(second).tolist() == [b, 0, a, 3, a, 2]


@pytest.mark.parametrize("text", ["</s>", "<s> a", "a <sep>", "<unk>"])
def test_a_special_in_a_text_is_unknown_and_ends_nothing(tmp_path: Path, text: str) -> None:
    rows = [(text, f"{text} a"), ("a", "a")]
    texts, _, [first, _] = learned(tmp_path / "a.tsv", rows, "data.source.tokens=symbols", "data.target.tokens=symbols")
    assert {1, 2, 3} & {*texts.source_ids(first).tolist()[:-1]} == set()
    assert first.target is not None
    assert spelt(texts, texts.target_ids(first.target)).endswith(" a")


def test_what_training_has_not_seen_is_unknown(tmp_path: Path) -> None:
    texts, _, _ = learned(tmp_path / "a.tsv", SENTENCES, "data.source.tokens=words", "data.target.tokens=words")
    assert texts.source_ids(source("the horse")).tolist()[1:] == [0, 2]
    assert spelt(texts, texts.target_ids("die Kuh")) == "die <unk>"


def test_an_empty_text_is_its_end_alone(tmp_path: Path) -> None:
    texts, _, _ = learned(tmp_path / "a.tsv", SENTENCES, *BOTH_SUBWORDS)
    assert texts.source_ids(source("")).tolist() == [2]
    assert texts.recut(texts.target_ids(""), "target", 3).tolist() == [2]
    assert spelt(texts, [2]) == spelt(texts, []) == ""


def test_with_joint_there_is_one_tokenizer_and_one_vocabulary_of_both_sides(tmp_path: Path) -> None:
    texts, _, _ = learned(tmp_path / "a.tsv", SENTENCES, "data.joint=true", "data.source.tokens=words")
    assert texts.joint
    assert texts.source is texts.target
    assert {"cat", "Katze"} <= {*texts.target.vocabulary}
    assert texts.source_ids(source("Katze")).tolist() == texts.target_ids("Katze").tolist()
    apart, _, _ = learned(tmp_path / "a.tsv", SENTENCES, "data.source.tokens=words", "data.target.tokens=words")
    assert not apart.joint
    assert "Katze" not in (apart.source or apart.target).vocabulary


@pytest.mark.parametrize(
    "overrides",
    [
        (), ("data.joint=true",), BOTH_SUBWORDS, (*BOTH_SUBWORDS, "data.joint=true"),
        ("data.source.lowercase=true", "data.target.tokens=characters"),
        ("data.joint=true", "data.source.lowercase=true"),
    ],
)  # fmt: skip
def test_what_was_saved_is_loaded(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    texts, data, found = learned(tmp_path / "a.tsv", SENTENCES, *overrides)
    texts.save(tmp_path)
    again = PairTexts.load(tmp_path, data)
    assert (again.source, again.target, again.joint) == (texts.source, texts.target, texts.joint)
    for pair in found:
        assert pair.target is not None
        for side, one, other in (
            ("source", again.source_ids(pair), texts.source_ids(pair)),
            ("target", again.target_ids(pair.target), texts.target_ids(pair.target)),
        ):
            assert one.tolist() == other.tolist()
            assert again.recut(one, side, 5).tolist() == texts.recut(other, side, 5).tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("texts.json", "[]", "must say for both sides"),
        ("texts.json", '{"lowercase": {"left": true}}', "must say for both sides"),
        ("vocabulary.target.json", '{"specials": ["<unk>"], "tokens": []}', "the special tokens must begin with"),
        ("tokenizer.source.json", "{", "tokenizer.source.json"),
    ],
)
def test_a_folder_that_is_not_whole_is_said(tmp_path: Path, name: str, content: str, message: str) -> None:
    texts, data, _ = learned(tmp_path / "a.tsv", SENTENCES)
    texts.save(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        PairTexts.load(tmp_path, data)


def test_dropout_is_the_same_by_seed_and_other_by_another(tmp_path: Path) -> None:
    texts, _, found = learned(tmp_path / "a.tsv", SENTENCES, *BOTH_SUBWORDS)
    for pair in found:
        assert pair.target is not None
        cuts = {tuple(texts.recut(texts.target_ids(pair.target), "target", seed).tolist()) for seed in range(20)}
        assert len(cuts) > 10
        for seed in range(20):
            ids = texts.recut(texts.target_ids(pair.target), "target", seed)
            assert ids.tolist() == texts.recut(texts.target_ids(pair.target), "target", seed).tolist()
            assert spelt(texts, ids) == pair.target
            assert ids.tolist()[-1] == 2


def test_cutting_anew_keeps_features_separators_and_unknown_pieces_in_place(tmp_path: Path) -> None:
    rows = [("low lower", "x", "V;PST", "slow"), ("lowest", "y", "V", "slower")]
    texts, _, [first, _] = learned(
        tmp_path / "a.tsv",
        rows,
        'data.columns=["source", "target", "features", "source"]',
        f"data.source.tokens={SUBWORDS}",
    )
    side = texts.source
    assert side is not None
    pair = first._replace(source=("low ψlowest", "slow"))
    ids = texts.source_ids(pair)
    specials = len(side.vocabulary.specials)
    seen = set()
    for seed in range(30):
        again = texts.recut(ids, "source", seed)
        seen.add(tuple(again.tolist()))
        assert again[again < specials].tolist() == ids[ids < specials].tolist()
        spelt, as_spelt = ("".join(side.vocabulary.tokens_of(found)) for found in (again, ids))
        assert spelt == as_spelt
    assert len(seen) > 5


@pytest.mark.parametrize("tokens", ["characters", "words", "symbols", '{name="subwords", size=60}'])
def test_without_dropout_cutting_anew_changes_nothing(tmp_path: Path, tokens: str) -> None:
    texts, _, [first, *_] = learned(tmp_path / "a.tsv", SENTENCES, f"data.source.tokens={tokens}")
    assert texts.recut(texts.source_ids(first), "source", 1).tolist() == texts.source_ids(first).tolist()


def test_a_copied_token_has_the_id_by_which_the_target_writes_it(tmp_path: Path) -> None:
    rows = [("call 911 now", "rufe 911 an", "V"), ("call Ann", "rufe Ann an", "V")]
    texts, _, [first, _] = learned(tmp_path / "a.tsv", rows, "data.source.tokens=words", "data.target.tokens=words")
    ids = texts.source_ids(first)
    copied = texts.copied(ids)
    assert copied.dtype == np.int32
    assert texts.source is not None
    tokens = [*texts.source.vocabulary.tokens_of(ids)]
    expected = [texts.target.vocabulary.get(token, 0) if token in ("911", END) else 0 for token in tokens]
    assert copied.tolist() == expected
    assert 0 not in (expected[2], expected[4])


def test_copies_within_one_vocabulary_are_themselves_but_for_features_and_separators(tmp_path: Path) -> None:
    texts, _, [first, *_] = learned(
        tmp_path / "a.tsv", [("a b", "b a", "de")], "data.joint=true", "data.source.tokens=words"
    )
    ids = texts.source_ids(first)
    assert texts.copied(ids).tolist() == [0, *ids.tolist()[1:]]
    assert texts.copied(np.array([3])).tolist() == [0]
    assert spelt(texts, [ids[0], ids[1]]) == "a"  # a feature is nobody's word


def test_a_pair_is_too_long_by_its_longer_side(tmp_path: Path) -> None:
    texts, data, _ = learned(tmp_path / "a.tsv", SENTENCES, "data.max_length=3", "data.source.tokens=words")
    for length, is_long in ((3, False), (4, True)):
        ids, short = np.zeros(length + 1), np.zeros(2)
        assert texts.too_long(ids, short, data) is is_long
        assert texts.too_long(short, ids, data) is is_long
    without, unlimited, _ = learned(tmp_path / "a.tsv", SENTENCES)
    assert not without.too_long(np.zeros(10_000), np.zeros(10_000), unlimited)


def test_frames_are_scaled_and_have_no_tokens(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    rows = [{"frames": [[1, 10], [3, 10]], "target": "a b"}, {"frames": [[5, 10]], "target": "b"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = with_columns(Seq2SeqData(train=str(file), max_length=2))
    texts = PairTexts.of(data)
    texts.save(tmp_path)
    again = PairTexts.load(tmp_path, data)
    assert texts.source is None is again.source
    [first, second] = pairs([file], data)
    together = np.concatenate([again.source_frames(first), again.source_frames(second)])
    np.testing.assert_allclose(together.mean(0), [0, 0], atol=1e-6)
    np.testing.assert_allclose(together.std(0), [1, 0], atol=1e-6)
    assert spelt(texts, texts.target_ids("b")) == "b"
    assert not texts.too_long(again.source_frames(first), texts.target_ids("a b"), data)
    assert again.source_frames(first._replace(frames=np.zeros((0, 0), np.float32))).shape == (0, 2)
    other = first._replace(frames=np.zeros((1, 3), np.float32))
    with pytest.raises(DataError, match=r"b\.jsonl:1: found 3 numbers per step, but training has 2"):
        list(texts.checked([first, other], ["b.jsonl"]))


def test_frames_of_another_width_are_said_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"frames": [[1, 2]], "target": "a"}\n{"frames": [[1]], "target": "b"}\n')
    data = with_columns(Seq2SeqData(train=str(file)))
    with pytest.raises(DataError, match=r"a\.jsonl:2: found 1 number per step, but the first example has 2"):
        PairTexts.of(data)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["data.target.min_count=9"],
            r"no token of the target in .* would be in the vocabulary: .* 9 and data\.target\.max_size = none",
        ),
        (["data.source.max_size=4"], r"no token of the source in .*data\.source\.max_size = 4"),
    ],
)
def test_a_vocabulary_without_words_is_refused(tmp_path: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        learned(tmp_path / "a.tsv", SENTENCES[:2], "data.source.tokens=words", "data.target.tokens=words", *overrides)


def test_a_vocabulary_smaller_than_its_specials_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_size = 2 is too small for the 4 special tokens"):
        learned(tmp_path / "a.tsv", SENTENCES, "data.source.max_size=2")


def test_capitals_are_forgotten_where_that_is_asked_for(tmp_path: Path) -> None:
    texts, _, _ = learned(tmp_path / "a.tsv", SENTENCES, "data.target.lowercase=true", "data.target.tokens=words")
    assert spelt(texts, texts.target_ids("DIE Katze")) == "die katze"


ALPHABET = st.characters(exclude_categories=["Cs"])


@settings(deadline=None, max_examples=60)
@given(text=st.text(ALPHABET, max_size=30), cut=st.sampled_from([Characters(), Symbols(), Words()]))
def test_every_text_comes_back_as_its_tokenizer_promises(text: str, cut: Characters | Symbols | Words) -> None:
    tokens = cut.split(text)
    side = Side(cut, Vocabulary(dict.fromkeys(token for token in tokens if token not in SPECIALS), specials=SPECIALS))
    texts = PairTexts(side, side)
    expected = cut.join([UNKNOWN if token in SPECIALS else token for token in tokens])
    assert spelt(texts, texts.target_ids(text)) == expected


PIECES = tokenizer({"name": "subwords", "size": 40, "dropout": 0.3}).trained(["low lower lowest", "slow slower lowly"])


@settings(deadline=None, max_examples=60)
@given(text=st.text(st.sampled_from("lowerst y▁ψ\t"), max_size=30), seed=st.integers(0, 2**32))
def test_cutting_anew_never_changes_a_text(text: str, seed: int) -> None:
    side = Side(PIECES, Vocabulary(PIECES.pieces, specials=SPECIALS))  # type: ignore[attr-defined]
    texts = PairTexts(side, side)
    ids = texts.target_ids(text)
    assert spelt(texts, texts.recut(ids, "target", seed)) == spelt(texts, ids)


def test_a_feature_is_written_in_brackets() -> None:
    assert feature_token("PST") == "⟨PST⟩"
