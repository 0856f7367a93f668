"""`sightline models`."""

from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from sightline.cli.options import console, json_option, print_json


@click.command("models")
@json_option
def command(as_json: bool) -> None:
    """List the models that can be trained, and the trained captioner bundled with Sightline.

    Parameters are counted at the default size.
    """
    from sightline.checkpoint import find_checkpoint, load_config
    from sightline.models.registry import MODELS, create_model

    folder = find_checkpoint()
    bundled = load_config(folder)
    rows: list[dict[str, Any]] = []
    for name in MODELS.names():
        card = MODELS.find(name)
        # At the sizes of Flickr8k: 2,543 words, regions of EfficientNet-Lite.
        model = create_model(name, 2543, 1280)
        rows.append(
            {
                "name": name,
                "paper": card.paper or f"plug-in {MODELS.origin(name)}",
                "summary": card.summary,
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "bundled": name == bundled["model"]["name"],
            }
        )
    if as_json:
        print_json(rows)
        return
    table = Table("model", "from", "what it is", "parameters", box=None, pad_edge=False)
    table.columns[3].justify = "right"
    for row in rows:
        table.add_row(row["name"], row["paper"], row["summary"], f"{row['parameters'] / 1e6:.1f} M")
    console.print(table)
    model, encoder = bundled["model"]["name"], bundled["encoder"]["name"]
    console.print(
        f"\nBundled: a trained {model} over {encoder} that knows "
        f"{len(bundled['vocabulary']):,} words.\nModel card: {escape(str(folder / 'README.md'))}"
    )
