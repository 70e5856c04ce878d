"""A server under load: answers, errors, times, memory; beside `recurra predict` of the same inputs.

    python benchmarks/serving.py RUN [--clients 64] [--seconds 60] [--overload 10] [--deadline 5] [--inputs FILE]
                                     [--each 16]

RUN is served on a free port of this machine, and asked by clients that each send the next request when they have the
answer to the last one; inputs are the samples of the run, or the lines of a file, and --each is the number of inputs in
a request. Then, with --overload, so many times
the clients ask at once, each again after a second where it is refused, as Retry-After says. The times of requests are
those of the clients, which share the machine's cores with the server, so that ratios tell more than times.

Asked: no error; the 99th percentile of times below five times the median; memory that grows by less than 5 % after the
first quarter of the time; 70 % of the inputs per second that `predict` answers in batches of as many inputs as there
are clients. Under overload: no status but 200, 429 and 503, the 99th percentile of answers within the deadline, and
answers as fast as before 5 seconds after it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

PREDICT = """
import io, json, sys, time
import recurra
from recurra.commands.answers import listed
from recurra.exported import is_exported
from recurra.text.json_file import json_text
folder, size, detail, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "detail", float(sys.argv[4])
if not is_exported(folder):
    import torch
    torch.set_num_threads(1)
inputs = json.load(sys.stdin)
model = recurra.load(folder)
some = [inputs[number % len(inputs)] for number in range(size)]
began, count = None, 0
ends = time.monotonic() + 3 * seconds
while began is None or time.monotonic() < ends:
    if began is None and time.monotonic() > ends - seconds:  # first it is compiled
        began, cpu, count = time.monotonic(), time.process_time(), 0
    printed = io.StringIO()
    for answer in model.predict(some, detail=detail):
        if detail:  # as `recurra predict --json` prints it
            whole = {"input": answer.input, "output": answer.output, "score": round(answer.score, 6), **answer.detail}
            print(json_text(whole, default=listed), file=printed)
        else:
            print(answer.output, file=printed)
    count += size
print(count / (time.monotonic() - began), (time.process_time() - cpu) / count)
"""


AGAIN = 1.0
"""Seconds after which a client that was refused asks again."""


class Load(NamedTuple):
    """What some clients have seen for some seconds."""

    statuses: Counter[str]
    times: list[float]  # of answers
    seconds: float

    @property
    def rate(self) -> float:
        return len(self.times) / self.seconds

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.times, share)) if self.times else float("nan")

    def text(self) -> str:
        statuses = ", ".join(f"{count:,} × {status}" for status, count in sorted(self.statuses.items()))
        return (
            f"{statuses}; {self.rate:,.0f} answers/s; p50 {1000 * self.quantile(0.5):.1f} ms, "
            f"p99 {1000 * self.quantile(0.99):.1f} ms, longest {1000 * max(self.times, default=0):.0f} ms"
        )


class Client(asyncio.Protocol):
    """One connection that sends the next request when it has an answer; it connects again where it is closed."""

    def __init__(self, requests: Sequence[bytes], first: int, load: Load, ends: float) -> None:
        self.requests, self.number, self.load, self.ends = requests, first, load, ends
        self.done = asyncio.get_running_loop().create_future()
        self.received = b""
        self.length = -1
        self.is_waiting = False
        self.later: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        if time.monotonic() >= self.ends:
            self.transport.close()
            return
        self.number += 1
        self.is_waiting, self.began = True, time.monotonic()
        self.transport.write(self.requests[self.number % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.length < 0:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            found = re.search(rb"content-length: (\d+)", self.received[:end], re.IGNORECASE)
            assert found is not None
            self.length = end + 4 + int(found[1])
        if len(self.received) >= self.length:
            status = self.received[9:12].decode()
            self.load.statuses[status] += 1
            if status == "200":
                self.load.times.append(time.monotonic() - self.began)
            self.received, self.length, self.is_waiting = b"", -1, False
            if status in ("429", "503"):
                self.later = asyncio.get_running_loop().call_later(AGAIN, self.ask)
            else:
                self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        if self.later is not None:
            self.later.cancel()
        if self.is_waiting:
            self.load.statuses[f"connection lost ({type(error).__name__})"] += 1
        if not self.done.done():
            self.done.set_result(None)


async def loaded(port: int, requests: Sequence[bytes], clients: int, seconds: float) -> Load:
    """What so many clients see at once."""
    loop, load = asyncio.get_running_loop(), Load(Counter(), [], seconds)
    ends = time.monotonic() + seconds

    async def asking(first: int) -> None:
        while time.monotonic() < ends:
            try:
                _, client = await loop.create_connection(lambda: Client(requests, first, load, ends), "127.0.0.1", port)
            except OSError as error:
                load.statuses[f"not connected ({type(error).__name__})"] += 1
                await asyncio.sleep(0.1)
            else:
                await client.done

    await asyncio.wait_for(asyncio.gather(*(asking(7 * number) for number in range(clients))), seconds + 60)
    return load


@contextmanager
def served(run: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of a run that is ready, and its port."""
    command = [sys.executable, "-m", "recurra", "serve", run, "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found is not None
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/ready", timeout=10):
                        break
                except OSError:
                    time.sleep(0.1)
            yield process, int(found[1])
        finally:
            process.terminate()


def fetched(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return json.load(answer)


def requests_for(name: str, inputs: Sequence[object], deadline: float | None = None, each: int = 1) -> list[bytes]:
    """For each input a request that begins with it, as it travels."""
    found = []
    for first in range(len(inputs)):
        body = json.dumps({"inputs": [inputs[(first + number) % len(inputs)] for number in range(each)]}).encode()
        lines = [f"POST /api/runs/{quote(name)}/predict HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        lines += [f"X-Deadline-Seconds: {deadline}"] if deadline else []
        found.append("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
    return found


def resident(process: int) -> float:
    """Megabytes of a process in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_seconds(process: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def predicted(run: str, inputs: Sequence[object], clients: int, how: str, seconds: float) -> tuple[float, float]:
    """Inputs per second that one process predicts in batches of as many as there are clients, and its CPU for one."""
    command = [sys.executable, "-c", PREDICT, run, str(clients), how, str(seconds)]
    done = subprocess.run(command, input=json.dumps(inputs), capture_output=True, text=True, check=True)
    rate, cpu = map(float, done.stdout.split())
    return rate, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--overload", type=int, default=0, help="times the requests that the queue holds; 0: none")
    parser.add_argument("--deadline", type=float, default=5)
    parser.add_argument("--queue", type=int, default=64)
    parser.add_argument("--inputs", help="a file with an input on each line")
    parser.add_argument("--each", type=int, default=1, help="inputs in each request")
    options = parser.parse_args()
    with served(options.run, "--queue", str(max(options.queue, options.clients))) as (process, port):
        [about, *_] = fetched(port, "/api/runs")["runs"]
        name = about["name"]
        inputs = fetched(port, f"/api/runs/{quote(name)}/samples")["samples"]
        if options.inputs:
            inputs = Path(options.inputs).read_text("utf-8").splitlines()
        if not inputs:
            parser.error(f"{options.run} has no samples: name a file of inputs with --inputs")
        requests = requests_for(name, inputs, each=options.each)
        print(
            f"{options.run}: {about['described']}; {len(inputs)} inputs, {options.clients} clients, "
            f"{options.each} in each request"
        )
        warm = asyncio.run(loaded(port, requests, options.clients, max(2.0, options.seconds / 4)))
        print(f"warm-up:  {warm.text()}")
        before, cpu = resident(process.pid), processor_seconds(process.pid)
        load = asyncio.run(loaded(port, requests, options.clients, options.seconds))
        print(f"load:     {load.text()}; p99/p50 {load.quantile(0.99) / load.quantile(0.5):.1f}")
        cpu, after = processor_seconds(process.pid) - cpu, resident(process.pid)
        print(f"memory:   {before:.0f} MB, then {after:.0f} MB ({100 * (after / before - 1):+.1f} %)")
        spent = cpu / max(1, len(load.times))
        print(f"cpu:      {cpu / options.seconds:.2f} cores, {1000 * spent:.2f} ms an answer")
        if options.overload:
            many = options.overload * options.clients
            crowd = asyncio.run(
                loaded(
                    port,
                    requests_for(name, inputs, options.deadline, options.each),
                    many,
                    max(5.0, options.seconds / 4),
                )
            )
            print(f"overload: {many} clients: {crowd.text()}; the deadline is {options.deadline:g} s")
            time.sleep(5)
            again = asyncio.run(loaded(port, requests, options.clients, max(2.0, options.seconds / 8)))
            print(f"after it: {again.text()}")
    for how in ("plain", "detail"):
        rate, each = predicted(options.run, inputs, options.clients, how, min(10.0, options.seconds / 3))
        what = "`predict`" if how == "plain" else "`predict --json`"
        served_rate, served_cpu = load.rate * options.each, spent / options.each
        beside = f"served {100 * served_rate / rate:.0f} %, by CPU {100 * each / served_cpu:.0f} %"
        print(
            f"{what} in batches of {options.clients}: {rate:,.0f} inputs/s, {1000 * each:.2f} ms of CPU each; {beside}"
        )


if __name__ == "__main__":
    main()
