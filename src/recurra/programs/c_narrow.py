"""C of products with weights of 8 bits: whole numbers, which every machine adds up to the same sum.

Rows of the left side are rounded to whole numbers of -127 to 127 by a scale of their own. Four of them at a time are
multiplied by four numbers of a column, by the instruction that a machine has for it.
"""

from __future__ import annotations

NARROW = """\
#if defined(__AVX512VNNI__) && VECTOR == 16
#define ADDED 128 /* what is added to numbers of the left side, which the instruction reads without a sign */
typedef __m512i sums;
/* Not _mm512_dpbusd_epi32: some compilers copy the sums to other registers and back, and run out of them. */
static inline INLINED sums four_more(sums s, sums x, sums w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(x), "v"(w));
    return s;
}
static inline INLINED sums every(const int8_t *four) {
    int32_t one;
    memcpy(&one, four, 4);
    return _mm512_set1_epi32(one);
}
#else
#define ADDED 0
typedef int32_t sums __attribute__((vector_size(4 * VECTOR), aligned(4), may_alias));
typedef int16_t pairs __attribute__((vector_size(4 * VECTOR), aligned(4), may_alias));
#if defined(__AVX2__) && VECTOR == 8
#define PAIRS(a, b) ((sums)_mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#elif defined(__SSE2__) && VECTOR == 4
#define PAIRS(a, b) ((sums)_mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#elif defined(__wasm_simd128__) && VECTOR == 4
#define PAIRS(a, b) ((sums)wasm_i32x4_dot_i16x8((v128_t)(a), (v128_t)(b)))
#else
#define PAIRS(a, b) (((sums)(a) << 16 >> 16) * ((sums)(b) << 16 >> 16) + ((sums)(a) >> 16) * ((sums)(b) >> 16))
#endif
/* The second and fourth of four, and the first and third, as numbers of 16 bits side by side. */
static inline INLINED sums four_more(sums s, sums x, sums w) {
    s += PAIRS((pairs)x >> 8, (pairs)w >> 8);
    return s + PAIRS((pairs)x << 8 >> 8, (pairs)w << 8 >> 8);
}
static inline INLINED sums every(const int8_t *four) {
    int32_t one;
    memcpy(&one, four, 4);
    return (sums){0} + one;
}
#endif

static inline UNUSED int64_t fours_of(int64_t n) { return (n + 3) / 4; }

/* Numbers of four bytes that a packed matrix takes: its panels, what is taken off each sum, and the scales. */
static inline UNUSED uint64_t narrow_room(int64_t K, int64_t N) { return (uint64_t)columns_of(N) * (fours_of(K) + 2); }

/* Columns w[n, k] in panels as `pack` has them, four numbers of a column side by side. */
static UNUSED void narrow_pack(const int8_t *w, const float *scale, int64_t K, int64_t N, void *out) {
    const int64_t columns = columns_of(N), fours = fours_of(K);
    int8_t *to = out;
    int32_t *off = (int32_t *)out + columns * fours;
    float *scales = (float *)(void *)(off + columns);
    for (int64_t n = 0; n < N; n += PANEL) {
        const int64_t width = columns_of(N - n) < PANEL ? columns_of(N - n) : PANEL;
        for (int64_t k = 0; k < 4 * fours; k += 4)
            for (int64_t j = 0; j < width; j++)
                for (int64_t i = k; i < k + 4; i++) *to++ = n + j < N && i < K ? w[(n + j) * K + i] : 0;
    }
    for (int64_t n = 0; n < columns; n++) {
        int32_t sum = 0;
        for (int64_t k = 0; n < N && k < K; k++) sum += w[n * K + k];
        off[n] = ADDED * sum;
        scales[n] = n < N ? scale[n] : 0;
    }
}

/* A row as whole numbers; returns its scale, 0 of a row of zeros, and NAN where it is no row of numbers. */
static UNUSED float rounded_row(const float *a, int64_t K, int8_t *out) {
    float part[2 * VECTOR], most = 0;
    for (int i = 0; i < 2 * VECTOR; i++) part[i] = 0;
    const int64_t whole = K - K % (2 * VECTOR);
    for (int64_t k = 0; k < whole; k += 2 * VECTOR)
        for (int i = 0; i < 2 * VECTOR; i++) part[i] = r_max(r_fabs(a[k + i]), part[i]);
    for (int64_t k = whole; k < K; k++) most = r_max(r_fabs(a[k]), most);
    for (int i = 0; i < 2 * VECTOR; i++) most = r_max(part[i], most);
    if (!(most <= 3e38f)) return NAN;
    if (most < 1e-30f) return 0;
    const float by = 127.0f / most;
    EACH
    for (int64_t k = 0; k < K; k++) out[k] = (int8_t)((int32_t)r_rint(a[k] * by) + ADDED);
    for (int64_t k = K; k < 4 * fours_of(K); k++) out[k] = 0;
    return most / 127.0f;
}

static inline INLINED void narrow_block(const int rows, const int wide, int64_t fours, const int8_t *const *a,
                                        const float *by, const int8_t *b, int64_t step, const int32_t *off,
                                        const float *scales, float *const *out, int64_t width) {
    sums s[MOST_ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < wide; i++) s[r][i] = (sums){0};
    for (int64_t k = 0; k < fours; k++, b += step) {
        sums w[VECTORS];
        for (int i = 0; i < wide; i++) memcpy(&w[i], b + i * 4 * VECTOR, sizeof(sums));
        for (int r = 0; r < rows; r++) {
            const sums x = every(a[r] + 4 * k);
            for (int i = 0; i < wide; i++) s[r][i] = four_more(s[r][i], x, w[i]);
        }
    }
    for (int r = 0; r < rows; r++) {
        int32_t found[VECTORS * VECTOR];
        float numbers[VECTORS * VECTOR];
        for (int i = 0; i < wide; i++) memcpy(found + i * VECTOR, &s[r][i], sizeof(sums));
        for (int i = 0; i < wide * VECTOR; i++) numbers[i] = (float)(found[i] - off[i]) * by[r] * scales[i];
        memcpy(out[r], numbers, (size_t)width * sizeof(float));
    }
}

#define NARROW_BLOCK(R, V) \\
    case (R) * 16 + (V): narrow_block(R, V, fours, a, by, b, step, off, scales, out, width); break;
#if VECTORS == 4
#define NARROW_BLOCKS(R) NARROW_BLOCK(R, 1) NARROW_BLOCK(R, 2) NARROW_BLOCK(R, 3) NARROW_BLOCK(R, 4)
#else
#define NARROW_BLOCKS(R) NARROW_BLOCK(R, 1) NARROW_BLOCK(R, 2)
#endif

static UNUSED void narrow_block_of(int64_t rows, int64_t wide, int64_t fours, const int8_t *const *a, const float *by,
                                   const int8_t *b, int64_t step, const int32_t *off, const float *scales,
                                   float *const *out, int64_t width) {
    switch (rows * 16 + wide) {
        NARROW_BLOCKS(1) NARROW_BLOCKS(2) NARROW_BLOCKS(3) NARROW_BLOCKS(4) NARROW_BLOCKS(5) NARROW_BLOCKS(6)
    }
}

typedef struct narrow_columns {
    const int8_t *const *rows;
    const float *by;
    float *const *outs;
    int64_t count, fours, N, together;
    const int8_t *packed;
    const int32_t *off;
    const float *scales;
} narrow_columns;

static UNUSED void some_narrow_columns(const void *given, int64_t part) {
    const narrow_columns *const c = given;
    const int64_t N = c->N, last = (part + 1) * c->together < N ? (part + 1) * c->together : N;
    for (int64_t n = part * c->together; n < last; n += PANEL) {
        const int64_t left = columns_of(last - n) / VECTOR, wide = left < VECTORS ? left : VECTORS;
        const int64_t width = last - n < PANEL ? last - n : PANEL;
        for (int64_t r = 0, some; r < c->count; r += some) {
            float *at[MOST_ROWS];
            some = rows_together(c->count - r);
            for (int64_t each = 0; each < some; each++) at[each] = c->outs[r + each] + n;
            narrow_block_of(some, wide, c->fours, c->rows + r, c->by + r, c->packed + n * 4 * c->fours,
                            wide * 4 * VECTOR, c->off + n, c->scales + n, at, width);
        }
    }
}

/* out[m, n] = sum over k of a[m, k] w[n, k]; w as `narrow_pack` lays it out; `rounded` has room for the
   rows in fours. */
static UNUSED void narrow_product(int64_t M, int64_t K, int64_t N, const float *a, int64_t lda, const void *packed,
                                  int8_t *rounded, float *out) {
    const int64_t fours = fours_of(K);
    const int32_t *off = (const int32_t *)packed + columns_of(N) * fours;
    const float *scales = (const float *)(const void *)(off + columns_of(N));
    for (int64_t m = 0; m < M;) {
        const int8_t *rows[ROWS_OF_BLOCK];
        float by[ROWS_OF_BLOCK], *outs[ROWS_OF_BLOCK];
        int64_t count = 0;
        for (; m < M && count < ROWS_OF_BLOCK; m++) {
            int8_t *const row = rounded + m * 4 * fours;
            const float scale = rounded_row(a + m * lda, K, row);
            if (scale > 0) {
                rows[count] = row, by[count] = scale, outs[count++] = out + m * N;
            } else {
                for (int64_t n = 0; n < N; n++) out[m * N + n] = scale;
            }
        }
        const narrow_columns given = {rows, by, outs, count, fours, N, columns_together(N), packed, off, scales};
        share_out(some_narrow_columns, &given, parts_of(N, given.together), (double)count * K * N / 4);
    }
}
"""
