"""`python -m attack`, from the repository: the harness in tests/attack."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).with_name("tests")))
    from attack.__main__ import main

    main()
