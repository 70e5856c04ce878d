"""An exported model: loaded from its folder, it predicts and is evaluated without torch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, overload

from recurra.collector import collector_paused
from recurra.config.given import Given
from recurra.data.batches import in_order_of_length
from recurra.data.store import Encoded, Rows
from recurra.errors import CheckpointError, ConfigError, lacking
from recurra.manifest import MANIFEST, digest_of, verify
from recurra.predictors.predictor import Programmed
from recurra.programs.inputs import Running
from recurra.programs.program import Program
from recurra.tasks.task import Prediction, Task
from recurra.text.json_file import read_json
from recurra.training.answering import TOKENS, Answering
from recurra.training.loading import EXPORT, is_url, load_task, whole
from recurra.views.viewer import Asked

if TYPE_CHECKING:
    from recurra.analysis.exposure import Exposure
    from recurra.generation.generated import Manner, TextSource
    from recurra.predictors.streaming import AnyStream
    from recurra.training.trained import Trained
    from recurra.views.table import Table

FORMAT = 1
"""The number of the format in which exported folders are written."""

PROGRAM, WEIGHTS, LICENSE = "program.json", "weights.bin", "LICENSE"
FOR_PEOPLE = ("card.md", "model.c", "model.h", LICENSE)
"""Files of an exported folder that are read by people and compilers alone, and not here."""

By = Literal["auto", "c", "numpy", "onnx"]


class Exported(Answering):
    """An exported model: predict and evaluate, by its program."""

    def __init__(self, task: Task[Any, Any, Any], running: Running, folder: Path) -> None:
        self.task, self.running, self.folder = task, running, folder
        self.predictor = task.predictor()

    def __repr__(self) -> str:
        return f"<Exported {self.task.name} in {self.folder}: {self.task.described()}>"

    def answers(self, examples: Sequence[Any], *, detail: bool = False, batch_tokens: int = TOKENS) -> list[Prediction]:
        outputs = self.outputs(list(self.task.encode_all(examples)), detail=detail, tokens=batch_tokens)
        return [self._answer(example, output) for example, output in zip(examples, outputs, strict=True)]

    def outputs(self, rows: Sequence[Encoded], *, detail: bool = False, tokens: int = TOKENS) -> list[Any]:
        """What the model says of encoded examples; which of them are computed together does not change it."""
        found: list[Any] = [None] * len(rows)
        for numbers in in_order_of_length(self.task.lengths(Rows.of(rows)), tokens=tokens):
            some = [rows[number] for number in numbers]
            for number, output in zip(numbers, self.predictor.outputs(self.running, some, detail=detail), strict=True):
                found[number] = output
        return found

    def to_score(
        self,
        files: Sequence[str | Path],
        by: Callable[[Iterable[Sequence[Encoded]]], Iterator[list[Any]]] | None = None,
    ) -> tuple[list[Any], list[Any]]:
        examples = list(self.task.read(files))
        rows = list(self.task.encode_all(examples))
        if (whole := self.predictor.scored_whole(self.running, rows)) is not None:
            return examples, whole
        return examples, self.outputs(rows) if by is None else self._outputs_by(by, rows)

    def asked(self, example: Any) -> Asked:
        return Asked(Programmed(self.predictor, self.running), example, str(self.folder), exported=True)

    def apart(self) -> Self:
        return self  # a program keeps nothing of what it computes

    def with_task(self, task: Task[Any, Any, Any], given: Given) -> Self:
        return type(self)(task, self.running, self.folder)

    def preceded_by(self, file: str | Path) -> Self:
        """The same model, which reads the steps of a file before those of the series that go on with it."""
        return type(self)(self.task.preceded_by(file), self.running, self.folder)

    def writer(self, manner: Manner) -> TextSource:
        """What writes texts with this model, in some manner."""
        found = self.predictor.writer(self.running, manner)
        if found is None:
            raise ConfigError(
                f"{self.folder} cannot generate text: it is a {self.task.name} model, not a language model. Use "
                "`recurra predict` instead."
            )
        return found

    def stream(self, state: bytes | None = None) -> AnyStream:
        """What reads endless input element by element, as that of the run; `state` may be of either."""
        about = read_json(self.folder / EXPORT)
        run = about.get("run") if isinstance(about, dict) else None
        return self.predictor.stream(self.task, self.running, str(run or digest_of(self.folder / WEIGHTS)), state)

    @property
    def cuts_text(self) -> bool:
        return False

    def cut(self, pieces: Iterable[str]) -> Iterator[Any]:
        raise self.refuse("finder of tokens and sentences in raw text (--raw)")

    def predict_raw(self, pieces: Iterable[str], *, detail: bool = False) -> Iterator[Prediction]:
        return self.cut(pieces)

    def free_running(self, files: object) -> Exposure:
        """Only of a run: what it costs the model to read its own outputs."""
        raise self.refuse("measure of exposure bias (--free-running)")

    def anomalies(self, files: object) -> Table:
        """Only of a run: how improbable each observed value was."""
        raise self.refuse("anomalies (--anomalies)")

    def refuse(self, what: str) -> ConfigError:
        """The error of what an exported model does not do."""
        return ConfigError(
            f"an exported model has no {what}: name the run that was exported in place of {self.folder}."
        )


def is_exported(folder: str | os.PathLike[str]) -> bool:
    """Whether `recurra export` wrote a folder."""
    return (Path(folder) / EXPORT).is_file()


Folders: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"


@overload
def load(folder: Folders, *, device: str = "cpu", trust: bool = False, fetch: bool = False) -> Trained: ...


@overload
def load(folder: Folders, *, device: str = "cpu", trust: bool = False, fetch: bool = False, by: By) -> Exported: ...


def load(
    folder: Folders, *, device: str = "cpu", trust: bool = False, fetch: bool = False, by: By | None = None
) -> Trained | Exported:
    """Load the best model of a run; several runs, as a list or as "a,b,c", form an ensemble.

    A folder that `recurra export` wrote gives an `Exported`, which predicts and is evaluated without torch: by C where
    there is a compiler, else by NumPy, and by onnxruntime after `--to onnx`. `by` says which it must be.

    A folder that names code from outside recurra is refused, unless you trust it (`trust`), did so before or trained
    it. A URL, of a file that `recurra pack` wrote or "hf://owner/name", is refused unless you let it `fetch`.

    >>> import recurra, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n")
    >>> few = {"training.steps": 20, "model.hidden": 8, "data.cache": False, "data.min_count": 1}
    >>> _ = recurra.train("tagging", train=str(folder / "train.conll"), out=folder / "run", settings=few)
    >>> recurra.load(folder / "run").predict(["the cat"])[0].output
    'DET NOUN'
    """
    folder = _here(folder, fetch=fetch)
    if isinstance(folder, str | os.PathLike) and is_exported(folder):
        if device != "cpu":
            raise ConfigError(f"device = '{device}': an exported model answers on the CPU alone: leave it out.")
        return load_exported(Path(folder), trust=trust, by="auto" if by is None else by)
    if by is not None:
        raise ConfigError(
            f"by = '{by}' is for a folder that `recurra export` wrote, and {folder} is none: leave it out."
        )
    try:
        from recurra.training.trained import load as load_run
    except ImportError as error:
        if lacking(error) is None:
            raise
        raise CheckpointError(
            f"{folder} is no folder that `recurra export` wrote, and all else needs torch, which is not installed: "
            "name an exported folder, or pip install recurra."
        ) from error
    return load_run(folder, device=device, trust=trust)


def _here(folder: Folders, *, fetch: bool) -> Folders:
    """What is meant, with folders of this machine in place of URLs if these may be fetched."""
    given = [folder] if isinstance(folder, str | os.PathLike) else [*folder]
    for each in given:
        if is_url(each) and not fetch:
            raise ConfigError(
                f"{each} is a URL, and nothing is fetched before you ask for it: recurra.load(…, fetch=True), or once "
                f"and for good, recurra pull {each} FOLDER. Fetch what you trust alone."
            )
    if not any(map(is_url, given)):
        return folder
    from recurra.sharing.fetching import fetched

    found = [fetched(each) if isinstance(each, str) and is_url(each) else each for each in given]
    return found if len(found) > 1 else found[0]


def load_exported(folder: Path, *, trust: bool = False, by: By = "auto") -> Exported:
    """The model in a folder that `recurra export` wrote, verified first."""
    with collector_paused():
        return _loaded(folder, trust=trust, by=by)


def _loaded(folder: Path, *, trust: bool, by: By) -> Exported:
    if not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder} has no {MANIFEST}, so it cannot be verified. Restore it from a copy.")
    verify(folder, lambda name: name not in FOR_PEOPLE)
    about = read_json(folder / EXPORT)
    if not isinstance(about, dict) or type(about.get("format")) is not int:
        raise CheckpointError(f"{folder / EXPORT} does not say how the folder was written. Restore it from a copy.")
    if about["format"] > FORMAT:
        raise CheckpointError(
            f"{folder} was exported by a later recurra ({about.get('recurra')}, format {about['format']}); "
            f"this one reads format {FORMAT}. Upgrade recurra."
        )
    task = load_task(folder, trust=trust, verified=True)
    try:
        text = (folder / PROGRAM).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise CheckpointError(f"{folder / PROGRAM} cannot be read ({error}).") from error
    program = Program.from_json(text, folder / PROGRAM)
    is_onnx = about.get("to") == "onnx"
    if by != "auto" and (by == "onnx") is not is_onnx:
        raise ConfigError(
            f"by = '{by}': {folder} was exported to {'ONNX' if is_onnx else 'C'}. Leave it out, or export the run with "
            f"--to {'c' if is_onnx else 'onnx'}."
        )
    with whole(folder, type(task)):
        if is_onnx:
            from recurra.programs.in_onnx import InOnnx

            return Exported(task, InOnnx(program, folder), folder)
        return Exported(task, running(program, folder / WEIGHTS, by), folder)


def running(program: Program, weights: Path, by: By = "auto") -> Running:
    """A program with the weights of a file, compiled where that is possible."""
    from recurra.programs.weights import read_weights

    content, arrays = read_weights(weights, program)
    if by != "numpy":
        from recurra.engines.c_library import NoCompiler, compiler
        from recurra.programs.in_c import InC

        try:
            return InC(program, content)
        except NoCompiler as reason:
            if by == "c":
                raise ConfigError(f"the exported model cannot be compiled: {reason}.") from reason
            advice = "; install a C compiler (gcc or clang)" if compiler() is None else ""
            warnings.warn(
                f"recurra: {reason}, so the exported model is run by NumPy, whose answers are the same and take "
                f"several times as long{advice}.",
                RuntimeWarning,
                stacklevel=2,
            )
    from recurra.programs.in_numpy import InNumpy

    return InNumpy(program, arrays)
