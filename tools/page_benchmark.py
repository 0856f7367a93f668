"""Write `src/sightline/report/benchmark.json`: what explanation pages say of the methods.

    python tools/page_benchmark.py

The numbers are those of `sightline experiment explanations`, in `docs/experiments` (the commands
are in docs/localisation.md). A test holds the file to them.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ("explanations", "explanations-others")  # of one captioner and the same pictures
TARGET = ROOT / "src" / "sightline" / "report" / "benchmark.json"
MEASURES = ("inside", "prefers_its_box", "regions")


def main() -> None:
    TARGET.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")
    print(TARGET.relative_to(ROOT))


def collect() -> dict:
    """The measures of each method; of maps of regions where there are finer ones, none."""
    methods = {}
    for experiment in EXPERIMENTS:
        path = ROOT / "docs" / "experiments" / experiment / "data.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        for row in data["rows"]:
            if row["map"] in data["options"]["methods"]:
                methods.setdefault(row["map"], {name: row[name] for name in MEASURES})
        count = row["inside"]["count"], row["prefers_its_box"]["count"] // 2
        about = (data["captioners"], data["split"], *data["pictures"].values(), *count)
        if about != (["bundled"], "test", 300, *count):
            raise SystemExit(f"{path}: not of the bundled captioner and 300 test pictures")
    return {
        "data": "Flickr8k",
        "split": data["split"],
        "pictures": data["pictures"]["bundled"],
        "words": count[0],
        "pairs": count[1],
        "methods": methods,
    }


if __name__ == "__main__":
    main()
