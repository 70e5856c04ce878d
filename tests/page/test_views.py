"""The views of the page, drawn from values that are made up: what is shown, said and told of each, without a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from recurra.analysis.alignment import alignment, pharaoh
from recurra.analysis.probabilities import Probabilities
from recurra.analysis.saliency import Saliency
from recurra.analysis.saliency import view as explained
from recurra.views.distribution import Distribution
from recurra.views.heat_map import HeatMap
from recurra.views.kinds import KINDS
from recurra.views.lines import Band, Curve, Lines, Mark, Panel
from recurra.views.overlay import Overlay
from recurra.views.several import Several
from recurra.views.tokens import TokenRow, Tokens
from recurra.views.tree import BeamTree, End, Node, Step
from recurra.views.units import Units, Values
from recurra.views.view import View

HERE = "http://127.0.0.1:9"
TYPES = {"js": "text/javascript", "css": "text/css"}
EVIL = "<img src=x onerror=alert(1)>"
STYLES = "".join(f'<link rel="stylesheet" href="/page/{name}.css">' for name in ("page", "views", "answers"))
START = f"<!doctype html>{STYLES}<main></main>"
DRAW = """async ([numbers, state]) => {
  const { drawView } = await import("/page/drawers.js");
  const place = document.createElement("div");
  document.querySelector("main").replaceChildren(place);
  window.changes = [];
  const began = performance.now();
  drawView(place, numbers, { state, change: (patch) => window.changes.push(patch) });
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
            route.fulfill(body=body, content_type=TYPES[name.rpartition(".")[2]])

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
    """Draws a view in a state, and says how many milliseconds that took."""
    view.mouse.move(0, 0)
    return lambda seen, **state: float(view.evaluate(DRAW, [seen.json(), state]))


def said(view: Page) -> Locator:
    return view.locator(".said")


def looked(rows: int, columns: int) -> HeatMap:
    weights = np.random.default_rng(rows).dirichlet(np.full(columns, 0.1), rows)
    return alignment([f"s{n}" for n in range(columns - 1)], [f"t{n}" for n in range(rows - 1)], weights)


def test_a_token_of_the_heat_map_says_where_it_looked_and_who_looked_at_it(view: Page, draw: Draw) -> None:
    weights = [[0.7, 0.3, 0.0], [0.1, 0.2, 0.7]]
    draw(alignment(["a", "b", "</s>"], ["X", "</s>"], weights))
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
    found = looked(*shape)
    draw(found)
    links = pharaoh(found)
    assert view.get_by_role("button", name="Copy as Pharaoh").count() == bool(links)
    if links:
        view.get_by_role("button", name="Copy as Pharaoh").click()
        expect(view.locator(".links")).to_contain_text(links)


def test_two_hundred_by_two_hundred_cells_are_few_elements_drawn_at_once(view: Page, draw: Draw) -> None:
    found = looked(200, 200)
    assert min(draw(found) for _ in range(3)) < 300  # about 30 where nothing else runs
    assert view.locator("main *").count() < 600
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")


def every(text: str) -> list[View]:
    """A view of each kind that is made of one text."""
    node = Node(0, None, text, 0.5, -1.0, True, True, 1, text)
    saliency = Saliency([text], [text, text], [[1.0], [0.5]], [1.0, 1.0], [0.0, 0.0], "integrated", text)
    head: dict[str, Any] = {"title": text, "caption": text, "about": text}
    return [
        HeatMap([text], [text], [[1.0]], title=text, about=text),
        Probabilities([text], [-1.0]).view(),
        explained(saliency),
        Tokens([text], [TokenRow(text, [1.0], [text])] * 2, title=text),
        BeamTree([Step(1, 1, [node])], [End(0, 0)], title=text, caption=text),
        gates([text]),
        places([text, text]),
        Lines([Panel(text, [Curve(text, [1.0, 2.0])], marks=[Mark(text, 0, 1.0)])], text, [text, text], **head),
        Distribution([text], [0.5], [text], said=[text]),
        Several([Distribution([text], [0.5], title=text)] * 2, text, title=text),
        Several([Distribution([text], [0.5], title=text)] * 2, title=text),
    ]


def test_tokens_that_look_like_markup_are_text_in_every_view(view: Page, draw: Draw) -> None:
    assert {each.kind for each in every("a")} == KINDS.keys()
    for each in every(EVIL):
        draw(each)
        for summary in view.locator("summary").all():
            summary.click()
        assert view.locator("main img, main [onerror]").count() == 0
        expect(view.locator("main")).to_contain_text("onerror=alert(1)" if each.kind != "tree" else "onerror")


def gates(tokens: list[str]) -> Units:
    def value(low: float) -> Values:
        row = [low + 0.1 * step for step in range(len(tokens))]
        return Values(row, [7, 3], [row, [each / 2 for each in row]], row, row)

    return Units(
        tokens,
        {"h": value(-0.5), "f": value(0.25)},
        layer=2,
        layers=2,
        directions=["forward", "backward"],
        title="Gates over time",
        caption="lstm, layer 2 of 2, forward",
    )


def test_every_value_of_a_unit_is_said_where_one_is_pointed_at_or_walked_to(view: Page, draw: Draw) -> None:
    draw(gates(["a", "b", "c"]))
    box = view.locator(".strip svg").first.bounding_box()
    assert box is not None
    middle = box["width"] / 2  # the second of three steps
    view.locator(".strip svg").first.hover(position={"x": middle, "y": 48})
    expect(said(view)).to_have_text("b, step 2 of 3: unit 3")
    expect(view.locator(".readout dd")).to_have_text(["−0.200", "0.175"])
    view.locator(".strip svg").first.hover(position={"x": middle, "y": 5})
    expect(said(view)).to_have_text("b, step 2 of 3: mean over all units")
    expect(view.locator(".readout dd")).to_have_text(["−0.400", "0.350"])
    view.get_by_label("Direction").select_option("backward")
    view.get_by_label("Layer").select_option("1")
    assert view.evaluate("changes") == [{"layer": 2, "direction": "backward"}, {"layer": 1, "direction": "forward"}]


def places(tokens: list[str]) -> Overlay:
    weights = [[[0.0, 0.25], [0.5, 0.25]], [[1.0, 0.0], [0.0, 0.0]]]
    picture = np.zeros((40, 40), np.uint8)
    return Overlay(tokens, weights, [0.0, 20.0, 40.0], [0.0, 10.0, 40.0], picture)


def test_arrow_keys_walk_over_what_was_written_of_a_picture(view: Page, draw: Draw) -> None:
    draw(places(["x", "</s>"]))
    expect(said(view)).to_have_text("x looked most at row 2, column 1: 0.50, more than half of it there.")
    assert view.locator(".looked rect").count() == 3
    view.get_by_role("radio", checked=True).focus()
    view.keyboard.press("ArrowRight")
    expect(view.get_by_role("radio", checked=True)).to_have_text("∎")
    expect(said(view)).to_have_text(re.compile("∎ looked most at row 1, column 1: 1.00"))
    assert view.locator(".looked rect").count() == 1
    assert view.evaluate("changes") == [{"token": 1}]


def step(*nodes: tuple[int, int | None, str, float, bool, bool, int | None]) -> Step:
    made = [
        Node(place, parent, token, 0.5, score, kept, finished, answer, token)
        for place, parent, token, score, kept, finished, answer in nodes
    ]
    return Step(sum(each.kept for each in made), len(made), made)


TREE = BeamTree(
    [
        step((0, None, "a", -0.5, True, False, None), (1, None, "b", -0.9, True, False, 1)),
        step(
            (0, 1, "∎", -1.0, True, True, 1),
            (1, 1, "c", -1.5, True, False, None),
            (2, 0, "d", -2.0, False, False, None),
        ),
    ],
    [End(1, 0)],
    caption="A beam of width 2",
)


def looks(view: Page) -> dict[str, str]:
    nodes = view.locator(".branches .node")
    return dict(
        nodes.evaluate_all(
            "all => all.map(each => [each.querySelector('.named').textContent, each.getAttribute('class')])"
        )
    )


def test_a_step_of_the_search_knows_nothing_of_later_ones(view: Page, draw: Draw) -> None:
    draw(TREE, step=1)
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
    draw(TREE, step=given)
    expect(view.get_by_role("slider")).to_have_value("0" if given == -3 else "2")


def test_words_say_their_surprise_and_letters_flow_as_a_text(view: Page, draw: Draw) -> None:
    draw(Probabilities(["to", "be", "</s>"], np.log([0.5, 0.25, 0.0625])).view())
    view.locator(".word").nth(1).hover()
    expect(said(view)).to_have_text("be: p 0.25, 2.00 bits")
    expect(view.locator(".summary")).to_contain_text("2.33 bits a token on average, perplexity 5.04")
    letters = list("to be, or not to be\nthat is")
    draw(Probabilities(letters, [-1.0] * len(letters)).view())
    expect(view.locator(".words")).to_have_text("to be, or not to be↵that is")


def test_the_answer_and_the_method_that_are_chosen_are_explained(view: Page, draw: Draw) -> None:
    shared = (["not", "bad"], ["praise", "scorn"])
    integrated = Saliency(*shared, [[1.0, -0.5], [0.25, 0.0]], [2.0, 1.0], [1.5, 0.75], "integrated", "log odds", "", 3)
    gradient = Saliency(*shared, [[0.5, 0.5], [3.0, -3.0]], [2.0, 1.0], [1.5, 0.75], "gradient", "log odds", "", 3)
    draw(explained(integrated, gradient), row=1)
    expect(view.locator(".summary")).to_have_text("scorn: log odds 1.00, without the input 0.75")
    expect(view.locator(".asks")).to_contain_text("The first 2 of 5 are here.")
    view.get_by_role("radio", name="praise").click()
    view.locator(".word").nth(1).hover()
    expect(said(view)).to_have_text("praise ← bad: −0.500")
    view.get_by_label("Method").select_option("gradient × input")
    expect(view.get_by_role("radio", name="praise")).to_be_checked()
    view.locator(".word").nth(1).hover()
    expect(said(view)).to_have_text("praise ← bad: +0.500")
    assert view.evaluate("changes") == [{"row": 0}, {"view": 1}]


def test_a_step_of_curves_says_all_its_numbers(view: Page, draw: Draw) -> None:
    loss = Panel("loss", [Curve("train", [4.0, 2.0, 1.0], [1, 2, 3]), Curve("valid", [3.0], [3], "solid", dots=True)])
    items = Panel("items", [Curve("", [180.0, 1190.0, 140.0], [1, 2, 3])], 90, bars=True)
    band = Panel("likely", [Curve("said", [1.0, 2.0], [2, 3])], bands=[Band("90 %", [0, 1], [2, 3], [2, 3])])
    draw(Lines([loss, items, band], "step", title="Curves", caption="a run"))
    expect(view.locator(".summary")).to_have_text("a run")
    view.get_by_role("application").focus()
    view.keyboard.press("End")
    expect(said(view)).to_have_text("step 3: train 1, valid 3, items 140, said 2, 90 % 1 to 3")
    view.keyboard.press("ArrowLeft")
    expect(said(view)).to_have_text("step 2: train 2, items 1190, said 1, 90 % 0 to 2")
    view.locator(".lines-panel").first.hover(position={"x": 60, "y": 40})
    expect(said(view)).to_have_text("step 1: train 4, items 180")
    assert view.locator(".curve").count() == 3
    assert view.locator(".column").count() == 3
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_bars_stand_on_zero_and_those_below_it_hang(view: Page, draw: Draw) -> None:
    draw(Lines([Panel("change", [Curve("", [20.0, -10.0, 0.0])], 120, bars=True)], "step", ["a", "b", "c"]))
    ends = "all => all.map(each => [each.y.baseVal.value, each.y.baseVal.value + each.height.baseVal.value])"
    up, down, none = view.locator(".column").evaluate_all(ends)
    assert up[1] == down[0] == none[0] == none[1]
    assert up[1] - up[0] == pytest.approx(2 * (down[1] - down[0]))
    expect(view.locator(".column + .tick")).to_have_text(["20", "−10", "0"])
    draw(Lines([Panel("none", [Curve("", [0.0, 0.0])], 120, bars=True)], "step", ["a", "b"]))
    [[first, _], _] = view.locator(".column").evaluate_all(ends)
    assert first > view.locator(".lines-panel").evaluate("each => each.height.baseVal.value / 2")


def test_a_legend_names_what_is_drawn_as_it_is_drawn(view: Page, draw: Draw) -> None:
    gone = [float("nan")] * 2
    panel = Panel(
        "loss",
        [Curve("known", [1.0, 2.0]), Curve("gone", gone)],
        bands=[Band("likely", [0, 1], [2, 3], look="two"), Band("unsaid", gone, gone)],
        marks=[Mark("best", 1, 2.0), Mark("never", 0, float("nan"))],
    )
    draw(Lines([panel], "step"))
    expect(view.locator(".legend .key")).to_have_text(["known", "likely", "● best"])
    areas = [".legend .swatch", ".between.two"]
    shades = [view.locator(each).evaluate("each => getComputedStyle(each)") for each in areas]
    assert shades[0]["backgroundColor"] == shades[1]["fill"] != "rgba(0, 0, 0, 0)"


def test_curves_without_a_number_say_so(view: Page, draw: Draw) -> None:
    draw(Lines([], caption="nothing has been logged yet"))
    expect(view.locator("main")).to_contain_text("There is nothing to draw yet.")


def test_shares_are_bars_with_their_numbers(view: Page, draw: Draw) -> None:
    draw(Distribution(["i", "f"], [[0.25, 0.5], [0.0, 1.0]], ["low", "high"], apart=True, caption="saturation"))
    expect(view.locator(".bar-number")).to_have_text(["25.0 %, 50.0 %", "0 %, 100 %"])
    widths = view.locator(".bars .bar").evaluate_all("all => all.map(each => each.style.width)")
    assert widths == ["25%", "50%", "0%", "100%"]


def test_weights_of_both_signs_and_counts_are_said_as_what_they_are(view: Page, draw: Draw) -> None:
    draw(HeatMap(["x"], ["a", "b"], [[2.0, -1.5]], signed=True))
    view.locator(".down .label").hover()
    expect(said(view)).to_have_text("x: a +2.00, b −1.50")
    draw(HeatMap(["x"], ["a", "b"], [[1200, 3]]))
    view.locator(".down .label").hover()
    expect(said(view)).to_have_text("x: a 1200, b 3")


def test_a_kind_that_the_page_does_not_know_is_said(view: Page) -> None:
    view.evaluate(DRAW, [{"kind": "hologram", "title": "x"}, {}])
    expect(view.locator("main")).to_contain_text("This page cannot draw a view of the kind “hologram”")


VIEWS_OF = """async ([name, title, seen]) => {
  const { views } = await import("/page/views.js");
  const run = { name: "r", views: [name], view_titles: { [name]: title }, decoding: [] };
  const ask = { explain: async () => ({ views: { [name]: seen }, missing: {} }) };
  const made = views(run, ask, { change() {} });
  document.querySelector("main").replaceChildren(made.node);
  const state = { tab: name, views: {}, best: 1, value: "x", decoding: {} };
  made.show(state, { question: "x", answer: {}, failed: false });
}"""


def test_a_view_of_any_name_is_shown_with_its_title(view: Page) -> None:
    seen = Distribution(["speech", "silence"], [0.75, 0.25], title="What each frame is")
    view.evaluate(VIEWS_OF, ["frames_of_speech", "Frames of speech", seen.json()])
    expect(view.get_by_role("tab")).to_have_text("What each frame is")
    expect(view.locator(".bar-number")).to_have_text(["75.0 %", "25.0 %"])


def test_a_tab_has_its_title_before_its_view_has_come(view: Page) -> None:
    view.evaluate(VIEWS_OF, ["attention", "Where it looked", {}])
    expect(view.get_by_role("tab")).to_have_text("Where it looked")


@pytest.mark.usefixtures("phone")
def test_the_last_tab_is_clear_of_the_fading_at_the_edge_of_a_phone(view: Page) -> None:
    view.set_viewport_size({"width": 390, "height": 800})
    view.evaluate(VIEWS_OF, ["attention", "Where it looked, and after that where it looked once more", {}])
    view.locator("main").evaluate("(main) => { main.style.containerType = 'inline-size'; }")  # as a pane has it
    measured = """(list) => {
      list.scrollLeft = 1e6;
      const faded = Number(/100% - ([\\d.]+)px/.exec(getComputedStyle(list).maskImage)[1]);
      return [list.getBoundingClientRect().right - list.lastElementChild.getBoundingClientRect().right, faded];
    }"""
    room, faded = view.get_by_role("tablist").evaluate(measured)
    assert room > faded - 1 > 0


ANSWER = """async ([run, answer]) => {
  const { draw } = await import("/page/answers.js");
  const place = document.createElement("div");
  place.style.containerType = "inline-size"; // as a pane has it
  document.querySelector("main").replaceChildren(place);
  draw(place, answer, { run: { input: {}, decoding: [], ...run }, value: "a", best: 1, ask: {} });
}"""
SURPRISE = {"tokens": ["a", "</s>"], "log_probabilities": [-1, -2], "nll": 1.5, "perplexity": 4.5}


@pytest.mark.parametrize("kind", ["tags", "classes", "numbers", "likelihood", "series", "hologram"])
def test_an_answer_that_cannot_be_drawn_as_its_kind_is_shown_as_text(view: Page, kind: str) -> None:
    view.evaluate(ANSWER, [{"answer": kind, "generates": True}, {"output": "4.2"}])
    expect(view.locator("main .answer-words")).to_have_text("4.2")


def test_classes_without_a_label_are_shown_as_text(view: Page) -> None:
    view.evaluate(ANSWER, [{"answer": "classes"}, {"output": "yes", "probabilities": {"yes": 0.9, "no": 0.1}}])
    expect(view.locator("main .answer-words")).to_have_text("yes")


def test_a_likelihood_is_shown_without_a_continuation_where_the_run_does_not_generate(view: Page) -> None:
    view.evaluate(ANSWER, [{"answer": "likelihood", "generates": False}, SURPRISE])
    expect(view.locator("main")).to_contain_text("perplexity 4.50")
    expect(view.locator("main").get_by_role("button")).to_have_count(0)
    expect(view.locator("main")).not_to_contain_text("continuation")


@pytest.fixture
def phone(view: Page) -> Iterator[None]:
    """A narrow screen, for one test."""
    view.set_viewport_size({"width": 390, "height": 800})
    yield
    view.set_viewport_size({"width": 1000, "height": 1500})


@pytest.mark.parametrize("width", [390, 1000])
@pytest.mark.usefixtures("phone")
def test_the_least_probabilities_of_answers_fit_their_rows(view: Page, width: int) -> None:
    view.set_viewport_size({"width": width, "height": 800})
    other = {"output": "a few words more", "log_probability": -50.0, "score": -1.0}
    view.evaluate(ANSWER, [{"answer": "written"}, {**other, "alternatives": [other]}])
    expect(view.locator(".nth-p").first).to_have_text("< 0.0001 %")
    assert view.locator(".nth-p").evaluate_all("all => all.map((p) => p.scrollWidth > p.clientWidth)") == [False] * 2
    ends = "all => all.map((p) => p.getBoundingClientRect().right < p.parentElement.getBoundingClientRect().right)"
    assert view.locator(".nth-p").evaluate_all(ends) == [True, True]


SERIES = {"input": {"columns": ["level", "flow", "rain"]}, "answer": "series"}


def test_columns_of_a_forecast_stand_side_by_side_with_one_legend(view: Page) -> None:
    steps = [[1.0, -2.0, 3.0], [2.0, -1.0, 0.0]]
    view.evaluate(ANSWER, [SERIES, {"output": "x", "values": steps, "low": steps, "high": steps}])
    expect(view.locator(".key")).to_have_text(["given", "forecast", "90 % interval"])
    expect(view.locator(".pointed")).to_have_text(["Point at a step, or move with the arrow keys.", "", ""])
    places = "all => all.map((each) => [each.getBoundingClientRect().left, each.getBoundingClientRect().top])"
    (left, top), (right, same), (_, below) = view.locator(".chart").evaluate_all(places)
    assert left < right
    assert top == same < below
    expect(view.locator(".charts")).to_contain_text("−2")


def test_quantiles_of_a_forecast_are_bands_inside_of_its_interval(view: Page) -> None:
    levels = {"0.1": 2.0, "0.25": 3.0, "0.5": 4.0, "0.75": 5.0, "0.9": 6.0}
    quantiles = {level: [[value], [value]] for level, value in levels.items()}
    answer = {"output": "x", "values": [[4.0]] * 2, "low": [[1.0]] * 2, "high": [[7.0]] * 2, "quantiles": quantiles}
    view.evaluate(ANSWER, [{"input": {"columns": ["level"]}, "answer": "series"}, answer])
    expect(view.locator(".key")).to_have_text(["given", "forecast", "90 % interval", "80 % interval", "50 % interval"])
    heights = view.locator(".chart .between").evaluate_all("all => all.map((each) => each.getBBox().height)")
    assert heights[0] == pytest.approx(1.5 * heights[1], rel=0.01)
    assert heights[0] == pytest.approx(3 * heights[2], rel=0.01)
    view.locator(".chart").press("Home")
    said = "Step 1, 1 ahead: 4, with 90 % from 1 to 7, with 80 % from 2 to 6, with 50 % from 3 to 5"
    expect(view.locator(".pointed")).to_have_text(said)


def test_what_is_0_or_1_uses_the_width(view: Page) -> None:
    answer = {"output": "x", "values": [[1, 0, 1]] * 60, "probabilities": [[0.9, 0.1, 0.8]] * 60}
    view.evaluate(ANSWER, [SERIES, answer])
    share = "(each) => each.getBoundingClientRect().width / each.parentElement.clientWidth"
    assert view.locator(".coins").evaluate(share) > 0.9


def test_a_word_without_features_has_a_dash_in_place_of_a_tag(view: Page) -> None:
    tagged = {"tokens": ["cats", ","], "feats": ["Number=Plur", "_"], "probabilities": [[0.9, 0.8]], "output": "x"}
    view.evaluate(ANSWER, [{"answer": "tags"}, tagged])
    expect(view.locator(".under .tag")).to_have_text(["Number=Plur", "–"])
    view.locator(".under .tag").last.hover()
    expect(view.locator(".pointed")).to_have_text(",: _, 80.0 %")


@pytest.mark.usefixtures("phone")
def test_what_is_explained_is_seen_among_many(view: Page, draw: Draw) -> None:
    names = [f"a long name {number}" for number in range(60)]
    draw(Tokens(["x"], [TokenRow(name, [1.0], [name]) for name in names], title="t"), row=50)
    chosen = view.get_by_role("radio", checked=True)
    expect(chosen).to_have_text("a long name 50")
    is_seen = """(each) => {
      const [own, row] = [each.getBoundingClientRect(), each.parentElement.getBoundingClientRect()];
      return own.top >= row.top && own.bottom <= row.bottom + 1;
    }"""
    view.wait_for_function(is_seen, arg=chosen.element_handle())


def test_a_search_that_went_on_after_its_answer_shows_the_answer(view: Page, draw: Draw) -> None:
    steps = [step((0, None, "a", -0.5, True, False, 1), (1, None, "b", -0.9, True, False, None))]
    steps += [step((0, 0, "∎", -1.0, True, True, 1), (1, 1, "c", -1.5, True, False, None))]
    steps += [step((0, 1, "d", -2.0, True, False, None), (1, 1, "e", -2.5, True, False, None)) for _ in range(60)]
    draw(BeamTree(steps, [End(1, 0)], caption="A beam of width 2"))
    expect(view.get_by_role("slider")).to_have_value("62")
    assert view.locator(".figure").evaluate("each => each.scrollWidth > 2 * each.clientWidth")
    assert view.locator(".figure").evaluate("each => each.scrollLeft") == 0


CONTRASTS = """(texts) => {
  const light = (channel) => (channel /= 255) <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(--panel)";
  const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const behind = numbers(getComputedStyle(probe).color);
  const found = texts.map((text) => {
    const seen = getComputedStyle(text).opacity * getComputedStyle(text.parentElement).opacity;
    const mixed = numbers(getComputedStyle(text).fill).map((each, n) => seen * each + (1 - seen) * behind[n]);
    const [low, high] = [luminance(mixed), luminance(behind)].sort((one, other) => one - other);
    return (high + 0.05) / (low + 0.05);
  });
  probe.remove();
  return Math.min(...found);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_search_dropped_can_be_read(view: Page, draw: Draw, theme: str) -> None:
    root = view.locator(":root")
    root.evaluate("(root, theme) => { root.dataset.theme = theme; }", theme)
    try:
        draw(TREE)
        dropped = view.locator(".node.dropped.left text:not(.rank)")
        expect(dropped).to_have_text(["d", "−2.00"])
        assert dropped.evaluate_all(CONTRASTS) >= 4.5
    finally:
        root.evaluate("(root) => { delete root.dataset.theme; }")


def test_numbers_of_units_are_absent_until_one_is_pointed_at(view: Page, draw: Draw) -> None:
    draw(gates(["a", "b"]))
    expect(view.locator(".readout dl")).not_to_be_visible()
    view.locator(".strip svg").first.hover()
    expect(view.locator(".readout dl")).to_be_visible()


def test_a_token_that_is_pointed_at_stays_where_it_is(view: Page, draw: Draw) -> None:
    places = "(labels) => labels.map((label) => label.getBoundingClientRect().top)"
    draw(looked(3, 3))
    labels = view.locator(".label")
    before = labels.evaluate_all(places)
    view.locator(".down .label").first.hover()
    expect(view.locator(".down .pointed")).to_have_count(1)
    assert labels.evaluate_all(places) == before


def test_a_line_that_only_hints_covers_no_figure(view: Page, draw: Draw) -> None:
    position = "(nodes) => nodes.map((node) => getComputedStyle(node).position)"
    draw(looked(9, 9))
    assert said(view).evaluate_all(position) == ["static"]
    view.locator(".grid").hover()
    expect(said(view)).to_contain_text("←")
    assert said(view).evaluate_all(position) == ["sticky"]
    draw(gates(["a", "b"]))
    assert view.locator(".readout").evaluate_all(position) == ["static"]


def test_scores_of_answers_have_as_many_digits_as_in_the_tree(view: Page) -> None:
    scored = [{"output": "a", "log_probability": -1.0, "score": score} for score in (-0.8024, -1.7, -12.0)]
    view.evaluate(ANSWER, [{"answer": "written"}, {**scored[0], "alternatives": scored[1:]}])
    expect(view.locator(".nth-score")).to_have_text(["score −0.80", "score −1.70", "score −12.00"])


def test_answers_that_do_not_stand_by_their_probability_say_what_they_stand_by(view: Page) -> None:
    drawn = """async (logs) => {
      const { drawWritten } = await import("/page/written.js");
      const place = document.createElement("div");
      const [best, ...alternatives] = logs.map((log) => ({ output: "x ^ { 2 }", score: -1, log_probability: log }));
      drawWritten(place, { ...best, alternatives }, { run: { input: {} }, best: 1, choose() {} });
      return [place.textContent.includes("Sorted by score"), place.querySelectorAll(".nth math").length];
    }"""
    assert view.evaluate(drawn, [-1, -2, -3]) == [False, 3]
    assert view.evaluate(drawn, [-1, -3, -2]) == [True, 3]


def test_what_is_wrong_is_said_in_a_sentence(view: Page) -> None:
    said_of = """(text) => import("/page/numbers.js")
      .then(({ parsed }) => parsed(text, { kind: "series", columns: ["a", "b"] })).catch(({ message }) => message)"""
    assert view.evaluate(said_of, "1\n2") == "A step has 1 number here, but the model reads 2: a, b."
    assert view.evaluate(said_of, "1 2\n3 x") == "Step 2: “x” is not a number."
    sentence = """async (text) => (await import("/page/api.js")).sentence(text)"""
    assert view.evaluate(sentence, "input:1: found 3 values per step.") == "Found 3 values per step."
    assert view.evaluate(sentence, "decoding.width must be at least 1.") == "decoding.width must be at least 1."


def test_a_logarithmic_axis_has_round_numbers_beside_it(view: Page, draw: Draw) -> None:
    for values, shown in (([0.15, 2.0], ["0.2", "0.5", "1", "2"]), ([1e-6, 1.0], ["1.0e-6", "1.0e-4", "0.01", "1"])):
        draw(Lines([Panel("loss", [Curve("a", values)], log=True)]))
        expect(view.locator(".lines-panel .tick")).to_have_text(shown)


LEVEL = {"kind": "series", "columns": ["level"], "series": "place"}
TWO = {"kind": "series", "columns": ["level", "flow"], "series": ""}
COLOUR = {"kind": "vector", "columns": ["red", "green", "blue"]}


@pytest.mark.parametrize(
    ("text", "model", "numbers", "note"),
    [
        ("date,level,note\n2024-01-01,3,x\n2024-01-02,,y\n", LEVEL, [[3], [None]], "left out: date, note"),
        ("flow;time;level\n1,5;0;2\n2,5;1;3", TWO, [[2, 1.5], [3, 2.5]], "left out: time"),
        ('"level","what, and why"\r\n3,"a, b"\r\n4,c\r\n', LEVEL, [[3], [4]], "left out: what, and why"),
        ("place,level\nB,3\nB,4\nA,5", LEVEL, [[3], [4]], "place B, the first of 2; left out: place"),
        ("2024-01-01,3\n2024-01-02,4", LEVEL, [[3], [4]], ""),
        ("\ufeff1 2 3 4", LEVEL, [[1], [2], [3], [4]], ""),
        ("1\t2\n3\t4", TWO, [[1, 2], [3, 4]], ""),
        ("255,0,7,red", COLOUR, [[255, 0, 7]], ""),
        (
            "name,red,green,blue\nred,255,0,7\nlime,0,255,0",
            COLOUR,
            [[255, 0, 7]],
            "left out: name; the first of 2 rows",
        ),
        ("1\n2\n3", COLOUR, [[1, 2, 3]], ""),
    ],
)
def test_a_table_is_read_by_its_names_or_its_numbers_and_what_is_left_out_is_said(
    view: Page, text: str, model: dict[str, Any], numbers: list[list[float]], note: str
) -> None:
    read = """([text, input]) => import("/page/numbers.js").then(({ parsed }) => parsed(text, input))"""
    assert view.evaluate(read, [text, model]) == {"numbers": numbers, "note": note}


def test_a_long_table_is_read_from_its_end(view: Page) -> None:
    text = "level\n" + "".join(f"{step}\n" for step in range(1500))
    read = """([text, input]) => import("/page/numbers.js").then(({ parsed }) => parsed(text, input))"""
    found = view.evaluate(read, [text, LEVEL])
    assert found["numbers"][0] == [500]
    assert found["note"] == "the last 1000 of 1500 steps"


def test_columns_that_cannot_be_told_apart_are_refused_in_words(view: Page) -> None:
    read = """([text, input]) => import("/page/numbers.js").then(({ parsed }) => parsed(text, input))
      .catch(({ message }) => message)"""
    assert view.evaluate(read, ["0,3\n1,4", LEVEL]) == (
        "A step has 2 numbers here, but the model reads 1: level. Paste the line with the names of the columns too."
    )
    assert view.evaluate(read, ["time,height\n0,3\n1,4", LEVEL]) == (
        "A step has 2 numbers here, but the model reads 1: level."
    )


def test_what_is_said_of_gates_holds_on_a_dark_page_too(view: Page, draw: Draw) -> None:
    draw(gates(["a", "b"]))
    expect(view.locator("main")).to_contain_text("stronger for larger values")
    expect(view.locator("main")).not_to_contain_text("darker")


@pytest.mark.parametrize("steps", [3, 8, 20])
def test_gates_fill_the_width(view: Page, draw: Draw, steps: int) -> None:
    draw(gates([str(step) for step in range(steps)]))
    [room, drawn] = view.evaluate(
        "[document.querySelector('.fitted').clientWidth, document.querySelector('.strips').clientWidth]"
    )
    assert 0.85 * room < drawn <= room


def test_tags_of_many_parts_take_lines_and_not_the_width_of_the_sentence(view: Page) -> None:
    feats = "Mood=Ind|Number=Plur|Person=3|Tense=Pres|VerbForm=Fin"
    drawn = """async (feats) => {
      const { drawTags } = await import("/page/spans.js");
      const place = document.createElement("div");
      document.querySelector("main").replaceChildren(place);
      const answer = { tokens: ["cats", "sleep"], upos: ["NOUN", "VERB"], feats: ["_", feats] };
      drawTags(place, answer, { run: { input: { kind: "text" } } });
      const boxes = (where) => [...place.querySelectorAll(where)].map((node) => node.getBoundingClientRect());
      const widest = Math.max(...boxes(".under li").map(({ width }) => width));
      const lines = new Set(boxes(".under li .tag:nth-child(2)").map(({ top }) => top)).size;
      return [widest, lines, place.textContent.includes(feats)];
    }"""
    [widest, lines, is_whole] = view.evaluate(drawn, feats)
    assert widest < 160
    assert lines == 1  # the tags of one column stand in one line
    assert is_whole


def test_a_small_picture_of_many_columns_shades_them_by_their_values(view: Page) -> None:
    shades = """async (steps) => {
      const { sparkline } = await import("/page/chart.js");
      const paths = [...sparkline(steps).querySelectorAll(".raster")].filter((path) => path.getAttribute("d"));
      return paths.map((path) => [path.getAttribute("stroke-opacity"), path.getAttribute("d").split("M").length - 1]);
    }"""
    assert view.evaluate(shades, [[low] * 5 for low in (0, 2, 5)]) == [["0.4", 5], ["1", 5]]
    assert view.evaluate(shades, [[0] * 5, [1] * 5, [1] * 5]) == [["1", 10]]
