"""The device law: whatever is done with a captioner is done on its device, and comes out the same.

There is no accelerator here: `device_mode` pretends that there is one, and fails where tensors of
two devices meet. Training has its own file.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor

import sightline.captioner.loading
from device_mode import ACCELERATOR, DeviceError, DeviceMode, accelerator
from sightline.captioner import Captioner
from sightline.captions import Caption
from sightline.cli.main import cli
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.decoding.stepwise import SampleOptions, greedy, sample
from sightline.devices import choose_device
from sightline.encoders import convolutions
from sightline.errors import ConfigError
from sightline.evaluation.evaluate import evaluate
from sightline.evaluation.support import fit_support
from sightline.explain.methods import explain_captions
from sightline.regions import Regions
from sightline.support.classifier import score_words
from sightline.text.vocabulary import Vocabulary
from tiny_models import CASES, FOR_EVERY_CAPTIONER, REGION_DIM, VOCABULARY, create


@pytest.fixture
def mode() -> Iterator[DeviceMode]:
    with accelerator() as mode:
        yield mode


@pytest.fixture
def fastest(mode: DeviceMode, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine, `auto` is the accelerator."""
    devices = {"auto": ACCELERATOR, "cpu": torch.device("cpu")}
    monkeypatch.setattr(sightline.captioner.loading, "choose_device", devices.get)
    # Modes are of a thread, so pictures are encoded in this one.
    monkeypatch.setattr("sightline.encoders.encode.in_parallel", lambda *given: map(*given[:2]))


class TestTheMode:
    @pytest.mark.parametrize(
        ("mistake", "says"),
        [
            (lambda there: there + torch.ones(2), "add: takes tensors of two devices"),
            (lambda there: torch.nn.Linear(2, 1)(there), r"addmm: .* one \(1,\) of the CPU"),
            (lambda there: there + torch.from_numpy(np.ones(2)), "add: "),
            (lambda there: torch.stack([there[0], torch.zeros(())]), "stack: "),
            (lambda there: torch.zeros(()).add_(there[0]), "add_: "),
            (lambda there: there.cpu() * there, "mul: "),
            (lambda there: there[torch.tensor([1])], "index: "),
            (lambda there: there.numpy(), "numpy: "),
            (lambda there: np.asarray(there), "numpy: "),
            (lambda there: there.multinomial(1, generator=torch.Generator()), "multinomial: "),
            (lambda there: _Doubled.apply(there.requires_grad_()).sum().backward(), "mul: "),
        ],
    )
    def test_a_planted_mistake_is_caught_with_its_operation_and_line(
        self, mode: DeviceMode, mistake: Callable[[Tensor], object], says: str
    ) -> None:
        there = torch.ones(2, device=ACCELERATOR)
        with pytest.raises(DeviceError, match=rf"(?s){says}.*\(test_devices\.py:\d+: "):
            mistake(there)

    def test_what_an_accelerator_does_is_allowed(self, mode: DeviceMode) -> None:
        layer = torch.nn.Linear(2, 1).to(ACCELERATOR)
        there = torch.tensor([[1.0, 2.0]], device=layer.weight.device)
        results = [layer(there), there * torch.tensor(2.0), torch.zeros_like(there), there[[0]]]
        results += [there.new_ones(3), torch.ones(2).to(there), torch.rand(2, device=ACCELERATOR)]
        results += [there.multinomial(1, generator=torch.Generator(ACCELERATOR))]
        layer(there).sum().backward()
        assert layer.weight.grad is not None
        assert {one.device for one in [*results, layer.weight.grad]} == {ACCELERATOR}
        there[:, 0] = torch.tensor([3.0])
        there.copy_(torch.ones(1, 2))
        assert there.cpu().numpy().tolist() == [[1.0, 1.0]]
        assert there.cpu().device == torch.zeros(2).device == torch.device("cpu")

    def test_it_leaves_nothing_behind(self) -> None:
        with accelerator():
            there = torch.ones(2, device=ACCELERATOR)
        assert (there + torch.ones(2)).device == there.device == torch.device("cpu")


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.full((2,), 2.0)  # made on the CPU, whatever the gradient's device


def test_a_device_is_chosen_by_name() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(ConfigError, match="no device is called 'gpu'"):
        choose_device("gpu")
    with pytest.raises(ConfigError, match="this machine has no device 'meta'"):
        choose_device("meta")


@pytest.mark.parametrize(
    "command",
    [
        "caption {picture} --model {checkpoint}",
        "explain {picture} --model {checkpoint} -o page.html",
        "evaluate {checkpoint} --data {scenes}",
        "experiment explanations {checkpoint} --data {scenes} -o {folder}",
        "fit-support {checkpoint} --data {scenes}",
        "encode {scenes}",
    ],
)
def test_a_command_takes_the_device_that_it_is_given_or_says_why_not(
    command: str, checkpoint: Path, examples: Path, tmp_path: Path
) -> None:
    scenes = write_scenes(make_scene_dataset(1, 1, 1, size=64), tmp_path)
    names = {"picture": examples / "cat.jpg", "checkpoint": checkpoint, "scenes": scenes}
    names["folder"] = tmp_path / "folder"
    arguments = [part.format(**names) for part in command.split()]
    result = CliRunner().invoke(cli, [*arguments, "--device", "cuda:99"])
    assert isinstance(result.exception, ConfigError), result.output
    assert "this machine has no device 'cuda:99'" in str(result.exception)


def numbers(caption: Caption) -> list[float]:
    """What there is to a caption's words."""
    return [
        value
        for word in caption.words
        for value in (
            word.log_probability,
            word.support.score if word.support else 0.0,
            *word.attention,
        )
    ]


@pytest.mark.usefixtures("fastest")
def test_captions_are_those_of_the_cpu(fitted_checkpoint: Path, examples: Path) -> None:
    pictures = [examples / "cat.jpg", examples / "coffee.jpg"]

    def everything(captioner: Captioner) -> list[object]:
        picture = captioner.encode(pictures[0])
        assert picture.regions.vectors.device == captioner.device
        groups = {"n_best": 3, "groups": 2, "no_repeat_ngram": 2}
        captions = [
            *captioner.caption(pictures),
            *chain(*captioner.captions(pictures, check=True, **groups)),
            captioner.caption(picture, require=["table"], avoid=["cat"], max_length=5),
            captioner.read(pictures[1], "a red cup"),
            captioner.check(picture, captioner.read(picture, "a cat on the table")),
        ]
        other = captioner.counterfactual(picture, captions[-1], "red")
        return [*map(numbers, captions), list(other.everywhere)]

    there, here = Captioner.load(fitted_checkpoint), Captioner.load(fitted_checkpoint, device="cpu")
    assert (there.device, here.device) == (ACCELERATOR, torch.device("cpu"))
    for result, expected in zip(everything(there), everything(here), strict=True):
        assert result == pytest.approx(expected, rel=1e-3)


@pytest.mark.usefixtures("fastest")
@pytest.mark.parametrize("method", FOR_EVERY_CAPTIONER)
def test_explanations_are_those_of_the_cpu(
    checkpoint: Path, examples: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Part by part, as on an accelerator: LRP of an untrained captioner makes much of last bits.
    monkeypatch.setattr(convolutions, "_can_fuse", lambda x: False)
    there, here = (
        Captioner.load(checkpoint, device=device).explain(
            [examples / "cat.jpg", examples / "coffee.jpg"],
            ["a red cup", "the cat"],
            words=[0, (1, "table")],
            method=method,
        )
        for device in ("auto", "cpu")
    )
    for result, expected in zip(chain(*there), chain(*here), strict=True):
        for part in ("regions", "words", "heatmap"):
            values, others = getattr(result, part), getattr(expected, part)
            np.testing.assert_allclose(values, others, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("fastest")
def test_reports_and_ensembles(fitted_checkpoint: Path, examples: Path) -> None:
    report = Captioner.load(fitted_checkpoint).report(
        examples / "cat.jpg", caption="a red cup", why_not=[("cat", None)]
    )
    assert any(word.support for word in report.caption.words)
    both = Captioner.load(fitted_checkpoint, fitted_checkpoint)
    assert both.caption(examples / "cat.jpg").words


@pytest.mark.usefixtures("fastest")
def test_evaluation(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    captioner = Captioner.load(shutil.copytree(checkpoint, tmp_path / "checkpoint"))
    scenes = make_scene_dataset(1, 16, 1, size=64).split("dev")
    said = ("the red cup", "a cat sits on the table", "coffee")
    images = [replace(scene, captions=(said[n % 3],)) for n, scene in enumerate(scenes)]
    fit_support(captioner, images)
    assert captioner.can_check
    evaluation = evaluate(captioner, images, ["bleu"])
    # What was cached is what the CPU makes of the pictures.
    assert evaluation.captions == [
        caption.text
        for caption in Captioner.load(checkpoint, device="cpu").caption(
            [image.picture for image in images]
        )
    ]


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_captioner_says_and_explains_on_its_device(name: str, variant: int) -> None:
    model = create(name, variant).to(ACCELERATOR)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    vectors, corners = torch.rand(2, 5, REGION_DIM).double(), torch.rand(2, 5, 2).double() / 2
    regions = Regions(vectors, mask, torch.cat([corners, corners + 0.5], -1)).to(ACCELERATOR)
    memory = model.encode(regions)
    limits = Constraints(max_length=3, no_repeat_ngram=2, avoid=(7,))
    several = BeamOptions(beam=2, n_best=3, groups=2, constraints=limits)
    required = BeamOptions(beam=2, constraints=Constraints(max_length=3, require=(5,)))
    draws = SampleOptions(3, top_k=4, top_p=0.9, constraints=limits)
    for hypotheses in (
        beam_search(model, memory, several),
        beam_search(model, memory, required),
        greedy(model, memory, limits),
        sample(model, memory, draws),
    ):
        assert hypotheses.tokens.device == hypotheses.scores.device == ACCELERATOR
    vocabulary = Vocabulary([f"word{n}" for n in range(VOCABULARY - 4)])
    captions = [[5, 6, 8], [9]]
    assert len(score_words(model, vocabulary, regions, captions, regions).scores) == 4
    for method in FOR_EVERY_CAPTIONER:
        explanations = explain_captions(model, vocabulary, regions, captions, method=method)
        assert [len(of_picture) for of_picture in explanations] == [3, 1]
