"""Every kind of view: its JSON is the whole of it, and every drawing is well formed, whatever it is made of."""

from __future__ import annotations

import builtins
import importlib
import json
import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recurra.text
from recurra import extend, views
from recurra.errors import ConfigError, DataError
from recurra.views.distribution import Distribution
from recurra.views.heat_map import HeatMap
from recurra.views.kinds import KINDS, view_of
from recurra.views.several import Several
from recurra.views.tokens import TokenRow, Tokens
from recurra.views.view import View
from tests.views.made import EVERY, EVIL, parsed, size, titles

FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def test_every_kind_is_tested_here() -> None:
    assert EVERY.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", EVERY)
@FEW
@given(data=st.data())
def test_a_view_that_is_read_back_from_its_json_is_drawn_the_same(kind: str, data: st.DataObject) -> None:
    view: View = data.draw(EVERY[kind]())
    written = view.json()
    assert (written["kind"], written["title"], written["caption"]) == (kind, view.title, view.caption)
    again = view_of(json.loads(json.dumps(written, allow_nan=False)))
    assert type(again) is type(view)
    for width in (900, 360):
        assert again.svg(width) == view.svg(width)
    assert (again.html(), again.text(), again.json()) == (view.html(), view.text(), written)


@pytest.mark.parametrize("kind", EVERY)
@FEW
@given(data=st.data())
def test_every_drawing_is_well_formed_and_takes_no_text_for_markup(kind: str, data: st.DataObject) -> None:
    view: View = data.draw(EVERY[kind]())
    drawing = view.svg()
    assert parsed(drawing).attrib["role"] == "img"
    assert min(size(drawing)) > 0
    for text in (drawing, view.html().replace(view.script or "\0", "")):
        assert not re.search(r"<script|<img|\bnan\b|\binf\b", text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\ud800]", view.text() + drawing + view.html().replace("\n", ""))
    page = view.page()
    assert not re.search(r'(?:src|href)="(?!data:|#)|@import', page)
    assert page.count("<script>") == bool(view.script)


def test_markup_in_tokens_is_said_as_it_is_where_it_is_pointed_at() -> None:
    drawing = HeatMap([EVIL], ["a"], [[1.0]]).svg()
    assert titles(drawing) == ["<script>alert(1)</scrip… ← a: 1.000"]
    assert titles(Tokens(["a"], [TokenRow("", [1.0], [EVIL])]).svg()) == [f"a: {EVIL}"]


@pytest.mark.parametrize("kind", EVERY)
def test_a_png_has_twice_the_pixels_of_the_svg(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    @settings(max_examples=2, deadline=None, database=None)
    @given(EVERY[kind]())
    def check(view: View) -> None:
        view.png(tmp_path / "a.png")
        found = (tmp_path / "a.png").read_bytes()
        assert found.startswith(b"\x89PNG")
        assert struct.unpack(">II", found[16:24]) == tuple(2 * side for side in size(view.svg()))

    check()


def test_a_view_is_written_as_its_ending_says(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    view = HeatMap(["a"], ["b"], [[0.5]], title="a <title>")
    for ending, start in ((".svg", b"<svg "), (".html", b"<!doctype html>"), (".png", b"\x89PNG")):
        assert view.write(tmp_path / f"a{ending}").read_bytes().startswith(start)
    assert "<h1>a &lt;title&gt;</h1>" in (tmp_path / "a.html").read_text()
    with pytest.raises(ConfigError, match=r"a\.pdf: the file must end in \.html, \.svg or \.png"):
        view.write(tmp_path / "a.pdf")
    with pytest.raises(DataError, match=r"a\.png cannot be written: No such file or directory"):
        view.write(tmp_path / "none" / "a.png")
    with pytest.raises(DataError, match=r"a\.svg cannot be written: No such file or directory"):
        view.write(tmp_path / "none" / "a.svg")


def test_without_matplotlib_a_png_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return whole(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install 'recurra\[plot\]', or write an \.svg or \.html file"):
        HeatMap(["a"], ["b"], [[0.5]]).png("a.png")


def test_views_need_neither_torch_nor_matplotlib_nor_an_image_library() -> None:
    program = (
        "import sys, numpy as np; from recurra.views.kinds import view_of; from recurra.views.overlay import Overlay; "
        "view_of(Overlay(['x'], [[[1.0]]], picture=np.zeros((9, 9), np.uint8)).json()).page(); "
        "print({'torch', 'matplotlib', 'PIL'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_kind_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"the kind of a view = 'heatmap' is not known. Did you mean 'heat_map'"):
        view_of({"kind": "heatmap"})
    with pytest.raises(ConfigError, match="the kind of a view = None is not known"):
        view_of({})


def test_numbers_for_programs_are_in_the_json_and_come_back() -> None:
    view = HeatMap(["a"], ["b"], [[0.5]], numbers={"pharaoh": "0-0", "exact": np.array([0.123456789])})
    assert view.json()["pharaoh"] == "0-0"
    assert view_of(view.json()).numbers == {"pharaoh": "0-0", "exact": [0.123456789]}


@pytest.mark.parametrize("kind", EVERY)
@settings(FEW, max_examples=1)
@given(data=st.data())
def test_numbers_do_not_take_the_name_of_a_field(kind: str, data: st.DataObject) -> None:
    view: View = data.draw(EVERY[kind]())
    for name in ("kind", "title", next(name for name in view.json() if name not in ("kind", "title"))):
        with pytest.raises(DataError, match=f"'{name}' cannot be the name of numbers of a view"):
            replace(view, numbers={name: 1})


def test_tables_of_several_views_that_are_called_the_same_are_numbered() -> None:
    one, two, three = (Distribution(["a"], [share]) for share in (0.25, 0.5, 0.75))
    tables = Several([one, two, three, replace(one, title="T"), replace(two, title="T")]).tables()
    assert {name: table.rows for name, table in tables.items()} == {
        "As numbers": [["a", "25.0 %"]],
        "As numbers (2)": [["a", "50.0 %"]],
        "As numbers (3)": [["a", "75.0 %"]],
        "T: as numbers": [["a", "25.0 %"]],
        "T: as numbers (2)": [["a", "50.0 %"]],
    }


def test_no_part_of_a_view_has_the_name_of_something_else_that_is_imported_by_name() -> None:
    known = {name: getattr(module, name) for module in (recurra.text, extend) for name in module.__all__}
    for path in Path(views.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"recurra.views.{path.stem}")
        found = re.findall(r"^(?:class (\w+)|(\w+): TypeAlias)", path.read_text("utf-8"), re.MULTILINE)
        for name in {of_class or of_alias for of_class, of_alias in found} & known.keys():
            assert getattr(module, name) is known[name], f"{name} of {path.name} is the name of something else too"
