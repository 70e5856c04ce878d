"""Parts of a model that training leaves as they are: for good, or until a later epoch (gradual unfreezing, ULMFiT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import nn

from recurra.config.fine_tuning import SECTION, WHERE, FineTuning
from recurra.named import did_you_mean
from recurra.settings import SettingError


@final
class Frozen:
    """The parts of a model that are frozen, and since which epoch they are not.

    >>> model = nn.ModuleDict({"embedding": nn.Linear(2, 2), "encoder": nn.Linear(2, 2), "output": nn.Linear(2, 1)})
    >>> frozen = Frozen(model, FineTuning(frozen=["embedding", "encoder"], unfreeze=1))
    >>> [frozen.parts_at(epoch) for epoch in range(4)]
    [['embedding', 'encoder'], ['embedding'], [], []]
    """

    def __init__(self, model: nn.Module, settings: FineTuning) -> None:
        self.names, self.every = list(settings.frozen), settings.unfreeze
        self._parts = [_parameters(model, name) for name in self.names]
        held = {id(parameter) for part in self._parts for parameter in part}
        if held and all(id(parameter) in held for parameter in model.parameters()):
            raise SettingError(
                f"{WHERE}.frozen = {self.names} freezes the whole model, so there is nothing to train. Leave out "
                f"'{self.names[-1]}', or other parts of it.",
                (*SECTION, "frozen"),
            )
        self._count = len(self.names)
        if not self.is_gradual:
            self.apply(0)

    @property
    def is_gradual(self) -> bool:
        """Whether parts are trained from a later epoch on."""
        return bool(self.names) and self.every is not None

    def parts_at(self, epoch: int) -> list[str]:
        """The parts that are frozen in an epoch: the last one that is named is trained first."""
        return self.names if self.every is None else self.names[: max(0, len(self.names) - epoch // self.every)]

    def apply(self, epoch: int) -> list[str]:
        """Let autograd and the optimiser leave the parts alone that are frozen in this epoch.

        The parts that were frozen until now and are not any more.
        """
        count, before = len(self.parts_at(epoch)), self._count
        self._count = count
        for part in self._parts[count:]:
            for parameter in part:
                parameter.requires_grad_(True)
        for part in self._parts[:count]:
            for parameter in part:
                parameter.requires_grad_(False)
                parameter.grad = None
        return self.names[count:before]


def _parameters(model: nn.Module, name: str) -> Sequence[nn.Parameter]:
    """The parameters of a part, by the name of a module or of a parameter."""
    found = dict(model.named_parameters(remove_duplicate=False))
    inside = [parameter for each, parameter in found.items() if each == name or each.startswith(f"{name}.")]
    if not inside:
        known = dict.fromkeys(each.rpartition(".")[0] or each for each in found)
        known = {".".join(each.split(".")[:depth]): None for depth in (1, 2) for each in known}
        raise SettingError(
            f"{WHERE}.frozen: the model has no part '{name}'. {did_you_mean(name, known)}", (*SECTION, "frozen")
        )
    return inside
