"""Content hashes of files, remembered: a file that has not changed is not read to be hashed again.

The memo is one file of records, of fixed size, each with a checksum of its own:

    path (a hash of it), size, mtime, ctime, inode, content hash, checksum

A hash is added by appending one record in one write, so any number of processes may do so at once,
and be killed at any moment. Of several records of a path the last one counts. The memo only saves
time: whatever is damaged in it is dropped, and where it cannot be written there is none.
"""

import contextlib
import functools
import hashlib
import os
import struct
import time
import zlib
from pathlib import Path

from sightline.files import DATA_BYTES, atomic_write, open_regular, read_bytes

_RECORD = struct.Struct("<16s32s16sI")  # path, file state, content hash, checksum of these
_STATE = struct.Struct("<qqqQ")  # size, mtime and ctime in nanoseconds, inode
_HASH_BYTES = 16
# A file that changed this short a time ago may change again within the same tick of its file
# system's clock, and then would look as if it had not.
_SETTLED_NS = 2_000_000_000


_hasher = functools.partial(hashlib.blake2b, digest_size=_HASH_BYTES)


def content_hash(content: bytes) -> bytes:
    """The hash by which a file's content is known.

    >>> len(content_hash(b"anything"))
    16
    """
    return _hasher(content).digest()


class ContentHashes:
    """The content hash of any file, from the memo at `memo` if the file is as it was.

    >>> ContentHashes(Path("hashes.bin")).of(Path("photo.jpg")).hex()  # doctest: +SKIP
    '8a3b…'
    """

    def __init__(self, memo: Path) -> None:
        self.memo = memo
        self._records: dict[bytes, bytes] | None = None  # by path; read when first needed

    def of(self, path: Path) -> bytes:
        """The content hash of a file; an OSError where it cannot be read."""
        if self._records is None:
            self._records = self._read()
        name = content_hash(os.fsencode(os.path.abspath(path)))
        state = _state(os.stat(path))
        record = self._records.get(name, b"")
        if record[: _STATE.size] == state:
            return record[_STATE.size :]
        with open_regular(path, DATA_BYTES) as file:
            state = _state(os.fstat(file.fileno()))
            digest = hashlib.file_digest(file, _hasher).digest()
            unchanged = _state(os.fstat(file.fileno())) == state
        if unchanged and _is_settled(state):
            self._records[name] = state + digest
            self._append(name, state + digest)
        return digest

    def _read(self) -> dict[bytes, bytes]:
        try:
            content = read_bytes(self.memo, DATA_BYTES)
        except OSError:
            return {}
        whole = len(content) - len(content) % _RECORD.size
        records: dict[bytes, bytes] = {}
        for name, state, digest, checksum in _RECORD.iter_unpack(content[:whole]):
            if zlib.crc32(name + state + digest) == checksum:
                records[name] = state + digest
        # Damaged, or mostly of files as they were before: written anew, from what is good.
        if whole != len(content) or 2 * _RECORD.size * len(records) < whole:
            with contextlib.suppress(OSError), atomic_write(self.memo, "wb") as file:
                file.write(b"".join(_pack(*item) for item in records.items()))
        return records

    def _append(self, name: bytes, record: bytes) -> None:
        with contextlib.suppress(OSError):  # no place to remember it: it is hashed again next time
            self.memo.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.memo, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(descriptor, _pack(name, record))
            finally:
                os.close(descriptor)


def _pack(name: bytes, record: bytes) -> bytes:
    return name + record + zlib.crc32(name + record).to_bytes(4, "little")


def _state(status: os.stat_result) -> bytes:
    """What tells that a file is as it was. (ctime cannot be set back as mtime can.)"""
    return _STATE.pack(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _is_settled(state: bytes) -> bool:
    _, modified, changed, _ = _STATE.unpack(state)
    since: int = time.time_ns() - max(modified, changed)
    return since > _SETTLED_NS
