"""Pages of the documentation site that lie elsewhere in the repository, and links to them.

A hook of mkdocs. The files stay where readers of the repository look for them; on the site they are
pages like the others. The tables of experiments get their question and their figure.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

from sightline.experiments.registry import EXPERIMENTS

ROOT = Path(__file__).parents[1]
# File in the repository -> page of the site.
PAGES = {
    "src/sightline/bundled/README.md": "bundled.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def on_files(files, config):
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_links(text, posixpath.dirname(source))))
    return files


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri in PAGES.values():
        return markdown
    folder = posixpath.dirname("docs/" + page.file.src_uri)
    if folder.startswith("docs/experiments/"):
        markdown = _experiment(markdown, posixpath.basename(folder))
    return _links(markdown, folder, posixpath.dirname(page.file.src_uri))


def _experiment(table, folder):
    """The page of an experiment, whose folder is called by its name, or by that and a variant."""
    name = max((name for name in EXPERIMENTS if folder.startswith(name)), key=len)
    question = EXPERIMENTS[name][1]
    return (
        f"*{question}* Made by `sightline experiment {name}`; see "
        "[how](../../tasks/reproduce-a-table.md), and [all claims](../../reproduction.md).\n\n"
        f"![{question}](figure.png)\n\n{table}"
    )


def on_post_page(output, page, config):
    """The theme's search, opened from a disk, would fetch a script from the net: ours is here."""
    return _with_our_worker(output, "../" * page.url.count("/"))


def on_post_template(output, template_name, config):
    return _with_our_worker(output, "/")  # 404.html, which only a server shows


def _with_our_worker(output, root):
    return output.replace(
        '<script src="https://unpkg.com/iframe-worker/shim"></script>',
        f'<script src="{root}assets/worker.js"></script>',
    )


def _links(text, folder, page_folder=""):
    """Relative links, from a file in `folder` of the repository, as links between pages."""

    def rewritten(match):
        target, _, anchor = match[1].partition("#")
        if "://" in target or not target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        page = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if page is None:
            return match[0]
        relative = posixpath.relpath(page, page_folder or ".")
        return f"]({relative}{'#' + anchor if anchor else ''})"

    return re.sub(r"\]\(([^)\s]+)\)", rewritten, text)
