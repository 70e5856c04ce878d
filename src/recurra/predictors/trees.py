"""Trees of tensors: tuples of tuples, such as states, as inputs and outputs of functions."""

from __future__ import annotations

from typing import Any


def leaves(tree: Any) -> list[Any]:
    """Every tensor of a tuple, in order."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree] if hasattr(tree, "dim") else []


def named(name: str, tree: Any) -> dict[str, Any]:
    return {f"{name}{number}": leaf for number, leaf in enumerate(leaves(tree))}


def kind_of(leaf: Any) -> str:
    """As which kind of input a state is given: numbers, flags, or counts of what was read."""
    return "flags" if str(leaf.dtype) == "torch.bool" else "numbers" if leaf.is_floating_point() else "counts"


def refilled(tree: Any, tensors: Any) -> Any:
    """The same tuples with other tensors."""
    if isinstance(tree, tuple):
        parts = [refilled(part, tensors) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return next(tensors) if hasattr(tree, "dim") else tree
