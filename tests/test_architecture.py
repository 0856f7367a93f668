"""The import law: rooms import in one direction, as docs/architecture.md shows it."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "architecture.md"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in (SOURCE / "sightline").rglob("*.py")}


def imports_of(source: str, modules: set[str]) -> set[str]:
    """The modules of ours that a source imports, at its top or inside a function.

    Of `from package import name` it is the module of that name, if there is one.
    """
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                imported.add(inner if inner in modules else str(node.module))
    return imported & modules


GRAPH = {
    name: imports_of(path.read_text("utf-8"), set(MODULES))
    for name, path in MODULES.items()
    if name not in ("sightline", "sightline.__main__")  # the doors, which lead everywhere
}


def room_of(module: str) -> str:
    return module.split(".")[1]


def allowed_imports() -> dict[str, set[str]]:
    """The table of docs/architecture.md: each room, and those it imports."""
    section = PAGE.read_text("utf-8").split("## Who imports whom")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w/.]+)` \| [^|]+ \| ([^|]*) \|$", section, re.M)
    return {
        room.rstrip("/").removesuffix(".py"): set(re.findall(r"`(\w+)`", cell))
        for room, cell in rows
    }


def test_a_room_imports_just_what_the_table_says():
    rooms: dict[str, set[str]] = {}
    for module, imported in GRAPH.items():
        others = {room_of(name) for name in imported} - {room_of(module)}
        rooms.setdefault(room_of(module), set()).update(others)
    assert rooms == allowed_imports()


def test_rooms_import_to_the_left_alone():
    """The table's order is the order of the house, and no room imports one below it."""
    table = allowed_imports()
    order = list(table)
    for room, imported in table.items():
        later = [other for other in imported if order.index(other) >= order.index(room)]
        assert not later, f"{room} imports {later}"


def test_no_modules_import_each_other():
    TopologicalSorter(GRAPH).prepare()  # raises CycleError, which names the cycle


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a.b import name", {"a.b"}),
        ("def f():\n    from a.b import name", {"a.b"}),
        ("if TYPE_CHECKING:\n    from a import b", {"a.b"}),
        ("import os", set()),
    ],
)
def test_every_kind_of_import_is_seen(source, imported):
    assert imports_of(source, {"a", "a.b"}) == imported


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("sightline.text.vocabulary", ("sightline.metrics", "torch", "numpy")),
        ("sightline.data.readers", ("sightline.metrics", "torch")),
        ("sightline.metrics", ("torch", "sightline.data")),
        ("sightline", ("torch", "numpy")),
        ("sightline.cli.main", ("torch", "numpy")),
    ],
)
def test_importing_little_loads_little(module, absent):
    code = f"import sys, {module}; print(*(set({absent!r}) & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []
