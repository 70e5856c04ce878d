"""The loop: batches in, weights out. What it does at step n depends on the seed and n alone, so it can be resumed."""

from __future__ import annotations

import contextlib
import hashlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.config import Training
from recurra.config.fine_tuning import fine_tuning_of
from recurra.data.batches import Batches
from recurra.data.mixed import Mixed
from recurra.data.store import Rows, Store
from recurra.encoders.masked_norm import BatchNorm
from recurra.engines.waiting import check_done
from recurra.errors import CheckpointError, ConfigError, TrainingError, is_lack_of_memory
from recurra.manifest import committing, verify
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.padding import exact, fitted
from recurra.products.triton_here import KernelsError
from recurra.scoring.scores import Scores
from recurra.tasks.task import Carried, Loss, Moment, Task
from recurra.training.ahead import Ahead, Part, Ready, place_of, rows_of_epoch
from recurra.training.checkpoint import optimiser_tensors, put_optimiser
from recurra.training.device import device_of, dtype_of, set_up_torch, slower_without_kernels
from recurra.training.evaluation import loss_of, outputs_to_score
from recurra.training.freezing import Frozen
from recurra.training.giving_back import give_back_recordings
from recurra.training.guard import NOT_AGAIN, culprit
from recurra.training.log import FILE as LOG
from recurra.training.log import EventLine, Lines, TrainLine, ValidLine
from recurra.training.model_size import bounded_parameters
from recurra.training.optimisation import Average, Schedule, can_skip, optimisers, sparse_tables
from recurra.training.outcomes import Arriving, Attempt, Outcome, Outcomes
from recurra.training.position import CHECKPOINT, MODEL, Position
from recurra.training.preparation import HeldOut, digest_of
from recurra.training.processes import OneProcess, Processes, Sums
from recurra.training.progress import Progress
from recurra.training.replaying import Replaying
from recurra.training.stopping import Interrupted, Stop, stopping
from recurra.training.tempo import Tempo

FEW_STEPS = 200
"""With fewer updates than this, a network has hardly begun to learn."""

LARGEST_SEED = 1 << 63
"""torch takes no larger ones."""

MOST_ATTEMPTS = 4
"""How often a step is computed anew where kernels fail, each of which is then done without."""

LOG_SECONDS = 1.0
"""About so often a line of training goes to metrics.jsonl."""


class Summed(NamedTuple):
    """Batches whose gradients were added up."""

    attempts: Sequence[Attempt]  # those that have labels
    losses: Sequence[Tensor]  # of each
    labels: int
    first: int  # labels of the first: what the gradients are divided by
    weights: Sequence[float]  # by which the learning rate is multiplied
    logged: Mapping[str, float]

    @property
    def rows(self) -> int:
        """Of the batches that have labels."""
        return sum(len(each.part.rows) for each in self.attempts)


class Update(NamedTuple):
    """What one update of the weights leaves to be looked at."""

    attempts: Sequence[Attempt]
    found: Arriving  # the loss of each, and the norm of the gradient
    logged: Mapping[str, float]
    whole: Sums  # of all processes


class Validated(NamedTuple):
    """What a validation has found."""

    scores: dict[str, float]
    parts: dict[str, float]  # scores of parts of the model that are kept by themselves
    first: str  # the name of the score that decides
    is_better: bool  # than the best so far
    loss: float
    seconds: float  # that it took
    until: float  # and its end, in seconds of the training


class Trainer:
    """One model, its data and its optimiser, in a run folder."""

    def __init__(
        self,
        task: Task[Any, Any, Any],
        store: Store | Mixed,
        valid: HeldOut,
        folder: Path,
        progress: Progress,
        processes: Processes | None = None,
    ) -> None:
        self.processes = OneProcess() if processes is None else processes
        self.task = task
        self.validating = task.while_training()
        self.training: Training = task.settings.training
        self.store = store
        self.valid = valid
        self.folder = folder
        self.progress = progress
        self.device = device_of(self.training, self.processes)
        set_up_torch(self.training, self.device, self.processes)
        if (slower := slower_without_kernels(self.device)) is not None:
            progress.note(slower)
        torch.manual_seed(self.training.seed % LARGEST_SEED)
        with bounded_parameters():
            model = task.build()
        self.model = model.to(self.device, dtype_of(self.training))
        self.frozen = Frozen(self.model, fine_tuning_of(self.training))
        self.parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimisers = optimisers(self.training.optimizer, self.model, self.training.learning_rate)
        self.schedule = Schedule(self.training.schedule, warmup=self.training.warmup)
        part = self.training.average
        self.average = Average(part, self.model) if part is not None else None
        is_half = self.training.precision == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=is_half and self.device.type == "cuda")
        new = store.new if isinstance(store, Mixed) else store
        lengths = task.lengths(new)
        self.position = Position(
            rows=len(new),
            elements=int(lengths.sum()),
            data=digest_of(store),
            valid=valid.digest(),
            processes=self.processes.size,
            best_parts={},
        )
        self.carried: Carried = ()
        self.whole_carried: tuple[int, Carried] = (-1, ())  # the step after which all processes left this
        # What a GPU has found is looked at some steps later, so that it never waits. Until then, a step whose loss or
        # gradient is not finite must leave the weights alone, and so must those after it.
        can_look_late = self.processes.is_one and all(can_skip(one) for _, one in self.optimisers)
        self.looks_late = self.device.type == "cuda" and can_look_late
        self.went_wrong = torch.zeros((), device=self.device)  # 1 from the first such step on
        self.outcomes = Outcomes()
        self.replaying: Replaying | None = None
        is_same = not self._has_tables() and not self.frozen.is_gradual  # what moves in a step
        if self.processes.is_one and self.device.type == "cuda" and self.training.replay and is_same:
            self.replaying = Replaying(self.parameters, self.device, dtype_of(self.training), progress.note)
        self.tempo = Tempo.on(self.device)
        self.saved_step = 0  # of the last checkpoint
        self.is_best_unsaved = False  # the weights are the best so far, and only the last checkpoint knows others
        self.best_parts_unsaved: set[str] = set()  # the same of parts that are kept by a score of their own
        self.is_split_told = False  # that a batch was too large for the memory
        self.also_saved: list[Callable[[Path], None]] = []  # write to a folder what goes with the next checkpoint
        self.stopping = threading.Lock()  # of the thread that saves after Ctrl-C
        self.began = time.monotonic()
        self.stopped = ""  # what is said where Ctrl-C has cut a validation short
        self.validation_seconds = 0.0  # that the last validation took
        self._meet()

    def _has_tables(self) -> bool:
        return bool(sparse_tables(self.model))

    def _meet(self) -> None:
        """Find the other processes, and say what is different with them."""
        if self.processes.is_one:
            return
        if (reason := self.task.unshared()) is not None:
            raise ConfigError(reason)
        self.scaler.scale(torch.zeros(1, device=self.device))  # it begins there, also where a process has no row
        at = self.position
        data = f"{at.rows:,} examples of {at.elements:,} elements ({at.data[:12]})"
        self.processes.meet(self.device, {"the training data": data, "the settings": marked(repr(self.task.settings))})
        say = self.progress.note
        say(f"training in {self.processes.size} processes: each computes a part of the rows of every batch")
        if any(isinstance(module, BatchNorm) for module in self.model.modules()):
            say(
                "model.image.norm = 'batch' normalises by the rows of a batch that one process has: with 'layer', the "
                "losses are those of one process"
            )
        if self.device.type == "cuda" and self.training.replay:
            say("training.replay is off: steps of several processes are not recorded as CUDA graphs")

    def weights_are_given(self) -> None:
        """The model's weights were set from outside: the average begins there too."""
        if self.average is not None:
            self.average.model.load_state_dict(self.model.state_dict())

    @property
    def predicting(self) -> nn.Module:
        """The model that predicts: the average, where there is one."""
        return self.model if self.average is None else self.average.model

    # Checkpoints

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    def save(self, log: Lines) -> None:
        """Everything that resuming needs, and the weights where they are the best so far: at once or not at all."""
        self._tell(log, every=True)
        check_done(self.device)  # of the steps since the last look at whether a kernel gave up
        if self.position.step:
            self._refuse_weights_that_are_not_finite()
        self._gather()
        if self.processes.is_writer:
            self._write(log)
        self.saved_step, self.is_best_unsaved = self.position.step, False
        self.best_parts_unsaved.clear()
        self.also_saved.clear()

    def _gather(self) -> None:
        """Find in all processes what a checkpoint of this step needs. Afterwards the first can save alone."""
        if self.whole_carried[0] != self.position.step:
            self.processes.check_same(self.parameters)
            of_rows = self.task.carries_rows
            carried = self.processes.together(self.carried) if of_rows else self.carried
            self.whole_carried = self.position.step, carried

    def _write(self, log: Lines) -> None:
        self.position.log_bytes = log.position
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        plain: dict[str, Any] = {}
        for names, one in self.optimisers:
            memory, words = optimiser_tensors(one, names)
            tensors |= {f"optimiser.{name}": value for name, value in memory.items()}
            plain |= words
        if self.average is not None:
            tensors |= {f"average.{name}": value for name, value in self.average.model.state_dict().items()}
            tensors |= {f"kept.{name}": value for name, value in self.average.kept_tensors().items()}
        tensors |= {f"carried.{number}": value for number, value in enumerate(self.whole_carried[1])}
        about = {"position": asdict(self.position), "optimiser": plain, "scaler": self.scaler.state_dict()}
        with committing(self.folder, logs={LOG: log.position}) as new:
            write_tensors(new / CHECKPOINT, tensors, about)
            if (best := self._best_weights()) is not None:
                write_tensors(new / MODEL, best)
            for write in self.also_saved:
                write(new)

    def _best_weights(self) -> Mapping[str, Tensor] | None:
        """What predicts from here on: the best whole with the best of each part; None: what the run folder holds."""
        now = self.predicting.state_dict()
        parts = self.position.best_parts or {}
        if not parts or not self._has_model():
            return now if self.is_best_unsaved else None
        if not self.is_best_unsaved and not self.best_parts_unsaved:
            return None
        before, _ = read_tensors(self.folder / MODEL)
        found = dict(now if self.is_best_unsaved else before)
        for part in parts:
            source = now if part in self.best_parts_unsaved else before
            found |= {name: value for name, value in source.items() if name.startswith(f"{part}.")}
        return found

    def _refuse_weights_that_are_not_finite(self) -> None:
        """The checkpoint before holds weights with which something can still be done."""
        for name, parameter in self.model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise TrainingError(
                    f"the weights of '{name}' became infinite or NaN by step {self.position.step:,} and are not "
                    f"saved. Train with a lower training.learning_rate or training.clip"
                    + (f": --from {self.folder} starts from the last saved weights." if self._has_model() else ".")
                )

    def restore(self) -> None:
        """Go back to the last checkpoint; without one, to the beginning."""
        verify(self.folder)
        if not self.checkpoint.exists():
            return
        tensors, about = read_tensors(self.checkpoint)

        def part(name: str) -> dict[str, Tensor]:
            return {key[len(name) :]: value for key, value in tensors.items() if key.startswith(name)}

        now = self.position
        try:
            position = Position.read(about, self.checkpoint)
            put_weights(self.model, part("model."), self.checkpoint)
            for names, one in self.optimisers:
                put_optimiser(one, names, part("optimiser."), about["optimiser"])
            self.scaler.load_state_dict(about["scaler"])
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"{self.checkpoint} is not a checkpoint of this run ({error}).") from error
        if self.average is not None:
            put_weights(self.average.model, part("average."), self.checkpoint)
            self.average.put_kept(part("kept."))
        if (position.rows, position.elements) != (now.rows, now.elements):
            raise CheckpointError(
                f"the training data has changed since this run began: it had {position.rows:,} examples of "
                f"{position.elements:,} elements in all, and now has {now.rows:,} of {now.elements:,}. Restore the "
                f"old data, or start a new run from these weights: --from {self.folder}."
            )
        if position.data not in ("", now.data):
            raise CheckpointError(
                f"the training data has changed since this run began: it has the same size, but other content. Restore "
                f"the old data, or start a new run from these weights: --from {self.folder}."
            )
        if position.valid not in ("", now.valid):
            self.progress.note(
                "the validation data has changed since this run began: scores from before and after cannot be compared"
            )
        position.data, position.valid = now.data, now.valid
        carried = part("carried.")
        whole = tuple(carried[str(number)].to(self.device) for number in range(len(carried)))
        is_shared = self.task.carries_rows and not self.processes.is_one
        self.carried = tuple(each[self.processes.share] for each in whole) if is_shared else whole
        if position.step and position.processes != now.processes:
            before = "1 process" if position.processes == 1 else f"{position.processes} processes"
            self.progress.note(
                f"the run was trained in {before} until step {position.step:,} and goes on in {now.processes}: sums "
                f"are now rounded in another order, and dropout draws other numbers"
            )
        position.processes = now.processes
        self.position = position
        self.saved_step = position.step

    # The loop

    def run(self, log: Lines) -> None:
        """Train until one of the limits is reached. Ctrl-C saves and raises Interrupted."""
        try:
            self._run(log)
        except Interrupted:
            raise
        except KeyboardInterrupt:  # the second Ctrl-C may come anywhere, also while a checkpoint is written
            raise Interrupted(self._stopped_at_once()) from None

    def _run(self, log: Lines) -> None:
        position, training = self.position, self.training
        position.ended = None
        batches = self.task.batches(rows_of_epoch(self.task, self.store, position.epoch), position.epoch)
        total = self._total_steps(batches)
        if total is not None and total < FEW_STEPS and position.step == 0:
            self.progress.note(
                f"only {total} updates; models usually need thousands: train for more epochs, or with smaller batches"
            )
        minutes = training.minutes
        left = None if minutes is None else max(60 * minutes - position.seconds, 0.0)
        self.progress.start(position.step, total, training.epochs, left)
        self.began = time.monotonic() - position.seconds
        self.model.train()
        if self.frozen.is_gradual:
            self.frozen.apply(position.epoch)
        with stopping() as stop:
            self.processes.same_tensors(list(self.model.state_dict().values()))
            if not self.processes.said_by_writer(self.checkpoint.exists):
                self.save(log)  # a run killed before its next checkpoint is resumed from these very weights
            if position.step and position.validated != position.step and self._is_time_to_validate(len(batches)):
                self._validate(log, stop)  # which Ctrl-C has cut short
                self.save(log)
            with self._ahead() as ahead:
                ended = self._steps(ahead, log, stop, len(batches))
            self._tell(log, every=True)
            if position.validated != position.step:
                self._keep_for_average()
                self._validate(log, stop)
            position.seconds = self.seconds
            position.ended = ended
            log.write(EventLine(position.step, ended))
            self.save(log)

    @property
    def seconds(self) -> float:
        """Of the training so far, by the clock of this process."""
        return time.monotonic() - self.began

    def _ahead(self) -> Ahead:
        """The batches from the present position on."""
        position, training = self.position, self.training
        return Ahead(
            self.task,
            self.store,
            epoch=position.epoch,
            batch=position.batch,
            accumulate=training.accumulate,
            epochs=training.epochs,
            device=self.device,
            share=None if self.processes.is_one else self.processes.share,
            replays=self.replaying is not None,
            say=self.progress.note,
        )

    def _steps(self, ahead: Ahead, log: Lines, stop: Stop, batches: int) -> str:
        """One step after the other, and why they ended. The first epoch has so many batches."""
        position, training = self.position, self.training
        is_one = self.processes.is_one
        saved, logged = position.seconds, 0.0
        while (ended := self._ended()) is None:
            if position.batch >= batches > 0:
                position.epoch, position.batch = position.epoch + 1, 0
                batches = 0  # not known before its first step
                continue
            if self.frozen.is_gradual and position.batch == 0:
                self._unfreeze(log)
            progress = self._progress(batches)
            before = time.monotonic()
            try:
                with stop.in_step(self._stopped_in_step):
                    ready = ahead.step(position.epoch, position.batch)
                    update = self._step(ready, progress, stop)
            except KeyboardInterrupt:
                raise Interrupted(self._stopped_in_step()) from None
            batches = len(ready.batches)
            elements = update.whole.elements
            speed = elements / max(1e-9, time.monotonic() - before)
            position.step += 1
            position.batch += training.accumulate
            position.seconds = self.seconds if is_one else update.whole.seconds
            if self.average is not None:
                position.averaged = self.average.update(self.model, position.averaged, progress, position.worse)
            rate = self.optimisers[0][1].param_groups[0]["lr"]
            epoch = position.epoch + min(1.0, position.batch / max(1, batches))
            is_logged = position.seconds - logged >= LOG_SECONDS or position.step == 1
            logged = position.seconds if is_logged else logged
            self.outcomes.add(
                Outcome(
                    step=position.step,
                    epoch=epoch,
                    learning_rate=rate,
                    elements=elements,
                    tokens_per_second=speed,
                    seconds=position.seconds,
                    logged=update.logged,
                    is_logged=is_logged,
                    labels=update.whole.labels,
                    attempts=update.attempts,
                    found=update.found,
                )
            )
            self._tell(log)
            taken = time.monotonic() - before
            if self.tempo.milliseconds is None and self.device.type == "cuda":
                self.progress.note(
                    f"the first step took {taken:.1f} s, in which the kernels of the model were compiled, or loaded "
                    "where an earlier training has left them"
                )
            self.tempo.step(taken)
            if is_logged:
                self.tempo.look()
            if self._is_due(batches):
                self._keep_for_average()
            if self._is_time_to_validate(batches):
                self._validate(log, stop)
                if is_one:
                    position.seconds = self.seconds
                self.save(log)
                saved = position.seconds
            elif position.seconds - saved >= 60 * training.save_minutes:
                self.save(log)
                saved = position.seconds
            if stop.is_asked if is_one else update.whole.is_asked:
                raise Interrupted(self._stopped_after_step(log))
        return ended

    def _unfreeze(self, log: Lines) -> None:
        """Train the parts whose epoch has come."""
        for name in self.frozen.apply(self.position.epoch):
            said = f"epoch {self.position.epoch + 1}: {name} is trained from here on"
            self.progress.note(said)
            log.write(EventLine(self.position.step, said))

    def _tell(self, log: Lines, *, every: bool = False) -> None:
        """Look at the steps whose numbers have arrived, or wait for all; one that went wrong ends the training."""
        for one in self.outcomes.seen(every=every):
            if self.processes.is_one:  # else it was looked at in the step
                self._check(one.attempts, one.losses, one.norm)
            self.progress.step(one.step, one.epoch, one.loss, one.learning_rate, one.elements)
            if one.is_logged:
                told = (one.loss, one.learning_rate, one.norm, one.tokens_per_second, one.seconds, one.logged)
                log.write(TrainLine(one.step, one.epoch, *told))

    def _check(self, attempts: Sequence[Attempt], losses: Sequence[float], norm: float) -> None:
        """Refuse a loss or a gradient that is not finite; with scaled gradients, the scaler deals with these."""
        for attempt, loss in zip(attempts, losses, strict=True):
            if not math.isfinite(loss):
                self._refuse(f"the loss became {loss}", attempt)
        if attempts and not math.isfinite(norm) and not self.scaler.is_enabled():
            self._refuse(f"the gradient became {norm}", attempts[-1])

    def _check_together(self, attempts: Sequence[Attempt], losses: Sequence[Tensor], whole: Sums, norm: Tensor) -> None:
        """The same in several processes: one whose own batch explains it says so for all."""
        what = ""
        if not math.isfinite(loss := float(whole.loss)):
            what = f"the loss became {loss}"
            attempts = [each for each, own in zip(attempts, losses, strict=True) if not math.isfinite(float(own))]
        elif not self.scaler.is_enabled() and not math.isfinite(found := float(norm)):
            what = f"the gradient became {found}"
        if what:
            said = [self._refusal(what, attempts[-1])] if attempts else []
            own = next((each for each in said if NOT_AGAIN not in each), None)
            raise TrainingError(
                self.processes.first_said(own) or f"{what} at step {self.position.step + 1}, when all were added up."
            )

    def _stopped_in_step(self) -> str:
        """The weights may be half changed; the last checkpoint holds whole ones."""
        return (
            f"stopped during step {self.position.step + 1:,}; the last checkpoint is from step "
            f"{self.saved_step:,}. Continue from there with: recurra train {self.folder} --resume"
        )

    def _stopped_at_once(self) -> str:
        if not self.checkpoint.exists():
            return "stopped before the first checkpoint; nothing is saved."
        return f"stopped. Continue from the last checkpoint with: recurra train {self.folder} --resume"

    def _stopped_after_step(self, log: Lines) -> str:
        """Save what is needed to go on from here, and say so. Between two steps any thread may do this, but one."""
        with self.stopping:
            self._tell(log, every=True)
            log.write(EventLine(self.position.step, "interrupted"))
            self.save(log)
        return (
            f"stopped at step {self.position.step:,}, everything is saved. "
            f"Continue with: recurra train {self.folder} --resume"
        )

    def _step(self, ready: Ready, progress: float, stop: Stop | None = None) -> Update:
        """One update of the weights."""
        position, training = self.position, self.training
        rate = training.learning_rate * self.schedule.share(position.step, progress, position.plateaus)
        found = self._backward(ready.parts, progress)
        whole = self.processes.summed(self._sums(found, ready, stop), self.parameters)
        if whole.labels == 0:
            return Update((), Arriving(torch.zeros(1), None), found.logged, whole)
        if not self.processes.is_one:
            self._carry(found.rows)
        gradients = []
        for _, one in self.optimisers:
            for group in one.param_groups:
                group["lr"] = rate * whole.weights / whole.batches
            self.scaler.unscale_(one)
        for parameter in self.parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = summed(parameter.grad)
                gradients.append(parameter.grad._values())  # the others are zero
            elif parameter.grad is not None:
                gradients.append(parameter.grad)
        # So far the sum is divided by `first`, so that no number becomes too large in half precision.
        over = {"mean": whole.labels, "sequence": whole.rows, "sum": 1}[training.loss]
        if over != whole.first:
            torch._foreach_mul_(gradients, whole.first / over)
        if training.clip_value is not None:
            torch._foreach_clamp_min_(gradients, -training.clip_value)
            torch._foreach_clamp_max_(gradients, training.clip_value)
        norm = torch.nn.utils.get_total_norm(gradients)
        losses: Sequence[Tensor] = found.losses if self.processes.is_one else [whole.loss]
        numbers = torch.stack([exact(each) for each in (*losses, norm)])
        if not self.processes.is_one:
            self._check_together(found.attempts, found.losses, whole, norm)
        elif self.looks_late:
            self._mark_wrong(numbers)
        else:
            self._check(found.attempts, numbers[:-1].tolist(), float(norm))
        if training.clip is not None:
            self._clip(gradients, norm, training.clip)
        for _, one in self.optimisers:
            self.scaler.step(one)
        self.scaler.update()
        return Update(found.attempts, self.outcomes.copying(numbers), found.logged, whole)

    def _carry(self, rows: int) -> None:
        """Take the mean of what the batches of all processes leave to the next, where that has no rows."""
        if not self.task.carries_rows:
            self.carried = self.processes.averaged(self.carried, rows)
        elif any(each.dim() == 0 for each in self.carried):
            raise ConfigError(
                f"the loss of {type(self.task).__name__} carries on a number of the whole batch, not a row for each of "
                f"its rows: give the task the property carries_rows = False, or train in one process."
            )

    def _sums(self, found: Summed, ready: Ready, stop: Stop | None) -> Sums:
        """What a step adds up to in this process."""
        losses = found.losses or [torch.zeros((), device=self.device)]
        return Sums(
            labels=found.labels,
            rows=found.rows,
            weights=sum(found.weights),
            batches=len(found.weights),
            elements=ready.elements,
            first=found.first,
            loss=losses[0] if len(losses) == 1 else torch.stack(list(losses)).sum(),
            seconds=self.seconds,
            is_asked=stop is not None and stop.is_asked,
        )

    def _mark_wrong(self, numbers: Tensor) -> None:
        """Where a loss or the norm is not finite, let the optimisers skip this update and all after it."""
        if self.scaler.is_enabled():  # which makes them skip where a gradient is not
            return
        is_wrong = (0 * numbers).sum() != 0  # NaN, unless all are finite
        self.went_wrong = torch.maximum(self.went_wrong, is_wrong.to(self.went_wrong.dtype))
        for _, one in self.optimisers:
            one.found_inf = self.went_wrong  # type: ignore[attr-defined]

    def _clip(self, gradients: list[Tensor], norm: Tensor, most: float) -> None:
        """Scale the gradients so that their norm is `most` at most."""
        if self.looks_late:  # the device decides: times 1 changes nothing
            torch._foreach_mul_(gradients, (most / norm.double()).clamp(max=1.0).to(gradients[0].dtype))
        elif float(norm) > most:
            torch._foreach_mul_(gradients, most / float(norm))

    def _backward(self, parts: Sequence[Part], progress: float) -> Summed:
        """The gradients of a step's batches; where memory runs out, of their halves, one after the other."""
        carried = self.carried
        for attempt in range(MOST_ATTEMPTS):
            # What an attempt that failed held is released with its error, before the next one.
            is_last = attempt + 1 == MOST_ATTEMPTS
            try:
                return self._summed(parts, progress)
            except KernelsError:  # a warning has said so: what failed is now computed without kernels
                if is_last:
                    raise
            except (MemoryError, RuntimeError) as error:
                if not is_lack_of_memory(error):
                    raise
                is_last = is_last or attempt > 0 or not give_back_recordings(self.device, self.replaying)
            self._free(carried)
            if is_last:
                break
        halves = [half for part in parts for half in halved(part) if len(half.rows)]
        is_split = len(halves) > len(parts) and not carried
        if is_split:
            try:
                found = self._summed(halves, progress)
            except (MemoryError, RuntimeError) as error:
                if not is_lack_of_memory(error):
                    raise
            else:
                if not self.carried:  # else the halves would carry on the states of some of the rows
                    self._tell_of_halves()
                    return found
            self._free(carried)
        raise TrainingError(self._lack_of_memory(parts, is_split=is_split))

    def _tell_of_halves(self) -> None:
        if not self.is_split_told:
            self.progress.note(
                f"out of memory at step {self.position.step + 1:,}: its batch was computed in two halves, and so are "
                f"others that do not fit. Smaller batches (training.batch_tokens, training.batch_size) avoid this"
            )
        self.is_split_told = True

    def _free(self, carried: Carried) -> None:
        """Give back what an attempt that failed has taken."""
        self.carried = carried
        for parameter in self.parameters:
            parameter.grad = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _lack_of_memory(self, parts: Sequence[Part], *, is_split: bool) -> str:
        """What was too large for the memory, and what to do."""
        rows = max((part.rows for part in parts), key=lambda each: int(self.task.lengths(Rows.of(each)).sum()))
        lengths = self.task.lengths(Rows.of(rows))
        longest = int(lengths.argmax())
        examples = "1 example" if len(rows) == 1 else f"{len(rows):,} examples"
        also = ", also with the batch in two halves" if is_split else ""
        return (
            f"out of memory at step {self.position.step + 1:,}{also}: "
            f"the batch has {examples} of {int(lengths.min()):,} to {int(lengths.max()):,} elements, the longest is "
            f"{place_of(self.task, rows[longest])}. Train with smaller batches (training.batch_tokens or "
            f"training.batch_size) or a smaller model, or remove very long examples."
        )

    def _summed(self, parts: Sequence[Part], progress: float) -> Summed:
        """The gradients of some batches, added up."""
        for parameter in self.parameters:
            parameter.grad = None
        count, first = 0, 0
        attempts: list[Attempt] = []
        losses: list[Tensor] = []
        weights: list[float] = []
        logged: dict[str, float] = {}
        for number, part in enumerate(parts):
            if not len(part.rows):  # they are all in other processes
                continue
            attempt = Attempt(part, self.position.epoch, self.position.step, number, self.carried, progress)
            loss = self._added(attempt, first, is_one=len(parts) == 1)
            if loss.labels == 0:
                continue
            first = first or loss.labels
            attempts.append(attempt)
            losses.append(loss.total.detach())
            count += loss.labels
            weights.append(loss.weight)
            logged |= loss.logged
            self.carried = loss.carried
        return Summed(attempts, losses, count, first, weights, logged)

    def _added(self, attempt: Attempt, first: int, *, is_one: bool) -> Loss:
        """The loss of a batch, whose gradients are added to those of the parameters: divided by the first's labels."""
        recurring, replaying = attempt.part.recurring, self.replaying
        if recurring is None or replaying is None or not replaying.is_on:
            loss = self._loss(attempt)
            if loss.labels:
                self.scaler.scale(loss.total / (first or loss.labels)).backward()
            return loss
        labels = recurring.labels
        if labels == 0:
            return Loss(torch.zeros((), device=self.device), 0)
        before = [parameter.grad for parameter in self.parameters]
        factor = self.scaler.scale(torch.full((), 1 / (first or labels), device=self.device))
        varying = self.task.varying(attempt.step)
        total, carried = replaying.step(
            recurring,
            attempt.carried,
            factor,
            list(varying.values()),
            lambda: self._seed(attempt),
            lambda batch, given, numbers: self._loss_of(
                batch, Moment(attempt.step, given, self.position.stalled, numbers, attempt.progress)
            ),
        )
        if not is_one:  # the next batch writes its gradients to the same place
            for parameter, earlier in zip(self.parameters, before, strict=True):
                if parameter.grad is not None:
                    parameter.grad = parameter.grad.clone() if earlier is None else earlier + parameter.grad
                else:
                    parameter.grad = earlier
        return Loss(total, labels, carried, recurring.weight, varying)

    def _loss(self, attempt: Attempt) -> Loss:
        """The loss of a batch. What is drawn in it depends on seed, step and number alone.

        Task.batch comes after the seed, so that it may draw too: how a word is cut into subwords, which tokens are
        hidden; one that draws nothing was called ahead. The rows come from Task.chosen, which only training asks and
        which may mark them for that.
        """
        part, carried = attempt.part, attempt.carried
        self._seed(attempt)
        batch = fitted(self.task.batch(part.rows) if part.batch is None else part.batch, self.model)
        return self._loss_of(batch, Moment(attempt.step, carried, self.position.stalled, progress=attempt.progress))

    def _seed(self, attempt: Attempt) -> None:
        seed = ((self.training.seed << 40) + (attempt.step << 8) + attempt.number) % LARGEST_SEED
        seed = (seed + (self.processes.rank << 54)) % LARGEST_SEED  # each process draws for rows of its own
        # torch.manual_seed keeps a traceback for each kind of device that was never used: a millisecond a step.
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _loss_of(self, batch: Any, moment: Moment) -> Loss:
        with self.in_precision():
            return self.task.loss(self.model, batch, moment)

    def in_precision(self) -> AbstractContextManager[object]:
        """Inside, products are computed in the type that training.precision names."""
        lower = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(self.training.precision)
        return torch.autocast(self.device.type, lower) if lower is not None else contextlib.nullcontext()

    def _refuse(self, what: str, attempt: Attempt) -> None:
        """End with a sentence that names step, layer and batch. The last checkpoint is from before."""
        raise TrainingError(self._refusal(what, attempt))

    def _refusal(self, what: str, attempt: Attempt) -> str:
        why = culprit(self.model, lambda: self._loss(attempt).total)
        places = [place_of(self.task, row) for row in attempt.part.rows]
        shown = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        return (
            f"{what} at step {attempt.step + 1} (epoch {attempt.epoch + 1}): {why}. The batch was {shown}. "
            f"Look at these examples, or train with a lower training.learning_rate or training.clip"
            + (f": --from {self.folder} starts from the last saved weights." if self._has_model() else ".")
        )

    def _progress(self, batches: int) -> float:
        """The share of training that is done, by whichever limit is nearest; the epoch has so many batches."""
        position, training = self.position, self.training
        shares = [0.0]
        if training.epochs is not None:
            shares.append((position.epoch + position.batch / max(1, batches)) / training.epochs)
        if training.steps is not None:
            shares.append(position.step / training.steps)
        if training.minutes is not None:
            shares.append(position.seconds / max(1e-9, 60 * training.minutes - self.validation_seconds))
        return min(1.0, max(shares))

    def _total_steps(self, batches: Batches) -> int | None:
        per_epoch = math.ceil(len(batches) / self.training.accumulate)
        limits = [per_epoch * self.training.epochs] if self.training.epochs is not None else []
        limits += [self.training.steps] if self.training.steps is not None else []
        return min(limits) if limits else None

    def _ended(self) -> str | None:
        """Why training is over, if it is."""
        position, training = self.position, self.training
        if training.steps is not None and position.step >= training.steps:
            return f"{training.steps} steps done"
        if training.epochs is not None and position.epoch >= training.epochs:
            return f"{training.epochs} epochs done"
        # The last weights are validated once more, within the time.
        still = 0.0 if position.validated == position.step else self.validation_seconds
        if training.minutes is not None and position.seconds + still >= 60 * training.minutes:
            return f"{training.minutes:g} minutes are over"
        if training.patience is not None and position.worse >= training.patience:
            return f"no better score for {position.worse} validations"
        if position.rows == 0:
            return "there is no example"
        return None

    def _is_time_to_validate(self, batches: int) -> bool:
        # Without examples there is nothing to score, and the last weights are those that will be kept.
        return bool(self.valid.examples) and self._is_due(batches)

    def _keep_for_average(self) -> None:
        """Take these weights into an average of those at validations."""
        if self.average is not None:
            self.average.keep(self.position.step)

    def _is_due(self, batches: int) -> bool:
        """Whether a validation would come after this step."""
        every = self.training.validate
        return self.position.step % every == 0 if every is not None else self.position.batch >= batches

    def _validate(self, log: Lines, stop: Stop) -> None:
        """Score the validation data; keep the weights if they are the best so far.

        Ctrl-C ends it at once, for no weight changes here; a resumed run begins with this validation again.
        """
        position = self.position
        if not self.valid.examples:  # without validation data the last weights are the best
            position.validated = position.best_step = position.step
            self.is_best_unsaved = True
            return
        self._tell(log, every=True)
        self._gather()
        told = self.processes.said_by_writer(lambda: self._validated(log, stop))
        if told is None:
            raise Interrupted(self.stopped or self._stopped_at_once())
        found = Validated(*told)
        loss, first = found.loss, found.scores[found.first]
        self.validation_seconds = found.seconds
        position.validated = position.step
        # Of equal scores, such as 0 at the beginning, the one with the lower loss is kept; patience waits for a better.
        is_lower = math.isfinite(loss) and (position.best_loss is None or loss < position.best_loss)
        is_best = found.is_better or (first == position.best and is_lower)
        if is_best:
            position.best, position.best_step = first, position.step
            position.best_loss = loss if math.isfinite(loss) else None
            self.is_best_unsaved = True
        for part, score in found.parts.items():
            assert position.best_parts is not None, "else none was scored"
            if score > position.best_parts.get(part, -math.inf):
                position.best_parts[part], position.best_part_steps[part] = score, position.step
                self.best_parts_unsaved.add(part)
        if found.is_better:
            position.worse = position.since_plateau = 0
        else:
            position.worse += 1
            position.since_plateau += 1
            if self.schedule.name == "plateau" and position.since_plateau > self.schedule.options["patience"]:
                position.plateaus, position.since_plateau = position.plateaus + 1, 0
        if math.isfinite(loss) and (position.lowest_loss is None or loss < position.lowest_loss):
            position.lowest_loss, position.since_lowest = loss, 0
        else:
            position.since_lowest += 1
            position.stalled = max(position.stalled, position.since_lowest)
        shown = found.scores | found.parts
        finite = {name: value for name, value in shown.items() if math.isfinite(value)}
        log.write(ValidLine(position.step, position.epoch, finite, loss, is_best, position.seconds))
        self.progress.valid(position.step, shown, found.first, is_best)
        if not self.processes.is_one:
            position.seconds = found.until

    def _validated(self, log: Lines, stop: Stop) -> Validated | None:
        """What the validation of these weights finds. Ctrl-C ends it at once: None, and everything is saved."""
        began = time.monotonic()
        try:
            with stop.at_once(lambda: self._stopped_after_step(log)):
                scores = self.scores()
                loss = scores.loss
                if loss is None:
                    loss = loss_of(self.validating, self.predicting, self.valid.rows)
                parts = {} if self.position.best_parts is None else self._scores_of_parts()
        except KeyboardInterrupt:
            self.stopped = self._stopped_after_step(log)
            return None
        is_better = scores.beats(self.position.best)
        seconds = time.monotonic() - began
        return Validated(dict(scores.values), parts, scores.first, is_better, loss, seconds, self.seconds)

    def scores(self) -> Scores:
        """Scores on the validation data as things stand, found as is usual during training."""
        outputs = outputs_to_score(self.validating, self.predicting, self.valid.rows, told=self.progress.validating)
        return self.validating.score(self.valid.examples, outputs)

    @torch.no_grad()
    def _scores_of_parts(self) -> dict[str, float]:
        """How good parts of the model are that are kept by a score of their own."""
        model = self.predicting
        was_training = model.training
        model.eval()
        found = dict(self.validating.scores_of_parts(model, self.valid.examples))
        model.train(was_training)
        return found

    def _has_model(self) -> bool:
        return (self.folder / MODEL).exists()


def marked(text: str) -> str:
    """A short mark of a text.

    >>> marked("text")
    '982d9e3eb996'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def halved(part: Part) -> tuple[Part, Part]:
    """The first and the second half of a batch's rows."""
    middle = len(part.rows) // 2
    return Part(part.rows[:middle]), Part(part.rows[middle:])


def summed(gradient: Tensor) -> Tensor:
    """A sparse gradient that names each row once. Autograd forgets that one has this form already."""
    rows = gradient._indices()[0]
    if bool((rows[1:] > rows[:-1]).all()):
        return gradient._coalesced_(True)
    return gradient.coalesce()
