"""How fast `sightline serve` captions, and whether its memory stays flat.

python benchmarks/serve.py                     throughput and latency at 1, 8 and 64 clients
python benchmarks/serve.py --memory 5000       memory over so many requests

Each round measures the bare captioner (`Captioner.captions` on the same bytes, with as many
pictures in a batch as clients ask, at most 16) and then the server, so that both meet the same
machine. The ratio is the median over rounds. Clients are threads of one process that ask again as
soon as they are answered. Everything stays on this machine.
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

from sightline.captioner import Captioner

PICTURES = sorted((Path(__file__).parents[1] / "examples" / "others").glob("*.jpg"))
BATCH = 16


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--pictures", type=int, default=64, help="in a round")
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
    ratios = {clients: [] for clients in options.clients}
    speeds = {clients: [] for clients in options.clients}
    seconds = {clients: [] for clients in options.clients}
    for _ in range(options.rounds):
        for clients in options.clients:
            bare = bare_speed(captioner, pictures, options.pictures, min(clients, BATCH))
            began = time.perf_counter()
            seconds[clients] += server.ask(pictures, options.pictures, clients)
            speed = options.pictures / (time.perf_counter() - began)
            speeds[clients].append(speed)
            ratios[clients].append(speed / bare)
            print(f"{clients} clients: {speed:.2f} a second, bare {bare:.2f}", file=sys.stderr)
    print(f"{options.rounds} rounds of {options.pictures} pictures, {os.cpu_count()} cores\n")
    print("| clients | pictures a second | of the bare captioner | p50 | p95 | p99 |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for clients in options.clients:
        p50, p95, p99 = (quantile(seconds[clients], q) for q in (0.5, 0.95, 0.99))
        print(
            f"| {clients} | {statistics.median(speeds[clients]):.1f} | "
            f"{statistics.median(ratios[clients]):.0%} "
            f"({min(ratios[clients]):.0%} to {max(ratios[clients]):.0%}) | "
            f"{p50:.2f} s | {p95:.2f} s | {p99:.2f} s |"
        )


def bare_speed(captioner, pictures, count, batch):
    many = [*itertools.islice(itertools.cycle(pictures), count)]
    began = time.perf_counter()
    for start in range(0, count, batch):
        captioner.captions(many[start : start + batch])
    return count / (time.perf_counter() - began)


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

    def resident(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def form(picture):
    head = b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    return head + picture + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


if __name__ == "__main__":
    main()
