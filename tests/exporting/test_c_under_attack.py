"""The C file under the sanitizers of a compiler: inputs of any size, ids from anywhere, weights that are damaged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recurra.engines.c_library import compiler
from recurra.exporting.folder import export

OLD = Path(__file__).parent.parent / "old_runs" / "0.1"

DRIVER = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static uint64_t drawn(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static int64_t below(int64_t n) { return (int64_t)(drawn() % (uint64_t)n); }

int main(int count, char **arguments) {
    FILE *file = fopen(arguments[1], "rb");
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)size), *other = malloc((size_t)size);
    if (count != 2 || fread(bytes, 1, (size_t)size, file) != (size_t)size) return 9;
    fclose(file);
    recurra_model *model;
    if (recurra_open(bytes, (size_t)size, &model)) return 8;
    long answered = 0, refused = 0;
    for (int n = 0; n < 10000; n++) {
        const int64_t B = below(4), T = below(7), N = 1 + below(4);
        int64_t words[64], lengths[8], places[64];
        static float spelt[4096], scores[65536];
        for (int i = 0; i < 64; i++) {
            words[i] = below(20) ? below(3) : (int64_t)drawn();
            places[i] = below(20) ? below(N) : (int64_t)drawn();
        }
        for (int i = 0; i < 8; i++) lengths[i] = below(20) ? below(T + 1) : (int64_t)drawn();
        const int64_t odd = below(50) ? B : (int64_t)drawn() >> below(60);
        if (recurra_scores(model, odd > 4 ? -odd : B, N, T, words, lengths, spelt, places, scores))
            refused++;
        else
            answered++;
    }
    recurra_close(model);
    for (int n = 0; n < 2000; n++) {
        memcpy(other, bytes, (size_t)size);
        const int is_cut = n % 4 == 0;
        if (!is_cut) other[below(size)] ^= (unsigned char)(1 + below(255));
        const int status = recurra_open(other, (size_t)(is_cut ? below(size) : size), &model);
        if (!status) recurra_close(model);
        if (status != RECURRA_WEIGHTS && status != RECURRA_OK) return 7;
    }
    free(bytes);
    free(other);
    printf("%ld %ld\n", answered, refused);
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* has no manifest.json:UserWarning")
def test_ten_thousand_inputs_and_two_thousand_damaged_weights_give_an_answer_or_a_code(tmp_path: Path) -> None:
    command = compiler()
    if command is None:
        pytest.skip("there is no C compiler here")
    export(OLD / "tagging" / "run", tmp_path / "exported")
    (tmp_path / "main.c").write_text(DRIVER)
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{tmp_path / 'exported'}"]
    sources = [str(tmp_path / "main.c"), str(tmp_path / "exported" / "model.c")]
    built = subprocess.run(
        [*command, *flags, *sources, "-lm", "-o", str(tmp_path / "main")], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [str(tmp_path / "main"), str(tmp_path / "exported" / "weights.bin")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answered, refused = map(int, done.stdout.split())
    assert answered > 1000
    assert refused > 1000
