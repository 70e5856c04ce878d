"""Where addresses have 32 bits, as in WebAssembly, what needs more memory than there is gets a code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from recurra.engines.c_library import compiler
from recurra.programs.c_text import Printed
from recurra.programs.program import Program

SMALL = """
#if defined(__x86_64__)
#include <immintrin.h>
#endif
static void *small_malloc(uint32_t bytes) { return malloc(bytes); }
#define malloc small_malloc
#define size_t uint32_t
#undef PTRDIFF_MAX
#define PTRDIFF_MAX INT32_MAX
"""
"""Sizes of memory that wrap around as on a machine of 32 bits."""

MAIN = """
#include <stdio.h>
int main(void) {
    float *x = calloc(50000, sizeof(float)), *y = calloc(50000, sizeof(float));
    void *spare = NULL;
    recurra_model model = {.spare = &spare};
    printf("%d %d %d", recurra_sums(&model, 100, x, y), recurra_sums(&model, 40000, x, y),
           recurra_sums(&model, 16000, x, y));
    free(x);
    free(y);
    return 0;
}
"""


def test_arrays_that_do_not_fit_into_32_bits_are_refused(tmp_path: Path) -> None:
    """40,000² numbers are too many for one array; five arrays of 16,000² for all memory: their sum wraps around."""
    command = compiler()
    if command is None:
        pytest.skip("there is no C compiler here")
    square = ["float32", "T", "T"]
    steps = [["cumsum", [number], [square], {"dim": 1}] for number in range(1, 6)]
    operations = [["expand", [0], [square]], *steps, ["sum", [6], [["float32", "T"]], {"dims": [0]}]]
    sums = {"inputs": [["x", ["float32", "T"], None]], "operations": operations, "outputs": [["y", 7]]}
    text = Printed(Program.from_json(json.dumps({"format": 1, "weights": {}, "functions": {"sums": sums}}))).text
    last = "#include <string.h>\n"
    assert text.count(last) == 1
    (tmp_path / "main.c").write_text(text.replace(last, last + SMALL) + MAIN)
    built = [*command, "-O1", "-std=gnu11", "-w", str(tmp_path / "main.c"), "-lm", "-o", str(tmp_path / "main")]
    subprocess.run(built, check=True)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0 1 2")
