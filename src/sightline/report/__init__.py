"""Pictures and pages of captions and of what they rest on.

Importing anything from here teaches captions and explanations to draw themselves.
"""

from sightline.report import attention_figure, notebook

__all__ = ["attention_figure", "notebook"]
