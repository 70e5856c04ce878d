"""Answer a folder of Parquet shards on a Ray cluster, or on all cores of one machine.

    pip install 'recurra[data,ray]'
    python examples/predict_on_ray.py RUN SHARDS ANSWERS [COLUMN]

RUN is a run or an exported folder that every machine can read. Each shard of SHARDS is read in blocks, the texts in
COLUMN (default: text) are answered, and ANSWERS holds the rows with two columns more: prediction and score.
"""

import sys

import numpy as np
import ray

import recurra

RUN, SHARDS, ANSWERS, COLUMN = [*sys.argv[1:], "text"][:4]


class Answer:
    def __init__(self) -> None:
        self.model = recurra.load(RUN)
        self.model.settle()  # one way to compute all answers, on all machines

    def __call__(self, block: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        answers = self.model.predict([str(text) for text in block[COLUMN]])
        found = {"prediction": [answer.output for answer in answers], "score": [answer.score for answer in answers]}
        return block | {name: np.array(values) for name, values in found.items()}


ray.init(log_to_driver=False, ignore_reinit_error=True)
# Each actor takes a core. Reading needs one too: as many actors as cores wait for it for ever.
cores = int(ray.cluster_resources().get("CPU", 0))
if cores < 2:
    sys.exit(
        f"Ray has {cores} CPU here, but needs at least 2: one reads while the other answers. On one core, use recurra "
        f"predict {RUN} {SHARDS} --out {ANSWERS}; or start Ray with more: ray start --head --num-cpus 2."
    )
actors = cores - 1
ray.data.DataContext.get_current().execution_options.preserve_order = True
rows = ray.data.read_parquet(SHARDS)
rows.map_batches(Answer, batch_size=4096, compute=ray.data.ActorPoolStrategy(size=actors)).write_parquet(ANSWERS)
