"""C that all printed text begins with: functions of one number, exact to the last digits, that compilers vectorise."""

from __future__ import annotations

import math

PRELUDE = """\
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef {real} real;
typedef {integer} integer;

/* 2^n from its bits; anything where n is that of what is not a number. */
static inline real power_of_two(integer n) {{
    union {{ integer i; real r; }} bits;
    bits.i = (integer)((u{integer})(n + {bias}) << {mantissa});
    return bits.r;
}}

/* a = n ln 2 + r with n whole and |r| <= ln 2 / 2; returns e^r - 1, exact to the last digits also where r is near 0.
   The last bits of a sum with the magic number are n: a conversion of what is not a number would be undefined. */
static inline real split_exponent(real a, integer *n) {{
    union {{ integer i; real r; }} shifted;
    shifted.r = a * (real)1.4426950408889634074 + (real){magic};
    *n = shifted.i - {magic_bits};
    const real whole = shifted.r - (real){magic};
    const real r = (a - whole * (real){ln2_high}) - whole * (real){ln2_low};
    real p = {lead};
{terms}    return p * r * r + r;
}}
/* Where 2^n alone would overflow, or have no room for all its digits, it is multiplied in two parts. */
static inline real r_exp(real a) {{
    integer n;
    a = a > (real){top} ? (real){top} : a;
    a = a < -(real){bottom} ? -(real){bottom} : a;
    const real p = split_exponent(a, &n);
    const integer half = n >> 1;
    const real s = power_of_two(half);
    return (s * p + s) * power_of_two(n - half);
}}
static inline real exp_minus_one(real a) {{
    integer n;
    a = a > (real){top} ? (real){top} : a;
    a = a < -50 ? -50 : a;
    const real p = split_exponent(a, &n);
    const real s = power_of_two(n - 1);
    return 2 * (s * p + (s - (real)0.5));
}}
/* log a = e ln 2 + log m, m between sqrt 1/2 and sqrt 2; log m = 2 artanh q = 2 (q + q^3/3 + ...), q = (m-1)/(m+1). */
static inline real r_log(real a) {{
    const int is_small = a < (real){smallest};
    union {{ integer i; real r; }} bits;
    bits.r = is_small ? a * (real){scale} : a;
    const integer from_half = bits.i - {sqrt_half};
    const integer e = from_half >> {mantissa};
    bits.i = (from_half & {mantissa_mask}) + {sqrt_half};
    const real f = bits.r - 1, q = f / (2 + f), z = q * q;
    real p = {log_lead};
{log_terms}    const real n = (real)e - (is_small ? {scale_log} : 0);
    const real y = n * (real){ln2_high} + (n * (real){ln2_low} + (2 * q + 2 * q * z * p));
    const real ends = a == 0 ? -(real)INFINITY : (real)NAN;
    return a > 0 ? (a > {largest} ? a : y) : ends;
}}
/* log(1 + a) for the rounded 1 + a, and by how much that was rounded (Kahan). */
static inline real r_log1p(real a) {{
    const real u = 1 + a, d = u - 1;
    const real y = r_log(u) * (a / d);
    return d == 0 ? a : u > {largest} ? u : y;
}}
static inline real r_sigmoid(real a) {{ return 1 / (2 + exp_minus_one(-a)); }}
static inline real r_tanh(real a) {{
    const real e = exp_minus_one(-2 * (a < 0 ? -a : a));
    const real y = -e / (e + 2);
    return a < 0 ? -y : y;
}}
static inline real r_sign(real a) {{ return (real)((a > 0) - (a < 0)); }}
static inline real r_relu(real a) {{ return a < 0 ? 0 : a; }}
static inline real r_max(real a, real b) {{ return a > b || a != a ? a : b; }}
static inline real r_min(real a, real b) {{ return a < b || a != a ? a : b; }}
static inline real r_rsqrt(real a) {{ return 1 / {sqrt}(a); }}
static inline real r_expm1(real a) {{ return a == 0 ? a : exp_minus_one(a); }}
/* The first of the largest; what is not a number is larger than all. */
static inline long place_of_largest(const real *a, long n) {{
    long k = 0;
    for (long j = 1; j < n; j++)
        if (a[k] == a[k] && (a[j] > a[k] || a[j] != a[j])) k = j;
    return k;
}}
"""

FROM_LIBRARY: tuple[str, ...] = (
    *("fabs", "sqrt", "exp2", "log2", "log10", "erf", "floor", "ceil", "rint", "trunc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
"""Functions of C's own library, of one number."""


def prelude(is_double: bool) -> str:
    suffix = "" if is_double else "f"
    library = [f"static inline real r_{name}(real a) {{ return {name}{suffix}(a); }}" for name in FROM_LIBRARY]
    library += [
        f"static inline real r_{name}(real a, real b) {{ return {name}{suffix}(a, b); }}" for name in ("pow", "atan2")
    ]
    # e^r = 1 + r + r² (1/2! + r/3! + …) for |r| ≤ ln 2 / 2: as many terms as the type has digits.
    order = 13 if is_double else 7
    terms = "".join(f"    p = p * r + (real){1 / math.factorial(k)!r};\n" for k in range(order - 1, 1, -1))
    # artanh q = q + q³ (1/3 + q²/5 + …) for |q| ≤ 0.172, likewise.
    last = 11 if is_double else 5
    log_terms = "".join(f"    p = p * z + (real){1 / (2 * k + 1)!r};\n" for k in range(last - 1, 0, -1))
    numbers: dict[str, object] = (
        {"bias": 1023, "mantissa": 52, "top": 710.0, "bottom": 746.0, "magic": 6755399441055744.0}
        | {"smallest": "0x1p-1022", "largest": "1.7976931348623157e308", "scale": "0x1p54", "scale_log": 54}
        | {
            "magic_bits": "0x4338000000000000LL",
            "sqrt_half": "0x3fe6a09e667f3bcdLL",
            "mantissa_mask": "0xfffffffffffffLL",
        }
        if is_double
        else {"bias": 127, "mantissa": 23, "top": 89.0, "bottom": 104.0, "magic": 12582912.0}
        | {"smallest": "0x1p-126f", "largest": "3.4028234663852886e38f", "scale": "0x1p25f", "scale_log": 25}
        | {"magic_bits": "0x4b400000", "sqrt_half": "0x3f3504f3", "mantissa_mask": "0x7fffff"}
    )
    return PRELUDE.format(
        sqrt=f"sqrt{suffix}",
        real="double" if is_double else "float",
        integer="int64_t" if is_double else "int32_t",
        ln2_high=6.93147180369123816490e-01 if is_double else 0.693359375,
        ln2_low=1.90821492927058770002e-10 if is_double else -2.12194440e-4,
        lead=f"(real){1 / math.factorial(order)!r}",
        terms=terms,
        log_lead=f"(real){1 / (2 * last + 1)!r}",
        log_terms=log_terms,
        **numbers,
    ) + "\n".join([*library, ""])
