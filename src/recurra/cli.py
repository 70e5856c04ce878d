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
from pathlib import Path
from typing import TextIO

import recurra
from recurra.commands.answers import explain, export, generate, predict, serve
from recurra.commands.backtest import backtest
from recurra.commands.cells import bench, cells
from recurra.commands.completion import PrintCompletion
from recurra.commands.laboratory import gradients, lab
from recurra.commands.scores import check, compare, evaluate, score
from recurra.commands.sharing import pack, pull, push, unpack
from recurra.commands.sweeping import sweep
from recurra.commands.training import config, demo, info, train
from recurra.errors import ConfigError, RecurraError, is_lack_of_memory, lacking
from recurra.interrupts import STATUS, ended_by_ctrl_c
from recurra.manifest import is_trained
from recurra.text.visible import without_controls


def main(arguments: Sequence[str] | None = None, *, stopped: Callable[[], int] = lambda: STATUS) -> int:
    """Run one command. 0: done; 2: the user's mistake, said in one sentence; 130: stopped by Ctrl-C.

    stopped is called when Ctrl-C has ended the command, before its memory is freed, and gives the status.
    """
    # A user's own cell is found in the current folder, but never in place of an installed module. A run folder may come
    # from anybody, and is never looked into for modules.
    if "" not in sys.path and not is_trained(Path()):
        sys.path.append("")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")  # a terminal without σ shows a ? in its place
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # files are UTF-8 in every locale
    try:
        with ended_by_ctrl_c(), notices_in_words():
            options = parsed(sys.argv[1:] if arguments is None else arguments)
            command: Callable[[argparse.Namespace], None] = options.command
            command(options)
        sys.stdout.flush()
    except RecurraError as error:
        said = "\n".join(without_controls(line) for line in f"recurra: {error}".replace("\t", " ").split("\n"))
        print(said, file=sys.stderr)  # what is quoted of a file may be made to clear a screen
        return 2
    except ImportError as error:
        needed = lacking(error)
        if needed is None:
            raise
        print(f"recurra: {needed}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nrecurra: {str(stop) or 'stopped.'}", file=sys.stderr)
        return stopped()
    except (MemoryError, RuntimeError) as error:
        if not is_lack_of_memory(error):
            raise
        print(
            "recurra: out of memory. Reduce training.batch_tokens or the size of the model, or remove very long "
            "examples (data.max_length does so for pairs). Continue an interrupted run with --resume.",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough; what Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"recurra: cannot write the output ({error}).", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    return 0


@contextlib.contextmanager
def notices_in_words() -> Iterator[None]:
    """What Python code hears as a warning of this package is said to whoever typed a command in one line, once."""
    show = warnings.showwarning

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        # Their modules are not imported for commands without settings.
        if category.__name__ in ("RenamedWarning", "UnverifiedWarning"):
            print(f"recurra: {without_controls(str(message))}", file=sys.stderr)
        elif str(message).startswith("recurra: "):
            print(without_controls(str(message)), file=sys.stderr)
        else:
            show(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.filterwarnings("once", message=".* is now called .*", category=FutureWarning)
        warnings.filterwarnings("once", message=".* has no manifest.json.*", category=UserWarning)
        warnings.filterwarnings("once", message="recurra: .* dropped: .*", category=UserWarning)
        warnings.showwarning = tell
        yield


def add_processes(sub: argparse.ArgumentParser, what: str) -> None:
    """The option by which processes of this machine share the work."""
    sub.add_argument(
        "--processes", type=whole_number, metavar="N", help=f"{what} in N processes, with the same result (default: 1)"
    )


def whole_number(text: str) -> int:
    """A number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, but is {text!r}")
    return int(text)


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
    options.typed = list(arguments)
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
    tasks = [options.what or "" if options.command is train else options.task, *left]
    for flag in flags:
        name, equals, value = flag.removeprefix("--").partition("=")
        if not equals:
            after = arguments[list(arguments).index(flag) + 1 :]
            value = after[0] if after and not after[0].startswith("--") else "…"
        if names := setting_names(tasks, name.replace("-", "_")):
            meant = " or ".join(f"--set {setting}={value}" for setting in names)
            is_same = names[0].endswith(f".{name.replace('-', '_')}")
            raise ConfigError(
                f"--{name} is not an option of recurra {options.command.__name__}, but there is a setting "
                f"{'of that name' if is_same else 'for that'}. Did you mean {meant}?"
            )


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    return parser_and_commands()[0]


def parser_and_commands() -> tuple[argparse.ArgumentParser, list[str]]:
    """The same, and the names of the commands."""
    top = argparse.ArgumentParser(
        prog="recurra",
        description="Train, use and inspect recurrent sequence models.",
        epilog="examples:\n  recurra demo\n  recurra check data.tsv\n"
        "  recurra train classification --train data.tsv --out runs/first\n\n"
        "`recurra COMMAND --help` explains a command and ends with an example.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"recurra {recurra.__version__}")
    top.add_argument(
        "--print-completion", action=PrintCompletion, metavar="SHELL", help="print completion for bash, zsh or fish"
    )
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(command: Callable[[argparse.Namespace], None], summary: str, *examples: str) -> argparse.ArgumentParser:
        # Without abbreviations: --seed 7 would mean --seeds 7, which trains seven models.
        sub = commands.add_parser(
            command.__name__,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog="\n  ".join([f"example{'s' if len(examples) > 1 else ''}:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        sub.set_defaults(command=command)
        return sub

    add(demo, "train two small models that pronounce English words, in about two minutes", "recurra demo")

    sub = add(
        train,
        "train a model, or resume an interrupted run",
        "recurra train tagging --train train.conllu --valid dev.conllu --out runs/pos --set model.hidden=128",
        "recurra train runs/pos --resume",
    )
    sub.add_argument(
        "what",
        nargs="?",
        metavar="TASK|CONFIG|RUN",
        help="tagging, classification, question_answering, language_model, forecasting, seq2seq or vec2seq; a config "
        "file; or, with --resume, a run; with --from it can be left out: the settings are those of that run",
    )
    for name, about in (
        ("train", "train on"),
        ("valid", "validate on during training; or a share of the training data, such as 10%%"),
        ("test", "evaluate on after training; or a share, such as 10%%"),
    ):
        sub.add_argument(f"--{name}", nargs="+", metavar="FILE", help=f"file(s) to {about}")
    sub.add_argument(
        "--format",
        help="conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text (default: from the file's extension)",
    )
    sub.add_argument(
        "--columns",
        nargs="+",
        metavar="ROLE",
        help="what each column of a table holds, such as text label; _ skips a column",
    )
    sub.add_argument("--out", metavar="RUN", help="folder for the trained model (default: runs/TASK-1, -2, …)")
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change a setting; `recurra config TASK` lists all",
    )
    sub.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU where there is one)")
    sub.add_argument("--resume", action="store_true", help="continue the run from its last checkpoint")
    sub.add_argument("--from", dest="start", metavar="RUN", help="fine-tune: start from another run")
    sub.add_argument(
        "--seeds", type=int, metavar="N", help="train with N random seeds and report mean and standard deviation"
    )
    sub.add_argument(
        "--processes", type=int, metavar="N", help="train one model in N processes on this machine (default: 1)"
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="show shapes, parameters, memory and batches without training"
    )
    sub.add_argument("--quiet", action="store_true", help="do not show progress")

    sub = add(
        sweep,
        "search settings: train a task many times with settings drawn from a space, and keep the best run",
        "recurra sweep sweep.toml --trials 50 --minutes 60 --out sweeps/first",
    )
    sub.add_argument("config", metavar="CONFIG", help="config file with a table [sweep]: what varies, and how")
    sub.add_argument("--trials", type=int, metavar="N", help="trials in all, those of other processes counted")
    sub.add_argument("--minutes", type=float, metavar="M", help="time in which new trials begin")
    sub.add_argument(
        "--out",
        metavar="SWEEP",
        help="folder of the sweep; one that is there goes on, also beside other processes (default: sweeps/sweep-1, …)",
    )
    sub.add_argument("--seed", type=int, default=1, metavar="N", help="random seed of what is drawn (default: 1)")
    sub.add_argument(
        "--prune",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="stop a trial that is worse at a validation than half of the others were (default)",
    )
    sub.add_argument("--keep", action="store_true", help="keep the runs of all trials, not the best alone")
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change a setting of all trials; `recurra config TASK` lists all",
    )
    sub.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU where there is one)")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")
    sub.add_argument("--quiet", action="store_true", help="do not show the progress of each trial")

    sub = add(evaluate, "score a trained model on labelled data", "recurra evaluate runs/pos test.conllu --tables")
    sub.add_argument("run", metavar="RUN", help="folder of a trained model")
    sub.add_argument("data", metavar="DATA", nargs="+", help="data files, or folders of them")
    sub.add_argument(
        "--set", action="append", default=[], metavar="EVALUATION.KEY=VALUE", help="change an evaluation setting"
    )
    sub.add_argument(
        "--history", metavar="FILE", help="in forecasting: the steps before these (default: the last of training)"
    )
    sub.add_argument("--tables", action="store_true", help="also show detailed tables, such as scores per tag")
    sub.add_argument(
        "--free-running",
        action="store_true",
        help="also measure exposure bias: the cost of reading its own outputs in place of the right ones, by position",
    )
    sub.add_argument(
        "--anomalies",
        metavar="FILE",
        help="forecasting: write each observed value with its surprise (−log p) and tail probability (.csv, .jsonl)",
    )
    sub.add_argument("--out", metavar="FILE", help="with --free-running: draw the curves (.html, .svg or .png)")
    add_processes(sub, "answer")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        backtest,
        "evaluate a forecaster on the end of each series, from several origins",
        "recurra backtest runs/stations stations.csv --windows 8 --step 24 --out backtest.html",
    )
    sub.add_argument("run", metavar="RUN", help="folder of a trained forecaster")
    sub.add_argument("data", metavar="DATA", nargs="+", help="data files")
    sub.add_argument("--windows", type=int, default=8, metavar="N", help="number of forecast origins (default: 8)")
    sub.add_argument(
        "--step", type=int, metavar="N", help="steps between two origins (default: the horizon, so windows touch)"
    )
    sub.add_argument("--horizon", type=int, metavar="N", help="steps ahead (default: decoding.horizon of the run)")
    sub.add_argument(
        "--refit",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="train a model anew before each origin, on what lies before it (default: the weights of the run)",
    )
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="DECODING.KEY=VALUE",
        help="change a decoding or evaluation setting",
    )
    sub.add_argument("--out", metavar="FILE", help="draw the forecasts (.html, .svg or .png)")
    sub.add_argument("--csv", metavar="FILE", help="write all forecasts to a table")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        compare,
        "compare runs on the same data, with confidence intervals; or list all runs of a folder",
        "recurra compare runs/attention runs/plain test.tsv --out comparison.html",
        "recurra compare runs/ --out runs.html",
    )
    sub.add_argument(
        "runs",
        metavar="RUN|DATA",
        nargs="+",
        help="folders of trained models, and last a labelled data file; or one folder of runs: their scores, sizes, "
        "times and the settings that differ",
    )
    sub.add_argument(
        "--set", action="append", default=[], metavar="EVALUATION.KEY=VALUE", help="change an evaluation setting"
    )
    sub.add_argument(
        "--out", metavar="FILE", help="write a web page (.html), or a plot of scores by length (.svg, .png)"
    )
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        predict, "print one prediction per input line", "echo 'a line of text' | recurra predict runs/first --json"
    )
    sub.add_argument("run", metavar="RUN", help="folder of a trained model")
    sub.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="text, one input per line, a file like the training data, or a folder of such files (default: stdin)",
    )
    sub.add_argument("--search", metavar="NAME", help="beam, greedy, sampling, … (default: the run's setting)")
    sub.add_argument("--width", type=int, metavar="N", help="beam width")
    sub.add_argument("--best", type=int, metavar="N", help="number of answers per line; needs --json")
    sub.add_argument(
        "--set", action="append", default=[], metavar="DECODING.KEY=VALUE", help="change a decoding setting"
    )
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    sub.add_argument(
        "--json", action="store_true", help="print one JSON object per line, with tokens and probabilities"
    )
    sub.add_argument("--raw", action="store_true", help="tagging: find tokens and sentences in raw text first")
    sub.add_argument(
        "--history", metavar="FILE", help="in forecasting: the steps before these (default: the last of training)"
    )
    sub.add_argument(
        "--out",
        metavar="FILE",
        help="write the input's columns with prediction and score to a new .csv, .tsv, .jsonl or .parquet file; of a "
        "tagger also .conllu or .conll, of a forecaster the rows of --format csv; for a folder, a folder",
    )
    sub.add_argument(
        "--format",
        metavar="{conllu,conll,csv}",
        help="conllu, of taggers: CoNLL-U of raw text; of a .conllu file all other columns and comments are kept; "
        "conll, of taggers: a word and its tags a line, with tabs between them; csv, of forecasters: a row for each "
        "series, step ahead and column",
    )
    sub.add_argument(
        "--alignments", metavar="FILE", help="seq2seq: write word alignments in Pharaoh format, one line per answer"
    )
    add_processes(sub, "answer")

    sub = add(
        explain,
        "show why a model gave an answer: attention, probabilities, saliency, beam, gates, decoder",
        "recurra explain runs/pairs 'a source sentence' --out why.html",
    )
    sub.add_argument("run", metavar="RUN", help="folder of a trained model")
    sub.add_argument(
        "input",
        metavar="INPUT",
        help="a line of text or the path of a picture, as for predict; or FILE:LINE, or FILE:SERIES",
    )
    sub.add_argument(
        "--out", metavar="FILE", help="write a page with all views (.html), or one view as a picture (.svg, .png)"
    )
    sub.add_argument("--show", metavar="WHAT", help="one view, such as attention, saliency or gates")
    sub.add_argument("--layer", type=int, metavar="N", help="layer whose gates are shown, from 1 (default: the last)")
    sub.add_argument(
        "--direction", choices=["forward", "backward"], help="direction whose gates are shown (default: forward)"
    )
    sub.add_argument("--best", type=int, default=1, metavar="N", help="explain the N-th best answer (default: 1)")
    sub.add_argument(
        "--set", action="append", default=[], metavar="DECODING.KEY=VALUE", help="change a decoding setting"
    )
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    sub.add_argument("--json", action="store_true", help="print the numbers as one JSON object only")

    sub = add(
        gradients,
        "measure vanishing and exploding gradients through time, with advice",
        "recurra gradients runs/first --out flow.html",
    )
    sub.add_argument(
        "what", metavar="RUN|CONFIG", help="a run, or several: a,b,c; or a config file, for its model before training"
    )
    sub.add_argument(
        "data", metavar="DATA", nargs="?", help="a labelled file, or one input (default: the validation data)"
    )
    sub.add_argument(
        "--steps", type=int, default=50, metavar="N", help="how many steps to go back at most (default: 50)"
    )
    sub.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting of the config file"
    )
    sub.add_argument("--out", metavar="FILE", help="write a web page (.html) or a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        lab,
        "compare cells on a problem of memory or of states, or on your data",
        "recurra lab adding --cells elman,gru,lstm --seconds 10",
        "recurra lab parity --cells elman,lstm,min_gru --seeds 3 --automaton parity.svg",
        "recurra lab tagging --train train.conllu --valid dev.conllu --seconds 60 --out cells.html",
    )
    sub.add_argument(
        "problem",
        metavar="PROBLEM",
        help="adding, copy, bits, repeat, recall, parity, z60, s5 or tomita1 to tomita7; or a task or config file, "
        "with data",
    )
    sub.add_argument(
        "--cells", metavar="LIST", help="names separated by commas, or a TOML list (default: elman,gru,lstm)"
    )
    sub.add_argument("--hidden", type=int, metavar="N", help="hidden size of the first cell (default: 64, or as set)")
    sub.add_argument(
        "--equal",
        choices=["parameters", "hidden"],
        help="what all cells have alike (default: parameters on data, hidden on problems)",
    )
    sub.add_argument(
        "--seconds", type=float, metavar="S", help="training time per cell (default: 30; on data, as the settings say)"
    )
    sub.add_argument("--updates", type=int, metavar="N", help="updates per cell, instead of --seconds")
    sub.add_argument("--device", help="cpu or cuda (default: cpu; on data, as set)")
    sub.add_argument("--layers", type=int, metavar="N", help="layers of each network (default: 1; on data, as set)")
    sub.add_argument(
        "--seed", type=int, metavar="N", help="random seed of all that is drawn (default: 0; on data, as set)"
    )
    sub.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="train from so many seeds: of a problem the best counts, on data mean and standard deviation (default: 1)",
    )
    group = sub.add_argument_group("problems")
    group.add_argument(
        "--length", type=int, metavar="T", help="sequence length (default: 100; words of states have up to 16)"
    )
    group.add_argument("--learning-rate", type=float, metavar="R", help="of Adam (default: 0.001)")
    group.add_argument(
        "--automaton", metavar="FILE", help="draw the automaton found in the best network to a picture (.svg, .png)"
    )
    group = sub.add_argument_group("data")
    for name, about in (
        ("train", "train on"),
        ("valid", "validate on, or a share"),
        ("test", "evaluate on, or a share"),
    ):
        group.add_argument(f"--{name}", nargs="+", metavar="FILE", help=f"file(s) to {about}")
    group.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="change a setting")
    group.add_argument("--keep", metavar="FOLDER", help="keep the runs in this folder")
    sub.add_argument("--out", metavar="FILE", help="write a web page (.html) or a picture (.svg, .png)")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        generate,
        "generate text with a language model, or from a vector or picture with vec2seq",
        "recurra generate runs/play --prompt 'ROMEO:' --length 300 --temperature 0.8",
    )
    sub.add_argument("run", metavar="RUN", help="folder of a trained model")
    sub.add_argument(
        "--prompt",
        metavar="TEXT",
        help="text to continue (default: start of a line); for vec2seq the vector or picture",
    )
    sub.add_argument("--prompts", metavar="FILE", help="complete each line of this file; - for stdin")
    sub.add_argument("--count", type=int, metavar="N", help="number of texts (default: 1)")
    sub.add_argument(
        "--seed", type=int, default=1, metavar="N", help="random seed; the same seed gives the same texts (default: 1)"
    )
    sub.add_argument(
        "--length", type=int, metavar="N", help="maximum number of tokens (default: the run's setting, 500)"
    )
    sub.add_argument(
        "--temperature", type=float, help="below 1 less random, above 1 more random, 0 greedy (default: 1)"
    )
    sub.add_argument("--top-k", type=int, metavar="K", help="sample from the K most probable tokens (default: all)")
    sub.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        help="sample from the smallest set of tokens with total probability P (default: all)",
    )
    sub.add_argument("--until", metavar="TEXT", help="stop before this text")
    sub.add_argument("--allow-unknown", action="store_true", help="allow <unk> in prompts and in generated text")
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    sub.add_argument(
        "--json", action="store_true", help="print one JSON object per line, with tokens and log-probability"
    )

    sub = add(
        export,
        "write a run as a small program that answers without torch",
        "recurra export runs/pos pos-exported",
    )
    sub.add_argument("run", metavar="RUN", help="folder of a trained model")
    sub.add_argument("folder", metavar="DIR", help="new folder to write to; for a page, a new file.html")
    sub.add_argument(
        "--to",
        default="c",
        choices=["c", "onnx", "page"],
        help="c: a folder that answers without torch; onnx: the same by onnxruntime; page: one HTML file that answers "
        "in a browser (default: c)",
    )
    sub.add_argument(
        "--weights",
        default="float32",
        choices=["float32", "bf16", "int8"],
        help="how weights are written: bf16 and int8 take a half and a quarter of the room, for each matrix that loses "
        "little by it (default: float32)",
    )

    sub = add(
        serve,
        "start a web page and JSON API for trained models",
        "recurra serve runs",
        "recurra serve en=runs/english tr=runs/turkish --reload",
        "recurra serve runs/pos --host 0.0.0.0 --allow-host models.example.org --token-file token",
    )
    sub.add_argument("runs", metavar="RUN", nargs="+", help="runs, folders that contain runs, or NAME=RUN to name one")
    sub.add_argument("--port", type=int, default=8642, metavar="N", help="port; 0 picks a free one (default: 8642)")
    sub.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="IP address to listen at; one that other machines can reach needs a token (default: 127.0.0.1)",
    )
    sub.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients may call the server, besides localhost; repeat it for several, '*' allows any",
    )
    sub.add_argument(
        "--token-file",
        metavar="FILE",
        help="require 'Authorization: Bearer TOKEN' with the token in this file; or set RECURRA_TOKEN",
    )
    sub.add_argument("--access-log", metavar="FILE", help="append a line of JSON for each request; '-': standard error")
    sub.add_argument(
        "--reload", action="store_true", help="load runs again when they are trained again (SIGHUP does so once)"
    )
    sub.add_argument(
        "--deadline",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="time in which a request is answered, or refused with 503 (default: 30)",
    )
    sub.add_argument(
        "--queue",
        type=int,
        default=256,
        metavar="N",
        help="requests that may wait for one run; more are refused with 429 (default: 256)",
    )
    sub.add_argument(
        "--grace",
        type=int,
        default=1,
        metavar="SECONDS",
        help="time for requests under way when the server is stopped (default: 1)",
    )
    sub.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")

    sub = add(
        pack,
        "write a run as one file with card, licence and checksums",
        "recurra pack runs/pos pos.zip --license CC-BY-4.0",
    )
    sub.add_argument("run", metavar="RUN", help="folder of a finished run, or one that `recurra export` wrote")
    sub.add_argument("file", metavar="FILE", nargs="?", help="file to write (default: the folder's name and .zip)")
    sub.add_argument("--license", metavar="NAME|FILE", help="how the model may be used: CC-BY-4.0, …, or a text")

    sub = add(unpack, "make a folder of a packed run, verified by its checksums", "recurra unpack pos.zip runs/theirs")
    sub.add_argument("file", metavar="FILE", help="file that `recurra pack` wrote")
    sub.add_argument("folder", metavar="DIR", nargs="?", help="new folder (default: the file's name without .zip)")

    sub = add(
        push,
        "put a run on the Hugging Face Hub",
        "recurra push runs/pos owner/english-pos --license CC-BY-4.0 --public",
    )
    sub.add_argument("run", metavar="RUN", help="folder of a finished run, or one that `recurra export` wrote")
    sub.add_argument("name", metavar="OWNER/NAME", help="the repository; one that is not there is made")
    sub.add_argument("--license", metavar="NAME|FILE", help="how the model may be used: CC-BY-4.0, …, or a text")
    sub.add_argument("--public", action="store_true", help="make a new repository public (default: private)")

    sub = add(
        pull,
        "fetch a run from the Hugging Face Hub, or a packed one from a URL",
        "recurra pull owner/english-pos runs/theirs",
        "recurra pull https://models.example.org/pos.zip runs/theirs",
    )
    sub.add_argument(
        "source", metavar="OWNER/NAME|URL", help="a repository of the hub, or https:// or file:// of a file"
    )
    sub.add_argument("folder", metavar="DIR", help="new folder")
    sub.add_argument("--revision", metavar="NAME", help="of a repository: branch, tag or commit (default: main)")

    sub = add(info, "describe a run: model, training and scores", "recurra info runs/first")
    sub.add_argument("run", metavar="RUN", help="folder of a trained model, or several: a,b,c")
    sub.add_argument("--draw", metavar="FILE", help="draw layers and directions over time to a picture (.svg, .png)")
    sub.add_argument(
        "--graph", metavar="FILE", help="draw random and deterministic variables as a probabilistic graph (.svg, .png)"
    )
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        check,
        "inspect data files, report problems and print a training command; or verify the files of a run",
        "recurra check train.tsv --valid valid.tsv",
    )
    sub.add_argument("data", metavar="DATA", nargs="+", help="data files, folders of them, or the folder of a run")
    sub.add_argument(
        "--accept", action="store_true", help="of a run: record its files as they are now in its manifest.json"
    )
    sub.add_argument("--valid", metavar="FILE", nargs="+", default=[], help="report rows that are also in DATA")
    sub.add_argument("--format", help="conllu, conll, tsv, csv, jsonl, parquet, npz, fasttext or text")
    sub.add_argument(
        "--columns",
        nargs="+",
        metavar="ROLE",
        help="what each column of a table holds, such as text label; _ skips a column",
    )
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        config, "list all settings of a task with defaults and explanations", "recurra config tagging > tagging.toml"
    )
    sub.add_argument(
        "task",
        help="tagging, classification, question_answering, language_model, forecasting, seq2seq or vec2seq; or a "
        "config file",
    )
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change a setting; `recurra config TASK` lists all",
    )

    sub = add(score, "compute metrics for the predictions of any program", "recurra score gold.conllu predicted.conllu")
    sub.add_argument("gold", metavar="GOLD", help="file with the right answers")
    sub.add_argument("predicted", metavar="PREDICTED", help="file with the predictions")
    sub.add_argument(
        "--column",
        help="column to score (default: upos or tags; of two CoNLL-U files all columns, words aligned); for texts, the "
        "column of GOLD (default: target)",
    )
    sub.add_argument("--task", help="seq2seq if the answers are texts (default: detected from the columns of GOLD)")
    sub.add_argument("--tokenize", metavar="NAME", help="tokenizer for BLEU: 13a, none, char, intl, … (default: 13a)")
    sub.add_argument("--lowercase", action="store_true", help="ignore case in BLEU and chrF")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    for command in (
        train,
        sweep,
        evaluate,
        backtest,
        compare,
        predict,
        explain,
        export,
        gradients,
        lab,
        generate,
        serve,
        info,
        config,
    ):  # they read a run
        commands.choices[command.__name__].add_argument(
            "--trust",
            action="store_true",
            help="let a run folder that is not your own import the code that it names (package.module:Class)",
        )

    sub = add(cells, "list the cells, or show one with its equations", "recurra cells gru")
    sub.add_argument("name", nargs="?", help='lstm; \'{name = "gru", reset = "after"}\'; my.module:MyCell')
    sub.add_argument(
        "--input", type=int, default=128, metavar="N", help="input size for parameter counts (default: 128)"
    )
    sub.add_argument(
        "--hidden", type=int, default=256, metavar="N", help="hidden size for parameter counts (default: 256)"
    )
    sub.add_argument("--plan", action="store_true", help="show how the planned engine compiles the step")
    sub.add_argument("--json", action="store_true", help="print one JSON object only")

    sub = add(
        bench,
        "measure the speed of cells and engines against torch.nn.LSTM",
        "recurra bench --cells lstm gru --threads 2",
    )
    sub.add_argument(
        "--cells",
        nargs="+",
        default=[],
        metavar="NAME",
        help="cells to measure, named as in `recurra cells` (default: all)",
    )
    sub.add_argument("--engines", nargs="+", default=[], metavar="NAME", help="engines to measure (default: all)")
    sub.add_argument("--shapes", nargs="+", default=[], metavar="BxTxIxH", help="batch x steps x input x hidden")
    sub.add_argument("--forward", action="store_true", help="forward pass only, without gradients")
    sub.add_argument("--threads", type=int, metavar="N", help="number of torch threads")
    sub.add_argument(
        "--device",
        default="cpu",
        help="cpu; or cuda: beside torch.nn.LSTM in bf16, fp16 and tf32, with errors against float64 (default: cpu)",
    )
    sub.add_argument(
        "--types", nargs="+", default=[], metavar="TYPE", help="on a GPU: bf16, fp16, tf32, fp32 (default: bf16)"
    )
    sub.add_argument("--seconds", type=float, default=2.0, help="maximum time per measurement (default: 2)")
    sub.add_argument("--explain", action="store_true", help="show why an engine cannot run a cell")
    sub.add_argument("--json", action="store_true", help="print one JSON object per line only")
    return top, list(commands.choices)
