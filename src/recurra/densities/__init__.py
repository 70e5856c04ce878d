"""Densities: from the features of a step to how probable the vector of the next one is.

The file name is the config name, as in model.output = "gaussian".
"""

from __future__ import annotations

from recurra.densities.bernoulli import Bernoulli
from recurra.densities.density import Density
from recurra.densities.gaussian import Gaussian
from recurra.densities.squared_error import SquaredError

__all__ = ["Bernoulli", "Density", "Gaussian", "SquaredError"]
