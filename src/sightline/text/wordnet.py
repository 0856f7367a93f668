"""WordNet's synonym sets and what they are kinds of, from METEOR's data in `pycocoevalcap`."""

import functools
import importlib.util
import zipfile
from pathlib import Path

from sightline.errors import MissingExtraError


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
    return frozenset(senses(word))


def senses(word: str) -> tuple[str, ...]:
    """The same in the file's order: animals and things that people make first, verbs last.

    >>> senses("puppy")
    ('01322604', '10493835')
    """
    return _entries().get(word.replace(" ", "_"), ())


def related(synset: str) -> tuple[str, ...]:
    """The synonym sets that one is a kind of, and those that are kinds of it.

    >>> set(senses("dog")) & set(related(senses("puppy")[0]))
    {'02084071'}
    """
    return _relations().get(synset, ())


@functools.cache
def _entries() -> dict[str, tuple[str, ...]]:
    """The synset numbers of each of WordNet 3's 147,306 entries."""
    return _pairs("english.synsets")


@functools.cache
def _relations() -> dict[str, tuple[str, ...]]:
    return _pairs("english.relations")


def _pairs(name: str) -> dict[str, tuple[str, ...]]:
    """A file of METEOR's: a key on one line, its synset numbers on the next."""
    folder = pycocoevalcap_folder()
    jar = folder / "meteor" / "meteor-1.5.jar" if folder else None
    if jar is None or not jar.is_file():
        raise MissingExtraError("WordNet's synonyms", "spice")
    with zipfile.ZipFile(jar) as archive:
        lines = archive.read(f"synonym/{name}").decode("utf-8").splitlines()
    return {
        key: tuple(numbers.split()) for key, numbers in zip(lines[::2], lines[1::2], strict=True)
    }
