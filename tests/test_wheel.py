"""The wheel, installed outside the repository: every command of the README's table works there."""

import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from sightline.recipes import shipped_recipes

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))
import readme_commands  # noqa: E402

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of a copy of the tree."""
    folder = tmp_path_factory.mktemp("dist")
    tree = folder / "tree"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in files.stdout.decode().split("\0")[:-1]:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)]
    subprocess.run([*build, "--wheel", "--sdist"], check=True, capture_output=True)
    return folder


def test_the_wheel_has_recipes_types_and_the_captioner(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"sightline/py.typed", "sightline/bundled/model.safetensors"} <= names
    assert {f"sightline/recipes/{recipe}.yaml" for recipe in shipped_recipes()} <= names
    assert not [name for name in names if name.startswith(("tests", "recipes", "docs"))]
    assert wheel.stat().st_size < 60e6  # of which the captioner's weights are most


def test_the_source_distribution_has_all_that_its_tests_need(distributions: Path) -> None:
    (source,) = distributions.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    needed = {"Makefile", "tools/install.py", "constraints.txt", "mkdocs.yml", "CITATION.cff"}
    assert {name for name in needed if (ROOT / name).exists()} <= names
    assert {"tests/conftest.py", "examples/dog.jpg", "src/sightline/recipes/__init__.py"} <= names


@pytest.fixture(scope="module")
def elsewhere(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment that has the wheel, and what the README's commands name."""
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "environment")], check=True
    )
    (packages,) = folder.glob("environment/lib/*/site-packages")
    # The other packages are those of this environment: torch is not fetched again. A folder named
    # in a .pth file is searched last, and .pth files in it (an editable Sightline) are not read.
    (packages / "others.pth").write_text("\n".join(_package_folders()))
    (wheel,) = distributions.glob("*.whl")
    installer = [_python_with_pip(), "-m", "pip", "--python", str(folder / "environment")]
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([*installer, "install", *options], check=True)
    readme_commands.prepare(folder)
    for command in (readme_commands.SCENES, readme_commands.THEIRS):
        run(command, folder)
    return folder


def _package_folders() -> list[str]:
    folders = [path for path in sys.path if Path(path).name == "site-packages"]
    return folders or site.getsitepackages()


def _python_with_pip() -> str:
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
            return str(python)
    pytest.skip("there is no pip here")


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    programs = folder / "environment" / "bin"
    return readme_commands.run(command, folder, programs, timeout=600)


def test_the_commands_of_the_readme_work_there(elsewhere: Path) -> None:
    commands = readme_commands.table_of_commands()
    assert len(commands) >= 12
    for command in commands:
        done = run(readme_commands.small(command), elsewhere)
        assert done.returncode == 0, f"{readme_commands.small(command)}\n{done.stdout}{done.stderr}"
    made = ("captions.jsonl", "why.html", "theirs.html", "report/report.html", "search/best.yaml")
    for name in (*made, "study/study.json", "results.md", "experiments/figure3/table.md"):
        assert (elsewhere / name).stat().st_size > 100


def test_it_is_the_installed_package_that_runs(elsewhere: Path) -> None:
    where = run('python -c "import sightline; print(sightline.__file__)"', elsewhere).stdout
    assert where.startswith(str(elsewhere))
    assert run("sightline recipes scenes/grid_td", elsewhere).stdout.startswith("# Grid-TD")
