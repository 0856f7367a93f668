"""The wheel, installed outside the repository: every command of the README's table works there."""

import json
import os
import re
import shlex
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
pytestmark = pytest.mark.network

# What the capitals of the README stand for, and what makes a command small enough for a test.
STANDS_FOR = {
    "FOLDER": "scenes",
    "PHOTOS": "photos",
    "RUN": "runs/flickr8k-soft_attention",
    "RUN…": "runs/flickr8k-soft_attention",
    "MODULE": "integrated",
}
SMALLER = {
    "train": "epochs=12 then=[] encoder.name=efficientnet_lite0 encoder.size=64 dev.beam=1 "
    "data.min_count=1 optimizer.learning_rate=3e-3 schedule.warmup=5 batch.size=8",
    "experiment": "--set methods=[attention]",
    "encode": "--encoder efficientnet_lite0 --size 64",
}


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
    (folder / "photos").mkdir()
    for name in ("photo.jpg", "photos/dog.jpg"):
        shutil.copyfile(ROOT / "examples" / "dog.jpg", folder / name)
    page = (ROOT / "docs" / "how-to" / "add-a-method.md").read_text("utf-8")
    code = re.search(r"Save this as `integrated.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    (folder / "integrated.py").write_text(code[1], encoding="utf-8")
    run(
        "sightline data scenes scenes --train 24 --dev 3 --test 4 --size 64 --difficulty easy",
        folder,
    )
    captions = [{"image_id": 1, "caption": "a dog runs"}]
    (folder / "results.json").write_text(json.dumps(captions))
    reference = {"images": [{"id": 1, "file_name": "1.jpg"}]}
    reference["annotations"] = [{"image_id": 1, "caption": "a dog is running"}]
    (folder / "captions_val2014.json").write_text(json.dumps(reference))
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
    program, *arguments = shlex.split(command)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SIGHTLINE"))}
    environment |= {"SIGHTLINE_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(folder / "environment" / "bin" / program), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def table_of_commands() -> list[str]:
    readme = (ROOT / "README.md").read_text("utf-8")
    return re.findall(r"^\|.*?\| `(sightline .*?)` \|", readme, re.MULTILINE)


def small(command: str) -> str:
    name = command.split()[1]
    # Scenes have boxes of their own.
    command = command.replace(" --data DATA", "").replace(" --boxes BOXES", "")
    command = command.replace("-o FOLDER", "-o table").replace("=FOLDER", "=scenes")
    text = " ".join(STANDS_FOR.get(word, word) for word in command.split())
    return f"{text} {SMALLER.get(name, '')}"


def test_the_commands_of_the_readme_work_there(elsewhere: Path) -> None:
    commands = table_of_commands()
    assert len(commands) >= 12
    for command in commands:
        done = run(small(command), elsewhere)
        assert done.returncode == 0, f"{small(command)}\n{done.stdout}{done.stderr}"
    for name in ("figures/photo.png", "captions.jsonl", "why.html", "results.md"):
        assert (elsewhere / name).stat().st_size > 100


def test_it_is_the_installed_package_that_runs(elsewhere: Path) -> None:
    where = run('python -c "import sightline; print(sightline.__file__)"', elsewhere).stdout
    assert where.startswith(str(elsewhere))
    assert run("sightline recipes scenes/grid_td", elsewhere).stdout.startswith("# Grid-TD")
