"""The page in one file: its search and its texts are those of the library, and a model inside it answers as its run."""

from __future__ import annotations

import dataclasses
import importlib.util
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from recurra.errors import ConfigError, RecurraError
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.predictors import offline
from recurra.programs.wasm import zig
from recurra.runtime.hosted import Hosted
from recurra.runtime.offline import export_page, page_of
from recurra.search.beam import beam
from recurra.search.greedy import greedy
from recurra.search.rules import Rules
from recurra.search.tree import Tree
from recurra.text import Characters, Symbols, Words
from recurra.training.loading import load_task

HERE = "http://offline.test"
FOLDER = Path(__file__).parents[2] / "src" / "recurra" / "page"
HAS_ZIG = importlib.util.find_spec("ziglang") is not None or shutil.which("zig") is not None
END, FIRST = 0, 1


@pytest.fixture(scope="module")
def modules(browser: Browser) -> Iterator[Page]:
    """A page that may import the modules of the page."""

    def given(route: Route) -> None:
        name = route.request.url.removeprefix(f"{HERE}/")
        file = FOLDER / name
        if name and file.is_file():
            route.fulfill(body=file.read_bytes(), content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    page = browser.new_page()
    page.route(f"{HERE}/**", given)
    page.goto(f"{HERE}/")
    yield page
    page.close()


class Table:
    """A decoder that is a table: log p of what follows a token at a step, and where it looks."""

    def __init__(self, seed: int, vocabulary: int, steps: int, places: int) -> None:
        draw = np.random.default_rng(seed)
        # Few different values: ties are common.
        scores = draw.integers(0, 4, (steps, vocabulary, vocabulary)).astype(np.float64)
        self.log_p = (scores - np.log(np.exp(scores).sum(-1, keepdims=True))).astype(np.float32)
        looks = draw.random((steps, vocabulary, places)) + 0.1
        self.weights = (looks / looks.sum(-1, keepdims=True)).astype(np.float32)

    def step(self, tokens: Any, moving: Any, _: Any) -> tuple[Any, Any]:
        (at, _) = moving
        return self.log_p[at, tokens], (at + 1, self.weights[at, tokens])


SEARCH = """async ([log_p, weights, options, width]) => {
  const { beam, followed, largest } = await import("/offline/search.js");
  const stepping = () => {
    let at = 0;
    return (tokens) => {
      const now = at++;
      return { logP: (row) => log_p[now][tokens[row]], weights: (row) => weights[now][tokens[row]] };
    };
  };
  if (width === 0) return { answers: [followed(stepping(), (logP) => largest(logP, 1)[0], options)], layers: [] };
  return beam(stepping(), { ...options, width });
}"""


def answered(found: list[Any]) -> list[tuple[list[int], float, bool]]:
    return [(each.tokens, round(each.score, 5), each.ended) for each in found]


@pytest.mark.parametrize("seed", range(12))
def test_the_search_of_a_page_finds_what_the_search_of_the_library_finds(modules: Page, seed: int) -> None:
    draw = random.Random(seed)
    vocabulary, steps, best = draw.randint(3, 7), draw.randint(1, 7), draw.randint(1, 3)
    width, penalty, coverage = draw.choice([0, 1, 2, 5]), draw.choice([0.0, 0.7, 1.0]), draw.choice([0.0, 0.4])
    banned = [2] if draw.random() < 0.3 else []
    rules: dict[str, Any] = {"min_length": draw.choice([0, 0, 2]), "no_repeat": draw.choice([0, 0, 1, 2])}
    table = Table(seed, vocabulary, steps, places=3)
    every: dict[str, Any] = {
        "length": steps,
        "ends": [END],
        "rules": Rules(banned=banned, **rules),
        "length_penalty": penalty,
        "watch": lambda moving: moving[1],
        "coverage_penalty": coverage,
    }
    begun = (table.step, np.array([FIRST]), (0, np.zeros((1, 3), np.float32)), ())
    trees: list[Tree] = []
    options = {
        "first": FIRST,
        "length": steps,
        "best": best,
        "penalty": penalty,
        "coverage": coverage,
        "rules": {"end": END, "banned": banned, "minLength": rules["min_length"], "noRepeat": rules["no_repeat"]},
    }
    asked = [table.log_p.tolist(), table.weights.tolist(), options, width]
    try:
        wanted = greedy(*begun, **every)
        if width:
            [wanted] = beam(*begun, width=width, best=best, record=trees, **every)
    except ConfigError:  # the rules leave nothing to write
        with pytest.raises(Exception, match="leave nothing to write"):
            modules.evaluate(SEARCH, asked)
        return
    found = modules.evaluate(SEARCH, asked)
    assert [(each["tokens"], round(each["score"], 5), each["ended"]) for each in found["answers"]] == answered(wanted)
    for layer, drawn in zip(trees[0].layers if trees else [], found["layers"], strict=True):
        assert (layer.tokens, layer.kept, layer.finished) == (drawn["tokens"], drawn["kept"], drawn["finished"])
        assert np.allclose(layer.scores, drawn["scores"], atol=1e-5)


TEXTS = [
    "Don't go (yet), 東京!",
    "Well-known FACTS: 3.5% of £20 — “quoted” 'so'",
    'He said "no" / "yes".',
    "naïve café, İstanbul",
    "ひらがな と カタカナ、漢字。",
    "  many   blanks\tand tabs ",
    "#tag @name ¿qué? ¡sí! a_b c-d e’f",
    "",
]


@pytest.mark.parametrize("kind", ["characters", "words", "symbols"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_page_cuts_and_joins_texts_as_the_library_does(modules: Page, kind: str, text: str) -> None:
    tokenizer: Any = {"characters": Characters(), "words": Words(), "symbols": Symbols()}[kind]
    tokens = tokenizer.split(text)
    found = modules.evaluate(
        """async ([text, about, tokens]) => {
          const { split, join } = await import("/offline/texts.js");
          return [split(text, about), join(tokens, about)];
        }""",
        [text, {"kind": kind, "lowercase": False}, tokens],
    )
    assert found == [tokens, tokenizer.join(tokens)]


def test_sizes_are_told_by_the_shapes_of_inputs(modules: Page) -> None:
    inputs = [
        {"shape": [[[1, ["B"]]], [[1, ["M0"]]], [[12, []]]]},
        {"shape": [[[1, ["B", "K"]]]]},
        {"shape": [[[1, [{"of": [[1, ["M0"]], [1, []]], "by": 2}]]]]},
    ]
    sizes, at = modules.evaluate(
        """async ([inputs, shapes, terms]) => {
          const { sizesOf, sizeAt } = await import("/offline/engine.js");
          const sizes = sizesOf(inputs, shapes);
          return [sizes, sizeAt(terms, sizes)];
        }""",
        [inputs, [[2, 7, 12], [10], [4]], [[2, ["B", {"of": [[1, ["M0"]], [1, []]], "by": 2}]], [1, []]]],
    )
    assert sizes == {"B": 2, "M0": 7, "K": 5}
    assert at == 2 * 2 * 4 + 1


ASK = """async ([verb, body]) => {
  const { questionsTo } = await import("recurra/offline/api.js");
  return questionsTo("run")[verb](body);
}"""


def near(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same but for roundings."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(near(value, other.get(name)) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float):
        return isinstance(other, int | float) and abs(one - other) < 2e-4
    return bool(one == other)


@pytest.mark.timeout(300)  # the first time, the compiler builds its own library for a minute
@pytest.mark.skipif(not HAS_ZIG, reason="there is no Zig here, which compiles programs to WebAssembly")
@pytest.mark.parametrize("task", ["seq2seq", "tagging", "classification", "language_model"])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_page_opened_from_disk_answers_as_the_run_and_asks_nobody(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1] / "old_runs" / "0.1" / task)
    hosted = Hosted("run", "run", trust=True)
    export("run", tmp_path / "exported", trust=True, gates=True)
    text, engine = page_of("run", tmp_path / "exported", trust=True)
    (tmp_path / "page.html").write_text(text, "utf-8")
    assert engine < 200_000
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
    page.goto(f"file://{tmp_path / 'page.html'}")
    page.wait_for_selector(".took:not(:empty)")
    samples = hosted.samples()
    found = page.evaluate(ASK, ["predict", {"inputs": samples}])["answers"]
    wanted = [hosted.predict([each], {})["answers"][0] for each in samples]
    left_out = ("start", "end", "offsets")
    for one, other in zip(wanted, found, strict=True):
        assert near({name: value for name, value in one.items() if name not in left_out}, other)
    for view in {"attention", "probabilities", "tree", "gates"} & set(hosted.about["views"]):
        asked = {"input": samples[1], "show": [view]}
        here = page.evaluate(ASK, ["explain", asked])["views"][view]
        there = hosted.explain(samples[1], {}, show=[view])["views"][view]
        numbers_only = ("pharaoh", "bits", "log_probabilities", "table", "rows")  # said otherwise, or rounded
        assert near({name: value for name, value in there.items() if name not in numbers_only}, here)
    assert complaints == []
    page.close()


STREAMED = """async (ids) => {
  const { array, engine } = await import("recurra/offline/engine.js");
  const bytesOf = async (id) => {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (each) => each.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const about = JSON.parse(new TextDecoder().decode(await bytesOf("about")));
  const model = await engine(await bytesOf("engine"), await bytesOf("weights"), about.functions);
  const read = (tokens, targets, states) => {
    const given = { tokens: array(tokens, 1, tokens.length), targets: array(targets, 1, targets.length) };
    const lengths = array([tokens.length], 1);
    const { log_p: log, ...after } = model.call("likelihoods", { ...given, lengths, ...states });
    return [Array.from(log.data), after];
  };
  const [tokens, targets] = [ids.slice(0, -1), ids.slice(1)];
  const [whole] = read(tokens, targets, model.call("begin", {}));
  let states = model.call("begin", {});
  const streamed = [];
  for (const [place, token] of tokens.entries()) {
    const [log, after] = read([token], [targets[place]], states);
    streamed.push(...log);
    // Saved and read again, as bytes.
    const kept = (data) => new data.constructor(Uint8Array.from(new Uint8Array(data.buffer)).buffer);
    const every = Object.entries(after);
    states = Object.fromEntries(every.map(([name, { data, shape }]) => [name, array(kept(data), ...shape)]));
  }
  return [whole, streamed];
}"""


@pytest.fixture
def page_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The page of an old run of a task."""
    monkeypatch.chdir(Path(__file__).parents[1] / "old_runs" / "0.1" / request.param)
    text, _ = page_of("run", exported(tmp_path), trust=True)
    (tmp_path / "g2p.html").write_text(text, "utf-8")
    return tmp_path / "g2p.html"


def exported(place: Path) -> Path:
    export("run", place / "exported", trust=True, gates=True)
    return place / "exported"


@pytest.mark.timeout(300)
@pytest.mark.skipif(not HAS_ZIG, reason="there is no Zig here, which compiles programs to WebAssembly")
@pytest.mark.parametrize("page_file", ["language_model"], indirect=True)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.* has no manifest.json:UserWarning")
def test_the_engine_of_a_page_reads_a_text_token_by_token(browser: Browser, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(f"file://{page_file}")
    page.wait_for_selector(".took:not(:empty)")
    ids = [1, 2, 3, 4, 2, 1, 3]
    whole, streamed = page.evaluate(STREAMED, ids)
    running = load_exported(page_file.parent / "exported", by="numpy", trust=True).running
    tokens, targets = np.array([ids[:-1]]), np.array([ids[1:]])
    [right, *_] = running.run("likelihoods", [tokens, np.array([len(ids) - 1]), targets, *running.run("begin", [])])
    assert np.allclose(whole, right[0], atol=1e-5)
    assert np.allclose(streamed, right[0], atol=1e-5)
    page.close()


@pytest.mark.timeout(300)
@pytest.mark.skipif(not HAS_ZIG, reason="there is no Zig here, which compiles programs to WebAssembly")
@pytest.mark.parametrize("page_file", ["seq2seq"], indirect=True)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.* has no manifest.json:UserWarning")
def test_a_page_of_ones_own_embeds_the_page(browser: Browser, page_file: Path) -> None:
    shutil.copy(Path(__file__).parents[2] / "examples" / "page" / "embedded.html", page_file.parent)
    page = browser.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
    page.goto(f"file://{page_file.parent / 'embedded.html'}")
    inside = page.frame_locator("iframe")
    for word in ("onomatopoeia", "lightning"):
        if word == "lightning":  # the other stands in the address of the frame
            page.get_by_role("button", name=word).click()
        expect(inside.locator(".text-field")).to_have_value(word)
        expect(inside.get_by_text("answered in")).to_be_visible()
    assert complaints == []
    page.close()


@pytest.mark.parametrize(
    ("target", "said"),
    [("page", "a page is one file whose name ends in .html, such as page.html."), ("there.html", "already exists")],
)
def test_a_page_is_a_new_file(tmp_path: Path, target: str, said: str) -> None:
    (tmp_path / "there.html").write_text("mine")
    with pytest.raises(RecurraError, match=said):
        export_page("run", tmp_path / target)
    assert (tmp_path / "there.html").read_text() == "mine"


def test_a_page_needs_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    zig.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="Run pip install ziglang"):
        zig()
    zig.cache_clear()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("colours", "a model that reads numbers or pictures cannot be exported to a page yet"),
        ("levels", "models for forecasting cannot be exported to a page yet"),
    ],
)
def test_a_model_that_no_page_can_hold_is_refused_in_words(runs: Path, run: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_task(runs / run).offline()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"brackets": "balanced"}, "a model with decoding.brackets = 'balanced' cannot be exported to a page yet"),
        ({"search": "exhaustive"}, "a page has no search 'exhaustive'"),
    ],
)
def test_a_search_that_pages_lack_is_refused_in_words(runs: Path, changed: dict[str, Any], said: str) -> None:
    task: Any = load_task(runs / "translation")
    decoding = dataclasses.replace(task.settings.decoding, **changed)
    with pytest.raises(ConfigError, match=said):
        offline.writing(task.texts, decoding, task.search_tokens, first=1, columns=1, copies=False)
