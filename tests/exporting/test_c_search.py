"""A C program that calls one function of an exported model, from ids of a source to answers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from recurra.engines.c_library import compiler
from recurra.exported import load_exported
from recurra.exporting.folder import export

OLD = Path(__file__).parent.parent / "old_runs" / "0.1"

PROGRAM = r"""
#include "model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    FILE *file = fopen(arguments[1], "rb");
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    void *bytes = malloc((size_t)size);
    recurra_model *model;
    if (fread(bytes, 1, (size_t)size, file) != (size_t)size || recurra_open(bytes, (size_t)size, &model)) return 9;
    int64_t source[64], length = 0;
    for (int i = 2; i < count; i++) source[length++] = atoi(arguments[i]);
    int64_t answers, tokens[2][80], lengths[2];
    double log_p[2], scores[2];
    uint8_t ended[2];
    float weights[2][80][64];
    recurra_manner how;
    recurra_usual(&how);
    how.width = 5, how.best = 2, how.max_length = 80;
    recurra_found found = {.longest = 80, .count = &answers, .tokens = tokens[0], .lengths = lengths, .log_p = log_p,
                           .scores = scores, .ended = ended, .weights = weights[0][0]};
    const int status = recurra_write(model, &how, 1, length, source, &length, &found);
    for (int64_t n = 0; n < answers && !status; n++) {
        printf("%.6f", scores[n]);
        for (int64_t i = 0; i < lengths[n]; i++) printf(" %d", (int)tokens[n][i]);
        printf("\n");
    }
    how.max_ratio = 0, how.max_length = 81;
    const int no_room = recurra_write(model, &how, 1, length, source, &length, &found) == RECURRA_SIZES;
    const int64_t none = 1 << 20;
    how.banned_count = 1, how.banned = &none, how.max_length = 80;
    const int no_id = recurra_write(model, &how, 1, length, source, &length, &found) == RECURRA_IDS;
    int refused = 0;
#define REFUSES(wrong) how.max_length = 80, found.longest = 80, wrong, refused += \
    recurra_write(model, &how, 1, length, source, &length, &found) == RECURRA_SIZES, \
    recurra_usual(&how)
    REFUSES((how.banned_count = 1, how.banned = NULL));
    REFUSES((how.prefix_count = INT64_MAX, how.prefix = &none));
    REFUSES((how.forced_count = -1, how.forced = &none));
    REFUSES(how.min_length = INT64_MAX);
    REFUSES(how.length_penalty = NAN);
    REFUSES(how.coverage_penalty = -1);
    int64_t *const there = found.tokens;
    REFUSES(found.tokens = NULL);
    found.tokens = there;
    recurra_close(model);
    free(bytes);
    fclose(file);
    return status ? status : no_room && no_id && refused == 7 ? 0 : 8;
}
"""


@pytest.mark.filterwarnings("ignore:.* has no manifest.json:UserWarning")
def test_one_call_of_c_leads_from_ids_to_the_answers_of_the_run(tmp_path: Path) -> None:
    command = compiler()
    if command is None:
        pytest.skip("there is no C compiler here")
    export(OLD / "seq2seq" / "run", tmp_path / "exported")
    model = load_exported(tmp_path / "exported")
    program, task = built(command, tmp_path), cast(Any, model.task)
    [data] = (OLD / "seq2seq" / "data").glob("valid.*")
    [example, *_] = task.read([data])
    row = task.encode(example)["source"].tolist()
    done = subprocess.run(
        [str(program), str(tmp_path / "exported" / "weights.bin"), *map(str, row)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = model.predict([example.source], width=5, best=2, search="beam")[0]
    right = [wanted.detail, *wanted.detail["alternatives"]]
    vocabulary = task.texts.target.vocabulary
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [vocabulary.tokens_of([int(each) for each in ids[:-1]]) for _, *ids in lines] == [
        each["tokens"] for each in right
    ]
    assert float(lines[0][0]) == pytest.approx(wanted.score, abs=1e-5)


def built(command: tuple[str, ...], folder: Path) -> Path:
    (folder / "main.c").write_text(PROGRAM)
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-std=c11", f"-I{folder / 'exported'}"]
    sources = [str(folder / "main.c"), str(folder / "exported" / "model.c")]
    done = subprocess.run(
        [*command, *flags, *sources, "-lm", "-o", str(folder / "main")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "main"
