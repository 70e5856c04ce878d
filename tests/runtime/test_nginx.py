"""The configuration of nginx in docs/deploy.md before a server: it is valid, and texts pass as they are written."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recurra.runtime.access import Access
from recurra.runtime.application import application
from recurra.runtime.hosted import Hosted
from recurra.runtime.service import Service
from tests.runtime.listening import at_work, received, request
from tests.runtime.tiny_runs import ASKED

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
NAME = "models.example.org"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None or shutil.which("openssl") is None, reason="there is no nginx or openssl here"),
]

AROUND = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
access_log off;
{temporary}
{page}
}}
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        found: int = one.getsockname()[1]
        return found


def configured(folder: Path, *, behind: int, port: int) -> Path:
    """The page's configuration, with the ports and certificate of this test."""
    [page] = re.findall(r"```nginx\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for before, after in (
        ("127.0.0.1:8642", f"127.0.0.1:{behind}"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        (f"/etc/ssl/{NAME}.pem", f"{folder}/cert.pem"),
        (f"/etc/ssl/{NAME}.key", f"{folder}/cert.key"),
    ):
        assert page.count(before) == 1, before
        page = page.replace(before, after)
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    openssl += ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", f"{folder}/cert.key", "-out", f"{folder}/cert.pem"]
    subprocess.run(openssl, check=True, capture_output=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, temporary=temporary, page=page))
    return folder / "nginx.conf"


def connected(port: int, folder: Path) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10), server_hostname=NAME)


def test_the_page_on_deployment_has_an_nginx_that_works(runs: dict[str, Hosted], tmp_path: Path) -> None:
    assert NGINX is not None
    usual, may_end = runs["text"].pieces, threading.Event()

    def slowly(*given: Any) -> Iterator[str]:
        """The text with a pause after its first piece, which ends when the client has this."""
        pieces = usual(*given)
        yield next(pieces)
        assert may_end.wait(10)
        yield from pieces

    with pytest.MonkeyPatch.context() as patch, at_work(application(Service(runs), access=Access((NAME,)))) as behind:
        port = free_port()
        config = configured(tmp_path, behind=behind, port=port)
        tried = subprocess.run([NGINX, "-t", "-c", str(config), "-e", "stderr"], capture_output=True, text=True)
        assert tried.returncode == 0, tried.stderr
        assert "test is successful" in tried.stderr
        nginx = subprocess.Popen([NGINX, "-c", str(config), "-e", "stderr"])
        try:
            ends = time.monotonic() + 10
            while True:
                try:
                    connection = connected(port, tmp_path)
                    break
                except OSError:
                    assert nginx.poll() is None
                    assert time.monotonic() < ends
                    time.sleep(0.05)
            with closing(connection):
                body = json.dumps({"inputs": [ASKED["tags"]]}).encode()
                head = [f"Host: {NAME}", f"Origin: https://{NAME}", "Content-Type: application/json"]
                connection.sendall(request("/api/runs/tags/predict", *head, method="POST", body=body))
                found = received(connection)
                assert (found.status, len(found.json["answers"])) == (200, 1)
                connection.sendall(request("/metrics", f"Host: {NAME}"))
                assert received(connection).status == 403
            patch.setattr(runs["text"], "pieces", slowly)
            question = {"prompt": ASKED["text"], "seed": 3, "length": 5, "stream": True}
            with closing(connected(port, tmp_path)) as stream:
                body = json.dumps(question).encode()
                stream.sendall(request("/api/runs/text/generate", *head, method="POST", body=body))
                answer, said = http.client.HTTPResponse(stream), b""
                answer.begin()
                assert answer.headers["content-type"].startswith("text/event-stream")
                while b"data: " not in said:  # while the server still waits to write the rest
                    said += answer.read1(1 << 16)
                assert not may_end.is_set()
                may_end.set()
                said += answer.read()
                assert b"event: end" in said
            pieces = [json.loads(each).get("text", "") for each in re.findall(rb"data: (.*)", said)]
            [whole] = runs["text"].generate(ASKED["text"], {"seed": 3, "length": 5})["texts"]
            assert "".join(pieces) == whole["whole"]
        finally:
            may_end.set()
            nginx.terminate()
            nginx.wait()
