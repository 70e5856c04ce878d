"""What an evil client does to a server while good ones ask it: they are served, nothing breaks, nothing leaks.

In `make test` each attack once; in `make slow-test` all of them for a minute, four at a time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

import pytest

from recurra.runtime.application import application, files_of_page
from recurra.runtime.hosted import Hosted
from recurra.runtime.limits import Limits
from recurra.runtime.service import Service
from tests.runtime.listening import asked, at_work, connected, next_piece, posted, received, request

PATH = "/api/runs/tags/predict"
GOOD = request(PATH, "Content-Type: application/json", method="POST", body=b'{"inputs": ["the cat"]}')
PATIENCE = 10.0
"""Seconds in which a good client must be answered, on a machine that does much else."""


LIMITS = Limits(body_seconds=2.0)
"""Usual ones, but for the time in which a body must be there: the attack that sends one slowly waits for its end."""


@pytest.fixture(scope="module")
def port(runs: dict[str, Hosted]) -> Iterator[int]:
    runs["tags"].predict(["the cat"], {})
    with at_work(application(Service(runs, limits=LIMITS)), LIMITS) as found:
        yield found


def mistakes(port: int) -> list[str]:
    """The requests, of all that the server has ever answered, whose status says that the server is to blame.

    503 says that it is busy, and is no mistake.
    """
    lines = asked(port, request("/metrics")).body.decode().splitlines()
    counted = [line for line in lines if line.startswith("recurra_requests_total{")]
    assert any('status="200"' in line for line in counted)
    return [line for line in counted if 'status="5' in line and 'status="503"' not in line]


@contextmanager
def good_clients(port: int) -> Iterator[None]:
    """Inside, two clients ask all the time, one on new connections; each is answered rightly and soon."""
    is_over, answers, longest = threading.Event(), Counter[tuple[int, bytes]](), [0.0]

    def ask(keep: bool) -> None:
        connection = connected(port)
        while not is_over.is_set():
            began = time.monotonic()
            connection.sendall(GOOD)
            found = received(connection)
            answers[found.status, found.body.partition(b'"seconds"')[0]] += 1
            longest[0] = max(longest[0], time.monotonic() - began)
            if not keep:
                connection.close()
                connection = connected(port)
        connection.close()

    threads = [threading.Thread(target=ask, args=[keep]) for keep in (True, False)]
    for each in threads:
        each.start()
    try:
        yield
        before = answers.total()
        ends = time.monotonic() + PATIENCE
        while answers.total() < before + 4 and time.monotonic() < ends:
            time.sleep(0.01)
        assert answers.total() >= before + 4
    finally:
        is_over.set()
        for each in threads:
            each.join()
    assert [status for status, _ in answers] == [200], answers  # and so all bodies are the same
    assert longest[0] < PATIENCE


def half_open(port: int) -> None:
    with ExitStack() as opened:
        for number in range(200):
            opened.enter_context(connected(port)).sendall(GOOD[: number % 150])
        assert asked(port, GOOD).status == 200


def trickled(port: int) -> None:
    """A byte each 20 ms, until the server has had enough."""
    began = time.monotonic()
    with connected(port) as connection:
        connection.sendall(request(PATH, "Content-Type: application/json", "Content-Length: 100000", method="POST"))
        connection.settimeout(0.02)
        found = b""
        while not found and time.monotonic() < began + LIMITS.body_seconds + PATIENCE:
            connection.sendall(b" ")
            try:
                found = connection.recv(1 << 16)
            except TimeoutError:
                continue
        connection.settimeout(PATIENCE)
        while found and not found.endswith(b"}") and (piece := next_piece(connection)):
            found += piece
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b"the request was not received within 2 seconds." in found
    assert time.monotonic() - began >= LIMITS.body_seconds


def large(port: int) -> None:
    part = b" " * (1 << 20)
    kind, chunk = "Content-Type: application/json", b"100000\r\n" + part + b"\r\n"
    told = request(PATH, kind, f"Content-Length: {64 << 20}", method="POST")
    untold = request(PATH, kind, "Transfer-Encoding: chunked", method="POST")
    assert _refused(port, told, *[part] * 64) in (0, 413)
    assert _refused(port, untold, *[chunk] * 20) in (0, 413)


def _refused(port: int, *pieces: bytes) -> int:
    """The status of an answer; 0 where the server ended the connection while it was being sent to."""
    with connected(port) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except ConnectionError:
            return 0
        return received(connection).status


def many_headers(port: int) -> None:
    assert _refused(port, request("/", *(f"X-{number}: 1" for number in range(5000)))) in (0, 400, 431)
    assert asked(port, request("/", *(f"X{number}:1" for number in range(120)))).status == 431


def large_header(port: int) -> None:
    assert _refused(port, request("/", f"X: {'y' * (1 << 20)}")) in (0, 400, 431)


def two_lengths(port: int) -> None:
    hidden = request("/hidden")
    body = b"0\r\n\r\n" + hidden
    kinds = ["Transfer-Encoding: chunked", "Content-Type: application/json"]
    for headers in ([*kinds, f"Content-Length: {len(body)}"], [f"Content-Length: {len(body)}", *kinds]):
        with connected(port) as connection:
            connection.sendall(request(PATH, *headers, method="POST", body=body))
            first = received(connection)
            assert (first.status, first.headers["connection"]) == (400, "close")
            assert first.error == "a request has Content-Length or Transfer-Encoding, but not both."
            assert next_piece(connection) == b""  # what was hidden is no request
    twice = ["Content-Type: application/json", "Content-Length: 2", "Content-Length: 40"]
    assert asked(port, request(PATH, *twice, method="POST", body=b"{}" + hidden)).status == 400
    for other in ("gzip, chunked", "chunked, chunked", "identity", "\tchunked x"):
        found = asked(port, request(PATH, f"Transfer-Encoding: {other}", method="POST", body=b"0\r\n\r\n"))
        assert found.status in (400, 501)


def deep(port: int) -> None:
    for start in (b'{"inputs": ', b"", b'{"inputs": [1], "decoding": '):
        for one in (b"[", b'{"a":'):
            found = posted(port, PATH, start + one * 100_000)
            assert found.status == 400
            assert "nested too deeply" in found.error


def greedy(port: int) -> None:
    for much in ("width", "best", "max_length"):
        found = posted(port, "/api/runs/sounds/predict", {"inputs": ["cat"], "decoding": {much: 10**9}})
        assert (found.status, "is limited to" in found.error) == (400, True)
    for question in ({"count": 10**9}, {"length": 10**9}, {"stream": True, "length": 10**9}):
        assert posted(port, "/api/runs/text/generate", {"prompt": "one", **question}).status == 400


SPELLINGS = [
    "".join(parts)
    for parts in product(
        ("/page/", "/", "/page//", "/api/runs/", "/page/./"),
        ("../", "%2e%2e/", "..%2f", "%2e%2e%2f", "..\\", "%252e%252e%252f", "..;/", "%c0%ae%c0%ae/", "....//", "/"),
        ("etc/passwd", "runtime/server.py", "../../../../../../etc/passwd", "etc/passwd%00.js"),
    )
]


def outside(port: int) -> None:
    known = {(Path(__file__).parents[2] / "src" / "recurra" / "page" / name).read_bytes() for name in files_of_page()}
    assert len(set(SPELLINGS)) == 200
    with connected(port) as connection:
        for number, path in enumerate(SPELLINGS):
            connection.sendall(request(path, method="GET" if number % 3 else "POST"))
            found = received(connection)
            assert found.status in (400, 404, 405), path
            assert b"root:" not in found.body
            assert b"def " not in found.body
            assert found.body not in known


def foreign(port: int) -> None:
    for header in ("Host: evil.example", "Host: localhost@evil.example", "Host: 127.0.0.1.evil.example:80"):
        assert asked(port, request("/api/runs", header)).status == 421
    for header in ("Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"):
        assert posted(port, PATH, {"inputs": ["the cat"]}, header).status == 403


ATTACKS: list[Callable[[int], None]] = [
    *(half_open, trickled, large, many_headers, large_header, two_lengths, deep, greedy, outside, foreign)
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_good_clients_are_served_while_an_evil_one_attacks(
    attack: Callable[[int], None], port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with good_clients(port):
        attack(port)
    assert mistakes(port) == []
    assert capfd.readouterr().err == ""  # no mistake of ours


@pytest.mark.slow
def test_good_clients_are_served_through_a_minute_of_all_attacks(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    ends = time.monotonic() + 60
    with good_clients(port), ThreadPoolExecutor(4) as pool:
        while time.monotonic() < ends:
            for done in [pool.submit(attack, port) for attack in ATTACKS]:
                done.result()
    assert mistakes(port) == []
    assert capfd.readouterr().err == ""


def test_bodies_of_many_clients_at_once_have_a_limit_together(runs: dict[str, Hosted]) -> None:
    limits = Limits(all_body_bytes=50_000)
    part = request(PATH, "Content-Type: application/json", "Content-Length: 40000", method="POST") + b" " * 30_000
    with at_work(application(Service(runs, limits=limits)), limits) as port:
        with connected(port) as first:
            first.sendall(part)
            time.sleep(0.1)
            second = asked(port, part)
            assert (second.status, second.error) == (
                503,
                "too much is being sent to this server at once: try again later.",
            )
            assert asked(port, GOOD).status == 200
        time.sleep(0.1)
        with connected(port) as other:  # the first is gone, and what it has sent is not counted any longer
            other.sendall(part + b" " * 10_000)
            assert received(other).status == 400
