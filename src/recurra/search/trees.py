"""Tuples of tensors, however deep: what a search carries from step to step."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor


def mapped(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same tuples with every tensor changed; what is neither stays as it is.

    >>> import torch
    >>> mapped((torch.tensor([1, 2]), (None, 3)), lambda each: each + 1)
    (tensor([2, 3]), (None, 3))
    """
    if isinstance(tree, Tensor):
        return change(tree)
    if not isinstance(tree, tuple):
        return tree
    parts = [mapped(part, change) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def leaves(tree: Any) -> list[Tensor]:
    """Every tensor, in order."""
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else []


def signature(tree: Any) -> Hashable:
    """What two trees have in common where one's tensors can be copied into the other's.

    >>> import torch
    >>> signature((torch.zeros(2, 3), None)) == signature((torch.ones(2, 3), None))
    True
    >>> signature((torch.zeros(2, 3), None)) == signature((torch.zeros(2, 4), None))
    False
    """
    if isinstance(tree, Tensor):
        return tree.dtype, tuple(tree.shape)
    if isinstance(tree, tuple):
        return type(tree), tuple(signature(part) for part in tree)
    return tree  # a number or None
