"""Image captions you can check: every word shows what it looked at."""

__version__ = "0.1.0"
