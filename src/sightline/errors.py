"""The errors a user can cause.

Every message is one line that says what is wrong, where, and what to do about it. The command line
prints it and exits with code 2; a traceback is a bug.
"""


class SightlineError(Exception):
    """Something the user can put right; base of the whole family."""


class DataError(SightlineError):
    """A caption file, box file or dataset that does not hold what it should."""


class PictureError(SightlineError):
    """A picture that cannot be read."""


class DamagedPictureError(PictureError):
    """A picture that begins well and then breaks off or turns to nonsense."""


class WeightsError(SightlineError):
    """Encoder weights that are absent, damaged or of another network."""


class CacheError(SightlineError):
    """A region cache that is absent, in use, or does not hold what was asked of it."""


class CheckpointError(SightlineError):
    """A checkpoint that is absent, damaged or of another model."""


class TrainingError(SightlineError):
    """A run that cannot go on."""


class ConfigError(SightlineError):
    """A recipe, an option or a checkpoint's configuration that does not say what it should."""


class NotApplicableError(SightlineError):
    """An explanation method that cannot explain this captioner; others may."""

    @classmethod
    def no_rule(cls, operation: str) -> "NotApplicableError":
        """LRP came to an operation that it has no rule for."""
        return cls(
            f"lrp: there is no rule for '{operation}', which carries relevance in this captioner; "
            "explain it by another method"
        )


class MissingExtraError(SightlineError):
    """An optional part of Sightline that is not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional part: pip install 'sightline[{extra}]'")
