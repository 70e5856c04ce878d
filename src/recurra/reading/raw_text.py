r"""Raw text: what is learned of a treebank's running text, and the sentences that a splitter finds in another.

A text is a stream of steps, one for each character and one for each run of blanks. Each step that ends a token has a
label: TOKEN, SEVERAL where the token stands for several words, SENTENCE, or both. The stream of a treebank is

    [PARAGRAPH if a paragraph begins]  characters of the sentence  [SPACE if blanks follow]   …

and that of a text is cut back into sentences by the labels that the splitter finds:

    a token ends      where the label says so, before a run of blanks that no token of the treebank holds, at the end
    a token begins    at the first character after an end
    a sentence ends   where the label of a token's end says so, before an empty line, and after MOST_WORDS words
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from recurra.config import TaggingData
from recurra.data.formats import CoNLLU, reader
from recurra.data.store import Flat, Store
from recurra.errors import DataError
from recurra.reading.sentences import Sentence
from recurra.settings import SettingError
from recurra.text.alphabet import PARAGRAPH, SPACE, SPECIALS, Alphabet
from recurra.text.expansions import Expansions
from recurra.text.json_file import read_json, write_json
from recurra.text.vocabulary import Vocabulary
from recurra.text.written import Token, Written

INSIDE, TOKEN, SEVERAL, SENTENCE, SEVERAL_AND_SENTENCE = range(5)
"""What a step is: no end, or the end of a token; of one that stands for several words; of a sentence; of both."""

Ends: TypeAlias = Callable[[NDArray[np.int32]], NDArray[np.int8]]
"""A splitter: the steps of a text to their labels."""

MOST_WORDS = 1000
"""A sentence is ended after so many words, so that a text without any end is read in flat memory."""

BLOCK = 1 << 16
"""Code points of a text that are cut together."""

NEAR = 100
"""No sentence is ended so near to the end of a block, where the splitter does not see what follows."""

LONGEST_TOKEN = 1000
"""A token is ended after so many code points."""

STEPS = 200
"""Steps of a window of training."""

SHARE = 2.0
"""Steps of the windows for each step of the sentences of a batch."""

SENTENCES = 12
"""Sentences that a window of training may hold, at most."""

BROKEN, HIDDEN = 0.2, 0.02
"""In training: the share of blanks between sentences that become the end of a paragraph, and of characters that are
read as their kind, as unknown ones are."""

_SPACE, _PARAGRAPH = SPECIALS.index(SPACE), SPECIALS.index(PARAGRAPH)


class Cut(NamedTuple):
    """A sentence that was found in a text."""

    text: str  # in which it stands, with others
    begins: list[int]  # of its tokens, in code points of the text
    stops: list[int]
    several: dict[int, tuple[str, ...]]  # of tokens that stand for several words, these, by the number of the token
    used: int  # where the next one begins
    before: str  # blanks before the first sentence of an input
    place: int  # of the text in the whole input

    @property
    def after(self) -> str:
        """The blanks after it."""
        return self.text[self.stops[-1] : self.used]

    @property
    def ends_paragraph(self) -> bool:
        return self.after.count("\n") > 1

    def forms(self) -> list[str]:
        """Its tokens as they stand in the text."""
        text = self.text
        return [text[begin:stop] for begin, stop in zip(self.begins, self.stops, strict=True)]

    def words(self) -> list[str]:
        """Its words."""
        forms = self.forms()
        if not self.several:
            return forms
        return [word for number, form in enumerate(forms) for word in self.several.get(number, (form,))]

    def blanks(self) -> list[str]:
        """What stands after each token."""
        text = self.text
        return [text[stop:begin] for stop, begin in zip(self.stops, [*self.begins[1:], self.used], strict=True)]

    def written(self, *, opens: bool) -> Written:
        """The sentence as it is written."""
        origin = self.begins[0]
        tokens = tuple(
            Token(begin - origin, stop - origin, len(self.several.get(number, ("",))))
            for number, (begin, stop) in enumerate(zip(self.begins, self.stops, strict=True))
        )
        text = self.text[origin : self.stops[-1]]
        return Written(text, tokens, self.after, self.before, opens, self.place + origin)


@final
class RawText:
    """What is known of a treebank's running text, beside the weights of the splitter."""

    def __init__(self, alphabet: Alphabet, expansions: Expansions, *, holds_blanks: bool, is_marked: bool) -> None:
        self.alphabet = alphabet
        self.expansions = expansions
        self.holds_blanks = holds_blanks  # some token has a blank inside
        self.is_marked = is_marked  # some token follows another without a blank

    @classmethod
    def counted(cls, sentences: Iterable[tuple[Written, Sequence[str]]], base: RawText | None = None) -> Self:
        """Learned from sentences as they are written, and their words; what a base has learned of others is kept."""
        characters: Counter[str] = Counter()
        pairs: list[tuple[str, Sequence[str]]] = []
        holds_blanks = is_marked = False
        for written, words in sentences:
            characters.update(written.text)
            place = 0
            for number, token in enumerate(written.tokens):
                form = written.text[token.start : token.end]
                if token.words > 1:
                    pairs.append((form, words[place : place + token.words]))
                place += token.words
                holds_blanks = holds_blanks or " " in form or "\xa0" in form
                is_marked = is_marked or written.blanks_after(number) == ""
        alphabet, expansions = Alphabet.counted(characters), Expansions.counted(pairs)
        if base is not None:
            known = alphabet.vocabulary.tokens[len(alphabet.vocabulary.specials) :]
            alphabet = Alphabet(base.alphabet.vocabulary.extended(dict.fromkeys(known, 1)))
            expansions = Expansions.of({**base.expansions.forms, **expansions.forms})
            holds_blanks, is_marked = holds_blanks or base.holds_blanks, is_marked or base.is_marked
        return cls(alphabet, expansions, holds_blanks=holds_blanks, is_marked=is_marked)

    def save(self, folder: Path) -> None:
        """Write what `load` needs."""
        self.alphabet.vocabulary.save(folder / "vocabulary.raw.json")
        self.expansions.save(folder / "expansions.json")
        write_json(folder / "raw.json", {"holds_blanks": self.holds_blanks, "is_marked": self.is_marked})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `save` wrote."""
        flags = read_json(folder / "raw.json")
        if not isinstance(flags, dict):
            raise DataError(f"{folder / 'raw.json'} must hold a JSON object.")
        return cls(
            Alphabet(Vocabulary.load(folder / "vocabulary.raw.json")),
            Expansions.load(folder / "expansions.json"),
            holds_blanks=flags["holds_blanks"] is True,
            is_marked=flags["is_marked"] is True,
        )

    # Training

    def encoded(self, written: Written) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """The steps of a sentence and what stands around it, and their labels."""
        stream = self.alphabet.read(written.text)
        ends = np.zeros(len(stream.ids), np.int8)
        last = np.searchsorted(stream.places, [token.end - 1 for token in written.tokens])
        ends[last] = [SEVERAL if token.words > 1 else TOKEN for token in written.tokens]
        ends[last[-1]] += SENTENCE - TOKEN
        before = [_PARAGRAPH] if written.opens else []
        after = [_PARAGRAPH if written.after.count("\n") > 1 else _SPACE] if written.after else []
        ids = np.concatenate([before, stream.ids, after]).astype(np.int32)
        return ids, np.concatenate([np.zeros(len(before)), ends, np.zeros(len(after))]).astype(np.int8)

    def windows(self, store: Store, numbers: NDArray[np.int64]) -> dict[str, Flat]:
        """Stretches of the text around some sentences, as many steps as these have together, to train with.

        What is drawn depends on nothing but the numbers of the sentences, so that a run goes on as it would have.
        """
        own = store.take(numbers).lengths("written")
        draw = np.random.default_rng([len(numbers), *numbers[:64].tolist()])
        count = max(1, round(SHARE * int(own.sum()) / STEPS))
        firsts = draw.choice(len(numbers), count, p=own / own.sum())
        texts, labels = [], []
        for first in firsts.tolist():
            rows = store.take(np.arange(numbers[first], min(numbers[first] + SENTENCES, len(store))))
            ids, ends = rows.flat("written").values, rows.flat("written_ends").values
            begin = int(draw.integers(own[first])) if draw.random() < 0.5 else 0
            ids, ends = self._varied(ids[begin : begin + STEPS], ends[begin : begin + STEPS], draw)
            texts.append(ids)
            labels.append(ends)
        lengths = np.array(list(map(len, texts)), np.int64)
        return {"written": Flat(np.concatenate(texts), lengths), "ends": Flat(np.concatenate(labels), lengths)}

    def _varied(
        self, ids: NDArray[np.int32], ends: NDArray[np.int8], draw: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        ids = ids.copy()
        is_between = np.zeros(len(ids), bool)
        is_between[1:] = (ids[1:] == _SPACE) & (ends[:-1] >= SENTENCE)
        ids[is_between & (draw.random(len(ids)) < BROKEN)] = _PARAGRAPH
        is_hidden = draw.random(len(ids)) < HIDDEN
        ids[is_hidden] = self.alphabet.kinds[ids[is_hidden]]
        # Blanks before the beginning of a paragraph are one run with it.
        kept = np.ones(len(ids), bool)
        kept[:-1] = ~((ids[:-1] == _SPACE) | (ids[:-1] == _PARAGRAPH)) | (ids[1:] != _PARAGRAPH)
        return ids[kept], ends[kept]

    # Cutting

    def sentences(self, pieces: Iterable[str], ends: Ends) -> Iterator[Sentence]:
        """The sentences of a text that arrives in pieces, in flat memory."""
        opens = True
        for number, cut in enumerate(self.cuts(pieces, ends), 1):
            yield Sentence(tuple(cut.words()), None, (), None, None, 0, number, cut.written(opens=opens))
            opens = cut.ends_paragraph

    def cuts(self, pieces: Iterable[str], ends: Ends) -> Iterator[Cut]:
        """The same as places in the text, which cost little.

        What follows the last end in a block is cut again with the text after it.
        """
        rest, place = "", 0
        for piece, is_last in _blocks(pieces):
            text = rest + piece
            used = 0
            for cut in self._cut(text, place, ends, is_last=is_last):
                yield cut
                used = cut.used
            rest, place = text[used:], place + used

    def _cut(self, text: str, place: int, ends: Ends, *, is_last: bool) -> Iterator[Cut]:
        """The sentences at the beginning of a text that stands at a place of the whole input."""
        stream = self.alphabet.read(text)
        steps = np.flatnonzero(~stream.is_blank)
        if not len(steps):  # blanks alone wait for what comes after them
            return
        said = ends(stream.ids)[steps]
        breaks = stream.is_break if self.holds_blanks else stream.is_blank
        is_end = (said != INSIDE) | np.append(breaks, True)[steps + 1]
        is_end[-1] = True
        is_end |= _too_long(is_end)
        closes = (said >= SENTENCE) | np.append(stream.ids == _PARAGRAPH, False)[steps + 1]
        closes[-1] |= is_last
        begins = stream.places[steps[np.append(True, is_end[:-1])]].tolist()
        stops = (stream.places[steps[is_end]] + 1).tolist()
        of_several = np.isin(said, (SEVERAL, SEVERAL_AND_SENTENCE))[is_end]
        several = dict[int, tuple[str, ...]]()
        for number in np.flatnonzero(of_several).tolist():
            if (words := self.expansions.words(text[begins[number] : stops[number]])) is not None:
                several[number] = words
        certain = len(text) if is_last else len(text) - NEAR
        first = 0
        for last in _not_too_many(np.flatnonzero(closes[is_end]).tolist(), len(begins), several):
            if stops[last] > certain or (last + 1 == len(begins) and not is_last):  # more of its blanks may come
                return
            following = begins[last + 1] if last + 1 < len(begins) else len(text)
            before = text[: begins[0]] if place == 0 and first == 0 else ""
            own = {n - first: several[n] for n in range(first, last + 1) if n in several} if several else {}
            yield Cut(text, begins[first : last + 1], stops[first : last + 1], own, following, before, place)
            first = last + 1


def _not_too_many(ends: list[int], count: int, several: Mapping[int, tuple[str, ...]]) -> Iterator[int]:
    """The last tokens of sentences, of so many tokens; a sentence ends after MOST_WORDS words at the latest."""
    first = 0
    for end in [*ends, *([] if ends and ends[-1] == count - 1 else [count])]:
        # A token stands for few words: only where there are many tokens are their words counted.
        words = 0
        if (end + 1 - first) + sum(len(several[n]) for n in several if first <= n <= end) >= MOST_WORDS:
            for number in range(first, min(end, count - 1)):
                words += len(several.get(number, ("",)))
                if words >= MOST_WORDS:
                    yield number
                    words = 0
        if end < count:
            yield end
        first = end + 1


def _too_long(is_end: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where tokens of more than LONGEST_TOKEN steps are cut."""
    found = np.zeros(len(is_end), bool)
    last = -1
    for end in np.flatnonzero(is_end).tolist():
        if end - last > LONGEST_TOKEN:
            found[last + LONGEST_TOKEN : end : LONGEST_TOKEN] = True
        last = end
    return found


def _blocks(pieces: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The text in blocks of the same size, however it arrives, and whether one is the last."""
    waiting = ""
    for piece in pieces:
        waiting += piece
        while len(waiting) > BLOCK:
            yield waiting[:BLOCK], False
            waiting = waiting[BLOCK:]
    yield waiting, True


def learns_raw_text(data: TaggingData) -> bool:
    """Whether raw text is learned too: as set, or where the training data is CoNLL-U."""
    files = data.files("train")
    is_conllu = data.tokens == "tokens" and all(isinstance(reader(path, data.format), CoNLLU) for path in files)
    if data.raw and not is_conllu:
        raise SettingError(
            "data.raw = true needs training data in CoNLL-U, which says where tokens stand in their text "
            f"(# text, SpaceAfter=No), but {', '.join(files)} is not read as CoNLL-U words.",
            ("data", "raw"),
        )
    return is_conllu if data.raw is None else data.raw
