"""VGG in torchvision's layout, and VGG-16 with its trained weights."""

import pytest
import torch

from sightline.encoders.vgg import VGG
from sightline.errors import WeightsError


def test_keys_and_shapes_are_torchvisions():
    with torch.device("meta"):
        state = VGG(16).state_dict()
    widths = [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    places = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]
    expected = {}
    for inputs, outputs, place in zip([3, *widths], widths, places, strict=False):
        expected[f"features.{place}.weight"] = (outputs, inputs, 3, 3)
        expected[f"features.{place}.bias"] = (outputs,)
    for place, shape in {0: (4096, 25088), 3: (4096, 4096), 6: (1000, 4096)}.items():
        expected[f"classifier.{place}.weight"] = shape
        expected[f"classifier.{place}.bias"] = shape[:1]
    assert {key: tuple(value.shape) for key, value in state.items()} == expected


def test_vgg11_and_vgg19_keys():
    with torch.device("meta"):
        eleven, nineteen = VGG(11, head=False).state_dict(), VGG(19, head=False).state_dict()
    places = {int(key.split(".")[1]) for key in eleven}
    assert places == {0, 3, 6, 8, 11, 13, 16, 18}
    assert {int(key.split(".")[1]) for key in nineteen} == {
        *(0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34)
    }


def test_stage4_is_the_last_rectified_convolution_and_stage5_its_pooling():
    network = VGG(11, head=False)
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        conv5, pool5 = network.stage(x, "stage4"), network.stage(x, "stage5")
    assert conv5.min() >= 0
    assert torch.equal(torch.nn.functional.max_pool2d(conv5, 2), pool5)
    assert torch.equal(network.features(x), pool5)


def test_without_a_classifier_it_says_so():
    with pytest.raises(WeightsError, match="no classifier"):
        VGG(11, head=False).classify(torch.zeros(1, 3, 32, 32))


@pytest.mark.network
def test_fetched_vgg16_is_the_trained_one(fetched, examples):
    vgg = fetched("vgg16")
    # Corners of the first and the last kernel of the ImageNet weights that torchvision publishes.
    first, last = vgg.network.features[0].weight[0, 0], vgg.network.features[28].weight[0, 0]
    published_first = [
        [-0.5537, 0.1427, 0.5290],
        [-0.5831, 0.3566, 0.7657],
        [-0.6902, -0.0480, 0.4841],
    ]
    published_last = [[0.0278, 0.0153, 0.0219], [0.0252, 0.0232, 0.0200], [0.0302, 0.0087, 0.0177]]
    assert torch.allclose(first, torch.tensor(published_first), atol=5.1e-5)
    assert torch.allclose(last, torch.tensor(published_last), atol=5.1e-5)

    # Trained features know a picture again when it is mirrored and cut, among three others.
    names = ["cat", "coffee", "palace", "flower"]
    pictures = [vgg.preprocessing.load(examples / f"{name}.jpg")[0] for name in names]
    whole = torch.stack([torch.from_numpy(pixels) for pixels in pictures])
    cut = torch.nn.functional.interpolate(
        whole.flip(2)[:, 20:204, 20:204].permute(0, 3, 1, 2).float(), 224, mode="bilinear"
    )
    cut = cut.permute(0, 2, 3, 1).byte()
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(len(names), 4)
    with torch.inference_mode():
        left, right = (
            torch.nn.functional.normalize(vgg(pixels, windows).vectors.mean(1), dim=1)
            for pixels in (whole, cut)
        )
    similarity = left @ right.T
    assert similarity.argmax(1).tolist() == list(range(len(names)))
    assert similarity.diagonal().min() > 0.85
    others = similarity[~torch.eye(len(names), dtype=torch.bool)]
    assert others.max() < 0.6
