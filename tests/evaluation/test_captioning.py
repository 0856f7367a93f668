import pytest
import torch
from PIL import Image

from sightline.data.dataset import CaptionedImage
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.evaluation.captioning import caption_cached
from sightline.models.packed import PackedLinear, _can_pack
from sightline.regions import Regions
from sightline.text.vocabulary import Vocabulary
from tiny_models import REGION_DIM, VOCABULARY, create


class Cache:
    """Regions of three pictures, in memory."""

    def __init__(self):
        vectors = torch.randn(3, 5, REGION_DIM)
        self.all = Regions(vectors, torch.ones(3, 5, dtype=torch.bool), torch.zeros(3, 5, 4))

    def key(self, picture):
        return picture.width - 1

    def rows(self, keys):
        return keys

    def regions(self, rows):
        return self.all[rows]


def test_captions_are_those_of_the_weights_as_they_are_now():
    torch.manual_seed(0)
    model, cache = create("soft_attention", 0).float().train(), Cache()
    words = Vocabulary([f"w{n}" for n in range(VOCABULARY - 4)])
    pictures = [CaptionedImage("x", Image.new("RGB", (n, 1)), ("w1",), "dev") for n in (3, 1, 2)]
    said = []
    for _ in range(2):
        said.append(caption_cached(model, words, pictures, cache, BeamOptions(), batch_size=2))
        assert model.training
        model.eval()
        with torch.no_grad():
            found = beam_search(model, model.encode(cache.all[[2, 0, 1]]), BeamOptions())
            assert said[-1] == [words.decode(row) for row in found.tokens[:, 0].tolist()]
            for parameter in model.train().parameters():  # as a step of training would
                parameter.mul_(-3)
    assert said[0] != said[1]


@pytest.mark.skipif(not _can_pack([]), reason="this processor has no packed products")
def test_the_search_multiplies_with_packed_matrices(monkeypatch):
    used = []
    forward = PackedLinear.forward
    monkeypatch.setattr(
        PackedLinear, "forward", lambda layer, x: used.append(1) or forward(layer, x)
    )
    model = create("soft_attention", 0).float()
    words = Vocabulary([f"w{n}" for n in range(VOCABULARY - 4)])
    picture = CaptionedImage("x", Image.new("RGB", (1, 1)), ("w1",), "dev")
    caption_cached(model, words, [picture], Cache(), BeamOptions())
    assert used
