"""How a run would have forecast the past: `recurra backtest`."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from recurra.errors import ConfigError
from recurra.text.json_file import json_text

if TYPE_CHECKING:
    from recurra.analysis.backtests import Backtest
    from recurra.training.trained import Trained

VALID = "10%"
"""What is held out before each origin where a model is trained anew, if the run was validated on files."""


def backtest(options: argparse.Namespace) -> None:
    """Rolling-origin evaluation of a run, as it is or trained anew before each origin."""
    from recurra.training import explaining
    from recurra.training.trained import load

    if options.out is not None:
        explaining.check_ending(Path(options.out))
    for name in ("windows", "step", "horizon"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise ConfigError(f"--{name} must be at least 1, but is {getattr(options, name)}.")
    model = load(options.run, device=options.device, trust=options.trust)
    changes = [*options.set, *([] if options.horizon is None else [f"decoding.horizon={options.horizon}"])]
    model = model.with_settings(changes)
    step = model.task.settings.decoding.horizon if options.step is None else options.step
    if options.refit:
        found = refitted(model, options, changes, step)
    else:
        found = model.backtest(options.data, windows=options.windows, step=step)
    if options.csv is not None:
        found.write_csv(Path(options.csv))
    if options.out is not None:
        found.view().write(Path(options.out))
    print(json_text(found.json()) if options.json else found.text())


def refitted(model: Trained, options: argparse.Namespace, changes: list[str], step: int) -> Backtest:
    """Each window forecast by a model, or several, of the same settings, trained on what lies before its origin."""
    from recurra import runs
    from recurra.training.progress import Silent
    from recurra.training.trained import load

    back = model.origins(options.data, windows=options.windows, step=step)
    data = model.task.settings.data
    given: dict[str, object] = {"train": options.data}
    if data.files("valid"):  # a file might lie after the origin
        given["valid"] = data.valid if data.shares is not None and data.shares.of_part("valid") else VALID
    forecasts = []
    for number, steps in enumerate(back):
        with tempfile.TemporaryDirectory() as folder:
            overrides = [*changes, f"data.drop_last={steps}", "data.cache=false"]
            members = list[Path]()
            for member in (model.folder, *model.others):
                path, place = str(member / "config.toml"), Path(folder) / str(len(members))
                this = runs.setup(path, given=given, overrides=overrides, device=options.device, trust=options.trust)
                runs.begin(this, place, Silent())
                members.append(place)
            fresh = load(members, device=options.device, trust=True)
            found = fresh.backtest(options.data, windows=1, step=1, back=[steps])
        forecasts += [each._replace(window=number + 1) for each in found.forecasts]
        print(f"window {number + 1} of {len(back)}: trained", file=sys.stderr)
    order = {each.series: place for place, each in enumerate(reversed(forecasts))}
    forecasts.sort(key=lambda each: (-order[each.series], each.window))
    return dataclasses.replace(found, forecasts=forecasts, refitted=True)
