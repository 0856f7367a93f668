"""A demonstration of Sightline, run by `make demo`.

Captions three freely licensed photographs with the bundled captioner and marks words that they do
not support. Writes a page for each photograph that explains every word, and an index over them.
"""

import argparse
from pathlib import Path

import click

import sightline
from sightline.cli.caption_printing import mark
from sightline.memory import keep_freed_memory, leave_garbage_at_exit
from sightline.report.page import render_index, render_page
from sightline.report.page_data import index_entry

HERE = Path(__file__).parent
PICTURES = tuple(HERE / name for name in ("dog.jpg", "duck.jpg", "others/coffee.jpg"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=HERE.parent / "demo", help="folder for the pages"
    )
    parser.add_argument("pictures", nargs="*", type=Path, default=PICTURES)
    options = parser.parse_args()
    keep_freed_memory()
    leave_garbage_at_exit()
    options.folder.mkdir(parents=True, exist_ok=True)
    captioner = sightline.load()
    entries = []
    for picture in options.pictures:
        report = captioner.report(picture, methods=("contrastive_lrp", "attention"))
        page = options.folder / f"{picture.stem}.html"
        page.write_text(render_page(report, index="index.html"), encoding="utf-8")
        entries.append(index_entry(report, page.name))
        click.echo(f"{picture.name}: {mark(report.caption)}\n    why: {page}")
    index = options.folder / "index.html"
    index.write_text(render_index(entries), encoding="utf-8")
    click.echo(f"\nOpen {index} to see what each word is based on.")
    click.echo("[not seen: word] is not supported by the picture (docs/support.md).")


if __name__ == "__main__":
    main()
