"""C that finds the best labels of each row where labels depend on their neighbours: the path of a chain (a CRF).

recurra_path0    scores of tags0, lengths -> the best tags, and log p of them

With score(y) = start[y_1] + Σ_t e_t[y_t] + Σ_t A[y_{t-1}, y_t] + end[y_T], in float64, as in `recurra.heads.lattice`:

    v_t(b) = max_a (v_{t-1}(a) + A_ab) + e_t(b)              v_1 = start + e_1
    α_t(b) = log Σ_a exp(α_{t-1}(a) + A_ab) + e_t(b)         α_1 = start + e_1
"""

from __future__ import annotations

from recurra.programs.program import Program, Value, output_values

CHAIN = ("transitions", "start", "end")
"""The outputs of a function that gives a chain."""

PATHS = """\
static UNUSED double log_of_sum(int64_t L, const double *alpha, const double *A, int64_t apart) {
    double most = -INFINITY, sum = 0;
    for (int64_t a = 0; a < L; a++) {
        const double each = alpha[a] + (A ? A[a * apart] : 0);
        most = each > most ? each : most;
    }
    if (most == -INFINITY) return most;
    for (int64_t a = 0; a < L; a++) sum += exp(alpha[a] + (A ? A[a * apart] : 0) - most);
    return log(sum) + most;
}

/* The best labels of one row of T > 0 steps. Of labellings that are equally good, the one whose last label, then last
   but one, ... has the lowest number. `room` has (T + 2) L numbers. */
static UNUSED void best_path(int64_t T, int64_t L, const float *e, const double *A, const double *start,
                             const double *end, double *room, int64_t *tags, double *log_p) {
    double *const v = room, *alpha = v + T * L, *next = alpha + L, best = -INFINITY;
    int64_t y = 0;
    for (int64_t b = 0; b < L; b++) alpha[b] = v[b] = start[b] + (double)e[b];
    for (int64_t t = 1; t < T; t++) {
        double *const now = v + t * L;
        for (int64_t b = 0; b < L; b++) now[b] = -INFINITY;
        for (int64_t a = 0; a < L; a++)
            for (int64_t b = 0; b < L; b++) {
                const double to = v[(t - 1) * L + a] + A[a * L + b];
                now[b] = to > now[b] ? to : now[b];
            }
        for (int64_t b = 0; b < L; b++) now[b] += (double)e[t * L + b];
        if (!log_p) continue;
        for (int64_t b = 0; b < L; b++) next[b] = log_of_sum(L, alpha, A + b, L) + (double)e[t * L + b];
        double *const other = alpha;
        alpha = next, next = other;
    }
    for (int64_t b = 0; b < L; b++)
        if (v[(T - 1) * L + b] + end[b] > best) best = v[(T - 1) * L + b] + end[b], y = b;
    if (log_p) {
        for (int64_t b = 0; b < L; b++) alpha[b] += end[b];
        const double found = best - log_of_sum(L, alpha, NULL, 0);
        *log_p = found > 0 ? 0 : found; /* rounding may put it a little above */
    }
    tags[T - 1] = y;
    for (int64_t t = T - 2; t >= 0; t--) {
        const int64_t to = y;
        best = -INFINITY, y = 0;
        for (int64_t a = 0; a < L; a++)
            if (v[t * L + a] + A[a * L + to] > best) best = v[t * L + a] + A[a * L + to], y = a;
        tags[t] = y;
    }
}

/* All rows; `given` are A, start and end as numbers of 32 bits, behind which lies room for the rest. */
static UNUSED int best_paths(int64_t B, int64_t T, int64_t L, const float *scores, const int64_t *lengths,
                             const float *given, double *room, int64_t *tags, double *log_p) {
    double *const A = room, *const start = A + L * L, *const end = start + L;
    for (int64_t n = 0; n < L * L + 2 * L; n++) A[n] = (double)given[n];
    for (int64_t row = 0; row < B; row++) {
        for (int64_t t = 0; t < T; t++) tags[row * T + t] = 0;
        if (log_p) log_p[row] = 0;
        if (lengths[row])
            best_path(lengths[row], L, scores + row * T * L, A, start, end, end + L, tags + row * T,
                      log_p ? log_p + row : NULL);
    }
    return RECURRA_OK;
}
"""


def chains(program: Program) -> list[tuple[int, int]]:
    """The columns of tags that are a chain, and how many labels each has."""
    found = []
    scores = program.functions.get("scores")
    if scores is None:
        return []
    given = dict(zip((name for name, _ in scores.outputs), output_values(scores, program), strict=True))
    for number in range(len(given)):
        chain, tags = program.functions.get(f"chain{number}"), given.get(f"tags{number}")
        if chain is None or tags is None or chain.inputs or f"path{number}" in program.functions:
            continue
        labels = tags.shape[-1] if len(tags.shape) == 3 and tags.type == "float32" else None
        count = None if labels is None else labels.constant
        if labels is None or count is None:
            continue
        shapes = ((labels, labels), (labels,), (labels,))
        wanted = [(name, Value("float32", shape)) for name, shape in zip(CHAIN, shapes, strict=True)]
        values = zip((name for name, _ in chain.outputs), output_values(chain, program), strict=True)
        if [*values] == wanted:
            found.append((number, count))
    return found


def declared(prefix: str, number: int) -> str:
    return (
        f"int {prefix}_path{number}(const {prefix}_model *model, int64_t n_B, int64_t n_T,\n"
        f"    const float *in_tags{number}, const int64_t *in_lengths, int64_t *out_tags, double *out_log_p)"
    )


def headed(prefix: str, number: int, labels: int) -> list[str]:
    """What the header has of it."""
    return [
        f"/* path{number}: the best tags (B, T) for out_tags{number} of scores, float32 (B, T, {labels}), and lengths",
        "     int64 (B); 0 behind the last one. out_log_p  float64 (B), or NULL: it takes as long again. */",
        f"{declared(prefix, number)};",
        "",
    ]


def printed(prefix: str, number: int, labels: int) -> list[str]:
    """The function in C."""
    total = labels * labels + 2 * labels
    return [
        f"{declared(prefix, number)};",
        f"{declared(prefix, number)} {{",
        "    if (n_B < 0 || n_T < 0 || n_B > 1073741824 || n_T > 1073741824) return RECURRA_SIZES;",
        f"    if ((double)n_B * (double)n_T * {labels}.0 >= MOST_NUMBERS) return RECURRA_SIZES;",
        "    for (int64_t b = 0; b < n_B; b++)",
        "        if (in_lengths[b] < 0 || in_lengths[b] > n_T) return RECURRA_SIZES;",
        f"    const uint64_t numbers = {total} + ((uint64_t)n_T + 2) * {labels};",
        f"    const uint64_t need = room({total}, sizeof(float)) + room((int64_t)numbers, sizeof(double));",
        "    if (need > MOST_BYTES) return RECURRA_MEMORY;",
        "    void *const found = borrowed(model->spare, (size_t)need);",
        "    if (!found) return RECURRA_MEMORY;",
        "    char *const memory = aligned((size_t *)found + 1);",
        "    float *const chain = (float *)(void *)memory;",
        f"    double *const rest = (double *)(void *)(memory + room({total}, sizeof(float)));",
        f"    int status = {prefix}_chain{number}(model, chain, chain + {labels * labels},",
        f"                                       chain + {labels * labels + labels});",
        "    if (!status)",
        f"        status = best_paths(n_B, n_T, {labels}, in_tags{number}, in_lengths, chain, rest, out_tags,",
        "                            out_log_p);",
        "    give_back(model->spare, found);",
        "    return status;",
        "}",
        "",
    ]
