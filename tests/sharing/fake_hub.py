"""A small server that speaks as much of the Hugging Face Hub as huggingface_hub asks of it here."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_token_of_the_tests"


class Repository:
    """The files of a repository, and whether others see it."""

    def __init__(self, *, private: bool) -> None:
        self.private = private
        self.files: dict[str, bytes] = {}

    @property
    def commit(self) -> str:
        """A name of the files as they are."""
        return hashlib.sha1(repr(sorted(self.files.items())).encode()).hexdigest()


class FakeHub:
    """Repositories by their names, and the requests that came."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []
        self.large: dict[str, bytes] = {}  # files that are uploaded on their own, by their SHA-256
        self.url = ""

    def answer(self, method: str, path: str, body: bytes, token: str | None) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(f"{method} {path}")
        if method == "POST" and path == "/api/repos/create":
            return self._create(json.loads(body), token)
        if method == "POST" and path == "/api/validate-yaml":
            card = json.loads(body)["content"]
            assert re.match(r"---\n(\w+: .+\n)+---\n", card), card
            return _json(200, {"errors": [], "warnings": []})
        if method == "POST" and (found := re.fullmatch(r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", path)):
            return self._batch(json.loads(body))
        if method == "PUT" and (found := re.fullmatch(r"/large/([0-9a-f]{64})", path)):
            assert hashlib.sha256(body).hexdigest() == found[1]
            self.large[found[1]] = body
            return 200, {}, b""
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit|revision|tree)/([^/]+)/?.*", path):
            name, what = found[1], found[2]
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            name, what = found[1], "revision"
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(found[1], found[3], method, token)
        else:
            return _json(404, {"error": f"not known to the fake: {method} {path}"})
        repository = self.repositories.get(name)
        if repository is None or (repository.private and token != TOKEN):
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"{}"
        if method == "POST" and token != TOKEN:
            return _json(403, {"error": "Forbidden"})
        if what == "preupload":
            files = [{"path": each["path"], "uploadMode": "lfs" if each["path"].endswith(".safetensors") else "regular",
                      "shouldIgnore": False, "oid": None} for each in json.loads(body)["files"]]  # fmt: skip
            return _json(200, {"files": files})
        if what == "commit":
            return self._commit(name, repository, body)
        return _json(200, self._about(name, repository))

    def _create(self, asked: dict[str, Any], token: str | None) -> tuple[int, dict[str, str], bytes]:
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        if token != TOKEN:
            return _json(401, {"error": "Invalid username or password."})
        if name in self.repositories:
            return _json(409, {"error": "You already created this model repo", "url": f"{self.url}/{name}"})
        private = asked.get("private", asked.get("visibility") == "private")
        self.repositories[name] = Repository(private=bool(private))
        return _json(200, {"url": f"{self.url}/{name}", "name": name, "id": "1"})

    def _commit(self, name: str, repository: Repository, body: bytes) -> tuple[int, dict[str, str], bytes]:
        for line in body.splitlines():
            each = json.loads(line)
            if each["key"] == "file":
                assert each["value"]["encoding"] == "base64"
                repository.files[each["value"]["path"]] = base64.b64decode(each["value"]["content"])
            elif each["key"] == "lfsFile":
                repository.files[each["value"]["path"]] = self.large[each["value"]["oid"]]
            elif each["key"] == "deletedFile":
                del repository.files[each["value"]["path"]]
        url = f"{self.url}/{name}/commit/{repository.commit}"
        return _json(200, {"success": True, "commitOid": repository.commit, "commitUrl": url, "hookOutput": ""})

    def _batch(self, asked: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        objects = [{**each, "actions": {"upload": {"href": f"{self.url}/large/{each['oid']}", "header": {}}}}
                   for each in asked["objects"]]  # fmt: skip
        return _json(200, {"transfer": "basic", "objects": objects})

    def _about(self, name: str, repository: Repository) -> dict[str, Any]:
        siblings = [{"rfilename": each} for each in sorted(repository.files)]
        about = {"_id": "1", "id": name, "private": repository.private, "sha": repository.commit}
        return {**about, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0, "gated": False}

    def _resolve(self, name: str, file: str, method: str, token: str | None) -> tuple[int, dict[str, str], bytes]:
        repository = self.repositories.get(name)
        if repository is None or (repository.private and token != TOKEN):
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        content = repository.files.get(unquote(file))
        if content is None:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}, b""
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": repository.commit,
                   "Accept-Ranges": "bytes"}  # fmt: skip
        return 200, headers, content


def _json(status: int, value: object) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


@contextmanager
def served() -> Iterator[FakeHub]:
    """A fake hub at an address of this machine."""
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = self.headers.get("Content-Length")
            body = self.rfile.read(int(length)) if length is not None else b""
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            given = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
            status, headers, content = hub.answer(self.command, unquote(urlsplit(self.path).path), body, given)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_POST = do_HEAD = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
