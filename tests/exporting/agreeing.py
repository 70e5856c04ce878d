"""A model of random weights: its program, as it is exported, computes what torch does and answers the same.

C and NumPy run the program with its small embeddings folded, as `--to c` writes it; onnxruntime runs it as recorded, as
`--to onnx` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.exporting.folder import say_the_same
from recurra.exporting.joining import difference, recorded_functions
from recurra.models.seq2seq import SequenceToSequence
from recurra.programs.folding import folded
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy
from recurra.programs.inputs import Running
from recurra.programs.onnx_file import has_runtime
from recurra.programs.program import Program
from recurra.programs.weights import weights_content
from recurra.runs import setup
from recurra.tasks.task import Prediction
from recurra.training.evaluation import outputs_of

Weights = Mapping[str, NDArray[Any]]


def built(file: Path, task: str, asked: Mapping[str, Any], seed: int, *, times: float) -> tuple[Any, torch.nn.Module]:
    """A task and its untrained model, whose weights are `times` as large as training starts from."""
    this = setup(task, given={"train": [str(file)]}, overrides={**asked, "data.cache": False})
    kind = this.kind.prepared(this.kind.resolved(this.settings))
    kind.check()
    torch.manual_seed(seed)
    model = kind.build().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(times)
    return kind, model


def assert_agrees(
    kind: Any,
    model: torch.nn.Module,
    examples: Sequence[Any],
    *,
    by: Sequence[str],
    folder: Path | None = None,
    tolerance: float = 1e-5,
) -> list[Running]:
    """What ran the program: numpy, c or onnx; files of ONNX lie in `folder`."""
    predictor = kind.predictor()
    functions = predictor.functions(model)
    recorded, arrays = recorded_functions(model, functions)
    program, weights = folded(recorded, arrays)
    program = Program.from_json(program.to_json())
    rows = list(kind.encode_all(examples))
    right = answered(kind, examples, lambda: outputs_of(kind, model, rows))
    ran: list[Running] = []
    for name in by:
        if name == "c":
            ran.append(InC(program, weights_content(program, weights)))
        elif name == "onnx":
            assert folder is not None, "files of ONNX have a folder"
            ran += in_onnx(recorded, arrays, folder)
        else:
            ran.append(InNumpy(program, weights))
    for running in ran:
        for function in functions:
            difference(running, function, model)  # raises what is off by more than 1e-5
        found = answered(kind, examples, partial(predictor.outputs, running, rows))
        if isinstance(right, str) or isinstance(found, str):
            assert found == right, running.name
            continue
        if kind.name != "language_model":  # whose output is its score, rounded
            for example, one, other in zip(examples, found, right, strict=True):
                log_p = log_p_by_torch(kind, model, example, one)
                if log_p is not None:
                    assert one.detail["log_probability"] == pytest.approx(log_p, rel=tolerance, abs=tolerance), running
                # Roundings choose between texts that are as good: scores are compared below.
                is_same = say_the_same(one.output, other.output) or log_p is not None
                assert is_same, (running.name, one.output, other.output)
        scores = [each.score for each in right]
        assert [each.score for each in found] == pytest.approx(scores, rel=tolerance, abs=tolerance), running.name
    return ran


def answered(kind: Any, examples: Sequence[Any], outputs: Callable[[], Sequence[Any]]) -> list[Prediction] | str:
    """What is answered; or what is said where the rules of a search leave nothing to choose."""
    try:
        return [kind.answer(each, output) for each, output in zip(examples, outputs(), strict=True)]
    except ConfigError as error:
        return str(error)


def log_p_by_torch(kind: Any, model: torch.nn.Module, example: Any, found: Prediction) -> float | None:
    """log p of a text that was found, by torch, which reads all of it at once; None where tokens are not in the text.

    By it torch itself says whether another text than its own is as good: an encoder of embeddings alone, say, cannot
    tell two places that hold the same word.
    """
    if not isinstance(model, SequenceToSequence) or "log_probability" not in found.detail:
        return None
    if not kind.names_places and kind.texts.target_tokens(found.output)[:-1] != found.detail["tokens"]:
        return None
    row = kind.encode(example._replace(target=found.output))
    with torch.no_grad():
        each = model.token_log_likelihoods(kind.batch([row]))
    return float(each[:-1].sum() if "cut_off" in found.detail else each.sum())


def in_onnx(program: Program, weights: Weights, folder: Path) -> list[Running]:
    """The program by onnxruntime, where that is installed."""
    try:
        import onnx  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError:
        return []
    if not has_runtime():
        return []
    from recurra.programs.in_onnx import InOnnx
    from recurra.programs.onnx_file import write_graphs
    from recurra.programs.onnx_functions import graphs

    folder.mkdir(exist_ok=True)
    write_graphs(folder, graphs(program, weights))
    return [InOnnx(program, folder)]
