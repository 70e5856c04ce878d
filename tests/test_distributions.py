"""recurra-run and recurra are two wheels of one package: which files each has, and what the first can do."""

from __future__ import annotations

import ast
import runpy
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from recurra.exporting.folder import export
from tests.exporting.test_without_torch import BLOCKED

ROOT = Path(__file__).parent.parent
BUILD = runpy.run_path(str(ROOT / "hatch_build.py"))
MOST_BYTES = 80_000_000


@pytest.fixture(scope="module")
def of_run() -> list[str]:
    found: list[str] = BUILD["files_of_run"]()
    return found


def test_each_file_of_the_package_is_in_one_wheel(of_run: list[str]) -> None:
    every = BUILD["files"]()
    assert set(of_run) < set(every)
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert not tracked or {each.removeprefix("src/") for each in tracked.splitlines()} <= set(every)


@pytest.mark.parametrize(
    ("given", "urls"), [("", None), ("https://example.org/recurra", {"Source": "https://example.org/recurra"})]
)
def test_the_address_of_the_project_is_told_by_who_builds_a_release(
    given: str, urls: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECURRA_URL", given)
    found: dict[str, object] = {}
    BUILD["Addresses"](str(ROOT), {}).update(found)
    assert found.get("urls") == urls
    for file in ("pyproject.toml", "run/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text("utf-8"))
        assert "urls" in project["project"]["dynamic"]
        assert "custom" in project["tool"]["hatch"]["metadata"]["hooks"]


def test_what_is_no_address_of_the_project_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_URL", "ftp://example.org")
    with pytest.raises(ValueError, match="must begin with https://"):
        BUILD["Addresses"](str(ROOT), {}).update({})


def test_recurra_run_has_what_answers_and_not_what_trains(of_run: list[str]) -> None:
    has = {
        "exported.py",
        "cli.py",
        "runtime/server.py",
        "page/main.js",
        "py.typed",
        "search/beam.py",
        "text/__init__.py",
    }
    assert {f"recurra/{each}" for each in has} <= set(of_run)
    lacks = {"padding.py", "cells/lstm.py", "training/trainer.py", "exporting/folder.py", "demo_data/train.tsv.gz"}
    assert not {f"recurra/{each}" for each in lacks} & set(of_run)


def test_every_module_of_recurra_run_can_be_imported_without_what_it_does_not_bring(of_run: list[str]) -> None:
    modules = [BUILD["name_of"](file) for file in of_run if file.endswith(".py")]
    code = (
        f"import sys, importlib\nfor name in {BLOCKED}: sys.modules[name] = None\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
    )
    ends = ("__main__",)  # it runs the command line
    given = [name for name in modules if not name.endswith(ends)]
    done = subprocess.run(
        [sys.executable, "-c", code, *given], capture_output=True, text=True, check=False, cwd=ROOT / "src"
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_imports_are_found_outside_of_functions_and_for_programs_alone() -> None:
    text = (
        "import a\nfrom b.c import d\nif TYPE_CHECKING:\n    import e\nelse:\n    import f\n"
        "try:\n    import g\nexcept ImportError:\n    import h\ndef i():\n    import j\nclass K:\n    import l\n"
    )
    found = set(BUILD["imported"](ast.parse(text).body, {"b.c.d": None}))
    assert found == {"a", "b.c", "b.c.d", "f", "g", "h", "l"}


def test_the_two_distributions_agree_on_versions_and_licence() -> None:
    run, whole = (
        tomllib.loads((ROOT / each).read_text("utf-8"))["project"] for each in ("run/pyproject.toml", "pyproject.toml")
    )
    known = {*whole["dependencies"], *whole["optional-dependencies"]["serve"]}
    extras = run["optional-dependencies"]
    assert {*run["dependencies"], *extras["subwords"], *extras["serve"]} <= known
    assert run["dependencies"] == ["numpy>=2.0"]
    assert run["scripts"] == whole["scripts"]
    assert run["requires-python"] == whole["requires-python"]
    assert (ROOT / "run" / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")


# Wheels, as `make wheels` builds them, installed as a user would


def done(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command prints; one that fails says why."""
    found = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=env, cwd=cwd)
    assert found.returncode == 0, f"{command}\n{found.stdout[-2000:]}\n{found.stderr[-2000:]}"
    return found.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("wheels")
    tree = here / "tree"
    names = (
        "src",
        "run",
        "docs",
        "examples",
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
    )
    tree.mkdir()
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tree / name)
    done(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", here / "source", cwd=tree)
    [source] = (here / "source").glob("*.tar.gz")
    offline = ["--no-index", "--no-build-isolation", "--no-deps", "--quiet"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", *offline]
    done(*pip, "--wheel-dir", here / "dist", source, tree / "run")
    done(*pip, "--wheel-dir", here / "whole", tree)
    return here


def held(wheel: Path) -> tuple[set[str], str]:
    """The files of the package in a wheel, and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("recurra/")}
        [about] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        scripts = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        return names, archive.read(about).decode() + "".join(archive.read(name).decode() for name in scripts)


@pytest.mark.slow
def test_the_wheels_have_no_file_in_common_and_all_together(wheels: Path) -> None:
    [run], [rest] = (list((wheels / "dist").glob(f"{name}-*.whl")) for name in ("recurra_run", "recurra"))
    [whole] = (wheels / "whole").glob("recurra-*.whl")
    (of_run, run_says), (of_rest, rest_says), (of_all, all_says) = map(held, (run, rest, whole))
    assert not of_run & of_rest
    assert of_run | of_rest == of_all == set(BUILD["files"]())
    version = run_says.partition("\nVersion: ")[2].partition("\n")[0]
    assert f"Requires-Dist: recurra-run=={version}\n" in rest_says
    assert "Requires-Dist: recurra-run" not in all_says  # a checkout needs no index for its other half
    assert "recurra.__main__:main" in run_says
    assert "recurra.__main__:main" not in rest_says


@pytest.mark.slow
def test_recurra_run_answers_scores_and_serves_where_numpy_alone_is_installed(wheels: Path, tmp_path: Path) -> None:
    """NumPy, and the server's packages later, are those of this environment: nothing is fetched."""
    old = ROOT / "tests" / "old_runs" / "0.1" / "seq2seq"
    export(old / "run", tmp_path / "exported")
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    [site] = (home / "lib").glob("*/site-packages")
    ours = {path.name for path in site.iterdir()}
    here = Path(str(np.__file__)).parents[1]
    for pattern in ("numpy", "numpy.libs", "numpy-*.dist-info"):
        for path in here.glob(pattern):
            shutil.copytree(path, site / path.name)
    [wheel] = (wheels / "dist").glob("recurra_run-*.whl")
    done(home / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", wheel)
    size = sum(
        path.stat().st_size
        for part in site.iterdir()
        if part.name not in ours
        for path in [part, *part.rglob("*")]
        if path.is_file()
    )
    assert size <= MOST_BYTES
    recurra, environment = home / "bin" / "recurra", {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def typed(*given: str) -> str:
        return done(recurra, *given, env=environment, cwd=tmp_path)

    [valid] = (old / "data").glob("valid.*")
    (tmp_path / "inputs.txt").write_text("cat\ngoatee\n")
    answers = typed("predict", "exported", "inputs.txt").splitlines()
    assert len(answers) == 2
    assert "exact_match" in typed("evaluate", "exported", str(valid))
    code = "import recurra, sys; print(recurra.load('exported').predict(['cat'])[0].output, 'torch' in sys.modules)"
    assert done(home / "bin" / "python", "-c", code, env=environment, cwd=tmp_path) == f"{answers[0]} False\n"
    for given, words in (
        (["train", "seq2seq", "--train", str(valid)], "pip install recurra"),
        *(([name], "pip install recurra") for name in ("lab adding", "cells", "demo", "bench")),
        (["serve", "exported"], "or without torch 'recurra-run[serve]'"),
    ):
        command = [str(recurra), *(part for each in given for part in each.split())]
        refused = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert (refused.returncode, words in refused.stderr) == (2, True), (given, refused.stderr)
    for name in ("starlette", "uvicorn", "anyio", "idna", "sniffio", "click", "h11", "typing_extensions.py"):
        if (here / name).exists():
            (shutil.copytree if (here / name).is_dir() else shutil.copy2)(here / name, site / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([recurra, "serve", "exported", "--port", str(port)], env=environment, cwd=tmp_path)
    try:
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs") as answer:
                    assert b'"attention"' in answer.read()
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("the server does not answer")
    finally:
        server.terminate()
        server.wait(10)
