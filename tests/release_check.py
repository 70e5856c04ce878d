"""What `make release-check` and `make tag` look at before a release. Python's standard library alone.

python tests/release_check.py dist     the wheels in a folder: contents, size, licences, and both installed anew
python tests/release_check.py --tag    tag HEAD, where version, changelog and citation agree
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_BYTES = {"recurra": 4_000_000, "recurra_run": 2_500_000}
UNWANTED = re.compile(r"(^|/)(tests?|benchmarks|\.git|__pycache__|\.venv)(/|$)|\.(pyc|so|orig|rej)$")
DEMO_LICENCE = "LICENSE.cmudict"


class Refused(Exception):
    """A release is not as it should be; the message says why."""


def check(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


def looked_into(wheel: Path) -> str:
    """The name of the distribution of a wheel, whose contents are as they should be."""
    name = wheel.name.partition("-")[0]
    size = wheel.stat().st_size
    check(size <= MOST_BYTES[name], f"{wheel.name} has {size:,} bytes, more than {MOST_BYTES[name]:,}")
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        unwanted = [file for file in files if UNWANTED.search(file)]
        check(not unwanted, f"{wheel.name} contains {unwanted[:5]}")
        info = next(file for file in files if file.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(info).decode())
        folder = info.rpartition("/")[0]
        check(f"{folder}/licenses/LICENSE" in files, f"{wheel.name} has no LICENSE")
        if name == "recurra":
            has_licence = any(file.endswith(DEMO_LICENCE) for file in files)
            check(has_licence, f"{wheel.name} has no {DEMO_LICENCE}, the licence of the words of the demo")
            same = [each for each in metadata.get_all("Requires-Dist", []) if each.startswith("recurra-run")]
            wanted = f"recurra-run=={metadata['Version']}"
            check(same == [wanted], f"{wheel.name} requires {same}, not {wanted}")
        check(bool(metadata["License-Expression"]), f"{wheel.name} does not say its licence")
        check("py.typed" in " ".join(files) or name == "recurra", f"{wheel.name} has no py.typed")
        print(f"{wheel.name}: {len(files)} files, {size:,} bytes, {metadata['License-Expression']}")
    return name


def installed(folder: Path, wheels: list[Path], asked: list[str]) -> Path:
    """The Python of a new environment with these wheels."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--constraint", str(ROOT / "constraints.txt"), "--find-links", str(wheels[0].parent), *asked], check=True
    )
    return python


def tried(wheels: list[Path], *, with_demo: bool) -> None:
    """Both distributions in environments of their own: what each is for must work."""
    by_name = {wheel.name.partition("-")[0]: wheel for wheel in wheels}
    with tempfile.TemporaryDirectory() as folder:
        python = installed(Path(folder) / "small", wheels, [str(by_name["recurra_run"])])
        code = "import recurra, sys; recurra.load; assert 'torch' not in sys.modules; print(recurra.__version__)"
        subprocess.run([str(python), "-c", code], check=True, cwd=folder)
        python = installed(Path(folder) / "whole", wheels, [f"{by_name['recurra']}[all]"])
        command = [str(python), "-m", "recurra"]
        subprocess.run([*command, "--version"], check=True, cwd=folder)
        subprocess.run([*command, "--print-completion", "bash"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        if with_demo:
            subprocess.run([*command, "demo"], check=True, cwd=folder)
    print("both wheels were installed in clean environments" + (", and the demo ran" if with_demo else ""))


def version_of(root: Path) -> str:
    """The version that all places agree on."""
    found = re.search(r'__version__ = "([^"]+)"', (root / "src/recurra/version.py").read_text())
    check(found is not None, "src/recurra/version.py has no __version__")
    assert found is not None
    version = found[1]
    newest = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    check(
        newest is not None and re.match(rf"{re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", newest[1]) is not None,
        f"the newest heading of CHANGELOG.md is {newest and newest[1]!r}, not '{version} (YYYY-MM-DD)'",
    )
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    check(cited is not None and cited[1] == version, f"CITATION.cff does not say version: {version}")
    return version


def tag(root: Path) -> str:
    """Tag HEAD as a release."""
    changed = subprocess.run(
        ["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    check(not changed, f"something is not committed:\n{changed}")
    name = f"v{version_of(root)}"
    known = subprocess.run(["git", "tag", "--list", name], cwd=root, capture_output=True, text=True, check=True).stdout
    check(not known, f"there is a tag {name} already: raise the version")
    subprocess.run(["git", "tag", "--annotate", name, "--message", f"recurra {name[1:]}"], cwd=root, check=True)
    return name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="where the wheels are")
    parser.add_argument("--tag", action="store_true", help="tag HEAD")
    parser.add_argument("--without-demo", action="store_true", help="do not run the demo, which takes two minutes")
    given = parser.parse_args()
    try:
        if given.tag:
            print(f"tagged {tag(ROOT)}")
        else:
            wheels = sorted((given.folder or ROOT / "dist").resolve().glob("*.whl"))
            names = {looked_into(wheel) for wheel in wheels}
            check(names == {"recurra", "recurra_run"}, f"there are wheels of {names or 'nothing'}: run make wheels")
            tried(wheels, with_demo=not given.without_demo)
    except Refused as reason:
        print(f"release: {reason}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
