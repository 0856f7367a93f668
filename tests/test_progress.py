"""Long work tells how far it is, and ends where whoever watches says so."""

from pathlib import Path

import pytest

from sightline.captioner import Captioner
from sightline.progress import advance, watched

LONG = {"lrp": {}, "guided_grad_cam": {}, "occlusion": {"batch": 4}}


@pytest.fixture(scope="module")
def captioner(checkpoint: Path) -> Captioner:
    return Captioner.load(checkpoint, device="cpu")


@pytest.fixture
def picture(examples: Path) -> Path:
    return examples / "cat.jpg"


class CancelledError(Exception):
    pass


@pytest.mark.parametrize("method", LONG)
def test_explanations_are_watched_and_cancelled(captioner, picture, method: str) -> None:
    encoded = captioner.encode(picture)
    said = captioner.caption(encoded)
    steps: list[tuple[int, int]] = []
    with watched(lambda done, total: steps.append((done, total))):
        captioner.explain(encoded, said, method=method, **LONG[method])
    assert len(steps) > 1
    assert all(0 <= done < total for done, total in steps)
    reached: list[int] = []

    def cancel(done: int, total: int) -> None:
        reached.append(done)
        if len(reached) == 2:
            raise CancelledError

    with pytest.raises(CancelledError), watched(cancel):
        captioner.explain(encoded, said, method=method, **LONG[method])
    assert len(reached) == 2


def test_a_search_is_watched(captioner, picture) -> None:
    steps: list[int] = []
    with watched(lambda done, total: steps.append(done)):
        captioner.caption(picture)
    assert steps == list(range(len(steps)))
    assert len(steps) > 1


def test_nobody_watches_afterwards() -> None:
    steps: list[int] = []
    with watched(lambda done, total: steps.append(done)):
        advance(1, 2)
    advance(2, 2)
    assert steps == [1]
