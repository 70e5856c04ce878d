"""Who may ask a server: by which names it may be called, and with which token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.errors import ConfigError

HERE = ("127.0.0.1", "localhost", "[::1]")

PROBES = ("/health", "/ready")
"""What says nothing but that the server lives may be asked by anyone, by any name: a load balancer has no token."""

SHORTEST = 16
"""Characters of a token."""

TOKEN = "RECURRA_TOKEN"
"""The variable of the environment that may hold the token."""


class Access(NamedTuple):
    """Who may ask.

    A page elsewhere can make a browser send requests here: by a name of its own that it lets point to this machine,
    which Host tells, or across sites, which Origin and Sec-Fetch-Site tell. Any port will do, for what reaches this
    machine through a tunnel names that of its other end.
    """

    names: tuple[str, ...] = ()  # of the server, beside those of this machine; "*": any
    token: str | None = None

    def refusal(self, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Status and sentence for a request that is not answered; None for one that is."""
        if path in PROBES:
            return None
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        name, _, port = host.rpartition(":")
        name = name if port.isdecimal() else host
        if name not in HERE and name not in self.names and "*" not in self.names:
            return 421, f"this server accepts only requests to {', '.join((*HERE[:2], *self.names))}."
        # Before a server that another one hides behind, a name of its own may have been asked by https.
        ours = {f"http://{host}"} | (set() if name in HERE else {f"https://{host}"})
        is_page = path == "/" or path.startswith("/page/")  # which a link may lead to, and which holds no data
        is_elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if (origin is not None and origin.lower() not in ours) or (is_elsewhere and not is_page):
            return 403, "this server does not accept requests from other sites."
        if self.token is not None and not is_page and not self._is_authorised(headers.get("authorization", "")):
            return 401, "this server needs a token: send it with the header Authorization: Bearer TOKEN."
        return None

    def _is_authorised(self, given: str) -> bool:
        kind, _, token = given.partition(" ")
        expected = (self.token or "").encode()
        return kind.lower() == "bearer" and hmac.compare_digest(token.strip().encode("utf-8", "replace"), expected)


def access(host: str, names: Sequence[str] = (), token_file: str | None = None) -> Access:
    """Who may ask at an address: a token is required where others than this machine's users can reach it.

    >>> access("127.0.0.1").token is None
    True
    >>> access("0.0.0.0")
    Traceback (most recent call last):
    recurra.errors.ConfigError: --host 0.0.0.0: other machines can reach this address, so clients must send a token: \
name a file that holds it with --token-file, or set RECURRA_TOKEN. `openssl rand -hex 32` makes one.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(f"--host {host}: an IP address is expected, such as 127.0.0.1 or 0.0.0.0.") from None
    for name in names:
        if name != "*" and not re.fullmatch(r"[a-zA-Z0-9.-]+|\[[0-9a-fA-F:.]+\]", name):
            raise ConfigError(f"--allow-host {name}: a name without a port is expected, such as models.example.org.")
    token = _token(token_file)
    if token is None and not address.is_loopback:
        raise ConfigError(
            f"--host {host}: other machines can reach this address, so clients must send a token: name a file that "
            f"holds it with --token-file, or set {TOKEN}. `openssl rand -hex 32` makes one."
        )
    shown = f"[{host}]" if address.version == 6 else host
    own = () if address.is_unspecified or shown in HERE else (shown.lower(),)
    return Access((*own, *(name.lower() for name in names)), token)


def _token(file: str | None) -> str | None:
    """The token of a file, or else of the environment."""
    if file is None:
        found, where = os.environ.get(TOKEN), TOKEN
    else:
        where = f"--token-file {file}"
        try:
            found = Path(file).read_text("utf-8")
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not a text"
            raise ConfigError(f"{where} cannot be read: {why}.") from error
    if found is None:
        return None
    found = found.strip()
    if len(found) < SHORTEST or not re.fullmatch(r"[!-~]+", found):
        raise ConfigError(
            f"{where}: a token must have at least {SHORTEST} characters of ASCII without blanks, but this one has "
            f"{len(found)}. `openssl rand -hex 32` makes one."
        )
    return found
