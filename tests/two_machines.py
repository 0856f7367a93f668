"""Two machines on one: network namespaces, joined by a cable."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Machine:
    """What runs on it has a network of its own, and the same files."""

    namespace: str
    address: str
    interface: str

    @property
    def run(self) -> list[str]:
        """What a command line begins with to run here."""
        return ["ip", "netns", "exec", self.namespace]

    def processes(self) -> list[int]:
        """All that runs here."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]

    def kill(self) -> int:
        """Kill everything that runs here, and nothing else; how many processes that were."""
        pids = self.processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(pids)


@contextlib.contextmanager
def two_machines() -> Iterator[tuple[Machine, Machine]]:
    """Two of them; what runs there in the end is killed."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs the right to make network namespaces")
    mine = os.getpid()
    first, second = (
        Machine(f"sightline-{mine}-{n}", f"10.231.7.{n}", f"v{mine}{end}")
        for n, end in ((1, "a"), (2, "b"))
    )
    run = lambda *words: subprocess.run(words, check=True, capture_output=True)  # noqa: E731
    try:
        for machine in (first, second):
            run("ip", "netns", "add", machine.namespace)
        cable = ["ip", "link", "add", first.interface, "netns", first.namespace, "type", "veth"]
        run(*cable, "peer", "name", second.interface, "netns", second.namespace)
        for machine, other in ((first, second), (second, first)):
            device = machine.interface
            run(*machine.run, "ip", "addr", "add", f"{machine.address}/24", "dev", device)
            run(*machine.run, "ip", "link", "set", device, "up")
            run(*machine.run, "ip", "link", "set", "lo", "up")
            # Packets go nowhere, but programs ask for this route to know their own address.
            run(*machine.run, "ip", "route", "add", "default", "via", other.address)
        yield first, second
    finally:
        for machine in (first, second):
            machine.kill()
        for machine in (first, second):
            subprocess.run(
                ["ip", "netns", "del", machine.namespace], check=False, capture_output=True
            )
