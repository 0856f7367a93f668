"""Workers end with the process that started them, from their first moment on."""

import os
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import multiprocessing, os, signal, time
from sightline.encoders.workers import leash_spawned_workers
if __name__ == "__main__":
    import slow  # not with the main module, which a worker imports before anything else
    if {leashed}:
        leash_spawned_workers()
    worker = multiprocessing.get_context("spawn").Process(target=slow.work)
    worker.start()
    open("pid", "w").write(str(worker.pid))
    while not os.path.exists("importing"):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""

SLOW = """
import multiprocessing, pathlib, sys, time
if "--multiprocessing-fork" in sys.orig_argv:  # a worker, which takes its time to import this
    pathlib.Path("importing").touch()
    time.sleep(20)
def work(): pass
"""


# Torch's own processes, in the background, where SIGINT is ignored.
OF_TORCH = """
import os, signal, time
from sightline.encoders.workers import leash_spawned_workers
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from torch.multiprocessing import start_processes
    import slow
    if {leashed}:
        leash_spawned_workers()
    context = start_processes(slow.wait, nprocs=1, join=False, start_method="spawn")
    open("pid", "w").write(str(context.pids()[0]))
    while not os.path.exists("waiting"):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""

WAITING = """
import pathlib, time
def wait(rank):
    pathlib.Path("waiting").touch()
    time.sleep(20)
"""


def outlives(folder: Path, leashed: bool, program: str = PROGRAM, slow: str = SLOW) -> bool:
    """Whether a worker is still there a second after its parent was killed."""
    folder.mkdir()
    (folder / "program.py").write_text(program.format(leashed=leashed))
    (folder / "slow.py").write_text(slow)
    subprocess.run([sys.executable, "program.py"], cwd=folder, check=False, timeout=60)
    pid = int((folder / "pid").read_text())
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]:
            return False
        time.sleep(0.02)
    os.kill(pid, 9)
    return True


def test_a_worker_that_is_still_importing_ends_with_its_parent(tmp_path):
    assert outlives(tmp_path / "without", leashed=False)
    assert not outlives(tmp_path / "with", leashed=True)


def test_a_worker_of_torch_in_the_background_ends_with_its_parent(tmp_path):
    assert outlives(tmp_path / "without", False, OF_TORCH, WAITING)
    assert not outlives(tmp_path / "with", True, OF_TORCH, WAITING)
