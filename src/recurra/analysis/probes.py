"""What saliency explains of each task: which function of the network, and of which vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.analysis.gates import read_tokens
from recurra.analysis.saliency import MOST, Probe, explained
from recurra.data.store import Encoded
from recurra.encoders.recurrent_encoder import RecurrentEncoder
from recurra.errors import ConfigError, DataError
from recurra.models.searching import searched
from recurra.padding import Padded, moved
from recurra.tasks.classification import Classification
from recurra.tasks.language_model import LanguageModel
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.to_sequence import ToSequence
from recurra.text.vocabulary import END
from recurra.training.trained import Trained


def probe_of(model: Trained, example: Any, *, best: int = 1) -> Probe:
    """What there is to explain of a model's answer to an example; of sequence to sequence, of the best-th answer."""
    task = model.task
    if model.others:
        raise ConfigError("several runs answer as one here, each with vectors of its own: name one of them.")
    if isinstance(task, Classification):
        return _of_classes(model, task, example)
    if isinstance(task, Tagging):
        return _of_tags(model, task, example)
    if isinstance(task, LanguageModel):
        return _of_text(model, task, example)
    if isinstance(task, Seq2Seq):
        return _of_written(model, task, example, best)
    raise ConfigError(
        f"saliency is of tokens or frames that are read one after the other: there are none in {model.folder}, a "
        f"{task.name} model."
    )


def _batches(model: Trained, row: Encoded) -> Any:
    device = next(model.model.parameters()).device

    def batch(rows: int) -> Any:
        return moved(model.task.batch([row] * rows), device)

    return batch


def _of_classes(model: Trained, task: Classification, example: Any) -> Probe:
    network: Any = model.model
    series = (
        [each for each in network.encoders if isinstance(each, RecurrentEncoder)] if task.frames is not None else []
    )
    if not task.reads and not series:
        what = (
            "a picture" if task.is_pictured else "a bag of words" if task.frames is None else "frames by convolutions"
        )
        raise ConfigError(f"saliency is of what is read step by step, but {model.folder} reads {what}.")

    def read(some: Any) -> list[nn.Module]:
        """A network's first modules whose outputs are words, or frames."""
        return (
            [each.drop for each in some.encoders if isinstance(each, RecurrentEncoder)] if series else [*some.readers]
        )

    def answered(some: Any, batch: Any) -> Tensor:
        outputs, _ = some(batch)
        every = torch.stack([each.double() for each in outputs])
        if task.kind == "targets":
            return every.mean(0)
        p = (every.softmax(-1) if task.kind == "label" else every.sigmoid()).mean(0)
        return p.logit(1e-15)

    row = task.encode(example)
    batch = _batches(model, row)
    with torch.no_grad():
        [scores] = answered(model.model, batch(1))
    if task.kind == "targets":
        names, chosen = [f"number {place + 1}" for place in range(len(scores))], list(range(len(scores)))
    else:
        chosen = [int(scores.argmax())]
        if task.kind == "labels":
            likely = task.settings.decoding.threshold
            chosen = [place for place, score in enumerate(scores.sigmoid().tolist()) if score >= likely] or chosen
        names = [task.labels.tokens[place] for place in chosen]
    return Probe(
        read_tokens(model, example),
        names,
        model.model,
        read,
        batch,
        lambda some, of: answered(some, of)[:, chosen],
        "value, in spreads of training" if task.kind == "targets" else "log odds",
    )


def _of_tags(model: Trained, task: Tagging, example: Any) -> Probe:
    network: Any = model.model
    if not len(network.heads):
        raise ConfigError(f"saliency is of tags, but {model.folder} gives none.")
    row = task.encode(example)
    batch, tokens = _batches(model, row), read_tokens(model, example)
    [output] = task.predict(network, batch(1))
    tags = torch.from_numpy(output.tags[0]).long()
    names = [task.tags[0].tokens[number] for number in output.tags[0].tolist()]

    def log_odds(some: Any, of: Any) -> Tensor:
        """log p / (1 − p) of each chosen tag, by what it is read from: of a CRF, before its neighbours have a say."""
        scores = some.heads[0].readout(some.features(of).values).double()
        chosen = tags.to(scores.device).expand(len(scores), -1).unsqueeze(2)
        others = scores.scatter(2, chosen, -torch.inf).logsumexp(2)
        return (scores.gather(2, chosen).squeeze(2) - others)[:, : len(tokens)]

    return Probe(
        tokens,
        [f"{token}/{tag}" for token, tag in zip(tokens, names, strict=True)][: explained(len(tokens))],
        network,
        lambda some: [some.drop],  # type: ignore[list-item]  # its first dropout has words and frames alike
        batch,
        log_odds,
        "log odds",
        left_out=max(0, len(tokens) - explained(len(tokens))),
    )


def _of_text(model: Trained, task: LanguageModel, example: Any) -> Probe:
    whole = _batches(model, task.encode(example))

    def batch(rows: int) -> Any:
        """Only what is explained is read, for no token depends on later ones."""
        read = whole(rows)
        inputs = Padded(read.inputs.values[:, :MOST], read.inputs.lengths.clamp(max=MOST))
        return read._replace(inputs=inputs, targets=read.targets[:, :MOST].contiguous())

    every = read_tokens(model, example)
    return Probe(
        every[:MOST],
        task.vocabulary.tokens_of(batch(1).targets[0].tolist()),
        model.model,
        lambda network: [network.embedding],  # type: ignore[list-item]  # an Embedding
        batch,
        lambda network, some: network.log_likelihoods(some)[0],
        "log p",
        left_out=max(0, len(every) - MOST),
    )


class Hypothesis(NamedTuple):
    """A written answer: its ids, with the end where it has one, what they are called, and the row of both sides."""

    ids: list[int]
    tokens: list[str]
    row: Encoded


def hypothesis_of(model: Trained, example: Any, *, best: int = 1) -> Hypothesis:
    """The best-th answer to an example as a search finds it."""
    task: Any = model.task
    assert isinstance(task, ToSequence), "what writes"
    if task.settings.decoding.search == "given":
        raise DataError("there is no answer to explain: decoding.search = given writes nothing.")
    network: Any = model.model
    row = {name: value for name, value in task.encode(example).items() if name != "target"}
    with torch.no_grad():
        [found] = searched(network, _batches(model, row)(1), task.settings.decoding, task.words)
    if len(found) < best:
        raise DataError(f"--best {best}: the search found {len(found)} answer{'s' * (len(found) != 1)}.")
    ids = found[best - 1].tokens
    return Hypothesis(ids, named(task, example, ids), {**row, "target": torch.tensor(ids).numpy()})


def named(task: Any, example: Any, ids: Sequence[int]) -> list[str]:
    """What written ids are called, copied words included."""
    from recurra.sequences.written import Answer

    tokens = task.texts.target.vocabulary.tokens
    names = [tokens[number] if number < len(tokens) else f"\0{number}" for number in ids]
    return list(task.spelled(example, Answer(names, "", 0.0, 0.0)).tokens)


def _of_written(model: Trained, task: Seq2Seq, example: Any, best: int) -> Probe:
    found = hypothesis_of(model, example, best=best)

    def log_p(network: Any, batch: Any) -> Tensor:
        likelihoods: Tensor = network.token_log_likelihoods(batch)
        return likelihoods.view(len(batch.source.lengths), -1)

    tokens = read_tokens(model, example)
    title = f"{task.shown(example)} → {task.texts.target.tokenizer.join([t for t in found.tokens if t != END])}"
    return Probe(
        tokens,
        found.tokens[: explained(len(tokens))],
        model.model,
        lambda network: [network.embedding if task.texts.source is not None else network.from_frames],  # type: ignore[list-item]
        _batches(model, found.row),
        log_p,
        "log p",
        title,
        max(0, len(found.tokens) - explained(len(tokens))),
    )
