"""One CoNLL-U file against another of the same text, tokenised alike or not: `recurra score` of two such files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recurra.data.conllu_file import conllu_sentences
from recurra.data.files import extension, parallel_files
from recurra.errors import DataError
from recurra.metrics.universal_dependencies import Agreement, UDToken, agreements
from recurra.views.table import Table


def are_treebanks(*files: str | Path) -> bool:
    """Whether all of some files are CoNLL-U, by their endings."""
    return all(len(parallel_files(file)) == 1 and extension(file) == "conllu" for file in files)


def score_treebanks(gold: str | Path, system: str | Path) -> dict[str, Agreement]:
    """Tokens, sentences, words and their tags, as CoNLL 2018 counts them."""
    try:
        return agreements(_tokens(gold), _tokens(system))
    except DataError as error:
        said = str(error)
        raise error if said.startswith((str(gold), str(system))) else DataError(f"{gold}, {system}: {said}") from error


def _tokens(path: str | Path) -> Iterator[list[UDToken]]:
    empty = True
    for sentence in conllu_sentences(path):
        empty = False
        yield sentence.tokens(path)
    if empty:
        raise DataError(f"{path} is empty: it has no sentences.")


def as_json(found: dict[str, Agreement]) -> dict[str, dict[str, float]]:
    """The numbers of each score by their names; what is not a property of words has no aligned accuracy."""
    return {
        name: {
            "precision": each.precision,
            "recall": each.recall,
            "f1": each.f1,
            **({} if each.aligned_accuracy is None else {"aligned_accuracy": each.aligned_accuracy}),
            "gold": each.gold,
            "system": each.system,
            "agreed": each.agreed,
        }
        for name, each in found.items()
    }


def as_table(found: dict[str, Agreement]) -> Table:
    """Percentages, as the shared task prints them."""
    rows = [
        [name, *(f"{100 * value:.2f}" for value in (each.precision, each.recall, each.f1)), _shown(each)]
        for name, each in found.items()
    ]
    return Table(["score", "precision", "recall", "F1", "of aligned words"], rows)


def _shown(agreement: Agreement) -> str:
    found = agreement.aligned_accuracy
    return "" if found is None else f"{100 * found:.2f}"
