"""The views of the page, drawn of numbers that are made up: what is shown, said and told of each, without a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from recurra.analysis.alignment import Alignment, as_json, pharaoh

HERE = "http://127.0.0.1:9"
KINDS = {"js": "text/javascript", "css": "text/css"}
EVIL = "<img src=x onerror=alert(1)>"
STYLES = "".join(f'<link rel="stylesheet" href="/page/{name}.css">' for name in ("page", "views", "answers"))
START = f"<!doctype html>{STYLES}<main></main>"
DRAW = """async ([name, numbers, state]) => {
  const { draw } = await import(`/page/${name}.js`);
  const place = document.createElement("div");
  document.querySelector("main").replaceChildren(place);
  window.changes = [];
  const began = performance.now();
  draw(place, numbers, { run: {}, output: "", state, change: (patch) => window.changes.push(patch) });
  place.getBoundingClientRect();
  return performance.now() - began;
}"""

Draw = Callable[..., float]


@pytest.fixture(scope="module")
def view(browser: Browser) -> Iterator[Page]:
    """A page that is given its files, and complains about nothing."""

    def given(route: Route) -> None:
        name = route.request.url.removeprefix(f"{HERE}/page/")
        if name == f"{HERE}/":
            route.fulfill(body=START, content_type="text/html")
        else:
            body = (resources.files("recurra") / "page" / name).read_text("utf-8")
            route.fulfill(body=body, content_type=KINDS[name.rpartition(".")[2]])

    context = browser.new_context(viewport={"width": 1000, "height": 1500}, reduced_motion="reduce")
    context.set_default_timeout(4000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.route("**/*", given)
    page.goto(f"{HERE}/")
    yield page
    context.close()
    assert complaints == []


@pytest.fixture
def draw(view: Page) -> Draw:
    """Draws a view of numbers and a state, and says how many milliseconds that took."""
    view.mouse.move(0, 0)
    return lambda name, numbers, **state: float(view.evaluate(DRAW, [name, numbers, state]))


def said(view: Page) -> Locator:
    return view.locator(".said")


def alignment(rows: int, columns: int) -> Alignment:
    weights = np.random.default_rng(rows).dirichlet(np.full(columns, 0.1), rows)
    return Alignment([f"s{n}" for n in range(columns - 1)], [f"t{n}" for n in range(rows - 1)], weights)


def test_a_token_of_the_heat_map_says_where_it_looked_and_who_looked_at_it(view: Page, draw: Draw) -> None:
    weights = [[0.7, 0.3, 0.0], [0.1, 0.2, 0.7]]
    draw("attention", {"kind": "alignment", "source": ["a", "b", "</s>"], "target": ["X", "</s>"], "weights": weights})
    view.locator(".down .label").first.hover()
    expect(said(view)).to_have_text("X looked at a 0.70, b 0.30, ∎ 0.00")
    shares = view.locator(".across .label").evaluate_all(
        "all => all.map(each => Number(each.style.cssText.split('--share: ')[1].split(';')[0]))"
    )
    assert shares == [0.7, 0.3, 0]
    view.locator(".across .label").nth(1).hover()
    expect(said(view)).to_have_text("b was looked at by X 0.30, ∎ 0.20")


@pytest.mark.parametrize("shape", [(1, 1), (5, 4), (4, 9)])
def test_links_are_those_of_the_library(view: Page, draw: Draw, shape: tuple[int, int]) -> None:
    found = alignment(*shape)
    draw("attention", as_json(found))
    links = view.evaluate("async (numbers) => (await import('/page/attention.js')).pharaoh(numbers)", as_json(found))
    assert links == pharaoh(found)


def test_two_hundred_by_two_hundred_cells_are_few_elements_drawn_at_once(view: Page, draw: Draw) -> None:
    numbers = as_json(alignment(200, 200))
    assert min(draw("attention", numbers) for _ in range(3)) < 300  # about 30 where nothing else runs
    assert view.locator("main *").count() < 600
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_tokens_that_look_like_markup_are_text_in_every_view(view: Page, draw: Draw) -> None:
    probabilities = {"tokens": [EVIL], "log_probabilities": [-1.0], "bits": [1.44]}
    node = {"place": 0, "parent": None, "token": EVIL, "probability": 0.5, "score": -1.0, "kept": True}
    node |= {"finished": True, "answer": 1, "text": EVIL}
    tree = {"title": EVIL, "steps": [{"kept": 1, "weighed": 1, "nodes": [node]}], "answers": [{"step": 0, "place": 0}]}
    methods = {"integrated": {"values": [[1.0]], "whole": [1.0], "nothing": [0.0]}}
    saliency = {"tokens": [EVIL], "answers": [EVIL], "unit": EVIL, "left_out": 0, "methods": methods}
    for name, numbers in (
        ("attention", as_json(Alignment([EVIL], [EVIL], [[1.0]]))),
        ("words", probabilities),
        ("words", saliency),
        ("words", {"kind": "queries", "tokens": [EVIL], "weights": [[1.0], [1.0]]}),
        ("tree", tree),
        ("gates", gates([EVIL])),
        ("places", places([EVIL])),
    ):
        draw(name, numbers)
        for summary in view.locator("summary").all():
            summary.click()
        assert view.locator("main img, main [onerror]").count() == 0
        expect(view.locator("main")).to_contain_text("onerror=alert(1)" if name != "tree" else "onerror")


def gates(tokens: list[str]) -> dict[str, Any]:
    def value(low: float) -> dict[str, Any]:
        row = [low + 0.1 * step for step in range(len(tokens))]
        return {"means": row, "units": [7, 3], "rows": [row, [each / 2 for each in row]]}

    return {
        "title": "lstm, layer 2 of 2, forward",
        "tokens": tokens,
        "layer": 2,
        "layers": 2,
        "direction": "forward",
        "directions": ["forward", "backward"],
        "values": {"h": value(-0.5), "f": value(0.25)},
    }


def test_every_value_of_a_unit_is_said_where_one_is_pointed_at_or_walked_to(view: Page, draw: Draw) -> None:
    draw("gates", gates(["a", "b", "c"]))
    view.locator(".strip svg").first.hover(position={"x": 40, "y": 48})
    expect(said(view)).to_have_text("b, step 2 of 3: unit 3")
    expect(view.locator(".readout dd")).to_have_text(["−0.200", "0.175"])
    view.locator(".strip svg").first.hover(position={"x": 40, "y": 5})
    expect(said(view)).to_have_text("b, step 2 of 3: mean over all units")
    expect(view.locator(".readout dd")).to_have_text(["−0.400", "0.350"])
    view.get_by_label("Direction").select_option("backward")
    view.get_by_label("Layer").select_option("1")
    assert view.evaluate("changes") == [{"layer": 2, "direction": "backward"}, {"layer": 1, "direction": "forward"}]


def places(tokens: list[str]) -> dict[str, Any]:
    weights = [[[0.0, 0.25], [0.5, 0.25]], [[1.0, 0.0], [0.0, 0.0]]]
    across, down = [0.0, 10.0, 40.0], [0.0, 20.0, 40.0]
    return {"kind": "places", "tokens": tokens, "weights": weights, "down": down, "across": across, "picture": None}


def test_arrow_keys_walk_over_what_was_written_of_a_picture(view: Page, draw: Draw) -> None:
    draw("places", places(["x", "</s>"]))
    expect(said(view)).to_have_text("x looked most at row 2, column 1: 0.50, more than half of it there.")
    assert view.locator(".looked rect").count() == 3
    view.get_by_role("radio", checked=True).focus()
    view.keyboard.press("ArrowRight")
    expect(view.get_by_role("radio", checked=True)).to_have_text("∎")
    expect(said(view)).to_have_text(re.compile("∎ looked most at row 1, column 1: 1.00"))
    assert view.locator(".looked rect").count() == 1
    assert view.evaluate("changes") == [{"token": 1}]


def step(*nodes: tuple[int, int | None, str, float, bool, bool, int | None]) -> dict[str, Any]:
    names = ("place", "parent", "token", "score", "kept", "finished", "answer")
    made = [dict(zip(names, each, strict=True), probability=0.5, text=each[2]) for each in nodes]
    return {"kept": sum(each["kept"] for each in made), "weighed": len(made), "nodes": made}


TREE = {
    "title": "A beam of width 2",
    "steps": [
        step((0, None, "a", -0.5, True, False, None), (1, None, "b", -0.9, True, False, 1)),
        step(
            (0, 1, "∎", -1.0, True, True, 1),
            (1, 1, "c", -1.5, True, False, None),
            (2, 0, "d", -2.0, False, False, None),
        ),
    ],
    "answers": [{"step": 1, "place": 0}],
}


def looks(view: Page) -> dict[str, str]:
    nodes = view.locator(".branches .node")
    return dict(
        nodes.evaluate_all(
            "all => all.map(each => [each.querySelector('.named').textContent, each.getAttribute('class')])"
        )
    )


def test_a_step_of_the_search_knows_nothing_of_later_ones(view: Page, draw: Draw) -> None:
    draw("tree", TREE, step=1)
    first = looks(view)
    assert first["a"] == "node kept leading"
    assert first["b"] == "node kept live"
    assert {first[name] for name in "cd"} == {"node kept ahead", "node dropped ahead"}
    expect(said(view).first).to_have_text("Step 1 keeps 2 of 2. a leads with −0.50.")
    view.locator(".figure").focus()
    view.keyboard.press("ArrowRight")
    last = looks(view)
    assert last["b"] == "node kept leading over"
    assert last["∎"] == "node finished leading over"
    assert last["a"] == "node kept left over"
    expect(said(view).first).to_have_text("Step 2 keeps 2 of 3, 1 of them finished. ∎ is the answer with −1.00.")
    view.keyboard.press("Home")
    expect(said(view).first).to_have_text("A beam of width 2: nothing is written yet.")
    assert view.evaluate("changes") == [{"step": None}, {"step": 0}]


@pytest.mark.parametrize("given", ["x", -3, 1e9, None])
def test_a_step_that_no_search_has_is_kept_within_it(view: Page, draw: Draw, given: object) -> None:
    draw("tree", TREE, step=given)
    expect(view.get_by_role("slider")).to_have_value("0" if given == -3 else "2")


def test_words_say_their_surprise_and_letters_flow_as_a_text(view: Page, draw: Draw) -> None:
    bits = [1.0, 2.0, 4.0]
    draw(
        "words",
        {"tokens": ["to", "be", "</s>"], "log_probabilities": [-each * np.log(2) for each in bits], "bits": bits},
    )
    view.locator(".word").nth(1).hover()
    expect(said(view)).to_have_text("be: p 0.25, 2.00 bits")
    expect(view.locator(".summary")).to_have_text("2.33 bits a token on average, perplexity 5.04")
    letters = list("to be, or not to be\nthat is")
    draw("words", {"tokens": letters, "log_probabilities": [-1.0] * len(letters), "bits": [1.4] * len(letters)})
    expect(view.locator(".words")).to_have_text("to be, or not to be↵that is")


def test_the_answer_and_the_method_that_are_chosen_are_explained(view: Page, draw: Draw) -> None:
    methods = {
        "integrated": {"values": [[1.0, -0.5], [0.25, 0.0]], "whole": [2.0, 1.0], "nothing": [1.5, 0.75]},
        "gradient": {"values": [[0.5, 0.5], [3.0, -3.0]], "whole": [2.0, 1.0], "nothing": [1.5, 0.75]},
    }
    numbers = {"tokens": ["not", "bad"], "answers": ["praise", "scorn"], "unit": "log odds", "left_out": 3}
    draw("words", {**numbers, "methods": methods}, answer=1)
    expect(view.locator(".summary")).to_have_text("scorn: log odds 1.00, without the input 0.75")
    expect(view.locator(".asks")).to_contain_text("The first 2 of 5 are explained.")
    view.get_by_role("radio", name="praise").click()
    view.locator(".word").nth(1).hover()
    expect(said(view)).to_have_text("praise ← bad: −0.500")
    view.get_by_label("Method").select_option("gradient")
    view.locator(".word").nth(1).hover()
    expect(said(view)).to_have_text("praise ← bad: +0.500")
    assert view.evaluate("changes") == [{"answer": 0}, {"method": "gradient"}]


def test_a_token_that_is_pointed_at_stays_where_it_is(view: Page, draw: Draw) -> None:
    places = "(labels) => labels.map((label) => label.getBoundingClientRect().top)"
    draw("attention", as_json(alignment(3, 3)))
    labels = view.locator(".label")
    before = labels.evaluate_all(places)
    view.locator(".down .label").first.hover()
    expect(view.locator(".down .pointed")).to_have_count(1)
    assert labels.evaluate_all(places) == before


def test_a_line_that_only_hints_covers_no_figure(view: Page, draw: Draw) -> None:
    position = "(nodes) => nodes.map((node) => getComputedStyle(node).position)"
    draw("attention", as_json(alignment(9, 9)))
    assert said(view).evaluate_all(position) == ["static"]
    view.locator(".grid").hover()
    expect(said(view)).to_contain_text("←")
    assert said(view).evaluate_all(position) == ["sticky"]
    draw("gates", gates(["a", "b"]))
    assert view.locator(".readout").evaluate_all(position) == ["static"]


def test_answers_that_do_not_stand_by_their_probability_say_what_they_stand_by(view: Page) -> None:
    drawn = """async (logs) => {
      const { drawWritten } = await import("/page/written.js");
      const place = document.createElement("div");
      const [best, ...alternatives] = logs.map((log) => ({ output: "x ^ { 2 }", score: -1, log_probability: log }));
      drawWritten(place, { ...best, alternatives }, { run: { task: "seq2seq", input: {} }, best: 1, choose() {} });
      return [place.textContent.includes("by their score"), place.querySelectorAll(".nth math").length];
    }"""
    assert view.evaluate(drawn, [-1, -2, -3]) == [False, 3]
    assert view.evaluate(drawn, [-1, -3, -2]) == [True, 3]


def test_what_is_wrong_is_said_in_a_sentence(view: Page) -> None:
    said_of = """(text) => import("/page/numbers.js")
      .then(({ parsed }) => parsed(text, { kind: "series", columns: ["a", "b"] })).catch(({ message }) => message)"""
    assert view.evaluate(said_of, "1\n2") == "A step has 1 number here, but the model reads 2: a, b."
    assert view.evaluate(said_of, "1 2\n3 x") == "Step 2: “x” is not a number."
    sentence = """async (text) => (await import("/page/api.js")).sentence(text)"""
    assert view.evaluate(sentence, "input:1: found 3 values a step.") == "Found 3 values a step."
    assert view.evaluate(sentence, "decoding.width must be at least 1.") == "decoding.width must be at least 1."
