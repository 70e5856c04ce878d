"""The program for a cluster, on a local Ray of two cores: its answers are those of one process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recurra.cli import main

ROOT = Path(__file__).parent.parent
RUN = str(ROOT / "tests/old_runs/0.1/classification/run")

ON_SOME_CORES = """\
import runpy, sys, warnings
warnings.simplefilter("ignore")
import ray
cores = int(sys.argv.pop(1))
ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False)
assert ray.cluster_resources()["CPU"] == cores
runpy.run_path(sys.argv.pop(1), run_name="__main__")
ray.shutdown()
"""


def on_cores(cores: int, *given: str) -> subprocess.CompletedProcess[str]:
    example = str(ROOT / "examples/predict_on_ray.py")
    arguments = [sys.executable, "-c", ON_SOME_CORES, str(cores), example, *given]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=500)


@pytest.mark.slow
def test_ray_answers_a_folder_of_shards_as_one_process_does(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("ray.data")
    (tmp_path / "shards").mkdir()
    for shard in range(3):
        texts = [f"a {word} film {number % 7}" for number, word in enumerate(["fine", "bad", "so"] * 100)]
        table = arrow.table({"text": texts, "n": range(300 * shard, 300 * shard + 300)})
        parquet.write_table(table, tmp_path / "shards" / f"{shard}.parquet", row_group_size=70)
    done = on_cores(2, RUN, str(tmp_path / "shards"), str(tmp_path / "on_ray"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert main(["predict", RUN, str(tmp_path / "shards"), "--out", str(tmp_path / "here")]) == 0
    here, on_ray = (rows_of(parquet.read_table(tmp_path / name).to_pydict()) for name in ("here", "on_ray"))
    assert [n for _, n, _, _ in here] == list(range(900))
    assert on_ray == here  # in this order


@pytest.mark.slow
def test_one_core_is_refused_in_words(tmp_path: Path) -> None:
    pytest.importorskip("ray.data")
    done = on_cores(1, RUN, str(tmp_path), str(tmp_path / "answers"))
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith(
        "Ray has 1 CPU here, but needs at least 2: one reads while the other answers. On one core, use"
    )
    assert f"recurra predict {RUN} {tmp_path} --out {tmp_path / 'answers'}; or start Ray with more: ray start" in said


def rows_of(columns: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    rows = zip(columns["text"], columns["n"], columns["prediction"], columns["score"], strict=True)
    return [(text, n, prediction, round(score, 6)) for text, n, prediction, score in rows]
