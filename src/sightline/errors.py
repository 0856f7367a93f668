"""The errors a user can cause.

Every message is one line that says what is wrong, where, and what to do about it. The command line
prints it and exits with code 2; a traceback is a bug.
"""

from sightline.printing import printable

_LONGEST = 1200  # letters of a message


class SightlineError(Exception):
    """Something that the user can fix; the base class of all errors.

    Messages quote names and values that others wrote, so they are made printable here, and cut
    short where those go on for pages.

    >>> print(DataError("a\\nb.jsonl: lists no pictures"))
    a\\nb.jsonl: lists no pictures
    """

    def __init__(self, message: object = "") -> None:
        text = printable(message)
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST * 2 // 3]} … {text[-_LONGEST // 3 :]}"
        super().__init__(text)


class DataError(SightlineError):
    """A caption file, box file or dataset with missing or wrong content."""


class PictureError(SightlineError):
    """A picture that cannot be read."""


class DamagedPictureError(PictureError):
    """A picture whose file is truncated or damaged."""


class PictureTooLargeError(PictureError):
    """A picture that would take more memory than it may."""


class WeightsError(SightlineError):
    """Encoder weights that are missing, damaged or for another network."""


class CacheError(SightlineError):
    """A region cache that is missing, in use, or lacks the requested pictures."""


class CheckpointError(SightlineError):
    """A checkpoint that is missing, damaged or of another model."""


class TrainingError(SightlineError):
    """A training run that cannot continue."""


class ConfigError(SightlineError):
    """A recipe, option or checkpoint configuration with a wrong or missing value."""


class NotApplicableError(SightlineError):
    """An explanation method that cannot explain this captioner; others may."""

    @classmethod
    def no_rule(cls, operation: str) -> "NotApplicableError":
        """LRP came to an operation that it has no rule for."""
        return cls(
            f"lrp: there is no rule for '{operation}', which carries relevance in this captioner; "
            "explain it by another method"
        )

    @classmethod
    def in_place(cls, operation: str) -> "NotApplicableError":
        """An operation overwrites, or needs, numbers that gradients are taken through."""
        return cls(
            f"'{operation}' meets numbers that this captioner changes in place, where they cannot "
            "be followed; explain it by attention or occlusion"
        )


class MissingExtraError(SightlineError):
    """An optional part of Sightline that is not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional extra: pip install 'sightline[{extra}]'")
