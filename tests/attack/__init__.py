"""The attack: hostile pictures, tampered files and kills, and the law that holds for all of them.

`python -m attack` runs it from the repository; `tests/attack/README.md` says how.
"""
