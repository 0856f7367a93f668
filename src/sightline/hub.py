"""Captioners to and from the Hugging Face Hub, in the layout that it expects of a model.

A checkpoint folder already has that layout: `model.safetensors`, `config.json` and a model card in
`README.md`. What the Hub adds is metadata at the head of the card. Without an account, `stage`
writes the folder that would be uploaded, to look at.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from sightline import extras
from sightline.checkpoint import find_checkpoint, load_config
from sightline.errors import ConfigError
from sightline.files import CONFIG_BYTES, atomic_write
from sightline.parsing import parse_yaml, read_text

# What a checkpoint consists of. Nothing else in its folder is uploaded or kept of a download: the
# state of training, for one, is large and nobody else's.
_FILES = ("config.json", "README.md", "*.safetensors")
_LEFT_OUT = ("training.safetensors",)


def card_metadata(config: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a model card: what the Hub searches and filters by.

    >>> config = {"model": {"name": "grid_td"}, "encoder": {"name": "vgg16"}}
    >>> card_metadata(config)["tags"]
    ['image-captioning', 'explainability', 'grid_td', 'vgg16']
    """
    return {
        "library_name": "sightline",
        "pipeline_tag": "image-to-text",
        "language": ["en"],
        "tags": [
            "image-captioning",
            "explainability",
            config["model"]["name"],
            config["encoder"]["name"],
        ],
    }


def with_metadata(card: str, metadata: dict[str, Any], where: str = "README.md") -> str:
    """A card that begins with metadata. What the card has already is kept.

    >>> print(with_metadata("# A captioner", {"library_name": "sightline"}))
    ---
    library_name: sightline
    ---
    <BLANKLINE>
    # A captioner
    """
    head = re.match(r"---\r?\n(.*?)\r?\n---(\r?\n)+", card, re.DOTALL)
    given = parse_yaml(head[1], where) or {} if head else {}
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: what is between its first lines --- must be keys and values")
    body = card[head.end() :] if head else card
    merged = yaml.safe_dump({**metadata, **given}, sort_keys=False, allow_unicode=True)
    return f"---\n{merged}---\n\n{body}"


def stage(model: Path | None, folder: Path) -> Path:
    """Write what would be uploaded of a captioner into a new folder; that folder."""
    checkpoint = find_checkpoint(model)
    config = load_config(checkpoint)
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: is not empty; give a new folder")
    card = checkpoint / "README.md"
    own = (
        read_text(card, CONFIG_BYTES, ConfigError) if card.exists() else "# A Sightline captioner\n"
    )
    text = with_metadata(own, card_metadata(config), str(card))
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(path for pattern in _FILES for path in checkpoint.glob(pattern)):
        if path.name not in _LEFT_OUT:
            shutil.copyfile(path, folder / path.name)
    with atomic_write(folder / card.name) as file:
        file.write(text)
    return folder


def push(model: Path | None, repository: str, *, private: bool = False) -> str:
    """Upload a captioner to a repository such as `me/my-captioner`; its address.

    >>> push(Path("runs/mine"), "me/my-captioner")  # doctest: +SKIP
    'https://huggingface.co/me/my-captioner'
    """
    import tempfile

    client = _client()
    with tempfile.TemporaryDirectory() as temporary:
        folder = stage(model, Path(temporary) / "model")
        try:
            client.create_repo(repository, private=private, exist_ok=True)
            client.upload_folder(
                repo_id=repository, folder_path=folder, commit_message="A Sightline captioner"
            )
        except Exception as error:
            raise ConfigError(f"{repository}: cannot be uploaded: {_reason(error)}") from None
    return f"https://huggingface.co/{repository}"


def pull(repository: str, folder: Path, *, revision: str | None = None) -> Path:
    """Download a captioner into a new folder; that folder. Nothing in it is run or unpickled."""
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: is not empty; give a new folder with -o")
    client = _client()
    try:
        client.snapshot_download(
            repository, revision=revision, local_dir=folder, allow_patterns=list(_FILES)
        )
    except Exception as error:
        raise ConfigError(f"{repository}: cannot be downloaded: {_reason(error)}") from None
    load_config(folder)  # says what is wrong, if it is no captioner of ours
    return folder


def _client() -> Any:
    extras.require("hub", "the Hugging Face Hub")
    from huggingface_hub import HfApi

    return HfApi()


def _reason(error: Exception) -> str:
    """The first line of what the client says; it knows of accounts, networks and names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0].removeprefix("Got: ")[:300]
