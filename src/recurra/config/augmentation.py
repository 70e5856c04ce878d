"""Settings of augmentation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from recurra.settings import SettingError, at_least, rates, setting

OF_PICTURES = ("rotate", "shear", "warp", "ink")


@dataclass(frozen=True)
class Augmentation:
    """Small changes of pictures or series, drawn anew each time one is learned from; 0 is off."""

    shift: float = setting(0.0, "of a picture up to this share of its sides, of a series up to this share of its time")
    scale: float = setting(0.0, "larger or smaller by up to this share: a picture's sides, the numbers of a series")
    rotate: float = setting(0.0, "degrees that a picture is turned either way, at most")
    shear: float = setting(0.0, "slant of a picture: its top moves sideways by up to this share of its height")
    warp: float = setting(0.0, "pixels by which places of a picture move at most, each part its own smooth way")
    ink: float = setting(0.0, "pixels by which each edge of bright lines moves out or in, at most")
    noise: float = setting(0.0, "standard deviation of what is added to pixels of 0 to 1, or to a scaled series")
    mask: float = setting(0.0, "share of the steps of a series that is blanked out in one stretch, at most")

    def __post_init__(self) -> None:
        rates("augmentation", self, "shift", "scale", "shear", "mask")
        at_least(0, "augmentation", self, "rotate", "warp", "ink", "noise")
        for name, most in (("rotate", 180), ("warp", 8), ("ink", 4)):
            if getattr(self, name) > most:
                raise SettingError(
                    f"augmentation.{name} must be at most {most}, but is {getattr(self, name):g}.",
                    ("augmentation", name),
                )

    def check_pictures(self) -> None:
        """Refuse what can have no effect where pictures are read."""
        if self.mask:
            raise SettingError(
                "augmentation.mask blanks out steps of a series, but pictures are read: leave it out.",
                ("augmentation", "mask"),
            )

    def check_series(self, found: str | None) -> None:
        """Refuse what can have no effect where a series is read, or where `found` says what is read in its place."""
        for field in dataclasses.fields(self):
            if not getattr(self, field.name):
                continue
            if found is not None:
                raise SettingError(
                    f"augmentation.{field.name} changes a series or a picture, but {found}: leave it out.",
                    ("augmentation", field.name),
                )
            if field.name in OF_PICTURES:
                raise SettingError(
                    f"augmentation.{field.name} changes pictures, but a series is read: leave it out. Of a series, "
                    f"shift, scale, noise and mask can be changed.",
                    ("augmentation", field.name),
                )
