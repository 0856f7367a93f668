"""`sightline hub`."""

from pathlib import Path

import click


@click.group("hub")
def command() -> None:
    """Share a captioner on the Hugging Face Hub, or get one from there."""


@command.command("push")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("repository", required=False)
@click.option("--private", is_flag=True, help="Make a new repository private.")
@click.option(
    "--stage",
    "staged",
    type=click.Path(path_type=Path, file_okay=False),
    help="Only write what would be uploaded into this new folder. Needs no account.",
)
def push_command(model: Path, repository: str | None, private: bool, staged: Path | None) -> None:
    """Upload the captioner of MODEL, a checkpoint or run, to REPOSITORY, such as me/my-captioner.

    Log in first, with `hf auth login`. The model card gets the Hub's metadata.
    """
    from sightline.hub import push, stage

    if (repository is None) == (staged is None):
        raise click.UsageError("Give either a REPOSITORY or --stage FOLDER.")
    click.echo(stage(model, staged) if staged else push(model, str(repository), private=private))


@command.command("pull")
@click.argument("repository")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="New folder for the captioner. Default: the repository's name.",
)
@click.option("--revision", help="A branch, tag or commit. Default: the newest.")
def pull_command(repository: str, output: Path | None, revision: str | None) -> None:
    """Download the captioner of REPOSITORY, such as me/my-captioner."""
    from sightline.hub import pull

    folder = pull(repository, output or Path(repository.split("/")[-1]), revision=revision)
    click.echo(f"{folder}\nCaption a picture: sightline caption --model {folder} photo.jpg")
