"""How training starts from another run: what of it is kept, what is trained, and what of its data is seen again."""

from __future__ import annotations

from typing import Literal

from recurra.frozen import dataclass
from recurra.settings import SettingError, at_least, rates, setting

SECTION = ("training", "fine_tuning")
WHERE = ".".join(SECTION)

LOWER = 0.5
"""The learning rate of fine-tuning, as a share of what it would be otherwise."""


@dataclass(frozen=True)
class FineTuning:
    """Settings of training that starts from another run."""

    base: str = setting("", "run whose weights training starts from; --from RUN sets it")
    vocabulary: Literal["kept", "new"] = setting(
        "kept", "kept: the vocabulary of the base run, to which new tokens are added; new: only that of the new data"
    )
    frozen: list[str] = setting([], "parts of the model that are not trained, such as embedding, encoder or decoder")
    unfreeze: int | None = setting(
        None, "gradual unfreezing: epochs after which one more frozen part is trained, the last one first; none: never"
    )
    old_share: float = setting(
        0.0, "replay: share of the examples of each epoch that is drawn from old data, so that it is not forgotten"
    )
    old_data: str | list[str] = setting("", "file or files of old data; none: the training data of the base run")

    def __post_init__(self) -> None:
        at_least(1, WHERE, self, "unfreeze")
        rates(WHERE, self, "old_share")
        for name, needs, is_met in (
            ("unfreeze", "frozen", bool(self.frozen)),
            ("vocabulary", "base", bool(self.base)),
            ("old_data", "old_share", self.old_share > 0),
            ("old_share", "base", bool(self.base or self.old_data)),
        ):
            value = getattr(self, name)
            if value not in (None, "", [], 0.0, "kept") and not is_met:
                raise SettingError(
                    f"{WHERE}.{name} has no effect without {WHERE}.{needs}: {HINTS[needs]}.", (*SECTION, name)
                )

    @property
    def old_files(self) -> list[str]:
        """The files of old data that are named."""
        return [self.old_data] if isinstance(self.old_data, str) and self.old_data else list(self.old_data)


HINTS = {
    "frozen": "name the parts of the model that are frozen",
    "base": "give a run to start from, --from RUN",
    "old_share": "set the share of old data in each epoch, such as 0.2",
}


def fine_tuning_of(training: object) -> FineTuning:
    """The settings of fine-tuning; a user's own settings of training need not have any."""
    found = getattr(training, "fine_tuning", None)
    return found if isinstance(found, FineTuning) else FineTuning()
