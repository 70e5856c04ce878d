"""Programs of C that call every function of an exported model with inputs of any size and settings that are wrong.

Arrays are as large as they must be and no larger, so that whatever is read or written outside of one is found.
"""

from __future__ import annotations

from recurra.programs.c_path import chains
from recurra.programs.c_text import Printed
from recurra.programs.c_values import C_TYPES, c_count, c_size
from recurra.programs.program import Function, Named, Program, output_values
from recurra.programs.weights import BYTES

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
/* Mostly one of n numbers, now and then anything. */
static int64_t hostile(int64_t least, int64_t n) {
    static const int64_t far[] = {INT64_MIN, INT64_MAX, -1, 0, 65536, 65537, (int64_t)1 << 30, (int64_t)1 << 40};
    return below(40) ? least + below(n) : below(2) ? far[below(8)] : (int64_t)drawn() >> below(64);
}
static double strange(double usual) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 1e308, 5e-324, 0};
    return below(40) ? usual : odd[below(7)];
}
/* Ids of a list; its length is one that it has, or one that nothing has. */
static int64_t *list_of(int64_t most, int64_t below_, int64_t *count) {
    static const int64_t wrong[] = {INT64_MIN, INT64_MAX, -1, (int64_t)1 << 40};
    const int64_t there = below(3) ? 0 : below(most + 1);
    int64_t *found = below(60) || !there ? bytes_for(there, 8) : NULL;
    for (int64_t i = 0; i < there && found; i++) found[i] = below(100) ? below(below_) : hostile(0, below_);
    *count = below(150) ? there : wrong[below(4)];
    return found;
}
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
    recurra_threads(3);
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
    for each, count in zip(function.inputs, counts, strict=True):
        arrays.append((f"in_{each.name}", C_TYPES[each.value.type], count))
        lines += filled(each, count)
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


# The search

SEARCH = r"""
    recurra_manner how, *const h = &how;
    memset(h, 0, sizeof how);
    USUAL
    h->search = hostile(0, 3), h->width = hostile(1, 4), h->best = hostile(1, 3), h->first = hostile(0, V);
    h->end = below(2) ? h->end : hostile(-1, V + 1), h->max_length = hostile(1, 7), h->min_length = hostile(0, 4);
    h->no_repeat = hostile(0, 3), h->max_ratio = strange(below(3)), h->length_penalty = strange(below(2));
    h->coverage_penalty = strange(below(3) ? 0 : 0.5), h->temperature = strange((double)below(4) / 2);
    h->top_p = strange((double)(1 + below(5)) / 5), h->top_k = hostile(0, V + 2), h->seed = drawn();
    if (h->search == 2 && h->best > 3 && h->best <= 65536) h->best = 1 + below(3);  /* each is a search of its own */
    int64_t *const banned = list_of(3, V, &h->banned_count), *const forced = list_of(2, V, &h->forced_count);
    int64_t *const prefix = list_of(3, V, &h->prefix_count);
    h->banned = banned, h->forced = forced, h->prefix = prefix;
    const int64_t B = n_B < 0 || n_B > 100000 ? 0 : n_B;
    int64_t *const most = bytes_for(B, 8), *const least = bytes_for(B, 8);
    uint64_t *const numbers = bytes_for(B, 8);
    for (int64_t b = 0; b < B; b++) most[b] = hostile(1, 7), least[b] = hostile(0, 4), numbers[b] = drawn();
    h->max_lengths = below(2) ? NULL : most, h->min_lengths = below(2) ? NULL : least;
    h->numbers = below(2) ? NULL : numbers;
    const int64_t room = h->best < 1 || h->best > 65536 ? 1 : h->best, longest = 1 + below(9);
    const int64_t slots = B * room > 3000000 ? 0 : B * room;
    recurra_found found = {.longest = longest};
    found.count = bytes_for(B, 8), found.tokens = bytes_for(slots * longest, 8), found.lengths = bytes_for(slots, 8);
    found.log_p = bytes_for(slots, 8), found.scores = bytes_for(slots, 8), found.ended = bytes_for(slots, 1);
    const int64_t looked = slots * longest * places_there;
    float *const weights = below(3) && looked <= 5000000 ? bytes_for(looked, 4) : NULL;
    found.weights = weights;
    recurra_found given = found;
    if (!below(60)) given.longest = hostile(-2, 2) < 1 ? -below(2) : INT64_MAX;
    void **const arrays[] = {(void **)&given.count, (void **)&given.tokens, (void **)&given.lengths,
                             (void **)&given.log_p, (void **)&given.scores, (void **)&given.ended};
    if (!below(60)) *arrays[below(6)] = NULL;
    int status = RECURRA_SIZES;
    if (slots || !B) status = CALL;
    if (status < 0 || status > RECURRA_RULES) abort();
    for (int64_t b = 0; b < B && !status; b++) {
        if (found.count[b] < 1 || found.count[b] > room) abort();
        for (int64_t n = 0; n < found.count[b]; n++) {
            const int64_t at = b * room + n, length = found.lengths[at];
            if (length < 1 || length > longest || found.ended[at] > 1) abort();
            for (int64_t i = 0; i < length; i++)
                if (found.tokens[at * longest + i] < 0 || found.tokens[at * longest + i] >= V) abort();
        }
    }
    *(status ? &refused : &answered) += 1;
    free(banned), free(forced), free(prefix), free(most), free(least), free(numbers);
    free(found.count), free(found.tokens), free(found.lengths), free(found.log_p), free(found.scores);
    free(found.ended), free(weights);
"""
"""One search with settings and places for answers that a careless caller, or a hostile one, may give."""


def filled(each: Named, count: str) -> list[str]:
    """An input as an array of random numbers, no larger than it must be."""
    kind = C_TYPES[each.value.type]
    number = (
        "number()" if kind in ("float", "double") else f"id({each.below or 5})" if kind == "int64_t" else "below(2)"
    )
    return [
        f"    {kind} *in_{each.name} = bytes_for({count}, {BYTES[each.value.type]});",
        f"    for (int64_t i = 0; i < {count}; i++) in_{each.name}[i] = ({kind}){number};",
    ]


def searches(printed: Printed) -> dict[str, str]:
    """C that searches once from states, and once from inputs, by name."""
    if (search := printed.search) is None:
        return {}
    found, names = search.found, search.found.names
    usual = "if (below(2)) recurra_usual(h);" if search.usual else "h->end = 0;"
    of_states = [*found.moving, *found.fixed]
    rows = [f"    const int64_t n_{name} = {1 if name == 'K' else 'n_B'};" for name in found.rows if name != "B"]
    lines = ["static int call_search(const recurra_model *model) {"]
    lines += ["    int64_t n_B = below(5);", *(f"    int64_t n_{name} = 1 + below(4);" for name in names)]
    lines += ["    const int is_off = !below(40);"]
    lines += ["    static const int64_t wrong[] = {INT64_MIN, INT64_MAX, -1, (int64_t)1 << 31};"]
    lines += [*rows, f"    const int64_t V = {c_size(found.tokens)};"]
    lines += [f"    const int64_t places_there = {'0' if found.places is None else c_size(found.places)};"]
    lines += ["    (void)V;", "    int64_t *const tokens = bytes_for(n_B, 8);"]
    lines += ["    for (int64_t b = 0; b < n_B; b++) tokens[b] = id(V);"]
    for each in (*of_states, *([found.step.inputs[-1]] if found.has_extra else [])):
        lines.append(f"    const int64_t n_of_{each.name} = {c_count(each.value.shape)};")
        lines += filled(each, f"n_of_{each.name}")
    lines += ["    uint8_t *const places = bytes_for(n_B * places_there, 1);"]
    lines += ["    for (int64_t i = 0; i < n_B * places_there; i++) places[i] = (uint8_t)below(2);"]
    lines += [f"    if (is_off && !below({1 + len(names)})) n_B = wrong[below(4)];"]
    lines += [f"    else if (is_off && !below({len(names)})) n_{name} = wrong[below(4)];" for name in names]
    given = ["model", "h", "n_B", *(f"n_{name}" for name in names), "tokens"]
    given += [f"in_{each.name}" for each in of_states] + ["in_extra"] * found.has_extra
    given += ["below(2) ? places : NULL"] * search.looks
    lines += [SEARCH.replace("USUAL", usual).replace("CALL", f"recurra_search({', '.join([*given, '&given'])})")]
    lines += ["    free(tokens), free(places);"]
    lines += [
        f"    free(in_{each.name});" for each in (*of_states, *([found.step.inputs[-1]] if found.has_extra else []))
    ]
    calls = {"search": "\n".join([*lines, "    return 0;", "}", ""])}
    if (start := search.starts) is not None:
        unified = search.unified(start)
        lines = ["static int call_write(const recurra_model *model) {"]
        lines += [f"    int64_t n_{name} = below(12) ? 1 + below(4) : below(2);" for name in start.names]
        lines.append(f"    if (!below(20)) {{ n_{start.names[0]} = (int64_t)drawn() >> below(60); }}")
        values = output_values(start, printed.program)
        lines.append(f"    int64_t counts[{len(values) + 1}];")
        sizes = ", ".join([*(f"n_{name}" for name in start.names), "counts"])
        lines.append(f"    const int fits = recurra_sizes_of_start({sizes});")
        for each in start.inputs:
            lines.append(f"    const int64_t n_of_{each.name} = fits ? 0 : {c_count(each.value.shape)};")
        large = [f"n_of_{each.name} > 100000" for each in start.inputs]
        large += [f"counts[{number}] > 100000" for number in range(len(values))]
        lines.append(f"    if (!fits && ({' || '.join(large)})) return 0;")
        for each in start.inputs:
            lines += filled(each, f"n_of_{each.name}")
        known = {name: c_size(unified[name]) for name in names if name in unified and name not in start.names}
        lines += [f"    const int64_t n_{name} = fits ? 0 : {size};" for name, size in known.items()]
        lines += [f"    (void)n_{name};" for name in known]
        extra = found.step.inputs[-1] if found.has_extra and found.step.inputs[-1] not in start.inputs else None
        lines += [f"    const int64_t V = {c_size(found.tokens)};"]
        lines += [f"    const int64_t places_there = {'0' if found.places is None else c_size(found.places)};"]
        given = ["model", "h", *(f"n_{name}" for name in start.names), *(f"in_{each.name}" for each in start.inputs)]
        assert extra is None, "write has no place for it"
        lines += [SEARCH.replace("USUAL", usual).replace("CALL", f"recurra_write({', '.join([*given, '&given'])})")]
        lines += [f"    free(in_{each.name});" for each in start.inputs]
        calls["write"] = "\n".join([*lines, "    return 0;", "}", ""])
    return calls


def driver(printed: Printed) -> str:
    """A program of C that calls every function of a model, and opens damaged weights."""
    program = printed.program
    calls = {name: caller(name, function, program) for name, function in program.functions.items()}
    calls |= {f"path{number}": path_caller(number, labels) for number, labels in chains(program)}
    calls |= searches(printed)
    cases = " ".join(f"case {number}: call_{name}(model); break;" for number, name in enumerate(calls))
    return HEAD + "\n".join(calls.values()) + MAIN.replace("FUNCTIONS", str(len(calls))).replace("CASES", cases)
