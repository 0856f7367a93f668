"""The recipes that are shipped with the package, by name: `flickr8k/soft_attention`."""

import difflib
import re
from pathlib import Path

from sightline.errors import ConfigError

_FOLDER = Path(__file__).parent


def shipped_recipes() -> dict[str, Path]:
    """The file of each shipped recipe, by its name.

    >>> [name for name in shipped_recipes() if name.endswith("/fusion")]
    ['flickr8k/fusion', 'scenes/fusion']
    """
    paths = sorted(_FOLDER.rglob("*.yaml"))
    return {path.relative_to(_FOLDER).with_suffix("").as_posix(): path for path in paths}


def find_recipe(name: Path | str) -> Path:
    """A recipe's file: one of the user's, or a shipped one by its name.

    A file that exists comes first, so that a copy beside you is the one that is read.

    >>> find_recipe("scenes/soft_attention").name
    'soft_attention.yaml'
    """
    path = Path(name)
    if path.is_file() or path.suffix in (".yaml", ".yml"):
        return path
    shipped = shipped_recipes()
    if path.as_posix() in shipped:
        return shipped[path.as_posix()]
    near = difflib.get_close_matches(path.as_posix(), shipped, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "`sightline recipes` lists them"
    raise ConfigError(f"{name}: neither a file nor the name of a recipe; {hint}")


def summary(path: Path) -> str:
    """What a recipe says of itself: the first sentence of the comment that it begins with.

    >>> summary(find_recipe("flickr8k/grid_td"))
    'Grid-TD (paper 4) on Flickr8k, over frozen EfficientNet-Lite2 regions.'
    """
    comment = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
    text = " ".join(line.lstrip("# ") for line in (comment[0] if comment else "").splitlines())
    sentence = re.match(r".*?[.?](?=\s|$)", text)
    return sentence[0] if sentence else text
