"""The box that `draw_mark` gives is exactly where the picture changes."""

import numpy as np
import pytest

from sightline.data.scene_drawing import (
    COLOURS,
    SHAPES,
    TEXTURES,
    Mark,
    draw_background,
    draw_mark,
    to_picture,
)


def changed_box(before, after):
    """The smallest box around the pixels that differ, as fractions."""
    changed = (np.asarray(to_picture(before)) != np.asarray(to_picture(after))).any(2)
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    size = len(changed)
    return columns[0] / size, rows[0] / size, (columns[-1] + 1) / size, (rows[-1] + 1) / size


@pytest.mark.parametrize("size", [32, 101, 224])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_box_is_where_the_pixels_changed(shape, size):
    random = np.random.default_rng(size)
    for colour in COLOURS.values():
        x, y = random.uniform(0.25, 0.75, 2)
        mark = Mark(shape, colour, x, y, random.uniform(0.05, 0.22))
        canvas = draw_background(random.choice(list(TEXTURES)), size, random)
        before = canvas.copy()
        box = draw_mark(canvas, mark)
        assert box == changed_box(before, canvas)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_keeps_to_its_radius_and_fills_most_of_it(shape):
    canvas = np.full((200, 200, 3), 170.0)
    x0, y0, x1, y1 = draw_mark(canvas, Mark(shape, (0, 0, 0), 0.5, 0.4, 0.2))
    assert x0 >= 0.3
    assert x1 <= 0.7
    assert y0 >= 0.2
    assert y1 <= 0.6
    assert x1 - x0 > 0.28
    assert y1 - y0 > 0.28


def test_a_shape_at_the_edge_is_cut_off_there():
    canvas = np.full((100, 100, 3), 170.0)
    before = canvas.copy()
    box = draw_mark(canvas, Mark("circle", (0, 0, 0), 0.05, 0.98, 0.2))
    assert box == changed_box(before, canvas)
    assert (box[0], box[3]) == (0.0, 1.0)


def test_shapes_differ():
    pictures = set()
    for shape in SHAPES:
        canvas = np.full((64, 64, 3), 170.0)
        draw_mark(canvas, Mark(shape, (0, 0, 0), 0.5, 0.5, 0.3))
        pictures.add(canvas.tobytes())
    assert len(pictures) == len(SHAPES)


def test_textures_differ_and_are_muted():
    canvases = {
        name: draw_background(name, 96, np.random.default_rng(0)).mean(2) for name in TEXTURES
    }
    assert all(canvas.min() > 110 and canvas.max() < 225 for canvas in canvases.values())
    # Noise aside, a plain one is flat, stripes run down, checks alternate both ways.
    flat = {name: (canvas.mean(0).std(), canvas.mean(1).std()) for name, canvas in canvases.items()}
    assert max(flat["plain"]) < 2
    assert flat["striped"][0] > 5
    assert flat["striped"][1] < 2
    assert canvases["checked"].std() > 5
    assert canvases["speckled"].std() > 5
