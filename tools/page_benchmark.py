"""Write `src/sightline/report/benchmark.json`: what explanation pages say of the methods.

    python tools/page_benchmark.py

The numbers are those of `sightline experiment explanations`, in `docs/experiments` (the commands
are in docs/localisation.md). A test holds the file to them.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Of one captioner, the largest first: the first that has a method is where its map is measured,
# and the first that hid parts of the picture is where deletion is.
EXPERIMENTS = ("explanations-all", "explanations", "explanations-others")
TARGET = ROOT / "src" / "sightline" / "report" / "benchmark.json"
MEASURES = ("inside", "prefers_its_box")
BLURRED = 0  # the place of blur, most relevant first, among the curves of a row
CHANCE = "random"


def main() -> None:
    TARGET.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")
    print(TARGET.relative_to(ROOT))


def collect() -> dict:
    """The measures of each method; of maps of regions where there are finer ones, none."""
    methods: dict = {}
    for experiment in EXPERIMENTS:
        path = ROOT / "docs" / "experiments" / experiment / "data.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        if (data["captioners"], data["data"], data["split"]) != (["bundled"], "flickr8k", "test"):
            raise SystemExit(f"{path}: not of the bundled captioner and Flickr8k's test pictures")
        for row in data["rows"]:
            if row["map"] not in (*data["options"]["methods"], CHANCE):
                continue
            method = methods.setdefault(
                row["map"],
                {name: row[name] for name in MEASURES}
                | {"pictures": data["pictures"]["bundled"], "deletion": {}},
            )
            for parts, curves in row["curves"].items():
                if curves is not None and parts not in method["deletion"]:
                    blurred = curves[BLURRED]
                    fall = {"mean": sum(blurred) / len(blurred), "count": row[parts]["count"]}
                    method["deletion"][parts] = fall
    return {
        "data": "Flickr8k",
        "split": "test",
        "chance": methods.pop(CHANCE)["deletion"],
        "methods": methods,
    }


if __name__ == "__main__":
    main()
