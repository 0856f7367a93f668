"""Each kind of finding, made for real in a temporary folder, and what `clean` does about it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.data import validator as kinds
from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.data.validator import check, clean

WHOLE = ((0.0, 0.0, 1.0, 1.0),)


def picture(path: Path, seed: int = 0) -> Path:
    """A small noisy picture, another for every seed."""
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 32, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def entry(tmp_path):
    """Makes entries with a picture of their own unless one is given."""
    made = 0

    def make(name, captions=("a dog runs",), split="train", *, path=None, **more):
        nonlocal made
        made += 1
        path = path or picture(tmp_path / f"{made}.png", made)
        return CaptionedImage(name, path, tuple(captions), split, **more)

    return make


def findings_of(*images, orphans=()):
    findings = check(CaptionDataset(images, orphans))
    return {(finding.kind, finding.name) for finding in findings}


def cleaned(*images, orphans=()):
    dataset = CaptionDataset(images, orphans)
    return clean(dataset, check(dataset))


def test_a_sound_dataset_has_no_findings_and_stays_as_it_is(entry):
    images = (entry("a"), entry("b", split="dev"), entry("c", split="test"))
    assert findings_of(*images) == set()
    assert cleaned(*images).images == images


class TestPictures:
    def test_missing(self, entry, tmp_path):
        bad = entry("a", path=tmp_path / "nowhere.jpg")
        assert findings_of(bad, entry("b")) == {(kinds.MISSING, "a")}
        assert [image.name for image in cleaned(bad, entry("b"))] == ["b"]

    @pytest.mark.parametrize("content", [b"", b"this is a text\n", bytes(range(256))])
    def test_unreadable(self, entry, tmp_path, content):
        (tmp_path / "bad.jpg").write_bytes(content)
        bad = entry("a", path=tmp_path / "bad.jpg")
        assert findings_of(bad, entry("b")) == {(kinds.UNREADABLE, "a")}
        assert [image.name for image in cleaned(bad, entry("b"))] == ["b"]

    def test_a_folder_named_like_a_picture(self, entry, tmp_path):
        (tmp_path / "folder.jpg").mkdir()
        bad = entry("a", path=tmp_path / "folder.jpg")
        assert findings_of(bad) == {(kinds.UNREADABLE, "a")}

    @pytest.mark.parametrize("suffix", ["jpg", "png"])
    def test_truncated(self, entry, tmp_path, suffix):
        path = picture(tmp_path / f"cut.{suffix}")
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        bad = entry("a", path=path)
        assert findings_of(bad, entry("b")) == {(kinds.TRUNCATED, "a")}
        assert [image.name for image in cleaned(bad, entry("b"))] == ["b"]


class TestSamePicture:
    def test_under_two_names_in_one_split_is_only_mentioned(self, entry, tmp_path):
        one, two = picture(tmp_path / "one.png", 99), picture(tmp_path / "two.bmp", 99)
        images = entry("a", path=one), entry("b", path=two)
        assert findings_of(*images) == {(kinds.DUPLICATE, "b")}
        assert not kinds.DUPLICATE.is_error
        assert cleaned(*images).images == images

    def test_in_two_splits_is_kept_where_one_evaluates(self, entry, tmp_path):
        path = picture(tmp_path / "same.png", 99)
        images = (
            entry("a", path=path, split="train"),
            entry("b", path=path, split="test"),
            entry("c", path=path, split="test"),
            entry("d", path=path, split="dev"),
        )
        assert findings_of(*images) == {
            (kinds.LEAK, "a"),
            (kinds.DUPLICATE, "c"),
            (kinds.LEAK, "d"),
        }
        assert [image.name for image in cleaned(*images)] == ["b", "c"]

    def test_in_no_split_leaks_nothing(self, entry, tmp_path):
        path = picture(tmp_path / "same.png", 99)
        images = entry("a", path=path, split=None), entry("b", path=path, split="test")
        assert findings_of(*images) == {(kinds.DUPLICATE, "a"), (kinds.NO_SPLIT, "a")}
        assert cleaned(*images).images == images

    def test_pictures_in_memory_are_compared_by_size_too(self, entry):
        images = [
            CaptionedImage(name, Image.new("RGB", size), ("a dog",), "train")
            for name, size in {"wide": (4, 2), "high": (2, 4), "again": (4, 2)}.items()
        ]
        assert findings_of(*images) == {(kinds.DUPLICATE, "again")}


class TestListing:
    @pytest.mark.parametrize(
        ("splits", "kept"),
        [(("train", "test"), "test"), (("dev", "train"), "dev"), (("test", "dev"), "test")],
    )
    def test_two_splits(self, entry, tmp_path, splits, kept):
        path = picture(tmp_path / "same.png", 99)
        images = [entry("a", path=path, split=split) for split in splits]
        assert findings_of(*images) == {(kinds.TWO_SPLITS, "a")}
        assert [image.split for image in cleaned(*images)] == [kept]

    def test_listed_twice(self, entry, tmp_path):
        path = picture(tmp_path / "same.png", 99)
        images = [entry("a", (caption,), path=path) for caption in ("first", "second")]
        assert findings_of(*images) == {(kinds.LISTED_TWICE, "a")}
        assert [image.captions for image in cleaned(*images)] == [("first",)]

    def test_once_with_a_split_and_once_without(self, entry, tmp_path):
        path = picture(tmp_path / "same.png", 99)
        images = [entry("a", path=path, split=split) for split in (None, "train")]
        assert (kinds.LISTED_TWICE, "a") in findings_of(*images)
        assert (kinds.TWO_SPLITS, "a") not in findings_of(*images)
        assert [image.split for image in cleaned(*images)] == ["train"]

    def test_an_entry_without_captions_does_not_take_the_other_along(self, entry, tmp_path):
        path = picture(tmp_path / "same.png", 99)
        images = entry("a", (), path=path), entry("a", ("kept",), path=path)
        assert findings_of(*images) == {(kinds.LISTED_TWICE, "a"), (kinds.NO_CAPTION, "a")}
        assert [image.captions for image in cleaned(*images)] == [("kept",)]

    def test_captions_of_an_unlisted_picture(self, entry):
        orphans = (("77", "lost"), ("77", "lost too"))
        assert findings_of(entry("a"), orphans=orphans) == {(kinds.NO_PICTURE, "77")}
        assert cleaned(entry("a"), orphans=orphans).orphans == ()

    def test_no_split_is_mentioned_unless_the_picture_is_unusable(self, entry, tmp_path):
        missing = entry("b", split=None, path=tmp_path / "nowhere.jpg")
        without = entry("c", (), split=None)
        findings = findings_of(entry("a", split=None), missing, without)
        assert {name for kind, name in findings if kind is kinds.NO_SPLIT} == {"a"}
        assert not kinds.NO_SPLIT.is_error
        assert len(cleaned(entry("a", split=None))) == 1


class TestCaptions:
    def test_none_at_all(self, entry):
        assert findings_of(entry("a", ())) == {(kinds.NO_CAPTION, "a")}
        assert len(cleaned(entry("a", ()))) == 0

    @pytest.mark.parametrize(
        ("bad", "kind"),
        [
            ("", kinds.EMPTY),
            (" \t", kinds.EMPTY),
            ("...", kinds.EMPTY),  # punctuation is no token
            ("dog " * 101, kinds.TOO_LONG),
            ("a caf\ufffd", kinds.ENCODING),
            ("a\x00dog", kinds.ENCODING),
            ("a dog \ud83d", kinds.ENCODING),  # half of a pair, as JSON can hold
        ],
    )
    def test_a_bad_one_is_left_out(self, entry, bad, kind):
        image = entry("a", ("one", bad, "two"))
        assert findings_of(image) == {(kind, "a")}
        assert [image.captions for image in cleaned(image)] == [("one", "two")]

    def test_only_bad_ones(self, entry):
        image = entry("a", ("", "caf\ufffd"))
        expected = {(kinds.EMPTY, "a"), (kinds.ENCODING, "a"), (kinds.NO_CAPTION, "a")}
        assert findings_of(image) == expected
        assert len(cleaned(image)) == 0

    @pytest.mark.parametrize("fine", ["dog " * 100, "un café", "a dog\r\n", "犬が走る", "10 €"])
    def test_unusual_but_sound(self, entry, fine):
        assert findings_of(entry("a", (fine,))) == set()

    @pytest.mark.parametrize(
        ("broken", "meant"),
        [("a cafÃ©", "a café"), ("itâ€™s a dog", "it’s a dog"), ("Ã¼ber", "über")],
    )
    def test_utf8_read_as_windows_1252_is_repaired(self, entry, broken, meant):
        image = entry("a", (broken,))
        assert findings_of(image) == {(kinds.ENCODING, "a")}
        assert [image.captions for image in cleaned(image)] == [(meant,)]


class TestGroundings:
    def test_follow_their_caption_when_others_are_left_out(self, entry):
        groundings = (
            Grounding("lost", WHOLE, 0, (0, 1)),
            Grounding("dog", WHOLE, 1, (1, 2)),
            Grounding("hen", WHOLE, 3, (1, 2)),
            Grounding("untied", WHOLE),
        )
        image = entry("a", ("", "a dog", "...", "a hen"), groundings=groundings)
        assert cleaned(image).images[0].captions == ("a dog", "a hen")
        assert cleaned(image).images[0].groundings == (
            Grounding("lost", WHOLE),
            Grounding("dog", WHOLE, 0, (1, 2)),
            Grounding("hen", WHOLE, 1, (1, 2)),
            Grounding("untied", WHOLE),
        )

    def test_are_untied_from_a_caption_whose_repair_moved_its_tokens(self, entry):
        # 'cafã', '©', 'dog' before, 'café', 'dog' after: token 2 is no more.
        image = entry("a", ("cafÃ© dog",), groundings=(Grounding("dog", WHOLE, 0, (2, 3)),))
        assert cleaned(image).images[0].groundings == (Grounding("dog", WHOLE),)
