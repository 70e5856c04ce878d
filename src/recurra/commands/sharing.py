"""Runs that go to other people, and that come from them."""

from __future__ import annotations

import argparse


def pack(options: argparse.Namespace) -> None:
    """A run as one file."""
    from recurra.sharing.packed import pack

    print(pack(options.run, options.file, license=options.license))


def unpack(options: argparse.Namespace) -> None:
    """The folder of a packed run."""
    from recurra.sharing.packed import unpack

    print(unpack(options.file, options.folder))


def push(options: argparse.Namespace) -> None:
    """A run on the Hugging Face Hub."""
    from recurra.sharing.hub import push

    print(push(options.run, options.name, public=options.public, license=options.license))


def pull(options: argparse.Namespace) -> None:
    """A run of the Hugging Face Hub, or a packed one at a URL, in a folder."""
    from recurra.sharing.fetching import pull

    print(pull(options.source, options.folder, revision=options.revision))
