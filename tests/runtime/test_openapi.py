"""What /openapi.json promises is what the server does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.runtime.application import application
from recurra.runtime.hosted import Hosted
from recurra.runtime.openapi import described
from recurra.runtime.service import Service
from recurra.views.heat_map import HeatMap
from tests.runtime.listening import asked, at_work, posted, request
from tests.runtime.tiny_runs import ASKED
from tests.views.made import EVERY

TYPES = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "enum", "const", "oneOf", "anyOf"),
    *("minimum", "maximum", "exclusiveMinimum", "maxLength", "$ref", "description", "examples"),
}


def faults(value: Any, schema: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """What of a value is not as its schema says; those keywords of JSON Schema are known that the document has."""
    assert schema.keys() <= KEYWORDS, schema
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].removeprefix("#/components/schemas/")]
    kinds = schema.get("type", list(TYPES))
    found = [each for each in ([kinds] if isinstance(kinds, str) else kinds) if _is(value, each)]
    if not found:
        yield f"{where}: {value!r:.40} is no {kinds}"
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where}: {value!r:.40} is none of {schema}"
    for keyword, enough in (("oneOf", 1), ("anyOf", None)):
        fitting = [each for each in schema.get(keyword, ()) if not list(faults(value, each))]
        if keyword in schema and (not fitting or len(fitting) != (enough or len(fitting))):
            yield f"{where}: {len(fitting)} of {keyword} fit {value!r:.60}"
    if isinstance(value, dict):
        yield from _of_object(value, schema, where)
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from faults(each, schema.get("items", {}), f"{where}[{number}]")
        if len(value) < schema.get("minItems", 0):
            yield f"{where}: too few"


def _of_object(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}: no {name}"
    for name, each in value.items():
        if name in known or isinstance(rest, dict):
            yield from faults(each, known.get(name, rest), f"{where}.{name}")
        elif not rest:
            yield f"{where}: {name} is not described"


def _is(value: object, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and (not isinstance(value, bool) or kind == "boolean")  # type: ignore[arg-type]


DOCUMENT = described(sorted(ASKED))
SCHEMAS = DOCUMENT["components"]["schemas"]


def answer_schema(path: str, method: str, status: str = "200") -> Any:
    return DOCUMENT["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]


def question_schema(name: str) -> Any:
    return DOCUMENT["paths"][f"/api/runs/{{run}}/{name}"]["post"]["requestBody"]["content"]["application/json"]


@pytest.fixture(scope="module")
def port(runs: dict[str, Hosted]) -> Iterator[int]:
    with at_work(application(Service(runs))) as found:
        yield found


def test_the_validator_finds_what_is_wrong() -> None:
    run = SCHEMAS["Control"]
    good = {"name": "w", "kind": "integer", "value": 1, "optional": False, "choices": [], "most": 3, "about": "x"}
    assert list(faults(good, run)) == []
    for name, value in (("name", 1), ("kind", "x"), ("optional", 0), ("choices", [1]), ("most", 1.5), ("more", 1)):
        assert list(faults({**good, name: value}, run))
    assert list(faults({}, run))
    assert list(faults({"attention": {"kind": "overlay"}}, SCHEMAS["Views"]))


def test_every_route_of_the_api_is_described_and_every_description_has_a_route(runs: dict[str, Hosted]) -> None:
    routes = {}
    for route in application(Service(runs)).app.routes:  # type: ignore[attr-defined]
        if route.path.startswith("/api"):
            routes[route.path.replace(":path", "")] = {each.lower() for each in route.methods} - {"head"}
    assert routes == {path: set(item) - {"parameters"} for path, item in DOCUMENT["paths"].items()}


def test_every_schema_is_referred_to_and_every_reference_leads_somewhere() -> None:
    text = str(DOCUMENT)
    assert [name for name in SCHEMAS if f"'#/components/schemas/{name}'" not in text] == []
    assert all(piece.split("'")[0] in SCHEMAS for piece in text.split("#/components/schemas/")[1:])


def test_the_document_is_served(port: int) -> None:
    assert asked(port, request("/openapi.json")).json == DOCUMENT


def test_the_list_of_runs_is_as_described(port: int) -> None:
    found = asked(port, request("/api/runs")).json
    assert [run["name"] for run in found["runs"]] == sorted(ASKED)
    assert list(faults(found, answer_schema("/api/runs", "get"))) == []


def test_every_run_says_how_its_answers_are_drawn_and_whether_it_generates(port: int) -> None:
    found = asked(port, request("/api/runs")).json["runs"]
    assert {run["name"]: run["answer"] for run in found} == {
        **{"sounds": "written", "ink": "written", "colours": "written", "intents": "classes"},
        **{"tags": "tags", "text": "likelihood", "levels": "series"},
    }
    for run in found:
        written = posted(port, f"/api/runs/{run['name']}/generate", {"prompt": ASKED[run["name"]], "length": 2})
        assert run["generates"] == (written.status == 200), run["name"]


@pytest.mark.parametrize("name", ASKED)
def test_what_each_task_answers_is_as_described(port: int, name: str) -> None:
    samples = asked(port, request(f"/api/runs/{name}/samples")).json
    assert samples["samples"]
    assert list(faults(samples, answer_schema("/api/runs/{run}/samples", "get"))) == []

    question = {"inputs": [ASKED[name], *samples["samples"]]}
    assert list(faults(question, question_schema("predict")["schema"])) == []
    answers = posted(port, f"/api/runs/{name}/predict", question).json
    assert len(answers["answers"]) == len(question["inputs"])
    assert list(faults(answers, answer_schema("/api/runs/{run}/predict", "post"))) == []

    explained = posted(port, f"/api/runs/{name}/explain", {"input": ASKED[name]}).json
    assert list(faults(explained, answer_schema("/api/runs/{run}/explain", "post"))) == []
    about = next(run for run in asked(port, request("/api/runs")).json["runs"] if run["name"] == name)
    assert {*explained["views"]} <= {*about["views"]} <= {*explained["views"], *explained["missing"]}


def test_every_view_was_seen(runs: dict[str, Hosted]) -> None:
    seen = {}
    for name in ASKED:
        for view, numbers in runs[name].explain(ASKED[name], {})["views"].items():
            seen[view, numbers["kind"]] = name
    kinds = {
        ("probabilities", "tokens"),
        ("saliency", "several"),
        ("tree", "tree"),
        ("gates", "units"),
        ("decoder", "units"),
    }
    assert set(seen) == kinds | {("attention", kind) for kind in ("heat_map", "tokens", "overlay")}


@pytest.mark.parametrize("kind", EVERY)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_every_kind_of_view_is_as_described(kind: str, data: st.DataObject) -> None:
    assert list(faults(data.draw(EVERY[kind]()).json(), SCHEMAS["View"])) == []


@pytest.mark.parametrize(("name", "prompt"), [("text", "one t"), ("ink", ASKED["ink"]), ("colours", [1, 0])])
def test_what_is_written_is_as_described(port: int, name: str, prompt: object) -> None:
    question = {"prompt": prompt, "count": 2, "seed": 3, "length": 4, "temperature": 0.5, "top_k": 3, "top_p": 0.9}
    assert list(faults(question, question_schema("generate")["schema"])) == []
    found = posted(port, f"/api/runs/{name}/generate", question).json
    assert len(found["texts"]) == 2
    assert list(faults(found, answer_schema("/api/runs/{run}/generate", "post"))) == []


def test_examples_are_as_their_own_schemas_say() -> None:
    for name in ("predict", "explain", "generate"):
        content = question_schema(name)
        assert list(faults(content["example"], content["schema"])) == []


def test_what_is_refused_is_described(port: int) -> None:
    for path, name, question, status in (
        ("sounds", "predict", {"inputs": 1}, "400"),
        ("nix", "predict", {}, "404"),
        ("sounds", "explain", {"best": 0}, "400"),
    ):
        found = posted(port, f"/api/runs/{path}/{name}", question)
        assert found.status == int(status)
        assert list(faults(found.json, answer_schema(f"/api/runs/{{run}}/{name}", "post", status))) == []


def test_limits_that_are_described_hold(port: int) -> None:
    for name, schema in question_schema("generate")["schema"]["properties"].items():
        for bound, beyond in (("maximum", 1), ("minimum", -1)):
            limit = next((each[bound] for each in schema.get("anyOf", []) if bound in each), None)
            if limit is not None:
                assert posted(port, "/api/runs/text/generate", {"prompt": "one", name: limit + beyond}).status == 400


def test_names_of_operations_differ() -> None:
    names = sorted(
        item[method]["operationId"] for item in DOCUMENT["paths"].values() for method in item if method != "parameters"
    )
    assert all(one != other for one, other in pairwise(names))


def test_a_task_and_a_view_of_your_own_are_described(runs: dict[str, Hosted]) -> None:
    described = answer_schema("/api/runs/{run}/explain", "post")
    own = HeatMap(["a"], ["1"], [[1.0]], title="The best path").json()
    for view, is_right in ((own, True), ({**own, "rows": [1]}, False)):
        assert bool(list(faults({"views": {"path": view}, "missing": {}, "seconds": 0.1}, described))) != is_right
    assert list(faults({"input": "x", "show": ["best path"]}, question_schema("explain")["schema"])) == []
    about = json.loads(json.dumps({**runs["tags"].about, "task": "ctc", "siblings": []}))
    assert list(faults(about, SCHEMAS["Run"])) == []
