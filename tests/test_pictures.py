"""Pictures of every mode and orientation open upright in RGB; a bad file gets one clear line."""

import io
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from sightline import pictures
from sightline.errors import PictureError
from sightline.extras import EXTRAS
from sightline.pictures import FILE_BYTES, open_picture

EXAMPLES = Path(__file__).parents[1] / "examples" / "others"
FORMATS_FOLDER = Path(__file__).parent / "formats"


def saved(picture: Image.Image, path: Path, **options: object) -> Path:
    picture.save(path, **options)
    return path


def quarters() -> Image.Image:
    """40 x 20, its four quarters red, green, blue and white: every turn and flip shows."""
    picture = Image.new("RGB", (40, 20), "white")
    picture.paste("red", (0, 0, 20, 10))
    picture.paste("lime", (20, 0, 40, 10))
    picture.paste("blue", (0, 10, 20, 20))
    return picture


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "RGB", "RGBA", "LA"])
def test_modes_keep_light_and_dark_apart(mode, tmp_path):
    halves = Image.new("L", (20, 10), 0)
    halves.paste(255, (10, 0, 20, 10))
    picture = halves.convert("RGB").convert(mode) if mode != "LA" else halves.convert("LA")
    opened = open_picture(
        saved(picture, tmp_path / "picture.tif" if mode != "P" else tmp_path / "p.png")
    )
    assert opened.mode == "RGB"
    pixels = np.asarray(opened).astype(int)
    assert pixels[:, :9].max() < 20
    assert pixels[:, 11:].min() > 235


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    values = np.full((4, 6), 0x4000, np.uint16)
    values[:, 3:] = 0xFFFF
    pixels = np.asarray(open_picture(saved(Image.fromarray(values), tmp_path / "deep.png")))
    assert (pixels[:, :3] == 0x40).all()
    assert (pixels[:, 3:] == 0xFF).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_unbounded_pixels_are_stretched(dtype, tmp_path):
    values = np.array([[-500, 0, 500]], dtype)
    pixels = np.asarray(open_picture(saved(Image.fromarray(values), tmp_path / "float.tif")))
    assert pixels[0, :, 0].tolist() == [0, 128, 255]


def test_not_a_number_is_survived(tmp_path):
    values = np.array([[np.nan, 0.0, 1.0, np.inf]], np.float32)
    pixels = np.asarray(open_picture(saved(Image.fromarray(values), tmp_path / "nan.tif")))
    assert pixels[0, 1:3, 0].tolist() == [0, 255]


def test_transparency_shows_white(tmp_path):
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    clear.putpixel((0, 0), (255, 0, 0, 255))
    pixels = np.asarray(open_picture(saved(clear, tmp_path / "clear.png")))
    assert pixels[0, 0].tolist() == [255, 0, 0]
    assert pixels[2, 2].tolist() == [255, 255, 255]


def test_palette_transparency_shows_white(tmp_path):
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([255, 0, 0, 0, 0, 255])
    palette.putpixel((1, 1), 1)
    path = saved(palette, tmp_path / "palette.gif", transparency=0)
    pixels = np.asarray(open_picture(path))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[1, 1].tolist() == [0, 0, 255]


def test_a_transparent_grey_of_16_bits_shows_white(tmp_path):
    grey = Image.fromarray(np.array([[40000, 1]], np.uint16))
    path = saved(grey, tmp_path / "grey.png", transparency=1)
    assert np.asarray(open_picture(path))[0, :, 0].tolist() == [40000 >> 8, 255]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(orientation, tmp_path):
    upright = quarters()
    # What a camera held that way stores: the inverse of what the tag asks the viewer to do.
    inverse = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = upright.transpose(inverse[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(stored, tmp_path / "turned.png", exif=exif)
    assert np.array_equal(np.asarray(open_picture(path)), np.asarray(upright))


def test_broken_exif_does_not_cost_the_picture(tmp_path):
    path = saved(
        quarters(), tmp_path / "exif.jpg", exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff junk"
    )
    assert open_picture(path).size == (40, 20)


@pytest.mark.parametrize("name", ["moving.gif", "moving.webp"])
def test_first_frame_of_a_moving_picture(name, tmp_path):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    path = tmp_path / name
    frames[0].save(path, save_all=True, append_images=frames[1:])
    red, _, blue = open_picture(path).getpixel((4, 4))
    assert red > 200
    assert blue < 50


def test_reduced_decoding_keeps_the_asked_size_and_the_content(tmp_path):
    large = Image.open(EXAMPLES / "cat.jpg").resize((1800, 1200), Image.Resampling.BICUBIC)
    path = saved(large, tmp_path / "large.jpg", quality=95)
    reduced = open_picture(path, reduced_to=448)
    assert reduced.size == (900, 600)
    assert open_picture(path).size == (1800, 1200)
    whole = np.asarray(open_picture(path).resize((90, 60), Image.Resampling.BOX)).astype(int)
    quick = np.asarray(reduced.resize((90, 60), Image.Resampling.BOX)).astype(int)
    assert np.abs(whole - quick).mean() < 1


def test_bytes_open_like_a_file():
    path = EXAMPLES / "coffee.jpg"
    assert np.array_equal(
        np.asarray(open_picture(path.read_bytes())), np.asarray(open_picture(path))
    )


def truncated(folder: Path) -> Path:
    path = folder / "short.jpg"
    path.write_bytes((EXAMPLES / "cat.jpg").read_bytes()[:9000])
    return path


def written(folder: Path, content: bytes) -> Path:
    path = folder / "bad.jpg"
    path.write_bytes(content)
    return path


def bomb(folder: Path) -> Path:
    """A PNG of a few hundred bytes that claims 60,000 x 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    side = (60_000).to_bytes(4, "big")
    header = chunk(b"IHDR", side + side + bytes([8, 2, 0, 0, 0]))
    data = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return written(folder, b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b""))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "nothing.jpg", "does not exist"),
        (lambda folder: folder, "is a folder"),
        (truncated, "damaged or cut short"),
        (lambda folder: written(folder, b""), "is empty"),
        (lambda folder: written(folder, b"just words\n" * 50), "holds text"),
        (lambda folder: written(folder, bytes(range(256)) * 4), "in no format"),
        (bomb, "million pixels"),
    ],
    ids=["missing", "folder", "truncated", "empty", "text", "unknown", "bomb"],
)
def test_a_bad_file_gets_one_line_that_names_it(make, says, tmp_path):
    path = make(tmp_path)
    with pytest.raises(PictureError, match=says) as caught:
        open_picture(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ": " in str(caught.value), "what to do must follow"


def test_no_permission_gets_one_line(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(pictures, "open_regular", refuse)
    with pytest.raises(PictureError, match=r"photo\.jpg cannot be read"):
        open_picture("photo.jpg")


@pytest.mark.parametrize("content", [b"", b"words", (b"\xff\xd8" + bytes(50))])
def test_bad_bytes_get_one_line(content):
    with pytest.raises(PictureError, match="the picture"):
        open_picture(content)


def test_a_truncated_stream_of_bytes_is_refused():
    stream = io.BytesIO()
    quarters().resize((400, 200)).save(stream, "JPEG")
    with pytest.raises(PictureError, match="cut short"):
        open_picture(stream.getvalue()[: stream.tell() // 2])


def _files(tmp_path: Path) -> dict[str, Path]:
    """Pictures that are not plain RGB: transparent, of 16 bits, and lying on their side."""
    alpha = np.zeros((6, 8, 4), np.uint8)
    alpha[:, :4] = (200, 30, 30, 255)
    deep = (np.arange(48, dtype=np.uint16).reshape(6, 8) * 1300).astype(np.uint16)
    upright = Image.fromarray(np.arange(144, dtype=np.uint8).reshape(6, 8, 3))
    exif = Image.Exif()
    exif[0x0112] = 6
    paths = {name: tmp_path / f"{name}.png" for name in ("alpha", "deep", "turned")}
    Image.fromarray(alpha).save(paths["alpha"])
    Image.fromarray(deep).save(paths["deep"])
    upright.save(paths["turned"], exif=exif)
    return paths


@pytest.mark.parametrize("name", ["alpha", "deep", "turned"])
def test_a_path_bytes_and_an_image_are_read_the_same_way(name: str, tmp_path: Path) -> None:
    path = _files(tmp_path)[name]
    expected = np.asarray(open_picture(path))
    assert expected.shape == ((8, 6, 3) if name == "turned" else (6, 8, 3))
    with Image.open(path) as image:
        assert np.array_equal(open_picture(image), expected)
        assert np.array_equal(open_picture(image), expected)  # what was given is not changed
    assert np.array_equal(open_picture(path.read_bytes()), expected)
    if name != "turned":  # (an array has no EXIF)
        assert np.array_equal(open_picture(np.asarray(Image.open(path))), expected)


def test_arrays_are_pictures() -> None:
    colours = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert np.array_equal(open_picture(colours), colours)
    assert np.array_equal(open_picture(colours[:, ::-1]), colours[:, ::-1])
    grey = open_picture(colours[..., 0])
    assert grey.mode == "RGB"
    assert np.array_equal(np.asarray(grey)[..., 1], colours[..., 0])
    assert np.array_equal(open_picture(colours[..., :1]), grey)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((4, 4), np.float32), "an array of float32 is not a picture: use bytes"),
        (np.zeros((4, 4, 3), np.uint16), "an array of uint16 is not a picture: use bytes"),
        (np.zeros((4, 4, 2), np.uint8), r"shape \(4, 4, 2\) is not a picture"),
        (np.zeros((0, 4, 3), np.uint8), r"shape \(0, 4, 3\) is not a picture"),
        (np.zeros(4, np.uint8), r"shape \(4,\) is not a picture"),
    ],
)
def test_other_arrays_are_refused_in_one_line(array: np.ndarray, says: str) -> None:
    with pytest.raises(PictureError, match=says):
        open_picture(array)


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.jpg")
    return folder / "pipe.jpg"


def _postscript(folder: Path) -> Path:
    """Pillow would hand this to Ghostscript."""
    path = folder / "letter.jpg"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    return path


def _huge(folder: Path) -> Path:
    path = folder / "huge.jpg"
    path.touch()
    os.truncate(path, FILE_BYTES + 1)
    return path


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_pipe, "not a regular file"),
        (lambda folder: Path("/dev/zero"), "not a regular file"),
        (_postscript, "holds text"),
        (_huge, "larger than 256 megabytes"),
        (lambda folder: "nul\0.jpg", "no file can have such a name"),
        (lambda folder: "half\ud800.jpg", "no file can have such a name"),
    ],
    ids=["pipe", "device", "postscript", "huge", "nul", "surrogate"],
)
def test_only_regular_files_of_known_formats_are_opened(make, says, tmp_path):
    with pytest.raises(PictureError, match=says):
        open_picture(make(tmp_path))


@pytest.mark.parametrize("kind", ["EPS", "PCX", "TGA", "PPM", "ICO", "JPEG2000", "SGI"])
def test_a_format_that_is_not_listed_is_refused(kind):
    stream = io.BytesIO()
    quarters().save(stream, kind)
    with pytest.raises(PictureError, match=r"in no format that is read here|holds text"):
        open_picture(stream.getvalue())


def test_what_a_picture_costs_is_known_before_it_is_decoded(monkeypatch):
    """By its mode: at the same number of pixels a palette is fine and colours are not."""
    monkeypatch.setattr(pictures, "DECODING_BYTES", 6 * 400 * 300)
    for mode, fits in (("P", True), ("RGB", False), ("RGBA", False)):
        stream = io.BytesIO()
        Image.new(mode, (400, 300)).save(stream, "PNG")
        if fits:
            assert open_picture(stream.getvalue()).size == (400, 300)
            continue
        monkeypatch.setattr(ImageFile.ImageFile, "load", _must_not_be_called)
        with pytest.raises(PictureError, match="megabytes to decode"):
            open_picture(stream.getvalue())


def _must_not_be_called(self: object) -> None:
    raise AssertionError("it was decoded")


def test_a_jpeg_costs_what_is_decoded_of_it(monkeypatch):
    stream = io.BytesIO()
    Image.new("RGB", (1600, 1600)).save(stream, "JPEG")
    monkeypatch.setattr(pictures, "DECODING_BYTES", 7 * 1600 * 1600)
    assert open_picture(stream.getvalue(), reduced_to=200).size == (200, 200)
    with pytest.raises(PictureError, match="megabytes to decode"):
        open_picture(stream.getvalue())


@pytest.mark.parametrize(
    ("size", "shown"), [((4000, 3000), (800, 600)), ((90_000, 100), (200, 100))]
)
def test_what_is_kept_of_a_large_picture_is_bounded(size, shown):
    picture = Image.new("L", size)
    picture.paste(255, (size[0] // 2, 0, *size))
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    reduced = open_picture(stream.getvalue(), reduced_to=199 if size[1] == 100 else 512)
    assert reduced.size == shown
    assert reduced.getpixel((0, 0)) == (0, 0, 0)
    assert reduced.getpixel((shown[0] - 1, 0)) == (255, 255, 255)


def test_strips_are_joined_without_a_seam(tmp_path):
    """1200 x 1700 pixels are converted in three strips, here of colours under a ramp of alpha."""
    ramp = np.linspace(0, 255, 1200 * 1700).reshape(1700, 1200).astype(np.uint8)
    pixels = np.stack([ramp, 255 - ramp, ramp // 2, ramp], -1)
    opened = np.asarray(open_picture(Image.fromarray(pixels, "RGBA"))).astype(int)
    alpha = pixels[..., 3:] / 255
    expected = pixels[..., :3] * alpha + 255 * (1 - alpha)
    assert np.abs(opened - expected).max() <= 1
    high = Image.fromarray(ramp.astype(np.float32) * 3 - 7)
    assert np.array_equal(np.asarray(open_picture(high))[..., 0], ramp)


def test_a_picture_without_pixels_is_refused():
    with pytest.raises(PictureError, match="0 x 0 pixels has nothing to see"):
        open_picture(Image.new("RGB", (0, 0)))


def test_no_memory_is_one_line(monkeypatch):
    def refuse(self: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ImageFile.ImageFile, "load", refuse)
    with pytest.raises(PictureError, match=r"cat\.jpg needs more memory than there is"):
        open_picture(EXAMPLES / "cat.jpg")


def test_decoders_are_silent(tmp_path):
    """libtiff writes to standard error itself; what is wrong is in the message."""
    stream = io.BytesIO()
    quarters().save(stream, "TIFF", compression="tiff_lzw")
    broken = bytearray(stream.getvalue())
    broken[8:30] = b"\xff" * 22
    path = tmp_path / "broken.tif"
    path.write_bytes(broken)
    script = (
        "import sys\nfrom sightline.errors import PictureError\n"
        "from sightline.pictures import open_picture\n"
        "try:\n    open_picture(sys.argv[1])\n"
        "except PictureError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert done.stderr == ""
    assert "broken.tif is damaged or cut short" in done.stdout


def test_heic_is_read_upright_and_within_the_budget(monkeypatch):
    """A photograph of a dog that the telephone was turned for."""
    picture = open_picture(FORMATS_FOLDER / "rotated.heic")
    assert (picture.mode, picture.size) == ("RGB", (48, 64))
    bytes_of_it = (FORMATS_FOLDER / "rotated.heic").read_bytes()
    assert np.array_equal(np.asarray(open_picture(bytes_of_it)), np.asarray(picture))
    assert np.asarray(picture).std() > 20
    monkeypatch.setattr("sightline.pictures.DECODING_BYTES", 48 * 64 * 8)
    with pytest.raises(PictureError, match="megabytes to decode"):
        open_picture(FORMATS_FOLDER / "rotated.heic")


def test_a_damaged_heic_is_one_line(tmp_path):
    cut = tmp_path / "cut.heic"
    cut.write_bytes((FORMATS_FOLDER / "rotated.heic").read_bytes()[:600])
    with pytest.raises(PictureError, match=r"cut\.heic") as caught:
        open_picture(cut)
    assert "\n" not in str(caught.value)


def test_without_its_part_heic_says_which_is_missing(monkeypatch):
    monkeypatch.setitem(EXTRAS, "heic", ("not_installed_here",))
    with pytest.raises(PictureError, match=r"rotated.heic is a HEIC .*'sightline\[heic\]'"):
        open_picture(FORMATS_FOLDER / "rotated.heic")


def test_avif_is_read():
    assert open_picture(FORMATS_FOLDER / "small.avif").size == (64, 48)
