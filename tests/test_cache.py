"""The cache folder: where it was asked for, or where the system keeps such things."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recurra.cache import cache_folder


def test_the_cache_is_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("RECURRA_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/me/.cache/recurra")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/recurra")
    monkeypatch.setenv("RECURRA_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root can become a user without a home")
def test_who_has_no_home_is_asked_for_a_folder() -> None:
    code = (
        "import os, sys, recurra.cache as cache, recurra.errors as errors\n"
        "os.setuid(54321)\n"
        "try:\n"
        "    cache.cache_folder()\n"
        "except errors.ConfigError as error:\n"
        "    sys.exit(str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith(
        "no cache folder: the home folder is not known. Set the environment variable RECURRA_CACHE to a folder."
    )
