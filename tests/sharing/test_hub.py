"""push and pull against a hub on this machine; nothing leaves it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import recurra
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError
from recurra.manifest import MANIFEST, seal
from recurra.training.answering import Answering
from tests.sharing.fake_hub import TOKEN, FakeHub, served

OLD = Path(__file__).parents[1] / "old_runs" / "0.1" / "tagging"


def outputs(model: Answering, texts: list[str]) -> list[str]:
    return [answer.output for answer in model.predict(texts)]


# What huggingface_hub's own libraries warn of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(OLD / "run", tmp_path / "run")
    (tmp_path / "run" / "card.md").write_text("# a tagger\n")
    seal(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """huggingface_hub reads the environment when it is imported: here its constants are set."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with served() as fake:
        for name in ("ENDPOINT", "_HF_DEFAULT_ENDPOINT"):
            if hasattr(constants, name):
                monkeypatch.setattr(constants, name, fake.url)
        template = f"{fake.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield fake


def test_a_run_that_was_pushed_is_pulled_as_it_was(run: Path, hub: FakeHub, tmp_path: Path) -> None:
    pushed = recurra.push(run, "owner/tagger", license="CC-BY-4.0")
    assert (pushed.private, pushed.license, pushed.url) == (True, "CC-BY-4.0", f"{hub.url}/owner/tagger")
    copy = recurra.pull("owner/tagger", tmp_path / "theirs").folder
    assert outputs(recurra.load(copy), ["they run"]) == outputs(recurra.load(run), ["they run"])
    files = {path.name for path in copy.iterdir()}
    assert files >= {MANIFEST, "card.md", "LICENSE.model", "model.safetensors"}
    assert not files & {"last", ".cache", "README.md"}
    assert recurra.load("hf://owner/tagger", fetch=True).predict(["they run"])[0].output


def test_the_card_says_to_the_hub_what_the_run_is(run: Path, hub: FakeHub) -> None:
    recurra.push(run, "owner/tagger", license="CC-BY-4.0")
    card = hub.repositories["owner/tagger"].files["README.md"].decode()
    head = '---\nlibrary_name: "recurra"\ntags: ["recurra", "tagging"]\nlicense: "cc-by-4.0"\n'
    assert card == f'{head}pipeline_tag: "token-classification"\n---\n\n# a tagger\n'


def test_a_repository_is_private_unless_it_is_said(run: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", str(run), "owner/closed"]) == 0
    assert "owner/closed (private)" in capsys.readouterr().out
    assert main(["push", str(run), "owner/open", "--public", "--license", "MIT"]) == 0
    assert "owner/open (public)" in capsys.readouterr().out
    assert [each.private for each in hub.repositories.values()] == [True, False]


def test_pushing_again_replaces_the_run_and_removes_what_it_had_more(run: Path, hub: FakeHub, tmp_path: Path) -> None:
    (run / "notes.md").write_text("more\n")
    seal(run)
    recurra.push(run, "owner/tagger")
    assert "notes.md" in hub.repositories["owner/tagger"].files
    (run / "notes.md").unlink()
    seal(run)
    recurra.push(run, "owner/tagger")
    assert "notes.md" not in hub.repositories["owner/tagger"].files
    assert recurra.pull("owner/tagger", tmp_path / "theirs").files == len(hub.repositories["owner/tagger"].files) - 1


def test_a_repository_that_was_tampered_with_is_refused(run: Path, hub: FakeHub, tmp_path: Path) -> None:
    recurra.push(run, "owner/tagger")
    files = hub.repositories["owner/tagger"].files
    whole = dict(files)
    size = len(files["config.toml"])
    for change, said in (
        ({"config.toml": b"x" * size}, "config.toml is damaged"),
        ({"config.toml": None}, "is damaged: it has no config.toml, which its manifest.json lists"),
        ({MANIFEST: None}, "holds no run of recurra: it has no manifest.json"),
        ({MANIFEST: json.dumps({"format": 1, "files": {".new/x": {"bytes": 1, "sha256": "0" * 64}}}).encode()},
         "of the file '.new/x', it is hidden"),
    ):  # fmt: skip
        files.clear()
        files.update({name: each for name, each in {**whole, **change}.items() if each is not None})
        with pytest.raises(CheckpointError) as caught:
            recurra.pull("owner/tagger", tmp_path / "theirs")
        assert said in str(caught.value)
        assert str(caught.value).startswith("owner/tagger")
        assert sorted(path.name for path in tmp_path.iterdir() if path.name != "hub") == ["run"]


@pytest.mark.usefixtures("hub")
def test_what_the_hub_refuses_is_said_in_a_sentence(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="owner/none is not on the hub, or is private and your token may not"):
        recurra.pull("owner/none", tmp_path / "theirs")
    recurra.push(run, "owner/tagger")
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(CheckpointError, match="owner/tagger is not on the hub, or is private"):
        recurra.pull("owner/tagger", tmp_path / "theirs")
    with pytest.raises(CheckpointError, match="the hub refuses your token for this"):
        recurra.push(run, "owner/other")


def test_a_name_without_an_owner_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("tagger", "a/b/c", "../up", "owner/.."):
        with pytest.raises(ConfigError, match="must be the owner and the name of a repository: owner/name"):
            recurra.push(run, name)
        assert main(["pull", name, "theirs"]) == 2
        assert "owner/name" in capsys.readouterr().err


def test_without_huggingface_hub_the_command_says_what_to_install(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["push", str(run), "owner/tagger"]) == 2
    assert "needs huggingface_hub, and huggingface_hub is not installed: pip install 'recurra[hub]'." in (
        capsys.readouterr().err
    )


def test_packing_needs_neither_torch_nor_huggingface_hub() -> None:
    code = (
        "import sys\nsys.modules['torch'] = sys.modules['huggingface_hub'] = None\n"
        "import recurra; print(recurra.pack.__name__, recurra.unpack.__name__, recurra.pull.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "pack unpack pull\n", done.stderr
