"""The review of a folder of pictures: what the captioner said, and what a person decided.

`PHOTOS.review/review.sqlite`, beside the folder `PHOTOS`. Decisions are only ever added, so that
nothing a person wrote is lost; the last one counts.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sightline.bulk.items import Item, readable
from sightline.bulk.records import Failure, Record
from sightline.bulk.sources import Source
from sightline.config import from_dict, nearest
from sightline.database import Database
from sightline.errors import ConfigError, DataError
from sightline.parsing import parse_json

OPEN, ACCEPTED, EDITED, REJECTED = DECISIONS = ("open", "accepted", "edited", "rejected")
ORDERS = {
    "doubt": "doubt IS NULL, doubt DESC, path",
    "name": "path",
    "recent": "decided DESC NULLS LAST, path",
}
FILTERS = {
    "all": "1",
    "open": "state = 'open' AND caption IS NOT NULL",
    "waiting": "state = 'open' AND caption IS NULL AND error IS NULL",
    "marked": "marked",
    "unfamiliar": "unfamiliar",
    "accepted": "state = 'accepted'",
    "edited": "state = 'edited'",
    "rejected": "state = 'rejected'",
    "failed": "error IS NOT NULL",
}
MOST_TEXT = 5000  # letters of a caption
_TABLES = """
CREATE TABLE pictures (
    id INTEGER PRIMARY KEY,
    path BLOB NOT NULL UNIQUE,   -- in the folder, as the system spells it
    name TEXT NOT NULL,          -- the same, as text
    present INTEGER NOT NULL DEFAULT 1,
    content TEXT,                -- size and time of the file that was captioned
    job TEXT,                    -- what captioned it
    caption TEXT,
    row TEXT,                    -- all that tables say of the caption, as JSON
    doubt REAL,
    marked INTEGER NOT NULL DEFAULT 0,
    unfamiliar INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    state TEXT NOT NULL DEFAULT 'open',
    text TEXT,                   -- what a person wrote or accepted
    decided REAL,
    decision INTEGER NOT NULL DEFAULT 0   -- the last one
);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    picture INTEGER NOT NULL REFERENCES pictures,
    state TEXT NOT NULL,
    text TEXT,
    caption TEXT,                -- what the captioner had said
    at REAL NOT NULL
);
CREATE INDEX of_picture ON decisions (picture);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)
"""


class ConflictError(ConfigError):
    """Somebody else has decided about a picture meanwhile."""


@dataclass(frozen=True)
class Entry:
    """A picture of a review."""

    id: int
    name: str
    caption: str | None  # the captioner's
    words: tuple[dict[str, Any], ...]  # of that caption, with their verdicts
    unfamiliar: bool
    error: str | None  # why there is no caption
    state: str
    text: str | None  # a person's
    decision: int  # to be named with the next decision

    @property
    def said(self) -> str | None:
        """The caption to use, as far as it is known."""
        return self.caption if self.text is None else self.text


class Review:
    """A folder of pictures under review; a context manager.

    >>> with Review("photos") as review:  # doctest: +SKIP
    ...     review.scan()
    ...     review.decide(1, "edited", "A dog asleep on a red sofa")
    """

    def __init__(self, folder: Path | str, state: Path | str | None = None) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise ConfigError(f"{folder}: there is no such folder")
        place = self.folder.resolve()
        self.state = Path(state) if state else place.with_name(f"{place.name}.review")
        if self.state.resolve().is_relative_to(place):
            raise ConfigError(f"{self.state}: must not be in the folder of the pictures")
        self.database = Database(self.state / "review.sqlite", _TABLES)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> "Review":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- pictures and captions ------------------------------------------------------------------

    def scan(self) -> int:
        """List the pictures of the folder, new ones included; how many there are."""
        with self.database.writing() as write:
            write("UPDATE pictures SET present = 0")
            count = 0
            for item in Source([self.folder], follow_links=False).check():
                if isinstance(item, Failure):
                    continue  # a folder below it that cannot be listed
                write(
                    "INSERT INTO pictures (path, name) VALUES (?, ?)"
                    " ON CONFLICT (path) DO UPDATE SET present = 1",
                    (os.fsencode(item.inside), readable(item.inside)),
                )
                count += 1
        return count

    def is_captioned(self, item: Item, job: str) -> bool:
        """Whether a picture has a caption, or is known to have none, of this job and content."""
        known = self.database.rows(
            "SELECT 1 FROM pictures WHERE path = ? AND job = ? AND content = ?",
            (os.fsencode(item.inside), job, _content(item)),
        )
        return bool(known)

    def write(self, records: Sequence[Record], failures: Sequence[Failure], job: str) -> None:
        """Keep what the captioner said. Decisions stay as they are."""
        with self.database.writing() as write:
            for record in records:
                caption = record.caption
                write(
                    "UPDATE pictures SET content = ?, job = ?, caption = ?, row = ?, doubt = ?,"
                    " marked = ?, unfamiliar = ?, error = NULL WHERE path = ?",
                    (
                        *(_content(record.item), job, caption.text),
                        json.dumps(record.row(), ensure_ascii=False),
                        *(caption.doubt, record.is_marked, bool(record.unfamiliar)),
                        os.fsencode(record.item.inside),
                    ),
                )
            for failure in failures:
                inside = Path(failure.name).relative_to(readable(str(self.folder)))
                write(
                    "UPDATE pictures SET error = ? WHERE name = ?",
                    (failure.error, readable(str(inside))),
                )

    # --- what a person sees and decides ---------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """How many pictures each filter shows."""
        columns = ", ".join(f"coalesce(sum({test}), 0)" for test in FILTERS.values())
        (row,) = self.database.rows(f"SELECT {columns} FROM pictures WHERE present")
        return dict(zip(FILTERS, row, strict=True))

    def order(self, filter: str = "all", order: str = "doubt", text: str = "") -> list[int]:
        """The ids of pictures that a filter shows and whose name or caption contains a text."""
        if filter not in FILTERS:
            raise ConfigError(f"no filter is called '{filter}'; {nearest(filter, list(FILTERS))}")
        if order not in ORDERS:
            raise ConfigError(f"no order is called '{order}'; {nearest(order, list(ORDERS))}")
        sought = "instr(lower(name || ' ' || coalesce(text, caption, '')), lower(?)) > 0"
        rows = self.database.rows(
            f"SELECT id FROM pictures WHERE present AND {FILTERS[filter]} AND {sought}"
            f" ORDER BY {ORDERS[order]}",
            (text,),
        )
        return [id for (id,) in rows]

    def entries(self, ids: Sequence[int] | None = None) -> list[Entry]:
        """Pictures by their ids, in that order; those that there are. None: all of them."""
        chosen = "" if ids is None else f" AND id IN ({', '.join('?' * len(ids))})"
        rows = self.database.rows(
            "SELECT id, name, caption, row, unfamiliar, error, state, text, decision"
            f" FROM pictures WHERE present{chosen} ORDER BY path",
            ids or (),
        )
        found = {entry.id: entry for entry in map(self._entry, rows)}
        return [found[id] for id in (found if ids is None else ids) if id in found]

    def _entry(self, row: Sequence[Any]) -> Entry:
        id, name, caption, content, unfamiliar, *rest = row
        words = self._said(content).get("words") or []
        values = (id, name, caption, words, bool(unfamiliar), *rest)
        named = dict(zip((field.name for field in fields(Entry)), values, strict=True))
        return from_dict(Entry, named, str(self.database.path), error=DataError)

    def _said(self, content: str | None) -> dict[str, Any]:
        """What tables say of a caption."""
        said = parse_json(content or "{}", str(self.database.path), DataError)
        if not isinstance(said, dict):
            raise DataError(f"{self.database.path}: a caption is damaged; move the file away")
        return said

    def path(self, id: int) -> Path | None:
        """The file of a picture."""
        rows = self.database.rows("SELECT path FROM pictures WHERE id = ? AND present", (id,))
        if not rows:
            return None
        name = os.fsdecode(rows[0][0]) if isinstance(rows[0][0], bytes) else ".."
        if name.startswith("/") or ".." in Path(name).parts:
            raise DataError(f"{self.database.path}: names a picture outside of the folder")
        return self.folder / name

    def row(self, id: int) -> dict[str, Any]:
        """All that tables say of the captioner's caption."""
        ((row,),) = self.database.rows("SELECT row FROM pictures WHERE id = ?", (id,))
        return self._said(row)

    def decide(
        self, id: int, state: str, text: str | None = None, after: int | None = None
    ) -> Entry:
        """Accept, edit, reject or reopen; on disk when this returns.

        `after` is the decision that was seen; if there is a later one, a `ConflictError` is raised
        and nothing is changed. Accepting takes the captioner's words, or a person's, as they are.
        """
        if state not in DECISIONS:
            raise ConfigError(f"no decision is called '{state}'; {nearest(state, list(DECISIONS))}")
        with self.database.writing() as write:
            entry = next(iter(self.entries([id])), None)
            if entry is None:
                raise ConfigError(f"there is no picture {id}")
            if after is not None and after != entry.decision:
                raise ConflictError(f"{entry.name}: was decided in another window meanwhile")
            kept = self._text(entry, state, text)
            now = time.time()
            added = write(
                "INSERT INTO decisions (picture, state, text, caption, at) VALUES (?, ?, ?, ?, ?)",
                (id, state, kept, entry.caption, now),
            )
            write(
                "UPDATE pictures SET state = ?, text = ?, decided = ?, decision = ? WHERE id = ?",
                (state, kept, now, added.lastrowid, id),
            )
        return self.entries([id])[0]

    def _text(self, entry: Entry, state: str, text: str | None) -> str | None:
        if state in (OPEN, REJECTED):
            return None
        kept = " ".join(((entry.said if text is None else text) or "").split())
        if not kept:
            raise ConfigError(f"{entry.name}: there is no caption to keep; write one")
        if len(kept) > MOST_TEXT:
            raise ConfigError(f"{entry.name}: the caption has more than {MOST_TEXT} letters")
        return kept

    def texts(self, id: int) -> set[str]:
        """Every text that the picture was ever given in this review."""
        rows = self.database.rows("SELECT text FROM decisions WHERE picture = ?", (id,))
        return {text for (text,) in rows if text}


def _content(item: Item) -> str:
    """What changes when a file does."""
    assert item.path is not None
    try:
        status = item.path.stat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"
