"""What one client holds up, others do not notice, and the server ends when it is told to."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from recurra.errors import ConfigError
from recurra.runtime.guard import Guard
from recurra.runtime.limits import Limits, beside, listening
from tests.runtime.listening import Answer, asked, at_work, connected, next_piece, received, request, seconds_since

SHORT = Limits(
    connections=8, headers=20, head_bytes=4096, body_bytes=1000, head_seconds=0.3, body_seconds=0.3, idle_seconds=1
)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers how many bytes were sent; /slow takes a second, /large is much, /broken is our mistake."""
    from starlette.exceptions import HTTPException

    found = Request(scope, receive)
    if scope["path"] == "/broken":
        raise ZeroDivisionError("a secret of the server")
    if scope["path"] == "/slow":
        await beside(lambda: time.sleep(0.6))
    try:
        content = {"bytes": len(await found.body()), "much": "x" * (32 << 20 if scope["path"] == "/large" else 0)}
    except HTTPException as error:
        await JSONResponse({"error": error.detail}, error.status_code)(scope, receive, send)
    except ClientDisconnect:
        pass
    else:
        await JSONResponse(content)(scope, receive, send)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with at_work(Guard(echo, SHORT), SHORT) as found:
        yield found


def test_a_request_is_answered_and_the_connection_serves_another(port: int) -> None:
    with connected(port) as connection:
        for size in (1, 1000):
            connection.sendall(request(method="POST", body=b"x" * size))
            assert received(connection).json["bytes"] == size


def test_answers_on_one_connection_do_not_wait_for_the_receipt_of_their_first_half(
    program: tuple[subprocess.Popen[str], int],
) -> None:
    times = []
    with connected(program[1]) as connection:
        for _ in range(30):
            began = time.monotonic()
            connection.sendall(request())
            received(connection)
            times.append(seconds_since(began))
    assert min(times[5:]) < 0.03  # of 40 ms, in which Linux says that it has received something


def test_a_hundred_half_open_connections_do_not_starve_a_good_client(port: int) -> None:
    with ExitStack() as opened:
        for number in range(100):
            half = opened.enter_context(connected(port))
            half.sendall(b"GET / HTTP/1.1\r\nHost:"[: number % 20])
        began = time.monotonic()
        assert asked(port, request()).status == 200
        assert seconds_since(began) < 1


def test_a_connection_that_is_idle_makes_room_before_one_that_computes(port: int) -> None:
    with ExitStack() as opened:
        computing = opened.enter_context(connected(port))
        computing.sendall(request("/slow"))
        assert asked(port, request()).status == 200  # and so the one before is under way
        for _ in range(20):
            opened.enter_context(connected(port))
        assert received(computing).status == 200


def test_where_all_connections_compute_another_is_told_to_try_again(port: int) -> None:
    with ExitStack() as opened:
        busy = [opened.enter_context(connected(port)) for _ in range(SHORT.connections)]
        for each in busy:
            each.sendall(request("/slow"))
        time.sleep(0.1)
        refused = asked(port)
        assert (refused.status, refused.error) == (503, "too many requests at once: try again later.")
        assert [received(each).status for each in busy] == [200] * len(busy)


def test_headers_that_come_letter_by_letter_have_to_be_there_in_time(port: int) -> None:
    began = time.monotonic()
    with connected(port) as connection:
        for letter in b"GET / HTTP/1.1\r\n":
            connection.sendall(bytes([letter]))
            time.sleep(0.01)
        late = received(connection)
    assert (late.status, late.error) == (408, "the request was not received within 0.3 seconds.")
    assert 0.2 < seconds_since(began) < 1


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_a_body_has_to_be_there_in_time(port: int, length: str) -> None:
    began = time.monotonic()
    late = asked(port, request("/", length, method="POST"))
    assert (late.status, late.error) == (408, "the request was not received within 0.3 seconds.")
    assert 0.2 < seconds_since(began) < 1


def test_what_follows_on_an_answer_has_to_be_there_in_time_too(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(request())
        assert received(connection).status == 200
        began = time.monotonic()
        connection.sendall(b"GET")
        assert received(connection).status == 0
        assert seconds_since(began) < 1


def test_an_answer_that_no_one_takes_is_given_up(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(request("/large"))
        assert connection.recv(10) == b"HTTP/1.1 2"
        time.sleep(SHORT.idle_seconds + 1)
        found = 0
        while piece := next_piece(connection):
            found += len(piece)
    assert found < 32 << 20


def test_more_headers_or_larger_ones_are_refused(port: int) -> None:
    many = asked(port, request("/", *(f"X-{number}: 1" for number in range(30))))
    assert (many.status, many.error) == (431, "a request can have at most 20 headers of 4,096 bytes in all.")
    assert asked(port, request("/", f"X: {'y' * 5000}")).status == 431
    assert asked(port, request(f"/{'y' * 5000}")).status == 431
    endless = asked(port, b"GET / HTTP/1.1\r\nX: ", *[b"y" * 1000] * 5)
    assert (endless.status, endless.error) == (400, "this is not HTTP/1.1, or its headers have more than 4,096 bytes.")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"GET /\r\n\r\n", b"\n\n\n\n x"])
def test_what_is_not_http_is_told_so(port: int, sent: bytes) -> None:
    assert asked(port, sent).status in (400, 408)


@pytest.mark.parametrize("value", ["many", "-1", "1.5", "0x10", "1, 2"])
def test_a_length_that_is_no_number_is_refused(port: int, value: str) -> None:
    assert asked(port, request("/", f"Content-Length: {value}", method="POST")).status == 400


def test_a_body_over_the_limit_is_refused_with_its_length_and_without() -> None:
    limits = SHORT._replace(head_seconds=5, body_seconds=5)
    chunk = b"190\r\n" + b"x" * 400 + b"\r\n"
    with at_work(Guard(echo, limits), limits) as port:
        told = asked(port, request(method="POST", body=b"x" * 1001))
        untold = asked(port, request("/", "Transfer-Encoding: chunked", method="POST"), chunk * 3)
        lied = asked(port, request("/", f"Content-Length: {10**17}", method="POST"))
        exactly = asked(port, request("/", "Transfer-Encoding: chunked", method="POST"), chunk * 2 + b"0\r\n\r\n")
    for refused in (told, untold, lied):
        assert (refused.status, refused.error) == (413, "a request can have at most 1,000 bytes.")
    assert exactly.json["bytes"] == 800


def test_a_mistake_of_ours_is_a_sentence_there_and_said_here(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    broken = asked(port, request("/broken"))
    assert broken.status == 500
    assert "secret" not in broken.error
    assert "ZeroDivisionError: a secret of the server" in capfd.readouterr().err


def test_a_client_that_leaves_within_its_body_is_no_one_s_mistake(port: int, capfd: pytest.CaptureFixture[str]) -> None:
    with connected(port) as connection:
        connection.sendall(request("/", "Content-Length: 100", method="POST", body=b"half"))
    assert asked(port, request()).status == 200
    assert capfd.readouterr().err == ""


def test_an_upgrade_is_not_taken(port: int) -> None:
    found = asked(port, request("/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"))
    assert found.status == 200


def test_answers_forbid_a_browser_what_the_page_does_not_need(port: int) -> None:
    headers = asked(port, request()).headers
    assert headers["content-security-policy"].startswith("default-src 'none';")
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def _from(port: int, *headers: str, path: str = "/api/runs") -> Answer:
    return asked(port, request(path, *headers))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8642", "[::1]:99"])
def test_names_of_this_machine_are_answered_to(port: int, host: str) -> None:
    assert _from(port, f"Host: {host}").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "", "192.168.0.1", "localhost:x"]
)
def test_a_name_that_points_here_from_elsewhere_is_refused(port: int, host: str) -> None:
    found = _from(port, f"Host: {host}")
    assert found.status == 400 or (found.status, found.error) == (
        421,
        "this server accepts only requests to 127.0.0.1, localhost.",
    )


def test_a_page_of_this_server_may_ask_and_one_of_another_may_not(port: int) -> None:
    assert _from(port, "Host: localhost:7", "Origin: http://localhost:7", "Sec-Fetch-Site: same-origin").status == 200
    for header in (
        *("Origin: http://evil.example", "Origin: null", "Origin: http://localhost:8", "Origin: https://localhost:7"),
        *("Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"),
    ):
        found = _from(port, "Host: localhost:7", header)
        assert (found.status, found.error) == (403, "this server does not accept requests from other sites.")


def test_a_link_from_another_site_leads_to_the_page(port: int) -> None:
    for path in ("/", "/page/main.js"):
        assert _from(port, "Sec-Fetch-Site: cross-site", path=path).status == 200


@pytest.mark.parametrize("wanted", [-1, 65536, 10**9])
def test_what_is_no_port_is_refused(wanted: int) -> None:
    with pytest.raises(
        ConfigError, match=rf"--port {wanted} cannot be used: a port must be a number from 0 to 65535\."
    ):
        listening(echo, port=wanted, said=print)


def test_a_port_that_is_in_use_is_said(port: int) -> None:
    with pytest.raises(ConfigError, match=rf"--port {port} cannot be used: Address already in use\. --port 0 picks"):
        listening(echo, port=port, said=print)


PROGRAM = """
import signal, sys, time, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests beside others may ignore Ctrl-C
from recurra.cli import main
from recurra.runtime.guard import Guard
from recurra.runtime.limits import Limits, beside, listening
from tests.runtime.test_limits import echo
def serve(*_, **__):
    listening(Guard(busy, Limits()), port=0, said=lambda line: print(line, flush=True))
async def busy(scope, receive, send):
    if scope["path"] == "/long":
        await beside(lambda: time.sleep(60))
    await echo(scope, receive, send)
# The real one would load torch for no test here.
sys.modules["recurra.runtime.server"] = types.SimpleNamespace(serve=serve, Serving=dict)
sys.exit(main(["serve", "a run"]))
"""


@pytest.fixture
def program() -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/", process.stdout.readline())
        assert found is not None, process.communicate()[1]
        try:
            yield process, int(found[1])
        finally:
            process.kill()


@pytest.mark.parametrize(("told", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_though_a_client_stalls_and_an_answer_is_computed(
    program: tuple[subprocess.Popen[str], int], told: signal.Signals, status: int
) -> None:
    process, port = program
    with connected(port) as head, connected(port) as body, connected(port) as idle, connected(port) as long:
        head.sendall(b"GET / HT")
        body.sendall(request("/", "Content-Length: 9", method="POST"))
        idle.sendall(request())
        assert received(idle).status == 200
        long.sendall(request("/long"))
        time.sleep(0.1)
        began = time.monotonic()
        process.send_signal(told)
        ended = received(long)
        assert (ended.status, ended.error) == (503, "the server is shutting down.")
        assert process.wait(5) == status
        assert seconds_since(began) < 2.5
    assert process.stderr is not None
    assert process.stderr.read() == ("\nrecurra: stopped.\n" if told == signal.SIGINT else "")


def test_the_head_and_the_body_of_an_answer_are_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the system that sends wakes the client, and takes as long as much of the rest."""
    sent, kind = list[bytes](), asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    usual = kind.write

    def noted(self: asyncio.Transport, data: bytes) -> None:
        sent.append(bytes(data))
        usual(self, data)

    monkeypatch.setattr(kind, "write", noted)
    with at_work(Guard(echo, Limits())) as port, connected(port) as connection:
        for _ in range(3):
            connection.sendall(request("/"))
            assert received(connection).status == 200
    answers = [each for each in sent if each.startswith(b"HTTP/1.1")]  # and what the loop tells itself
    assert len(answers) == 3
    assert all(each.endswith(b"}") for each in answers)
