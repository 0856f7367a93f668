"""The encoder's own promises: regions where they belong, one result whatever the batch, a spec."""

import json

import pytest
import torch
from PIL import Image, ImageDraw

from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.resnet import ResNet
from sightline.errors import SightlineError, WeightsError


def prepared(encoder, pictures):
    """A batch of pixels and windows."""
    ready = [encoder.preprocessing.prepare(picture) for picture in pictures]
    pixels = torch.stack([torch.from_numpy(pixels) for pixels, _ in ready])
    return pixels, torch.tensor([window for _, window in ready])


def photographs(folder, *names):
    return [Image.open(folder / f"{name}.jpg").convert("RGB") for name in names]


@pytest.fixture(scope="module")
def torchvision_file(tmp_path_factory):
    """A ResNet-50 as a user may have it: half precision, torchvision's keys, random weights."""
    torch.manual_seed(3)
    path = tmp_path_factory.mktemp("weights") / "resnet50.pth"
    torch.save({key: value.half() for key, value in ResNet(50).state_dict().items()}, path)
    return path


def test_regions_have_vectors_masks_and_boxes(lite0, examples):
    pixels, windows = prepared(lite0, photographs(examples, "cat", "coffee"))
    with torch.inference_mode():
        regions = lite0(pixels, windows)
    assert regions.vectors.shape == (2, 49, 1280)
    assert regions.vectors.dtype == torch.float32
    assert regions.mask.shape == (2, 49)
    assert regions.mask.all()
    assert regions.boxes[0, 0].tolist() == pytest.approx([0, 0, 1 / 7, 1 / 7])
    assert regions.boxes[1, 48].tolist() == pytest.approx([6 / 7, 6 / 7, 1, 1])


def test_vectors_are_in_the_order_of_the_boxes(lite0, examples):
    pixels, windows = prepared(lite0, photographs(examples, "cat"))
    with torch.inference_mode():
        grid = lite0.features(lite0.normalise(pixels))
        regions = lite0(pixels, windows)
    assert torch.equal(regions.vectors[0, 2 * 7 + 5], grid[0, :, 2, 5])
    assert regions.boxes[0, 2 * 7 + 5].tolist() == pytest.approx([5 / 7, 2 / 7, 6 / 7, 3 / 7])


@pytest.mark.parametrize("fit", ["squash", "crop"])
@pytest.mark.parametrize("place", [(0.4, 0.3), (0.55, 0.75), (0.62, 0.5)])
def test_a_spot_changes_most_the_region_that_contains_it(fit, place):
    encoder = create_encoder("efficientnet_lite0", stage="stage4", fit=fit)
    plain = Image.new("RGB", (640, 400), (90, 90, 90))
    spotted = plain.copy()
    x, y = place[0] * 640, place[1] * 400
    ImageDraw.Draw(spotted).ellipse((x - 8, y - 8, x + 8, y + 8), fill="white")
    pixels, windows = prepared(encoder, [plain, spotted])
    with torch.inference_mode():
        regions = encoder(pixels, windows)
    change = (regions.vectors[1] - regions.vectors[0]).norm(dim=1)
    x0, y0, x1, y1 = regions.boxes[1, change.argmax()].tolist()
    # Within half a cell: a spot near an edge may move its neighbour more.
    slack_x, slack_y = (x1 - x0) / 2, (y1 - y0) / 2
    assert x0 - slack_x <= place[0] <= x1 + slack_x
    assert y0 - slack_y <= place[1] <= y1 + slack_y


def test_a_batch_equals_its_pictures_one_by_one(lite0, examples):
    pixels, windows = prepared(lite0, photographs(examples, "cat", "coffee", "rocket"))
    with torch.inference_mode():
        together = lite0(pixels, windows).vectors
        alone = torch.cat([lite0(pixels[i : i + 1], windows[i : i + 1]).vectors for i in range(3)])
    assert (together - alone).abs().max() < 1e-4


def test_inference_mode_gives_the_same_as_plain_mode(lite0, examples):
    pixels, windows = prepared(lite0, photographs(examples, "cat"))
    with torch.inference_mode():
        fast = lite0(pixels, windows).vectors.clone()
    plain = lite0(pixels, windows).vectors
    assert (plain - fast).norm() / plain.norm() < 1e-5


def test_it_is_frozen_but_lets_gradients_through_to_the_picture(lite0, examples):
    assert not lite0.training
    assert not any(parameter.requires_grad for parameter in lite0.parameters())
    pixels, _ = prepared(lite0, photographs(examples, "cat"))
    x = lite0.normalise(pixels).requires_grad_()
    lite0.features(x).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0


def test_normalise_follows_the_convention(lite0):
    pixels = torch.tensor([[[[255, 127, 0]]]], dtype=torch.uint8)
    assert lite0.normalise(pixels).flatten().tolist() == [1.0, 0.0, -127 / 128]


@pytest.mark.parametrize(
    "asked",
    [
        {"name": "efficientnet_lite0"},
        {"name": "efficientnet_lite1", "stage": "stage4", "size": 192, "fit": "crop"},
    ],
)
def test_a_spec_makes_the_same_encoder_again(asked, examples):
    encoder = create_encoder(**asked)
    again = Encoder.from_spec(json.loads(json.dumps(encoder.spec)))
    assert again.spec == encoder.spec
    assert again.fingerprint == encoder.fingerprint
    assert again.preprocessing == encoder.preprocessing
    assert (again.dim, again.grid) == (encoder.dim, encoder.grid)
    pixels, windows = prepared(encoder, photographs(examples, "cat"))
    with torch.inference_mode():
        assert torch.equal(encoder(pixels, windows).vectors, again(pixels, windows).vectors)


def test_fingerprints_tell_apart_whatever_changes_the_regions(torchvision_file):
    variants = [
        create_encoder("efficientnet_lite0"),
        create_encoder("efficientnet_lite0", stage="stage5"),
        create_encoder("efficientnet_lite0", size=192),
        create_encoder("efficientnet_lite0", fit="crop"),
        create_encoder("efficientnet_lite1", size=224),
        create_encoder("resnet50", weights=torchvision_file),
    ]
    assert len({encoder.fingerprint for encoder in variants}) == len(variants)
    assert create_encoder("efficientnet_lite0", fold=False).fingerprint == variants[0].fingerprint


def test_other_input_sizes(lite0):
    encoder = create_encoder("efficientnet_lite0", size=288)
    pixels, windows = prepared(encoder, [Image.new("RGB", (50, 50))])
    with torch.inference_mode():
        assert encoder(pixels, windows).vectors.shape == (1, 81, 1280)
    assert encoder.grid == (9, 9)


def test_a_torchvision_file_of_the_user(torchvision_file):
    encoder = create_encoder("resnet50", stage="stage4", weights=torchvision_file)
    assert encoder.preprocessing.channels == "RGB"
    assert encoder.preprocessing.mean == pytest.approx((123.675, 116.28, 103.53))
    assert encoder.network.layer2[0].conv2.stride == (2, 2)
    pixels, windows = prepared(encoder, [Image.new("RGB", (50, 50))])
    with torch.inference_mode():
        vectors = encoder(pixels, windows).vectors
    assert vectors.shape == (1, 196, 1024)
    assert vectors.dtype == torch.float32
    again = Encoder.from_spec(json.loads(json.dumps(encoder.spec)))
    assert again.fingerprint == encoder.fingerprint


def test_a_spec_holds_wherever_it_is_read(torchvision_file, monkeypatch, tmp_path):
    monkeypatch.chdir(torchvision_file.parent)
    spec = create_encoder("resnet50", weights=torchvision_file.name).spec
    monkeypatch.chdir(tmp_path)
    assert Encoder.from_spec(spec).spec == spec


def test_a_spec_insists_on_the_content_of_its_weights(torchvision_file, tmp_path):
    spec = create_encoder("resnet50", weights=torchvision_file).spec
    with pytest.raises(WeightsError, match="different content than expected"):
        create_encoder(**{**spec, "sha256": "0" * 64})


def test_weights_of_another_network_are_refused(torchvision_file):
    with pytest.raises(WeightsError, match="does not contain vgg16") as caught:
        create_encoder("vgg16", weights=torchvision_file)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": "alexnet"}, "no encoder is called 'alexnet'"),
        ({"name": "efficientnet_lite0", "stage": "stage9"}, "has no 'stage9'.*head"),
        ({"name": "efficientnet_lite0", "size": 16}, "too small"),
        ({"name": "efficientnet_lite0", "fit": "stretch"}, "'stretch': use squash or crop"),
        (
            {"name": "resnet101"},
            r"no package provides the weights of resnet101: .*encoder\.weights=FILE",
        ),
        ({"name": "resnet101", "weights": "nowhere.pth"}, "nowhere.pth is not a file"),
    ],
)
def test_what_cannot_be_made_is_explained(arguments, says):
    with pytest.raises(SightlineError, match=says):
        create_encoder(**arguments)
