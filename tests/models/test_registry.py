import pytest

from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS, create_model, list_models


def test_models_are_built_by_name_with_their_options():
    model = create_model("soft_attention", 20, 6, {"state_width": 8})
    assert isinstance(model, CaptionModel)
    assert model.config.state_width == 8
    assert model.output.out_features == 20
    assert model.project.in_features == 6


def test_every_model_says_where_it_comes_from():
    assert list_models() == list(MODELS.builtin)
    for card in MODELS.builtin.values():
        assert card.paper[0] in "01234"
        assert card.summary


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("soft_atention", {}, "model: none is called 'soft_atention'; did you mean"),
        ("soft_attention", {"sate_width": 8}, "model soft_attention: no key is called"),
        ("soft_attention", {"state_width": "8"}, "model soft_attention.state_width: must be a"),
        ("hard_attention", {"look": "twice"}, "model hard_attention.look: must be one of"),
    ],
)
def test_an_error_says_what_is_wrong_in_one_line(name, options, message):
    with pytest.raises(ConfigError) as error:
        create_model(name, 20, 6, options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
