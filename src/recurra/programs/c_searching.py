"""C that searches: greedy, beam and sampling over the step of a printed program, with the rules of recurra.search.

What is found, of equals too, is what recurra.search finds: `front.py` (candidates and what is kept), `answers.py`,
`rules.py`, `sampling.py`. This text knows nothing of a program but a function that runs its step; c_search.py prints
what lies between the two.
"""

from __future__ import annotations

SEARCHES = ("beam", "greedy", "sampling")
"""The searches, by their numbers in C."""

MANNER = (
    ("int64_t", "search", "0: beam, 1: greedy, 2: sampling"),
    ("int64_t", "width", "hypotheses of a beam"),
    ("int64_t", "best", "answers that are wanted; of sampling, how many are drawn"),
    ("int64_t", "first", "the token before the first one"),
    ("int64_t", "end", "the token that ends an answer; -1: none does"),
    ("int64_t", "max_length", "tokens of an answer, its end among them"),
    ("int64_t", "min_length", "tokens before the end, at least"),
    ("int64_t", "no_repeat", "no run of so many tokens appears twice; 0: it may"),
    ("double", "max_ratio", "10 tokens more than so many for each of the source, at most; 0: max_length alone"),
    ("double", "length_penalty", ""),
    ("double", "coverage_penalty", "0 where the step has no weights"),
    ("double", "temperature", "of sampling, as top_k (0: all) and top_p (1: all)"),
    ("double", "top_p", ""),
    ("int64_t", "top_k", ""),
    ("uint64_t", "seed", "of the first answer that is drawn; the next one has the next seed"),
    ("int64_t", "banned_count", ""),
    ("const int64_t *", "banned", "tokens that are never chosen"),
    ("int64_t", "forced_count", ""),
    ("const int64_t *", "forced", "tokens that each appear somewhere, in rising order"),
    ("int64_t", "prefix_count", ""),
    ("const int64_t *", "prefix", "what each answer begins with"),
    ("const int64_t *", "max_lengths", "of each source, in place of max_length and max_ratio; or NULL"),
    ("const int64_t *", "min_lengths", "of each source, in place of min_length; or NULL"),
    ("const uint64_t *", "numbers", "what the random numbers of each source begin with; NULL: its place"),
)
"""How answers are looked for: types, names and meanings of the fields of a struct."""

FOUND = (
    ("int64_t", "longest", "given: tokens for which there is room"),
    ("int64_t *", "count", "(B): answers"),
    ("int64_t *", "tokens", "(B, best, longest)"),
    ("int64_t *", "lengths", "(B, best): tokens of each, its end among them"),
    ("double *", "log_p", "(B, best)"),
    ("double *", "scores", "(B, best), the best first"),
    ("uint8_t *", "ended", "(B, best): 0 where an answer was cut off at its greatest length"),
    ("float *", "weights", "(B, best, longest, places): where each token looked; or NULL"),
    ("int64_t", "sentence", "after RECURRA_RULES: where nothing may be chosen, and"),
    ("int64_t", "position", "after how many tokens"),
)
"""Where answers are put."""


def struct(name: str, fields: tuple[tuple[str, str, str], ...], about: str) -> str:
    """A struct in C with a comment for each field.

    >>> print(struct("pair", (("int64_t", "one", "the first"), ("float *", "other", "")), "Two."))
    /* Two. */
    typedef struct {
        int64_t one;  /* the first */
        float *other;
    } pair;
    """
    lines = []
    for kind, field, meaning in fields:
        space = "" if kind.endswith("*") else " "
        lines.append(f"    {kind}{space}{field};" + (f"  /* {meaning} */" if meaning else ""))
    return "\n".join([f"/* {about} */", "typedef struct {", *lines, f"}} {name};"])


def structs(prefix: str) -> str:
    """The structs that a search is called with."""
    return "\n".join(
        [
            struct(f"{prefix}_manner", MANNER, "How answers are looked for; see docs/export.md."),
            "",
            struct(f"{prefix}_found", FOUND, "Where answers are put: arrays without gaps."),
            "",
        ]
    )


SEARCHING = r"""
/* A value of which each row belongs to a hypothesis, or to a sentence. */
typedef struct {
    const char *now;      /* what the next step reads */
    char *after, *spare;  /* what it writes, and room for rows in another order */
    size_t each;          /* bytes of a row */
} leaf;

typedef struct {
    int64_t *parents, *tokens, *rows;
    float *weights;
} level;

typedef struct {
    double score, log_p;
    int64_t step, place;
    uint8_t ended;
} answer;

enum { MOST_LEAVES = 64 };

typedef struct searching {
    const recurra_model *model;
    const recurra_manner *how;
    recurra_found *found;
    int (*step)(struct searching *s, int64_t A, int64_t K, const int64_t *tokens, float *log_p, float *weights);
    int64_t sizes[MOST_LEAVES];
    const float *extra;
    leaf moving[MOST_LEAVES], fixed[MOST_LEAVES], real;  /* real: the places there are, (B, S) */
    int64_t moving_count, fixed_count;
    int64_t B, V, S;              /* sentences, tokens, places that are looked at or 0 */
    const int64_t *start;         /* the tokens before the first ones, (B) */
    int64_t width, best, longest; /* of one search */
    int watches;                  /* whether weights are kept of every step */
    int needs_past;
    uint64_t seed;
    /* What follows has a row or a place for each hypothesis. */
    float *log_p, *covered, *covered_spare, *weights;
    double *totals, *sums, *lacks, *live, *q;
    int64_t *sentences, *places, *rows, *tokens, *past, *past_spare, *limits, *leasts, *next, *ids;
    int64_t *few_ids, *met, *order, *heap;
    float *few;
    uint8_t *mark;
    level *levels;
    answer *answers;
    int64_t *counts;
    double *to_beat;
} searching;

/* Random numbers: Philox 4x64-10 (Salmon et al. 2011) with the key (seed, number) and the counter 1, 2, ..., in the
   order of NumPy's generator; the n-th number in [0, 1) of a row. */
static uint64_t high_product(uint64_t a, uint64_t b, uint64_t *low) {
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t p = a0 * b0, q = a1 * b0 + (p >> 32), r = a0 * b1 + (q & 0xffffffffu);
    *low = a * b;
    return a1 * b1 + (q >> 32) + (r >> 32);
}

static double chance_of(uint64_t seed, uint64_t number, int64_t n) {
    uint64_t c[4] = {(uint64_t)n / 4 + 1, 0, 0, 0}, k[2] = {seed, number};
    for (int round = 0; round < 10; round++) {
        uint64_t low0, low1;
        const uint64_t high0 = high_product(UINT64_C(0xD2E7470EE14C6C93), c[0], &low0);
        const uint64_t high1 = high_product(UINT64_C(0xCA5A826395121157), c[2], &low1);
        const uint64_t first = high1 ^ c[1] ^ k[0], third = high0 ^ c[3] ^ k[1];
        c[0] = first, c[1] = low1, c[2] = third, c[3] = low0;
        k[0] += UINT64_C(0x9E3779B97F4A7C15), k[1] += UINT64_C(0xBB67AE8584CAA73B);
    }
    return (double)(c[n % 4] >> 11) * (1.0 / 9007199254740992.0);
}

/* The largest `count` of n numbers that are more than -infinity, the largest first, of equals the first ones first;
   how many there are, or -1 where one is not a number. */
static int64_t largest_few(const float *x, int64_t n, int64_t count, float *values, int64_t *ids) {
    int64_t found = 0;
    for (int64_t at = 0; at < n; at += 64) {
        const int64_t here = n - at < 64 ? n - at : 64;
        const float most = max_of(x + at, here);
        if (most != most) return -1;
        if (!(most > (found < count ? -INFINITY : values[count - 1]))) continue;
        for (int64_t i = at; i < at + here; i++) {
            if (!(x[i] > (found < count ? -INFINITY : values[count - 1]))) continue;
            int64_t place = found < count ? found++ : count - 1;
            for (; place > 0 && x[i] > values[place - 1]; place--)
                values[place] = values[place - 1], ids[place] = ids[place - 1];
            values[place] = x[i], ids[place] = i;
        }
    }
    return found;
}

static int is_among(const int64_t *ids, int64_t count, int64_t id) {
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* Whether forced token f has appeared in the row. */
static int has_met(const searching *s, int64_t row, int64_t written, int64_t f) {
    return is_among(s->past + row * s->longest, written, s->how->forced[f]);
}

/* Leaves a row nothing but what may be chosen after its `written` tokens. */
static void obey(searching *s, int64_t row, int64_t sentence, int64_t written) {
    const recurra_manner *how = s->how;
    float *x = s->log_p + row * s->V;
    if (written < how->prefix_count) {
        const int64_t only = how->prefix[written];
        for (int64_t i = 0; i < s->V; i++) x[i] = i == only ? x[i] : -INFINITY;
        return;
    }
    for (int64_t i = 0; i < how->banned_count; i++) x[how->banned[i]] = -INFINITY;
    int64_t missing = 0;
    for (int64_t f = 0; f < how->forced_count; f++) missing += !has_met(s, row, written, f);
    if (how->end >= 0 && (written < s->leasts[sentence] || missing)) x[how->end] = -INFINITY;
    if (how->no_repeat > 0 && how->no_repeat <= written) {
        const int64_t run = how->no_repeat, *past = s->past + row * s->longest, *last = past + written - run + 1;
        for (int64_t i = 0; i + run <= written; i++)
            if (!memcmp(past + i, last, (size_t)(run - 1) * sizeof(int64_t))) x[past[i + run - 1]] = -INFINITY;
    }
    if (missing && s->limits[sentence] - written - (how->end >= 0) <= missing) {
        for (int64_t i = 0; i < s->V; i++) {
            int64_t f = 0;
            while (f < how->forced_count && (how->forced[f] != i || has_met(s, row, written, f))) f++;
            if (f == how->forced_count) x[i] = -INFINITY;
        }
    }
}

/* A heap of ids: the largest number first, of equals the lower id. */
static int is_before(const double *q, int64_t a, int64_t b) { return q[a] > q[b] || (q[a] == q[b] && a < b); }

static void sink(int64_t *heap, int64_t size, int64_t at, const double *q) {
    const int64_t id = heap[at];
    for (int64_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && is_before(q, heap[child + 1], heap[child])) child++;
        if (!is_before(q, heap[child], id)) break;
        heap[at] = heap[child];
    }
    heap[at] = id;
}

static int64_t popped(int64_t *heap, int64_t *size, const double *q) {
    const int64_t id = heap[0];
    heap[0] = heap[--*size];
    if (*size) sink(heap, *size, 0, q);
    return id;
}

/* A token drawn by a chance from [0, 1); -1 where none may be chosen. */
static int64_t drawn_token(searching *s, const float *x, double chance) {
    const double temperature = s->how->temperature > 0 ? s->how->temperature : 1;
    const int64_t V = s->V, wanted = s->how->temperature > 0 ? s->how->top_k : 1;
    const int64_t k = wanted > 0 && wanted < V ? wanted : V;
    double *q = s->q, most = -INFINITY, whole = 0, sum = 0;
    for (int64_t i = 0; i < V; i++) most = x[i] > most ? x[i] : most;
    if (!(most > -INFINITY)) return -1;
    for (int64_t i = 0; i < V; i++) q[i] = ((double)x[i] - most) / temperature;
    if (k < V || s->how->top_p < 1) {
        int64_t size = V, *heap = s->heap, count = 0;
        for (int64_t i = 0; i < V; i++) heap[i] = i;
        for (int64_t i = V / 2 - 1; i >= 0; i--) sink(heap, V, i, q);
        memset(s->mark, 0, (size_t)V);
        if (k < V) {
            while (count < k) s->order[count++] = popped(heap, &size, q);
            for (int64_t i = 0; i < count; i++) whole += exp(q[s->order[i]]);
        } else {
            for (int64_t i = 0; i < V; i++) whole += exp(q[i]);
        }
        for (int64_t i = 0; i < k; i++) {
            if (s->how->top_p < 1 && !(sum < s->how->top_p * (1 - 1e-9))) break;
            const int64_t id = k < V ? s->order[i] : popped(heap, &size, q);
            s->mark[id] = 1;
            sum += exp(q[id]) / whole;
        }
        for (int64_t i = 0; i < V; i++) q[i] = s->mark[i] ? q[i] : -INFINITY;
    }
    whole = 0;
    for (int64_t i = 0; i < V; i++) whole += q[i] = exp(q[i]);
    const double below = nextafter(whole, 0), bound = chance * whole < below ? chance * whole : below;
    sum = 0;
    for (int64_t i = 0; i < V; i++)
        if ((sum += q[i]) > bound) return i;
    return V - 1;
}

/* What may follow row `row`, the best first: log p and tokens, in s->few and s->few_ids at `at`; forced tokens after
   them. How many there are at most; -1 where a number is none. Places beyond hold -infinity. */
static int64_t candidates(searching *s, int64_t row, int64_t at, int64_t each, int64_t written, int64_t sentence) {
    float *values = s->few + at, *x = s->log_p + row * s->V;
    int64_t *ids = s->few_ids + at;
    if (s->how->search == 2) {
        for (int64_t i = 0; i < s->V; i++)
            if (x[i] != x[i]) return -1;
        const uint64_t number = s->how->numbers ? s->how->numbers[sentence] : (uint64_t)sentence;
        const int64_t token = drawn_token(s, x, chance_of(s->seed, number, written));
        values[0] = token < 0 ? -INFINITY : x[token], ids[0] = token < 0 ? 0 : token;
        return 1;
    }
    const int64_t forced = s->how->search == 0 ? s->how->forced_count : 0, best = each - forced;
    const int64_t found = largest_few(x, s->V, best, values, ids);
    if (found < 0) return -1;
    for (int64_t i = found; i < best; i++) values[i] = -INFINITY, ids[i] = 0;
    for (int64_t f = 0; f < forced; f++) {
        const int64_t id = s->how->forced[f];
        values[best + f] = is_among(ids, found, id) ? -INFINITY : x[id], ids[best + f] = id;
    }
    return each;
}

/* The best `width` of the candidates of K hypotheses, in order, of equals those of better parents: as places
   hypothesis * each + number, in s->order; how many there are. */
static int64_t kept_of(searching *s, int64_t K, int64_t each, int64_t width) {
    int64_t found = 0;
    for (int64_t i = 0; i < K * each; i++) {
        const double sum = s->sums[i];
        if (!(sum > (found < width ? -INFINITY : s->sums[s->order[width - 1]]))) continue;
        int64_t place = found < width ? found++ : width - 1;
        for (; place > 0 && sum > s->sums[s->order[place - 1]]; place--) s->order[place] = s->order[place - 1];
        s->order[place] = i;
    }
    return found;
}

/* Of all in s->order: the best with each number of forced tokens, then the second best of each, ... `met` says how many
   the candidate at a place has. */
static int64_t spread(searching *s, int64_t found, const int64_t *met, int64_t width, int64_t most) {
    int64_t taken = 0, *rank = s->heap;
    for (int64_t count = 0; count <= most; count++) {
        int64_t number = 0;
        for (int64_t i = 0; i < found; i++)
            if (met[s->order[i]] == count) rank[i] = number++;
    }
    memset(s->mark, 0, (size_t)found);
    for (int64_t turn = 0; taken < width && taken < found; turn++)
        for (int64_t i = 0; i < found && taken < width; i++)
            if (rank[i] == turn) s->mark[i] = 1, taken++;
    taken = 0;
    for (int64_t i = 0; i < found; i++)
        if (s->mark[i]) s->order[taken++] = s->order[i];
    return taken;
}

static double divisor_of(int64_t length, double penalty) { return pow((5 + (double)length) / 6, penalty); }

/* One more that has ended, or that was cut off, among the best of its sentence. */
static void add_answer(searching *s, int64_t sentence, answer new) {
    answer *of = s->answers + sentence * s->best;
    int64_t place = s->counts[sentence];
    while (place > 0 && (of[place - 1].ended != new.ended ? new.ended : new.score > of[place - 1].score)) place--;
    if (place >= s->best) return;
    if (s->counts[sentence] < s->best) s->counts[sentence]++;
    for (int64_t i = s->counts[sentence] - 1; i > place; i--) of[i] = of[i - 1];
    of[place] = new;
}

static void select_rows(const char *from, char *to, size_t each, const int64_t *rows, int64_t count) {
    for (int64_t i = 0; i < count; i++) memmove(to + (size_t)i * each, from + (size_t)rows[i] * each, each);
}

static void swap_leaf(leaf *l) {
    char *other = l->after;
    l->after = l->spare, l->spare = other;
}

/* Writes the answers of sentence b behind those that it has, in the order of scores if `sorted`. */
static void write_answers(searching *s, int64_t b, int64_t room, int sorted) {
    recurra_found *to = s->found;
    for (int64_t n = 0; n < s->counts[b]; n++) {
        const answer *a = s->answers + b * s->best + n;
        int64_t slot = to->count[b]++;
        const size_t line = (size_t)to->longest, view = (size_t)(to->longest * s->S);
        for (; sorted && slot > 0 && a->score > to->scores[b * room + slot - 1]; slot--) {
            const int64_t at = b * room + slot;
            memcpy(to->tokens + (size_t)at * line, to->tokens + (size_t)(at - 1) * line, line * sizeof(int64_t));
            to->lengths[at] = to->lengths[at - 1], to->log_p[at] = to->log_p[at - 1];
            to->scores[at] = to->scores[at - 1], to->ended[at] = to->ended[at - 1];
            if (to->weights)
                memcpy(to->weights + (size_t)at * view, to->weights + (size_t)(at - 1) * view, view * sizeof(float));
        }
        const int64_t at = b * room + slot;
        int64_t place = a->place;
        for (int64_t step = a->step; step >= 0; step--) {
            const level *l = s->levels + step;
            to->tokens[at * to->longest + step] = l->tokens[place];
            if (to->weights)
                memcpy(to->weights + (at * to->longest + step) * s->S, l->weights + l->rows[place] * s->S,
                       (size_t)s->S * sizeof(float));
            place = l->parents[place];
        }
        to->lengths[at] = a->step + 1, to->log_p[at] = a->log_p, to->scores[at] = a->score, to->ended[at] = a->ended;
    }
}

/* One search from the start; what it finds is left in s->answers and s->levels. */
static int search_once(searching *s, int64_t *levels) {
    const recurra_manner *how = s->how;
    const int64_t V = s->V, S = s->S, width = s->width, forced = how->search == 0 ? how->forced_count : 0;
    const int64_t room = width + (forced ? 1 : 0), each = (room < V ? room : V) + forced;
    const int has_rules = how->banned_count || how->forced_count || how->prefix_count || how->no_repeat;
    int64_t A = s->B, K = 1, least = 0;
    for (int64_t b = 0; b < A; b++) {
        s->sentences[b] = s->places[b] = b, s->totals[b] = 0, s->tokens[b] = s->start[b], s->counts[b] = 0;
        s->to_beat[b] = -INFINITY;
        least = s->leasts[b] > least ? s->leasts[b] : least;
    }
    if (s->covered) memset(s->covered, 0, (size_t)(A * S) * sizeof(float));
    for (int64_t written = 0; A > 0; written++) {
        const int64_t N = A * K;
        float *weights = s->weights;
        if (s->watches) {
            weights = taken((size_t)(N * S) * sizeof(float) + 1);
            if (!weights) return RECURRA_MEMORY;
        }
        level *now = s->levels + (*levels)++;
        now->weights = s->watches ? weights : NULL;
        now->parents = taken((size_t)(3 * A * width) * sizeof(int64_t) + 1);
        if (!now->parents) return RECURRA_MEMORY;
        now->tokens = now->parents + A * width, now->rows = now->tokens + A * width;
        const int status = s->step(s, A, K, s->tokens, s->log_p, weights);
        if (status) return status;
        if (s->covered) {
            for (int64_t i = 0; i < N * S; i++) s->covered[i] += weights[i];
            for (int64_t row = 0; row < N; row++) {
                const uint8_t *real = s->real.now ? (const uint8_t *)s->real.now + row / K * S : NULL;
                double lack = 0;
                for (int64_t j = 0; j < S; j++) {
                    const float sum = s->covered[row * S + j];
                    if (!real || real[j]) lack += log(sum < 1e-10f ? 1e-10 : sum > 1 ? 1 : (double)sum);
                }
                s->lacks[row] = how->coverage_penalty * lack;
            }
        }
        const double divisor = divisor_of(written + 1, how->length_penalty);
        int64_t going = 0, most_live = 0;
        for (int64_t a = 0; a < A; a++) {
            const int64_t sentence = s->sentences[a];
            for (int64_t h = 0; h < K; h++) {
                const int64_t row = a * K + h;
                if (!(s->totals[row] > -INFINITY)) {
                    for (int64_t i = 0; i < each; i++) s->sums[h * each + i] = -INFINITY;
                    continue;
                }
                if (has_rules || written < least) obey(s, row, sentence, written);
                if (candidates(s, row, h * each, each, written, sentence) < 0) return RECURRA_NUMBERS;
                for (int64_t i = 0; i < each; i++)
                    s->sums[h * each + i] = s->totals[row] + (double)s->few[h * each + i];
            }
            int64_t kept = kept_of(s, K, each, forced ? K * each : width);
            if (forced) {
                for (int64_t i = 0; i < K * each; i++) {
                    const int64_t row = a * K + i / each, id = s->few_ids[i];
                    s->met[i] = id == how->end;
                    for (int64_t f = 0; f < forced; f++)
                        s->met[i] += has_met(s, row, written, f) || how->forced[f] == id;
                }
                kept = spread(s, kept, s->met, width, forced + 1);
            }
            /* Into the level, and those that end among the answers. */
            double reach = -INFINITY;
            int64_t live = 0, *row_of = now->rows + a * width;
            const int is_last = written + 1 >= s->limits[sentence];
            for (int64_t slot = 0; slot < kept; slot++) {
                const int64_t place = s->order[slot], row = a * K + place / each, at = a * width + slot;
                const double total = s->sums[place];
                now->tokens[at] = s->few_ids[place], row_of[slot] = row, now->parents[at] = s->places[row];
                const int is_end = now->tokens[at] == how->end;
                if (is_end || is_last) {
                    const double lack = s->covered ? s->lacks[row] : 0;
                    const answer one = {total / divisor + lack, total, written, at, (uint8_t)is_end};
                    add_answer(s, sentence, one);
                } else {
                    reach = total > reach ? total : reach;
                    /* What lives on, first to last; s->next is in the order of the next step. */
                    s->next[going * width + live] = at;
                    s->live[going * width + live++] = total;
                }
            }
            if (s->counts[sentence] == s->best) s->to_beat[sentence] = s->answers[(sentence + 1) * s->best - 1].score;
            if (reach / divisor_of(s->limits[sentence], how->length_penalty) > s->to_beat[sentence]) {
                for (int64_t i = live; i < width; i++) s->next[going * width + i] = -1 - a * K;
                s->ids[going++] = a;
                most_live = live > most_live ? live : most_live;
            } else if (!s->counts[sentence]) {
                s->found->sentence = sentence, s->found->position = written;
                return has_rules || least ? RECURRA_RULES : RECURRA_NUMBERS;
            }
        }
        if (!going) break;
        /* The next front: every sentence has as many rows as the one with the most. */
        const int64_t next = going * most_live;
        int is_same = next == N;
        for (int64_t g = 0, row = 0; g < going; g++)
            for (int64_t h = 0; h < most_live; h++, row++) {
                const int64_t at = s->next[g * width + h];
                s->rows[row] = at < 0 ? -1 - at : now->rows[at];
                s->tokens[row] = at < 0 ? 0 : now->tokens[at];
                s->places[row] = at < 0 ? 0 : at;
                s->totals[row] = at < 0 ? -INFINITY : s->live[g * width + h];
                is_same = is_same && s->rows[row] == row;
            }
        for (int64_t i = 0; i < s->moving_count; i++) {
            leaf *l = s->moving + i;
            if (!is_same) {
                select_rows(l->after, l->spare, l->each, s->rows, next);
                l->now = l->spare;
            } else {
                l->now = l->after;
                swap_leaf(l);
            }
        }
        if (!is_same && s->covered) {
            float *other = s->covered_spare;
            select_rows((char *)s->covered, (char *)other, (size_t)S * sizeof(float), s->rows, next);
            s->covered_spare = s->covered, s->covered = other;
        }
        if (s->needs_past) {
            int64_t *other = is_same ? s->past : s->past_spare;
            const size_t line = (size_t)s->longest * sizeof(int64_t);
            if (!is_same) select_rows((char *)s->past, (char *)other, line, s->rows, next);
            for (int64_t row = 0; row < next; row++) other[row * s->longest + written] = s->tokens[row];
            s->past_spare = is_same ? s->past_spare : s->past, s->past = other;
        }
        if (going < A) {
            for (int64_t i = 0; i <= s->fixed_count; i++) {
                leaf *l = i < s->fixed_count ? s->fixed + i : &s->real;
                if (!l->now) continue;
                select_rows(l->now, l->after, l->each, s->ids, going);
                l->now = l->after;
            }
            for (int64_t g = 0; g < going; g++) s->sentences[g] = s->sentences[s->ids[g]];
        }
        A = going, K = most_live;
    }
    return RECURRA_OK;
}

/* Room for `count` things of some size at the end of what is needed so far. */
static size_t placed(size_t *need, int64_t count, size_t each) {
    const size_t at = *need;
    *need += room(count, each);
    return at;
}

/* Whether a list of ids cannot be one: it has fewer than none, more than any memory holds, or lies nowhere. */
static int is_no_list(const int64_t *ids, int64_t count) { return count < 0 || count > 1073741824 || (count && !ids); }

/* Whether the lists and the numbers of a manner cannot be what anybody means. */
static int is_no_manner(const recurra_manner *how) {
    return is_no_list(how->banned, how->banned_count) || is_no_list(how->prefix, how->prefix_count) ||
           is_no_list(how->forced, how->forced_count) || how->min_length > 1073741824 ||
           !(how->length_penalty >= 0) || !(how->coverage_penalty >= 0);
}

/* All of it: memory, limits, one search or several, and the answers. */
static int searched(searching *s) {
    const recurra_manner *how = s->how;
    recurra_found *found = s->found;
    const int64_t B = s->B, V = s->V;
    if (how->search < 0 || how->search > 2 || how->width < 1 || how->best < 1 || how->width > 65536 || V < 1)
        return RECURRA_SIZES;
    if (how->best > 65536 || how->no_repeat < 0 || found->longest < 1) return RECURRA_SIZES;
    if (is_no_manner(how) || how->forced_count > V) return RECURRA_SIZES;
    if (B && (!found->count || !found->tokens || !found->lengths || !found->log_p || !found->scores || !found->ended))
        return RECURRA_SIZES;
    if (how->search == 2 && !(how->temperature >= 0 && how->top_p > 0)) return RECURRA_SIZES;
    if (how->end >= V || (how->coverage_penalty > 0 && !s->S)) return RECURRA_SIZES;
    for (int64_t i = 0; i < how->banned_count; i++)
        if (how->banned[i] < 0 || how->banned[i] >= V) return RECURRA_IDS;
    for (int64_t i = 0; i < how->forced_count; i++)
        if (how->forced[i] < 0 || how->forced[i] >= V) return RECURRA_IDS;
    for (int64_t i = 0; i < how->prefix_count; i++)
        if (how->prefix[i] < 0 || how->prefix[i] >= V) return RECURRA_IDS;
    const int64_t draws = how->search == 2 ? how->best : 1;
    s->width = how->search == 0 ? how->width : 1, s->best = how->search == 0 ? how->best : 1;
    s->longest = found->longest;
    s->needs_past = how->forced_count > 0 || how->no_repeat > 0;
    s->watches = found->weights != NULL && s->S > 0;
    if (!s->watches) found->weights = NULL;
    const int64_t N = B * s->width, few = s->width + 1 + how->forced_count, many = s->width * few;
    const double limit = 1099511627776.0;
    if ((double)N * (double)V > limit || (double)N * (double)larger_size(s->S, s->longest) > limit)
        return RECURRA_SIZES;
    for (int64_t i = 0; i < s->moving_count; i++)
        if ((double)N * (double)s->moving[i].each > limit) return RECURRA_SIZES;
    for (int64_t i = 0; i < s->fixed_count; i++)
        if ((double)B * (double)s->fixed[i].each > limit) return RECURRA_SIZES;
    const int covers = how->coverage_penalty > 0;
    size_t need = 0;
    const size_t at_log_p = placed(&need, N * V, sizeof(float));
    const size_t at_weights = placed(&need, s->watches ? 0 : N * s->S, sizeof(float));
    const size_t at_covered = placed(&need, covers ? 2 * N * s->S : 0, sizeof(float));
    const size_t at_doubles = placed(&need, 3 * N + many + V + B, sizeof(double));
    const size_t at_ids = placed(&need, 5 * N + 4 * B + 2 * many + larger_size(V, many), sizeof(int64_t));
    const size_t at_order = placed(&need, larger_size(V, many), sizeof(int64_t));
    const size_t at_past = placed(&need, s->needs_past ? 2 * N * s->longest : 0, sizeof(int64_t));
    const size_t at_few = placed(&need, many, sizeof(float));
    const size_t at_mark = placed(&need, larger_size(V, many), 1);
    const size_t at_levels = placed(&need, s->longest, sizeof(level));
    const size_t at_answers = placed(&need, B * s->best, sizeof(answer));
    size_t at_leaves[3 * MOST_LEAVES];
    int64_t count = 0;
    for (int64_t i = 0; i < s->moving_count; i++)
        for (int64_t twice = 0; twice < 2; twice++) at_leaves[count++] = placed(&need, N, s->moving[i].each);
    for (int64_t i = 0; i <= s->fixed_count; i++)
        at_leaves[count++] = placed(&need, B, i < s->fixed_count ? s->fixed[i].each : s->real.each);
    char *const memory = taken(need + 1);
    if (!memory) return RECURRA_MEMORY;
    s->log_p = (float *)(memory + at_log_p), s->weights = (float *)(memory + at_weights);
    s->covered = covers ? (float *)(memory + at_covered) : NULL;
    s->covered_spare = covers ? s->covered + N * s->S : NULL;
    double *doubles = (double *)(memory + at_doubles);
    s->totals = doubles, s->lacks = doubles + N, s->live = doubles + 2 * N, s->sums = doubles + 3 * N;
    s->to_beat = s->sums + many;
    s->q = s->to_beat + B;
    int64_t *ids = (int64_t *)(memory + at_ids);
    s->places = ids, s->rows = ids + N, s->tokens = ids + 2 * N, s->next = ids + 3 * N, ids += 5 * N;
    s->sentences = ids, s->limits = ids + B, s->leasts = ids + 2 * B, s->counts = ids + 3 * B, ids += 4 * B;
    s->few_ids = ids, s->met = ids + many, s->heap = ids + 2 * many;
    s->ids = s->next + N;
    s->order = (int64_t *)(memory + at_order);
    s->past = (int64_t *)(memory + at_past), s->past_spare = s->past + N * s->longest;
    s->few = (float *)(memory + at_few), s->mark = (uint8_t *)(memory + at_mark);
    s->levels = (level *)(memory + at_levels), s->answers = (answer *)(memory + at_answers);
    count = 0;
    const char *first[MOST_LEAVES], *fixed[MOST_LEAVES], *const real = s->real.now;
    for (int64_t i = 0; i < s->moving_count; i++) {
        s->moving[i].after = memory + at_leaves[count++], s->moving[i].spare = memory + at_leaves[count++];
        first[i] = s->moving[i].now;
    }
    for (int64_t i = 0; i <= s->fixed_count; i++) {
        leaf *l = i < s->fixed_count ? s->fixed + i : &s->real;
        l->after = memory + at_leaves[count++];
        if (i < s->fixed_count) fixed[i] = l->now;
    }
    int status = RECURRA_OK;
    for (int64_t b = 0; b < B; b++) {
        found->count[b] = 0;
        s->leasts[b] = how->min_lengths ? how->min_lengths[b] : how->min_length;
        s->limits[b] = how->max_lengths ? how->max_lengths[b] : how->max_length;
        if (s->limits[b] < 1 || s->limits[b] > s->longest) status = RECURRA_SIZES;
    }
    for (int64_t draw = 0; draw < draws && !status; draw++) {
        for (int64_t i = 0; i < s->moving_count; i++) s->moving[i].now = first[i];
        for (int64_t i = 0; i < s->fixed_count; i++) s->fixed[i].now = fixed[i];
        s->real.now = real, s->seed = how->seed + (uint64_t)draw;
        int64_t levels = 0;
        memset(s->levels, 0, (size_t)s->longest * sizeof(level));
        status = search_once(s, &levels);
        for (int64_t b = 0; b < B && !status; b++) write_answers(s, b, how->best, draws > 1);
        for (int64_t i = 0; i < levels; i++) free(s->levels[i].parents), free(s->levels[i].weights);
    }
    free(memory);
    return status;
}
"""
"""The search itself: the text of C, where a program that is called recurra has been printed."""
