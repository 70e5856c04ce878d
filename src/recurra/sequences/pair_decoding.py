"""What [decoding] means for a vocabulary, and what of it cannot be: said before hours of training, not after."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from recurra.errors import ConfigError
from recurra.named import did_you_mean
from recurra.search.brackets import Brackets
from recurra.settings import SettingError
from recurra.text.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from recurra.config import Seq2SeqDecoding, Seq2SeqSettings, Vec2SeqSettings
    from recurra.sequences.pair_texts import Side

CANNOT_BE_SCORED = "decoding.search = 'given' generates nothing that can be scored: choose a search."

SHORTEST_LIMIT = 10
"""However short a source is, its answer may have so many tokens, or decoding.max_length."""

MOST_SEQUENCES = 2_000_000
"""So many an exhaustive search will try."""

FEW = 1000
"""With more tokens than these, none of a similar name is looked for."""


def named_tokens(decoding: Seq2SeqDecoding, target: Side) -> dict[str, tuple[int, ...]]:
    """The ids of the tokens that are banned, forced, and begun with."""
    vocabulary = target.vocabulary
    prefix = target.split(decoding.prefix) if decoding.prefix else []
    named = {"banned": decoding.banned, "forced": decoding.forced, "prefix": prefix}
    for what, tokens in named.items():
        for token in tokens:
            is_special = token in vocabulary.specials and token != UNKNOWN
            if is_special or token not in vocabulary:
                specials = {*vocabulary.specials} - {UNKNOWN}
                known = [each for each in vocabulary.tokens if each not in specials]
                near = did_you_mean(token, known) if len(known) < FEW else ""
                said = f"decoding.{what} has {token!r}, which is not a token of the targets. {near}".rstrip()
                raise SettingError(said, ("decoding", what))
            if what != "banned" and token == UNKNOWN and not decoding.unknown:
                said = f"decoding.{what} has {UNKNOWN!r}, which needs decoding.unknown = true."
                raise SettingError(said, ("decoding", what))
            if what != "banned" and token in decoding.banned:
                said = f"decoding.{what} has {token!r}, but decoding.banned has it too: remove it from one of them."
                raise SettingError(said, ("decoding", what))
    must = len(prefix) + len(decoding.forced)
    if must > decoding.max_length:
        raise ConfigError(
            f"decoding.prefix and decoding.forced ask for {must} tokens, but decoding.max_length = "
            f"{decoding.max_length} allows fewer: set it to {must + 1}, which leaves room for the end."
        )
    return {what: tuple(vocabulary.id(token) for token in tokens) for what, tokens in named.items()}


def brackets_of(decoding: Seq2SeqDecoding, target: Side, *, backward: bool = False) -> tuple[Brackets, tuple[int, ...]]:
    """The ids of brackets, each with what closes it; and those that must not be written, for nothing matches them.

    A token such as (NP is closed by )NP or, where there is none, by ). Written backward, ) comes first and opens what
    (NP closes, which must then be the only one that does.
    """
    if decoding.brackets == "free":
        return Brackets(), ()
    from recurra.metrics.brackets import MIRRORED, closes, opens

    vocabulary = target.vocabulary
    known = [token for token in vocabulary.tokens if token not in vocabulary.specials]
    pairs, never = [], []
    for token in filter(opens, known):
        mirrored = MIRRORED[token[0]]
        found = next((each for each in (mirrored + token[1:], mirrored) if each in vocabulary), None)
        if found is None:
            never.append(vocabulary.id(token))
        else:
            pairs.append((vocabulary.id(token), vocabulary.id(found)))
    if not pairs:
        raise SettingError(
            f"decoding.brackets = '{decoding.brackets}', but no token of the targets opens a bracket that another one "
            f"closes: leave it out, or see data.target.tokens.",
            ("decoding", "brackets"),
        )
    used = {closing for _, closing in pairs}
    never += [number for number in map(vocabulary.id, filter(closes, known)) if number not in used]
    if backward:
        if len(used) < len(pairs):
            several = Counter(closing for _, closing in pairs).most_common(1)[0][0]
            raise SettingError(
                f"decoding.brackets = '{decoding.brackets}' needs one that matches each bracket, but the targets are "
                f"written from their end, and {vocabulary.tokens[several]!r} closes several: write the label at "
                "both brackets, as in (NP … )NP, or set model.decoder.direction = 'forward'.",
                ("decoding", "brackets"),
            )
        pairs = [(closing, opening) for opening, closing in pairs]
    return Brackets(tuple(pairs), decoding.brackets == "tree"), tuple(never)


def check_search(settings: Seq2SeqSettings | Vec2SeqSettings, target: Side) -> None:
    """Refuse, before training, a search by which the trained model could not be scored."""
    data, decoding = settings.data, settings.decoding
    named_tokens(decoding, target)
    brackets_of(decoding, target, backward=settings.model.writes_backward)
    if decoding.prefix and settings.model.writes_backward:
        raise SettingError(
            f"decoding.prefix = {decoding.prefix!r} is written first, but the targets are written from their end "
            "(direction = 'backward'): leave one of them out. decoding.forced has tokens that occur anywhere.",
            ("decoding", "prefix"),
        )
    if not data.files("valid") and not data.files("test"):
        return
    if decoding.search == "given":
        raise SettingError(CANNOT_BE_SCORED, ("decoding", "search"))
    known = len(target.vocabulary)
    if decoding.search == "exhaustive" and known ** min(decoding.max_length, SHORTEST_LIMIT) > MOST_SEQUENCES:
        raise SettingError(
            f"decoding.search = 'exhaustive' tries all sequences, but {known} tokens give more than "
            f"{MOST_SEQUENCES:,}: use 'beam', or a smaller decoding.max_length.",
            ("decoding", "search"),
        )
