"""Answers to a folder of files: `recurra predict RUN FOLDER --out FOLDER` writes a file for each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from recurra.commands.answers import UnknownSymbols, format_asked, tell, which_model, write_answers
from recurra.commands.joined import ENDINGS
from recurra.data.files import COMPRESSED, extension, lines
from recurra.data.shards import shards
from recurra.errors import ConfigError
from recurra.manifest import locked
from recurra.sharded import Sharded, as_json, file_mark
from recurra.text.json_file import read_json, write_json

ABOUT = "unfinished.json"
"""What the folder of answers holds until it is whole: which command writes it."""


def predict_folder(options: argparse.Namespace) -> None:
    """Answer the files of a folder one after the other; those whose answers are there already are passed over."""
    if options.out is None:
        raise ConfigError(f"'{options.file}' is a folder: name the folder of the answers with --out FOLDER.")
    if options.raw:
        raise ConfigError("--raw reads one plain text (.txt), and not a folder: leave it out.")
    source, target = Path(options.file), Path(options.out)
    files = shards(source)
    format = format_asked(argparse.Namespace(**{**vars(options), "out": None}))[0]
    which = which_model(options)
    model = which.load()
    names = {file: name_of(file, model.task.format_of(extension(file)) or format) for file in files}
    if len({*names.values()}) < len(files):
        twice = next(name for name in names.values() if [*names.values()].count(name) > 1)
        raise ConfigError(f"{source}: the answers to several files would be called {twice}. Rename them.")
    marks = {file.name: file_mark(str(file)) for file in files}
    about = as_json({**which.mark(), "format": format, "files": marks})
    if target.exists() and not target.is_dir():
        raise ConfigError(f"--out {target}: this is a file, but the answers to a folder are written to a folder.")
    with locked(target, f"--out {target}: another process is writing there just now."):
        found: Any = read_json(target / ABOUT) if (target / ABOUT).is_file() else None
        if found is None and any(path.name != ".lock" for path in target.iterdir()):
            raise ConfigError(f"--out {target}: this folder exists already. Remove it, or choose another name.")
        if found is not None and found != about:
            differing = ", ".join(name for name in about if found.get(name) != about[name])
            raise ConfigError(
                f"--out {target} holds answers of another command ({differing} differ). Remove it, or choose another "
                "name."
            )
        write_json(target / ABOUT, about)
        done = [file for file in files if (target / names[file]).exists()]
        if done:
            tell(f"goes on after {len(done):,} of {len(files):,} files, whose answers are there already")
        with Sharded(which, model, options.processes or 1) as sharded:
            for file in files:
                if file in done:
                    continue
                if (said := model.header_in(file)) is not None:
                    tell(said)
                chosen = format or model.task.format_of(extension(names[file]))
                text = (line for _, line in lines(file))
                print(write_answers(sharded, target / names[file], str(file), text, chosen, UnknownSymbols()))
        (target / ABOUT).unlink()


def name_of(file: Path, format: str | None) -> str:
    """What the file with the answers is called: as its questions are, where answers are written so.

    >>> [name_of(Path(name), None) for name in ("a.parquet", "a.jsonl.zst", "a.txt", "a.ndjson")]
    ['a.parquet', 'a.jsonl.zst', 'a.txt.jsonl', 'a.ndjson.jsonl']
    """
    if f".{extension(file)}" in ENDINGS and format is None:
        return file.name
    if format is not None and extension(file) == format:
        return file.name
    zipped = next((ending for ending in COMPRESSED if file.name.lower().endswith(ending)), "")
    return f"{file.name.removesuffix(zipped)}.{format or 'jsonl'}{zipped}"
