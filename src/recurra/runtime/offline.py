"""A page in one file: that of `recurra serve` with a model inside, which answers in the browser and asks nobody."""

from __future__ import annotations

import base64
import gzip
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from recurra.errors import CheckpointError, ConfigError
from recurra.exported import PROGRAM, WEIGHTS
from recurra.exporting.folder import export
from recurra.exporting.gates import GATES
from recurra.exporting.gates import described as gates_described
from recurra.programs.c_text import Printed
from recurra.programs.narrowing import Width
from recurra.programs.program import Function, Program, output_values
from recurra.programs.sizes import Size, quotient
from recurra.programs.wasm import compiled
from recurra.runtime.hosted import Hosted
from recurra.training.trained import load
from recurra.version import __version__

IMPORT = re.compile(r'(from\s+|import\s*\(\s*)"(\.{1,2}/[\w./]+)"')
"""What one module of the page takes from another."""

ANSWERED_HERE = {"api.js": "offline/api.js"}
"""Modules that ask the server, and those that stand in for them."""


def export_page(run: str | Path, target: str | Path, *, trust: bool = False, weights: Width = "float32") -> str:
    """Write the page of a run, and say what it holds; see docs/export.md."""
    file = Path(target)
    if file.suffix != ".html":
        raise ConfigError(f"a page is one file whose name ends in .html, such as {file.name or 'page'}.html.")
    if file.exists():
        raise CheckpointError(f"{file} already exists. Choose another name.")
    with tempfile.TemporaryDirectory(prefix="recurra-") as private:
        report = export(run, Path(private, "exported"), trust=trust, gates=True, weights=weights)
        text, engine = page_of(run, report.folder, trust=trust)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as failure:
        raise CheckpointError(f"{file} cannot be written: {failure.strerror or failure}.") from failure
    size = len(text.encode("utf-8"))
    answers = [f"{report.samples} sample answers of its program agree with the run's own"]
    if report.narrow is not None:
        answers = report.narrow.lines()
    return "\n".join(
        [
            f"exported to {file}: one page of {size / 1e6:,.1f} MB, {engine / 1e3:,.0f} kB of it the engine",
            *answers,
            "open it in a browser, from disk or from anywhere: it asks no server",
        ]
    )


def page_of(run: str | Path, folder: Path, *, trust: bool = False) -> tuple[str, int]:
    """The page of a run that was exported to a folder, and how many bytes of it are the engine."""
    hosted = Hosted(Path(run).resolve().name, run, trust=trust)
    program = Program.from_json((folder / PROGRAM).read_text("utf-8"))
    engine = compiled(Printed(program).text, [f"recurra_{name}" for name in program.functions])
    about = described(hosted, program)
    parts = {
        "engine": engine,
        "weights": (folder / WEIGHTS).read_bytes(),
        "about": json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode("utf-8"),
    }
    return whole_page({name: packed(content) for name, content in parts.items()}), len(engine)


def described(hosted: Hosted, program: Program) -> dict[str, Any]:
    """All that the page must know besides the program: what `/api/runs` says, samples, and how texts become ids."""
    task = hosted.task
    model = dict(task.offline())
    offered, controls = list(model.pop("views")), set(model.pop("controls"))
    samples = hosted.samples()
    if GATES in program.functions:
        offered.append(GATES)
        model["gates"] = gates_described(task, load(hosted.given, trust=hosted.trust).model)
    words = {name: view_words(hosted, samples, name) for name in offered if name in hosted.about["views"]}
    run = {
        **hosted.about,
        "siblings": [],
        "cuts": False,
        "views": list(words),
        "view_titles": {name: hosted.about["view_titles"][name] for name in words},
        "decoding": [each for each in hosted.about["decoding"] if each["name"] in controls],
    }
    return {
        "version": __version__,
        "run": run,
        "samples": samples,
        "functions": {name: signature(function, program) for name, function in program.functions.items()},
        "model": {**model, "views": words},
    }


def view_words(hosted: Hosted, samples: Sequence[object], name: str) -> dict[str, Any]:
    """What a view says whatever it shows, taken from that of a sample: the page puts its own numbers in."""
    for sample in samples:
        found: Mapping[str, Any] = hosted.explain(sample, {}, show=[name])["views"].get(name, {})
        if found:
            return {
                key: value
                for key, value in found.items()
                if isinstance(value, str | bool) and key not in ("caption", "pharaoh")
            }
    return {}


def signature(function: Function, program: Program) -> dict[str, Any]:
    """What a function takes and gives, with sizes as terms [coefficient, factors]."""
    outputs = zip(function.outputs, output_values(function, program), strict=True)
    return {
        "names": list(function.names),
        "inputs": [
            {"name": each.name, "type": each.value.type, "shape": [terms(size) for size in each.value.shape]}
            for each in function.inputs
        ],
        "outputs": [
            {"name": name, "type": value.type, "shape": [terms(size) for size in value.shape]}
            for (name, _), value in outputs
        ],
    }


def terms(size: Size) -> list[Any]:
    """A size as JSON.

    >>> terms(Size.read("2*B*T+1")), terms(Size.read("(T+1)//2"))
    ([[2, ['B', 'T']], [1, []]], [[1, [{'of': [[1, ['T']], [1, []]], 'by': 2}]]])
    """

    def factor(name: str) -> Any:
        if not name.startswith("("):
            return name
        whole, over = quotient(name)
        return {"of": terms(whole), "by": over}

    return [[coefficient, [factor(each) for each in product]] for product, coefficient in size.terms]


def packed(content: bytes) -> str:
    """Bytes as text, which the page unpacks: base64 of gzip, the same each time."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def whole_page(parts: Mapping[str, str]) -> str:
    """index.html with all that it loads inside, and these parts by their ids."""
    page = resources.files("recurra") / "page"
    text = (page / "index.html").read_text("utf-8")
    icon = f"data:image/svg+xml;base64,{base64.b64encode((page / 'icon.svg').read_bytes()).decode('ascii')}"
    text = text.replace("/page/icon.svg", icon)
    for name in ("page.css", "views.css", "answers.css"):
        style = (page / name).read_text("utf-8")
        text = text.replace(f'<link rel="stylesheet" href="/page/{name}">', f"<style>\n{style}</style>")
    theme = (page / "theme.js").read_text("utf-8")
    text = text.replace('<script src="/page/theme.js"></script>', f"<script>\n{theme}</script>")
    # A module inside a file has no address: its name is one of a map, whose values hold the modules.
    modules = {name: inlined(name, content) for name, content in modules_of(page).items()}
    imports = {f"recurra/{name}": data_address(content) for name, content in modules.items()}
    loaded = (
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n'
        '  <script type="module">import "recurra/main.js";</script>'
    )
    text = text.replace('<script type="module" src="/page/main.js"></script>', loaded)
    about = "Everything runs inside this file: it asks no server and sends nothing."
    text = re.sub(r"<p>Everything runs on this machine\..*?</p>", f"<p>{about}</p>", text, flags=re.DOTALL)
    inside = "".join(f'<script type="text/plain" id="{name}">{content}</script>\n' for name, content in parts.items())
    return text.replace("</body>", f"{inside}</body>")


def modules_of(page: Traversable) -> dict[str, str]:
    """The modules of the page by their names, those for one file among them."""
    own = {each.name: each for each in page.iterdir() if each.name.endswith(".js") and each.name != "theme.js"}
    inner = {f"offline/{each.name}": each for each in (page / "offline").iterdir() if each.name.endswith(".js")}
    return {name: each.read_text("utf-8") for name, each in {**own, **inner}.items() if name not in ANSWERED_HERE}


def inlined(name: str, text: str) -> str:
    """A module that names others as the map does.

    >>> inlined("offline/api.js", 'import { a } from "../asking.js";')
    'import { a } from "recurra/asking.js";'
    >>> inlined("pane.js", 'import { a } from "./api.js";')
    'import { a } from "recurra/offline/api.js";'
    """
    folder = name.rpartition("/")[0]

    def mapped(found: re.Match[str]) -> str:
        parts = [*(folder.split("/") if folder else []), *found[2].split("/")]
        path: list[str] = []
        for part in parts:
            if part == "..":
                path.pop()
            elif part != ".":
                path.append(part)
        target = "/".join(path)
        return f'{found[1]}"recurra/{ANSWERED_HERE.get(target, target)}"'

    return IMPORT.sub(mapped, text)


def data_address(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode('utf-8')).decode('ascii')}"
