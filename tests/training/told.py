"""A tagger that tells what it is asked, and answers otherwise while it is trained."""

from __future__ import annotations

import copy
from typing import Any, Self

from recurra.models.tagged import TaggerOutput
from recurra.models.tagger import TaggerBatch
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import START, Loss, Moment

NAME = "tests.training.told:Told"


class Told(Tagging):
    """Its loss weighs less with every update, by what is logged; the number of losses so far is carried."""

    quick = False

    def while_training(self) -> Self:
        found = copy.copy(self)
        found.quick = True
        return found

    def predict(self, model: Any, batch: TaggerBatch, *, detail: bool = False) -> list[TaggerOutput]:
        found = super().predict(model, batch, detail=detail)
        return [each._replace(tags=tuple(0 * tags for tags in each.tags)) for each in found] if self.quick else found

    def loss(self, model: Any, batch: TaggerBatch, moment: Moment = START) -> Loss:
        import torch

        found = super().loss(model, batch)
        share = 0.9**moment.step
        count = moment.carried[0] + 1 if moment.carried else torch.ones(())
        drawn = float(torch.rand(()))  # of the step's own generator
        logged = {"share": share, "losses": float(count), "drawn": drawn, "stalled": moment.stalled}
        return found._replace(total=found.total * share, carried=(count,), logged=logged)
