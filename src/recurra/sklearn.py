"""Estimators for scikit-learn: runs of recurra that are fitted, cloned, searched over and put into pipelines.

>>> from recurra.sklearn import RecurrentClassifier
>>> model = RecurrentClassifier(hidden=8, steps=30).fit(["so good", "too bad", "good", "bad"], ["+", "-", "+", "-"])
>>> model.predict(["good"]).tolist(), model.classes_.tolist()
(['+'], ['+', '-'])
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.padding import exact
from recurra.runs import begin, setup_of
from recurra.training.progress import Progress, Silent
from recurra.training.trained import Trained, load

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise ImportError("recurra.sklearn needs scikit-learn: pip install 'recurra[sklearn]'.") from error

__all__ = ["RecurrentClassifier", "RecurrentForecaster", "RecurrentRegressor", "RecurrentTagger"]

TEXT, STEPS, ANSWER = "text", "steps", "answer"
"""Columns of the rows that are trained on: what is read, and what is to be answered."""

AT_ONCE = 256
"""Sequences whose probabilities are computed together."""


class _Run(BaseEstimator):
    """What the estimators share: a task, its settings as parameters, and a run in a folder of its own."""

    _task: str

    def __init__(
        self,
        *,
        cell: str | dict[str, Any] = "lstm",
        hidden: int = 64,
        layers: int = 1,
        epochs: int | None = 20,
        steps: int | None = None,
        learning_rate: float | None = None,
        validation: float = 0.0,
        device: str = "cpu",
        random_state: int | None = None,
        settings: Mapping[str, object] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.cell = cell
        self.hidden = hidden
        self.layers = layers
        self.epochs = epochs
        self.steps = steps
        self.learning_rate = learning_rate
        self.validation = validation
        self.device = device
        self.random_state = random_state
        self.settings = settings
        self.progress = progress

    def _train(self, rows: Sequence[Mapping[str, object]], more: Mapping[str, object]) -> Trained:
        """A run on these rows; what the user gives in `settings` comes last."""
        from recurra.config.given import Given
        from recurra.data.frames import named_as, write_rows

        if not 0 <= self.validation < 1:
            raise ConfigError(f"validation = {self.validation!r} must be a share of the rows, from 0 up to below 1.")
        given: dict[str, object] = {
            "model.cell": self.cell,
            "model.hidden": self.hidden,
            "model.layers": self.layers,
            "training.device": self.device,
            "data.cache": False,
            **more,
        }
        limits = {"training.steps": self.steps} if self.steps is not None else {"training.epochs": self.epochs}
        given |= {name: value for name, value in limits.items() if value is not None}
        if self.learning_rate is not None:
            given["training.learning_rate"] = self.learning_rate
        if self.random_state is not None:
            given["training.seed"] = int(np.random.RandomState(self.random_state).randint(2**31 - 1))
        if self.validation:
            given["data.valid"] = f"{100 * self.validation:g}%"
        folder = self._new_folder()
        path = write_rows(rows, folder / "rows", "X")
        table = Given.of(self._task).keywords({**given, "data.train": str(path)}, "parameters")
        with named_as({str(path): "X"}):
            this = setup_of(table.keywords(self.settings or {}, "settings"))
            begin(this, folder / "run", self.progress or Silent())
        self.model_ = load(folder / "run", device=self.device, trust=True)
        return self.model_

    def _new_folder(self) -> Path:
        """A folder for a run, which is removed with this estimator."""
        folder = tempfile.mkdtemp(prefix="recurra-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, and the files of the run in place of its network."""
        state = dict(super().__getstate__())
        if (model := state.pop("model_", None)) is not None:
            folder = model.folder
            files = [path for path in folder.rglob("*") if path.is_file() and "last" not in path.parts]
            state["_files"] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            folder = self._new_folder() / "run"
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            self.model_ = load(folder, device=self.device, trust=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.three_d_array = True
        tags.non_deterministic = False
        return tags

    # Inputs: texts, or steps of numbers

    def _read(self, X: Any, *, reset: bool) -> list[dict[str, object]]:
        """Each input as a row: a text, or a list of steps with the numbers of each."""
        values = _column(X)
        if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1 and len(values):
            values = list(values)
        if isinstance(values, list) and values and all(isinstance(each, str) for each in values):
            return [{TEXT: str(each)} for each in values]
        if isinstance(values, np.ndarray) and values.dtype.kind in "UT" and values.ndim == 1:
            return [{TEXT: str(each)} for each in values]
        if isinstance(values, list) and values and all(np.ndim(each) == 2 for each in values):
            return [{STEPS: _numbers(each)} for each in values]  # sequences of different lengths
        array = validate_data(self, values, reset=reset, allow_nd=True, dtype=np.float64)
        if array.ndim > 3:
            raise ValueError(
                f"X has {array.ndim} dimensions, but must be texts, (rows, steps) or (rows, steps, values)."
            )
        array = array[..., None] if array.ndim == 2 else array  # a number at each step
        return [{STEPS: each.tolist()} for each in array]

    def _reads(self, rows: Sequence[Mapping[str, object]]) -> dict[str, object]:
        """Settings of data for rows of this kind."""
        return {"data.text": TEXT} if TEXT in rows[0] else {"data.frames": STEPS}

    def _answers(self, X: Any, *, detail: bool = False) -> Any:
        check_is_fitted(self)
        return self.model_.predict(self._read(X, reset=False), detail=detail)


class RecurrentClassifier(ClassifierMixin, _Run):
    """Gives each sequence a class.

    X: a list of texts, an array (rows, steps) or (rows, steps, values), or a list of arrays (steps, values).
    """

    _task = "classification"

    def fit(self, X: Any, y: Any) -> Self:
        """Train a new run."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        rows = self._read(X, reset=True)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        _check_as_many(rows, y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has only one class, {self.classes_.tolist()[0]!r}: {type(self).__name__} needs two or more."
            )
        said = [{**row, ANSWER: f"class {number}"} for row, number in zip(rows, numbers, strict=True)]
        self._train(said, {**self._reads(rows), "data.label": ANSWER})
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`."""
        names = [f"class {number}" for number in range(len(getattr(self, "classes_", ())))]
        answers = self._answers(X, detail=True)
        return np.array([[each.detail["probabilities"].get(name, 0.0) for name in names] for each in answers], float)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on tables, whose columns are no steps
        return tags


class RecurrentRegressor(RegressorMixin, _Run):
    """Gives each sequence a number, or several; X as for RecurrentClassifier."""

    _task = "classification"

    def fit(self, X: Any, y: Any) -> Self:
        """Train a new run."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        rows = self._read(X, reset=True)
        wanted = np.asarray(y, np.float64)
        if wanted.ndim == 2 and wanted.shape[1] == 1:
            wanted = column_or_1d(wanted, warn=True)
        if not np.isfinite(wanted).all():
            raise ValueError("Input y contains NaN or infinity.")
        _check_as_many(rows, wanted)
        self._is_flat = wanted.ndim == 1
        names = [f"{ANSWER}{number}" for number in range(1 if self._is_flat else wanted.shape[1])]
        columns = wanted.reshape(len(rows), -1).tolist()
        said = [{**row, **dict(zip(names, each, strict=True))} for row, each in zip(rows, columns, strict=True)]
        self._train(said, {**self._reads(rows), "data.targets": names})
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """A number for each sequence."""
        found = np.array([each.detail["values"] for each in self._answers(X)], np.float64)
        return found[:, 0] if self._is_flat else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = True
        return tags


class RecurrentTagger(_Run):
    """Gives each element of a sequence a tag. X: lists of words, or arrays (steps, values); y: lists of tags."""

    _task = "tagging"

    def fit(self, X: Sequence[Any], y: Sequence[Sequence[str]]) -> Self:
        """Train a new run."""
        rows = self._sequences(X)
        _check_as_many(rows, y)
        said = []
        for number, (row, tags) in enumerate(zip(rows, y, strict=True)):
            if len(tags) != len(next(iter(row.values()))):
                raise DataError(f"y[{number}] has {len(tags)} tags for {len(next(iter(row.values())))} elements.")
            said.append({**row, "tags": [str(tag) for tag in tags]})
        self.classes_ = np.unique([tag for tags in y for tag in tags])
        reads = {"data.frames": STEPS} if STEPS in rows[0] else {}
        self._train(said, {**reads, "data.tags": ["tags"]})
        return self

    def predict(self, X: Sequence[Any]) -> list[list[str]]:
        """The tags of each sequence."""
        check_is_fitted(self)
        return [list(each.detail["tags"]) for each in self.model_.predict(self._sequences(X))]

    def predict_proba(self, X: Sequence[Any]) -> list[NDArray[np.float64]]:
        """Of each sequence, the probability of each tag, in the order of `classes_`, at each element: (steps, tags)."""
        check_is_fitted(self)
        inputs = [next(iter(row.values())) for row in self._sequences(X)]
        network: Any = self.model_.model
        task: Any = self.model_.task
        names, found = task.tags[0].tokens, list[NDArray[np.float64]]()
        order = [names.index(str(tag)) for tag in self.classes_]
        for first in range(0, len(inputs), AT_ONCE):
            some = inputs[first : first + AT_ONCE]
            with torch.no_grad():
                features = network.features(self.model_.batch(some))
                shares = exact(network.probabilities(features)[0]).cpu().numpy()
            found += [each[: len(one), order] for each, one in zip(shares, some, strict=True)]
        return found

    def score(self, X: Sequence[Any], y: Sequence[Sequence[str]]) -> float:
        """The share of elements whose tag is right."""
        pairs = [
            (str(tag), said)
            for tags, given in zip(y, self.predict(X), strict=True)
            for tag, said in zip(tags, given, strict=True)
        ]
        return float(np.mean([right == said for right, said in pairs]))

    def _sequences(self, X: Sequence[Any]) -> list[dict[str, list[Any]]]:
        found: list[dict[str, list[Any]]] = []
        for each in X:
            if isinstance(each, str):
                raise DataError(f"X holds the text {each[:40]!r}, not a list of words: give text.split().")
            is_words = all(isinstance(word, str) for word in each)
            found.append({"words": [str(word) for word in each]} if is_words else {STEPS: _numbers(each)})
        return found


class RecurrentForecaster(_Run):
    """Forecasts the next steps of a series. X: an array (steps,) or (steps, columns).

    `score` compares the forecast of the steps after training with what came then, as TimeSeriesSplit parts them.
    """

    _task = "forecasting"

    def __init__(
        self,
        *,
        horizon: int = 12,
        cell: str | dict[str, Any] = "lstm",
        hidden: int = 64,
        layers: int = 1,
        epochs: int | None = 20,
        steps: int | None = None,
        learning_rate: float | None = None,
        validation: float = 0.0,
        device: str = "cpu",
        random_state: int | None = None,
        settings: Mapping[str, object] | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(
            cell=cell,
            hidden=hidden,
            layers=layers,
            epochs=epochs,
            steps=steps,
            learning_rate=learning_rate,
            validation=validation,
            device=device,
            random_state=random_state,
            settings=settings,
            progress=progress,
        )
        self.horizon = horizon

    def fit(self, X: Any, y: None = None) -> Self:
        """Train a new run on a series."""
        values = self._series(X)
        self._is_flat, self._past = np.ndim(_column(X)) == 1, values
        names = [f"value{number}" for number in range(values.shape[1])]
        rows = [dict(zip(names, step, strict=True)) for step in values.tolist()]
        self._train(rows, {"data.values": names, "decoding.horizon": self.horizon})
        return self

    def predict(self, X: Any = None) -> NDArray[np.float64]:
        """The `horizon` steps after a series; by default after that of training."""
        return self._ahead(X, None)

    def predict_interval(self, X: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of the intervals of these steps, which hold 90 % of what comes if the model is right."""
        return self._ahead(X, None, "low"), self._ahead(X, None, "high")

    def score(self, X: Any, y: None = None) -> float:
        """Minus the mean absolute error of the forecast of X, which are the steps after those of training."""
        actual = self._series(X)
        return -float(np.abs(self._ahead(None, len(actual)).reshape(actual.shape) - actual).mean())

    def _ahead(self, X: Any, horizon: int | None, which: str = "values") -> NDArray[np.float64]:
        check_is_fitted(self)
        model = self.model_ if horizon is None else self.model_.with_settings({"decoding.horizon": horizon})
        past = self._past if X is None else self._series(X)
        [answer] = model.predict([past.tolist()])
        found = np.array(answer.detail[which], np.float64)
        return found[:, 0] if self._is_flat else found

    def _series(self, X: Any) -> NDArray[np.float64]:
        values = np.asarray(_column(X), np.float64)
        if values.ndim not in (1, 2) or not values.size:
            raise ValueError(f"X has the shape {values.shape}, but a series is (steps,) or (steps, columns).")
        if not np.isfinite(values).all():
            raise ValueError("Input X contains NaN or infinity.")
        return values.reshape(len(values), -1)


def _column(X: Any) -> Any:
    """A frame of one column of texts as that column; a column as an array; all else as it is."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1 and not isinstance(X, np.ndarray):
        values = np.asarray(X)[:, 0]
        return values if any(isinstance(each, str) for each in values[:1]) else X
    return np.asarray(X) if shape is not None and len(shape) == 1 else X


def _numbers(steps: Any) -> list[list[float]]:
    """One sequence as its steps; a step of one number may stand without a list."""
    array = np.asarray(steps, np.float64)
    if not np.isfinite(array).all():
        raise ValueError("Input X contains NaN or infinity.")
    found: list[list[float]] = (array[:, None] if array.ndim == 1 else array).tolist()
    return found


def _check_as_many(rows: Sequence[object], y: Any) -> None:
    if len(rows) != len(y):
        raise ValueError(f"X has {len(rows)} rows, but y has {len(y)}.")
