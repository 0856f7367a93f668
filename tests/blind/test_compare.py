"""Setting up a study: what is shown, and that nothing of it tells the systems apart."""

import json

import pytest
from click.testing import CliRunner
from PIL import Image

import sightline
from sightline.blind.compare import compare_blind
from sightline.blind.sheet import sheet
from sightline.blind.study import Check, Pair, Question, Study
from sightline.cli.compare_blind import command
from sightline.errors import ConfigError, DataError


def test_pairs_are_matched_by_picture(study, systems):
    assert study.systems == ("ours.jsonl", "theirs.json")
    assert study.identical == ("dog.jpg",)  # apart from spelling
    assert {pair.name: pair.captions for pair in study.pairs}["kite.jpg"] == (
        *("One kite outside", "A kite indoors"),
    )
    assert len(study.pairs) == 9
    assert [question.name for question in study.questions] == [
        *("naturalness", "relevance", "richness")
    ]


def test_copies_hold_pixels_alone(study, study_folder):
    for pair in study.pairs:
        with Image.open(study_folder / "pictures" / pair.picture) as copy:
            assert copy.size == (80, 60)
            assert not copy.getexif()
    content = (study_folder / "pictures" / study.pairs[0].picture).read_bytes()
    assert b"secret" not in content


def test_the_key_is_its_owners_alone(study_folder):
    assert (study_folder / "study.json").stat().st_mode & 0o077 == 0


def test_every_rater_has_another_order_and_balanced_sides(study):
    sheets = [sheet(study, rater) for rater in study.raters]
    assert sheets == [sheet(study, rater) for rater in study.raters]
    orders = {tuple((s.number, isinstance(s.of, Check)) for s in shown) for shown in sheets}
    assert len(orders) == 3
    for shown in sheets:
        pairs = [s for s in shown if isinstance(s.of, Pair)]
        assert sorted(s.number for s in pairs) == list(range(9))
        assert sum(s.flipped for s in pairs) == 4
        assert len(shown) == 9 + len(study.checks)
        for s in pairs:
            assert s.sides[s.flipped] == s.of.captions[0]
            assert s.of.captions[s.chosen("left")] == s.sides[0]
            assert s.of.captions[s.chosen("right")] == s.sides[1]
            assert s.chosen("tie") is None


def test_the_seed_is_secret(systems, photographs, tmp_path):
    """The same command twice: other tokens, orders and sides."""
    studies = [compare_blind(*systems, photographs, tmp_path / name) for name in ("a", "b")]
    assert studies[0].pairs == studies[1].pairs
    assert studies[0].seed != studies[1].seed
    assert studies[0].raters[0].token != studies[1].raters[0].token
    assert len(studies[0].raters[0].token) >= 20


def test_each_pair_has_so_many_raters(systems, photographs, tmp_path):
    study = compare_blind(
        *(systems[0], systems[1], photographs, tmp_path / "s"), raters=("a", "b", "c"), each=2
    )
    sheets = [
        [s.number for s in sheet(study, rater) if isinstance(s.of, Pair)] for rater in study.raters
    ]
    assert [len(numbers) for numbers in sheets] == [6, 6, 6]
    assert sorted(n for numbers in sheets for n in numbers) == sorted(2 * list(range(9)))


def test_checks_show_a_caption_of_another_picture(study):
    assert len(study.checks) == 2
    things = {pair.picture: pair.name.removesuffix(".jpg") for pair in study.pairs}
    for check in study.checks:
        right, wrong = check.captions
        assert things[check.picture] in right
        assert things[check.picture] not in wrong
        assert check.questions == ("relevance",)


def test_without_relevance_a_check_says_what_to_choose(systems, photographs, tmp_path):
    funny = Question("fun", "Which is funnier?")
    study = compare_blind(*systems, photographs, tmp_path / "s", questions=[funny], checks=3)
    assert len(study.checks) == 3
    for check in study.checks:
        assert "choose this caption" in check.captions[0]
        assert check.questions == ("fun",)


def test_as_written_and_a_sample(systems, photographs, tmp_path):
    study = compare_blind(
        *systems, photographs, tmp_path / "s", pictures=4, as_written=True, names=("x", "y")
    )
    assert len(study.pairs) + len(study.identical) == 4
    assert all(pair.captions[1].endswith(" .") for pair in study.pairs)
    assert study.systems == ("x", "y")


def test_coco_numbers_name_pictures(tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for name in ("COCO_val2014_000000000042.jpg", "000000000043.jpg"):
        Image.new("RGB", (8, 8)).save(images / name)
    paths = []
    for system in ("a", "b"):
        paths.append(tmp_path / f"{system}.json")
        records = [{"image_id": n, "caption": f"{system} {n}"} for n in (42, 43)]
        paths[-1].write_text(json.dumps(records))
    study = compare_blind(*paths, images, tmp_path / "s")
    assert {pair.name: pair.captions[0] for pair in study.pairs} == {
        "COCO_val2014_000000000042.jpg": "A 42",
        "000000000043.jpg": "A 43",
    }


def test_half_of_a_surrogate_pair_is_shown_as_a_question_mark(photographs, tmp_path):
    for name, caption in (("a", "a dog \ud83d"), ("b", "one dog")):
        records = [{"image_id": "dog.jpg", "caption": caption}]
        (tmp_path / f"{name}.json").write_text(json.dumps(records))
    study = compare_blind(tmp_path / "a.json", tmp_path / "b.json", photographs, tmp_path / "s")
    assert study.pairs[0].captions == ("A dog ?", "One dog")
    assert Study.load(tmp_path / "s") == study


def test_runs_caption_the_pictures_now(save_captioner, photographs, tmp_path):
    runs = [save_captioner(tmp_path / f"run-{seed}", seed) for seed in (1, 2)]
    study = compare_blind(*runs, photographs, tmp_path / "s", pictures=3, device="cpu")
    assert study.systems == ("run-1", "run-2")
    assert len(study.pairs) + len(study.identical) == 3
    kept = (tmp_path / "s").glob("captions-*.jsonl")
    assert [file.read_text().count("\n") for file in kept] == [3, 3]


def test_a_study_begun_with_another_run_takes_none_of_its_captions(
    save_captioner, photographs, tmp_path
):
    first, same, second = (
        save_captioner(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    with pytest.raises(ConfigError, match="both systems say the same"):
        compare_blind(first, same, photographs, tmp_path / "s", pictures=3, device="cpu")
    study = compare_blind(first, second, photographs, tmp_path / "s", pictures=3, device="cpu")
    captioner = sightline.load(second, device="cpu")
    for pair in study.pairs:
        said = captioner.caption(photographs / pair.name).text
        assert pair.captions[1].lower() == said.lower()


def test_what_cannot_be_meant(systems, photographs, tmp_path, study_folder):
    ours, theirs = systems
    with pytest.raises(ConfigError, match="holds a study"):
        compare_blind(ours, theirs, photographs, study_folder)
    with pytest.raises(ConfigError, match="is not empty"):
        compare_blind(ours, theirs, photographs, tmp_path)
    with pytest.raises(ConfigError, match="compared with itself"):
        compare_blind(ours, ours, photographs, tmp_path / "new")
    with pytest.raises(DataError, match="no such file of captions"):
        compare_blind(ours, tmp_path / "nothing.json", photographs, tmp_path / "new2")
    other = tmp_path / "other.csv"
    other.write_text("path,caption\nelsewhere.jpg,a dog\n")
    with pytest.raises(DataError, match="captions none of the pictures"):
        compare_blind(ours, other, photographs, tmp_path / "new3")
    other.write_text("file,text\nx,y\n")
    with pytest.raises(DataError, match="needs the columns"):
        compare_blind(ours, other, photographs, tmp_path / "new4")
    with pytest.raises(ConfigError, match="called alike"):
        compare_blind(ours, theirs, photographs, tmp_path / "new5", raters=("a", "a"))
    with pytest.raises(DataError, match="is not a study"):
        Study.load(tmp_path)


def test_a_study_of_a_stranger_names_no_other_file(study, study_folder):
    content = json.loads((study_folder / "study.json").read_text())
    content["pairs"][0]["picture"] = "../../../etc/passwd"
    (study_folder / "study.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="is not the name of a picture"):
        Study.load(study_folder)


def test_the_command(systems, photographs, tmp_path):
    ours, theirs = map(str, systems)
    options = ["--images", str(photographs), "-o", str(tmp_path / "s"), "--rater", "Ann"]
    options += ["--question", "taste=Which is nicer?", "--name", "good", "bad", "--checks", "1"]
    done = CliRunner().invoke(command, [ours, theirs, *options], catch_exceptions=False)
    assert done.exit_code == 0
    assert "9 pairs, 1 with the same caption left out, 1 attention checks, 1 raters" in done.output
    study = Study.load(tmp_path / "s")
    assert study.questions == (Question("taste", "Which is nicer?"),)
    assert study.systems == ("good", "bad")
    assert study.raters[0].name == "Ann"
    options = [*options[:3], str(tmp_path / "t"), "--question", "nicer?"]
    with pytest.raises(ConfigError, match="must be a name, an equals sign"):
        CliRunner().invoke(command, [ours, theirs, *options], catch_exceptions=False)
