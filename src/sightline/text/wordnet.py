"""WordNet's synonym sets and what they are kinds of, from METEOR's data in `pycocoevalcap`."""

import functools
import importlib.util
import math
import zipfile
from pathlib import Path

from sightline.errors import MissingExtraError

# WordNet 3 numbers its nouns by subject. (Some numbers of the first range are of verbs, too.)
_VISIBLE = (
    ("01313093", "04621000"),  # animals, and things that people make
    ("07555863", "07931000"),  # food and drink
    ("09186000", "09483000"),  # landscapes
    ("09604981", "10792000"),  # people
    ("11529603", "13205000"),  # plants
)


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
def things() -> tuple[str, ...]:
    """Single words whose first sense is a thing that can be seen, those in common use first.

    WordNet counts no uses here. Words in common use have many senses, and kinds that have names of
    their own, and are short.

    >>> things().index("trumpet") < things().index("sombrero") < things().index("aspidistra")
    True
    """
    seen: list[tuple[float, str]] = []
    for word, numbers in _entries().items():
        if not (word.isascii() and word.isalpha() and word.islower()):
            continue
        if any(low <= numbers[0] < high for low, high in _VISIBLE):
            kinds = math.log2(1 + len(related(numbers[0])))
            seen.append((len(word) / 2 - len(numbers) - kinds, word))
    return tuple(word for _, word in sorted(seen) if len(word) > 2)


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
