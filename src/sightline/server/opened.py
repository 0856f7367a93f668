"""The sections over what is on this disk: a folder under review, a blind comparison, an audit."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sightline.blind.answers import Answers
from sightline.review.collection import Review
from sightline.server.audit import audit_sections
from sightline.server.rating import rating_sections
from sightline.server.review import review_section
from sightline.server.sections import Section

Links = dict[str, str]
"""What to print when the server begins: whose link it is, and its path."""


@contextlib.contextmanager
def open_sections(
    review: Path | None, blind: Path | None, audit: Path | None
) -> Iterator[tuple[list[Section], Links]]:
    """Open a folder for review, a study and an audit, where given, and make sections of them."""
    sections: list[Section] = []
    links: Links = {}
    with contextlib.ExitStack() as stack:
        if review is not None:
            pictures = stack.enter_context(Review(review))
            pictures.scan()  # a folder without pictures is said now, and not by a server that dies
            sections.append(review_section(pictures))
            links["Review"] = "/review"
        if blind is not None:
            answers = stack.enter_context(Answers(blind))
            sections += rating_sections(blind, answers)
            links["Blind comparison"] = "/blind"
            links |= {f"Rater {r.name}": f"/rate/{r.token}" for r in answers.study.raters}
        if audit is not None:
            sections += audit_sections(audit)
            links["Audit"] = "/audit"
        yield sections, links
