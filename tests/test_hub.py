"""The Hub's layout and the client's calls, against a stand-in of the client; no account, no net."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import HfApi

import sightline
from sightline.cli.hub import command
from sightline.errors import CheckpointError, ConfigError
from sightline.hub import pull, push, stage, with_metadata


class LocalHub:
    """The folder functions of `HfApi`, with a folder in place of the Hub. Same arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> None:
        (self.folder / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> None:
        shutil.copytree(folder_path, self.folder / repo_id, dirs_exist_ok=True)

    def snapshot_download(
        self, repo_id: str, *, revision: str | None, local_dir: Path, allow_patterns: list[str]
    ) -> str:
        if not (self.folder / repo_id).exists():
            raise OSError(f"404 Client Error.\n\nRepository Not Found for {repo_id}")
        for pattern in allow_patterns:
            for path in (self.folder / repo_id).glob(pattern):
                local_dir.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, local_dir / path.name)
        return str(local_dir)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    local = LocalHub(tmp_path / "hub")
    monkeypatch.setattr("sightline.hub._client", lambda: local)
    return local.folder


@pytest.mark.parametrize("name", ["create_repo", "upload_folder", "snapshot_download"])
def test_the_stand_in_has_arguments_of_the_client(name: str) -> None:
    """So a call that the stand-in takes is one that the client takes."""
    import inspect

    real = inspect.signature(getattr(HfApi, name)).parameters
    assert set(inspect.signature(getattr(LocalHub, name)).parameters) <= set(real)


def test_a_captioner_goes_there_and_back(
    fitted_checkpoint: Path, hub: Path, tmp_path: Path, examples: Path
) -> None:
    checkpoint = shutil.copytree(fitted_checkpoint, tmp_path / "checkpoint")
    (checkpoint / "training.safetensors").write_bytes(b"large")
    (checkpoint / "diary.txt").write_text("mine")
    assert push(checkpoint, "me/mine") == "https://huggingface.co/me/mine"
    uploaded = {path.name for path in (hub / "me/mine").iterdir()}
    assert uploaded == {path.name for path in fitted_checkpoint.iterdir()}
    assert {"config.json", "README.md", "model.safetensors", "support.safetensors"} <= uploaded
    (hub / "me/mine" / "evil.py").write_text("raise SystemExit")
    folder = pull("me/mine", tmp_path / "pulled")
    assert not (folder / "evil.py").exists()
    picture = examples / "cat.jpg"
    again, before = (sightline.load(each).caption(picture) for each in (folder, fitted_checkpoint))
    assert again.text == before.text


def test_the_card_has_what_the_hub_filters_by(checkpoint: Path, tmp_path: Path) -> None:
    card = (stage(checkpoint, tmp_path / "staged") / "README.md").read_text("utf-8")
    _, head, body = card.split("---\n", 2)
    metadata: dict[str, Any] = yaml.safe_load(head)
    assert metadata["library_name"] == "sightline"
    assert metadata["pipeline_tag"] == "image-to-text"
    assert "soft_attention" in metadata["tags"]
    assert body.strip().startswith("# card")
    own = with_metadata("---\nlicense: mit\nlibrary_name: other\n---\n# Mine", metadata)
    assert yaml.safe_load(own.split("---\n")[1])["license"] == "mit"
    assert "library_name: other" in own
    assert own.endswith("# Mine")


def test_mistakes_are_one_line(checkpoint: Path, hub: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^me/absent: cannot be downloaded: 404 Client Error\.$"):
        pull("me/absent", tmp_path / "pulled")
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    for refused in (lambda: pull("me/mine", full), lambda: stage(checkpoint, full)):
        with pytest.raises(ConfigError, match="is not empty"):
            refused()
    (hub / "me/other").mkdir(parents=True)
    (hub / "me/other" / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        pull("me/other", tmp_path / "other")


@pytest.mark.parametrize(
    ("card", "says"),
    [
        (b"---\na: [\n---\n# x", "not YAML"),
        (b"---\n- a\n- b\n---\n# x", "must be keys and values"),
        (b"caf\xe9", "is not UTF-8 text"),
    ],
)
def test_a_card_that_cannot_be_read_is_one_line(
    checkpoint: Path, tmp_path: Path, card: bytes, says: str
) -> None:
    model = shutil.copytree(checkpoint, tmp_path / "model")
    (model / "README.md").write_bytes(card)
    with pytest.raises(ConfigError, match=rf"README\.md: .*{says}"):
        stage(model, tmp_path / "staged")
    assert not (tmp_path / "staged").exists()


def test_the_command_stages_without_an_account(checkpoint: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        command, ["push", str(checkpoint), "--stage", str(tmp_path / "staged")]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "staged" / "model.safetensors").is_file()
    neither = CliRunner().invoke(command, ["push", str(checkpoint)])
    assert neither.exit_code == 2
