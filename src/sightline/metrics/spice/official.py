"""SPICE by its published tool, for those who have its jars; `spice_spacy` needs none of them.

The tool (Anderson et al., ECCV 2016) is Java. Its jars are in the `pycocoevalcap` wheel, except for
the two of Stanford CoreNLP 3.6.0, which are in no package: the user names a folder that holds them.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.errors import SightlineError
from sightline.metrics.corpus import check_shapes
from sightline.metrics.score import Score
from sightline.metrics.spice.categories import category_scores
from sightline.text.wordnet import pycocoevalcap_folder

CORENLP_VARIABLE = "SIGHTLINE_CORENLP"
CORENLP_JARS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")

# The tool's names for what we call by one name everywhere.
_CATEGORIES = {
    "All": "all",
    "Object": "object",
    "Relation": "relation",
    "Attribute": "attribute",
    "Color": "colour",
    "Cardinality": "count",
    "Size": "size",
}


def spice(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    corenlp: Path | str | None = None,
    java: str = "java",
) -> tuple[Score, ...]:
    """Score captions with the published SPICE: all tuples, then each kind of tuple.

    `corenlp` is the folder with CoreNLP's two jars; without it, `$SIGHTLINE_CORENLP` is. What the
    tool says while it works goes to stderr.

    >>> spice(["a dog"], [["a dog runs"]], corenlp="corenlp-3.6.0")[0].name  # doctest: +SKIP
    'SPICE'
    """
    check_shapes(candidates, references)
    command = spice_command(java, corenlp)
    pictures = [
        {"image_id": number, "test": candidate, "refs": list(captions)}
        for number, (candidate, captions) in enumerate(zip(candidates, references, strict=True))
    ]
    with tempfile.TemporaryDirectory(prefix="sightline-spice-") as folder:
        asked, answered = Path(folder, "in.json"), Path(folder, "out.json")
        asked.write_text(json.dumps(pictures), encoding="utf-8")
        # No -cache: the tool's cache reaches into classes that Java 16 and later close to it.
        arguments = [str(asked), "-out", str(answered), "-subset"]
        run = subprocess.run(
            [*command, *arguments], stdout=2, stderr=subprocess.PIPE, text=True, check=False
        )
        if run.returncode != 0 or not answered.is_file():
            raise SightlineError(f"SPICE failed: {_reason(run.stderr)}")
        results = json.loads(answered.read_text(encoding="utf-8"))
    by_picture = {result["image_id"]: result["scores"] for result in results}
    if by_picture.keys() != set(range(len(pictures))):
        raise SightlineError(
            f"SPICE scored {len(by_picture)} pictures of {len(pictures)}: its jars may be damaged"
        )
    return category_scores("SPICE", [_f_scores(by_picture[i]) for i in range(len(pictures))])


def spice_command(java: str = "java", corenlp: Path | str | None = None) -> list[str]:
    """Java with everything on its class path; an error that lists whatever is not there."""
    missing = []
    program = shutil.which(java)
    if program is None:
        missing.append(f"no '{java}' program on the PATH (install a Java runtime, 8 or later)")
    wheel = pycocoevalcap_folder()
    tool = wheel / "spice" / "spice-1.0.jar" if wheel else None
    if tool is None or not tool.is_file():
        missing.append("no pycocoevalcap package (pip install 'sightline[spice]')")
    named = corenlp or os.environ.get(CORENLP_VARIABLE)
    jars = [Path(named or ".") / name for name in CORENLP_JARS]
    if named is None:
        missing.append(
            f"no folder given for {' and '.join(CORENLP_JARS)} (unpack CoreNLP 3.6.0 and give its "
            f"folder with corenlp= or ${CORENLP_VARIABLE})"
        )
    elif absent := [jar.name for jar in jars if not jar.is_file()]:
        missing.append(f"no {' and no '.join(absent)} in '{named}' (they come with CoreNLP 3.6.0)")
    if missing or program is None or tool is None:
        raise SightlineError("SPICE cannot run: " + "; ".join(missing))
    class_path = os.pathsep.join(map(str, [tool, *jars, tool.parent / "lib" / "*"]))
    return [program, "-Xmx8G", "-cp", class_path, "edu.anu.spice.SpiceScorer"]


def _reason(errors: str) -> str:
    """The line of a Java traceback that says what happened."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by:", "Exception", "Error"))]
    return (causes or lines or ["it gave no reason"])[-1]


def _f_scores(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """F-scores under our names; what the tool leaves undefined (null, or NaN) is left out."""
    values = {name: scores.get(key, {}).get("f") for key, name in _CATEGORIES.items()}
    defined = {name: float(value) for name, value in values.items() if value is not None}
    return {"all": 0.0} | {name: value for name, value in defined.items() if value == value}
