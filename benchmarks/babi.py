"""bAbI, 20 tasks in one model: the test error of end-to-end memory networks, task by task, beside the paper's.

    python benchmarks/babi.py --device cuda                      # 1k questions a task, then 10k; ten seeds each
    python benchmarks/babi.py --sets 1k --seeds 2 --epochs 5     # a look at how long it takes

Data are read from --data ($RECURRA_DATA/babi, ../shared/data/babi): en/ and en-10k/, which has no task 3.

As in the paper (Sukhbaatar et al. 2015, joint training): 3 hops, d = 50, 50 memories, position and temporal encoding,
adjacent tying, up to 10 % of empty memories, weights from N(0, 0.1²), SGD over batches of 32 with the summed loss,
gradients of norm 40 at most; a linear start at learning rate 0.005 until the loss of a tenth of the training questions
has not fallen for --patience epochs (30 epochs at most), then 60 epochs at 0.01, halved every 15. Of ten seeds, the one
with the lowest training error is scored on test. Not as in the paper: the answer is one of the answers of
training, not any word; the softmax is over the sentences that there are, without unused places.

All seeds are trained in one process, as one model with a leading dimension, and on a GPU each update is one CUDA graph.
The network that is scored is the toolkit's own, `recurra.models.memory_network`, with the weights of the chosen seed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1] / "src")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn import functional  # noqa: E402

from recurra.attention.hops import hop, position_weights, with_empty  # noqa: E402
from recurra.config import QuestionAnsweringModel  # noqa: E402
from recurra.data.formats.babi import Babi  # noqa: E402
from recurra.models.memory_network import MemoryNetwork, batched  # noqa: E402
from recurra.reading.stories import words_of  # noqa: E402

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "babi"

PAPER = {
    1: 0.0, 2: 11.4, 3: 21.9, 4: 13.4, 5: 14.4, 6: 2.8, 7: 18.3, 8: 9.3, 9: 1.9, 10: 6.5,
    11: 0.3, 12: 0.1, 13: 0.2, 14: 6.9, 15: 0.0, 16: 2.7, 17: 40.4, 18: 9.4, 19: 88.0, 20: 0.0,
}  # fmt: skip
"""Errors in % of the joint model with 1,000 questions a task."""

GOALS = {"1k": 12.4, "10k": 6.6}

HOPS, SIZE, MEMORIES, NOISE, ROWS, CLIP = 3, 50, 50, 0.1, 32, 40.0
LINEAR_EPOCHS, LINEAR_RATE, EPOCHS, RATE, HALVED_EVERY = 30, 0.005, 60, 0.01, 15


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


class SparseProduct(torch.autograd.Function):
    """X E with a sparse X, and Xᵀ g: of 3,600 sentences with 7 words each this takes a fraction of a dense product."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, turned: Tensor, dense: Tensor) -> Tensor:
        ctx.turned = turned  # type: ignore[attr-defined]
        return x @ dense

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.turned @ gradient.contiguous()  # type: ignore[attr-defined]


class Members:
    """S networks at once: weights (S, K + 1, …) of MemoryNetwork with adjacent tying.

    A sentence with the position encoding α_j + k β_j is Σ_j α_j E x_j + k ∘ Σ_j β_j E x_j: a product of the rows
    [Σ α_j x_j, Σ β_j x_j], the same in every update, with [E; E ∘ k]. So all sentences of the data are one product.
    """

    def __init__(
        self, known: Known, seeds: Sequence[int], device: torch.device, patience: Sequence[int], hidden: int = SIZE
    ) -> None:
        self.known, self.device, self.seeds, self.hidden = known, device, seeds, hidden
        self.patience = torch.tensor(patience)  # (S,), epochs without a lower held-out loss before the softmax comes
        width = max(map(len, known.sentences))
        ids = torch.zeros(len(known.sentences), width, dtype=torch.long)
        widths = torch.tensor([len(each) for each in known.sentences])
        for row, sentence in enumerate(known.sentences):
            ids[row, : len(sentence)] = torch.tensor(sentence, dtype=torch.long)
        counted = torch.zeros(2, len(ids), len(known.words))
        for half, weights in enumerate(position_weights(widths, width, hidden)):
            counted[half].scatter_add_(1, ids, weights)
        rows = torch.cat([*counted], 1)  # (U, 2V)
        self.rows = rows.to(device) if device.type == "cuda" else rows.to_sparse_csr()
        self.turned = self.rows if device.type == "cuda" else rows.T.contiguous().to_sparse_csr()
        place = {word: number for number, word in enumerate(known.words)}
        self.answers = torch.tensor([place[answer] for answer in known.answers], device=device)
        settings = QuestionAnsweringModel(hidden=hidden, hops=HOPS, memories=MEMORIES, noise=NOISE)
        networks = []
        for seed in seeds:
            torch.manual_seed(seed)
            networks.append(MemoryNetwork(settings, len(known.words), self.answers.tolist()))
        self.network = networks[0]
        self.tables = torch.stack([each.tables.detach() for each in networks]).to(device).requires_grad_()
        self.times = torch.stack([each.times.detach() for each in networks]).to(device).requires_grad_()  # type: ignore[union-attr]
        self.is_linear = torch.ones(len(seeds), 1, 1, dtype=torch.bool, device=device)
        self.units = torch.arange(1, hidden + 1, device=device, dtype=torch.float32)

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.seeds)

    @property
    def parameters(self) -> list[Tensor]:
        return [self.tables, self.times]

    def all_sentences(self) -> Tensor:
        """(S · U, (K + 1) d): every sentence by every table of every member."""
        both = torch.cat([self.tables, self.tables * self.units], 2)  # (S, K + 1, 2V, d)
        beside = both.permute(2, 0, 1, 3).flatten(1)  # (2V, S (K + 1) d)
        if self.rows.is_sparse_csr:
            found: Tensor = SparseProduct.apply(self.rows, self.turned, beside)  # type: ignore[no-untyped-call]
        else:
            found = self.rows @ beside
        members = len(self.seeds)
        return found.unflatten(1, (members, -1)).transpose(0, 1).flatten(0, 1)

    def scores(self, asked: Questions, *, noise: bool, vectors: Tensor | None = None) -> Tensor:
        """(S, B, L): the scores of the answers; all of `asked` is (S, B, …)."""
        vectors = self.all_sentences() if vectors is None else vectors
        members, rows, places = asked.sentences.shape
        first = torch.arange(members, device=self.device)[:, None] * len(self.known.sentences)
        sentences, count = asked.sentences, asked.length
        if noise:
            found = with_empty(count, places, NOISE)
            taken = sentences.gather(2, found.sentence.clamp(min=0)[..., :places])
            sentences = taken * (found.sentence[..., :places] >= 0)
            count = found.present.clamp(max=places)
        memories = vectors.index_select(0, (sentences + first[..., None]).flatten())
        memories = memories.view(members, rows, places, HOPS + 1, self.hidden)
        memories = memories + self.times.transpose(1, 2)[:, None, :places]
        u = vectors.index_select(0, (asked.question + first).flatten()).view(members, rows, HOPS + 1, self.hidden)[
            :, :, 0
        ]
        is_there = torch.arange(places, device=self.device) < count[..., None]
        for k in range(HOPS):
            o, _ = hop(u, memories[..., k, :], memories[..., k + 1, :], is_there, self.is_linear)
            u = u + o
        return u @ self.tables[:, -1].index_select(1, self.answers).transpose(1, 2)

    def losses(self, asked: Questions, *, noise: bool) -> Tensor:
        """(S,): the summed loss of each member."""
        scores = self.scores(asked, noise=noise).transpose(1, 2)
        return functional.cross_entropy(scores, asked.answer, ignore_index=-1, reduction="none").sum(1)

    @torch.no_grad()
    def measured(self, asked: Questions, at_once: int = 500) -> tuple[Tensor, Tensor]:
        """The mean loss (S,), and which questions were answered right, (S, R)."""
        losses, right, vectors = [], [], self.all_sentences()
        for rows in torch.arange(len(asked.answer), device=self.device).split(at_once):
            some = asked.chosen(rows.expand(len(self.seeds), -1))
            scores = self.scores(some, noise=False, vectors=vectors)
            given = functional.cross_entropy(scores.transpose(1, 2), some.answer, ignore_index=-1, reduction="none")
            losses.append(given.sum(1))
            right.append(scores.argmax(-1) == some.answer)
        return torch.stack(losses).sum(0) / len(asked.answer), torch.cat(right, 1)

    def member(self, which: int) -> MemoryNetwork:
        """One of them as a network of the toolkit."""
        state = {
            "tables": self.tables[which].detach().cpu(),
            "times": self.times[which].detach().cpu(),
            "is_linear": self.is_linear[which, 0, 0].cpu(),
        }
        self.network.load_state_dict(state)
        return self.network.eval()


class Updates:
    """SGD of all members: gradients of the summed loss, clipped by member. On a GPU, one CUDA graph an update."""

    def __init__(self, members: Members, train: Questions, rows: int, *, graph: bool) -> None:
        self.members, self.train, self.rows = members, train, rows
        self.rates = torch.zeros(members.count, device=members.device)
        self.order = torch.zeros(members.count, len(train.answer), dtype=torch.long, device=members.device)
        self.number = torch.zeros((), dtype=torch.long, device=members.device)
        self.losses = torch.zeros(members.count, device=members.device)
        self.graph: torch.cuda.CUDAGraph | None = None
        if graph and members.device.type == "cuda":
            self._capture()

    def update(self) -> None:
        """One batch of each member, in its own order."""
        at = self.number * self.rows + torch.arange(self.rows, device=self.rates.device)
        asked = self.train.chosen(self.order.index_select(1, at))
        losses = self.members.losses(asked, noise=True)
        gradients = torch.autograd.grad(losses.sum(), self.members.parameters)
        norms = sum(each.flatten(1).square().sum(1) for each in gradients).sqrt()  # type: ignore[union-attr]
        factors = self.rates * (CLIP / norms.clamp(min=1e-9)).clamp(max=1.0)
        with torch.no_grad():
            for parameter, gradient in zip(self.members.parameters, gradients, strict=True):
                parameter -= factors[:, None, None, None] * gradient
            self.losses += losses
            self.number += 1

    def _capture(self) -> None:
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

    def epoch(self, number: int) -> Tensor:
        """The mean loss of each member over an epoch."""
        size = self.order.shape[1]
        for row, seed in enumerate(self.members.seeds):
            drawn = torch.randperm(size, generator=torch.Generator().manual_seed(1000 * seed + number))
            self.order[row].copy_(drawn)
        self.number.zero_()
        self.losses.zero_()
        updates = size // self.rows
        for _ in range(updates):
            if self.graph is not None:
                self.graph.replay()
            else:
                self.update()
        return self.losses / (updates * self.rows)


class Course(NamedTuple):
    """Where a training stands after an epoch."""

    epoch: int
    loss: Tensor  # (S,)
    valid: Tensor  # (S,), the loss on the held-out tenth
    linear: int  # members whose hops are still linear
    seconds: float


def training(members: Members, train: Questions, options: argparse.Namespace) -> Iterator[Course]:
    """A linear start, then epochs with a softmax; each member goes on when its own held-out loss no longer falls."""
    epochs, linear_epochs, rate = options.epochs, options.linear_epochs, options.rate
    device, size = members.device, len(train.answer)
    mixed = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    held, learned = train.chosen(mixed[: size // 10]).to(device), train.chosen(mixed[size // 10 :]).to(device)
    started = time.perf_counter()
    updates = Updates(members, learned, options.rows, graph=not options.no_graph)
    begun = torch.full((members.count,), linear_epochs)  # the epoch in which the softmax comes
    best = torch.full((members.count,), float("inf"))
    worse = torch.zeros(members.count, dtype=torch.long)  # epochs since then
    period = max(1, round(HALVED_EVERY * epochs / EPOCHS))
    if linear_epochs == 0:
        members.is_linear.fill_(False)
    for epoch in range(linear_epochs + epochs):
        since = epoch - begun
        halved = rate * 0.5 ** (since.clamp(min=0) // period)
        rates = torch.where(members.is_linear.flatten().cpu(), LINEAR_RATE * rate / RATE, halved)
        updates.rates.copy_(rates)
        loss = updates.epoch(epoch)
        valid = members.measured(held)[0].cpu()
        is_linear = members.is_linear.flatten().cpu()
        worse = torch.where(valid < best, 0, worse + 1)
        ends = is_linear & ((worse >= members.patience) | (epoch + 1 >= linear_epochs))
        begun = torch.where(ends, epoch + 1, begun)
        best = torch.minimum(best, valid)
        members.is_linear.copy_((is_linear & ~ends)[:, None, None])
        yield Course(epoch + 1, loss.cpu(), valid, int((is_linear & ~ends).sum()), time.perf_counter() - started)
        if bool((epoch + 1 - begun >= epochs).all()):
            return


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
        outputs = network.predict(batched(encoded, MEMORIES))
        found = torch.tensor([int(output.probabilities.argmax()) for output in outputs])
        right.append(found == some.answer)
    return torch.cat(right)


def errors(right: Tensor, task: Tensor) -> dict[int, float]:
    """The error of each task in %."""
    return {int(each): 100 * (1 - right[task == each].float().mean().item()) for each in task.unique()}


def run(name: str, options: argparse.Namespace, told: Callable[[str], None]) -> dict[str, dict[int, float]]:
    """Train on one of the two sets; for each patience the errors by task of the seed with the lowest training error."""
    train = files_of(options.data / ("en" if name == "1k" else "en-10k"), "train")
    test = {task: path for task, path in files_of(options.data / "en", "test").items() if task in train}
    if options.tasks:
        wanted = {int(each) for each in options.tasks.split(",")}
        train, test = ({task: path for task, path in each.items() if task in wanted} for each in (train, test))
    known, asked, tested = read(train, test)
    device = torch.device(options.device)
    kinds = [int(each) for each in options.patience.split(",")]
    seeds = [*range(1, options.seeds + 1)] * len(kinds)
    members = Members(known, seeds, device, [kind for kind in kinds for _ in range(options.seeds)], options.size)
    told(
        f"{name}: {len(train)} tasks, {len(asked.answer):,} questions, {len(known.words)} words, "
        f"{len(known.answers)} answers, {len(known.sentences):,} different sentences; {options.seeds} seeds"
    )
    course, limit = None, 60 * options.minutes if options.minutes else float("inf")
    for course in training(members, asked, options):
        if course.epoch % 5 == 0 or course.epoch == 1:
            told(
                f"  epoch {course.epoch}: loss {course.loss.min():.3f} to {course.loss.max():.3f}, held out "
                f"{course.valid.min():.3f} to {course.valid.max():.3f}, linear {course.linear}, {course.seconds:.0f} s"
            )
        if course.seconds > limit:
            told(f"  stopped after {options.minutes:g} minutes")
            break
    assert course is not None
    told(f"  {course.seconds / course.epoch:.2f} s an epoch")
    wrong = 100 * (1 - members.measured(asked.to(device))[1].float().mean(1))
    on_test = 100 * (1 - members.measured(tested.to(device))[1].float().mean(1))
    found = {}
    for number, kind in enumerate(kinds):
        rows = range(number * options.seeds, (number + 1) * options.seeds)
        for row in rows:
            told(f"  patience {kind}, seed {seeds[row]}: training error {wrong[row]:.2f} %, test {on_test[row]:.2f} %")
        chosen = min(rows, key=lambda row: float(wrong[row]))
        told(f"  patience {kind}: seed {seeds[chosen]} is chosen")
        column = name if len(kinds) == 1 else f"{name}, p {kind}"
        found[column] = errors(by_network(members.member(chosen), known, tested), tested.task)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of bAbI")
    parser.add_argument("--sets", default="1k,10k", help="1k, 10k or both (1k,10k)")
    parser.add_argument("--tasks", default="", help="some tasks alone, such as 1,2,3")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="after the linear start (60)")
    parser.add_argument("--linear-epochs", type=int, default=LINEAR_EPOCHS, help="of the linear start at most (30)")
    parser.add_argument(
        "--patience", default="3", help="it ends after so many epochs without a lower loss (3); or several"
    )
    parser.add_argument("--size", type=int, default=SIZE, help="d (50)")
    parser.add_argument("--rows", type=int, default=ROWS, help="questions in a batch (32)")
    parser.add_argument("--rate", type=float, default=RATE, help="learning rate of the summed loss (0.01)")
    parser.add_argument("--minutes", type=float, help="at most so long for each set")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-graph", action="store_true", help="on a GPU, without a CUDA graph")
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    where = (
        torch.cuda.get_device_name() if options.device.startswith("cuda") else f"{torch.get_num_threads()} thread(s)"
    )
    print(f"python {' '.join(sys.argv)}\ntorch {torch.__version__}, Python {platform.python_version()}, {where}\n")
    found: dict[str, dict[int, float]] = {}
    for name in options.sets.split(","):
        found |= run(name, options, lambda line: print(line, flush=True))
    print(f"\n{'task':>6}{'paper, 1k':>12}" + "".join(f"{name:>12}" for name in found))
    tasks = sorted({task for each in found.values() for task in each})
    for task in tasks:
        cells = "".join(f"{each[task]:12.1f}" if task in each else f"{'-':>12}" for each in found.values())
        print(f"{task:6}{PAPER[task]:12.1f}{cells}")
    means = [sum(each.values()) / len(each) for each in found.values()]
    print(f"{'mean':>6}{sum(PAPER[task] for task in tasks) / len(tasks):12.1f}" + "".join(f"{m:12.1f}" for m in means))
    failed = [sum(error > 5 for error in each.values()) for each in found.values()]
    print(f"{'> 5 %':>6}{sum(PAPER[task] > 5 for task in tasks):12}" + "".join(f"{count:12}" for count in failed))
    for name, mean in zip(found, means, strict=True):
        print(f"{name}: mean error {mean:.2f} %, goal at most {GOALS[name.split(',')[0]]} %")


if __name__ == "__main__":
    main()
