"""C of products of matrices: weights in panels, kernels of one to six rows, and small products of activations.

A kernel keeps a block of the result in registers, some rows by some vectors, and goes through the inner size once. What
it computes for a row does not depend on the rows beside it, so that an answer is the same alone and among others.
"""

from __future__ import annotations

PRODUCTS = """\
#if defined(__AVX512F__)
#define VECTOR 16
#define VECTORS 4
#define WIDEST 8
#elif defined(__AVX__)
#define VECTOR 8
#define VECTORS 2
#define WIDEST 8
#else
#define VECTOR 4
#define VECTORS 2
#define WIDEST 8
#endif
#define PANEL (VECTORS * VECTOR)
#define MOST_ROWS 6
#define ROWS_OF_BLOCK 240

typedef float vector __attribute__((vector_size(4 * VECTOR), aligned(4), may_alias));

#define VECTOR_AT(p) (*(const vector *)(p))

static inline UNUSED int64_t columns_of(int64_t n) { return (n + VECTOR - 1) / VECTOR * VECTOR; }

/* Weights of 16 bits, bfloat16: the upper half of a float. */
typedef uint16_t halves __attribute__((vector_size(2 * VECTOR), aligned(2), may_alias));
typedef uint32_t wholes __attribute__((vector_size(4 * VECTOR)));
static inline UNUSED float widened(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float found;
    memcpy(&found, &bits, sizeof(found));
    return found;
}
static inline INLINED vector weights_at(const void *b, int64_t at, const int size) {
    if (size == 4) return VECTOR_AT((const float *)b + at);
    return (vector)(__builtin_convertvector(*(const halves *)((const uint16_t *)b + at), wholes) << 16);
}

/* A matrix w[k, n], its numbers sk and sn apart, in panels of PANEL columns; the last one has as many vectors of
   columns as it needs, with zeros behind its last column. */
static UNUSED void pack(const float *w, int64_t K, int64_t N, int64_t sk, int64_t sn, float *out) {
    for (int64_t n = 0; n < N; n += PANEL) {
        const int64_t width = columns_of(N - n) < PANEL ? columns_of(N - n) : PANEL;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < width; j++) *out++ = n + j < N ? w[k * sk + (n + j) * sn] : 0;
    }
}

static inline UNUSED uint64_t half_room(int64_t K, int64_t N) {
    return ((uint64_t)columns_of(N) * K + 31) / 32 * 16;
}

/* The same of columns w[n, k] of 16 bits. */
static UNUSED void half_pack(const uint16_t *w, int64_t K, int64_t N, void *out) {
    uint16_t *to = out;
    for (int64_t n = 0; n < N; n += PANEL) {
        const int64_t width = columns_of(N - n) < PANEL ? columns_of(N - n) : PANEL;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < width; j++) *to++ = n + j < N ? w[(n + j) * K + k] : 0;
    }
}

/* out[r][n] = sum over k of a[r][k ak] b[k bk + n] for `rows` rows and `wide` vectors of columns, of which `width` are
   written; from one panel to the next it is `apart`. Numbers of b have `size` bytes. Rows, vectors and the size are
   known when this is compiled. */
static inline INLINED void block(const int rows, const int wide, const int size, int64_t K, const float *const *a,
                                 int64_t ak, const void *b, int64_t bk, int64_t apart, float *const *out,
                                 int64_t width) {
    vector s[MOST_ROWS][WIDEST];
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < wide; i++) s[r][i] = (vector){0};
    for (int64_t k = 0; k < K; k++) {
        vector w[WIDEST];
        for (int i = 0; i < wide; i++) w[i] = weights_at(b, k * bk + i / VECTORS * apart + i % VECTORS * VECTOR, size);
        for (int r = 0; r < rows; r++) {
            const float x = a[r][k * ak];
            for (int i = 0; i < wide; i++) s[r][i] += x * w[i];
        }
    }
    if (width == wide * VECTOR) {
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < wide; i++) *(vector *)(out[r] + i * VECTOR) = s[r][i];
    } else {
        for (int r = 0; r < rows; r++) {
            float sums[WIDEST * VECTOR];
            for (int i = 0; i < wide; i++) *(vector *)(sums + i * VECTOR) = s[r][i];
            memcpy(out[r], sums, (size_t)width * sizeof(float));
        }
    }
}

#define BLOCK(R, V) \\
    case (R) * 16 + (V): block(R, V, BYTES, K, a, ak, b, bk, apart, out, width); break;
#if VECTORS == 4
#define BLOCKS(R) BLOCK(R, 1) BLOCK(R, 2) BLOCK(R, 3) BLOCK(R, 4)
#else
#define BLOCKS(R) BLOCK(R, 1) BLOCK(R, 2)
#endif
#define EVERY_BLOCK BLOCK(1, WIDEST) BLOCKS(1) BLOCKS(2) BLOCKS(3) BLOCKS(4) BLOCKS(5) BLOCKS(6)

static UNUSED void block_of(int64_t rows, int64_t wide, int64_t K, const float *const *a, int64_t ak, const void *b,
                            int64_t bk, int64_t apart, float *const *out, int64_t width) {
#define BYTES 4
    switch (rows * 16 + wide) { EVERY_BLOCK }
#undef BYTES
}

static UNUSED void half_block_of(int64_t rows, int64_t wide, int64_t K, const float *const *a, int64_t ak,
                                 const void *b, int64_t bk, int64_t apart, float *const *out, int64_t width) {
#define BYTES 2
    switch (rows * 16 + wide) { EVERY_BLOCK }
#undef BYTES
}

/* How many of the rows that are left are computed together. */
static inline UNUSED int64_t rows_together(int64_t left) {
    return left <= MOST_ROWS ? left : left < 2 * MOST_ROWS ? (left + 1) / 2 : MOST_ROWS;
}

static inline UNUSED int is_zero(const float *a, int64_t n) {
    int64_t k = 0;
    while (k < n && a[k] == 0) k++;
    return k == n;
}

/* Rows by a part of the columns of a packed matrix. */
typedef struct columns {
    const float *const *rows;
    float *const *outs;
    int64_t count, K, N, together;
    const void *packed;
    int size;
} columns;

/* Columns that are one part, of which there are some for each thread. */
static inline UNUSED int64_t columns_together(int64_t N) {
    const int64_t panels = (N + PANEL - 1) / PANEL, parts = threads_now() > 1 ? 4 * threads_now() : 1;
    return (panels + parts - 1) / parts * PANEL;
}
static inline UNUSED int64_t parts_of(int64_t N, int64_t together) { return N ? (N + together - 1) / together : 0; }

static inline INLINED void columns_of_part(const columns *c, const int size, int64_t part) {
    const int64_t N = c->N, last = (part + 1) * c->together < N ? (part + 1) * c->together : N;
    for (int64_t n = part * c->together, wide; n < last; n += wide * VECTOR) {
        const int64_t left = columns_of(last - n) / VECTOR;
        wide = c->count == 1 && left >= WIDEST ? WIDEST : left < VECTORS ? left : VECTORS;
        const int64_t width = last - n < wide * VECTOR ? last - n : wide * VECTOR;
        for (int64_t r = 0, some; r < c->count; r += some) {
            float *at[MOST_ROWS];
            some = rows_together(c->count - r);
            for (int64_t each = 0; each < some; each++) at[each] = c->outs[r + each] + n;
            (size == 4 ? block_of : half_block_of)(some, wide, c->K, c->rows + r, 1,
                                                   (const char *)c->packed + n * c->K * size,
                                                   wide < VECTORS ? wide * VECTOR : PANEL, c->K * PANEL, at, width);
        }
    }
}
static UNUSED void some_columns(const void *given, int64_t part) { columns_of_part(given, 4, part); }
static UNUSED void some_half_columns(const void *given, int64_t part) { columns_of_part(given, 2, part); }

/* out[m, n] = sum over k of a[m, k] w[k, n]; w as `pack` lays it out, the rows of a are lda apart. Rows of zeros, as
   padding has them, cost nothing. */
static inline INLINED void product_of(int64_t M, int64_t K, int64_t N, const float *a, int64_t lda, const void *packed,
                                      const int size, float *out) {
    for (int64_t m = 0; m < M;) {
        const float *rows[ROWS_OF_BLOCK];
        float *outs[ROWS_OF_BLOCK];
        int64_t count = 0;
        for (; m < M && count < ROWS_OF_BLOCK; m++) {
            if (is_zero(a + m * lda, K)) {
                memset(out + m * N, 0, (size_t)N * sizeof(float));
            } else {
                rows[count] = a + m * lda;
                outs[count++] = out + m * N;
            }
        }
        const columns given = {rows, outs, count, K, N, columns_together(N), packed, size};
        share_out(size == 4 ? some_columns : some_half_columns, &given, parts_of(N, given.together),
                  (double)count * K * N);
    }
}

static UNUSED void product(int64_t M, int64_t K, int64_t N, const float *a, int64_t lda, const void *packed,
                           float *out) {
    product_of(M, K, N, a, lda, packed, 4, out);
}

static UNUSED void half_product(int64_t M, int64_t K, int64_t N, const float *a, int64_t lda, const void *packed,
                                float *out) {
    product_of(M, K, N, a, lda, packed, 2, out);
}

static inline UNUSED float total_of(vector s) {
    float part[VECTOR];
    *(vector *)part = s;
    for (int half = VECTOR / 2; half; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    return part[0];
}

/* out[n] = sum over k of a[k] b[n bn + k] for `count` columns, which are known when this is compiled. */
static inline INLINED void dots(const int count, int64_t K, const float *a, const float *b, int64_t bn, float *out) {
    vector s[4];
    for (int n = 0; n < count; n++) s[n] = (vector){0};
    const int64_t whole = K - K % VECTOR;
    for (int64_t k = 0; k < whole; k += VECTOR) {
        const vector x = VECTOR_AT(a + k);
        for (int n = 0; n < count; n++) s[n] += x * VECTOR_AT(b + n * bn + k);
    }
    for (int n = 0; n < count; n++) {
        float sum = total_of(s[n]);
        for (int64_t k = whole; k < K; k++) sum += a[k] * b[n * bn + k];
        out[n] = sum;
    }
}

/* out[m, n] = sum over k of a[m, k] b[k, n], where rows of b lie along memory. */
static UNUSED void multiply_rows(int64_t M, int64_t K, int64_t N, const float *a, int64_t am, int64_t ak,
                                 const float *b, int64_t bk, float *out) {
    const int64_t vectors = N / VECTOR;
    for (int64_t m = 0, some; m < M; m += some) {
        const float *rows[MOST_ROWS];
        float *at[MOST_ROWS];
        some = rows_together(M - m);
        for (int64_t r = 0; r < some; r++) rows[r] = a + (m + r) * am;
        for (int64_t v = 0, wide; v < vectors; v += wide) {
            const int64_t left = vectors - v;
            wide = some == 1 && left >= WIDEST ? WIDEST : left < VECTORS ? left : VECTORS;
            for (int64_t r = 0; r < some; r++) at[r] = out + (m + r) * N + v * VECTOR;
            block_of(some, wide, K, rows, ak, b + v * VECTOR, bk, PANEL, at, wide * VECTOR);
        }
        for (int64_t r = 0; r < some; r++)
            for (int64_t n = vectors * VECTOR; n < N; n++) {
                float sum = 0;
                for (int64_t k = 0; k < K; k++) sum += rows[r][k * ak] * b[k * bk + n];
                out[(m + r) * N + n] = sum;
            }
    }
}

/* out[g, m, n] = sum over k of a[g, m, k] b[g, k, n], of matrices whose numbers are so far apart. */
static UNUSED void multiply(int64_t G, int64_t M, int64_t K, int64_t N, const float *a, int64_t ag, int64_t am,
                            int64_t ak, const float *b, int64_t bg, int64_t bk, int64_t bn, float *out) {
    for (int64_t g = 0; g < G; g++, a += ag, b += bg, out += M * N) {
        if (bn == 1) {
            multiply_rows(M, K, N, a, am, ak, b, bk, out);
            continue;
        }
        for (int64_t n = 0; n < N; n += 4)
            for (int64_t m = 0; m < M; m++) {
                const float *x = a + m * am, *y = b + n * bn;
                float *o = out + m * N + n;
                if (ak == 1 && bk == 1 && n + 4 <= N) {
                    dots(4, K, x, y, bn, o);
                    continue;
                }
                for (int64_t j = n; j < N && j < n + 4; j++, y += bn, o++) {
                    if (ak == 1 && bk == 1) {
                        dots(1, K, x, y, bn, o);
                        continue;
                    }
                    *o = 0;
                    for (int64_t k = 0; k < K; k++) *o += x[k * ak] * y[k * bk];
                }
            }
    }
}

/* The same of numbers with more digits, which only few sums need; along the rows of b. */
static UNUSED void multiply_exact(int64_t G, int64_t M, int64_t K, int64_t N, const double *a, int64_t ag, int64_t am,
                                  int64_t ak, const double *b, int64_t bg, int64_t bk, int64_t bn, double *out) {
    for (int64_t g = 0; g < G; g++, a += ag, b += bg)
        for (int64_t m = 0; m < M; m++, out += N) {
            for (int64_t n = 0; n < N; n++) out[n] = 0;
            for (int64_t k = 0; k < K; k++) {
                const double x = a[m * am + k * ak];
                for (int64_t n = 0; n < N; n++) out[n] += x * b[k * bk + n * bn];
            }
        }
}
"""
