"""Which modules have no examples to run here."""

from __future__ import annotations

from importlib.util import find_spec

# The module needs scikit-learn, an extra, to be imported.
collect_ignore = [] if find_spec("sklearn") else ["src/recurra/sklearn.py"]
