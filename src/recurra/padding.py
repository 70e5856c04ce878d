"""The one batch type: rows of different lengths, padded on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.errors import ConfigError, DataError
from recurra.recording import refuse_while_recording, twin

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Padded(NamedTuple):
    """A batch of sequences of different lengths in one tensor, padded on the right.

        values   (B, T, ...)   what lies beyond a row's length is never read
        lengths  (B,)          whole numbers on the CPU, 0 to T

    >>> batch = pad([torch.ones(3, 2), torch.ones(1, 2)])
    >>> batch.values.shape, batch.lengths.tolist()
    (torch.Size([2, 3, 2]), [3, 1])
    >>> batch.mask.tolist()
    [[True, True, True], [True, False, False]]
    """

    values: Tensor
    lengths: Tensor

    @classmethod
    def full(cls, values: Tensor) -> Padded:
        """A batch without padding: all T steps of every row are real.

        >>> Padded.full(torch.zeros(2, 5, 3)).lengths.tolist()
        [5, 5]
        """
        if not isinstance(values, Tensor) or values.dim() < 2:
            found = tuple(values.shape) if isinstance(values, Tensor) else f"a {type(values).__name__}"
            raise DataError(f"Padded.full takes a tensor of shape (rows, steps, ...), but got {found}.")
        return cls(values, torch.full((values.shape[0],), values.shape[1], dtype=torch.long))

    @property
    def is_full(self) -> bool:
        """Whether the batch has no padding; in a program that torch records for any lengths, it may have some."""
        if torch.compiler.is_compiling():
            return False
        # As a list: torch takes longer to compare a few numbers than Python does.
        return bool(self.lengths.tolist() == [self.values.shape[1]] * len(self.lengths))

    @property
    def mask(self) -> Tensor:
        """(B, T), True on real steps, on the device of the values."""
        steps = torch.arange(self.values.shape[1], device=self.values.device)
        return steps < beside(self.lengths, self.values).unsqueeze(1)

    def widened(self, rows: int, steps: int) -> Padded:
        """The same rows with more padding, and empty rows after them.

        >>> Padded.full(torch.ones(1, 2)).widened(2, 3)
        Padded(values=tensor([[1., 1., 0.],
                [0., 0., 0.]]), lengths=tensor([2, 0]))
        """
        return Padded(widened(self.values, rows, steps), widened(self.lengths, rows))

    def zeroed(self) -> Padded:
        """The same rows with zeros on padding, so that padding values, even NaN, affect neither values nor gradients.

        >>> Padded(torch.full((1, 2, 1), torch.nan), torch.tensor([0])).zeroed().values.flatten().tolist()
        [0.0, 0.0]
        """
        if self.is_full:
            return self
        beyond = ~self.mask
        return Padded(self.values.masked_fill(beyond[(...,) + (None,) * (self.values.dim() - 2)], 0), self.lengths)

    def reversed(self) -> Padded:
        """Each row read from its last real step to its first; padding stays on the right.

        >>> pad([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).reversed().values.tolist()
        [[3, 2, 1], [5, 4, 0]]
        """
        if self.is_full:
            return Padded(self.values.flip(1), self.lengths)
        steps = torch.arange(self.values.shape[1], device=self.values.device)
        mirrored = beside(self.lengths, self.values).unsqueeze(1) - 1 - steps
        order = torch.where(mirrored >= 0, mirrored, steps)
        rows = torch.arange(self.values.shape[0], device=self.values.device).unsqueeze(1)
        return Padded(self.values[rows, order], self.lengths)

    def checked(self) -> Padded:
        """Returns itself, or raises a DataError if the values or the lengths are invalid."""
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            raise ConfigError(
                "torch.jit.trace would keep the number of steps and the lengths of this batch for all others: use "
                "torch.export.export, or `recurra export`."
            )
        if not isinstance(self.values, Tensor):
            raise DataError(f"the values of a Padded batch must be a tensor, but are a {type(self.values).__name__}.")
        if self.values.dim() < 2:
            raise DataError(
                f"a Padded batch needs values of shape (rows, steps, ...), but these have shape "
                f"{tuple(self.values.shape)}. Add the missing dimension, or use pad([...]) on a list of sequences."
            )
        rows, steps = self.values.shape[:2]
        if not isinstance(self.lengths, Tensor) or self.lengths.dtype not in WHOLE:
            found = self.lengths.dtype if isinstance(self.lengths, Tensor) else type(self.lengths).__name__
            raise DataError(
                f"lengths must be a tensor of whole numbers, but found {found}. Use torch.tensor([...]), or "
                f"Padded.full(values) where every row is {steps} long."
            )
        if self.lengths.shape != (rows,):
            raise DataError(
                f"lengths must hold one number per row, {rows} here, but its shape is {tuple(self.lengths.shape)}."
            )
        if self.lengths.device.type != "cpu":
            raise DataError(f"lengths must be on the CPU, but are on {self.lengths.device}. Call lengths.cpu().")
        if torch.compiler.is_compiling():  # the numbers are not known yet
            return Padded(self.values, self.lengths.long())
        lengths = self.lengths.tolist()
        if rows and (longest := max(lengths)) > steps:
            row = lengths.index(longest)
            raise DataError(
                f"row {row} has length {longest}, but the batch has only {steps} steps. Lengths must be between 0 "
                f"and {steps}."
            )
        if rows and (shortest := min(lengths)) < 0:
            row = lengths.index(shortest)
            raise DataError(f"row {row} has length {shortest}, but lengths must be between 0 and {steps}.")
        return Padded(self.values, self.lengths.long())


def pad(sequences: Sequence[Tensor]) -> Padded:
    """Pad sequences of shape (length, ...) with zeros to one batch.

    >>> pad([torch.tensor([1, 2]), torch.tensor([3])]).values.tolist()
    [[1, 2], [3, 0]]
    """
    if not isinstance(sequences, list | tuple):
        raise DataError(f"pad takes a list of sequences, but got a {type(sequences).__name__}.")
    if not sequences:
        raise DataError("pad needs at least one sequence, but the list is empty.")
    for number, sequence in enumerate(sequences):
        if not isinstance(sequence, Tensor) or sequence.dim() == 0:
            raise DataError(f"sequence {number} must be a tensor of shape (length, ...), but is {sequence!r}.")
        if sequence.shape[1:] != sequences[0].shape[1:] or sequence.dtype != sequences[0].dtype:
            raise DataError(
                f"sequence {number} has shape {tuple(sequence.shape)} of {sequence.dtype}, but sequence 0 has "
                f"{tuple(sequences[0].shape)} of {sequences[0].dtype}: all dimensions except the first, and the "
                "dtype, must agree."
            )
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return Padded(torch.nn.utils.rnn.pad_sequence(list(sequences), batch_first=True), lengths)


def inputs_of(x: object, size: int, reader: str) -> Padded:
    """A batch (B, T, size) for a network of that name; a DataError where it is none."""
    if not isinstance(x, Padded):
        raise DataError(
            f"a {reader} needs a Padded batch, but got a {type(x).__name__}. Pass Padded(x, lengths), or "
            "Padded.full(x) if no row is padded."
        )
    x = x.checked()
    if x.values.dim() != 3 or x.values.shape[-1] != size:
        raise DataError(
            f"this {reader} needs inputs of shape (rows, steps, {size}), but the batch has shape "
            f"{tuple(x.values.shape)}."
        )
    return x


class Grid(NamedTuple):
    """Pictures of different sizes, or maps of features, in one tensor, padded below and on the right.

        values   (B, C, H, W)   what lies beyond a picture's size is never read
        sizes    (B, 2)         rows and columns that are real: whole numbers on the CPU

    >>> batch = gridded([torch.ones(1, 2, 3), torch.ones(1, 3, 1)])
    >>> batch.values.shape, batch.sizes.tolist()
    (torch.Size([2, 1, 3, 3]), [[2, 3], [3, 1]])
    >>> batch.mask[1].int().tolist()
    [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
    """

    values: Tensor
    sizes: Tensor

    @property
    def is_full(self) -> bool:
        """True where nothing is padding."""
        return bool(self.sizes.tolist() == [list(self.values.shape[2:])] * len(self.sizes))

    @property
    def mask(self) -> Tensor:
        """(B, H, W), True on real places, on the device of the values."""
        height, width = self.values.shape[2:]
        sizes = beside(self.sizes, self.values)
        rows = torch.arange(height, device=self.values.device) < sizes[:, :1]
        columns = torch.arange(width, device=self.values.device) < sizes[:, 1:]
        return rows.unsqueeze(2) & columns.unsqueeze(1)

    def zeroed(self) -> Grid:
        """The same pictures with zeros for padding: whatever was there, even NaN, is gone from values and gradients."""
        if self.is_full:
            return self
        return Grid(self.values.masked_fill(~self.mask.unsqueeze(1), 0), self.sizes)


def gridded(pictures: Sequence[Tensor]) -> Grid:
    """Pictures (C, H, W) of one number of channels as a batch, zeros for padding."""
    sizes = torch.tensor([picture.shape[1:] for picture in pictures], dtype=torch.long)
    height, width = sizes.amax(0).tolist()
    values = pictures[0].new_zeros(len(pictures), len(pictures[0]), height, width)
    for row, picture in zip(values, pictures, strict=True):
        row[:, : picture.shape[1], : picture.shape[2]] = picture
    return Grid(values, sizes)


def fitted(batch: Any, model: nn.Module) -> Any:
    """A batch, a tuple of tensors and of more such, as a model takes it: on its device, with numbers like its weights.

    Lengths and sizes stay on the CPU.

    >>> batch = pad([torch.ones(3, 2), torch.ones(1, 2)])
    >>> fitted((batch, torch.tensor([1, 2])), nn.Linear(2, 2).double())[0].values.dtype
    torch.float64
    """
    weight = next(model.parameters())
    return _fitted(batch, weight.device, weight.dtype)


def beside(numbers: Tensor, like: Tensor) -> Tensor:
    """Numbers of the CPU, such as lengths, on the device of another tensor; a GPU is not waited for.

    >>> beside(torch.tensor([3, 1]), torch.zeros(2)).tolist()
    [3, 1]
    """
    if like.device.type != "cuda" or numbers.device.type != "cpu":
        return numbers.to(like.device)
    if (known := twin(numbers)) is not None:
        return known
    refuse_while_recording(like, "a tensor")
    return numbers.pin_memory().to(like.device, non_blocking=True)  # from other memory, Python would wait for the copy


def exact(numbers: Tensor) -> Tensor:
    """Numbers in float64; of a device that has none on the CPU.

    >>> exact(torch.tensor([True, False])).tolist()
    [1.0, 0.0]
    """
    return (numbers if longest(numbers.device) == torch.float64 else numbers.cpu()).double()


WITHOUT_FLOAT64 = {"mps"}
"""Types of devices whose longest numbers are those of float32."""


def longest(device: torch.device) -> torch.dtype:
    """The type of the longest numbers that a device has.

    >>> longest(torch.device("cpu")), longest(torch.device("mps"))
    (torch.float64, torch.float32)
    """
    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def lengthened(numbers: Tensor) -> Tensor:
    """Numbers as the longest that their device has.

    >>> lengthened(torch.tensor([0.5, 2.0]).half()).dtype
    torch.float64
    """
    return numbers.to(longest(numbers.device))


def coarser(size: int, *, parts: int = 4, least: int = 4) -> int:
    """The next of a few sizes, which batches padded to these have again and again.

    parts    so many sizes there are from one power of two to the next
    least    and so far apart they are at least

    >>> [coarser(size) for size in (0, 3, 9, 17, 21, 50, 100, 129)]
    [0, 4, 12, 20, 24, 56, 112, 160]
    >>> [coarser(size, parts=2, least=8) for size in (3, 9, 17, 21, 50)]
    [8, 16, 24, 24, 64]
    """
    step = max(least, (1 << max(0, size.bit_length() - 1)) // parts)
    return -(-size // step) * step


def widened(tensor: Tensor, *sizes: int, fill: float = 0) -> Tensor:
    """A tensor in the corner of a larger one, whose first dimensions have these sizes.

    >>> widened(torch.tensor([[1, 2]]), 2, 3, fill=9).tolist()
    [[1, 2, 9], [9, 9, 9]]
    """
    found = tensor.new_full((*sizes, *tensor.shape[len(sizes) :]), fill)
    found[tuple(slice(n) for n in tensor.shape)] = tensor
    return found


def pinned(batch: Any) -> Any:
    """The batch, lengths and sizes included, in memory from which a GPU copies without making Python wait."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, tuple):
        parts = [pinned(part) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return batch


def _fitted(batch: Any, device: torch.device, dtype: torch.dtype) -> Any:
    if isinstance(batch, Padded | Grid):
        return batch._replace(values=_fitted(batch.values, device, dtype))
    if isinstance(batch, Tensor):
        return batch.to(device, dtype if batch.is_floating_point() else batch.dtype, non_blocking=True)
    if isinstance(batch, tuple):
        parts = [_fitted(part, device, dtype) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return batch
