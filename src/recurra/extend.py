"""The public classes and functions for writing your own cells, tasks, attention and other parts.

Whatever a config file names as 'package.module:Class' inherits from one of the classes of KINDS; the other names are
what such a class is given, returns or is made of.

These names are public: within a minor version (0.2.x) neither they nor the methods that a class of yours has to write
change; across minor versions a change is announced in CHANGELOG.md, and what is renamed keeps working under its old
name for two minor versions. What is imported from elsewhere than `recurra` and `recurra.extend` may change at any time.

>>> from recurra.extend import Cell, Product
>>> Cell.__name__, Product._fields[0]
('Cell', 'weight')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recurra.analysis.anatomy import Anatomy, UnrolledLevel
    from recurra.analysis.gates import Stack
    from recurra.analysis.saliency import Probe, contributions
    from recurra.attention import Attended, Attention, Memory, Past
    from recurra.attention.looks.look import Look, Looked
    from recurra.attention.terms.term import Term
    from recurra.cells import AnyCell, AnyState, Cell, Drop, Product, Wrapper
    from recurra.config import Data, Text, Training
    from recurra.data import Row, rows
    from recurra.data.batches import Batches
    from recurra.data.formats.reader import Reader
    from recurra.data.store import Encoded
    from recurra.densities import Density
    from recurra.encoders.summaries import Summarised, Summary
    from recurra.errors import ConfigError, DataError
    from recurra.generation.generated import Generated, Manner, TextSource
    from recurra.heads import UNLABELLED, Head
    from recurra.metrics.edits import edit_distance
    from recurra.named import built
    from recurra.outputs import Output
    from recurra.padding import Padded
    from recurra.pairings import Paired, Pairing, Parts
    from recurra.reading.sentences import matrix
    from recurra.reading.tables import rows_of
    from recurra.scoring.counted import Counted, OfItems, Tally
    from recurra.scoring.formulas import Sums, perplexity, ratio, root, total
    from recurra.scoring.scores import Scores
    from recurra.settings import Part, section, setting
    from recurra.stacks.merge import Merge
    from recurra.stacks.recurrent import Recurrent
    from recurra.tasks.task import (
        START,
        AnswerKind,
        Asked,
        Axes,
        Carried,
        Judgement,
        Loss,
        Moment,
        Prediction,
        Purpose,
        Recurring,
        Schema,
        Task,
        Viewer,
    )
    from recurra.text import Tokenizer, Vocabulary
    from recurra.views.distribution import Distribution
    from recurra.views.heat_map import HeatMap
    from recurra.views.lines import Band, Curve, Lines, Mark, Panel
    from recurra.views.overlay import Overlay
    from recurra.views.purpose import SERIES
    from recurra.views.several import Several
    from recurra.views.table import Table
    from recurra.views.tokens import TokenRow, Tokens
    from recurra.views.tree import BeamTree
    from recurra.views.units import Units
    from recurra.views.view import View
    from recurra.wirings import Features, Shape, Source, Wiring, WiringState
    from recurra.wirings.wiring import Readout, cells_of, layers_of, only

KINDS = {
    "Attention": "model.attention: how well a query matches a position",
    "Cell": "model.cell: one step of a recurrent network",
    "Density": "model.output of forecasting: the distribution of the next vector",
    "Head": "model.head of tagging: from features to labels",
    "Look": "look of an attention: how its scores become weights",
    "Merge": "model.merge: how the two directions are combined",
    "Output": "model.output of language models: from features to a vocabulary",
    "Reader": "data.format: from a file to rows",
    "Summary": "model.summary: from a sequence to one vector",
    "Pairing": "model.pairing: from two texts to one vector",
    "Task": "task: everything between a data file and a score",
    "Term": "terms of an attention: what is added to its scores",
    "Tokenizer": "tokens of a text: from a text to tokens and back",
    "Wiring": "model.wiring: where attention enters the decoder",
    "Wrapper": "wrap of a cell: a cell that modifies another",
}
"""What can be your own, and the setting that names it."""

# Where each name lives. It is imported when first touched: a tokenizer does not import torch.
_HOMES = {
    "Look": "recurra.attention.looks.look",
    "Looked": "recurra.attention.looks.look",
    "SERIES": "recurra.views.purpose",
    "START": "recurra.tasks.task",
    "UNLABELLED": "recurra.heads",
    "Anatomy": "recurra.analysis.anatomy",
    "AnswerKind": "recurra.tasks.task",
    "AnyCell": "recurra.cells",
    "AnyState": "recurra.cells",
    "Asked": "recurra.tasks.task",
    "Attended": "recurra.attention",
    "Attention": "recurra.attention",
    "Axes": "recurra.tasks.task",
    "Band": "recurra.views.lines",
    "Batches": "recurra.data.batches",
    "BeamTree": "recurra.views.tree",
    "Carried": "recurra.tasks.task",
    "Cell": "recurra.cells",
    "ConfigError": "recurra.errors",
    "Counted": "recurra.scoring.counted",
    "Curve": "recurra.views.lines",
    "Data": "recurra.config",
    "DataError": "recurra.errors",
    "Density": "recurra.densities",
    "Distribution": "recurra.views.distribution",
    "Drop": "recurra.cells",
    "Encoded": "recurra.data.store",
    "Features": "recurra.wirings",
    "Generated": "recurra.generation.generated",
    "Head": "recurra.heads",
    "HeatMap": "recurra.views.heat_map",
    "Judgement": "recurra.tasks.task",
    "Lines": "recurra.views.lines",
    "Loss": "recurra.tasks.task",
    "Manner": "recurra.generation.generated",
    "Mark": "recurra.views.lines",
    "Memory": "recurra.attention",
    "Merge": "recurra.stacks.merge",
    "Moment": "recurra.tasks.task",
    "OfItems": "recurra.scoring.counted",
    "Output": "recurra.outputs",
    "Overlay": "recurra.views.overlay",
    "Padded": "recurra.padding",
    "Paired": "recurra.pairings",
    "Pairing": "recurra.pairings",
    "Panel": "recurra.views.lines",
    "Part": "recurra.settings",
    "Parts": "recurra.pairings",
    "Past": "recurra.attention",
    "Prediction": "recurra.tasks.task",
    "Probe": "recurra.analysis.saliency",
    "Product": "recurra.cells",
    "Purpose": "recurra.tasks.task",
    "Reader": "recurra.data.formats.reader",
    "Readout": "recurra.wirings.wiring",
    "Recurrent": "recurra.stacks.recurrent",
    "Recurring": "recurra.tasks.task",
    "Row": "recurra.data",
    "Schema": "recurra.tasks.task",
    "Scores": "recurra.scoring.scores",
    "Several": "recurra.views.several",
    "Shape": "recurra.wirings",
    "Source": "recurra.wirings",
    "Stack": "recurra.analysis.gates",
    "Summarised": "recurra.encoders.summaries",
    "Summary": "recurra.encoders.summaries",
    "Sums": "recurra.scoring.formulas",
    "Table": "recurra.views.table",
    "Tally": "recurra.scoring.counted",
    "Task": "recurra.tasks.task",
    "Term": "recurra.attention.terms.term",
    "Text": "recurra.config",
    "TextSource": "recurra.generation.generated",
    "TokenRow": "recurra.views.tokens",
    "Tokenizer": "recurra.text",
    "Tokens": "recurra.views.tokens",
    "Training": "recurra.config",
    "Units": "recurra.views.units",
    "UnrolledLevel": "recurra.analysis.anatomy",
    "View": "recurra.views.view",
    "Viewer": "recurra.tasks.task",
    "Vocabulary": "recurra.text",
    "Wiring": "recurra.wirings",
    "WiringState": "recurra.wirings",
    "Wrapper": "recurra.cells",
    "built": "recurra.named",
    "cells_of": "recurra.wirings.wiring",
    "contributions": "recurra.analysis.saliency",
    "edit_distance": "recurra.metrics.edits",
    "layers_of": "recurra.wirings.wiring",
    "matrix": "recurra.reading.sentences",
    "only": "recurra.wirings.wiring",
    "perplexity": "recurra.scoring.formulas",
    "ratio": "recurra.scoring.formulas",
    "root": "recurra.scoring.formulas",
    "rows": "recurra.data",
    "rows_of": "recurra.reading.tables",
    "section": "recurra.settings",
    "setting": "recurra.settings",
    "total": "recurra.scoring.formulas",
}

__all__ = [
    "KINDS",
    "SERIES",
    "START",
    "UNLABELLED",
    "Anatomy",
    "AnswerKind",
    "AnyCell",
    "AnyState",
    "Asked",
    "Attended",
    "Attention",
    "Axes",
    "Band",
    "Batches",
    "BeamTree",
    "Carried",
    "Cell",
    "ConfigError",
    "Counted",
    "Curve",
    "Data",
    "DataError",
    "Density",
    "Distribution",
    "Drop",
    "Encoded",
    "Features",
    "Generated",
    "Head",
    "HeatMap",
    "Judgement",
    "Lines",
    "Look",
    "Looked",
    "Loss",
    "Manner",
    "Mark",
    "Memory",
    "Merge",
    "Moment",
    "OfItems",
    "Output",
    "Overlay",
    "Padded",
    "Paired",
    "Pairing",
    "Panel",
    "Part",
    "Parts",
    "Past",
    "Prediction",
    "Probe",
    "Product",
    "Purpose",
    "Reader",
    "Readout",
    "Recurrent",
    "Recurring",
    "Row",
    "Schema",
    "Scores",
    "Several",
    "Shape",
    "Source",
    "Stack",
    "Summarised",
    "Summary",
    "Sums",
    "Table",
    "Tally",
    "Task",
    "Term",
    "Text",
    "TextSource",
    "TokenRow",
    "Tokenizer",
    "Tokens",
    "Training",
    "Units",
    "UnrolledLevel",
    "View",
    "Viewer",
    "Vocabulary",
    "Wiring",
    "WiringState",
    "Wrapper",
    "built",
    "cells_of",
    "contributions",
    "edit_distance",
    "layers_of",
    "matrix",
    "only",
    "perplexity",
    "ratio",
    "root",
    "rows",
    "rows_of",
    "section",
    "setting",
    "total",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recurra.extend' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
