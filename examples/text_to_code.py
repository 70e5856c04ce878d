"""From a wish in words to a line of Python, which is run: python examples/text_to_code.py [STEPS]

There are several ways to write the same, and training has one of them for each wish, drawn by chance: so no model can
write just what a test has, and answers are compared by what they are worth. This one forgets which bracket it opened,
list ( or [, but a beam of five has a right answer among its best: it is the first that runs. Rules of the search say
how it shall be written. In 15 seconds:

    Of 300 best answers, 95 are just what the test has, and 245 are worth the same;
    of the first answers that are Python at all, 300 are.

    a list of x squared for even x from 3 to 12:
      list ( x ** 2 for x in range ( 3 , 13 ) if x % 2 == 0 ]  →  not Python
      list ( x * x for x in range ( 3 , 13 ) if x % 2 == 0 ]  →  not Python
      list ( x * x for x in range ( 3 , 13 ) if not x % 2 )  →  [16, 36, 64, 100, 144]
      list ( x ** 2 for x in range ( 3 , 13 ) if not x % 2 )  →  [16, 36, 64, 100, 144]

    a list of x squared for even x from 3 to 12, with banned=["*"]:
      list ( x ** 2 for x in range ( 3 , 13 ) if x % 2 == 0 ]  →  not Python
      list ( x ** 2 for x in range ( 3 , 13 ) if not x % 2 )  →  [16, 36, 64, 100, 144]
      list ( x ** 2 for x in range ( 3 , 13 ) if x % 2 == 0 )  →  [16, 36, 64, 100, 144]
      list ( x ** 2 for x in range ( 3 , 13 ) if not x % 2 ]  →  not Python

    a list of x squared for even x from 3 to 12, with forced=["=="]:
      list ( x ** 2 for x in range ( 3 , 13 ) if x % 2 == 0 ]  →  not Python
      list ( x ** 2 for x in range ( 3 , 13 ) if x % 2 == 0 )  →  [16, 36, 64, 100, 144]
      list ( x ** 2 for x in range ( 3 , 13 ) if not x % 2 == 0 )  →  [9, 25, 49, 81, 121]
      list ( x ** 2 for x in range ( 3 , 13 ) if not x % 2 == 0 ]  →  not Python
"""

from __future__ import annotations

import ast
import operator
import random
import sys
import tempfile
import warnings
from pathlib import Path

import recurra
from recurra.tasks.task import Prediction

# What is said, and the ways to write it.
WHOLES = {
    "the sum of": ["sum ( {} )"],
    "the largest": ["max ( {} )"],
    "a list of": ["list ( {} )", "[ {} ]"],
    "how many different": ["len ( set ( {} ) )", "len ( { {} } )"],
}
VALUES = {
    "x": ["x"],
    "x squared": ["x ** 2", "x * x"],
    "twice x": ["2 * x", "x + x"],
    "x plus N": ["x + N"],
    "the rest of x by N": ["x % N"],
}
CHOICES = {"x": [""], "even x": [" if x % 2 == 0", " if not x % 2"], "odd x": [" if x % 2 == 1", " if x % 2"]}
WRONG = "not Python"
FUNCTIONS = {"sum": sum, "max": max, "list": list, "len": len, "set": set, "range": range}


def wish(chance: random.Random) -> tuple[str, str]:
    """Words such as "the sum of x squared for odd x from 1 to 5", and one of the ways to write them."""
    (whole, wholes), (value, values), (choice, ifs) = [chance.choice([*d.items()]) for d in (WHOLES, VALUES, CHOICES)]
    first, last, number = chance.randrange(10), chance.randrange(12, 20), str(chance.randrange(2, 10))
    loop = f"{chance.choice(values)} for x in range ( {first} , {last + 1} ){chance.choice(ifs)}"
    said = f"{whole} {value} for {choice} from {first} to {last}"
    return said.replace("N", number), chance.choice(wholes).replace("{}", loop.replace("N", number))


def run(code: str) -> object:
    """What a line of Python is worth; WRONG where it is none, or has more in it than an answer needs."""
    try:
        tree = ast.parse(code, mode="eval")
        if code.count("**") > 1 or any(isinstance(node, ast.Attribute) for node in ast.walk(tree)):
            return WRONG  # no number without end, and no way out of the functions above
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            return eval(compile(tree, "answer", "eval"), {"__builtins__": {}, **FUNCTIONS})
    except (SyntaxError, TypeError, NameError, ValueError, ArithmeticError):
        return WRONG


def written(answer: Prediction) -> list[str]:
    """All answers, the best first."""
    return [answer.text, *(other["output"] for other in answer.alternatives)]


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    chance = random.Random(1)
    pairs = [*dict(wish(chance) for _ in range(5000)).items()]  # each wish once
    new, old = pairs[:300], pairs[300:]
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.tsv"
        train.write_text("".join(f"{said}\t{code}\n" for said, code in old), "utf-8")
        settings = {
            "data": {"source.tokens": "symbols", "target.tokens": "symbols", "cache": False},
            "model": {"embedding": 32, "hidden": 96, "dropout": 0.1},
            "training": {"steps": steps, "batch_size": 64, "learning_rate": 0.01},
            "decoding": {"best": 4},
        }
        model = recurra.train("seq2seq", train=str(train), out=f"{folder}/run", settings=settings)

        wanted = [run(code) for _, code in new]
        answers = [written(answer) for answer in model.predict([said for said, _ in new], detail=True)]
        same = sum(codes[0] == code for codes, (_, code) in zip(answers, new, strict=True))
        best = sum(map(operator.eq, (run(codes[0]) for codes in answers), wanted))
        first = [next((value for value in map(run, codes) if value != WRONG), WRONG) for codes in answers]
        runs = sum(map(operator.eq, first, wanted))
        print(f"Of {len(new)} best answers, {same} are just what the test has, and {best} are worth the same;")
        print(f"of the first answers that are Python at all, {runs} are.")

        for rule in ("", 'banned=["*"]', 'forced=["=="]'):
            asked = model.with_settings([f"decoding.{rule}"]) if rule else model
            [answer] = asked.predict(["a list of x squared for even x from 3 to 12"], detail=True)
            print(f"\n{answer.input}{rule and ', with '}{rule}:")
            for code in written(answer):
                print(f"  {code}  →  {run(code)}")


if __name__ == "__main__":
    main()
