"""Densities: from the features of a step to how probable the vector of the next one is.

The file name is the config name, as in model.output = "gaussian".
"""

from __future__ import annotations

from recurra.densities.bernoulli import Bernoulli
from recurra.densities.counting import Counting
from recurra.densities.density import Density
from recurra.densities.gaussian import Gaussian
from recurra.densities.log_normal import LogNormal
from recurra.densities.mixture import Mixture
from recurra.densities.negative_binomial import NegativeBinomial
from recurra.densities.poisson import Poisson
from recurra.densities.quantiles import Quantiles
from recurra.densities.squared_error import SquaredError
from recurra.densities.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Counting",
    "Density",
    "Gaussian",
    "LogNormal",
    "Mixture",
    "NegativeBinomial",
    "Poisson",
    "Quantiles",
    "SquaredError",
    "StudentT",
]
