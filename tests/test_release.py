"""What make tag and make release-check refuse."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.release_check import Refused, looked_into, tag, version_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose version, changelog and citation agree."""
    (tmp_path / "src" / "recurra").mkdir(parents=True)
    (tmp_path / "src" / "recurra" / "version.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.0 (2026-01-31)\n\n- All new.\n\n## 1.1.0 (2025-01-31)\n"
    )
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.0\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "All")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_head_is_tagged_where_all_agree_and_only_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "somebody@example.org")
    assert tag(project) == "v1.2.0"
    assert git(project, "tag", "--list").split() == ["v1.2.0"]
    with pytest.raises(Refused, match=r"there is a tag v1\.2\.0 already: raise the version"):
        tag(project)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("CHANGELOG.md", "# Changelog\n\n## Unreleased\n", r"'Unreleased', not '1\.2\.0 \(YYYY-MM-DD\)'"),
        ("CITATION.cff", "version: 1.1.0\n", r"CITATION\.cff does not say version: 1\.2\.0"),
    ],
)
def test_a_version_that_is_not_said_everywhere_is_refused(project: Path, file: str, text: str, message: str) -> None:
    (project / file).write_text(text)
    with pytest.raises(Refused, match=message):
        version_of(project)


def test_what_is_not_committed_is_not_released(project: Path) -> None:
    (project / "more.py").touch()
    with pytest.raises(Refused, match=r"something is not committed:\n\?\? more\.py"):
        tag(project)


def test_the_citation_says_the_version_of_the_code() -> None:
    root = Path(__file__).parent.parent
    version = (root / "src" / "recurra" / "version.py").read_text().split('"')[-2]
    assert f"\nversion: {version}\n" in (root / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"recurra/tests/test_all.py": ""}, r"contains \['recurra/tests/test_all.py'\]"),
        ({}, "has no LICENSE"),
        ({"recurra_run-1.dist-info/licenses/LICENSE": ""}, "does not say its licence"),
    ],
)
def test_a_wheel_with_wrong_contents_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    wheel = tmp_path / "recurra_run-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {"recurra_run-1.dist-info/METADATA": "Name: recurra-run\nVersion: 1\n", **files}.items():
            archive.writestr(name, text)
    with pytest.raises(Refused, match=message):
        looked_into(wheel)
