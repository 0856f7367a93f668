"""`python -m sightline`: the command line where no script is on the path."""

from sightline.cli.main import main

main()
