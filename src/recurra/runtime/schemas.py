"""What is sent to the API and what it answers with, as JSON Schema."""

from __future__ import annotations

from typing import Any, get_args

from recurra.reading.schema import ABOUT, Kind
from recurra.runtime.effort import MOST
from recurra.views.prediction import AnswerKind

JsonSchema = dict[str, Any]

TEXT: JsonSchema = {"type": "string"}
NUMBER: JsonSchema = {"type": "number"}
WHOLE: JsonSchema = {"type": "integer"}
FLAG: JsonSchema = {"type": "boolean"}
MAYBE: JsonSchema = {"type": ["number", "null"]}


def listed(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


def named(values: JsonSchema) -> JsonSchema:
    """An object whose names are not known beforehand."""
    return {"type": "object", "additionalProperties": values}


def held(required: JsonSchema, optional: JsonSchema | None = None, *, others: bool = False) -> JsonSchema:
    """An object of properties, the first of which are always there."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": others,
    }


def said(schema: JsonSchema, about: str) -> JsonSchema:
    return {**schema, "description": about}


def of(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


def whole(least: int, most: int | None = None) -> JsonSchema:
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def may_be_null(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


TEXTS, NUMBERS = listed(TEXT), listed(MAYBE)
TABLE = said(listed(NUMBERS), "a row for each of the first, a column for each of the second")


def view(kind: str, drawn: JsonSchema, numbers: JsonSchema | None = None) -> JsonSchema:
    """A view of a kind: what is drawn of it, and what else programs may want."""
    shared: JsonSchema = {
        "kind": {"const": kind},
        "title": TEXT,
        "caption": said(TEXT, "stands in the picture"),
        "about": said(TEXT, "how to read it"),
    }
    return held({**shared, **drawn}, numbers, others=True)


SCHEMAS: dict[str, JsonSchema] = {
    "Error": held({"error": said(TEXT, "what is wrong, and what to do, in a sentence")}),
    "Input": {
        "type": ["string", "array", "object"],
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
            "task": said(TEXT, "its name: tagging, seq2seq, …, or that of a task of your own"),
            "described": said(TEXT, "the network in words"),
            "input": held(
                {
                    "kind": {"enum": list(get_args(Kind))},
                    "columns": TEXTS,
                    "ranges": said(listed(listed(NUMBER)), "of a vector, where most of each column lies"),
                    "series": said(TEXT, "of a series, the column of a table that tells several apart"),
                    "colour": said(MAYBE, "of a vector of red, green and blue, their most"),
                    "about": TEXT,
                }
            ),
            "decoding": listed(of("Control")),
            "answer": said(
                {"enum": list(get_args(AnswerKind))},
                "how the page draws an answer: tags of tokens, classes with probabilities, numbers, the likelihood of "
                "a text, a written text with alternatives, the next steps of a series, or else the output as text",
            ),
            "generates": said(FLAG, "generate writes texts with this run"),
            "cuts": said(FLAG, "finds tokens and sentences in raw texts"),
            "views": said(TEXTS, "what explain can show of an answer of this run"),
            "view_titles": said(named(TEXT), "what the page calls each of these views"),
            "summary": held(
                {},
                {
                    "parameters": WHOLE,
                    "scores": named(MAYBE),
                    "first_metric": said({"type": ["string", "null"]}, "of the scores, the one that chose the weights"),
                },
            ),
            "siblings": said(TEXTS, "runs beside it of the same task and vocabulary, which may be compared with it"),
        }
    ),
    "Answer": held(
        {"input": TEXT, "output": TEXT, "score": said(MAYBE, "a log-probability, or what a search makes of it")},
        {
            "tokens": TEXTS,
            "of": said(WHOLE, "of raw texts, the number of the input, from 0"),
            "tags": TEXTS,
            "label": said({}, "the class; of several classes, a list"),
            "label_probability": MAYBE,
            "probabilities": said({}, "of classes by their names, or of the tags of each token in a list"),
            "log_probability": MAYBE,
            "log_probabilities": NUMBERS,
            "nll": MAYBE,
            "perplexity": MAYBE,
            "unknown": said(WHOLE, "tokens of a text that are read as <unk>"),
            "not_in_vocabulary": said(TEXTS, "what the model has never seen of the input, and read as <unk>"),
            "alignment": TABLE,
            "source_tokens": TEXTS,
            "attention": said(
                listed({}),
                "of each query its weights, over words or over places; of two texts, of the second or of each of its "
                "words, over the words of the first",
            ),
            "attention_back": said(TABLE, "of two texts, of each word of the first its weights over the second"),
            "first_tokens": TEXTS,
            "second_tokens": TEXTS,
            "columns": said(WHOLE, "places of a picture that make a row"),
            "values": said(
                {"anyOf": [NUMBERS, listed(NUMBERS)]},
                "predicted numbers; of a forecast or of tokens, a list for each step",
            ),
            "times": said(TEXTS, "of a forecast, the times of its steps, as the table of training writes them"),
            "alternatives": said(listed({}), "next best answers, each with output, score and the like; or classes"),
        },
        others=True,
    ),
    "HeatMap": view(
        "heat_map",
        {
            **{"rows": TEXTS, "columns": TEXTS, "weights": TABLE, "signed": said(FLAG, "weights may be below 0")},
            **{"across": said(TEXT, "what columns are"), "down": said(TEXT, "what rows are")},
            **{"of_row": said(TEXT, "what a row does to its columns"), "of_column": TEXT},
            "prose": said(FLAG, "names are sentences"),
        },
        {
            **{"source": said(TEXTS, "of attention, what was read"), "target": said(TEXTS, "what was written")},
            "pharaoh": said(TEXT, "the strongest link of each written token"),
        },
    ),
    "Overlay": view(
        "overlay",
        {
            "tokens": TEXTS,
            "weights": said(listed(listed(NUMBERS)), "a map for each token"),
            "down": said(NUMBERS, "pixels at which rows of places begin, and where the last ends"),
            "across": NUMBERS,
            "picture": said({"type": ["string", "null"]}, "as the model saw it, a data URL"),
        },
    ),
    "Tokens": view(
        "tokens",
        {
            "tokens": TEXTS,
            "rows": listed(of("TokenRow")),
            "scale": said(TEXTS, "what the ends of the colours stand for"),
            "signed": said(FLAG, "strengths are of both signs"),
            "asked": said(TEXT, "what a reader chooses among the rows"),
            **{"total": said(TEXT, "what the rows' totals are"), "first": said(WHOLE, "the row that is shown first")},
            **{"left_out": said(WHOLE, "rows that are not shown"), "subtitle": TEXT},
            "table": may_be_null(held({"columns": TEXTS, "rows": listed(listed({}))})),
        },
        {
            **{"log_probabilities": said(NUMBERS, "of the tokens"), "bits": said(NUMBERS, "their surprise")},
            "weights": said(TABLE, "of attention, of each query"),
        },
    ),
    "TokenRow": held(
        {
            **{"name": TEXT, "strengths": said(NUMBERS, "from -1 to 1"), "said": TEXTS},
            **{"heading": TEXT, "note": TEXT, "total": TEXT},
        }
    ),
    "Tree": view(
        "tree",
        {
            "steps": listed(held({"kept": WHOLE, "weighed": WHOLE, "nodes": listed(of("Node"))})),
            "answers": said(listed(held({"step": WHOLE, "place": WHOLE})), "where each ended, the best first"),
        },
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
    "Units": view(
        "units",
        {
            "tokens": TEXTS,
            "layer": WHOLE,
            "layers": WHOLE,
            "direction": TEXT,
            "directions": TEXTS,
            "values": said(
                named(held({"means": NUMBERS, "units": listed(WHOLE), "rows": TABLE, "low": NUMBERS, "high": NUMBERS})),
                "by the names of the cell's equations: mean, least and largest of all units at each token, and a row "
                "for each of some",
            ),
        },
    ),
    "Lines": view(
        "lines",
        {
            "panels": listed(of("Panel")),
            **{"x": said(TEXT, "what the common axis is"), "x_labels": said(TEXTS, "names of its steps")},
            "together": said(FLAG, "a step that is pointed at says the numbers of all curves"),
        },
    ),
    "Panel": held(
        {
            **{"title": TEXT, "height": NUMBER, "log": FLAG, "bars": FLAG},
            "curves": listed(held({"name": TEXT, "y": NUMBERS, "x": NUMBERS, "look": TEXT, "dots": FLAG})),
            "bands": listed(held({"name": TEXT, "low": NUMBERS, "high": NUMBERS, "x": NUMBERS, "look": TEXT})),
            "marks": listed(held({"name": TEXT, "x": MAYBE, "y": MAYBE})),
        }
    ),
    "Distribution": view(
        "distribution",
        {"names": TEXTS, "shares": TABLE, "parts": TEXTS, "apart": FLAG, "said": said(TEXTS, "about each name")},
    ),
    "Several": view(
        "several",
        {
            "views": listed(of("View")),
            "choice": said(TEXT, "what a reader chooses among"),
            "drawn": said(WHOLE, "views in a picture; 0: all"),
        },
        {
            **{"tokens": TEXTS, "answers": TEXTS, "unit": TEXT},
            "left_out": said(WHOLE, "answers that are not shown"),
            "methods": said(
                named(held({"values": TABLE, "whole": NUMBERS, "nothing": NUMBERS})), "of saliency, by each method"
            ),
        },
    ),
    "View": {
        "description": "one thing to see; its kind says how it is drawn",
        "oneOf": [of(name) for name in ("HeatMap", "Overlay", "Tokens", "Tree", "Units", "Lines", "Distribution")]
        + [of("Several")],
    },
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
    "Views": said(named(of("View")), "by their names, such as attention"),
}
