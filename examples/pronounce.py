"""How is a word said that you have only read? python examples/pronounce.py [STEPS]

Letters become sounds, learned from 15,577 words of the CMU Pronouncing Dictionary that are part of recurra. Sounds come
in the order of their letters, so attention has a `monotonic` term: it is told to look on from where it looked last, and
learns how strictly. In half a minute, the three best answers that a beam of five finds and where the first one looked:

    lightning: L AY T N IH NG in the dictionary
       50% L AY T N IH NG
        4% L IH T N IH NG
        2% L IY T N IH NG
        l i g h t n i n g ∎
      L ██
     AY   ██
      T         ██
      N           ██
     IH             ██
     NG               ██
      ∎                   ██

    neither: N IY DH ER or N AY DH ER in the dictionary
       20% N AY TH ER
       14% N IY TH ER
       11% N EY TH ER
        n e i t h e r ∎
      N ██
     AY   ██
     TH       ██
     ER           ██
      ∎               ██

    50% of 1,092 new words are said as in the dictionary,
    13% of their sounds are wrong.

Of "neither" it knows both ways to begin, but not that this th is voiced: that is a matter of each word.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.analysis.alignment import alignment_of
from recurra.demo import unpacked

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 800


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        known = unpacked(Path(folder))["test"]  # train.tsv, valid.tsv and test.tsv now lie in the folder
        settings = {
            "data": {"source.tokens": "characters", "target.tokens": "symbols", "cache": False},
            "model": {
                "embedding": 64,
                "hidden": 128,
                "dropout": 0.2,
                "attention": {"name": "bilinear", "terms": ["monotonic"]},  # sounds come in the order of the letters
            },
            "training": {"steps": STEPS, "batch_size": 64, "learning_rate": 0.01},
            "decoding": {"best": 3},
        }
        model = recurra.train("seq2seq", train=f"{folder}/train.tsv", out=f"{folder}/run", settings=settings)

        for answer in model.predict(["lightning", "neither"], detail=True):
            print(f"{answer.input}: {' or '.join(known[answer.input])} in the dictionary")
            for each in [{"output": answer.output, **answer.detail}, *answer.alternatives]:
                print(f"  {math.exp(each['log_probability']):4.0%} {each['output']}")
            print(alignment_of(answer).text() + "\n")

        scores = model.evaluate(f"{folder}/test.tsv").values
        print(f"{scores['exact_match']:.0%} of {len(known):,} new words are said as in the dictionary,")
        print(f"{scores['symbol_error_rate']:.0%} of their sounds are wrong.")


if __name__ == "__main__":
    main()
