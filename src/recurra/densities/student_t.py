"""Real values with heavy tails: now and then one lies far away."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, special
from torch.nn import functional

from recurra.densities.density import Density
from recurra.densities.gaussian import WIDEST, open_share
from recurra.densities.incomplete_beta import incomplete_beta
from recurra.heads.head import as_it_lies, readout
from recurra.padding import lengthened, longest

LEAST = 2.01
"""Degrees of freedom, at least: above 2 the variance exists."""

MOST = 100.0
"""Degrees of freedom, at most: more can hardly be told from a normal distribution."""

MANY, POINTS = 1000, 48
"""Values of ν from which one quantile is interpolated on, and the points between which it is."""

CORRECTIONS = 4
"""Steps that bring a first guess of a quantile to full precision."""


class StudentT(Density):
    """Student's t for each value, with a centre, a width and degrees of freedom of its own at each step.

        μ       = W_μ h + b_μ
        log σ²  = W_σ h + b_σ,                     kept between −12 and 12
        ν       = 2.01 + softplus(W_ν h + b_ν),    at most 100
        z       = (x − μ) / σ
        −log p  = log Γ(ν/2) − log Γ((ν+1)/2) + ½ log(ν π) + ½ log σ² + (ν+1)/2 log(1 + z²/ν),   summed over the values

    The mean is μ, the variance σ² ν/(ν − 2). With the distribution function F_ν and the density f_ν at σ = 1:
    cdf(x) = F_ν(z), quantile(u) = μ + σ F_ν⁻¹(u), and (Jordan et al. 2019)

        CRPS = σ (z (2 F_ν(z) − 1) + 2 f_ν(z) (ν + z²)/(ν − 1) − 2 √ν B(½, ν − ½) / ((ν − 1) B(½, ν/2)²))

    >>> density = StudentT(3, 1)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)
    >>> wide = density.quantile(torch.randn(3), torch.tensor([0.975])).item()     # a normal distribution has 1.96
    >>> 3.2 < wide < 3.6
    True
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, 3 * size)

    def parts(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The centre, the logarithm of the squared width, and the degrees of freedom."""
        mean, log_square, freedom = (part.contiguous() for part in as_it_lies(self.readout, features).chunk(3, dim=-1))
        return mean, log_square.clamp(-WIDEST, WIDEST), (LEAST + functional.softplus(freedom)).clamp(max=MOST)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        is_mapped = torch._C._are_functorch_transforms_active()
        if not is_mapped and not torch.compiler.is_compiling():
            o = as_it_lies(self.readout, features).to(targets.dtype)
            whole: Tensor = CostOfOutputs.apply(o, targets)  # type: ignore[no-untyped-call]
            return whole
        mean, log_square, nu = (part.to(targets.dtype) for part in self.parts(features))
        found: Tensor = Cost.apply(targets, mean, log_square, nu)  # type: ignore[no-untyped-call]
        return found

    def mean(self, features: Tensor) -> Tensor:
        return self.parts(features)[0]

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def searched(self, features: Tensor) -> dict[str, Tensor]:
        _, log_square, nu = self.parts(features)
        return {"log_square": log_square, "freedom": nu}

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        mean, log_square, nu = self.parts(features)
        return mean + (0.5 * log_square).exp() * quantile_at(open_share(share), nu).to(mean.dtype)

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        mean, log_square, nu = (part.to(values.dtype) for part in self.parts(features))
        return standard_cdf((values - mean) * (-0.5 * log_square).exp(), nu).to(values.dtype)

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        mean, log_square, nu = (lengthened(part) for part in self.parts(features))
        spread = (0.5 * log_square).exp()
        z = (lengthened(values) - mean) / spread
        log_half_beta = torch.lgamma(nu - 0.5) - torch.lgamma(nu)  # log B(½, ν − ½), less log Γ(½)
        log_beta = torch.lgamma(0.5 * nu) - torch.lgamma(0.5 * nu + 0.5)  # log B(½, ν/2), less log Γ(½)
        apart = 2 * nu.sqrt() / (nu - 1) * (log_half_beta - 2 * log_beta).exp() / math.sqrt(math.pi)
        # f_ν(z) (ν + z²) = (ν + z²) times a power of it: as one power, it cannot be ∞ · 0.
        high = (_log_density(z, nu) + nu.log() + 2 * torch.hypot(torch.ones_like(z), z / nu.sqrt()).log()).exp()
        score = z * (2 * standard_cdf(z, nu) - 1) + 2 * high / (nu - 1) - apart
        return (spread * score).to(values.dtype)


class Cost(torch.autograd.Function):
    """−log p of a value x by its centre μ, l = log σ² and ν, with gradients in half the operations of their parts.

        s      = z / √ν,   z = (x − μ) / σ,   w = 1 / (1 + s²)
        ∂/∂μ   = −(ν+1)/√ν · s w / σ,         ∂/∂x = −∂/∂μ
        ∂/∂l   = ½ − ½ (ν+1) (1 − w)
        ∂/∂ν   = ½ (ψ(ν/2) − ψ((ν+1)/2) + 1/ν + log(1 + s²) − (ν+1) (1 − w)/ν)

    The gradients are made of operations that can be differentiated in turn.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, mean: Tensor, log_square: Tensor, nu: Tensor) -> Tensor:
        return 0.5 * log_square - _log_density((x - mean) * (-0.5 * log_square).exp(), nu)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, log_square, nu = ctx.saved_tensors
        [gradient] = given
        d_mean, d_square, d_nu = Cost.slopes(x, mean, log_square, nu, gradient)
        return -d_mean if ctx.needs_input_grad[0] else None, d_mean, d_square, d_nu

    @staticmethod
    def slopes(
        x: Tensor, mean: Tensor, log_square: Tensor, nu: Tensor, gradient: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """∂/∂μ, ∂/∂l and ∂/∂ν, times a gradient."""
        root, narrow = nu.rsqrt(), (-0.5 * log_square).exp()
        s = (x - mean) * narrow * root
        w = 1 / (1 + s * s)
        more = nu + 1
        outer = more * (1 - w)
        d_mean = -gradient * (more * root * s * w * narrow)
        d_square = gradient * (0.5 - 0.5 * outer)
        normal = torch.digamma(0.5 * nu) - torch.digamma(0.5 * nu + 0.5)
        far = 2 * torch.hypot(torch.ones_like(s), s).log()  # the square of a far s would overflow
        d_nu = gradient * (0.5 * (normal + far + (1 - outer) / nu))
        return d_mean, d_square, d_nu


class CostOfOutputs(torch.autograd.Function):
    """The same by the outputs [μ; a; c] (..., 3 d) of the last layer: a and c are bounded in the same pass.

    l = a between −12 and 12,   ν = 2.01 + softplus(c), at most 100;   their slopes are 1 and σ(c), beyond the bounds 0
    """

    @staticmethod
    def parts(o: Tensor, like: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """μ, l, c and ν, each as it lies in memory by itself."""
        mean, square, freedom = o.unflatten(-1, (3, like.shape[-1])).movedim(-2, 0).contiguous().unbind(0)
        nu = (LEAST + functional.softplus(freedom)).clamp(max=MOST)
        return mean, square.clamp(-WIDEST, WIDEST), freedom, nu

    @staticmethod
    def forward(ctx: Any, o: Tensor, x: Tensor) -> Tensor:
        mean, log_square, _, nu = CostOfOutputs.parts(o, x)
        ctx.save_for_backward(o, x)
        return Cost.forward(x, mean, log_square, nu)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, Tensor | None]:
        o, x = ctx.saved_tensors
        mean, log_square, freedom, nu = CostOfOutputs.parts(o, x)
        d_mean, d_square, d_nu = Cost.slopes(x, mean, log_square, nu, given[0])
        d_square = d_square.masked_fill(log_square.abs() >= WIDEST, 0)
        d_freedom = (d_nu * freedom.sigmoid()).masked_fill(nu >= MOST, 0)
        d_o = torch.cat([d_mean, d_square, d_freedom], dim=-1)
        return d_o, -d_mean if ctx.needs_input_grad[1] else None


def _log_density(z: Tensor, nu: Tensor) -> Tensor:
    """log f_ν(z). The square of a far z would overflow: log(1 + z²/ν) = 2 log √(1² + (z/√ν)²)."""
    far = 2 * torch.hypot(torch.ones_like(z), z / nu.sqrt()).log()
    normal = torch.lgamma(0.5 * nu + 0.5) - torch.lgamma(0.5 * nu) - 0.5 * (math.pi * nu).log()
    return normal - 0.5 * (nu + 1) * far


@torch.no_grad()
def standard_cdf(z: Tensor, nu: Tensor) -> Tensor:
    """F_ν(z) = 1 − ½ I_{ν/(ν+z²)}(ν/2, ½) for z ≥ 0; F_ν(−z) = 1 − F_ν(z)."""
    z, nu = lengthened(z), lengthened(nu)
    square = (z / nu.sqrt()).square()
    half = torch.full_like(z, 0.5)
    tail = 0.5 * incomplete_beta(0.5 * nu, half, 1 / (1 + square), 1 - 1 / (1 + square))
    return tail.where(z < 0, 1 - tail)


@torch.no_grad()
def quantile_at(share: Tensor, nu: Tensor) -> Tensor:
    """F_ν⁻¹(u); where u is one number for many ν, by interpolation in 1/ν at Chebyshev's points, to 1e-10."""
    if nu.numel() < MANY or bool(share.amin() != share.amax()):
        return standard_quantile(share, nu)
    low, high, dtype = 1 / MOST, 1 / LEAST, longest(nu.device)
    angles = math.pi * (torch.arange(POINTS, dtype=dtype, device=nu.device) + 0.5) / POINTS
    points = low + (high - low) * 0.5 * (1 + angles.cos())
    values = standard_quantile(lengthened(share.flatten()[:1]), 1 / points)
    orders = torch.arange(POINTS, dtype=dtype, device=nu.device)
    weights = (orders[:, None] * angles).cos() @ values * (2 / POINTS)  # of the polynomials cos(k arccos y)
    y = (2 * (1 / lengthened(nu).clamp(LEAST, MOST) - low) / (high - low) - 1).clamp(-1, 1)
    after, found = torch.zeros_like(y), torch.zeros_like(y)
    for weight in weights[1:].flip(0).tolist():  # Clenshaw's recurrence
        after, found = found, 2 * y * found - after + weight
    return y * found - after + 0.5 * weights[0]


@torch.no_grad()
def standard_quantile(share: Tensor, nu: Tensor) -> Tensor:
    """F_ν⁻¹(u): first from that of the normal distribution, then by Newton's method on log F, which is concave.

    The lower tail is computed, and the upper one by symmetry.
    """
    share, nu = torch.broadcast_tensors(lengthened(share), lengthened(nu))
    low = torch.minimum(share, 1 - share)
    n = special.ndtri(low)
    # Two limits: far out, F ≈ C |z|^−ν; in the middle, an expansion in 1/ν around the normal quantile.
    log_c = torch.lgamma(0.5 * nu + 0.5) - torch.lgamma(0.5 * nu) - 0.5 * math.log(math.pi) + (0.5 * nu - 1) * nu.log()
    outer = -((log_c - low.log()) / nu).exp()
    inner = n + (n**3 + n) / (4 * nu) + (5 * n**5 + 16 * n**3 + 3 * n) / (96 * nu.square())
    z = torch.where(outer < -2.5 * nu.sqrt(), outer, inner)
    for _ in range(CORRECTIONS):
        below = standard_cdf(z, nu).clamp_min(torch.finfo(z.dtype).tiny)
        slope = _log_density(z, nu).exp() / below
        z = (z - (below.log() - low.log()) / slope).clamp(max=0)
    return z.where(share < 0.5, -z)
