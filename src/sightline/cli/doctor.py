"""`sightline doctor`."""

import sys
from dataclasses import asdict

import click

from sightline.cli.options import json_option, print_json


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Describe this machine and test that Sightline works on it, in about ten seconds. (The first
    time, METEOR's table of paraphrases is indexed if it is installed: about twenty seconds more.)

    Include the output when you report a problem. It has no paths, names or pictures of yours. The
    exit code is 1 if a test fails.
    """
    from sightline.doctor import describe_machine, self_test

    machine = describe_machine()
    if not as_json:
        for name, value in machine.items():
            click.echo(f"{name + ':':<17} {value}")
        click.echo()
    checks = self_test()
    if as_json:
        print_json({"machine": machine, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            mark = "works" if check.held else "FAILS"
            click.echo(f"{check.name + ':':<17} {mark} ({check.seconds:.1f} s): {check.detail}")
    sys.exit(not all(check.held for check in checks))
