"""Every task on a GPU: it is trained there, and answers and scores as it does on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from recurra.cli import main
from tests.tasks.contracts import CASES, SMALL, Case, lines

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

STORIES = CASES["question_answering"]
EVERY = {
    **CASES,
    "stories by words": STORIES._replace(settings=["model.sentence=place", "model.hops=2", "model.memories=3"]),
    "stories by words of any place": STORIES._replace(settings=["model.sentence=bag", "model.noise=0"]),
}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0, arguments
    return capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:ctc_loss_backward_gpu")  # of the task from outside, which is not told so
@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY)
def test_a_task_is_trained_on_a_gpu_and_answers_there_as_on_the_cpu(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, asked, folder = tmp_path / case.file, tmp_path / "asked.txt", tmp_path / "run"
    data.write_text(case.content, "utf-8")
    asked.write_text(lines(*case.lines), "utf-8")
    on_gpu = [each.replace("device=cpu", "device=cuda") for each in (*SMALL, *case.settings)]
    settings = [each for each in on_gpu if not each.startswith("model.engine")]
    given = ["--train", str(data), "--valid", str(data), "--quiet", "--out", str(folder)]
    told(capsys, "train", case.task, *given, *(word for each in settings for word in ("--set", each)))
    scores, answers = [], []
    for device in ("cuda", "cpu"):
        said = told(capsys, "evaluate", str(folder), str(data), "--json", "--device", device)
        found = json.loads(said).items()
        scores.append({name: value for name, value in found if isinstance(value, float) and name != "seconds"})
        answers.append(told(capsys, "predict", str(folder), str(asked), "--device", device))
    for one, other in zip(answers[0].split(), answers[1].split(), strict=True):
        assert one == other or float(one) == pytest.approx(float(other), rel=1e-3, abs=1e-3)
    assert scores[0]
    assert scores[0] == pytest.approx(scores[1], rel=1e-3, abs=1e-3)
