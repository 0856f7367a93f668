"""WordNet's synonym sets, as they lie in METEOR's data inside the `pycocoevalcap` wheel."""

import functools
import importlib.util
import zipfile
from pathlib import Path

from sightline.errors import MissingExtraError

_NONE: frozenset[str] = frozenset()


def pycocoevalcap_folder() -> Path | None:
    """Where the `pycocoevalcap` wheel is installed, or None; nothing of it is imported."""
    spec = importlib.util.find_spec("pycocoevalcap")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


def synsets(word: str) -> frozenset[str]:
    """The numbers of WordNet's synonym sets that hold a lemma; a space joins an entry's words.

    SPICE takes its synonyms from the same file. It does not tell parts of speech apart, so a noun
    and a verb set may share a number; the reference tool lives with that too.

    >>> sorted(synsets("puppy"))
    ['01322604', '10493835']
    """
    return _entries().get(word.replace(" ", "_"), _NONE)


@functools.cache
def _entries() -> dict[str, frozenset[str]]:
    """The synset numbers of each of WordNet 3's 147,306 entries."""
    folder = pycocoevalcap_folder()
    jar = folder / "meteor" / "meteor-1.5.jar" if folder else None
    if jar is None or not jar.is_file():
        raise MissingExtraError("WordNet's synonyms", "spice")
    with zipfile.ZipFile(jar) as archive:
        lines = archive.read("synonym/english.synsets").decode("utf-8").splitlines()
    return {
        word: frozenset(numbers.split())
        for word, numbers in zip(lines[::2], lines[1::2], strict=True)
    }
