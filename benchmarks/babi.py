"""bAbI: the test error of end-to-end memory networks, task by task, beside the paper's.

    python benchmarks/babi.py --device cuda                              # 1k, all 20 tasks in one model; ten seeds
    python benchmarks/babi.py --sets 10k --each --size 20 --device cuda  # 10k, a model for each task; ten seeds each
    python benchmarks/babi.py --tasks 1,6 --seeds 2 --epochs 5           # a look at how long it takes

Data are read from --data ($RECURRA_DATA/babi, ../shared/data/babi): en/ and en-10k/, which has no task 3.

As in the paper (Sukhbaatar et al. 2015): 3 hops, d = 50 (20 with a model for each task), 50 memories, or as many as the
longest story needs, temporal encoding, adjacent tying, up to 10 % of empty memories, weights from N(0, 0.1²), SGD over
batches of 32 with the summed loss, gradients of norm 40 at most; a linear start at learning rate 0.005, then 60 epochs
at 0.01, halved every 15. Of ten seeds, the one with the lowest training error is scored on test. As in the authors'
program: the softmax is over vacant places too, position encoding is model.sentence = "place", the linear start has 30
epochs. Different: the answer is one of the answers of training, not any word; empty memories are drawn once an epoch.

All seeds, and the models of several tasks, are trained as one model with a leading dimension; on a GPU each update is
one CUDA graph. What is scored is the toolkit's own network, `recurra.models.memory_network`, with the weights of the
chosen seed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1] / "src")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn import functional  # noqa: E402

from recurra.attention.hops import with_empty  # noqa: E402
from recurra.config import QuestionAnsweringModel  # noqa: E402
from recurra.data.formats.babi import Babi  # noqa: E402
from recurra.models.memory_network import MemoryNetwork, batched, word_weights  # noqa: E402
from recurra.reading.stories import words_of  # noqa: E402

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "babi"

PAPER = {
    1: 0.0, 2: 11.4, 3: 21.9, 4: 13.4, 5: 14.4, 6: 2.8, 7: 18.3, 8: 9.3, 9: 1.9, 10: 6.5,
    11: 0.3, 12: 0.1, 13: 0.2, 14: 6.9, 15: 0.0, 16: 2.7, 17: 40.4, 18: 9.4, 19: 88.0, 20: 0.0,
}  # fmt: skip
"""Errors in % of the joint model with 1,000 questions a task."""

GOALS = {"1k": 12.4, "10k": 6.6}

HOPS, MEMORIES, NOISE, SPREAD, CLIP, HALVED = 3, 50, 0.1, 0.1, 40.0, 4


class Questions(NamedTuple):
    """Questions as numbers of sentences: R of them."""

    sentences: Tensor  # (R, MEMORIES), the newest first, 0: none
    length: Tensor  # (R,), sentences
    question: Tensor  # (R,)
    answer: Tensor  # (R,), of the answers in training; -1: none of them
    task: Tensor  # (R,)

    def to(self, device: torch.device) -> Questions:
        return Questions(*(each.to(device) for each in self))

    def chosen(self, rows: Tensor) -> Questions:
        return Questions(*(each[rows] for each in self))


class Known(NamedTuple):
    """All there is to read: words, answers and different sentences."""

    words: list[str]
    answers: list[str]
    sentences: list[tuple[int, ...]]  # the first has no word


def files_of(folder: Path, part: str) -> dict[int, Path]:
    """The file of each task."""
    found = {int(path.name[2:].split("_")[0]): path for path in folder.glob(f"qa*_{part}.txt*")}
    return dict(sorted(found.items()))


def read(train: dict[int, Path], test: dict[int, Path]) -> tuple[Known, Questions, Questions]:
    """The questions of both parts; words and answers are those of training."""
    rows = {
        part: [(task, row.values) for task, path in files.items() for row in Babi().read(path)]
        for part, files in (("train", train), ("test", test))
    }
    counts, answers = Counter[str](), Counter[str]()
    for _, values in rows["train"]:
        answers[str(values["answer"])] += 1
        for sentence in (*list_of(values["context"]), str(values["question"])):
            counts.update(words_of(sentence))
    words = ["<unk>", *sorted({*counts, *answers})]
    number = {word: place for place, word in enumerate(words)}
    known: dict[tuple[int, ...], int] = {(): 0}
    ids: dict[str, int] = {}

    def sentence_id(sentence: str) -> int:
        if sentence not in ids:
            cut = tuple(number.get(word, 0) for word in words_of(sentence))
            ids[sentence] = known.setdefault(cut, len(known))
        return ids[sentence]

    classes = {answer: place for place, answer in enumerate(sorted(answers))}

    def questions(part: str) -> Questions:
        table = np.zeros((len(rows[part]), MEMORIES), np.int64)
        count, asked, answer, task = (np.zeros(len(table), np.int64) for _ in range(4))
        for row, (which, values) in enumerate(rows[part]):
            newest = [sentence_id(each) for each in list_of(values["context"])[-MEMORIES:]][::-1]
            table[row, : len(newest)] = newest
            count[row], asked[row], task[row] = len(newest), sentence_id(str(values["question"])), which
            answer[row] = classes.get(str(values["answer"]), -1)
        return Questions(*map(torch.from_numpy, (table, count, asked, answer, task)))

    train_rows, test_rows = questions("train"), questions("test")
    return Known(words, list(classes), list(known)), train_rows, test_rows


def list_of(value: object) -> list[str]:
    assert isinstance(value, list)
    return value


class World(NamedTuple):
    """What one model is trained and tested on."""

    known: Known
    train: Questions
    test: Questions


def model_of(world: World, options: argparse.Namespace) -> QuestionAnsweringModel:
    """The network, as the toolkit has it."""
    longest = max(map(len, world.known.sentences)) + 1  # one more: the authors' program counts the time as a word
    most = int(world.train.length.max())
    most = min(MEMORIES, most + ceil(NOISE * most))  # as the longest story needs, with empty memories
    return QuestionAnsweringModel(
        hidden=options.size, hops=HOPS, memories=most, noise=NOISE, vacant=not options.no_vacant,
        sentence=options.sentence, longest=longest,
    )  # fmt: skip


def stacked(parts: Sequence[Questions]) -> Questions:
    """The questions of all worlds, (W, R, …); every world has as many."""
    return Questions(*(torch.stack(each) for each in zip(*parts, strict=True)))


class Members:
    """M = W · S networks at once, S of each world: weights (M, K + 1, …) of MemoryNetwork with adjacent tying.

    A sentence with the position encoding α_j + k β_j is Σ_j α_j E x_j + k ∘ Σ_j β_j E x_j: a product of the rows
    [Σ α_j x_j, Σ β_j x_j], the same in every update, with [E; E ∘ k]. So all sentences of a world are one product.
    """

    def __init__(self, worlds: Sequence[World], options: argparse.Namespace) -> None:
        self.worlds, self.device, self.hidden = worlds, torch.device(options.device), options.size
        self.settings = [model_of(world, options) for world in worlds]
        self.seeds = [*range(1, options.seeds + 1)] * len(worlds)
        words = max(len(each.known.words) for each in worlds)
        most = max(len(each.known.sentences) for each in worlds)
        longest = max(len(each) for world in worlds for each in world.known.sentences)
        rows = torch.zeros(len(worlds), 2, most, words)
        answers = torch.zeros(len(worlds), max(len(each.known.answers) for each in worlds), dtype=torch.long)
        is_answer = torch.zeros(answers.shape, dtype=torch.bool)
        for number, world in enumerate(worlds):
            ids = torch.zeros(len(world.known.sentences), longest, dtype=torch.long)
            widths = torch.tensor([len(each) for each in world.known.sentences])
            for row, sentence in enumerate(world.known.sentences):
                ids[row, : len(sentence)] = torch.tensor(sentence, dtype=torch.long)
            for half, weights in enumerate(word_weights(self.settings[number], widths, longest)):
                rows[number, half, : len(ids)].scatter_add_(1, ids, weights)
            place = {word: where for where, word in enumerate(world.known.words)}
            answers[number, : len(world.known.answers)] = torch.tensor([place[each] for each in world.known.answers])
            is_answer[number, : len(world.known.answers)] = True
        self.rows = torch.cat([rows[:, 0], rows[:, 1]], 2).to(self.device)  # (W, U, 2V)
        tables, times = [], []
        for seed in self.seeds:
            torch.manual_seed(seed)
            tables.append(torch.randn(HOPS + 1, words, self.hidden) * SPREAD)
            times.append(torch.randn(HOPS + 1, MEMORIES + 1, self.hidden) * SPREAD)
        self.tables = torch.stack(tables).to(self.device).requires_grad_()
        self.times = torch.stack(times).to(self.device).requires_grad_()
        self.is_linear = False
        places = torch.tensor([each.memories for each in self.settings], device=self.device)
        self.memories = places.repeat_interleave(options.seeds)[:, None]
        self.units = torch.arange(1, self.hidden + 1, device=self.device, dtype=torch.float32)
        self.world = torch.arange(len(worlds), device=self.device).repeat_interleave(options.seeds)
        # all_sentences() has the rows (W, U, S): where the first sentence of each member is.
        within = torch.arange(options.seeds, device=self.device).repeat(len(worlds))
        self.first = (self.world * most * options.seeds + within)[:, None]
        self.answers = answers.to(self.device)[self.world][..., None].expand(-1, -1, self.hidden)
        self.no_answer = ~is_answer.to(self.device)[self.world][:, None]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.seeds)

    @property
    def parameters(self) -> list[Tensor]:
        return [self.tables, self.times]

    def all_sentences(self) -> Tensor:
        """(W · U · S, (K + 1) d): every sentence by every table of every member."""
        both = torch.cat([self.tables, self.tables * self.units], 2)  # (M, K + 1, 2V, d)
        beside = both.unflatten(0, (len(self.worlds), -1)).permute(0, 3, 1, 2, 4).flatten(2)  # (W, 2V, S (K + 1) d)
        return (self.rows @ beside).view(-1, (HOPS + 1) * self.hidden)

    def scores(self, asked: Questions, vectors: Tensor | None = None) -> Tensor:
        """(M, B, L): the scores of the answers; all of `asked` is (M, B, …)."""
        vectors = self.all_sentences() if vectors is None else vectors
        members, rows, places = asked.sentences.shape
        step = self.count // len(self.worlds)
        length = torch.minimum(asked.length, self.memories)[..., None]
        place = torch.arange(places, device=self.device)
        # The last place stands for all that are vacant: its vector is 0, its score the logarithm of how many they are.
        vacant = (self.memories[..., None] - length).log() if self.settings[0].vacant else float("-inf")
        bias = torch.where(place < length, 0.0, torch.where(place == places - 1, vacant, float("-inf")))
        found = vectors.index_select(0, (asked.sentences * step + self.first[..., None]).flatten())
        found = found.view(members, rows, places, HOPS + 1, self.hidden)
        found = (found + self.times.transpose(1, 2)[:, None, :places]) * (place < length)[..., None, None]
        memories = found.unbind(3)
        u = vectors.index_select(0, (asked.question * step + self.first).flatten())
        u = u.view(members, rows, HOPS + 1, self.hidden)[:, :, 0]
        for k in range(HOPS):
            p = (memories[k] @ u[..., None]).squeeze(-1)
            p = p if self.is_linear else (p + bias).softmax(-1)
            u = u + (p[..., None, :] @ memories[k + 1]).squeeze(-2)
        scores = u @ self.tables[:, -1].gather(1, self.answers).transpose(1, 2)
        return scores.masked_fill(self.no_answer, torch.finfo(scores.dtype).min)

    @torch.no_grad()
    def measured(self, asked: Questions) -> tuple[Tensor, Tensor]:
        """The mean loss (M,), and which questions of its world each member answered right, (M, R)."""
        losses, right, vectors = [], [], self.all_sentences()
        asked = asked.to(self.device)
        for rows in torch.arange(asked.answer.shape[1], device=self.device).split(max(20, 20_000 // self.count)):
            some = Questions(*(each[:, rows][self.world] for each in asked))
            some = some._replace(sentences=functional.pad(some.sentences, (0, 1)))
            scores = self.scores(some, vectors)
            given = functional.cross_entropy(scores.transpose(1, 2), some.answer, ignore_index=-1, reduction="none")
            losses.append(given.sum(1))
            right.append(scores.argmax(-1) == some.answer)
        return torch.stack(losses).sum(0) / asked.answer.shape[1], torch.cat(right, 1)

    def member(self, which: int) -> MemoryNetwork:
        """One of them as a network of the toolkit."""
        number = int(self.world[which])
        known = self.worlds[number].known
        place = {word: number for number, word in enumerate(known.words)}
        network = MemoryNetwork(self.settings[number], len(known.words), [place[answer] for answer in known.answers])
        state = {
            "tables": self.tables[which, :, : len(known.words)].detach().cpu(),
            "times": self.times[which, :, : self.settings[number].memories].detach().cpu(),
            "is_linear": torch.tensor(self.is_linear),
        }
        network.load_state_dict(state)
        return network.eval()


class Updates:
    """SGD of all members: gradients of the summed loss, clipped by member. On a GPU, one CUDA graph an update."""

    def __init__(self, members: Members, train: Questions, rows: int, *, graph: bool) -> None:
        device = members.device
        self.members, self.rows = members, rows
        most = int(train.length.max())
        self.size, self.places = train.answer.shape[1], min(MEMORIES, most + ceil(most * NOISE))
        self.clean = train.sentences[..., :most].to(device)
        self.length = train.length.to(device)
        # What the updates read, (W · R, …): sentences and empty memories, how many, the question and its answer.
        self.sentences = torch.zeros(*self.length.shape, self.places + 1, dtype=torch.long, device=device).flatten(0, 1)
        self.present = self.length.clone().flatten()
        self.question, self.answer = train.question.to(device).flatten(), train.answer.to(device).flatten()
        self.rates = torch.zeros(members.count, device=device)
        self.order = torch.zeros(members.count, self.size, dtype=torch.long, device=device)
        self.number = torch.zeros((), dtype=torch.long, device=device)
        self.losses = torch.zeros(members.count, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.is_recorded = graph and device.type == "cuda"

    def update(self) -> None:
        """One batch of each member, in its own order."""
        at = self.number * self.rows + torch.arange(self.rows, device=self.rates.device)
        which = self.order.index_select(1, at)
        answer = self.answer[which]
        asked = Questions(self.sentences[which], self.present[which], self.question[which], answer, answer)
        scores = self.members.scores(asked).transpose(1, 2)
        losses = functional.cross_entropy(scores, answer, ignore_index=-1, reduction="none").sum(1)
        gradients = torch.autograd.grad(losses.sum(), self.members.parameters)
        norms = sum(each.flatten(1).square().sum(1) for each in gradients).sqrt()  # type: ignore[union-attr]
        factors = self.rates * (CLIP / norms.clamp(min=1e-9)).clamp(max=1.0)
        with torch.no_grad():
            for parameter, gradient in zip(self.members.parameters, gradients, strict=True):
                parameter -= factors[:, None, None, None] * gradient
            self.losses += losses
            self.number += 1

    def record(self) -> None:
        """Record an update, as it is now, as a CUDA graph."""
        if not self.is_recorded:
            return
        self.number.zero_()
        before = [each.detach().clone() for each in self.members.parameters]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.update()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.update()
        with torch.no_grad():
            for parameter, old in zip(self.members.parameters, before, strict=True):
                parameter.copy_(old)

    def epoch(self) -> Tensor:
        """The mean loss of each member over an epoch."""
        for row, world in enumerate(self.members.world.tolist()):
            torch.randperm(self.size, out=self.order[row])
            self.order[row] += world * self.size
        # Empty memories are drawn once an epoch, for all seeds alike: a sort in every update would take half its time.
        found = with_empty(
            self.length, self.clean.shape[2], NOISE, self.members.memories[:: self.members.count // len(self.length)]
        )
        which = found.sentence[..., : self.places]
        self.sentences[:, :-1] = (self.clean.gather(2, which.clamp(min=0)) * (which >= 0)).flatten(0, 1)
        self.present.copy_(found.present.flatten())
        self.number.zero_()
        self.losses.zero_()
        updates = self.size // self.rows
        for _ in range(updates):
            if self.graph is not None:
                self.graph.replay()
            else:
                self.update()
        return self.losses / (updates * self.rows)


class Course(NamedTuple):
    """Where a training stands after an epoch."""

    epoch: int
    loss: Tensor  # (M,)
    valid: Tensor  # (M,), the loss on the held-out tenth
    is_linear: bool  # whether the hops were linear
    seconds: float


def training(members: Members, options: argparse.Namespace) -> Iterator[Course]:
    """A linear start, then epochs with a softmax, whose learning rate is halved four times."""
    train = stacked([each.train for each in members.worlds])
    size = train.answer.shape[1]
    mixed = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    held, learned = (
        Questions(*(each[:, rows] for each in train)) for rows in (mixed[: size // 10], mixed[size // 10 :])
    )
    held = held.to(members.device)
    torch.manual_seed(options.seeds)
    started = time.perf_counter()
    updates = Updates(members, learned, options.rows, graph=not options.no_graph)
    limit = 60 * options.minutes if options.minutes else float("inf")
    epoch, begun, changed = 0, options.linear_epochs, 0.0  # the softmax came after so many epochs and seconds
    members.is_linear = options.linear_epochs > 0
    updates.record()
    while True:
        seconds = time.perf_counter() - started
        if members.is_linear and (epoch >= options.linear_epochs or seconds > limit / 4):
            members.is_linear, begun, changed = False, epoch, seconds
            updates.record()
        progress = max((epoch - begun) / options.epochs, (seconds - changed) / (limit - changed))
        if progress >= 1 and not members.is_linear:
            return
        updates.rates.fill_(options.linear_rate if members.is_linear else options.rate * 0.5 ** int(HALVED * progress))
        loss = updates.epoch()
        epoch += 1
        valid = members.measured(held)[0]
        yield Course(epoch, loss.cpu(), valid.cpu(), members.is_linear, time.perf_counter() - started)


def by_network(network: MemoryNetwork, known: Known, asked: Questions) -> Tensor:
    """Which questions the toolkit's own network answers right, (R,)."""
    right = []
    for rows in torch.arange(len(asked.answer)).split(500):
        some = asked.chosen(rows)
        encoded = []
        for sentences, count, question, answer in zip(*(each.tolist() for each in some[:4]), strict=True):
            cut = [known.sentences[each] for each in sentences[:count]][::-1]
            encoded.append(
                {
                    "words": np.array([word for each in cut for word in each], np.int64),
                    "widths": np.array([len(each) for each in cut], np.int64),
                    "question": np.array(known.sentences[question], np.int64),
                    "answer": np.array([answer], np.int64),
                }
            )
        outputs = network.predict(batched(encoded, network.settings.memories))
        found = torch.tensor([int(output.probabilities.argmax()) for output in outputs])
        right.append(found == some.answer)
    return torch.cat(right)


def errors(right: Tensor, task: Tensor) -> dict[int, float]:
    """The error of each task in %."""
    return {int(each): 100 * (1 - right[task == each].float().mean().item()) for each in task.unique()}


class Job(NamedTuple):
    """Some tasks of one of the two sets."""

    name: str  # 1k or 10k
    tasks: list[int]  # all, where none is named
    options: argparse.Namespace


class Outcome(NamedTuple):
    """What became of a job."""

    name: str
    lines: list[str]  # the course of training
    errors: dict[int, float]  # by task, of the seed with the lowest training error


def run(job: Job) -> Outcome:
    """Train on some tasks, one model for all or one for each."""
    name, tasks, options = job
    torch.set_float32_matmul_precision("high")
    train = files_of(options.data / ("en" if name == "1k" else "en-10k"), "train")
    test = files_of(options.data / "en", "test")
    tasks = tasks or [*train]
    groups = [[task] for task in tasks] if options.each else [tasks]
    worlds = [World(*read(*({task: files[task] for task in group} for files in (train, test)))) for group in groups]
    members = Members(worlds, options)
    lines = [
        f"{name}: {len(tasks)} tasks, {'a model for each' if options.each else 'one model'}, "
        f"{sum(len(each.train.answer) for each in worlds):,} questions, {options.seeds} seeds"
    ]
    course = None
    for course in training(members, options):
        if course.epoch % 10 == 0 or course.epoch == 1:
            phase = "linear, " if course.is_linear else ""
            lines.append(
                f"  epoch {course.epoch}: {phase}loss {course.loss.min():.3f} to {course.loss.max():.3f}, held out "
                f"{course.valid.min():.3f} to {course.valid.max():.3f}, {course.seconds:.0f} s"
            )
            print(f"{name} {lines[-1]}", file=sys.stderr, flush=True)
    assert course is not None
    lines.append(f"  {course.epoch} epochs, {course.seconds / course.epoch:.2f} s each")
    learned, right = (
        members.measured(stacked([getattr(each, part) for each in worlds]))[1].cpu() for part in ("train", "test")
    )
    wrong, on_test = (100 * (1 - each.float().mean(1)) for each in (learned, right))
    found: dict[int, float] = {}
    for number, world in enumerate(worlds):
        rows = range(number * options.seeds, (number + 1) * options.seeds)
        chosen = min(rows, key=lambda row: float(wrong[row]))
        of_task = f"task {tasks[number]}, " if options.each else ""
        for title, values in (("training", wrong), ("test", on_test)):
            lines.append(f"  {of_task}{title} error by seed: {' '.join(f'{values[row]:.2f}' for row in rows)}")
        lines.append(f"  {of_task}chosen: seed {members.seeds[chosen]}")
        print("\n".join(lines[-3:]), errors(right[chosen], world.test.task), file=sys.stderr, flush=True)
        found |= errors(by_network(members.member(chosen), world.known, world.test), world.test.task)
    return Outcome(name, lines, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of bAbI")
    parser.add_argument("--sets", default="1k", help="1k, 10k or both (1k,10k)")
    parser.add_argument("--tasks", default="", help="such as 1,2,3; or 1,2/3: each part is trained by a process")
    parser.add_argument("--each", action="store_true", help="a model for each task, not one for all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=60, help="after the linear start (60)")
    parser.add_argument("--linear-epochs", type=int, default=30, help="of the linear start at most (30)")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate of the summed loss (0.01)")
    parser.add_argument("--linear-rate", type=float, default=0.005, help="that of the linear start (0.005)")
    parser.add_argument("--size", type=int, default=50, help="d (50)")
    parser.add_argument("--rows", type=int, default=32, help="questions in a batch (32)")
    parser.add_argument("--sentence", default="place", choices=["place", "position"], help="model.sentence (place)")
    parser.add_argument("--no-vacant", action="store_true", help="the softmax is over sentences alone")
    parser.add_argument("--minutes", type=float, help="at most so long; the learning rate falls in time")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-graph", action="store_true", help="on a GPU, without a CUDA graph")
    options = parser.parse_args()
    where = (
        torch.cuda.get_device_name() if options.device.startswith("cuda") else f"{torch.get_num_threads()} thread(s)"
    )
    print(f"python {' '.join(sys.argv)}\ntorch {torch.__version__}, Python {platform.python_version()}, {where}\n")
    parts = [[int(task) for task in part.split(",") if task] for part in options.tasks.split("/")]
    jobs = [Job(name, part, options) for name in options.sets.split(",") for part in parts]
    found: dict[str, dict[int, float]] = {}
    with ProcessPoolExecutor(len(jobs), get_context("spawn")) as pool:
        for name, lines, by_task in pool.map(run, jobs):
            print("\n".join(lines), flush=True)
            found[name] = found.get(name, {}) | by_task
    print(f"\n{'task':>6}{'paper, 1k joint':>18}" + "".join(f"{name:>12}" for name in found))
    tasks = sorted({task for each in found.values() for task in each})
    for task in tasks:
        cells = "".join(f"{each[task]:12.1f}" if task in each else f"{'-':>12}" for each in found.values())
        print(f"{task:6}{PAPER[task]:18.1f}{cells}")
    means = [sum(each.values()) / len(each) for each in found.values()]
    print(f"{'mean':>6}{sum(PAPER[task] for task in tasks) / len(tasks):18.1f}" + "".join(f"{m:12.1f}" for m in means))
    failed = [sum(error > 5 for error in each.values()) for each in found.values()]
    print(f"{'> 5 %':>6}{sum(PAPER[task] > 5 for task in tasks):18}" + "".join(f"{count:12}" for count in failed))
    for name, mean in zip(found, means, strict=True):
        print(f"{name}: mean error {mean:.2f} % of {len(found[name])} tasks, goal at most {GOALS[name]} %")


if __name__ == "__main__":
    main()
