"""How fast `sightline serve` captions, and whether its memory stays flat.

python benchmarks/serve.py                     throughput and latency at 1, 8 and 64 clients
python benchmarks/serve.py --memory 5000       memory over so many requests

The bare captioner is `Captioner.captions` on the same bytes, with as many pictures in a batch as
clients ask, at most 16. Rounds measure it and the server in turn, so that both meet the same
machine. The ratio of speeds is the median over rounds. On a machine that does other things, too,
the ratio of processor times says more: it is what the server adds to each picture. Clients are
threads of one process that ask again as soon as they are answered. Everything stays on this
machine.
"""

import argparse
import http.client
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from sightline.captioner import Captioner

PICTURES = sorted((Path(__file__).parents[1] / "examples" / "others").glob("*.jpg"))
BATCH = 16


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument(
        "--pictures", type=int, default=64, help="in a round, at least one for each client"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, metavar="N", help="requests to watch memory over")
    parser.add_argument("--model", type=Path, help="default: the bundled captioner")
    options = parser.parse_args()
    pictures = [path.read_bytes() for path in PICTURES]
    with Server(options.model) as server:
        server.ask(pictures, 4, 1)  # loads the captioner
        if options.memory:
            watch_memory(server, pictures, options.memory)
        else:
            measure(server, pictures, options)


def measure(server, pictures, options):
    captioner = Captioner.load(*([options.model] if options.model else []))
    captioner.captions(pictures[:2])
    runs = {clients: [] for clients in options.clients}
    for number in range(options.rounds):
        for clients in options.clients:
            count = max(options.pictures, clients)
            many = [*itertools.islice(itertools.cycle(pictures), count)]
            parts = [
                lambda many=many, clients=clients: measure_bare(captioner, many, clients),
                lambda many=many, clients=clients: measure_server(server, many, clients),
            ]
            order = (0, 1) if number % 2 == 0 else (1, 0)
            both = dict(zip(order, [parts[n]() for n in order], strict=True))
            runs[clients].append(Round(*both[0][:2], *both[1]))
            print(clients, "clients:", runs[clients][-1].describe(count), file=sys.stderr)
    print(f"{options.rounds} rounds of {options.pictures} pictures, {os.cpu_count()} cores\n")
    print(
        "| clients | pictures a second | of the bare captioner | by processor time | p50 | p95 "
        "| p99 |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for clients, rounds in runs.items():
        waits = [wait for one in rounds for wait in one.waits]
        speed = statistics.median(len(one.waits) / one.seconds for one in rounds)
        print(
            f"| {clients} | {speed:.1f} | {spread([one.speed_ratio for one in rounds])} | "
            f"{spread([one.work_ratio for one in rounds])} | "
            + " | ".join(f"{quantile(waits, q):.2f} s" for q in (0.5, 0.95, 0.99))
            + " |"
        )


class Round(NamedTuple):
    """The same pictures by the bare captioner and by the server."""

    bare_seconds: float
    bare_work: float  # processor time
    seconds: float
    work: float
    waits: list  # of each client for each picture

    @property
    def speed_ratio(self):
        return self.bare_seconds / self.seconds

    @property
    def work_ratio(self):
        return self.bare_work / self.work

    def describe(self, count):
        return (
            f"{count / self.seconds:.2f} a second, bare {count / self.bare_seconds:.2f}; "
            f"processor {self.work / count:.3f} s each, bare {self.bare_work / count:.3f}"
        )


def measure_bare(captioner, pictures, clients):
    batch = min(clients, BATCH)
    began, work = time.perf_counter(), time.process_time()
    for start in range(0, len(pictures), batch):
        captioner.captions(pictures[start : start + batch])
    return time.perf_counter() - began, time.process_time() - work


def measure_server(server, pictures, clients):
    began, work = time.perf_counter(), server.processor_time()
    waits = server.ask(pictures, len(pictures), clients)
    return time.perf_counter() - began, server.processor_time() - work, waits


def spread(ratios):
    return f"{statistics.median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})"


def quantile(values, q):
    return sorted(values)[min(int(q * len(values)), len(values) - 1)]


def watch_memory(server, pictures, count):
    print("| requests | resident memory |\n| ---: | ---: |")
    step = max(count // 10, 1)
    for done in range(0, count + 1, step):
        print(f"| {done} | {server.resident():.0f} MB |", flush=True)
        if done < count:
            server.ask(pictures, step, 8)


class Server:
    """A `sightline serve` of its own, on a free port of this machine."""

    def __init__(self, model):
        self.command = [sys.executable, "-m", "sightline", "serve", "--port", "0"]
        self.command += ["--model", str(model)] if model else []

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1].strip("/\n"))
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(30)

    def ask(self, pictures, count, clients):
        """Caption `count` pictures; the seconds that each took."""
        numbers, seconds, errors = iter(range(count)), [], []
        lock = threading.Lock()

        def client():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                began = time.perf_counter()
                body, kind = form(pictures[number % len(pictures)])
                connection.request("POST", "/v1/caption", body, {"Content-Type": kind})
                answer = connection.getresponse()
                content = answer.read()
                seconds.append(time.perf_counter() - began)
                if answer.status != 200:
                    errors.append(content)

        threads = [threading.Thread(target=client) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors[:3]
        assert len(seconds) == count
        return seconds

    def processor_time(self):
        """The seconds that its process has computed so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def form(picture):
    head = b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    return head + picture + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


if __name__ == "__main__":
    main()
