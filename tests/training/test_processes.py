"""What is said when several processes train and do not end well."""

import pytest

from sightline.errors import TrainingError
from sightline.training.processes import launch


class Fabric:
    """Two processes, of which one complains; then this one is left with an error."""

    world_size = 2

    def __init__(self, error):
        self.error = error

    def launch(self, work):
        work.keywords["failures"].put("connection closed by peer")
        raise self.error


def test_a_failure_of_a_process_is_said():
    with pytest.raises(TrainingError, match="connection closed by peer"):
        launch(Fabric(RuntimeError("a process ended")), print)


def test_a_signal_is_no_failure_whatever_processes_say_as_they_end():
    with pytest.raises(KeyboardInterrupt):
        launch(Fabric(KeyboardInterrupt()), print)
