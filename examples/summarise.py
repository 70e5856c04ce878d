"""What matters of a day's log, in a line, with names it never saw: python examples/summarise.py [STEPS]

The people, halls and machines of the new reports were in none that it learned from. A model that can only write words
it knows has a blank for them. With `model.copy` the output is a mixture of words it knows and of a pointer at what was
read (See et al. 2017), and so writes what it has not seen before. The perplexities do not tell the two apart: the first
model is quite sure of its blanks. In 6 seconds:

    01:38 Vledrukno saw smoke in hall Triflaska .
    05:08 Druflakno cleaned K7363 .
    11:03 Trigriplu opened hall Druknovle .
    13:28 Flaknoska opened hall Vleplugri .
    22:13 Stotrispi cleaned P6907 .

    06:08 Skastoplu cleaned K5483 .
    08:28 K8131 in hall Griskavle overheats at 671 °C .
    10:13 Vlestotri cleaned K8440 .
    12:20 Plustovle cleaned R8633 .
    23:51 Griflasto cleaned K5893 .

    The output knows words, and no more:
      <unk> : smoke since <unk> , ask <unk>
      <unk> : <unk> at <unk> °C
      0% of 200 new reports right, perplexity 1.091
    The output may point at what was read:
      Triflaska : smoke since 01:38 , ask Vledrukno
      Griskavle : K8131 at 671 °C
      100% of 200 new reports right, perplexity 1.096
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import recurra

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
OLD = (("bar", "del", "fen", "gol", "ham", "ker", "lin", "mor", "nat", "pel"), range(1000, 5000))
NEW = (("dru", "fla", "gri", "kno", "plu", "ska", "spi", "sto", "tri", "vle"), range(5000, 9000))


def report(chance: random.Random, syllables: Sequence[str], numbers: Sequence[int]) -> tuple[str, str]:
    """Five events, of which one is an alarm, and what to tell of that; with names and machines made of these."""
    events = []
    minutes = sorted(chance.sample(range(24 * 60), 5))
    alarm = chance.choice(minutes)
    for minute in minutes:
        time = f"{minute // 60:02}:{minute % 60:02}"
        hall, person = ("".join(chance.sample(syllables, 3)).capitalize() for _ in range(2))
        machine, heat = f"{chance.choice('KMPR')}{chance.choice(numbers)}", chance.randrange(100, 1000)
        if minute == alarm and chance.random() < 0.5:
            events.append(f"{time} {person} saw smoke in hall {hall} .")
            told = f"{hall} : smoke since {time} , ask {person}"
        elif minute == alarm:
            events.append(f"{time} {machine} in hall {hall} overheats at {heat} °C .")
            told = f"{hall} : {machine} at {heat} °C"
        else:
            usual = (f"opened hall {hall}", f"cleaned {machine}", f"measured {heat} °C in hall {hall}")
            events.append(f"{time} {person} {chance.choice(usual)} .")
    return " ".join(events), told


def main() -> None:
    chance = random.Random(7)
    new = [report(chance, *NEW) for _ in range(200)]
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder) / "train.tsv", Path(folder) / "test.tsv"
        train.write_text("".join("\t".join(report(chance, *OLD)) + "\n" for _ in range(2000)), "utf-8")
        test.write_text("".join("\t".join(pair) + "\n" for pair in new), "utf-8")
        for source, _ in new[:2]:
            print(source.replace(" . ", " .\n") + "\n")
        for copy in (False, True):
            side = {"tokens": "symbols", "min_count": 50}  # whatever stands between blanks; what is rare is unknown
            settings = {
                "data": {"source": side, "target": side, "cache": False},
                "model": {"embedding": 32, "hidden": 64, "dropout": 0.1, "copy": copy},
                "training": {"steps": STEPS, "batch_size": 32, "learning_rate": 0.01},
                "decoding": {"unknown": True},  # a blank is written where a word is not known
            }
            model = recurra.train("seq2seq", train=str(train), out=f"{folder}/copy-{copy}", settings=settings)
            print("The output may point at what was read:" if copy else "The output knows words, and no more:")
            for answer in model.predict([source for source, _ in new[:2]]):
                print(f"  {answer.text}")
            scores = model.evaluate(test).values
            print(
                f"  {scores['exact_match']:.0%} of {len(new)} new reports right, perplexity {scores['perplexity']:.3f}"
            )


if __name__ == "__main__":
    main()
