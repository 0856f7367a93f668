"""`sightline data`: check, measure or generate captioned pictures."""

from sightline.cli.main import LazyGroup

command = LazyGroup(
    "data",
    help="Check, measure or generate captioned pictures.",
    table={
        "check": (
            "sightline.cli.data_check",
            "Find problems in a dataset and write a cleaned copy.",
        ),
        "stats": (
            "sightline.cli.data_stats",
            "Show sizes, caption lengths and vocabulary coverage.",
        ),
        "copies": ("sightline.cli.data_copies", "Find pictures that two datasets share."),
        "scenes": ("sightline.cli.data_scenes", "Generate synthetic scenes with known answers."),
    },
)
