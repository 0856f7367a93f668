"""`sightline data scenes`."""

from click.testing import CliRunner

from sightline.cli.main import cli
from sightline.data.readers import read_dataset
from sightline.errors import DataError


def run(*arguments):
    return CliRunner().invoke(cli, ["data", "scenes", *map(str, arguments)])


def test_scenes_on_disk_are_a_sound_dataset(tmp_path):
    folder = tmp_path / "scenes"
    result = run(folder, "--train", 4, "--dev", 2, "--test", 1, "--size", 40, "--seed", 3)
    assert result.exit_code == 0
    assert result.stdout.startswith("7 scenes written")
    dataset = read_dataset(folder)
    assert [len(dataset.split(split)) for split in ("train", "dev", "test")] == [4, 2, 1]
    assert all(image.groundings for image in dataset)
    assert CliRunner().invoke(cli, ["data", "check", str(folder)]).exit_code == 0


def test_bias_needs_companions(tmp_path):
    result = run(tmp_path / "scenes", "--difficulty", "easy", "--bias", 0.9)
    assert isinstance(result.exception, DataError)
    assert not (tmp_path / "scenes").exists()
