"""C that every printed program needs: errors, weights, products, and functions of one number."""

from __future__ import annotations

from recurra.engines.c_prelude import prelude

HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define UNUSED __attribute__((unused))
#else
#define UNUSED
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

PRODUCTS = """\
#if defined(__AVX512F__)
#define VECTOR 16
#define ROWS 4
#elif defined(__AVX__)
#define VECTOR 8
#define ROWS 2
#else
#define VECTOR 4
#define ROWS 2
#endif
#define PANEL (4 * VECTOR)

typedef float vector __attribute__((vector_size(4 * VECTOR), aligned(4), may_alias));

static inline UNUSED int64_t panels_of(int64_t n) { return (n + PANEL - 1) / PANEL * PANEL; }

/* A matrix w[k, n], its numbers sk and sn apart, in panels of PANEL columns, zeros behind the last one. */
static UNUSED void pack(const float *w, int64_t K, int64_t N, int64_t sk, int64_t sn, float *out) {
    for (int64_t n = 0; n < N; n += PANEL)
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < PANEL; j++) *out++ = n + j < N ? w[k * sk + (n + j) * sn] : 0;
}

#define FROM_FLOAT(p, i) (*(const vector *)((p) + (i) * VECTOR))

#define ROWS_OF_PANEL(COUNT) \\
    { \\
        vector s[COUNT][4]; \\
        for (int r = 0; r < COUNT; r++) \\
            for (int i = 0; i < 4; i++) s[r][i] = (vector){0}; \\
        const float *p = panel; \\
        for (int64_t k = 0; k < K; k++, p += PANEL) { \\
            const vector w0 = FROM_FLOAT(p, 0), w1 = FROM_FLOAT(p, 1), w2 = FROM_FLOAT(p, 2), w3 = FROM_FLOAT(p, 3); \\
            for (int r = 0; r < COUNT; r++) { \\
                const float x = a[(m + r) * lda + k]; \\
                s[r][0] += x * w0; \\
                s[r][1] += x * w1; \\
                s[r][2] += x * w2; \\
                s[r][3] += x * w3; \\
            } \\
        } \\
        for (int r = 0; r < COUNT; r++) { \\
            float *o = out + (m + r) * N + n, sums[PANEL]; \\
            for (int i = 0; i < 4; i++) *(vector *)(sums + i * VECTOR) = s[r][i]; \\
            memcpy(o, sums, (size_t)width * sizeof(float)); \\
        } \\
    }

/* out[m, n] = sum over k of a[m, k] w[k, n]; w as `pack` lays it out, the rows of a are lda apart. */
static UNUSED void product(int64_t M, int64_t K, int64_t N, const float *a, int64_t lda, const float *packed,
                           float *out) {
    for (int64_t n = 0; n < N; n += PANEL) {
        const float *panel = packed + n * K;
        const int64_t width = N - n < PANEL ? N - n : PANEL;
        int64_t m = 0;
        for (; m + ROWS <= M; m += ROWS) ROWS_OF_PANEL(ROWS)
        for (; m < M; m++) ROWS_OF_PANEL(1)
    }
}

static inline UNUSED float dot(const float *a, const float *b, int64_t n) {
    vector s[2] = {{0}, {0}};
    int64_t k = 0;
    for (; k + 2 * VECTOR <= n; k += 2 * VECTOR) {
        s[0] += FROM_FLOAT(a + k, 0) * FROM_FLOAT(b + k, 0);
        s[1] += FROM_FLOAT(a + k, 1) * FROM_FLOAT(b + k, 1);
    }
    s[0] += s[1];
    float sum = 0;
    for (int i = 0; i < VECTOR; i++) sum += s[0][i];
    for (; k < n; k++) sum += a[k] * b[k];
    return sum;
}

static inline UNUSED float sum_of(const float *a, int64_t n) {
    vector s[2] = {{0}, {0}};
    int64_t k = 0;
    for (; k + 2 * VECTOR <= n; k += 2 * VECTOR) s[0] += FROM_FLOAT(a + k, 0), s[1] += FROM_FLOAT(a + k, 1);
    s[0] += s[1];
    float sum = 0;
    for (int i = 0; i < VECTOR; i++) sum += s[0][i];
    for (; k < n; k++) sum += a[k];
    return sum;
}

/* A maximum of which one number is not a number is none either. */
static inline UNUSED float max_of(const float *a, int64_t n) {
    float most[VECTOR], none = 0;
    for (int i = 0; i < VECTOR; i++) most[i] = -INFINITY;
    int64_t k = 0;
    for (; k + VECTOR <= n; k += VECTOR)
        for (int i = 0; i < VECTOR; i++) most[i] = a[k + i] > most[i] ? a[k + i] : most[i];
    for (; k < n; k++) most[0] = a[k] > most[0] ? a[k] : most[0];
    for (int i = 1; i < VECTOR; i++) most[0] = most[i] > most[0] ? most[i] : most[0];
    for (k = 0; k < n; k++) none += a[k] != a[k];
    return none ? NAN : most[0];
}

/* out[g, m, n] = sum over k of a[g, m, k] b[g, k, n], of matrices whose numbers are so far apart. */
static UNUSED void multiply(int64_t G, int64_t M, int64_t K, int64_t N, const float *a, int64_t ag, int64_t am,
                            int64_t ak, const float *b, int64_t bg, int64_t bk, int64_t bn, float *out) {
    for (int64_t g = 0; g < G; g++)
        for (int64_t m = 0; m < M; m++, out += N) {
            const float *x = a + g * ag + m * am, *y = b + g * bg;
            if (ak == 1 && bk == 1) {
                for (int64_t n = 0; n < N; n++) out[n] = dot(x, y + n * bn, K);
                continue;
            }
            for (int64_t n = 0; n < N; n++) out[n] = 0;
            for (int64_t k = 0; k < K; k++) {
                const float c = x[k * ak];
                if (bn == 1) {
                    EACH
                    for (int64_t n = 0; n < N; n++) out[n] += c * y[k * bk + n];
                } else {
                    for (int64_t n = 0; n < N; n++) out[n] += c * y[k * bk + n * bn];
                }
            }
        }
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

/* Bytes of an array, in whole lines of a cache. Where addresses have 32 bits, these may be more than there are. */
static inline UNUSED uint64_t room(int64_t count, size_t each) { return ((uint64_t)count * each + 63) / 64 * 64; }

/* Numbers that one array has at most, and bytes that are asked for at once. */
#define MOST_NUMBERS (PTRDIFF_MAX > INT32_MAX ? 1099511627776.0 : 268435455.0)
#define MOST_BYTES ((uint64_t)PTRDIFF_MAX - 4096)
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
    return "\n".join([HEAD, functions, "", NUMBERS, PRODUCTS, WEIGHTS])
