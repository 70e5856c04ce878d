"""Settings of augmentation."""

from __future__ import annotations

import dataclasses

from recurra.frozen import dataclass
from recurra.settings import SettingError, at_least, rates, setting

OF_PICTURES = ("rotate", "shear", "warp", "ink")


@dataclass(frozen=True)
class Augmentation:
    """Small changes of pictures or series, drawn anew each time one is learned from; 0 is off."""

    shift: float = setting(0.0, "largest shift, as a fraction of a picture's sides or of a series' length")
    scale: float = setting(0.0, "largest change of scale: of a picture's sides, or of the values of a series")
    rotate: float = setting(0.0, "largest rotation of a picture in either direction, in degrees")
    shear: float = setting(
        0.0, "largest shear of a picture: how far its top moves sideways, as a fraction of its height"
    )
    warp: float = setting(0.0, "elastic distortion of a picture: largest displacement, in pixels")
    ink: float = setting(0.0, "largest change of line thickness, in pixels per edge of a bright line")
    noise: float = setting(0.0, "standard deviation of noise added to pixels (0 to 1) or to a scaled series")
    mask: float = setting(0.0, "largest fraction of a series that is masked, in one contiguous block")

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
                "augmentation.mask applies to series, but the inputs are pictures: leave it out.",
                ("augmentation", "mask"),
            )

    def check_series(self, found: str | None) -> None:
        """Refuse what can have no effect where a series is read, or where `found` says what is read in its place."""
        for field in dataclasses.fields(self):
            if not getattr(self, field.name):
                continue
            if found is not None:
                raise SettingError(
                    f"augmentation.{field.name} applies to series and pictures, but {found}: leave it out.",
                    ("augmentation", field.name),
                )
            if field.name in OF_PICTURES:
                raise SettingError(
                    f"augmentation.{field.name} applies to pictures, but the inputs are series: leave it out. For "
                    "series use shift, scale, noise or mask.",
                    ("augmentation", field.name),
                )
