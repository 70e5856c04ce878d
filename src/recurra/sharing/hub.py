"""The Hugging Face Hub: a run as a repository, by huggingface_hub, which finds the token in its usual places."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recurra.errors import CheckpointError, ConfigError
from recurra.manifest import MANIFEST, Entry, read_manifest, verify
from recurra.sharing.contents import Unpacked, arriving, bad_name, check_names, contents, license_of
from recurra.text.json_file import json_text

README = "README.md"

PIPELINES = {"tagging": "token-classification", "classification": "text-classification",
             "language_model": "text-generation", "forecasting": "time-series-forecasting",
             "question_answering": "question-answering"}  # fmt: skip
"""What the hub calls the tasks that it knows."""

HTTP = ("httpx", "httpx2", "httpcore", "httpcore2", "requests")
"""Packages by which some version of huggingface_hub asks the network: their errors are those of the network."""


class Pushed(NamedTuple):
    """A run that is on the hub now."""

    name: str
    url: str
    files: int
    bytes: int
    private: bool
    license: str | None

    def __str__(self) -> str:
        seen = "private" if self.private else "public"
        said = f"{self.name} ({seen}): {self.files} files of {self.bytes:,} bytes, {self.url}"
        if self.license is None:
            return f"{said}\nIt has no licence, so others may not use it. To name one: --license CC-BY-4.0, or a file"
        return f"{said}\nlicence: {self.license}"


def push(
    run: str | os.PathLike[str],
    name: str,
    *,
    public: bool = False,
    license: str | os.PathLike[str] | None = None,
    token: str | None = None,
) -> Pushed:
    """Put a finished run, or an exported folder, on the Hugging Face Hub as "owner/name"; a new repository is private.

    What is shared is what `pack` writes, and the run's card as README.md. It needs huggingface_hub: pip install
    'recurra[hub]'. The token is that of `hf auth login`, or of the environment variable HF_TOKEN.

    >>> push("runs/first", "first")
    Traceback (most recent call last):
    recurra.errors.ConfigError: 'first' must be the owner and the name of a repository: owner/name.
    """
    check_name(name)
    hub = package()
    shared = contents(Path(run), license)
    given = license_of(shared)
    readme = card(Path(run), given)
    add = hub.CommitOperationAdd
    operations = [
        add(path_in_repo=each.name, path_or_fileobj=each.source if isinstance(each.source, bytes) else str(each.source))
        for each in shared
    ]
    operations.append(add(path_in_repo=README, path_or_fileobj=readme.encode()))
    with told(name):
        api = hub.HfApi(token=token)
        created = api.create_repo(name, private=not public, exist_ok=True, repo_type="model")
        there = api.repo_info(name)
        kept = {README, ".gitattributes", *(each.name for each in shared)}
        gone = sorted({each.rfilename for each in there.siblings or []} - kept)  # of a run that was pushed before
        operations += [hub.CommitOperationDelete(path_in_repo=each) for each in gone]
        api.create_commit(name, operations, commit_message="Push a run of recurra")
    size = sum(each.entry.bytes for each in shared)
    return Pushed(name, str(created), len(shared), size, bool(there.private), given)


def pulled(name: str, folder: Path, *, revision: str | None = None, token: str | None = None) -> Unpacked:
    """A run of the hub in a new folder, verified by its manifest."""
    check_name(name)
    hub = package()
    with arriving(folder) as stage:
        with told(name):
            found = hub.HfApi(token=token).repo_info(name, revision=revision)
            files = {each.rfilename for each in found.siblings or []}
            if MANIFEST not in files:
                raise CheckpointError(f"{name} holds no run of recurra: it has no {MANIFEST}.")
            at = {"revision": found.sha, "local_dir": str(stage), "token": token}
            hub.hf_hub_download(name, MANIFEST, **at)
        manifest = read_manifest(stage) or {}
        for each in manifest:
            if (why := bad_name(each)) is not None:
                raise CheckpointError(f"{name} is not read: of the file {each!r:.200}, {why}. Nothing was written.")
        check_names({each: manifest[each] for each in manifest if each in files}, manifest, name)
        if "config.toml" not in manifest:
            raise CheckpointError(f"{name} holds no run: it has no config.toml.")
        with told(name):
            for each in manifest:
                hub.hf_hub_download(name, each, **at)
        shutil.rmtree(stage / ".cache", ignore_errors=True)
        _check_files(stage, manifest, name)
    return Unpacked(folder, len(manifest) + 1, sum(each.bytes for each in manifest.values()))


def _check_files(stage: Path, manifest: Any, name: str) -> None:
    try:
        verify(stage)
    except CheckpointError as error:
        raise CheckpointError(f"{name} is damaged: {str(error).replace(f'{stage}{os.sep}', '')}") from error
    there = {path.relative_to(stage).as_posix() for path in stage.rglob("*") if not path.is_dir()}
    check_names({each: Entry((stage / each).stat().st_size, "") for each in there}, manifest, name)


def card(folder: Path, license: str | None) -> str:
    """The model card: what the hub wants to know, then that of the run."""
    from recurra.text.json_file import read_json

    summary: Any = read_json(folder / "summary.json") if (folder / "summary.json").is_file() else {}
    task = str(summary.get("task", "")) if isinstance(summary, dict) else ""
    about = {"library_name": "recurra", "tags": ["recurra", *([task] if task else [])]}
    if license is not None:
        about["license"] = license.lower() if license != "LICENSE.model" else "other"
    if task in PIPELINES:
        about["pipeline_tag"] = PIPELINES[task]
    lines = "".join(f"{name}: {json_text(value)}\n" for name, value in about.items())
    path = folder / "card.md"
    text = path.read_text("utf-8", "replace") if path.is_file() else f"# {folder.resolve().name}\n"
    return f"---\n{lines}---\n\n{text}"


def check_name(name: str) -> None:
    """Refuse what is no name of a repository."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or ".." in name:
        raise ConfigError(f"{name!r} must be the owner and the name of a repository: owner/name.")


def package() -> Any:
    """huggingface_hub, an extra."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise ConfigError(
            f"the Hugging Face Hub needs huggingface_hub, and {error.name} is not installed: "
            "pip install 'recurra[hub]'."
        ) from error
    return huggingface_hub


@contextlib.contextmanager
def told(name: str) -> Iterator[None]:
    """What the hub or the network refuses inside is said in a sentence."""
    errors = package().errors
    try:
        yield
    except errors.LocalTokenNotFoundError as error:
        raise CheckpointError(
            f"{name}: the hub asks who you are. Log in once with `hf auth login`, or set HF_TOKEN to a token."
        ) from error
    except (errors.RepositoryNotFoundError, errors.GatedRepoError) as error:
        raise CheckpointError(
            f"{name} is not on the hub, or is private and your token may not read it (`hf auth login`, HF_TOKEN)."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(f"{name} has no such revision: name a branch, a tag or a commit.") from error
    except errors.HfHubHTTPError as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in (401, 403):
            raise CheckpointError(
                f"{name}: the hub refuses your token for this ({status}). Log in with one that may write: "
                "`hf auth login`, or set HF_TOKEN."
            ) from error
        raise CheckpointError(f"{name}: the hub answered {str(error).strip().splitlines()[0]}") from error
    except Exception as error:
        # RuntimeError: a file could not be uploaded.
        if not isinstance(error, OSError | RuntimeError) and type(error).__module__.partition(".")[0] not in HTTP:
            raise
        raise CheckpointError(f"{name}: the hub cannot be reached ({error}).") from error
