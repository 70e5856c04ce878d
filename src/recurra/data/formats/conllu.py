"""CoNLL-U: the ten columns of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError
from recurra.text.written import Written, blanks_in_misc, blanks_of_misc, escaped, written_as

COLUMNS = ("id", "tokens", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

# 3-4 is a token written as two words; 5.1 is a word that was left out of the sentence.
_NOT_A_WORD = re.compile(r"[0-9]+([-.])[0-9]+", re.ASCII)

_BLANKS = re.compile(r"\s+")
_PARAGRAPH = re.compile(r"#\s*new(par|doc)\b")
_TEXT = re.compile(r"#\s*text\s*=\s*(.*)")


class CoNLLU(Reader):
    """One sentence a row: a list for each column but the ID. "_" stays as it is; ranges and empty nodes are left out.

    FORM is called tokens; the others have their own names in small letters. `Row.written` is the sentence as it stands
    in its text, by `# text`, SpaceAfter=No, ranges, `# newpar` and `# newdoc`.
    """

    extensions = ("conllu",)
    cut_at = "blank line"

    def read(self, path: PathLike) -> Iterator[Row]:
        words: list[list[str]] = []
        ranges: list[list[str]] = []
        comments: list[str] = []
        first = 0  # the line on which the sentence began; 0 between sentences
        for number, line in lines(path):
            if not line.strip(" \t"):
                if first:
                    yield _sentence(path, first, words, ranges, comments)
                words, ranges, comments, first = [], [], [], 0
                continue
            first = first or number
            if line.startswith("#"):
                comments.append(line)
                continue
            cells = cells_of(path, number, line)
            if not_a_word := _NOT_A_WORD.fullmatch(cells[0]):
                if not_a_word[1] == "-":
                    ranges.append(cells)
                continue
            if cells[0] != str(len(words) + 1):
                raise DataError(
                    f"{path}:{number}: the ID is {cells[0]!r}, but the next word of this sentence is number "
                    f"{len(words) + 1}. Number the words 1, 2, 3 …, and write a blank line after each sentence."
                )
            words.append(cells[1:])
        if first:
            yield _sentence(path, first, words, ranges, comments)


def cells_of(path: PathLike, number: int, line: str) -> list[str]:
    """The ten cells of a line, or a DataError that says what is wrong with them."""
    cells = line.split("\t")
    if len(cells) == 1:
        raise DataError(
            f"{path}:{number}: CoNLL-U has 10 columns separated by tabs, but this line has no tab: {line[:60]!r}. "
            f'If the file uses spaces, write tabs; if it has a word and a tag only, set data.format = "conll".'
        )
    if len(cells) != len(COLUMNS):
        raise DataError(
            f"{path}:{number}: found {len(cells)} columns, but CoNLL-U has 10. Write _ in a column without a value, "
            f'or set data.format = "conll" for a file of other columns.'
        )
    if "" in cells:
        empty = cells.index("")
        name = "FORM" if empty == 1 else COLUMNS[empty].upper()
        raise DataError(f"{path}:{number}: column {empty + 1}, {name}, is empty. Write _ where there is no value.")
    return cells


def _sentence(path: PathLike, first: int, words: list[list[str]], ranges: list[list[str]], comments: list[str]) -> Row:
    if not words:
        raise DataError(f"{path}:{first}: this sentence has no words. Remove its comments, or add the words.")
    columns = zip(*words, strict=True)
    values = {name: list(column) for name, column in zip(COLUMNS[1:], columns, strict=True)}
    return Row(values, first, written=_written(words, ranges, comments))


def _written(words: list[list[str]], ranges: list[list[str]], comments: list[str]) -> Written:
    """The sentence as it stands in its text; a range that does not fit its words counts for nothing."""
    spans: dict[int, list[str]] = {}
    for cells in ranges:
        start, _, end = cells[0].partition("-")
        if 0 < int(start) < int(end) <= len(words):
            spans[int(start)] = cells
    forms, counts, after = [], [], []
    number = 1
    while number <= len(words):
        cells = spans.get(number, [str(number), *words[number - 1]])
        count = int(cells[0].partition("-")[2] or number) - number + 1
        forms.append(cells[1])
        counts.append(count)
        after.append(blanks_of_misc(cells[9]))
        number += count
    texts = [match[1] for comment in comments if (match := _TEXT.match(comment))]
    opens = any(_PARAGRAPH.match(comment) for comment in comments)
    return written_as(forms, counts, after, text=texts[0] if texts else None, opens=opens)


def conllu_of(
    written: Written, words: Sequence[str], columns: Mapping[str, Sequence[str]], number: int, *, document: bool = False
) -> str:
    """A sentence in CoNLL-U, without the blank line after it, so that its text can be restored from it.

    columns are those that are known, by their names; one that CoNLL-U does not have goes to MISC.

    >>> from recurra.text.written import Token
    >>> du = Written("du thé", (Token(0, 2, 2), Token(3, 6)), after="\\n")
    >>> print(conllu_of(du, ["de", "le", "thé"], {"upos": ["ADP", "DET", "NOUN"]}, 1).replace("\\t", " "))
    # sent_id = 1
    # text = du thé
    1-2 du _ _ _ _ _ _ _ _
    1 de _ ADP _ _ _ _ _ _
    2 le _ DET _ _ _ _ _ _
    3 thé _ NOUN _ _ _ _ _ SpacesAfter=\\n
    """
    found = ["# newdoc"] if document else []
    found += ["# newpar"] if written.opens else []
    found += [f"# sent_id = {number}", f"# text = {_BLANKS.sub(' ', written.text)}"]
    first = 0
    for place, (token, form) in enumerate(zip(written.tokens, written.forms, strict=True)):
        misc = [blanks_in_misc(written.blanks_after(place))]
        if place == 0 and written.before:
            misc.insert(0, f"SpacesBefore={escaped(written.before)}")
        if token.words > 1:
            found.append(_line(f"{first + 1}-{first + token.words}", form, {}, misc))
            misc = []
        for word in range(first, first + token.words):
            values = {name: column[word] for name, column in columns.items()}
            found.append(_line(str(word + 1), words[word], values, misc))
        first += token.words
    return "\n".join(found)


def _line(id: str, form: str, values: Mapping[str, str], misc: Sequence[str | None]) -> str:
    said = [part for part in misc if part is not None]
    said += [f"{name}={value}" for name, value in values.items() if name not in COLUMNS]
    said = [*(part for part in [values.get("misc", "_")] if part != "_"), *said]
    cells = [id, form, *(values.get(name, "_") or "_" for name in COLUMNS[2:-1])]
    return "\t".join([*cells, "|".join(said) or "_"])
