"""C that every printed program needs: errors, weights, products, and functions of one number."""

from __future__ import annotations

from recurra.engines.c_prelude import prelude
from recurra.programs.c_narrow import NARROW
from recurra.programs.c_products import PRODUCTS
from recurra.programs.c_threads import THREADS

HEAD = """\
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define UNUSED __attribute__((unused))
#define INLINED __attribute__((unused, always_inline))
#else
#define UNUSED
#define INLINED
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define EACH _Pragma("GCC ivdep")
#else
#define EACH
#endif

/* Not called by its name: compilers would wrongly see numbers that are read before any was written. */
static void *(*const volatile taken)(size_t) = malloc;

enum { RECURRA_OK = 0, RECURRA_SIZES = 1, RECURRA_MEMORY = 2, RECURRA_IDS = 3, RECURRA_WEIGHTS = 4 };
enum { RECURRA_NUMBERS = 5, RECURRA_RULES = 6 };
"""

ROWS = """\
static UNUSED float sum_of(const float *a, int64_t n) {
    const int64_t whole = n - n % (2 * VECTOR);
    vector s[2] = {{0}, {0}};
    for (int64_t k = 0; k < whole; k += 2 * VECTOR) s[0] += VECTOR_AT(a + k), s[1] += VECTOR_AT(a + k + VECTOR);
    float sum = total_of(s[0] + s[1]);
    for (int64_t k = whole; k < n; k++) sum += a[k];
    return sum;
}

/* A maximum of which one number is not a number is none either. */
static UNUSED float max_of(const float *a, int64_t n) {
    const int64_t whole = n - n % (2 * VECTOR);
    float most[2 * VECTOR];
    for (int i = 0; i < 2 * VECTOR; i++) most[i] = -INFINITY;
    for (int64_t k = 0; k < whole; k += 2 * VECTOR)
        for (int i = 0; i < 2 * VECTOR; i++) most[i] = r_max(a[k + i], most[i]);
    for (int64_t k = whole; k < n; k++) most[0] = r_max(a[k], most[0]);
    for (int i = 1; i < 2 * VECTOR; i++) most[0] = r_max(most[i], most[0]);
    return most[0];
}

/* out[b, f, i, j] += sums over the channels and the window; arrays without gaps, out filled with zeros. */
static UNUSED void convolve(const float *x, const float *w, float *out, int64_t B, int64_t C, int64_t H, int64_t W,
                            int64_t F, int64_t OH, int64_t OW, int64_t KH, int64_t KW, int64_t SH, int64_t SW,
                            int64_t PH, int64_t PW, int64_t DH, int64_t DW, int64_t groups) {
    const int64_t each = C / groups, filters = F / groups;
    for (int64_t b = 0; b < B; b++)
        for (int64_t f = 0; f < F; f++)
            for (int64_t c = 0; c < each; c++) {
                const float *plane = x + ((b * C) + f / filters * each + c) * H * W;
                float *o = out + (b * F + f) * OH * OW;
                for (int64_t u = 0; u < KH; u++)
                    for (int64_t v = 0; v < KW; v++) {
                        const float weight = w[((f * each + c) * KH + u) * KW + v];
                        for (int64_t i = 0; i < OH; i++) {
                            const int64_t row = i * SH + u * DH - PH;
                            if (row < 0 || row >= H) continue;
                            for (int64_t j = 0; j < OW; j++) {
                                const int64_t column = j * SW + v * DW - PW;
                                if (column >= 0 && column < W) o[i * OW + j] += weight * plane[row * W + column];
                            }
                        }
                    }
            }
}
"""

NUMBERS = """\
/* Whole numbers that leave their range come back at its other end, as in NumPy; what is divided by 0 is 0. */
static inline UNUSED int64_t wrapped_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline UNUSED int64_t wrapped_difference(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline UNUSED int64_t wrapped_product(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline UNUSED int64_t floor_divided(int64_t a, int64_t b) {
    if (b == -1) return wrapped_difference(0, a);
    return b ? a / b - (a % b && (a < 0) != (b < 0)) : 0;
}
static inline UNUSED int64_t rest_of(int64_t a, int64_t b) { return b && b != -1 ? a % b : 0; }
static inline UNUSED int64_t remainder_of(int64_t a, int64_t b) {
    const int64_t rest = rest_of(a, b);
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline UNUSED int64_t larger_size(int64_t a, int64_t b) { return a > b ? a : b; }

/* Arrays begin at a line of the cache: vectors that lie across two of them take twice as long. */
#define ALIGNED 64
/* Bytes of an array, in whole lines. Where addresses have 32 bits, these may be more than there are. */
static inline UNUSED uint64_t room(int64_t count, size_t each) {
    return ((uint64_t)count * each + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Numbers that one array has at most, and bytes that are asked for at once. */
#define MOST_NUMBERS (PTRDIFF_MAX > INT32_MAX ? 1099511627776.0 : 268435455.0)
#define MOST_BYTES ((uint64_t)PTRDIFF_MAX - 4096)
static inline UNUSED char *aligned(void *memory) {
    return (char *)memory + (ALIGNED - (uintptr_t)memory % ALIGNED) % ALIGNED;
}

/* Memory for a call, after its size: that of an earlier call if it is large enough, because fresh memory comes in pages
   that the system has to clear. Calls at the same time each have their own. */
#define MOST_SPARE ((size_t)1 << 28)
static UNUSED void *borrowed(void **spare, size_t need) {
    size_t *found = __atomic_exchange_n(spare, NULL, __ATOMIC_ACQ_REL);
    if (found && *found >= need) return found;
    free(found);
    found = taken(need + 2 * ALIGNED);
    if (found) *found = need;
    return found;
}
static UNUSED void give_back(void **spare, void *found) {
    free(*(size_t *)found > MOST_SPARE ? found : __atomic_exchange_n(spare, found, __ATOMIC_ACQ_REL));
}
"""

STEPS = """\
/* The largest length of rows, -1 if one of them is none. */
static UNUSED int64_t longest_of(const int64_t *lengths, int64_t B, int64_t T) {
    int64_t most = 0;
    for (int64_t b = 0; b < B; b++) {
        if (lengths[b] < 0 || lengths[b] > T) return -1;
        most = larger_size(most, lengths[b]);
    }
    return most;
}

/* The same; also the numbers of the rows, the longest first, and how many of them are longer than t, for each t up to
   T. There is room for 2 (T + 1) numbers in `active`. */
static UNUSED int64_t longest_first(const int64_t *lengths, int64_t B, int64_t T, int64_t *order, int64_t *active) {
    const int64_t most = longest_of(lengths, B, T);
    int64_t *const next = active + T + 1, longer = 0;
    if (most < 0) return most;
    for (int64_t t = 0; t <= T; t++) active[t] = 0;
    for (int64_t b = 0; b < B; b++) active[lengths[b]]++;
    for (int64_t t = T; t >= 0; t--) {
        const int64_t as_long = active[t];
        active[t] = next[t] = longer;
        longer += as_long;
    }
    for (int64_t b = 0; b < B; b++) order[next[lengths[b]]++] = b;
    return most;
}
"""

WEIGHTS = """\
/* FNV-1a in words of eight bytes. */
static uint64_t checksum(const unsigned char *bytes, size_t size) {
    uint64_t sum = UINT64_C(14695981039346656037);
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        sum = (sum ^ word) * UINT64_C(1099511628211);
    }
    return sum;
}
"""


def runtime() -> str:
    """All of the above; what a program does not use, compilers leave out."""
    functions = prelude(is_double=False).replace("static inline", "static inline UNUSED")
    functions = "\n".join(line for line in functions.splitlines() if not line.startswith("#include"))
    return "\n".join([HEAD, functions, "", NUMBERS, THREADS, PRODUCTS, NARROW, ROWS, STEPS, WEIGHTS])
