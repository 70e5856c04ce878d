"""`recurra export`: a run recorded, checked against the run itself, and written to a folder that describes itself."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from recurra.config.run_file import run_text
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.exported import FORMAT, LICENSE, PROGRAM, WEIGHTS, Exported, load_exported
from recurra.exporting.gates import gates_function
from recurra.exporting.joining import RUN_BY, difference, recorded_functions, runners
from recurra.exporting.narrow import Narrow, narrowed
from recurra.manifest import committing
from recurra.models.saved import fingerprint
from recurra.programs.c_text import Printed
from recurra.programs.folding import folded
from recurra.programs.inputs import Recordable, Running
from recurra.programs.narrowing import Width
from recurra.programs.onnx_file import has_runtime, package, write_graphs
from recurra.programs.onnx_functions import graphs
from recurra.programs.program import Program
from recurra.programs.searchable import Usual
from recurra.programs.solving import NotExportable
from recurra.programs.weights import write_weights
from recurra.reading.samples import asked_as
from recurra.tasks.task import Prediction
from recurra.training.loading import EXPORT
from recurra.training.samples import kept_samples, samples_of_data
from recurra.training.trained import Trained, load
from recurra.version import __version__

Weights: TypeAlias = dict[str, NDArray[Any]]

SCORE_TOLERANCE = 1e-3
"""The same of the score of an answer, beside the score, or 1."""

NARROW_TOLERANCE = 2e-2
"""The same where products round what they multiply to whole numbers: a last digit before may move one of these."""

WIDTHS = get_args(Width)

SAMPLES = "samples.json"

NAMES = {"c": "C", "onnx": "ONNX"}
"""What a run is exported to."""


class Report(NamedTuple):
    """What was exported."""

    folder: Path
    functions: tuple[str, ...]
    operations: int
    bytes: Mapping[str, int]  # of each file
    largest_error: float  # of a function, beside the run
    samples: int  # answers that were compared with those of the run
    by: str | None  # what they were computed by: c, numpy or onnx; None where onnxruntime is not installed
    narrow: Narrow | None = None  # what became of the weights

    def text(self) -> str:
        size = sum(self.bytes.values())
        answers = "no sample input was found, so no answer was compared"
        if self.by is None:
            answers = "the files were not run, because onnxruntime is not installed: pip install 'recurra[onnx]'"
        elif self.samples and self.narrow is None:
            what = "answer agrees" if self.samples == 1 else "answers agree"
            answers = f"{self.samples} sample {what} with the run's own (run by {RUN_BY[self.by]})"
        elif self.samples:
            answers = "this is before weights were made narrower"
        return "\n".join(
            [
                f"exported to {self.folder}: {len(self.functions)} functions ({', '.join(self.functions)}), "
                f"{self.operations:,} operations, {size / 1e6:,.1f} MB",
                f"largest difference from the run in torch: {self.largest_error:.1e}; {answers}",
                f"recurra predict {self.folder} answers without torch; {self.others}",
                *([] if self.narrow is None else self.narrow.lines()),
            ]
        )

    @property
    def others(self) -> str:
        """What programs other than recurra need of the folder."""
        if "model.c" in self.bytes:
            return f"model.c, model.h and {WEIGHTS} are all that a C program needs"
        return "the files *.onnx are all that a program with onnxruntime needs"


def export(
    run: str | Path,
    folder: str | Path,
    *,
    to: str = "c",
    trust: bool = False,
    gates: bool = False,
    weights: Width = "float32",
) -> Report:
    """Write a run's model to a folder that answers without torch; see docs/export.md. With `gates`, its program also
    has what the cells compute while they read. `weights` is float32, or bf16 or int8 where a matrix loses little by it.

    >>> import recurra, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n")
    >>> few = {"training.steps": 20, "model.hidden": 8, "data.cache": False, "data.min_count": 1}
    >>> _ = recurra.train("tagging", train=str(folder / "train.conll"), out=folder / "run", settings=few)
    >>> recurra.export(folder / "run", folder / "exported").functions
    ('scores', 'spell', 'chain0')
    >>> recurra.load(folder / "exported", by="numpy").predict(["the cat"])[0].output
    'DET NOUN'
    """
    if to not in NAMES:
        raise ConfigError(f"--to {to} is not known: a run is exported to c or onnx.")
    if weights not in WIDTHS:
        raise ConfigError(f"--weights {weights} is not known: choose {', '.join(WIDTHS[:-1])} or {WIDTHS[-1]}.")
    if to == "onnx":
        package()
        if weights != "float32":
            raise ConfigError(f"--weights {weights}: ONNX is written with weights in float32 alone. Leave it out.")
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise CheckpointError(f"{target} already exists and is not empty. Choose another folder.")
    model = load(run, trust=trust).in_torch()
    if model.others:
        raise ConfigError("an ensemble of runs cannot be exported: name one of them.")
    network, functions = functions_of(model, gates=gates)
    program, arrays, error = recorded_program(network, functions, folds=to == "c")
    asked = sample_inputs(model)
    answers: Sequence[Prediction] = model.predict([*map(asked_as, asked)]) if asked else []
    narrow = None
    if weights != "float32":
        narrow = narrowed(model.task, program, arrays, weights, [*map(asked_as, asked)], answers)
        program, arrays, answers = narrow.program, narrow.arrays, narrow.answers
    try:
        target.mkdir(parents=True, exist_ok=True)
        with committing(target) as new:
            model.task.save(new)
            (new / "config.toml").write_text(run_text(model.task.settings), "utf-8")
            (new / PROGRAM).write_text(program.to_json(), "utf-8")
            if to == "onnx":
                write_graphs(new, graphs(program, arrays))
            else:
                write_c(new, program, arrays, model.task.predictor().usual())
            expected = [
                {"input": each, "output": answer.output, "score": answer.score}
                for each, answer in zip(asked, answers, strict=True)
            ]
            (new / SAMPLES).write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", "utf-8")
            about = {"format": FORMAT, "recurra": __version__, "task": model.task.name, "to": to, "weights": weights}
            (new / LICENSE).write_text(LICENSE_TEXT, "utf-8")
            about["run"] = fingerprint(model.model)  # to which states of its streams belong
            (new / EXPORT).write_text(json.dumps(about, indent=1) + "\n", "utf-8")
            for name in ("card.md", "summary.json"):
                if (model.folder / name).is_file():
                    shutil.copy2(model.folder / name, new / name)
        by = None
        if to != "onnx" or has_runtime():
            found = runnable(target, to)
            by = found.running.name
            if to == "onnx":
                error = furthest([found.running], functions, network)
            check_samples(found, expected, SCORE_TOLERANCE if narrow is None else NARROW_TOLERANCE)
    except BaseException as failure:  # a mistake of recurra or Ctrl-C, too, leaves nothing that looks like a model
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(failure, OSError):
            raise CheckpointError(f"{target} cannot be written: {failure.strerror or failure}.") from failure
        if isinstance(failure, DataError):  # of a program that answered nothing to what its run answered
            raise not_runnable(to, str(failure)) from failure
        raise
    sizes = {path.name: path.stat().st_size for path in target.iterdir() if path.is_file()}
    operations = sum(len(function.operations) for function in program.functions.values())
    return Report(target, tuple(program.functions), operations, sizes, error, len(asked), by, narrow)


LICENSE_TEXT = """\
model.c and model.h were printed by recurra. What of them is not a weight or a size of the model is under the Apache
License 2.0 (SPDX-License-Identifier: Apache-2.0; https://www.apache.org/licenses/LICENSE-2.0), and a program that holds
them may be used as the model may.

All other files are the model: its weights, settings and vocabularies, and inputs of its data with the answers to them.
How these may be used, whoever trained it decides, and the licences of the data: card.md, where there is one, describes
both. recurra claims nothing of them.
"""

LICENCE = """\
/* Printed by recurra. What is not a weight or a size of your model is under the Apache License 2.0
   (SPDX-License-Identifier: Apache-2.0); a program that holds it may be used as your model may. */
"""


def runnable(folder: Path, to: str) -> Exported:
    """What was exported, loaded; a NotExportable where nothing here runs it."""
    try:
        return load_exported(folder, trust=True)
    except CheckpointError as error:
        raise not_runnable(to, f"what was written cannot be loaded again: {error}") from error


def not_runnable(to: str, why: str) -> NotExportable:
    """The error of a program that was written and does not run."""
    other = next(name for name in NAMES if name != to)
    return NotExportable(
        f"this model cannot be exported to {NAMES[to]}: {why} Export it to {NAMES[other]}, by --to {other}."
    )


def write_c(folder: Path, program: Program, weights: Weights, usual: Usual) -> None:
    """The program in C, and its weights."""
    write_weights(folder / WEIGHTS, program, weights)
    printed = Printed(program, usual=usual)
    (folder / "model.c").write_text(LICENCE + printed.text, "utf-8")
    (folder / "model.h").write_text(LICENCE + printed.header(), "utf-8")


def functions_of(model: Trained, *, gates: bool = False) -> tuple[nn.Module, list[Recordable]]:
    """A copy of a run's network, and all its functions that are exported."""
    network = copy.deepcopy(model.model).float().cpu().eval()
    functions = model.task.predictor().functions(network)
    return network, functions + (gates_function(model.task, network, functions[0]) if gates else [])


def recorded_program(
    network: nn.Module, functions: Sequence[Recordable], *, folds: bool
) -> tuple[Program, Weights, float]:
    """Functions of a network as one program, its weights, and how far they are from the network at most. `folds`: small
    embeddings are multiplied by what reads them, which hides from ONNX that it has an operator for a layer."""
    program, weights = recorded_functions(network, functions)
    if folds:
        program, weights = folded(program, weights)
        program = Program.from_json(program.to_json())
    return program, weights, furthest(runners(program, weights), functions, network)


def furthest(running: Sequence[Running], functions: Sequence[Recordable], network: nn.Module) -> float:
    """How far functions are from the network at most, whatever runs them."""
    return max((difference(each, one, network) for each in running for one in functions), default=0.0)


def sample_inputs(model: Trained) -> list[Any]:
    """Inputs worth asking with, of the run's own data."""
    return kept_samples(model.folder) or samples_of_data(model.task)


def say_the_same(one: str, other: str) -> bool:
    """Whether two outputs are equal, or the same numbers but for rounding.

    >>> say_the_same("0.582152,1 2", "0.582151,1 2"), say_the_same("1 2", "1 3"), say_the_same("a b", "a c")
    (True, False, False)
    """
    if one == other:
        return True
    try:
        found, right = (np.array([*map(float, text.replace(",", " ").split())]) for text in (one, other))
    except ValueError:
        return False
    return found.shape == right.shape and np.allclose(found, right, rtol=SCORE_TOLERANCE, atol=SCORE_TOLERANCE)


def check_samples(exported: Exported, expected: Sequence[Mapping[str, Any]], tolerance: float) -> None:
    """A NotExportable where an exported model answers otherwise than is expected of it."""
    answers = exported.predict([asked_as(each["input"]) for each in expected]) if expected else []
    for each, answer in zip(expected, answers, strict=True):
        score = float(each["score"])
        is_close = abs(answer.score - score) <= tolerance * max(1.0, abs(score)) or answer.score == score
        # Narrow products round what they multiply: where two answers are as good, either may be given.
        is_same = say_the_same(answer.output, each["output"]) or tolerance > SCORE_TOLERANCE
        if not is_same or not is_close:
            raise NotExportable(
                f"the exported model answers {answer.output!r:.80} (score {answer.score:.6g}) to "
                f"{each['input']!r:.80}, where the run answers {each['output']!r:.80} (score {score:.6g}): not kept."
            )
