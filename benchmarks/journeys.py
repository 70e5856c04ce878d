"""Seven first visits, each as the commands that a newcomer types: seconds to the first success, and what fails before.

    python benchmarks/journeys.py                        all seven, about 200 s of processor time
    python benchmarks/journeys.py linguist laptop        some of them
    python benchmarks/journeys.py --source OTHER         the same on another checkout: before and after a change

A journey starts in an empty folder with an empty cache. Its data is written by this script. Each step lists the command
that the README or a page of docs/ leads to, then what a newcomer tries when that fails. A command fails if it ends with
an error, or if its output lacks what the step needs, such as the right tags for a sentence that was not trained on: a
model trained on misread data fails here too, though no command complains.

"first" is the time from the first command to the first success, "all" that of the whole journey. Both are wall times
and depend on the machine and its load; "CPU" is the processor time of all commands. Reading and thinking come on top: a
failed command costs a person minutes. The last line runs one journey three times; differences smaller than twice its
spread are noise.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

SLOWEST = 600
"""Seconds after which a command counts as failed."""

# ---------------------------------------------------------------------------------------------------------------------
# How a journey is written
# ---------------------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One thing the newcomer wants, and the commands tried for it in order until one gives it."""

    tries: Sequence[str]
    """Shell commands. "@check TASK" is the command for TASK that the last `recurra check` printed, with what
    follows TASK added; it is passed over if there was none. A command that ends in "&" is left running."""
    wanted: Callable[[str], str | None] = lambda output: ""
    """Finds in the output what the newcomer wanted to see; None if it is not there."""
    lacking: str = ""
    """What is wrong if a command ends well without it."""
    file: str = ""
    """The file that holds it, if it is not printed."""
    is_success: bool = False
    """This is what the newcomer came for."""


class Journey(NamedTuple):
    who: str
    comes_with: str
    data: Callable[[Path, Path], None]
    """Writes her files into a folder; the second path is the checkout, whose docs she copies from."""
    steps: Sequence[Step]
    has_compiler: bool = True


def shows(pattern: str, called: str = "") -> Callable[[str], str | None]:
    """Finds a regular expression; what was seen is called so, or is its groups, or all of it."""

    def find(output: str) -> str | None:
        found = re.search(pattern, output, re.MULTILINE | re.DOTALL)
        if found is None:
            return None
        return called or " ".join(" ".join(found.groups() or [found[0]]).split())

    return find


def lines(*wanted: str) -> Callable[[str], str | None]:
    """Finds these lines in this order, with nothing between them."""
    return shows("^(" + r"\s*\n".join(r"\s+".join(map(re.escape, line.split())) for line in wanted) + r")\s*$")


def beats_naive(output: str) -> str | None:
    """Finds an error of a forecast that is below those of both naive baselines."""
    found = {
        name: float(value) for name, value in re.findall(r"\b((?:last_value_|seasonal_)?mae)[ :=]+([\d.]+)", output)
    }
    if not {"mae", "last_value_mae", "seasonal_mae"} <= found.keys():
        return None
    if found["mae"] >= min(found["last_value_mae"], found["seasonal_mae"]):
        return None
    return ", ".join(f"{name} {value:.2f}" for name, value in found.items())


def weekend_sells_most(output: str) -> str | None:
    """Finds a forecast for the seven days from Tuesday on in which Saturday and Sunday stand out."""
    sold = [float(step.split(",")[0]) for step in output.split() if re.fullmatch(r"-?[\d.]+,-?[\d.]+", step)]
    if len(sold) != 7 or min(sold[4:6]) <= max(sold[:4] + sold[6:]):
        return None
    return "sold " + " ".join(f"{number:.0f}" for number in sold)


def cheap_days_sell_most(output: str) -> str | None:
    """Finds a week for each of three shops in which every cheap day sells more than twice what a dear one does."""
    lines = [line.split() for line in output.splitlines() if re.fullmatch(r"[-\d. ]+", line)]
    weeks = [[float(number) for number in line] for line in lines if len(line) == len(PLANNED)]
    for week in weeks:
        cheap = [sold for sold, price in zip(week, PLANNED, strict=True) if price == 1]
        dear = [sold for sold, price in zip(week, PLANNED, strict=True) if price == 3]
        if min(cheap) < 2 * max(dear):
            return None
    return "; ".join(" ".join(f"{sold:.0f}" for sold in week) for week in weeks) if len(weeks) == 3 else None


# ---------------------------------------------------------------------------------------------------------------------
# What the newcomers bring
# ---------------------------------------------------------------------------------------------------------------------

NOUNS = [
    *("dog", "cat", "river", "garden", "teacher", "letter", "window", "road", "doctor", "song", "play", "walk"),
    *("farmer", "bridge", "plan", "change"),
]
VERBS = [
    *("sees", "likes", "finds", "paints", "visits", "plays", "walks", "plans", "changes", "answers", "watches"),
    "remembers",
]
ADJECTIVES = ["old", "quiet", "green", "small", "careful", "famous", "heavy", "bright"]
ADVERBS = ["slowly", "often", "carefully", "never", "gladly", "today"]
PLACES = ["near", "behind", "under", "beside"]


def sentence(draw: random.Random) -> list[tuple[str, str]]:
    """Words with their parts of speech; some nouns are verbs elsewhere, so that the context decides."""

    def noun_phrase() -> list[tuple[str, str]]:
        adjective = [(draw.choice(ADJECTIVES), "ADJ")] if draw.random() < 0.5 else []
        return [(draw.choice(["the", "a", "this", "every"]), "DET"), *adjective, (draw.choice(NOUNS), "NOUN")]

    words = [*noun_phrase(), (draw.choice(VERBS), "VERB"), *noun_phrase()]
    if draw.random() < 0.4:
        words += [(draw.choice(PLACES), "ADP"), *noun_phrase()]
    if draw.random() < 0.4:
        words.append((draw.choice(ADVERBS), "ADV"))
    if draw.random() < 0.3:
        words = [
            ("they", "PRON"),
            ("can", "AUX"),
            (draw.choice(["play", "walk", "plan", "change"]), "VERB"),
            *words[-3:],
        ]
    return [*words, (".", "PUNCT")]


def treebank(path: Path, count: int, seed: int) -> None:
    """A small treebank in CoNLL-U, with comments and now and then a multiword token and an empty node."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            words = sentence(draw)
            print(f"# sent_id = {path.stem}-{number}", file=file)
            print(f"# text = {' '.join(word for word, _ in words)}", file=file)
            for place, (word, tag) in enumerate(words, 1):
                if number % 9 == 0 and place == 2:
                    print(f"2-3\t{word}{words[2][0]}" + "\t_" * 8, file=file)
                head, relation = (0, "root") if place == 1 else (1, "dep")
                print(f"{place}\t{word}\t{word}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_", file=file)
                if number % 11 == 0 and place == 2:
                    print("2.1\tgone\tgo\tVERB" + "\t_" * 6, file=file)
            print(file=file)


def newswire(path: Path, count: int, seed: int) -> None:
    """Named entities in the four columns of CoNLL-2003."""
    draw = random.Random(seed)
    first = ["Maria", "Peter", "Anna", "Tomas", "Lena", "Ivan", "Clara", "Hugo"]
    last = ["Keller", "Novak", "Rossi", "Berg", "Santos", "Moreau", "Lind", "Ortega"]
    firms = ["Siemens", "Reuters", "Nokia", "Airbus", "Fiat", "Philips"]
    cities = ["Oslo", "Madrid", "Prague", "Lisbon", "Vienna", "Geneva", "Dublin"]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            person = [(draw.choice(first), "NNP", "I-PER"), (draw.choice(last), "NNP", "I-PER")]
            firm, city = (draw.choice(firms), "NNP", "I-ORG"), (draw.choice(cities), "NNP", "I-LOC")
            words = draw.choice(
                [
                    [*person, ("works", "VBZ", "O"), ("for", "IN", "O"), firm, ("in", "IN", "O"), city],
                    [firm, ("opened", "VBD", "O"), ("an", "DT", "O"), ("office", "NN", "O"), ("in", "IN", "O"), city],
                    [*person, ("left", "VBD", "O"), city, ("on", "IN", "O"), ("Friday", "NNP", "O")],
                    [("Shares", "NNS", "O"), ("of", "IN", "O"), firm, ("fell", "VBD", "O"), ("in", "IN", "O"), city],
                ]
            )
            if number % 10 == 0:
                print("-DOCSTART- -X- -X- O\n", file=file)
            for word, tag, entity in [*words, (".", ".", "O")]:
                print(word, tag, "O" if tag in "IN . CC" else "I-NP", entity, file=file)
            print(file=file)


def corpora(folder: Path, _: Path) -> None:
    treebank(folder / "train.conllu", 400, 1)
    treebank(folder / "dev.conllu", 60, 2)
    newswire(folder / "eng.train.txt", 400, 3)
    newswire(folder / "eng.testa.txt", 60, 4)


COMPLAINTS = {
    "Rechnung": ["the invoice shows {} twice", "i was charged {} too much", "please refund the payment of {}"],
    "Lieferung": [
        "my parcel with the {} has not arrived",
        "the courier lost the {}",
        "where is the delivery of the {}",
    ],
    "Technik": ["the {} does not start", "the {} shows an error after the update", 'the {} says "no signal"; why'],
}
THINGS = ["printer", "lamp", "camera", "speaker", "router", "monitor", "keyboard", "charger"]


def tickets(folder: Path, _: Path) -> None:
    """A table as a German Excel saves it: byte order mark, semicolons, decimal commas, 31.01.2023, CRLF, quotes."""
    draw = random.Random(5)
    rows = []
    for number in range(360):
        kind = draw.choice(sorted(COMPLAINTS))
        day = date(2023, 1, 2) + timedelta(days=number // 2)
        amount = f"{draw.randint(5, 900)},{draw.randint(0, 99):02}"
        text = draw.choice(COMPLAINTS[kind]).format(amount if kind == "Rechnung" else draw.choice(THINGS))
        rows.append([str(1000 + number), f"{day:%d.%m.%Y}", amount, text, kind])
    header = ["Nr", "Datum", "Betrag", "Text", "Kategorie"]
    spreadsheet(folder / "tickets.csv", [header, *rows])
    new = ["the courier lost the scanner", "please refund the payment of 7,50", "the scanner shows an error again"]
    spreadsheet(
        folder / "new.csv", [header[:-1], *([f"{n}", "03.07.2023", "12,50", text] for n, text in enumerate(new))]
    )


def spreadsheet(path: Path, rows: Sequence[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows(rows)
    path.write_bytes(b"\xef\xbb\xbf" + text.getvalue().encode())


UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
SPOKEN = [*UNITS.split(), "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spoken(number: int) -> str:
    if number >= 100:
        rest = f" {spoken(number % 100)}" if number % 100 else ""
        return f"{SPOKEN[number // 100]} hundred{rest}"
    if number >= 20:
        return TENS[number // 10 - 2] + (f" {SPOKEN[number % 10]}" if number % 10 else "")
    return SPOKEN[number]


def amounts(folder: Path, _: Path) -> None:
    """Numbers, and how they are written in words."""
    numbers = list(range(1000))
    random.Random(6).shuffle(numbers)
    held_out = [*[n for n in numbers if n in (247, 635)], *[n for n in numbers[900:] if n not in (247, 635)]]
    train = [n for n in numbers if n not in held_out]
    for name, chosen in (("pairs.tsv", train), ("more.tsv", held_out)):
        (folder / name).write_text("".join(f"{n}\t{spoken(n)}\n" for n in chosen), encoding="utf-8")


def sales(folder: Path, _: Path) -> None:
    """Two years of days, 31/01/2023, with a weekly and a yearly pattern, and a later half year."""
    draw = random.Random(7)
    rows, start = [], date(2021, 1, 1)
    for number in range(900):
        day = start + timedelta(days=number)
        warm = 12 + 9 * math.sin(2 * math.pi * (number - 100) / 365) + draw.gauss(0, 1.5)
        sold = (60 + 2 * warm) * (1.6 if day.weekday() >= 5 else 1.0) + draw.gauss(0, 3)
        rows.append([f"{day:%d/%m/%Y}", f"{sold:.0f}", f"{warm:.1f}"])
    for name, part in (("sales.csv", rows[:730]), ("later.csv", rows[730:])):
        text = "\n".join(",".join(row) for row in [["date", "sold", "temperature"], *part])
        (folder / name).write_text(text + "\n", encoding="utf-8")


PLANNED = (1, 3, 1, 3, 3, 1, 3)
"""Prices of the coming week."""


def shops(folder: Path, _: Path) -> None:
    """Days of three shops of different size with their prices, some days left out, and the prices of a coming week."""
    draw = random.Random(8)
    rows, plan = [], []
    for shop, size in (("north", 4), ("south", 60), ("west", 15)):
        for number in range(400 + len(PLANNED)):
            day = date(2025, 1, 1) + timedelta(days=number)
            price = draw.choice((1, 2, 3)) if number < 400 else PLANNED[number - 400]
            sold = size * (7 - 2 * price) * (1 + draw.gauss(0, 0.05))
            if number >= 400:
                plan.append([shop, str(day), "", str(price)])
            elif draw.random() > 0.04 or number == 0:
                rows.append([shop, str(day), f"{sold:.1f}", str(price)])
    for name, part in (("shops.csv", rows), ("plan.csv", plan)):
        text = "\n".join(",".join(row) for row in [["shop", "date", "sold", "price"], *part])
        (folder / name).write_text(text + "\n", encoding="utf-8")


def own_cell(folder: Path, checkout: Path) -> None:
    """The file lab.py of docs/your_cell.md, and data to try it on."""
    page = (checkout / "docs" / "your_cell.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^`lab\.py`:\n+```python\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    (folder / "lab.py").write_text(code, encoding="utf-8")
    treebank(folder / "train.conllu", 400, 1)
    treebank(folder / "dev.conllu", 60, 2)


# ---------------------------------------------------------------------------------------------------------------------
# The journeys
# ---------------------------------------------------------------------------------------------------------------------

SENTENCE = "the old dog plays near a quiet river ."
TAGS = "DET ADJ NOUN VERB ADP DET ADJ NOUN PUNCT"
NEWS = "Maria Rossi works for Nokia in Dublin ."
ENTITIES = "I-PER I-PER O O I-ORG O I-LOC O"
QUICK = "--set training.epochs=10"
"""A first try: the data is small and easy, and the default number of epochs would only take longer."""

NO_COMMAND = "check prints no command that trains this"

LINGUIST = Journey(
    "linguist",
    "a treebank in CoNLL-U and named entities in CoNLL-2003 (a .txt file)",
    corpora,
    [
        Step(["recurra check train.conllu --valid dev.conllu"], shows("(recurra train tagging)"), NO_COMMAND),
        Step([f"@check tagging {QUICK}", f"recurra train tagging --train train.conllu --valid dev.conllu {QUICK}"]),
        Step([f'echo "{SENTENCE}" | recurra predict runs/tagging'], lines(TAGS), is_success=True),
        Step(["recurra evaluate runs/tagging dev.conllu --tables"], shows(r"NOUN +[\d.]+ +[\d.]+ +[\d.]+")),
        Step(
            [
                "recurra check eng.train.txt --valid eng.testa.txt",
                "recurra check eng.train.txt --valid eng.testa.txt --format conll",
            ],
            shows("(recurra train tagging)"),
            NO_COMMAND,
        ),
        Step([f"@check tagging --out runs/ner {QUICK}"]),
        Step([f'echo "{NEWS}" | recurra predict runs/ner'], lines(ENTITIES), is_success=True),
    ],
)

_TICKETS = "recurra train classification --out runs/classification"
_SPLIT = "head -n 321 tickets.csv > early.csv; (head -n 1 tickets.csv; tail -n 40 tickets.csv) > late.csv"
ANALYST = Journey(
    "analyst",
    "one table saved by Excel: byte order mark, semicolons, decimal commas, 31.01.2023",
    tickets,
    [
        Step(["recurra check tickets.csv"], shows("recurra train classification[^\\n]*(Kategorie)"), NO_COMMAND),
        Step(
            [
                "@check classification",
                f"rm -rf runs; {_TICKETS} --train tickets.csv --valid 10% --set data.label=Kategorie",
                f"{_SPLIT}; rm -rf runs; {_TICKETS} --train early.csv --valid late.csv --set data.label=Kategorie",
                f"rm -rf runs; {_TICKETS} --train early.csv --valid late.csv --set data.label=Kategorie "
                "--set data.text.column=Text",
            ],
            shows(r"^valid: (accuracy (?:0\.[89]\d*|1\.0*))\b"),
            "held-out rows are not scored, or with an accuracy below 0.8",
        ),
        Step(
            [
                "recurra predict runs/classification new.csv --out answers.csv",
                "recurra predict runs/classification new.csv > answers.csv",
                "cut -d ';' -f 4 new.csv | tail -n +2 | recurra predict runs/classification > answers.csv",
            ],
            shows(r"(Lieferung).*\n.*(Rechnung).*\n.*(Technik)"),
            file="answers.csv",
            is_success=True,
        ),
    ],
)

ENGINEER = Journey(
    "engineer",
    "pairs of numbers and their words, and a program that asks over HTTP",
    amounts,
    [
        Step(["recurra train seq2seq --train pairs.tsv --valid more.tsv --out runs/pairs --set training.epochs=40"]),
        Step(["echo 247 | recurra predict runs/pairs"], lines(spoken(247))),
        Step(["recurra serve runs --port 0 &"], shows(r"(http://\S+)")),
        Step(
            [
                """curl -s -w ' HTTP %{http_code}' {address}api/runs/pairs/predict """
                """-H 'Content-Type: application/json' -d '{"inputs": ["635"]}'""",
            ],
            shows(rf"({spoken(635)})\b.*(HTTP 200)"),
            is_success=True,
        ),
    ],
)

_SALES = (
    "recurra train forecasting --train sales.csv --valid later.csv --out runs/forecasting --set evaluation.season=7"
)
FORECASTER = Journey(
    "forecaster",
    "daily sales with dates such as 31/01/2023",
    sales,
    [
        Step(["recurra check sales.csv --valid later.csv"], shows("(recurra train forecasting)"), NO_COMMAND),
        Step(
            [
                "@check forecasting --set evaluation.season=7",
                f"rm -rf runs; {_SALES} --set data.time=date",
                "rm -rf runs; sed -E -i 's#^(..)/(..)/(....)#\\3-\\2-\\1#' *.csv && " + _SALES,
            ],
            beats_naive,
            "the error is not below those of the naive baselines",
        ),
        Step(
            ["recurra predict runs/forecasting later.csv --set decoding.horizon=7"],
            weekend_sells_most,
            is_success=True,
        ),
    ],
)

PLANNER = Journey(
    "planner",
    "sales of three shops with dates, gaps and prices, and the prices of the coming week",
    shops,
    [
        Step(["recurra check shops.csv"], shows("(3 series).*(a step is a day).*(steps have no row)"), NO_COMMAND),
        Step(
            ["@check forecasting --set data.future=price --set decoding.horizon=7"], shows(r"(mae_to_last_value \S+)")
        ),
        Step(["recurra predict runs/forecasting plan.csv"], cheap_days_sell_most, is_success=True),
    ],
)

STUDENT = Journey(
    "student",
    "nothing: wants to see equations, gates and what attention does",
    lambda folder, checkout: None,
    [
        Step(["recurra cells lstm"], shows(r"(c' = f ∘ c \+ i ∘ \S+)"), is_success=True),
        Step(
            ["recurra lab adding --cells elman,lstm --length 40 --seconds 5 --out lab.html"],
            shows("<svg", "a page with learning curves"),
            file="lab.html",
        ),
        Step(["recurra demo"], shows(r"(all +[\d,]+ +\S+ +\d+ %)")),
        Step(
            ["recurra explain runs/demo-1/attention knight --show gates --out gates.svg"],
            shows(">f<", "a picture with the forget gate"),
            file="gates.svg",
            is_success=True,
        ),
    ],
)

_OWN = "recurra train tagging --train train.conllu --valid dev.conllu --out runs/own --set model.cell=lab:Shortcut"
RESEARCHER = Journey(
    "researcher",
    "her own cell: lab.py of docs/your_cell.md",
    own_cell,
    [
        Step(["recurra cells lab:Shortcut"], shows(r"(h' = s ∘ tanh\(c'\) \+ \(1 − s\) ∘ tanh\(V x\))")),
        Step([f"{_OWN} --set model.hidden=64 --set training.epochs=6"]),
        Step([f'echo "{SENTENCE}" | recurra predict runs/own'], lines(TAGS), is_success=True),
        Step(
            [f'recurra explain runs/own "{SENTENCE}" --show gates --out gates.svg'],
            shows(">s<", "a picture with her own gate s"),
            file="gates.svg",
        ),
        Step(["recurra lab adding --cells lstm,lab:Shortcut --length 40 --seconds 5"], shows("(lab:Shortcut)")),
    ],
)

LAPTOP = Journey(
    "laptop",
    "the same cell and no C compiler",
    own_cell,
    [
        Step([f"{_OWN} --set model.hidden=64 --set training.epochs=6"]),
        Step([f'echo "{SENTENCE}" | recurra predict runs/own'], lines(TAGS), is_success=True),
    ],
    has_compiler=False,
)

JOURNEYS = (LINGUIST, ANALYST, ENGINEER, FORECASTER, PLANNER, STUDENT, RESEARCHER, LAPTOP)
REPEATED = "laptop"
"""The journey that is run again to measure noise."""

# ---------------------------------------------------------------------------------------------------------------------
# How a journey is run
# ---------------------------------------------------------------------------------------------------------------------

TOOLS = ("bash", "cat", "curl", "cut", "env", "rm", "sed", "tail", "uname")
"""What a machine without a compiler still has."""


class Attempt(NamedTuple):
    command: str
    seconds: float
    problem: str  # what was wrong; "" if the command gave what was wanted
    seen: str


class Outcome(NamedTuple):
    journey: Journey
    attempts: list[Attempt]
    successes: list[float]  # seconds from the start to each success
    seconds: float
    cpu_seconds: float
    answers: list[str]

    @property
    def failed(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.problem]

    @property
    def is_complete(self) -> bool:
        return len(self.successes) == sum(step.is_success for step in self.journey.steps)


class Terminal:
    """The shell of one newcomer: a folder, an environment, and servers that she has left running."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.servers: list[subprocess.Popen[str]] = []
        self.address = ""
        self.checked = ""  # what the last `recurra check` printed

    def meant(self, command: str) -> str:
        """A command as it is typed: with what was printed before in its place; "" if that was not printed."""
        if not command.startswith("@check "):
            return command.replace("{address}", self.address)
        _, task, *rest = command.split(" ", 2)
        found = re.search(rf"^ +(recurra train {task} .*)$", self.checked, re.MULTILINE)
        if found is None:
            return ""
        printed = re.sub(r" --out \S+", "", found[1]) if any("--out " in part for part in rest) else found[1]
        return " ".join([printed, *rest])

    def type(self, command: str) -> tuple[str, bool]:
        """What a command prints, and whether it ended well."""
        output, is_well = self.serve(command.removesuffix("&")) if command.endswith("&") else self.run(command)
        if command.startswith("recurra check"):
            self.checked = output
        return output, is_well

    def run(self, command: str) -> tuple[str, bool]:
        shell = self.start(command, subprocess.PIPE)
        try:
            output, _ = shell.communicate(timeout=SLOWEST)
        except subprocess.TimeoutExpired:
            return f"not finished after {SLOWEST} s", False
        finally:  # also after Ctrl-C, which does not reach a session of its own
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
                shell.communicate()
        return output, shell.returncode == 0

    def serve(self, command: str) -> tuple[str, bool]:
        server = self.start(f"exec {command}", subprocess.PIPE)
        self.servers.append(server)
        assert server.stdout is not None
        output = server.stdout.readline()
        found = re.search(r"http://\S+", output)
        self.address = found[0] if found else ""
        return output, found is not None

    def start(self, command: str, output: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def close(self) -> None:
        for server in self.servers:
            server.terminate()
            server.communicate()


def environment_of(journey: Journey, checkout: Path, place: Path) -> dict[str, str]:
    """The variables of a new user: `recurra` of the checkout on the PATH, an empty cache, and a compiler or none."""
    tools = place / "bin"
    tools.mkdir()
    command = tools / "recurra"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m recurra "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECURRA_")}
    if not journey.has_compiler:
        kept.pop("CC", None)
        path = str(tools)
        for name in TOOLS:
            found = shutil.which(name)
            if found is not None:
                (tools / name).symlink_to(found)
    return {
        **kept,
        "PATH": path,
        "PYTHONPATH": str(checkout / "src"),
        "RECURRA_CACHE": str(place / "cache"),
    }


def problem_of(output: str, lacking: str) -> str:
    """The line of the output that says what went wrong; of a command that ended well, what it lacks."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    if lacking:
        return f"no error, but {lacking}"
    own = [line for line in said if re.match(r"recurra( \w+)?: ", line)]
    return (own or said or ["nothing was printed"])[-1]


def walk(journey: Journey, checkout: Path, *, tell: Callable[[str], object] = print) -> Outcome:
    """Types the commands of a journey, in a fresh folder."""
    tell(f"{journey.who}, with {journey.comes_with}")
    attempts: list[Attempt] = []
    successes: list[float] = []
    answers: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = place / "home"
        folder.mkdir()
        journey.data(folder, checkout)
        terminal = Terminal(folder, environment_of(journey, checkout, place))
        start, cpu_start = time.perf_counter(), cpu_seconds()
        try:
            for step in journey.steps:
                for attempt in attempts_at(step, terminal):
                    attempts.append(attempt)
                    tell(f"{attempt.seconds:7.1f} s  {'✗ ' if attempt.problem else ''}{attempt.command}")
                    if attempt.problem or attempt.seen:
                        tell(f"           {attempt.problem or attempt.seen}")
                if step.is_success and not attempts[-1].problem:
                    successes.append(time.perf_counter() - start)
                    answers.append(attempts[-1].seen)
        finally:
            terminal.close()
        return Outcome(journey, attempts, successes, time.perf_counter() - start, cpu_seconds() - cpu_start, answers)


def attempts_at(step: Step, terminal: Terminal) -> Iterator[Attempt]:
    """Tries the commands of a step until one gives what is wanted."""
    for planned in step.tries:
        command = terminal.meant(planned)
        if not command:
            continue
        start = time.perf_counter()
        output, is_well = terminal.type(command)
        seconds = time.perf_counter() - start
        if not is_well:
            yield Attempt(command, seconds, problem_of(output, ""), "")
            continue
        if step.file:
            file = terminal.folder / step.file
            output = file.read_text(encoding="utf-8") if file.exists() else f"there is no file {step.file}"
        seen = step.wanted(output)
        last = (output.strip().splitlines() or ["nothing was printed"])[-1]
        problem = problem_of(output, step.lacking or f"the answer is wrong: {last}") if seen is None else ""
        yield Attempt(command, seconds, problem, seen or "")
        if seen is not None:
            return


def cpu_seconds() -> float:
    """Processor time of all commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each journey."""
    rows = [f"{'journey':11} {'commands':>8} {'failed':>6} {'first':>8} {'all':>8} {'CPU':>8}  seen"]
    for outcome in outcomes:
        first = f"{outcome.successes[0]:6.1f} s" if outcome.successes else "never"
        seen = "; ".join(outcome.answers) if outcome.is_complete else "; ".join([*outcome.answers, "NOT ALL"])
        rows.append(
            f"{outcome.journey.who:11} {len(outcome.attempts):8} {len(outcome.failed):6} {first:>8} "
            f"{outcome.seconds:6.1f} s {outcome.cpu_seconds:6.1f} s  {seen}"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("who", nargs="*", metavar="WHO", help=", ".join(journey.who for journey in JOURNEYS))
    parser.add_argument("--source", type=Path, default=ROOT, metavar="DIR", help="another checkout of recurra")
    parser.add_argument("--repeats", type=int, default=2, metavar="N", help=f"further runs of {REPEATED} (default: 2)")
    options = parser.parse_args()
    known = {journey.who: journey for journey in JOURNEYS}
    if unknown := [who for who in options.who if who not in known]:
        parser.error(f"unknown journey {unknown[0]!r}; known: {', '.join(known)}")
    print(f"load of this machine before the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    chosen = [known[who] for who in options.who or known]
    outcomes = []
    for journey in chosen:
        outcomes.append(walk(journey, options.source.resolve(), tell=say))
        say("")
    print(table(outcomes))
    if known[REPEATED] in chosen and options.repeats > 0:
        first = next(outcome for outcome in outcomes if outcome.journey.who == REPEATED)
        again = [walk(known[REPEATED], options.source.resolve(), tell=len) for _ in range(options.repeats)]
        times = sorted(outcome.seconds for outcome in [first, *again])
        spread = times[-1] - times[0]
        took = ", ".join(f"{each:.1f}" for each in times)
        print(f"noise: {REPEATED} took {took} s; twice the spread is {2 * spread:.1f} s")
    if not all(outcome.is_complete for outcome in outcomes):
        sys.exit(1)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
