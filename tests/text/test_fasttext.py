"""fastText's binary format: its own file and numbers, a file written by hand, and files that are broken."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.reading.word_vectors import word_vectors
from recurra.text import Vocabulary
from recurra.text.fasttext import Format, fnv1a_signed, read_fasttext, subwords
from recurra.text.ngrams import fnv1a
from tests.tasks import test_classification, test_tagging

OWN_TEXT = Path(__file__).parent / "own_text.bin"
"""Made by fasttext-wheel 0.9.2 of five sentences of our own, one a line of text.txt:

    the river carries the boat and the boat carries the fisher
    der Fluß trägt das Boot und das Boot trägt den Fischer
    la rivière porte la barque et la barque porte le pêcheur
    nehir tekneyi taşır tekne balıkçıyı taşır
    река несёт лодку и лодка несёт рыбака

    fasttext.train_unsupervised("text.txt", model="skipgram", dim=4, minCount=1, minn=2, maxn=4, bucket=40, epoch=20,
                                lr=0.5, thread=4).save_model("own_text.bin")
"""

SAID_BY_FASTTEXT = {  # get_word_vector of the same file; the last four are not in its dictionary
    "river": [0.004794397857040167, 0.016509022563695908, 0.0063813216984272, -0.003316022688522935],
    "trägt": [-0.0008083415450528264, 0.023367587476968765, 0.007726260926574469, 0.005663203075528145],
    "несёт": [0.0024722323287278414, 0.006934196222573519, 0.02147083170711994, -0.013181748799979687],
    "taşır": [0.003689347766339779, 0.028191734105348587, 0.01675860956311226, -0.013285352848470211],
    "</s>": [-0.20639532804489136, 0.1975972205400467, -0.1524951010942459, -0.052077360451221466],
    "rivière": [-0.004516999702900648, 0.019948288798332214, -0.0024072981905192137, -0.0017589086201041937],
    "rivers": [0.004238148685544729, 0.019213851541280746, 0.006891272030770779, -0.0043335058726370335],
    "tragen": [0.0035778379533439875, 0.017580369487404823, 0.007496004458516836, -0.004334720317274332],
    "балык": [0.0009416416869498789, 0.01861349493265152, 0.004685727413743734, -0.004974283743649721],
    "ı": [0.005386004224419594, 0.016010329127311707, 0.00666679535061121, -0.004134347662329674],
}


def test_vectors_are_those_that_fasttext_itself_gives() -> None:
    vectors, built = read_fasttext(OWN_TEXT, SAID_BY_FASTTEXT)
    assert vectors.tokens == list(SAID_BY_FASTTEXT)
    assert vectors.values.tolist() == list(SAID_BY_FASTTEXT.values())
    assert built == 4


def written(
    path: Path,
    words: list[str],
    matrix: np.ndarray,
    *,
    labels: tuple[str, ...] = (),
    buckets: int = 0,
    n: tuple[int, int] = (0, 0),
    version: int = 12,
    kind: int = 2,
    pruned: list[tuple[int, int]] | None = None,
    quantised: bool = False,
    magic: int = 793712314,
) -> Path:
    """A file of the published format, number by number."""
    content = struct.pack("<ii", magic, version)
    content += struct.pack("<12i", matrix.shape[1], 5, 5, 1, 5, 1, 2, kind, buckets, *n, 100) + struct.pack("<d", 1e-4)
    content += struct.pack("<iii", len(words) + len(labels), len(words), len(labels))
    content += struct.pack("<qq", 99, -1 if pruned is None else len(pruned))
    for number, word in enumerate([*words, *labels]):
        content += word.encode() + b"\0" + struct.pack("<qb", 7, number >= len(words))
    for pair in pruned or []:
        content += struct.pack("<ii", *pair)
    content += struct.pack("<?qq", quantised, *matrix.shape) + matrix.astype("<f4").tobytes()
    path.write_bytes(content + b"\0" * 40)  # an output matrix follows, which nobody reads
    return path


MATRIX = np.arange(24, dtype=np.float32).reshape(8, 3)


def test_a_word_without_ngrams_has_its_own_row_and_an_unknown_one_none(tmp_path: Path) -> None:
    file = written(tmp_path / "a.bin", ["tea", "Äpfel", "cup"], MATRIX[:3], labels=("__label__x",))
    vectors, built = read_fasttext(file, ["cup", "pot", "Äpfel", "__label__x", ""])
    assert vectors.tokens == ["cup", "Äpfel"]
    assert vectors.values.tolist() == [[6, 7, 8], [3, 4, 5]]
    assert built == 0


def by_hand(gram: str, buckets: int) -> int:
    h = np.uint32(2166136261)
    with np.errstate(over="ignore"):
        for byte in np.frombuffer(gram.encode(), np.int8):
            h = np.uint32((h ^ np.int32(byte).view(np.uint32)) * np.uint32(16777619))
    return int(h % np.uint32(buckets))


def test_ngrams_make_words_and_words_that_nobody_wrote(tmp_path: Path) -> None:
    file = written(tmp_path / "a.bin", ["öl", "x"], MATRIX[:7], buckets=5, n=(2, 3))
    rows = {word: [2 + by_hand(gram, 5) for gram in grams] for word, grams in {
        "öl": ["<ö", "<öl", "öl", "öl>", "l>"], "öle": ["<ö", "<öl", "öl", "öle", "le", "le>", "e>"],
    }.items()}  # fmt: skip
    rows["öl"].insert(0, 0)
    vectors, built = read_fasttext(file, ["öl", "öle"])
    np.testing.assert_allclose(vectors.values, [MATRIX[rows[word]].mean(0) for word in ("öl", "öle")], rtol=1e-6)
    assert built == 1


@settings(max_examples=30)
@given(st.text(max_size=8), st.integers(0, 4), st.integers(1, 5), st.integers(1, 50))
def test_the_ngrams_of_a_word_are_those_of_a_plain_enumeration(word: str, shortest: int, longest: int, b: int) -> None:
    word = word.encode("utf-8", "replace").decode()
    whole = f"<{word}>"
    expected = [
        by_hand(whole[i : i + n], b)
        for i in range(len(whole))
        for n in range(max(shortest, 1), longest + 1)
        if i + n <= len(whole) and whole[i : i + n] not in ({"<", ">"} if i in (0, len(whole) - 1) else set())
    ]
    assert subwords(word, Format(3, b, shortest, longest)) == expected


def test_the_hash_is_fnv1a_for_ascii_and_signed_beyond() -> None:
    assert fnv1a_signed(b"foobar") == 0xBF9CF968
    assert fnv1a_signed("ß".encode()) % 2**31 == by_hand("ß", 2**31)
    assert fnv1a_signed("ß".encode()) != fnv1a("ß")


def test_pruned_buckets_have_rows_of_their_own_and_others_none(tmp_path: Path) -> None:
    first, second = by_hand("<a", 9), by_hand("a>", 9)
    file = written(tmp_path / "a.bin", ["x"], MATRIX[:3], buckets=9, n=(2, 2), pruned=[(first, 1)])
    vectors, _ = read_fasttext(file, ["a"])
    assert first != second
    assert vectors.values.tolist() == [MATRIX[2].tolist()]


def test_an_old_supervised_model_has_no_ngrams(tmp_path: Path) -> None:
    file = written(tmp_path / "a.bin", ["a"], MATRIX, buckets=7, n=(2, 3), version=11, kind=3)
    assert read_fasttext(file, ["a", "ab"]).vectors.tokens == ["a"]


BROKEN = [
    ({"version": 13}, None, "version 13 of fastText's format is not supported; 11 and 12 are."),
    ({"quantised": True}, None, r"is quantised \(.ftz\): .* Use the .bin file"),
    (
        {"buckets": 900, "n": (2, 3)},
        None,
        "the matrix has 8 rows of 3 numbers, but the header says vectors of 3 for 2 w",
    ),
    ({}, 6, "ends early: the file is truncated"),
    ({}, 70, "ends early: the file is truncated"),
    ({}, 100, "ends early: the file is truncated"),
    ({}, 160, "ends early: the file is truncated"),
]


@pytest.mark.parametrize(("options", "keep", "message"), BROKEN)
def test_a_broken_file_is_refused_in_words(
    tmp_path: Path, options: dict[str, Any], keep: int | None, message: str
) -> None:
    file = written(tmp_path / "a.bin", ["öl", "x"], MATRIX, **options)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match=f"a.bin.*{message}"):
        read_fasttext(file, ["öl"])


def test_another_file_is_no_fasttext_file(tmp_path: Path) -> None:
    file = written(tmp_path / "a.bin", ["a"], MATRIX, magic=1)
    with pytest.raises(DataError, match="does not begin with its magic number"):
        read_fasttext(file, ["a"])


def test_a_number_that_is_not_finite_is_refused_with_its_word(tmp_path: Path) -> None:
    file = written(tmp_path / "a.bin", ["a"], np.full((1, 3), np.inf, np.float32))
    with pytest.raises(DataError, match=re.escape("the vector of 'a' contains a number that is infinite or NaN")):
        read_fasttext(file, ["a"])


def test_the_words_of_a_vocabulary_say_how_many_were_built() -> None:
    words = Vocabulary(["river", "rivers", "q"])
    found = word_vectors(str(OWN_TEXT), words, 4)
    assert found.ids.tolist() == [1, 2, 3]
    assert found.said == f"3 of 4 words start from {OWN_TEXT}, 2 of them by their character n-grams"
    with pytest.raises(ConfigError, match=r"vectors of size 4: set model\.embedding = 4 \(it is 5\)"):
        word_vectors(str(OWN_TEXT), words, 5)


@pytest.mark.parametrize("frozen", ["true", "false"])
def test_a_tagger_starts_from_a_binary_file_and_keeps_it_where_it_is_frozen(tmp_path: Path, frozen: str) -> None:
    file = test_tagging.write(tmp_path / "a.conll", "river\tN\nrivers\tN\n%%%\tX\n\n")
    options = (f"data.vectors={OWN_TEXT}", "model.embedding=4", "training.steps=3", "training.learning_rate=0.1")
    model = test_tagging.trained(tmp_path, file, *options, f"model.freeze_embedding={frozen}")
    network: Any = model.model
    weight = network.read_words.embedding.weight.detach().numpy()
    words = model.task.words  # type: ignore[attr-defined]
    start = read_fasttext(OWN_TEXT, ["river", "rivers", "%%%"]).vectors.values
    start = start / np.linalg.norm(start, axis=1).mean()
    rows = weight[words.ids(["river", "rivers", "%%%"])]
    assert np.allclose(rows, start, atol=1e-6) == (frozen == "true")
    assert (weight[words.id("<unk>")] == 0).all() == (frozen == "true")


def test_a_classifier_keeps_vectors_that_are_frozen(tmp_path: Path) -> None:
    file = test_classification.write(tmp_path / "a.tsv", "river boat\twater\nroad car\tland\n" * 4)
    options = (f"data.vectors={OWN_TEXT}", "model.embedding=4", "training.steps=3", "model.freeze_embedding=true")
    model = test_classification.trained(tmp_path, file, *options)
    network: Any = model.model
    weight = network.readers[0].embedding.weight.detach().numpy()
    river = read_fasttext(OWN_TEXT, ["river"]).vectors.values[0]
    row = weight[model.task.words.id("river")]  # type: ignore[attr-defined]
    assert np.dot(row, river) / np.linalg.norm(row) / np.linalg.norm(river) == pytest.approx(1.0)


def test_freezing_without_vectors_is_refused(tmp_path: Path) -> None:
    file = test_tagging.write(tmp_path / "a.conll", "river\tN\n\n")
    with pytest.raises(
        ConfigError, match=r"model\.freeze_embedding = True has no effect: there are no vectors to keep"
    ):
        test_tagging.trained(tmp_path, file, "model.freeze_embedding=true")
