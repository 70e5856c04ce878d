"""The functions that row passes use in C, against float64 and what IEEE arithmetic says of the ends."""

from __future__ import annotations

import ctypes
import functools
import math

import pytest
import torch
from torch import Tensor

from recurra.engines.c_library import library
from recurra.engines.c_prelude import prelude

NAMES = ("exp", "sigmoid", "tanh", "log", "log1p")
POSITIVE = torch.cat([torch.logspace(-37, 38, 20_001, dtype=torch.float64), torch.linspace(0.3, 3, 20_001).double()])
AROUND = torch.linspace(-120, 120, 40_001, dtype=torch.float64)
ARGUMENTS = {
    "exp": torch.cat([AROUND[AROUND.abs() < 88], -POSITIVE[POSITIVE < 87]]),
    "sigmoid": AROUND[AROUND.abs() < 87],
    "tanh": torch.cat([AROUND / 6, POSITIVE, -POSITIVE]),
    "log": POSITIVE,
    "log1p": torch.cat([POSITIVE, -POSITIVE[POSITIVE < 1], torch.linspace(-0.999, 2, 20_001).double()]),
}


@functools.cache
def functions(is_double: bool) -> ctypes.CDLL:
    loops = (
        f"void all_{name}(long n, const real *a, real *out) {{\n"
        f"#pragma omp simd\n    for (long j = 0; j < n; j++) out[j] = r_{name}(a[j]);\n}}"
        for name in NAMES
    )
    return library("\n".join([prelude(is_double), *loops]))


def computed(name: str, a: Tensor) -> Tensor:
    function, out = getattr(functions(a.dtype == torch.float64), f"all_{name}"), torch.empty_like(a)
    function(ctypes.c_long(len(a)), ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(out.data_ptr()))
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_right_to_a_few_units_in_the_last_place(name: str, dtype: torch.dtype) -> None:
    a = ARGUMENTS[name].to(dtype)
    expected = getattr(torch, name)(a.double())
    found = computed(name, a).double()
    assert found.isfinite().all()
    unit = torch.finfo(dtype).eps * expected.abs()
    assert ((found - expected).abs() <= 4 * unit + torch.finfo(dtype).tiny).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_ends_are_what_torch_says(name: str, dtype: torch.dtype) -> None:
    largest, tiny = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal / 8
    ends = [0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, -2.0, largest, -largest, tiny, -tiny]
    # Where 2^n overflows before e^a does, and where e^a has no room for all its digits any more.
    ends += [88.5, 88.8, 709.6, 709.9, -88.5, -87.5, -104.5, -709.5, -746.5]
    a = torch.tensor(ends, dtype=dtype)
    expected = getattr(torch, name)(a)
    relative, absolute = 1e-6 if dtype == torch.float32 else 1e-14, 2 * torch.finfo(dtype).smallest_normal
    torch.testing.assert_close(computed(name, a), expected, equal_nan=True, rtol=relative, atol=absolute)
