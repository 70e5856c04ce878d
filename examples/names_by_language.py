"""Which language a family name is from, letter by letter: python examples/names_by_language.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

import recurra

NAMES = Path(__file__).parent / "data" / "names.tsv"
NEW = ["Kowalewski", "Rautanen", "Takamura", "Castellini", "Özgür", "Blanchet", "Schönberger", "Whitaker"]


def main() -> None:
    header, *rows = NAMES.read_text("utf-8").splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as folder:
        train, valid = Path(folder) / "train.tsv", Path(folder) / "valid.tsv"
        valid.write_text(header + "".join(rows[::6]), "utf-8")
        train.write_text(header + "".join(row for number, row in enumerate(rows) if number % 6), "utf-8")
        settings = {
            "data": {"text.tokens": "characters", "cache": False},
            "model": {"embedding": 32, "hidden": 48, "summary": "max", "dropout": 0.3, "word_dropout": 0.1},
            "training": {"epochs": 20, "batch_size": 25, "learning_rate": 0.01, "average": None},
        }
        model = recurra.train(
            "classification", train=str(train), valid=str(valid), out=Path(folder) / "run", settings=settings
        )

        for answer in model.predict(NEW, detail=True):
            likely = answer.detail["probabilities"]
            print(f"{answer.input}: {answer.output}")
            print("  " + ", ".join(f"{language} {share:.2f}" for language, share in list(likely.items())[:3]))

        scores = model.evaluate(valid)
        print(f"{scores.values['accuracy']:.2f} of {len(rows[::6])} names that it never saw are right")
        print(scores.tables["confusion"].text())


if __name__ == "__main__":
    main()
