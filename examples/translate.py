"""One model for two languages, and what attention does for it: python examples/translate.py [STEPS]

English to German and French, by a column that says which: a symbol before the sentence. German has the verb last and
twenty-five as five and twenty, French has the colour after the thing, and with its gender. Subwords cut twenty-five in
two. Beside it a twin without attention, which is told of the whole sentence in one vector. In half a minute:

    attention:
      ich will fünfundzwanzig grüne Häuser kaufen
             ┌ ⟨de⟩
             │ ┌ ▁I
             │ │ ┌ ▁want
             │ │ │ ┌ ▁to
             │ │ │ │ ┌ ▁buy
             │ │ │ │ │ ┌ ▁twenty-
             │ │ │ │ │ │ ┌ five
             │ │ │ │ │ │ │ ┌ ▁green
             │ │ │ │ │ │ │ │ ┌ ▁houses
             │ │ │ │ │ │ │ │ │ ┌ ∎
        ▁ich ██
       ▁will     ██
           ▁             ██
        fünf             ██
         und             ██
     zwanzig           ██
      ▁grüne               ██
     ▁Häuser                 ██
     ▁kaufen         ██
           ∎                   ██
      je veux acheter vingt-cinq maisons vertes
    no-attention:
      ich will fünfundvierzig grüne Häuser waschen
      je veux acheter vingt-cinq maisons vertes

    bleu by the length of 300 test sentences
    length items attention no-attention
    6         86  100.0000      83.7003
    7         18  100.0000      88.8466
    8-14      98  100.0000      30.5809
    15-20     56  100.0000      23.6659
    21-23     42  100.0000      19.1577
    attention is 66.2 above no-attention, 95 % interval 63.4 to 69.0
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.analysis.alignment import alignment_of

SENTENCE = "I want to buy twenty-five green houses"
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 500


def table(text: str) -> list[tuple[str, ...]]:
    return [tuple(row.split("/")) for row in text.split()]


WISHES = table(
    "I_can/ich_kann/je_peux you_can/du_kannst/tu_peux she_can/sie_kann/elle_peut I_must/ich_muss/je_dois "
    "you_must/du_musst/tu_dois she_must/sie_muss/elle_doit I_want_to/ich_will/je_veux you_want_to/du_willst/tu_veux"
)
DEEDS = table("buy/kaufen/acheter sell/verkaufen/vendre see/sehen/voir draw/zeichnen/dessiner wash/waschen/laver")
TENS = table("twenty/zwanzig/vingt thirty/dreißig/trente forty/vierzig/quarante fifty/fünfzig/cinquante")
ONES = table(
    "two/zwei/deux three/drei/trois four/vier/quatre five/fünf/cinq six/sechs/six seven/sieben/sept eight/acht/huit"
)
LOOKS = table("red/rote/rouges/rouges green/grüne/verts/vertes black/schwarze/noirs/noires white/weiße/blancs/blanches")
THINGS = table(
    "houses/Häuser/maisons/f cars/Autos/voitures/f books/Bücher/livres/m dogs/Hunde/chiens/m apples/Äpfel/pommes/f"
)


def clause(chance: random.Random) -> tuple[str, str, str]:
    """The same in English, German and French: German has the verb last and the ones before the tens, French the
    colour after the thing, and with its gender."""
    wish, deed, ten, one, look, thing = map(chance.choice, (WISHES, DEEDS, TENS, ONES, LOOKS, THINGS))
    colour = look[2 if thing[3] == "m" else 3]
    english = f"{wish[0]} {deed[0]} {ten[0]}-{one[0]} {look[0]} {thing[0]}"
    german = f"{wish[1]} {one[1]}und{ten[1]} {look[1]} {thing[1]} {deed[1]}"
    french = f"{wish[2]} {deed[2]} {ten[2]}-{one[2]} {thing[2]} {colour}"
    return english.replace("_", " "), german.replace("_", " "), french.replace("_", " ")


def rows(chance: random.Random, count: int) -> str:
    """English, a tab, its translation, a tab, the language of that."""
    found = []
    for _ in range(count):
        english, german, french = zip(*(clause(chance) for _ in range(chance.randrange(1, 4))), strict=True)
        found += [
            f"{' and '.join(english)}\t{' und '.join(german)}\tde\n",
            f"{' and '.join(english)}\t{' et '.join(french)}\tfr\n",
        ]
    return "".join(found)


def main() -> None:
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder, "train.tsv"), Path(folder, "test.tsv")
        train.write_text(rows(chance, 1500), "utf-8")
        test.write_text(rows(chance, 150), "utf-8")
        settings: dict[str, dict[str, object]] = {
            "data": {
                "columns": ["source", "target", "language"],
                "features": ["language"],  # stands before the source, as ⟨de⟩ or ⟨fr⟩
                "source.tokens": {"name": "subwords", "size": 115},
                "target.tokens": {"name": "subwords", "size": 200},
                "cache": False,
            },
            "model": {"embedding": 48, "hidden": 96, "dropout": 0.1},
            "training": {"steps": STEPS, "batch_size": 32, "learning_rate": 0.01},
        }
        twins = {"attention": {}, "no-attention": {"attention": "none", "conditioning": ["every"]}}
        for name, other in twins.items():
            own = {**settings, "model": {**settings["model"], **other}}
            model = recurra.train("seq2seq", train=str(train), out=Path(folder) / name, settings=own)
            print(f"{name}:")
            for answer in model.predict([f"{SENTENCE}\tde", f"{SENTENCE}\tfr"], detail=True):
                print(f"  {answer.text}")
                if answer.input.endswith("de") and answer.alignment is not None:
                    print(alignment_of(answer).text())

        found = recurra.compare([Path(folder) / name for name in twins], test)  # recurra compare RUN RUN DATA
        if found.by_length is not None:
            print(f"\nbleu by the length of {found.items} test sentences\n{found.by_length.text()}")
        better = found.apart[0].scores["bleu"]
        print(
            f"attention is {better.value:.1f} above no-attention, 95 % interval {better.low:.1f} to {better.high:.1f}"
        )


if __name__ == "__main__":
    main()
