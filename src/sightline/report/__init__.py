"""Figures and pages that show captions and their explanations.

Importing this package lets captions and explanations draw themselves.
"""

from sightline.report import attention_figure, notebook

__all__ = ["attention_figure", "notebook"]
