"""Whatever is wrong with pairs or with what is asked of them is said in one sentence, before anything is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.errors import DataError, is_lack_of_memory
from recurra.runs import begin
from recurra.search import exhaustive
from recurra.sequences import pair_decoding
from recurra.tasks.seq2seq import Seq2Seq
from recurra.training.preparation import prepared
from recurra.training.trained import load
from tests.tasks.small_pairs import SMALL, Noted, small, table, trained, words

TINY = [*SMALL, "model.hidden=8", "model.embedding=4", "training.steps=1"]
LONG = "x" * 10_000 + "\t" + "A " * 10_000
LATIN = "café\tK AE F\n".encode("latin-1")
NOISE = random.Random(1).randbytes(4000)


def train(*arguments: str, sets: Sequence[str] = ()) -> int:
    changed = [part for override in [*TINY, *sets] for part in ("--set", override)]
    return main(["train", "seq2seq", *arguments, "--out", "run", "--quiet", *changed])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    words(tmp_path)
    for name, text in {"a.en": "a b\nc d\n", "a.de": "x y\nz\n", "b.de": "x\n", "c.de": "x\n\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def only_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("recurra: ")
    return shown.err


FILES: list[tuple[str, str | bytes, str]] = [
    ("a.tsv", "", "'a.tsv' is empty: it has no rows"),
    ("a.tsv", "cat\tK\n\ndog\tD\n", "a.tsv:2: this line is blank, and more lines follow"),
    ("a.tsv", "cat\tK\ndog\n", "a.tsv:2: found one column, but columns (source, target) names 2. Cells are separated"),
    ("a.tsv", "cat\tK\ndog\t\n", 'a.tsv:2: the target is empty. Remove the row, or set data.empty = "keep"'),
    ("a.tsv", "cat\tK\n\tD\n", 'a.tsv:2: the source is empty. Remove the row, or set data.empty = "keep"'),
    ("a.tsv", "cat\tK\ndog\t \n", "a.tsv:2: the target is empty"),
    ("a.tsv", "cat\ndog\n", "a.tsv:1: found one column, but a pair has two, a source and a target"),
    ("a.tsv", "a\tb\tc\td\n", "a.tsv:1: found 4 columns, but a pair has two"),
    ("a.tsv", "a\tb\nc\td\te\n", "a.tsv:2: found 3 columns, but columns (source, target) names 2. Every tab separates"),
    ("a.tsv", LATIN, "a.tsv:1: byte 4 of the line, 0xe9, is not UTF-8"),
    ("a.tsv", NOISE, "a.tsv:1: "),
    ("a.tsv", "a\0b\tc\n", "a.tsv:1: a NUL character was found"),
    ("a.txt", "just a text\n", "reads a column 'source' and writes a column 'target', but the columns are text"),
    ("a.bin", "cat\tK\n", "cannot detect the format from the ending '.bin'"),
    ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": "a"}\n', "a.jsonl:2: there is no column 'target'"),
    ("a.jsonl", '{"source": "a", "target": 3}\n', "a.jsonl:1: 'target' must hold a text, but is 3"),
    ("a.jsonl", '{"source": "a", "target"\n', "a.jsonl:1: this is not JSON"),
    ("a.jsonl", '{"source": "a", "target": null}\n', "a.jsonl:1: the target is empty"),
    ("a.jsonl", '{"src": "a", "tgt": "b", "id": "7"}\n', "writes a column 'target', but the columns are src, tgt, id"),
    (
        "a.jsonl",
        '{"frames": [[1, 2]], "target": "a"}\n{"frames": [[1]], "target": "b"}\n',
        "a.jsonl:2: found 1 number per step",
    ),
    ("a.jsonl", '{"frames": ["x"], "target": "a"}\n', "a.jsonl:1: "),
]


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[said[:50] for _, _, said in FILES])
def test_what_is_wrong_with_a_file_is_said_with_its_place(
    here: Path, name: str, content: str | bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert train("--train", name) == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            ["a.en,b.de"],
            "a.en:2: this line has no counterpart: a.en has 2 lines, but b.de 1. Parallel files must have",
        ),
        (["a.en,c.de"], 'c.de:2: the target is empty. Remove this line of both files, or set data.empty = "keep"'),
        (["a.en,none.de"], "there is no file 'none.de'"),
        (["a.en,a.de,a.en"], "names 3 files, but there are 2 columns (source, target)"),
        (["."], "'.' is a folder; name a file in it"),
        (["none.tsv"], "there is no file 'none.tsv'"),
        (["words.tsv", "--valid", "none.tsv"], "there is no file 'none.tsv'"),
        (["words.tsv", "--valid", "a.en,b.de"], "a.en:2: this line has no counterpart:"),
        (["words.tsv", "--columns", "target", "target"], "data.columns names target twice, but a pair has one target"),
        (["words.tsv", "--columns", "source", "target", "features"], "words.tsv:1: found 2 columns, but columns (sou"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    here: Path, files: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--train", *files) == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()


SETTINGS = [
    (
        ["model.attention=dot", "model.decoder.hidden=10"],
        "but the decoder has 10 features and the memory 8: set model.decoder.hi",
    ),
    (["model.attention=scaled_dot", "model.decoder.hidden=10"], "but the decoder has 10 features and the memory 8"),
    (["model.attention=aditive"], "there is no attention 'aditive'. Did you mean 'additive'?"),
    (['model.attention={name="dot", terms=["monotone"]}'], "there is no term 'monotone'. Did you mean 'monotonic'?"),
    (["model.cell=lsmt"], "there is no cell 'lsmt'. Did you mean 'lstm'?"),
    (
        ["model.copy=true", "model.encoder=pyramid"],
        "but model.encoder.kind = 'pyramid' merges 4 of them into one: leave one",
    ),
    (["augmentation.noise=0.1"], "augmentation.noise applies to series and pictures, but a text is read: leave it out"),
    (["model.copy=true", "model.attention=none"], "model.copy = true needs attention, but model.attention is none"),
    (
        ["model.bridge=identity", "model.decoder.hidden=7"],
        "in layer 1 the encoder has 8 units, the decoder ",
    ),
    (
        ["model.copy=true", 'data.source.tokens={name="subwords", dropout=0.1}'],
        "but data.source.tokens with dropout change",
    ),
    (["data.source=sorce"], "words.tsv:1: there is no column 'sorce'"),
    (["data.target.tokens=sylables"], "there is no tokenizer 'sylables'. Did you mean 'symbols'?"),
    (
        ["data.target.min_count=99"],
        "no token of the target in words.tsv would be in the vocabulary: the most frequent, ",
    ),
    (["data.target.max_size=0"], "data.target.max_size must be at least 1, but is 0"),
    (["data.source.min_count=0"], "data.source.min_count must be at least 1, but is 0"),
    (["data.max_length=0"], "data.max_length must be at least 1, but is 0"),
    (["training.forcing=2"], "training.forcing must be at least 0 and at most 1, but is 2"),
    (["evaluation.first=blue"], "evaluation.first = 'blue' is not known. Did you mean 'bleu'?"),
    (["evaluation.bleu_tokenize=14a"], "bleu_tokenize = '14a' is not known"),
    (['decoding.forced=["<unk>"]'], "decoding.forced has '<unk>', which needs decoding.unknown = true."),
    (['decoding.banned=["Q"]'], "decoding.banned has 'Q', which is not a token of the targets. Known: <unk>, T, AW, D"),
    (['decoding.banned=["K"]', 'decoding.forced=["K"]'], "decoding.forced has 'K', but decoding.banned has it"),
    (
        ['decoding.forced=["K", "T"]', "decoding.prefix=K AE", "decoding.max_length=3"],
        "decoding.prefix and decoding.forced ask for 4 tokens, but decoding.max_length = 3 allows fewer: set it to 5",
    ),
    (['decoding.banned=["K"]', "decoding.prefix=K"], "decoding.prefix has 'K', but decoding.banned has it"),
    (["decoding.best=9"], "but decoding.width = 5: set decoding.width = 9"),
    (["decoding.search=given"], "decoding.search = 'given' generates nothing that can be scored: choose a search"),
    (["decoding.search=exhaustive"], "tries all sequences, but 19 tokens give more than 2,000,000: use 'beam', or a"),
]


@pytest.mark.parametrize(("settings", "said"), SETTINGS, ids=[" ".join(settings) for settings, _ in SETTINGS])
def test_a_setting_that_cannot_be_is_refused_before_training(
    here: Path, settings: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--train", "words.tsv", "--valid", "words.tsv", sets=settings) == 2
    assert said in only_sentence(capsys)
    assert not (here / "run").exists()


def test_what_the_cache_holds_is_checked_and_told_as_what_is_read(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(here / "cache"))
    cached = [part for override in [*TINY, "data.cache=true", "data.max_length=3"] for part in ("--set", override)]
    for run in ("first", "second"):
        arguments = ["train", "seq2seq", "--train", "words.tsv", "--valid", "words.tsv", "--out", run]
        assert main([*arguments, *cached]) == 0
        said = capsys.readouterr().err
        assert ("read 4 examples" in said) == (run == "first")
        assert "left out 4 of 8 examples: a side is longer than data.max_length = 3" in said
    assert main([*arguments[:-1], "third", *cached, "--quiet", "--set", "evaluation.first=blue"]) == 2
    assert "evaluation.first = 'blue' is not known" in only_sentence(capsys)
    assert not (here / "third").exists()


def test_series_of_numbers_cannot_be_copied_nor_share_a_vocabulary(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.jsonl").write_text('{"frames": [1, 2], "target": "a"}\n{"frames": [2], "target": "b"}\n')
    for setting, said in (
        (
            "model.copy=true",
            "model.copy = true copies tokens of the source, but with data.frames the source is",
        ),
        (
            "data.joint=true",
            "data.joint = true makes one vocabulary for both sides, but with data.frames the source is numbers",
        ),
        ("augmentation.rotate=3", "augmentation.rotate applies to pictures, but the inputs are series: leave it out"),
        ('data.features=["target"]', "data.features needs a text as source, but the source is a series"),
    ):
        assert train("--train", "a.jsonl", sets=[setting]) == 2
        assert said in only_sentence(capsys)


def test_nothing_left_to_learn_from_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.tsv").write_text(LONG + "\n")
    assert train("--train", "a.tsv", sets=["data.max_length=100"]) == 2
    assert "no training examples are left: a side is longer than data.max_length = 100" in only_sentence(capsys)


def test_a_long_pair_that_many_rows_are_padded_to_is_said(tmp_path: Path) -> None:
    pairs = [*[("a", "A")] * 40, ("ab" * 500, "B A")]
    task = prepared(Seq2Seq, small(table(tmp_path / "a.tsv", pairs), "training.batch_size=32").settings, print)
    said = task.task.noticed_in_training(task.store)
    assert said is not None
    assert (
        "a.tsv:41, has 1,001 tokens, and training.batch_size = 32 pads a whole batch to that length. This takes ti"
        in said
    )
    few = prepared(Seq2Seq, small(table(tmp_path / "a.tsv", pairs), "training.batch_size=8").settings, print)
    assert few.task.noticed_in_training(few.store) is None


def test_a_long_pair_is_said_trained_with_and_answered(tmp_path: Path) -> None:
    long = ("ab" * 600, "B A " * 600)
    file = table(tmp_path / "a.tsv", [("a", "A"), long, ("b", "B")])
    told = Noted()
    by_tokens = ("training.batch_size=none", "data.source.tokens=characters")
    begin(small(file, *TINY, *by_tokens), tmp_path / "run", told)
    [said] = [note for note in told.notes if "longer" in note]
    assert "one pair is longer than training.batch_tokens = 1,000; the longest, " in said
    assert "a.tsv:2, has 1,201 tokens. Each becomes a separate batch, which takes time and memory; to" in said
    assert len(load(tmp_path / "run").predict([long[0]])[0].detail["source_tokens"]) == 1201
    told = Noted()
    begin(small(file, *TINY, *by_tokens, "data.max_length=1000"), tmp_path / "shorter", told)
    assert [note for note in told.notes if "longer" in note] == [
        "left out 1 of 3 examples: a side is longer than data.max_length = 1000"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "run", "none.tsv"], "there is no file 'none.tsv'"),
        (["evaluate", "run", "pictures"], "the folder pictures contains no data files (names that end in ."),
        (["evaluate", "run", "asked.tsv"], "asked.tsv:1: found one column, but columns (source, target) names 2"),
        (["evaluate", "run", "a.en,b.de"], "a.en:2: this line has no counterpart:"),
        (["evaluate", "run", "words.tsv", "--set", "evaluation.first=blue"], "evaluation.first = 'blue' is not known"),
        (["evaluate", "run", "words.tsv", "--set", "decoding.search=given"], "generates nothing that can be scored"),
        (["predict", "run", "none.txt"], "there is no file 'none.txt'"),
        (["predict", "run", "."], "'.' is a folder: name the folder of the answers with --out FOLDER"),
        (["predict", "run", "noise.txt"], "noise.txt:1: "),
        (
            ["predict", "run", "tabs.txt"],
            "tabs.txt:1: found 3 texts separated by tabs, but this model needs sou",
        ),
        (["predict", "run", "src.jsonl"], "src.jsonl:1: there is no column 'source'. Did you mean 'src'?"),
        (
            ["predict", "run", "words.tsv", "--search", "exhaustive"],
            "too many to try all of them: use a smaller length",
        ),
        (
            ["predict", "run", "words.tsv", "--set", "decoding.max_length=1", "--set", f"decoding.banned={['<unk>']}"],
            "",
        ),
        (["predict", "run,other", "words.tsv"], "there is no folder other"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(
    here: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "asked.tsv").write_text("cat\n")
    (here / "pictures").mkdir()
    (here / "pictures" / "cat.png").write_bytes(NOISE)
    (here / "tabs.txt").write_text("a\tb\tc\n")
    (here / "noise.txt").write_bytes(NOISE)
    (here / "src.jsonl").write_text('{"src": "cat"}\n')
    assert train("--train", "words.tsv") == 0
    capsys.readouterr()
    assert main(arguments) == (2 if said else 0)
    if said:
        assert said in only_sentence(capsys)


def test_no_traceback_is_shown_by_the_program_itself(here: Path) -> None:
    command = [sys.executable, "-m", "recurra", "train", "seq2seq", "--train", "a.en,b.de", "--out", "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    assert done.returncode == 2
    assert "this line has no counterpart:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_score_that_cannot_be_computed_here_is_refused_before_training(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.ter", None)
    assert train("--train", "words.tsv", "--valid", "words.tsv", sets=["evaluation.first=ter"]) == 2
    assert "ter needs sacrebleu: pip install 'recurra[metrics]'" in only_sentence(capsys)
    assert not (here / "run").exists()


def test_a_loss_needs_targets_and_a_row_knows_its_place(tmp_path: Path) -> None:
    model = trained(tmp_path, words(tmp_path), *TINY)
    task = model.task
    questions = task.batch([task.encode(example) for example in task.questions(None, ["cat", "dog"])])
    with pytest.raises(DataError, match="a training example needs a target, but this one has only a source"):
        task.loss(model.model, questions)
    rows = [task.encode(example) for example in task.read(task.settings.data.files("train"))]
    assert [task.place(row) for row in rows[:2]] == [f"{tmp_path / 'words.tsv'}:{line}" for line in (1, 2)]


def test_what_would_fail_only_at_the_end_is_found_when_a_task_is_prepared(tmp_path: Path) -> None:
    settings = Seq2Seq.resolved(small(words(tmp_path), 'decoding.banned=["<unk>", "K"]').settings)
    assert len(Seq2Seq.prepared(settings).search_tokens.banned) == 2
    assert pair_decoding.MOST_SEQUENCES == exhaustive.MOST_SEQUENCES


HUNGRY = """
import torch
from recurra.attention.attention import Attention

class Hungry(Attention):
    def score(self, query, keys):
        return torch.empty(1 << 50)
"""


def test_lack_of_memory_is_said_in_a_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "hungry.py").write_text(HUNGRY)
    assert train("--train", "words.tsv", sets=["model.attention=hungry:Hungry"]) == 2
    assert (
        "out of memory at step 1, also with the batch in two halves: the batch has 8 examples of 2 to 6 elements"
        in only_sentence(capsys)
    )
    assert is_lack_of_memory(MemoryError())
    assert not is_lack_of_memory(RuntimeError("shapes do not fit"))


def test_a_question_whose_features_are_all_new_is_refused_and_one_with_some_is_answered(
    tmp_path: Path,
) -> None:
    file = table(tmp_path / "forms.tsv", [("walk", "walked", "V;PST"), ("see", "sees", "V;PRS")])
    model = trained(tmp_path, file, *TINY)
    assert len(model.predict(["walk\tV;FUT", "walk", "walk\tPRS"])) == 3
    said = r"^input:2: the training data has no feature 'PTS' or 'X'\. Did you mean 'PST'\? Known: V, PRS, PST\."
    with pytest.raises(DataError, match=said):
        model.predict(["walk\tPST", "walk\tPTS;X"])
