"""The C programs of the documentation and of examples/c: compiled against exported folders, they answer as Python."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.engines.c_library import compiler
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.heads.lattice import best_path_in_numpy
from recurra.text.vocabulary import END
from tests.exporting.exports import exported_once
from tests.once import made_once

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```c\n(.*?)^```$", (ROOT / "docs" / "export.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
FEW = {"training.steps": 12, "training.threads": 1, "model.hidden": 4, "model.layers": 1, "data.cache": False}
STEPS = [[0.5, -1.0], [2.0, 0.0], [-0.5, 1.5], [1.0, 1.0]]

OPENED = r"""
#include <stdio.h>
#include <stdlib.h>

static recurra_model *opened(const char *path) {
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(size);
    recurra_model *model;
    if (fread(bytes, 1, size, file) != size || recurra_open(bytes, size, &model)) exit(9);
    return model;
}
"""

NEXT = r"""
int main(int count, char **arguments) {
    const recurra_model *model = opened(arguments[1]);
    static float h[4], c[4], log_p[4096];
    if (recurra_begin(model, h, c)) return 8;
    int status = 0;
    for (int i = 2; i < count && !status; i++) {
        status = next(model, atoi(arguments[i]), h, c, log_p);
        if (i + 1 < count) printf("%.6f\n", log_p[atoi(arguments[i + 1])]);
    }
    return status;
}
"""

ANSWER = r"""
int main(int count, char **arguments) {
    int64_t source[64], length = 0, tokens[100], answered;
    for (int i = 2; i < count; i++) source[length++] = atoi(arguments[i]);
    const int status = answer(opened(arguments[1]), source, length, tokens, &answered);
    for (int64_t i = 0; i < answered && !status; i++) printf("%d\n", (int)tokens[i]);
    return status;
}
"""

BEST = r"""
int main(int count, char **arguments) {
    const int steps = atoi(arguments[2]);
    float scores[4096];
    int64_t tags[64];
    double log_p;
    for (int i = 3; i < count; i++) scores[i - 3] = (float)atof(arguments[i]);
    const int status = best(opened(arguments[1]), steps, scores, tags, &log_p);
    for (int i = 0; i < steps && !status; i++) printf("%d\n", (int)tags[i]);
    printf("%.6f\n", log_p);
    return status;
}
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of one layer, and a tagger of series that reads forward."""

    def make(here: Path) -> None:
        (here / "play.txt").write_text("the cat sees the dog\nthe dog sees a cat\n" * 4)
        rows = [{"frames": STEPS[:count], "tags": ["low", "high", "low", "high"][:count]} for count in (1, 2, 3, 4)]
        (here / "sensor.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        forward = {"model.bidirectional": False, "model.head": "softmax", "data.frames": "frames"}
        for task, file, own in (
            ("language_model", "play.txt", {"data.text.tokens": "words", "model.cell": "lstm"}),
            ("tagging", "sensor.jsonl", {**forward, "model.cell": "lstm"}),
        ):
            recurra.train(task, train=str(here / file), out=here / f"run-{task}", settings={**FEW, **own})
            export(here / f"run-{task}", here / task)

    return made_once(tmp_path_factory, "c-programs", make)


def built(text: str, folder: Path, place: Path, *flags: str) -> Path:
    """A program that is compiled with the C file of an exported folder, without a warning."""
    if (command := compiler()) is None:
        pytest.skip("there is no C compiler here")
    (place / "main.c").write_text(text)
    options = ["-O1", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}", *flags]
    files = [str(place / "main.c"), str(folder / "model.c"), "-lm", "-o", str(place / "program")]
    done = subprocess.run([*command, *options, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "program"


def ran(program: Path, *arguments: object, given: str = "") -> list[str]:
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, input=given).stdout.split()


def block(function: str) -> str:
    [found] = [each for each in BLOCKS if re.search(rf"^int {function}\(", each, re.MULTILINE)]
    return found


def test_every_c_block_of_the_documentation_is_tried_here() -> None:
    assert sorted(re.search(r"^int (\w+)\(", each, re.MULTILINE)[1] for each in BLOCKS) == ["answer", "best", "next"]  # type: ignore[index]


def test_a_step_of_a_language_model(models: Path, tmp_path: Path) -> None:
    program = built(block("next") + OPENED + NEXT, models / "language_model", tmp_path)
    running = load_exported(models / "language_model", by="numpy").running
    ids = [1, 4, 5, 6, 4, 2]
    states, right = running.run("begin", []), []
    for token, following in pairwise(ids):
        log_p, *states = running.run("step", [np.array([token]), *states])
        right.append(log_p[0, following])
    found = [float(each) for each in ran(program, models / "language_model" / "weights.bin", *ids)]
    assert found == pytest.approx(right, abs=1e-5)


def test_a_search_from_a_source(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = exported_once(tmp_path_factory) / "seq2seq"
    program = built(block("answer") + OPENED + ANSWER, folder, tmp_path)
    model = load_exported(folder, by="numpy")
    task: Any = model.task
    [row] = task.encode_all(task.questions(None, ["cat"]))
    [answer] = model.predict(["cat"], search="beam", width=5, best=1)
    *found, end = ran(program, folder / "weights.bin", *row["source"].tolist())
    tokens = task.texts.target.vocabulary.tokens
    assert "".join(tokens[int(each)] for each in found) == answer.output.replace(" ", "")
    assert tokens[int(end)] == END


def test_the_best_tags_of_a_crf(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = exported_once(tmp_path_factory) / "tagging"
    model: Any = load_exported(folder, by="numpy")
    [chain] = model.predictor.chains(model.running)
    scores = np.random.default_rng(1).normal(size=(1, 3, len(chain.start))).astype(np.float32)
    *tags, log_p = ran(built(block("best") + OPENED + BEST, folder, tmp_path), folder / "weights.bin", 3, *scores.flat)
    paths, right = best_path_in_numpy(chain, scores.astype(np.float64), np.array([3]))
    assert [int(each) for each in tags] == paths[0].tolist()
    assert float(log_p) == pytest.approx(right[0], abs=1e-4)


def test_a_stream_in_c_says_what_that_of_python_says_and_goes_on_after_its_end(models: Path, tmp_path: Path) -> None:
    folder = models / "tagging"
    [scale] = json.loads((folder / "scales.json").read_text()).values()
    sizes = {"NUMBERS": 2, "CLASSES": 2, "UNITS": 4}
    written = {name: ",".join(map(repr, scale[key])) for name, key in (("MEAN", "mean"), ("SPREAD", "spread"))}
    flags = [f"-D{name}={value}" for name, value in {**sizes, **written}.items()]
    program = built((ROOT / "examples" / "c" / "stream.c").read_text("utf-8"), folder, tmp_path, *flags)
    found: list[str] = []
    for some in (STEPS[:3], STEPS[3:]):  # two processes: the second goes on with the state of the first
        lines = "".join(f"{one} {other}\n" for one, other in some)
        found += ran(program, folder / "weights.bin", tmp_path / "state.bin", given=lines)[::2]
    model: Any = load_exported(folder, by="numpy")
    stream = model.stream()
    tags = model.task.tags[0].tokens
    assert [tags[int(each)] for each in found] == [stream.read(step).output for step in STEPS]
    damaged = tmp_path / "state.bin"
    damaged.write_bytes(b"short")
    done = subprocess.run([program, folder / "weights.bin", damaged], capture_output=True, input=b"1 2\n", check=False)
    assert done.returncode == 1
