"""The command line: its options, and what becomes of mistakes. What each command does stands in commands/.

Nothing here imports torch until a command needs it, so that --help and --version answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TextIO

import recurra
from recurra.commands.answers import explain, generate, predict, serve
from recurra.commands.cells import bench, cells
from recurra.commands.laboratory import gradients, lab
from recurra.commands.scores import check, compare, evaluate, score
from recurra.commands.training import config, demo, info, train
from recurra.errors import ConfigError, RecurraError, is_lack_of_memory
from recurra.text.visible import without_controls


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: done; 2: the user's mistake, said in one sentence; 130: stopped by Ctrl-C."""
    # A user's own cell is found in the current folder, but never in place of an installed module.
    if "" not in sys.path:
        sys.path.append("")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")  # a terminal without σ shows a ? in its place
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # files are UTF-8 in every locale
    try:
        with notices_in_words():
            options = parsed(sys.argv[1:] if arguments is None else arguments)
            command: Callable[[argparse.Namespace], None] = options.command
            command(options)
        sys.stdout.flush()
    except RecurraError as error:
        said = "\n".join(without_controls(line) for line in f"recurra: {error}".replace("\t", " ").split("\n"))
        print(said, file=sys.stderr)  # what is quoted of a file may be made to clear a screen
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nrecurra: {str(stop) or 'stopped.'}", file=sys.stderr)
        return 130
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        print(
            "recurra: the memory does not suffice. Long examples need most of it: leave them out, as data.max_length "
            "does for pairs, or make training.batch_tokens or the model smaller. A run goes on with --resume.",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough; what Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"recurra: the output cannot be written ({error}).", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    return 0


@contextlib.contextmanager
def notices_in_words() -> Iterator[None]:
    """What Python code hears as a RenamedWarning is said to whoever typed a command in one line, once."""
    show = warnings.showwarning

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__name__ == "RenamedWarning":  # its module is not imported for commands without settings
            print(f"recurra: {without_controls(str(message))}", file=sys.stderr)
        else:
            show(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.filterwarnings("once", message=".* is now called .*", category=FutureWarning)
        warnings.showwarning = tell
        yield


def with_new_name(arguments: Sequence[str], known: Container[str]) -> list[str]:
    """The arguments, with the name that a renamed command has today."""
    given = list(arguments)
    if given and given[0] not in known and not given[0].startswith("-"):
        from recurra.config import renamed  # costs time that a known command need not wait

        for one in renamed.COMMANDS:
            if given[0] == one.old:
                renamed.tell(one)
                return [one.new, *given[1:]]
    return given


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options as typed; predict's FILE may come after them too, which argparse lets only what is required do."""
    top, commands = parser_and_commands()
    options, left = top.parse_known_args(with_new_name(arguments, commands))
    if options.command is predict and options.file is None and len(left) == 1 and not left[0].startswith("-"):
        options.file, left = left[0], []
    if left:
        if options.command in (train, config):
            check_for_settings(options, left, arguments)
        top.error(f"unrecognized arguments: {' '.join(left)}")
    return options


def check_for_settings(options: argparse.Namespace, left: Sequence[str], arguments: Sequence[str]) -> None:
    """Refuse an option that is meant as a setting, such as --epochs 3, with the --set that says the same."""
    from recurra.runs import setting_names

    flags = [word for word in left if word.startswith("--")]
    # An unknown option's value is taken for the task where it stands before it: --epochs 3 tagging.
    tasks = [options.what if options.command is train else options.task, *left]
    for flag in flags:
        name, equals, value = flag.removeprefix("--").partition("=")
        if not equals:
            after = arguments[list(arguments).index(flag) + 1 :]
            value = after[0] if after and not after[0].startswith("--") else "…"
        if names := setting_names(tasks, name.replace("-", "_")):
            meant = " or ".join(f"--set {setting}={value}" for setting in names)
            raise ConfigError(
                f"--{name} is not an option of recurra {options.command.__name__}, but there is a setting of that "
                f"name. Did you mean {meant}?"
            )


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    return parser_and_commands()[0]


def parser_and_commands() -> tuple[argparse.ArgumentParser, list[str]]:
    """The same, and the names of the commands."""
    top = argparse.ArgumentParser(prog="recurra", description="Recurrent sequence models: every cell, exact and fast.")
    top.add_argument("--version", action="version", version=f"recurra {recurra.__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(command: Callable[[argparse.Namespace], None], summary: str) -> argparse.ArgumentParser:
        # Without abbreviations: --seed 7 would mean --seeds 7, which trains seven models.
        sub = commands.add_parser(
            command.__name__,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            allow_abbrev=False,
        )
        sub.set_defaults(command=command)
        return sub

    add(demo, "the tour: two models learn to say English words, with attention and without, about a minute each")

    sub = add(train, "train a model: from a task's name and files, or from a config file; or go on with a run")
    sub.add_argument(
        "what",
        help="tagging, classification, language_model, forecasting, seq2seq, vec2seq; config.toml; with --resume a run",
    )
    for name, about in (("train", "learn from"), ("valid", "decide when to stop"), ("test", "score once at the end")):
        sub.add_argument(f"--{name}", nargs="+", metavar="FILE", help=f"file(s) to {about}")
    sub.add_argument(
        "--format", help="conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text (by the extension)"
    )
    sub.add_argument("--columns", nargs="+", metavar="ROLE", help="roles of the columns of a table")
    sub.add_argument("--out", metavar="RUN", help="folder for the run (runs/TASK-1, -2, …)")
    sub.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting")
    sub.add_argument("--device", help="cpu, cuda, cuda:1, … (a GPU where there is one)")
    sub.add_argument("--resume", action="store_true", help="go on with the run from its last checkpoint")
    sub.add_argument("--from", dest="start", metavar="RUN", help="start from another run's weights")
    sub.add_argument("--seeds", type=int, metavar="N", help="train with N seeds; mean and spread of the scores")
    sub.add_argument(
        "--dry-run", action="store_true", help="show shapes, parameters, memory and batches; train nothing"
    )
    sub.add_argument("--quiet", action="store_true", help="no progress")

    sub = add(evaluate, "scores of a run on files with answers")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("data", metavar="DATA", nargs="+")
    sub.add_argument("--set", action="append", default=[], metavar="EVALUATION.KEY=VALUE", help="score otherwise")
    sub.add_argument("--tables", action="store_true", help="also per tag, per span type, …")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(compare, "runs side by side on the same data: scores with intervals, differences, scores by length")
    sub.add_argument("runs", metavar="RUN", nargs="+")
    sub.add_argument("data", metavar="DATA")
    sub.add_argument("--set", action="append", default=[], metavar="EVALUATION.KEY=VALUE", help="score otherwise")
    sub.add_argument("--out", metavar="FILE", help="write a page (.html), or the scores by length (.svg, .png)")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(predict, "one prediction per input line, in order")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("file", metavar="FILE", nargs="?", help="lines of text, or a format of training data; - for stdin")
    sub.add_argument("--search", metavar="NAME", help="beam, greedy, sampling, … (as the run's decoding says)")
    sub.add_argument("--width", type=int, metavar="N", help="hypotheses that a beam keeps")
    sub.add_argument("--best", type=int, metavar="N", help="so many answers for each line, listed by --json")
    sub.add_argument("--set", action="append", default=[], metavar="DECODING.KEY=VALUE", help="answer otherwise")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object a line, with tokens and probabilities")
    sub.add_argument(
        "--alignments", metavar="FILE", help="seq2seq: links as Pharaoh writes them, a line for each answer"
    )

    sub = add(explain, "what a model did with one input: attention, probabilities, saliency, search, gates")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("input", metavar="INPUT", help="as predict takes it: a line, a picture's path; or FILE:LINE")
    sub.add_argument("--out", metavar="FILE", help="write a page of all there is (.html), or a picture (.svg, .png)")
    sub.add_argument("--show", metavar="WHAT", help="one of its views, such as attention, saliency or gates")
    sub.add_argument("--layer", type=int, metavar="N", help="whose gates, from 1 (the last)")
    sub.add_argument("--direction", choices=["forward", "backward"], help="whose gates (forward)")
    sub.add_argument("--best", type=int, default=1, metavar="N", help="the N-th best answer (1)")
    sub.add_argument("--set", action="append", default=[], metavar="DECODING.KEY=VALUE", help="answer otherwise")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object of numbers and nothing else")

    sub = add(gradients, "how gradients flow through time: Jacobians, gates, a verdict, advice; of a run or a config")
    sub.add_argument("what", metavar="RUN|CONFIG", help="a run; or a config file, whose model has learned nothing yet")
    sub.add_argument("data", metavar="DATA", nargs="?", help="a file with answers, or one input (the validation data)")
    sub.add_argument("--steps", type=int, default=50, metavar="N", help="so many steps back at most (50)")
    sub.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a config's setting"
    )
    sub.add_argument("--out", metavar="FILE", help="write a page (.html) or a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(lab, "cells compared on a problem that needs memory: learning curves under one budget")
    sub.add_argument("problem", metavar="PROBLEM", help="adding or copy")
    sub.add_argument("--cells", metavar="LIST", help="names with commas between, or a TOML list (elman,gru,lstm)")
    sub.add_argument("--length", type=int, default=100, metavar="T", help="steps to remember over (100)")
    sub.add_argument("--hidden", type=int, default=64, metavar="N", help="size of each cell (64)")
    sub.add_argument("--seconds", type=float, default=30.0, metavar="S", help="for each cell (30)")
    sub.add_argument("--updates", type=int, metavar="N", help="for each cell, in place of seconds")
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and sequences (0)")
    sub.add_argument("--out", metavar="FILE", help="write a page (.html) or a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(
        generate, "texts that a language model writes on from a prompt, or that vec2seq writes of a vector or picture"
    )
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--prompt", metavar="TEXT", help="what to go on from (the beginning of a line), or to write of")
    sub.add_argument("--prompts", metavar="FILE", help="one continuation for each line, to the line's end; - for stdin")
    sub.add_argument("--count", type=int, metavar="N", help="how many texts (1)")
    sub.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed gives the same texts (1)")
    sub.add_argument(
        "--length", type=int, metavar="N", help="tokens of a text, at most (as the run's decoding says: 500)"
    )
    sub.add_argument("--temperature", type=float, help="below 1 safer, above 1 bolder, 0 the most probable (1)")
    sub.add_argument("--top-k", type=int, metavar="K", help="draw from the K most probable tokens (all)")
    sub.add_argument("--top-p", type=float, metavar="P", help="draw from the fewest tokens with probability P (all)")
    sub.add_argument("--until", metavar="TEXT", help="end before this text")
    sub.add_argument("--allow-unknown", action="store_true", help="read and write <unk> too")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--json", action="store_true", help="one JSON object a line, with tokens and log-probability")

    sub = add(serve, "a page in the browser that shows what models do, and its JSON API, on this machine alone")
    sub.add_argument("runs", metavar="RUN", nargs="+", help="runs, or folders of runs")
    sub.add_argument("--port", type=int, default=8642, metavar="N", help="of 127.0.0.1; 0 takes a free one (8642)")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")

    sub = add(info, "what a run is, how it was trained and what it reached")
    sub.add_argument("run", metavar="RUN")
    sub.add_argument("--draw", metavar="FILE", help="its layers and directions over time, as a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(check, "what is in files, what is odd about it, and which tasks it can serve")
    sub.add_argument("data", metavar="DATA", nargs="+")
    sub.add_argument("--valid", metavar="FILE", nargs="+", default=[], help="look for rows that are also in DATA")
    sub.add_argument("--format", help="conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text")
    sub.add_argument("--columns", nargs="+", metavar="ROLE", help="roles of the columns of a table")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(config, "all settings of a task with their defaults, explained")
    sub.add_argument(
        "task", help="tagging, classification, language_model, forecasting, seq2seq, vec2seq; or a config file"
    )
    sub.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting")

    sub = add(score, "metrics of predictions, without a model")
    sub.add_argument("gold", metavar="GOLD")
    sub.add_argument("predicted", metavar="PREDICTED")
    sub.add_argument("--column", help="which column of both files (upos or tags); of texts, which one of GOLD (target)")
    sub.add_argument("--task", help="seq2seq: the answers are texts (known by itself where GOLD has source and target)")
    sub.add_argument("--tokenize", metavar="NAME", help="how BLEU cuts texts: 13a, none, char, intl, … (13a)")
    sub.add_argument("--lowercase", action="store_true", help="BLEU and chrF do not see capitals")
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(cells, "the catalogue of cells with their equations; or one of them in full")
    sub.add_argument("name", nargs="?", help='lstm; \'{name = "gru", reset = "after"}\'; my.module:MyCell')
    sub.add_argument("--input", type=int, default=128, metavar="N", help="input size for the counts (128)")
    sub.add_argument("--hidden", type=int, default=256, metavar="N", help="hidden size for the counts (256)")
    sub.add_argument(
        "--plan", action="store_true", help="how the planned engine cuts its step: products and row passes"
    )
    sub.add_argument("--json", action="store_true", help="one JSON object and nothing else")

    sub = add(bench, "speed of cells and engines on this machine, beside torch.nn.LSTM")
    sub.add_argument("--cells", nargs="+", default=[], metavar="NAME", help="which cells (all); as in `recurra cells`")
    sub.add_argument("--engines", nargs="+", default=[], metavar="NAME", help="which engines (all)")
    sub.add_argument("--shapes", nargs="+", default=[], metavar="BxTxIxH", help="rows x steps x input x hidden")
    sub.add_argument("--forward", action="store_true", help="inference alone, without gradients")
    sub.add_argument("--threads", type=int, metavar="N", help="threads for torch")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    sub.add_argument("--seconds", type=float, default=2.0, help="at most so long for each figure (2)")
    sub.add_argument("--explain", action="store_true", help="say why an engine was refused")
    sub.add_argument("--json", action="store_true", help="one JSON object a line and nothing else")
    return top, list(commands.choices)
