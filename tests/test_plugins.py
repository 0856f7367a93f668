"""Plug-ins: found by entry points and by name, refused in one line, never in the place of ours."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sightline import plugins
from sightline.checkpoint import load_config, load_encoder, load_model, save_checkpoint
from sightline.encoders.encoder import create_encoder
from sightline.errors import CheckpointError, ConfigError
from sightline.models.registry import MODELS, create_model, list_models
from sightline.text.vocabulary import Vocabulary

CAPTIONER = """
from sightline.models.registry import ModelEntry
from sightline.models.soft_attention import SoftAttention, SoftAttentionConfig

ENTRY = ModelEntry(SoftAttention, SoftAttentionConfig, "a copy")
MODELS = {"copy": ENTRY}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes a module into the current folder; it is forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "_used", [])
    before = set(sys.modules)

    def write(name: str, text: str, use: bool = True) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        if use:
            monkeypatch.setenv("SIGHTLINE_PLUGINS", name)

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("plug_"):
            del sys.modules[name]
    plugins._entry_points.cache_clear()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Pretends that an installed package has entry points."""

    def install(**values: str) -> None:
        points = [EntryPoint(name, value, "sightline.models") for name, value in values.items()]
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda group: points if group == "sightline.models" else [],
        )
        plugins._entry_points.cache_clear()

    return install


def test_a_module_in_the_current_folder_is_named_by_a_variable(write) -> None:
    with pytest.raises(ConfigError, match="named by SIGHTLINE_PLUGINS"):
        create_model("copy", 9, 5)
    write("plug_copy", CAPTIONER)
    assert list_models() == [*MODELS.builtin, "copy"]
    assert create_model("copy", 9, 5, {"state_width": 8}).config.state_width == 8
    assert MODELS.origin("copy") == "plug_copy"
    assert MODELS.origin("soft_attention") is None


def test_an_entry_point_is_imported_when_it_is_used(write, install) -> None:
    write("plug_installed", CAPTIONER, use=False)
    sys.path.append(".")
    install(copy="plug_installed:ENTRY", broken="plug_absent:ENTRY")
    assert list_models()[-2:] == ["copy", "broken"]
    assert "plug_installed" not in sys.modules
    assert create_model("copy", 9, 5).config.state_width == 512
    with pytest.raises(ConfigError, match=r"plug-in plug_absent:ENTRY: cannot be imported"):
        create_model("broken", 9, 5)
    create_model("soft_attention", 9, 5)  # which has nothing to do with it


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nothing_of_this_name", "cannot be imported (ModuleNotFoundError: No module named"),
        ("1 / 0", "cannot be imported (ZeroDivisionError: division by zero, line 1 of plug_bad.py"),
        ("def", "cannot be imported (SyntaxError"),
        ("raise SystemExit(3)", "cannot be imported (SystemExit: 3"),
        ("MODELS = [1]", "MODELS must be a dictionary"),
        ("MODELS = {'bad': 1}", "'bad' must be a ModelEntry, not int"),
        (CAPTIONER + "MODELS = {'grid_td': ENTRY}", "'grid_td' is the name of one of Sightline's"),
    ],
)
def test_a_broken_plugin_is_one_clear_line(write, text: str, says: str) -> None:
    write("plug_bad", text)
    with pytest.raises(ConfigError) as caught:
        create_model("bad", 9, 5)
    assert str(caught.value).startswith("plug-in plug_bad: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ours_cannot_be_replaced(write, install) -> None:
    write("plug_thief", CAPTIONER + "MODELS = {'soft_attention': ENTRY}")
    with pytest.raises(ConfigError, match="one of Sightline's own models; give it another"):
        create_model("soft_attention", 9, 5)
    write("plug_copy", CAPTIONER)
    install(soft_attention="plug_copy:ENTRY")
    assert create_model("soft_attention", 9, 5)  # ours, whatever is installed
    with pytest.raises(ConfigError, match="one of Sightline's own models; give it another"):
        list_models()


def test_two_plugins_with_one_name_are_told_apart(write, install) -> None:
    write("plug_copy", CAPTIONER)
    install(copy="plug_other:ENTRY")
    with pytest.raises(ConfigError, match="plug-ins plug_copy and plug_other: both have a 'copy'"):
        create_model("copy", 9, 5)


def test_a_checkpoint_says_which_plugin_it_needs_and_imports_nothing(
    write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("plug_copy", CAPTIONER)
    encoder, vocabulary = create_encoder("efficientnet_lite0", size=64), Vocabulary(["a"])
    config = {
        "model": {"name": "copy", "state_width": 8},
        "region_dim": encoder.dim,
        "encoder": encoder.spec,
        "vocabulary": vocabulary.to_json(),
    }
    model = create_model("copy", len(vocabulary), encoder.dim, {"state_width": 8})
    save_checkpoint(tmp_path / "saved", model, config, "")
    config = load_config(tmp_path / "saved")
    assert config["plugins"] == {"copy": "plug_copy"}
    load_model(tmp_path / "saved", config)

    monkeypatch.delenv("SIGHTLINE_PLUGINS")
    del sys.modules["plug_copy"]
    with pytest.raises(
        CheckpointError, match=r"'copy' comes from the plug-in plug_copy.*SIGHTLINE_PLUGINS=plug"
    ):
        load_model(tmp_path / "saved", config)
    assert "plug_copy" not in sys.modules
    config["encoder"]["name"] = "copy"
    with pytest.raises(CheckpointError, match="comes from the plug-in"):
        load_encoder(tmp_path / "saved", config)
    config["plugins"] = {"copy": "evil; rm -rf"}  # nothing that could be pasted into a shell
    with pytest.raises(ConfigError, match="none is called 'copy'"):
        load_model(tmp_path / "saved", config)
