"""Runs from elsewhere: packed files at URLs, and repositories of the Hugging Face Hub. Only where it is asked for."""

from __future__ import annotations

import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from recurra.cache import private_folder
from recurra.errors import CheckpointError, ConfigError
from recurra.sharing.contents import Unpacked
from recurra.sharing.packed import unpack
from recurra.training.loading import is_url

SECONDS = 60.0
"""So long a server may say nothing."""

AT_ONCE, LARGEST = 1 << 20, 1 << 36
"""Bytes that are read together, and of a file at a URL in all."""

HERE = ("localhost", "127.0.0.1", "::1")


class _Careful(urllib.request.HTTPRedirectHandler):
    """Follows to encrypted places alone, and never to a file."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def pull(
    source: str, folder: str | os.PathLike[str], *, revision: str | None = None, token: str | None = None
) -> Unpacked:
    """Fetch a run into a new folder, and verify it by its checksums: "owner/name" from the Hugging Face Hub
    (`recurra[hub]`), or a packed file at a URL.

    Checksums that came with a file tell of damage, not of who wrote it: pull what you trust. Code that a run names is
    not imported before you allow it.

    >>> pull("ftp://a.org/b.zip", "tagger")
    Traceback (most recent call last):
    recurra.errors.ConfigError: ftp://a.org/b.zip: runs are fetched from https://, file:// and hf://, not from ftp://.
    """
    if is_url(source) and not source.startswith("hf://"):
        if revision is not None:
            raise ConfigError(f"--revision {revision} is for the Hugging Face Hub; {source} is a URL: leave it out.")
        return _downloaded(source, Path(folder))
    from recurra.sharing.hub import pulled

    return pulled(source.removeprefix("hf://"), Path(folder), revision=revision, token=token)


def fetched(source: str) -> Path:
    """A run from elsewhere in a folder of this process alone, which is removed when it ends."""
    return pull(source, private_folder() / "run").folder


def _check(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in HERE:
        raise ConfigError(f"{url} is not encrypted, so anybody between could change the file: use https.")
    if parts.scheme not in ("https", "http"):
        raise ConfigError(f"{url}: runs are fetched from https://, file:// and hf://, not from {parts.scheme}://.")


def _downloaded(url: str, folder: Path) -> Unpacked:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ConfigError(f"{url}: the file must lie on this machine: file:///folder/model.zip.")
        return unpack(urllib.request.url2pathname(parts.path), folder)
    _check(url)
    with tempfile.TemporaryDirectory(prefix="recurra-") as private:
        file = Path(private) / "packed.zip"
        try:
            opener = urllib.request.build_opener(_Careful)
            with opener.open(url, timeout=SECONDS) as answer, file.open("wb") as target:
                size = 0
                while part := answer.read(AT_ONCE):
                    size += len(part)
                    if size > LARGEST:
                        raise CheckpointError(f"{url} is larger than {LARGEST:,} bytes, so it is not fetched.")
                    target.write(part)
        except urllib.error.HTTPError as error:
            raise CheckpointError(
                f"{url} cannot be fetched: the server answered {error.code} {error.reason}."
            ) from error
        except (urllib.error.URLError, OSError, ValueError) as error:
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise CheckpointError(f"{url} cannot be fetched: {why}.") from error
        try:
            return unpack(file, folder)
        except CheckpointError as error:
            raise CheckpointError(str(error).replace(str(file), url)) from error
