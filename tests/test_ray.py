"""The program for a cluster, on a local Ray of two cores: its answers are those of one process."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recurra.cli import main

ROOT = Path(__file__).parent.parent
RUN = str(ROOT / "tests/old_runs/0.1/classification/run")

ON_TWO_CORES = """\
import runpy, sys, warnings
warnings.simplefilter("ignore")
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
assert ray.cluster_resources()["CPU"] == 2
runpy.run_path(sys.argv.pop(1), run_name="__main__")
ray.shutdown()
"""


@pytest.mark.slow
def test_ray_answers_a_folder_of_shards_as_one_process_does(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("ray.data")
    (tmp_path / "shards").mkdir()
    for shard in range(3):
        texts = [f"a {word} film {number % 7}" for number, word in enumerate(["fine", "bad", "so"] * 100)]
        table = arrow.table({"text": texts, "n": range(300)})
        parquet.write_table(table, tmp_path / "shards" / f"{shard}.parquet", row_group_size=70)
    example = str(ROOT / "examples/predict_on_ray.py")
    given = [RUN, str(tmp_path / "shards"), str(tmp_path / "on_ray")]
    done = subprocess.run(
        [sys.executable, "-c", ON_TWO_CORES, example, *given], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert main(["predict", RUN, str(tmp_path / "shards"), "--out", str(tmp_path / "here")]) == 0
    here, on_ray = (in_order(parquet.read_table(tmp_path / name).to_pydict()) for name in ("here", "on_ray"))
    assert len(here) == 900
    assert on_ray == here


def in_order(columns: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    rows = zip(columns["text"], columns["n"], columns["prediction"], columns["score"], strict=True)
    return sorted((text, n, prediction, round(score, 6)) for text, n, prediction, score in rows)
