"""The JSON API in its own words, as OpenAPI has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import recurra
from recurra.runtime.controls import MOST
from recurra.runtime.inputs import ABOUT, Kind

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
MAYBE: Schema = {"type": ["number", "null"]}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def named(values: Schema) -> Schema:
    """An object whose names are not known beforehand."""
    return {"type": "object", "additionalProperties": values}


def held(required: Schema, optional: Schema | None = None, *, others: bool = False) -> Schema:
    """An object of properties, the first of which are always there."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": others,
    }


def said(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about}


def of(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


TEXTS, NUMBERS = listed(TEXT), listed(MAYBE)
TABLE = said(listed(NUMBERS), "a row for each of the first, a column for each of the second")

SCHEMAS: dict[str, Schema] = {
    "Error": held({"error": said(TEXT, "what is wrong, and what to do, in a sentence")}),
    "Input": {
        "type": ["string", "array"],
        "items": {},
        "description": "what one run is asked with, by input.kind: "
        + "; ".join(f"{kind}: {ABOUT[kind]}" for kind in get_args(Kind)),
    },
    "Decoding": {
        **named({}),
        "description": "settings of [decoding] other than those of the run, of those that the run lists; at most "
        + ", ".join(f"{name} {most:,}" for name, most in MOST.items()),
        "examples": [{"width": 10, "best": 3}],
    },
    "Control": held(
        {
            "name": TEXT,
            "kind": {"enum": ["choice", "integer", "number", "boolean", "text", "list"]},
            "value": said({}, "as the run has it"),
            "optional": said(FLAG, "may be null"),
            "choices": TEXTS,
            "most": said({"type": ["integer", "null"]}, "a number, letters or items that may be asked for"),
            "about": TEXT,
        }
    ),
    "Run": held(
        {
            "name": TEXT,
            "task": {"enum": ["tagging", "classification", "language_model", "forecasting", "vec2seq", "seq2seq"]},
            "described": said(TEXT, "the network in words"),
            "input": held(
                {
                    "kind": {"enum": list(get_args(Kind))},
                    "columns": TEXTS,
                    "ranges": said(listed(listed(NUMBER)), "of a vector, where most of each column lies"),
                    "colour": said(MAYBE, "of a vector of red, green and blue, their most"),
                    "about": TEXT,
                }
            ),
            "decoding": listed(of("Control")),
            "views": said(TEXTS, "what explain may have to show"),
            "summary": held({}, {"parameters": WHOLE, "scores": named(MAYBE)}),
        }
    ),
    "Answer": held(
        {"input": TEXT, "output": TEXT, "score": said(MAYBE, "a log-probability, or what a search makes of it")},
        {
            "tokens": TEXTS,
            "tags": TEXTS,
            "label": said({}, "the class; of several classes, a list"),
            "label_probability": MAYBE,
            "probabilities": said({}, "of classes by their names, or of the tags of each token in a list"),
            "log_probability": MAYBE,
            "log_probabilities": NUMBERS,
            "nll": MAYBE,
            "perplexity": MAYBE,
            "unknown": WHOLE,
            "alignment": TABLE,
            "source_tokens": TEXTS,
            "attention": said(listed({}), "of each query its weights, over words or over places"),
            "columns": said(WHOLE, "places of a picture that make a row"),
            "values": said(listed(NUMBERS), "of a forecast, step by step"),
            "alternatives": said(listed({}), "next best answers, each with output, score and the like; or classes"),
        },
        others=True,
    ),
    "Alignment": held({"kind": {"const": "alignment"}, "source": TEXTS, "target": TEXTS, "weights": TABLE}),
    "Queries": held({"kind": {"const": "queries"}, "tokens": TEXTS, "weights": TABLE}),
    "Places": held(
        {
            "kind": {"const": "places"},
            "tokens": TEXTS,
            "weights": said(listed(listed(NUMBERS)), "a map for each token"),
            "down": said(NUMBERS, "pixels at which rows of places begin, and where the last ends"),
            "across": NUMBERS,
            "picture": said({"type": ["string", "null"]}, "as the model saw it, a data URL"),
        }
    ),
    "Probabilities": held({"tokens": TEXTS, "log_probabilities": NUMBERS, "bits": said(NUMBERS, "surprise")}),
    "Saliency": held(
        {
            "tokens": TEXTS,
            "answers": TEXTS,
            "unit": TEXT,
            "left_out": said(WHOLE, "answers that are not shown"),
            "methods": named(held({"values": TABLE, "whole": NUMBERS, "nothing": NUMBERS})),
        }
    ),
    "Tree": held(
        {
            "title": TEXT,
            "steps": listed(held({"kept": WHOLE, "weighed": WHOLE, "nodes": listed(of("Node"))})),
            "answers": said(listed(held({"step": WHOLE, "place": WHOLE})), "where each ended, the best first"),
        }
    ),
    "Node": held(
        {
            "place": WHOLE,
            "parent": said({"type": ["integer", "null"]}, "its place in the step before"),
            "token": TEXT,
            "probability": MAYBE,
            "score": MAYBE,
            "kept": FLAG,
            "finished": FLAG,
            "answer": said({"type": ["integer", "null"]}, "on the way to this answer"),
            "text": TEXT,
        }
    ),
    "Gates": held(
        {
            "title": TEXT,
            "tokens": TEXTS,
            "layer": WHOLE,
            "layers": WHOLE,
            "direction": TEXT,
            "directions": TEXTS,
            "values": said(
                named(held({"means": NUMBERS, "units": listed(WHOLE), "rows": TABLE})),
                "by the names of the cell's equations: the mean of all units at each token, and a row for each of some",
            ),
        }
    ),
    "Text": held(
        {
            "prompt": TEXT,
            "text": said(TEXT, "what was written"),
            "whole": TEXT,
            "tokens": TEXTS,
            "log_probability": MAYBE,
            "ended": said(FLAG, "false: cut off at the length"),
        }
    ),
    "Views": held(
        {},
        {
            "attention": {"oneOf": [of("Alignment"), of("Queries"), of("Places")]},
            "probabilities": of("Probabilities"),
            "saliency": of("Saliency"),
            "tree": of("Tree"),
            "gates": of("Gates"),
        },
    ),
}

MISTAKES = {
    "400": "what was asked is not understood, or too much",
    "404": "there is no such run",
    "408": "the request did not come in time",
    "413": "the request is too large",
    "415": "the request is not called application/json",
    "500": "the run cannot be read, or the server made a mistake",
    "503": "the server ends, or too much is asked at once",
    "507": "the memory does not suffice",
}


def whole(least: int, most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def may_be_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


ASKED: dict[str, tuple[Schema, dict[str, Any]]] = {
    "predict": (
        held({"inputs": {**listed(of("Input")), "minItems": 1}}, {"decoding": may_be_null(of("Decoding"))}),
        {"inputs": ["elephant", "cat"], "decoding": {"best": 3}},
    ),
    "explain": (
        held(
            {"input": of("Input")},
            {
                "decoding": may_be_null(of("Decoding")),
                "show": said(
                    may_be_null(listed({"enum": list(SCHEMAS["Views"]["properties"])})), "all where it is left out"
                ),
                "layer": said(may_be_null(whole(1)), "whose gates; the last where it is left out"),
                "direction": may_be_null({"enum": ["forward", "backward"]}),
                "best": said(may_be_null(whole(1, MOST["best"])), "the answer that is explained"),
            },
        ),
        {"input": "elephant", "show": ["attention", "tree"]},
    ),
    "generate": (
        held(
            {},
            {
                "prompt": said(may_be_null(of("Input")), "what to go on from, or to write of"),
                "count": may_be_null(whole(1, MOST["count"])),
                "seed": said(may_be_null(WHOLE), "the same seed gives the same texts"),
                "length": said(may_be_null(whole(1, MOST["length"])), "tokens at most"),
                "temperature": may_be_null({**NUMBER, "minimum": 0}),
                "top_k": may_be_null(whole(1)),
                "top_p": may_be_null({**NUMBER, "exclusiveMinimum": 0, "maximum": 1}),
                "until": said(may_be_null({**TEXT, "maxLength": MOST["until"]}), "a text ends before this"),
                "allow_unknown": may_be_null(FLAG),
            },
        ),
        {"prompt": "Good morrow", "length": 60, "temperature": 0.7},
    ),
}
"""What is sent to a run, with an example."""


def described(runs: Sequence[str]) -> Schema:
    """The document that /openapi.json answers with, for runs of these names."""
    run = {"name": "run", "in": "path", "required": True, "schema": {"type": "string", "enum": list(runs)}}
    run["description"] = "the name of a run; slashes in it may stay as they are"
    seconds = said(NUMBER, "for the computation alone")
    found: dict[str, Any] = {
        "predict": ("Answers to inputs", held({"answers": listed(of("Answer")), "seconds": seconds})),
        "explain": (
            "What a model did with one input, as numbers",
            held({"views": of("Views"), "missing": said(named(TEXT), "why a view is not there"), "seconds": seconds}),
        ),
        "generate": (
            "Texts that a language model writes on, or that vec2seq writes of a vector or picture",
            held({"texts": listed(of("Text")), "seconds": seconds}),
        ),
    }
    paths: dict[str, Any] = {
        "/api/runs": {
            "get": _operation(
                "runs", "The runs that are served", held({"version": TEXT, "runs": listed(of("Run"))}), ["500", "503"]
            )
        },
        "/api/runs/{run}/samples": {
            "parameters": [run],
            "get": _operation(
                "samples",
                "A few inputs to ask with; none where the data is gone",
                held({"samples": listed(of("Input"))}),
                ["404", "500", "503"],
            ),
        },
    }
    for name, (summary, answer) in found.items():
        schema, example = ASKED[name]
        content = {"application/json": {"schema": schema, "example": example}}
        operation = _operation(name, summary, answer, list(MISTAKES))
        paths[f"/api/runs/{{run}}/{name}"] = {
            "parameters": [run],
            "post": {**operation, "requestBody": {"required": True, "content": content}},
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recurra serve",
            "version": recurra.__version__,
            "description": "Trained models on this machine: answers, what they look like from inside, and texts.",
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _operation(name: str, summary: str, answer: Schema, mistakes: Sequence[str]) -> Schema:
    responses: Schema = {"200": _response("what was asked for", answer)}
    responses |= {status: _response(MISTAKES[status], of("Error")) for status in mistakes}
    return {"operationId": name, "summary": summary, "responses": responses}


def _response(about: str, schema: Schema) -> Schema:
    return {"description": about, "content": {"application/json": {"schema": schema}}}
