"""`sightline data`: check, measure or make captioned pictures."""

from sightline.cli.main import LazyGroup

command = LazyGroup(
    "data",
    help="Check, measure or make captioned pictures.",
    table={
        "check": ("sightline.cli.data_check", "Find what is wrong with a dataset, and mend it."),
        "stats": ("sightline.cli.data_stats", "Sizes, caption lengths, vocabulary coverage."),
        "scenes": ("sightline.cli.data_scenes", "Draw synthetic scenes with known answers."),
    },
)
