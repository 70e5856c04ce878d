"""Learn to write like a play, score lines and go on from prompts: python examples/write_shakespeare.py [TEXT_FILE]

Without a file it learns the beginning of the balcony scene (Romeo and Juliet, act 2, scene 2), out of the collection
"Tiny Shakespeare" of karpathy/char-rnn; the text is in the public domain.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import recurra

SCENE = Path(__file__).parent / "data" / "balcony.txt"
RIGHT = "O Romeo, Romeo! wherefore art thou Romeo?"
WRONG = "O Romeo, Romeo! wherefore thou art Romeo?"


def main() -> None:
    text = Path(sys.argv[1]) if len(sys.argv) > 1 else SCENE
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "data": {"cache": False},
            "model": {"hidden": 128, "layers": 1, "token_dropout": 0.0, "output_dropout": 0.1, "weight_drop": 0.0},
            "reading": {"steps": 60},
            "training": {"steps": 250, "batch_size": 8, "learning_rate": 0.03, "average": "none"},
        }
        model = recurra.train("language_model", train=str(text), out=Path(folder) / "run", settings=settings)

        print("Two texts after 'JULIET:', and how probable the model finds them:\n")
        for written in recurra.generate(model, "JULIET:\n", count=2, seed=2, length=150, temperature=0.7):
            print(written.whole)
            print(f"    {written.log_probability / len(written.tokens):.2f} nats a character\n")

        print("A prompt, and its most probable end:")
        [line] = recurra.generate(model, "O Romeo, Romeo!", until="\n", temperature=0, length=80)
        print(line.whole)

        right, wrong = model.predict([RIGHT, WRONG])
        print(f"\nThis line is e^{right.score - wrong.score:.1f} times as probable as with 'thou art':")
        print(right.input)


if __name__ == "__main__":
    main()
