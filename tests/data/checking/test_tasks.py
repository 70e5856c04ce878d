"""The command that a report offers can be typed and reads the roles of its task."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from recurra.data import rows
from recurra.data.check import check
from recurra.named import catalogue
from recurra.runs import setup
from recurra.tasks.task import Task


def written(folder: Path, name: str, content: str) -> Path:
    file = folder / name
    file.write_bytes(content.encode())
    return file


def lines(objects: Iterable[object]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in objects)


TASKS: list[tuple[str, str, dict[str, Any], dict[str, list[str]]]] = [
    ("a.conllu", "1\ta" + "\t_" * 8 + "\n", {}, {"tagging": [], "language_model": []}),
    ("a.conll", "a X\n", {}, {"tagging": [], "language_model": []}),
    ("a.txt", "a\n", {}, {"language_model": []}),
    ("a.tsv", "a\tb\n", {"columns": ["source", "target"]}, {"seq2seq": ['data.columns=["source","target"]']}),
    ("a.tsv", "a\tb\n", {"columns": ["tokens", "tags"]},
     {"tagging": ['data.columns=["tokens","tags"]'], "language_model": ['data.columns=["tokens","tags"]']}),
    ("a.tsv", "text\tlabel\na\tb\n", {}, {"classification": [], "language_model": []}),
    ("a.tsv", "one\tuno\ntwo\tdue\nsix\tsei\n", {},
     {"seq2seq": ['data.columns=["source","target"]'], "language_model": ['data.columns=["text","_"]']}),
    ("a.tsv", "pos\ta b\npos\tc d\nneg\te f\nneg\tg h\n", {},
     {"classification": ['data.columns=["label","text"]'], "seq2seq": ['data.columns=["source","target"]'],
      "language_model": ['data.columns=["_","text"]']}),
    ("a.tsv", "a b\tX Y\tp\nc d\tY X\tp\ne f\tX X\tn\ng h\tX Y\tn\n", {},
     {"tagging": ['data.columns=["tokens","tags","label"]'], "classification": ['data.columns=["text","_","label"]'],
      "language_model": ['data.columns=["text","_","_"]']}),
    ("a.csv", "Nr,Text,Kategorie\n1,it is late,p\n2,it is lost,q\n3,it is late,p\n4,it is lost,q\n", {},
     {"classification": ["data.text=Text", "data.label=Kategorie"],
      "language_model": ["data.text=Text"]}),
    ("a.tsv", "90\tninety\n47\tforty seven\n635\tsix hundred\n", {},
     {"classification": ['data.columns=["target","text"]'], "seq2seq": ['data.columns=["source","target"]'],
      "vec2seq": ['data.columns=["vector","target"]'], "language_model": ['data.columns=["_","text"]']}),
    ("a.tsv", "red\t9\t0\nsalmon\t9\t6\nblue\t0\t8\n", {},
     {"vec2seq": ['data.columns=["target","vector","vector"]'], "language_model": ['data.columns=["text","_","_"]']}),
    ("a.csv", "film,mark\ngood,p\nbad,n\nfine,p\npoor,n\n", {"format": {"name": "csv", "header": True}},
     {"classification": ['data.format={name="csv",header=true}', "data.text=film", "data.label=mark"],
      "language_model": ['data.format={name="csv",header=true}', "data.text=film"]}),
    ("a.jsonl", "".join(json.dumps({"my body": f"t{k}", "stars": k % 2}) + "\n" for k in range(6)), {},
     {"classification": ['data.text="my body"', "data.label=stars"],
      "vec2seq": ['data.target="my body"', 'data.vector=["stars"]'],
      "language_model": ['data.text="my body"']}),
    ("a.data", "a\n", {"format": "text"}, {"language_model": ["data.format=text"]}),
    ("a.ft", "__label__p a b\n__label__n c d\n" * 3, {}, {"classification": [], "language_model": []}),
    ("a.txt", "__label__p __label__q a b\n__label__n c d\n" * 3, {"format": "fasttext"},
     {"classification": ["data.format=fasttext"], "language_model": ["data.format=fasttext"]}),
    ("a.jsonl", lines({"body": f"t{k}", "topics": ["xy"[k % 2], "z"]} for k in range(6)), {},
     {"classification": ["data.text=body", "data.labels=topics"], "language_model": ["data.text=body"]}),
    ("a.jsonl", lines({"text": f"t{k}", "marks": k / 2} for k in range(6)), {},
     {"classification": ['data.targets=["marks"]'], "language_model": []}),
    ("a.jsonl", lines({"text": f"t{k}", "score": k / 2} for k in range(6)), {},
     {"classification": [], "language_model": []}),
    ("a.jsonl", lines({"label": "ab"[k % 2], "x": [[k, 1.5]] * (1 + k)} for k in range(6)), {},
     {"classification": ["data.frames=x"]}),
    ("a.jsonl", lines({"label": "ab"[k % 2], "frames": [k, 1.5]} for k in range(6)), {}, {"classification": []}),
    ("a.jsonl", lines({"2 speakers": "ab"[k % 2], "true": [k, 1.5]} for k in range(6)), {},
     {"classification": ['data.frames="true"', 'data.label="2 speakers"']}),
    ("a.jsonl", lines({"frames": [[k, 1.5]] * (1 + k)} for k in range(6)), {}, {"forecasting": []}),
    ("a.jsonl", lines({"roll": [[k, 1.5]] * (1 + k)} for k in range(6)), {}, {"forecasting": ["data.frames=roll"]}),
    ("a.jsonl", lines({"name": f"red {k}", "r": k, "g": k / 2} for k in range(6)), {},
     {"vec2seq": ["data.target=name", 'data.vector=["r","g"]'], "language_model": ["data.text=name"]}),
    ("a.jsonl", lines({"id": k, "latex": f"x + {k}", "ink": [[[k, 1, 5], [2, 2, k]]]} for k in range(6)), {},
     {"vec2seq": ["data.image.strokes=ink", "data.target=latex"],
      "language_model": ["data.text=latex"]}),
    ("a.jsonl", lines({"strokes": [[[k, 1], [2, k], [5, 5]]], "target": f"x + {k}"} for k in range(6)), {},
     {"vec2seq": [], "language_model": ["data.text=target"]}),
    ("a.jsonl", lines({"photo": f"{k}.jpg", "text": f"a dog and {k} cats"} for k in range(6)), {},
     {"vec2seq": ["data.image=photo", "data.target=text"], "language_model": []}),
    ("a.jsonl", lines({"photo": f"{k}.jpg", "label": "ab"[k % 2]} for k in range(6)), {},
     {"classification": ["data.image=photo"]}),
    ("a.tsv", "".join(f"p/{k}.png\t{'ab'[k % 2]}\n" for k in range(6)), {},
     {"classification": ['data.columns=["image","label"]']}),
    ("a.jsonl", lines({"image": [[0, k], [k, 255]], "label": "ab"[k % 2]} for k in range(6)), {},
     {"classification": []}),
    ("a.tsv", "image\tcaption\n" + "".join(f"p/{k}.png\ta {'ab'[k % 2]}\n" for k in range(6)), {},
     {"classification": ["data.label=caption"], "vec2seq": ["data.target=caption"]}),
    ("a.csv", "red,green,called\n9,0,red\n9,6,salmon\n0,8,blue\n", {},
     {"vec2seq": ["data.target=called", 'data.vector=["red","green"]'],
      "language_model": ["data.text=called"]}),
    ("a.csv", "red,called\n9,red\n8,salmon\n", {"format": {"name": "csv", "header": False}},
     {"seq2seq": ['data.format={name="csv",header=false}', 'data.columns=["source","target"]'],
      "language_model": ['data.format={name="csv",header=false}', 'data.columns=["text","_"]']}),
    ("a.jsonl", lines({"context": ["It rains.", f"{k} dogs bark."], "question": "Dogs?", "answer": "yes"[:k + 1]}
                      for k in range(4)), {},
     {"question_answering": [], "language_model": ["data.text=context"]}),
    ("a.babi", "1 Ann went home.\n2 Bob slept.\n3 Where is Ann?\thome\t1\n", {}, {"question_answering": []}),
    ("a.jsonl", lines({"features": [[k, 1.5]] * (1 + k), "caption": "ab"[k % 2]} for k in range(6)), {},
     {"classification": ["data.frames=features", "data.label=caption"],
      "vec2seq": ["data.frames=features", "data.target=caption"]}),
    ("a.jsonl", lines({"frames": [[k, 1.5]] * (1 + k), "target": f"{k} keys"} for k in range(6)), {},
     {"seq2seq": [], "vec2seq": [], "language_model": ["data.text=target"], "forecasting": []}),
    ("a.csv", "date,rain\n" + "".join(f"2026-0{k},{k / 2}\n" for k in range(1, 6)), {}, {"forecasting": []}),
    ("a.csv", "month,rain,id\n" + "".join(f"2026-0{k},{k / 2 if k % 2 else ''},{k}\n" for k in range(1, 6)), {},
     {"forecasting": ["data.time=month", 'data.values=["rain"]']}),
    ("a.tsv", "YEAR\tspots\n" + "".join(f"{1700 + k}\t{k % 3}\n" for k in range(12)), {},
     {"forecasting": []}),
    ("a.jsonl", lines({"time": k // 2, "room": "ab"[k % 2], "heat": 20 + k / 3} for k in range(12)), {},
     {"forecasting": ["data.series=room"]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "expected"), TASKS)
def test_the_command_to_type_next_reads_the_roles_of_the_task(
    name: str, content: str, options: dict[str, Any], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    path = written(tmp_path, name, content)
    report = check([path], **options)
    found = {}
    for service in report.tasks:
        assert (service.command is None) == (service.reason is not None)
        if service.command is None:
            continue
        words = shlex.split(service.command)
        assert words[:7] == ["recurra", "train", service.task, "--train", str(path), "--out", f"runs/{service.task}"]
        found[service.task] = settings = [word for word in words[7:] if word != "--set"]
        if service.task in catalogue(Task):
            kind, typed, _ = setup(service.task, given={"train": str(path)}, overrides=settings)
            kind.resolved(typed)
            continue
        chosen = {key.removeprefix("data."): tomllib.loads(f"x = {value}")["x"] for key, _, value in parted(settings)}
        wanted = {"seq2seq": {"source", "target"}, "vec2seq": {"vector", "target"}}
        assert wanted[service.task] <= {*next(rows(path, **chosen)).values}
    assert found == expected


def parted(settings: Iterable[str]) -> list[tuple[str, str, str]]:
    return [setting.partition("=") for setting in settings]


def test_several_files_and_odd_names_are_written_so_that_a_shell_reads_them(tmp_path: Path) -> None:
    files = [written(tmp_path, name, "a\n") for name in ("it's a.txt", "b.txt", "c d.txt")]
    [command] = [service.command for service in check(files[:2], valid=files[2:]).tasks if service.command]
    assert shlex.split(command) == [
        "recurra", "train", "language_model", "--set", f'data.train=["{files[0]}","{files[1]}"]', "--valid",
        str(files[2]), "--out", "runs/language_model",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (
            "tagging",
            "it needs a column of tokens and a column with one tag for each token. A file with one word per line "
            "needs an empty line after each sentence (--format conll).",
        ),
        (
            "classification",
            "it needs a text, a picture or a series of numbers to read, and a label to predict (at most 200 values, "
            "which recur), a list of labels or a number.",
        ),
        (
            "question_answering",
            "it needs columns that are called context, question and answer, or stories with numbered lines "
            "(--format babi).",
        ),
        ("seq2seq", "it needs a source and a target: two columns of text, or frames of numbers and a text."),
        ("vec2seq", "it needs a vector of numbers, a picture or features of places, and a target text."),
        ("forecasting", "it needs a table with a time column and numbers, or sequences of numbers without labels."),
    ],
)
def test_a_task_that_the_file_cannot_serve_says_why(task: str, reason: str, tmp_path: Path) -> None:
    report = check([written(tmp_path, "a.txt", "a\n")])
    assert f"  {task}: no, {reason}" in report.text().splitlines()
    if task == "forecasting":
        return
    named = check([written(tmp_path, "a.tsv", "1\n")], columns=["id"])
    assert f"  {task}: no, {reason} Name their roles with data.columns." in named.text().splitlines()


def test_stories_of_babi_are_for_question_answering_alone(tmp_path: Path) -> None:
    report = check([written(tmp_path, "a.babi", "1 Ann went home.\n2 Where is Ann?\thome\t1\n")])
    reasons = {service.task: service.reason for service in report.tasks}
    assert reasons.pop("question_answering") is None
    assert {*reasons.values()} == {"stories with numbered lines are read by question_answering."}


def test_two_texts_as_a_source_need_a_table(tmp_path: Path) -> None:
    row = {"context": "It rains.", "question": "Does it rain?", "answer": "yes"}
    [reason] = [
        service.reason
        for service in check([written(tmp_path, "a.jsonl", lines([row, row]))]).tasks
        if service.task == "seq2seq"
    ]
    assert reason == "two texts form a source only in a table (.tsv or .csv)."
