"""Which modules have no examples to run here."""

from __future__ import annotations

from importlib.util import find_spec

# These modules need a package, an extra or one that comes with torch for CUDA, to be imported.
NEEDS = {"src/recurra/sklearn.py": "sklearn", "src/recurra/products/triton_trial.py": "triton"}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]
