"""What a server measures about itself, in the text format that Prometheus reads. Only the loop's thread writes it."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import recurra

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Labels: TypeAlias = dict[str, str]


class Counter:
    """How often something has happened, by its labels."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self.counts: dict[tuple[tuple[str, str], ...], int] = {}

    def add(self, **labels: str) -> None:
        key = tuple(labels.items())
        self.counts[key] = self.counts.get(key, 0) + 1

    def lines(self) -> Iterable[str]:
        yield from _heading(self.name, self.about, "counter")
        for key, count in self.counts.items():
            yield f"{self.name}{_labels(key)} {count}"


class Histogram:
    """How many of some values lie at or below each of some bounds, and their sum, by labels."""

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self.name, self.about, self.bounds = name, about, tuple(bounds)
        self.counts: dict[tuple[tuple[str, str], ...], list[int]] = {}
        self.sums: dict[tuple[tuple[str, str], ...], float] = {}

    def add(self, value: float, **labels: str) -> None:
        key = tuple(labels.items())
        counts = self.counts.setdefault(key, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[key] = self.sums.get(key, 0.0) + value

    def lines(self) -> Iterable[str]:
        yield from _heading(self.name, self.about, "histogram")
        for key, counts in self.counts.items():
            below = 0
            for bound, count in zip((*map(str, self.bounds), "+Inf"), counts, strict=True):
                below += count
                yield f"{self.name}_bucket{_labels((*key, ('le', bound)))} {below}"
            yield f"{self.name}_sum{_labels(key)} {self.sums[key]:.6f}"
            yield f"{self.name}_count{_labels(key)} {below}"


class Gauge:
    """What is so at the moment at which it is asked for."""

    def __init__(self, name: str, about: str, read: Callable[[], Iterable[tuple[Labels, float]]]) -> None:
        self.name, self.about, self.read = name, about, read

    def lines(self) -> Iterable[str]:
        yield from _heading(self.name, self.about, "gauge")
        for labels, value in self.read():
            yield f"{self.name}{_labels(tuple(labels.items()))} {value:.17g}"


class Metrics:
    """All that is measured."""

    def __init__(self) -> None:
        self.requests = Counter("recurra_requests_total", "Requests by run, endpoint and status of the answer.")
        self.reloads = Counter("recurra_reloads_total", "Runs that were trained again and loaded, or could not be.")
        self.seconds = Histogram(
            "recurra_request_seconds", "From the headers of a request to the end of its answer.", SECONDS
        )
        self.waited = Histogram("recurra_queue_seconds", "From the arrival in a queue to the computation.", SECONDS)
        self.together = Histogram("recurra_batch_requests", "Requests that were computed with a request.", SIZES)
        began = time.time()
        self.gauges = [
            Gauge("recurra_info", "The version.", lambda: [({"version": recurra.__version__}, 1)]),
            Gauge("process_start_time_seconds", "Unix time of the start.", lambda: [({}, began)]),
            Gauge("process_resident_memory_bytes", "Memory in use.", lambda: [({}, each) for each in _resident()]),
        ]

    def text(self) -> str:
        every: list[Counter | Histogram | Gauge] = [
            self.requests,
            self.reloads,
            self.seconds,
            self.waited,
            self.together,
            *self.gauges,
        ]
        return "\n".join(line for each in every for line in each.lines()) + "\n"


def _heading(name: str, about: str, kind: str) -> Iterable[str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _labels(pairs: Sequence[tuple[str, str]]) -> str:
    r"""Labels as they are written.

    >>> print(_labels([("run", 'a "b"\\c')]))
    {run="a \"b\"\\c"}
    """
    escaped = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
    written = (f'{name}="{"".join(escaped.get(letter, letter) for letter in value)}"' for name, value in pairs)
    return "{" + ",".join(written) + "}" if pairs else ""


def _resident() -> list[int]:
    """Bytes of this process in memory; nothing where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return [int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")]
    except (OSError, ValueError):
        return []
