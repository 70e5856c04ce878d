"""What a run answers, why, and to whom."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from recurra.errors import ConfigError
from recurra.text.json_file import json_text

if TYPE_CHECKING:
    from recurra.data.arriving import Arriving
    from recurra.sharded import Sharded, Which
    from recurra.training.answering import Answering
    from recurra.views.prediction import Prediction


def predict(options: argparse.Namespace) -> None:
    """One answer a line, in the order of the input."""
    from recurra.data.files import lines
    from recurra.sharded import Sharded

    if options.best is not None and not options.json:
        raise ConfigError(f"--best {options.best} asks for several answers, but only --json prints them: add --json.")
    format, ending = format_asked(options)
    if options.out is not None and (options.json or options.alignments is not None):
        other = "--json" if options.json else "--alignments"
        raise ConfigError(f"--out writes the answers beside the columns of the input: leave {other} out.")
    if options.file is not None and Path(options.file).is_dir():
        from recurra.commands.shards import predict_folder

        predict_folder(options)
        return
    if options.out is not None:
        from recurra.commands.joined import check_is_free

        check_is_free(Path(options.out), also=(".conllu", ".conll"))
    file = None if options.file in (None, "-") else options.file
    which = which_model(options)
    model = which.load()
    format = format or model.task.format_of(ending)
    if reads_raw_text(options, file, format, can=model.cuts_text):
        predict_raw(options, model, file, format)
        return
    if file is not None and (said := model.header_in(file)) is not None:
        tell(said)
    is_talk = file is None and sys.stdin.isatty()
    with contextlib.ExitStack() as closing:
        links = None if options.alignments is None else closing.enter_context(opened_to_write(options.alignments))

        def flush() -> None:  # before more is waited for, whoever sends it gets all answers
            sys.stdout.flush()
            if links is not None:
                links.flush()

        arriving = None if file is not None else piped_input(flush)
        numbered = lines(file) if file is not None else standard_input(arriving)
        text, unknown = (line for _, line in numbered), UnknownSymbols()
        if options.out is not None:
            sharded = closing.enter_context(Sharded(which, model, options.processes or 1))
            print(write_answers(sharded, Path(options.out), file, text, format, unknown))
            return
        has_arrived = (lambda: not is_talk) if arriving is None else arriving.has_arrived
        is_detailed = options.json or links is not None
        answered = None
        if options.processes is not None:
            sharded = closing.enter_context(Sharded(which, model, options.processes))
            answered = partial(sharded.answered, detail=is_detailed and format is None)
            has_arrived = lambda: True  # noqa: E731  # other processes need whole groups
        if format is not None:
            answers = unknown.telling(
                model.predict_file(file, text, has_arrived=has_arrived, say=tell, answered=answered)
            )
            for piece in model.task.printed_file(file, answers, format):
                print(piece, end="", flush=is_talk)
            return
        answers = model.predict_file(
            file, text, detail=is_detailed, has_arrived=has_arrived, say=tell, answered=answered
        )
        for answer in answers:
            if links is not None:
                from recurra.analysis.alignment import alignment_of, pharaoh

                is_silent = not answer.output and answer.alignment is None
                print("" if is_silent else pharaoh(alignment_of(answer)), file=links, flush=is_talk)
            if options.json:
                found = {"input": answer.input, "output": answer.output, "score": round(answer.score, 6)}
                whole = {**found, **answer.detail, "line": answer.line}
                print(json_text(whole, default=listed), flush=is_talk)
            else:
                print(answer.output, flush=is_talk)
                unknown.tell(answer)
        unknown.end()


def tell(said: str) -> None:
    """Say something beside the answers."""
    print(said, file=sys.stderr)


def which_model(options: argparse.Namespace) -> Which:
    """The model that answers."""
    from recurra.sharded import Which

    return Which(
        options.run,
        options.device,
        options.trust,
        tuple(options.set),
        options.search,
        options.width,
        options.best,
        options.history,
    )


def write_answers(
    sharded: Sharded, path: Path, file: str | None, text: Iterable[str], format: str | None, unknown: UnknownSymbols
) -> str:
    """Write the answers to a file or to lines, with those that an earlier process has kept; said in a sentence."""
    from recurra.commands.joined import write_joined, write_pieces
    from recurra.sharded import WHOLE, Kept, file_mark, unfinished
    from recurra.training.answering import AHEAD

    model = sharded.one
    mark = {**sharded.which.mark(), "file": file_mark(file), "format": format}
    with unfinished(path, mark) as folder:
        answered: Callable[[Iterable[Sequence[Any]]], Iterator[list[Prediction]]] = sharded.answered
        if file is not None:  # standard input cannot be read again
            kept = Kept(folder, AHEAD)
            answered = lambda groups: kept.answered(groups, sharded.answered, tell)  # noqa: E731
        answers = unknown.telling(model.predict_file(file, text, say=tell, answered=answered))
        if format is not None:
            count = write_pieces(path, folder / WHOLE, model.task.printed_file(file, answers, format))
        else:
            count = write_joined(path, folder / WHOLE, answers, file, model.task.settings.data)
    return f"{count:,} answers written to {path}"


def reads_raw_text(options: argparse.Namespace, file: str | None, format: str | None, *, can: bool) -> bool:
    """Whether the input is raw text: as said, or where a format is asked for, the file has none, and the model can."""
    from recurra.data.files import extension

    is_text = file is None or extension(file) in ("txt", "text", "")
    if options.raw and not is_text:
        raise ConfigError(f"--raw reads plain text (.txt), but {file} has tokens or columns already: leave --raw out.")
    if options.raw and (options.alignments is not None or (options.out is not None and format is None)):
        name = "--alignments" if options.alignments is not None else f"--out {options.out}"
        raise ConfigError(f"{name} needs inputs that are separate already: leave it or --raw out.")
    if format == "conllu" and is_text and not can and not options.raw:
        print(
            "this run has not learned to find tokens and sentences in raw text: each line is read as a sentence, its "
            "words separated by blanks",
            file=sys.stderr,
        )
    return options.raw or (format is not None and is_text and can)


def predict_raw(options: argparse.Namespace, model: Answering, file: str | None, format: str | None) -> None:
    """An answer for each sentence that the model finds in raw text."""
    from recurra.commands.joined import write_pieces
    from recurra.data.files import CHUNK, decoded_pieces, pieces
    from recurra.sharded import WHOLE, unfinished

    if options.processes is not None:
        raise ConfigError("--processes: raw text is cut into sentences while it is read, by one process: leave it out.")

    def typed() -> Iterator[bytes]:
        if sys.stdin.isatty() or not hasattr(sys.stdin, "buffer"):  # a terminal has an encoding of its own
            yield from (line.encode() for line in sys.stdin)
            return
        while chunk := sys.stdin.buffer.read(CHUNK):
            yield chunk

    text, unknown = pieces(file) if file is not None else decoded_pieces("standard input", typed()), UnknownSymbols()
    if format is not None:
        found = model.printed_raw(text, format, unknown.tell_line)
        if options.out is not None:
            path = Path(options.out)
            with unfinished(path, {}) as folder:
                count = write_pieces(path, folder / WHOLE, found)
            unknown.end()
            print(f"{count:,} answers written to {options.out}")
            return
        for piece in found:
            print(piece, end="")
        unknown.end()
        return
    for number, answer in enumerate(model.predict_raw(text, detail=options.json), 1):
        if options.json:
            whole = {"input": answer.input, "output": answer.output, "score": round(answer.score, 6)}
            print(json_text({**whole, **answer.detail, "sentence": number}, default=listed))
            continue
        print(answer.output)
        unknown.tell(answer)
    unknown.end()


def format_asked(options: argparse.Namespace) -> tuple[str | None, str]:
    """The file format of --format, None where it is not given, and the ending of --out, by which a task may choose."""
    from recurra.data.files import extension

    ending = extension(options.out) if options.out is not None else ""
    format: str | None = options.format
    if format is not None and (options.json or options.alignments is not None):
        raise ConfigError(f"--format {format} and {'--json' if options.json else '--alignments'} exclude each other.")
    if format is not None and ending not in ("", format):
        raise ConfigError(f"--out {options.out}: with --format {format} the file must end in .{format}.")
    return format, ending


class UnknownSymbols:
    """Says on stderr what the model has never seen of its inputs: each set of symbols once, and not too many sets."""

    MOST = 10

    def __init__(self) -> None:
        self.told: set[frozenset[str]] = set()
        self.untold = 0

    def tell(self, answer: Prediction) -> None:
        """Name the symbols of one input, unless they were named before."""
        self.tell_line(answer.line, answer.not_in_vocabulary)

    def tell_line(self, line: int, symbols: Sequence[str]) -> None:
        """The same of the input of this line."""
        if not symbols or frozenset(symbols) in self.told:
            return
        if len(self.told) >= self.MOST:
            self.untold += 1
            return
        self.told.add(frozenset(symbols))
        is_or_are = "is" if len(symbols) == 1 else "are"
        named = ", ".join(map(repr, symbols))
        print(f"line {line}: {named} {is_or_are} not in the vocabulary: read as <unk>", file=sys.stderr)

    def telling(self, answers: Iterable[Prediction]) -> Iterator[Prediction]:
        """The answers as they come, each told of on its way."""
        for answer in answers:
            self.tell(answer)
            yield answer
        self.end()

    def end(self) -> None:
        """How many more inputs hold such symbols."""
        if self.untold:
            inputs = "1 more input holds" if self.untold == 1 else f"{self.untold:,} more inputs hold"
            print(f"{inputs} symbols that are not in the vocabulary: --json lists them", file=sys.stderr)


def listed(array: Any) -> object:
    """An array as lists, to six places."""
    return array.round(6).tolist()


def opened_to_write(path: str) -> TextIO:
    """A file to write lines to, or a ConfigError that says why it cannot be."""
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error


def explain(options: argparse.Namespace) -> None:
    """What a model did with one input."""
    from recurra.exported import load
    from recurra.training import explaining

    if options.out is not None:
        explaining.check_ending(Path(options.out))
    model = load(options.run, device=options.device, trust=options.trust).with_settings(options.set)
    model.check_used(options.set, scoring=False)
    found = explaining.explain(
        model,
        options.input,
        show=options.show,
        layer=options.layer,
        direction=options.direction,
        best=options.best,
    )
    if options.out is not None:
        found.write(Path(options.out))
    print(json_text(found.json()) if options.json else found.text)


def generate(options: argparse.Namespace) -> None:
    """Texts that go on from a prompt, or a continuation for each line of a file."""
    from recurra.exported import load
    from recurra.generation.generated import Manner

    if options.prompts is not None:
        given = [f"--{name}" for name in ("prompt", "count", "until") if getattr(options, name) is not None]
        if given:
            raise ConfigError(f"--prompts completes each line once, up to the end of the line: leave {given[0]} out.")
    manner = Manner(
        seed=options.seed,
        length=options.length,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        until=options.until if options.prompts is None else "\n",
        allow_unknown=options.allow_unknown,
    )
    writer = load(options.run, device=options.device, trust=options.trust).writer(manner)
    if options.prompts is not None:
        from recurra.data.files import lines

        is_piped = options.prompts == "-"
        is_talk = is_piped and sys.stdin.isatty()
        arriving = piped_input(sys.stdout.flush) if is_piped else None
        numbered = standard_input(arriving) if is_piped else lines(options.prompts)
        has_arrived = (lambda: not is_talk) if arriving is None else arriving.has_arrived
        for number, found in writer.continued(numbered, where=options.prompts, has_arrived=has_arrived):
            shown = json_text({**found._asdict(), "line": number}) if options.json else found.text
            print(shown, flush=is_talk)
        return
    prompt, count = options.prompt or "", 1 if options.count is None else options.count
    if count == 1 and not options.json and sys.stdout.isatty():
        for piece in writer.pieces(prompt):
            print(piece, end="", flush=True)
        print()
        return
    for number, found in enumerate(writer.texts([prompt], count=count)):
        if options.json:
            print(json_text(found._asdict()))
        else:
            print((writer.between if number else "") + found.whole)


def export(options: argparse.Namespace) -> None:
    """A run as a small program that answers without torch."""
    if options.to == "page":
        from recurra.runtime.offline import export_page

        print(export_page(options.run, options.folder, trust=options.trust, weights=options.weights))
        return
    from recurra.exporting.folder import export

    print(export(options.run, options.folder, to=options.to, trust=options.trust, weights=options.weights).text())


def standard_input(arriving: Arriving | None = None) -> Iterator[tuple[int, str]]:
    """The lines of standard input with their numbers; what is no text is refused as it is in a file."""
    from recurra.data.files import decoded

    if arriving is not None:
        return decoded("standard input", arriving)
    if sys.stdin.isatty() or not hasattr(sys.stdin, "buffer"):  # a terminal has an encoding of its own
        return enumerate((line.rstrip("\r\n") for line in sys.stdin), 1)
    return decoded("standard input", (raw.removesuffix(b"\n") for raw in sys.stdin.buffer))


def piped_input(before_waiting: Callable[[], None]) -> Arriving | None:
    """The lines of a pipe or a file at standard input; None where it is a terminal, or no file of the system."""
    from recurra.data.arriving import Arriving

    try:
        return None if sys.stdin.isatty() else Arriving(sys.stdin.fileno(), before_waiting)
    except (OSError, ValueError):  # what has no number was put there by Python code
        return None


def serve(options: argparse.Namespace) -> None:
    """The page and its JSON API."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"serving needs {error.name}: pip install 'recurra[serve]', or without torch 'recurra-run[serve]'."
        ) from error
    from recurra.runtime.server import Serving, serve

    serve(
        options.runs,
        Serving(
            host=options.host,
            port=options.port,
            names=tuple(options.allow_host),
            token_file=options.token_file,
            log=options.access_log,
            reload=options.reload,
            deadline=options.deadline,
            queued=options.queue,
            grace=options.grace,
        ),
        device=options.device,
        trust=options.trust,
        said=lambda line: print(line, flush=True),
    )
