"""The C file of every task under the sanitizers: inputs of any size, ids from anywhere, weights that are damaged.

Arrays are as large as they must be and no larger, so that whatever is read or written outside of one is found.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recurra.engines.c_library import compiler
from recurra.exporting.folder import export
from recurra.programs.c_path import chains
from recurra.programs.c_text import Printed
from recurra.programs.c_values import C_TYPES, c_count
from recurra.programs.in_numpy import InNumpy
from recurra.programs.narrowing import Width
from recurra.programs.program import Function, Program, output_values
from recurra.programs.weights import BYTES, weights_content
from tests.exporting.test_kinds_of_models import MODELS, PAIRS, SYMBOLS, agree

OLD = Path(__file__).parent.parent / "old_runs" / "0.1"
TASKS = ("tagging", "classification", "language_model", "seq2seq", "vec2seq")

HEAD = r"""
#include "model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;
static long answered, refused;
static uint64_t drawn(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static int64_t below(int64_t n) { return (int64_t)(drawn() % (uint64_t)n); }
static int64_t id(int64_t n) { return below(200) ? below(n) : (int64_t)drawn() >> below(64); }
static float number(void) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e-40f};
    return below(200) ? (float)below(2001) / 500 - 2 : odd[below(5)];
}
static void *bytes_for(int64_t count, size_t each) { return malloc((size_t)count * each); }
"""

MAIN = r"""
int main(int count, char **arguments) {
    FILE *file = fopen(arguments[1], "rb");
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)size);
    if (count != 2 || fread(bytes, 1, (size_t)size, file) != (size_t)size) return 9;
    fclose(file);
    recurra_model *model;
    if (recurra_open(bytes, (size_t)size, &model)) return 8;
    for (int n = 0; n < 10000; n++) {
        switch (n % FUNCTIONS) { CASES }
    }
    recurra_close(model);
    for (int n = 0; n < 2000; n++) {
        const long cut = n % 4 ? size : below(size);
        unsigned char *other = malloc((size_t)cut);  /* ends where the file does */
        memcpy(other, bytes, (size_t)cut);
        for (int64_t k = n % 4 ? 1 + below(3) : 0; k; k--) other[below(cut)] ^= (unsigned char)(1 + below(255));
        const int status = recurra_open(other, (size_t)cut, &model);
        if (!status) recurra_close(model);
        if (status != RECURRA_WEIGHTS && status != RECURRA_OK) return 7;
        free(other);
    }
    free(bytes);
    printf("%ld %ld\n", answered, refused);
    return 0;
}
"""


def caller(name: str, function: Function, program: Program) -> str:
    """C that calls a function once, with random sizes and numbers."""
    names = [f"n_{each}" for each in function.names]
    values = output_values(function, program)
    lines = [f"static int call_{name}(const recurra_model *model) {{"]
    lines += [f"    int64_t {each} = below(12) ? 1 + below(4) : below(2);" for each in names]
    if names:
        lines.append(f"    if (!below(20)) {{ {names[0]} = (int64_t)drawn() >> below(60); }}")
    sizes = ", ".join([*names, "counts"])
    lines.append(f"    int64_t counts[{len(values) + 1}];")
    lines.append(f"    const int fits = recurra_sizes_of_{name}({sizes});")
    counts = [f"n_of_{each.name}" for each in function.inputs]
    for each, count in zip(function.inputs, counts, strict=True):
        lines.append(f"    const int64_t {count} = fits ? 0 : {c_count(each.value.shape)};")
    large = [f"{each} > 100000" for each in (*counts, *(f"counts[{number}]" for number in range(len(values))))]
    lines.append(f"    if (!fits && ({' || '.join(large)})) return 0;")
    arrays = []
    for each in function.inputs:
        kind, count = C_TYPES[each.value.type], f"n_of_{each.name}"
        filled = (
            "number()" if kind in ("float", "double") else f"id({each.below or 5})" if kind == "int64_t" else "below(2)"
        )
        arrays.append((f"in_{each.name}", kind, count))
        lines.append(f"    {kind} *in_{each.name} = bytes_for({count}, {BYTES[each.value.type]});")
        lines.append(f"    for (int64_t i = 0; i < {count}; i++) in_{each.name}[i] = ({kind}){filled};")
    for number, ((output, _), value) in enumerate(zip(function.outputs, values, strict=True)):
        kind = C_TYPES[value.type]
        arrays.append((f"out_{output}", kind, ""))
        lines.append(f"    {kind} *out_{output} = bytes_for(fits ? 0 : counts[{number}], {BYTES[value.type]});")
    given = ", ".join(["model", *names, *(array for array, _, _ in arrays)])
    lines.append(f"    const int status = recurra_{name}({given});")
    lines += ["    if (fits && status != fits) abort();", "    *(status ? &refused : &answered) += 1;"]
    lines += [f"    free({array});" for array, _, _ in arrays]
    return "\n".join([*lines, "    return 0;", "}", ""])


def path_caller(number: int, labels: int) -> str:
    """C that looks for the best path of a chain once."""
    return f"""
static int call_path{number}(const recurra_model *model) {{
    const int64_t B = below(5), T = below(12) ? below(9) : -below(3), n = T < 0 ? 0 : B * T;
    float *scores = bytes_for(n * {labels}, 4);
    int64_t *lengths = bytes_for(B, 8), *tags = bytes_for(n, 8);
    double *log_p = bytes_for(B, 8);
    for (int64_t i = 0; i < n * {labels}; i++) scores[i] = number();
    for (int64_t i = 0; i < B; i++) lengths[i] = below(30) ? T ? below(T < 0 ? 3 : T + 1) : 0 : id(5);
    const int status = recurra_path{number}(model, B, T, scores, lengths, tags, below(2) ? log_p : NULL);
    for (int64_t i = 0; !status && i < n; i++)
        if (tags[i] < 0 || tags[i] >= {labels}) abort();
    *(status ? &refused : &answered) += 1;
    free(scores), free(lengths), free(tags), free(log_p);
    return 0;
}}
"""


def driver(program: Program) -> str:
    """A program of C that calls every function of a model, and opens damaged weights."""
    callers = [caller(name, function, program) for name, function in program.functions.items()]
    callers += [path_caller(number, labels) for number, labels in chains(program)]
    names = [*program.functions, *(f"path{number}" for number, _ in chains(program))]
    cases = " ".join(f"case {number}: call_{name}(model); break;" for number, name in enumerate(names))
    main = MAIN.replace("FUNCTIONS", str(len(callers))).replace("CASES", cases)
    return HEAD + "\n".join(callers) + main


def attacked(folder: Path, program: Program) -> tuple[int, int]:
    """How many calls of an exported C file were answered and how many refused; an assertion where one went wrong."""
    command = compiler()
    if command is None:
        pytest.skip("there is no C compiler here")
    main = folder / "main"
    (folder / "main.c").write_text(driver(program))
    flags = ["-O1", "-g", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{folder}"]
    sources = [str(folder / "main.c"), str(folder / "model.c")]
    built = subprocess.run(
        [*command, *flags, *sources, "-lm", "-o", str(main)], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(main), str(folder / "weights.bin")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    answered, refused = map(int, done.stdout.split())
    assert answered > 2000
    assert refused > 100
    return answered, refused


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* has no manifest.json:UserWarning")
@pytest.mark.parametrize(
    ("task", "width"),
    [
        *((task, "float32") for task in TASKS),
        ("vec2seq", "int8"),
        ("seq2seq", "int8"),
        ("tagging", "int8"),
        ("seq2seq", "bf16"),
    ],
)
def test_ten_thousand_inputs_and_two_thousand_damaged_weights_give_an_answer_or_a_code(
    tmp_path: Path, task: str, width: Width
) -> None:
    folder = tmp_path / "exported"
    export(OLD / task / "run", folder, weights=width)
    answered, refused = attacked(folder, Program.from_json((folder / "program.json").read_text()))
    print(f"{task} {width}: {answered:,} answered, {refused:,} refused")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_models_of_every_kind_give_an_answer_or_a_code_too(tmp_path: Path, name: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS)
    [running] = agree(path, "seq2seq", {**SYMBOLS, **MODELS[name]}, "numpy")
    assert isinstance(running, InNumpy)
    printed = Printed(running.program)
    (tmp_path / "model.c").write_text(printed.text)
    (tmp_path / "model.h").write_text(printed.header())
    (tmp_path / "weights.bin").write_bytes(weights_content(running.program, running.weights).tobytes())
    answered, refused = attacked(tmp_path, running.program)
    print(f"{name}: {answered:,} answered, {refused:,} refused")
