"""Networks named in the usual terms: "2-layer BiLSTM 256", "max pooling"."""

from __future__ import annotations

from collections.abc import Sequence

from recurra.settings import Part, name_of

FAMILIES = {
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn": "RNN",
    "slstm": "sLSTM",
    "elman": "Elman RNN",
    "ntm": "NTM",
    "dnc": "DNC",
    "gru_d": "GRU-D",
}
SUMMARIES = {
    "mean": "mean pooling",
    "max": "max pooling",
    "attention": "attention pooling",
    "last": "last state",
    "last_cell": "last cell state",
    "ends": "both end states",
}


MIXES = {"concat": "all layers side by side", "mean": "mean of all layers", "learned": "learned mix of all layers"}


def cell_in_words(cell: Part, *, bidirectional: bool = False, direction: str = "forward") -> str:
    """A cell's name as the literature writes it; a cell of another module keeps its own.

    >>> cell_in_words("lstm", bidirectional=True), cell_in_words("peephole_lstm"), cell_in_words("my.cells:Mine")
    ('BiLSTM', 'peephole LSTM', 'my.cells:Mine')
    """
    name = name_of(cell)
    words = [name] if ":" in name or name in FAMILIES else name.split("_")
    shown = " ".join(FAMILIES.get(word, word) for word in words)
    if not bidirectional:
        return f"backward {shown}" if direction == "backward" else shown
    return f"Bi{shown}" if shown in ("LSTM", "GRU", "RNN") else f"bidirectional {shown}"


def layers_in_words(kind: str, hidden: int | Sequence[int], layers: int | None = None, mix: str = "last") -> str:
    """A stack of layers of some kind, their widths, and what of them comes out.

    >>> layers_in_words("BiLSTM", 256), layers_in_words("BiLSTM", 256, 2), layers_in_words("GRU", [64, 32])
    ('BiLSTM 256', '2-layer BiLSTM 256', 'GRU 64 + 32')
    >>> layers_in_words("GRU", 64, 2, "mean")
    '2-layer GRU 64 (mean of all layers)'
    """
    widths = [hidden] * (layers or 1) if isinstance(hidden, int) else list(hidden)
    mixed = f" ({MIXES[mix]})" if mix in MIXES and len(widths) > 1 else ""
    if len({*widths}) > 1:
        return f"{kind} {' + '.join(map(str, widths))}{mixed}"
    return f"{f'{len(widths)}-layer ' if len(widths) > 1 else ''}{kind} {widths[0]}{mixed}"


def summary_in_words(summary: Part) -> str:
    """How the steps of a sequence become one vector.

    >>> summary_in_words("max"), summary_in_words({"name": "attention", "queries": 4})
    ('max pooling', 'attention pooling')
    """
    return SUMMARIES.get(name_of(summary), name_of(summary))


def output_in_words(output: Part) -> str:
    """The last layer or the density.

    >>> output_in_words("crf"), output_in_words("adaptive_softmax")
    ('CRF', 'adaptive softmax')
    """
    name = name_of(output)
    return "CRF" if name == "crf" else name.replace("_", " ") if ":" not in name else name
