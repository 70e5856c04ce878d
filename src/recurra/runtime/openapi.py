"""The JSON API in its own words, as OpenAPI has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import recurra
from recurra.runtime.effort import MOST
from recurra.runtime.schemas import (
    FLAG,
    NUMBER,
    SCHEMAS,
    TEXT,
    TEXTS,
    WHOLE,
    JsonSchema,
    held,
    listed,
    may_be_null,
    named,
    of,
    said,
    whole,
)

MISTAKES = {
    "400": "the request is invalid or asks for too much",
    "401": "the server needs a token",
    "404": "there is no such run",
    "408": "the request timed out",
    "413": "the request is too large",
    "415": "the Content-Type is not application/json",
    "429": "too many requests wait for this run: try again after the seconds in Retry-After",
    "500": "the run cannot be read, or internal error",
    "503": "the deadline has passed, the server is shutting down, or there are too many connections: try again",
    "507": "out of memory",
}


ASKED: dict[str, tuple[JsonSchema, dict[str, Any]]] = {
    "predict": (
        held(
            {"inputs": {**listed(of("Input")), "minItems": 1}},
            {
                "decoding": may_be_null(of("Decoding")),
                "raw": said(
                    may_be_null(FLAG), "inputs are raw texts: an answer for each sentence found; where a run cuts"
                ),
            },
        ),
        {"inputs": ["elephant", "cat"], "decoding": {"best": 3}},
    ),
    "explain": (
        held(
            {"input": of("Input")},
            {
                "decoding": may_be_null(of("Decoding")),
                "show": said(may_be_null(TEXTS), "views to return, from those that the run lists; default: all"),
                "layer": said(may_be_null(whole(1)), "layer whose gates are returned; default: the last"),
                "direction": may_be_null({"enum": ["forward", "backward"]}),
                "best": said(may_be_null(whole(1, MOST["best"])), "the answer to explain; of a raw text, the sentence"),
                "raw": said(may_be_null(FLAG), "the input is a raw text; where a run cuts"),
            },
        ),
        {"input": "elephant", "show": ["attention", "tree"]},
    ),
    "generate": (
        held(
            {},
            {
                "prompt": said(may_be_null(of("Input")), "the text to continue, or the input to describe"),
                "count": may_be_null(whole(1, MOST["count"])),
                "seed": said(may_be_null(WHOLE), "the same seed gives the same texts"),
                "length": said(may_be_null(whole(1, MOST["length"])), "tokens at most"),
                "temperature": may_be_null({**NUMBER, "minimum": 0}),
                "top_k": may_be_null(whole(1)),
                "top_p": may_be_null({**NUMBER, "exclusiveMinimum": 0, "maximum": 1}),
                "until": said(may_be_null({**TEXT, "maxLength": MOST["until"]}), "generation stops before this text"),
                "allow_unknown": may_be_null(FLAG),
                "stream": said(
                    may_be_null(FLAG),
                    "answer with server-sent events while one text is written: prompt and text in pieces, each "
                    '{"text": ...}; then the event "end", or "error" with {"error": ...}',
                ),
            },
        ),
        {"prompt": "Good morrow", "length": 60, "temperature": 0.7},
    ),
}
"""What is sent to a run, with an example."""


def described(runs: Sequence[str]) -> JsonSchema:
    """The document that /openapi.json answers with, for runs of these names."""
    run = {"name": "run", "in": "path", "required": True, "schema": {"type": "string", "enum": list(runs)}}
    run["description"] = "the name of a run; slashes need not be escaped"
    seconds = said(NUMBER, "of the computation, in seconds")
    found: dict[str, Any] = {
        "predict": ("Answers to inputs", held({"answers": listed(of("Answer")), "seconds": seconds})),
        "explain": (
            "The views of one input, as numbers",
            held({"views": of("Views"), "missing": said(named(TEXT), "why a view is missing"), "seconds": seconds}),
        ),
        "generate": (
            "Text that a language model continues, or that vec2seq generates for a vector or picture",
            held({"texts": listed(of("Text")), "seconds": seconds}),
        ),
    }
    paths: dict[str, Any] = {
        "/api/runs": {
            "get": _operation(
                "runs",
                "The runs that are served",
                held({"version": TEXT, "runs": listed(of("Run"))}),
                ["401", "500", "503"],
            )
        },
        "/api/runs/{run}/samples": {
            "parameters": [run],
            "get": _operation(
                "samples",
                "A few example inputs; empty if the data is missing",
                held({"samples": listed(of("Input"))}),
                ["401", "404", "429", "500", "503"],
            ),
        },
    }
    deadline = {"name": "X-Deadline-Seconds", "in": "header", "schema": {**NUMBER, "exclusiveMinimum": 0}}
    deadline["description"] = "seconds within which the answer is needed, if less than the server allows"
    for name, (summary, answer) in found.items():
        schema, example = ASKED[name]
        content = {"application/json": {"schema": schema, "example": example}}
        operation = _operation(name, summary, answer, list(MISTAKES))
        paths[f"/api/runs/{{run}}/{name}"] = {
            "parameters": [run, deadline],
            "post": {**operation, "requestBody": {"required": True, "content": content}},
        }
    written = paths["/api/runs/{run}/generate"]["post"]["responses"]["200"]["content"]
    written["text/event-stream"] = {"schema": TEXT}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recurra serve",
            "version": recurra.__version__,
            "description": "Trained models on this machine: predictions, explanations and generated text.",
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _operation(name: str, summary: str, answer: JsonSchema, mistakes: Sequence[str]) -> JsonSchema:
    responses: JsonSchema = {"200": _response("what was asked for", answer)}
    responses |= {status: _response(MISTAKES[status], of("Error")) for status in mistakes}
    return {"operationId": name, "summary": summary, "responses": responses}


def _response(about: str, schema: JsonSchema) -> JsonSchema:
    return {"description": about, "content": {"application/json": {"schema": schema}}}
