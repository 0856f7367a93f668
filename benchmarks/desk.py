"""How long someone waits at the page of `sightline serve`, from the drop of a picture.

python benchmarks/desk.py                     nine pictures, dropped one after the other

A server and a headless Chromium are started. For each picture: when its caption is on the page,
when the verdicts of its words are, and when all heatmaps are. Beside the time on the clock stands
the processor time that the server took until then, which other work on the machine changes less.
"""

import argparse
import base64
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from serve import PICTURES, Server

PARTS = ("caption", "verdicts", "heatmaps")
# In the page: drops a file, and tells when each part of the report is there.
DROP = """async ([name, content]) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name, { type: "image/jpeg" }));
  const find = (selector) => Boolean(document.querySelector(selector));
  const shown = () => document.querySelector(".top .quiet")?.textContent === name;
  const parts = {
    caption: () => shown(),
    verdicts: () => shown() && find("#caption .mark, #verdict.seen"),
    heatmaps: () => shown() && find("#glance") && find("#progress.idle"),
  };
  const began = performance.now();
  const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
  document.body.dispatchEvent(drop);
  for (const [part, isThere] of Object.entries(parts)) {
    while (!isThere()) await new Promise(requestAnimationFrame);
    await noted(part, (performance.now() - began) / 1000);
  }
}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="default: the bundled captioner")
    options = parser.parse_args()
    waits = {part: [] for part in PARTS}
    work = {part: [] for part in PARTS}
    with Server(options.model) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        began = 0.0

        def noted(part, seconds):
            waits[part].append(seconds)
            work[part].append(server.processor_time() - began)

        page.expose_function("noted", noted)
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.wait_for_timeout(10_000)  # someone looks for a picture
        for path in PICTURES:
            began = server.processor_time()
            page.evaluate(DROP, [path.name, base64.b64encode(path.read_bytes()).decode()])
            print(path.name, *(f"{waits[part][-1]:.2f}" for part in PARTS), file=sys.stderr)
        browser.close()
    print("| from the drop to | median | fastest | slowest | processor time (median, slowest) |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for part in PARTS:
        times = [statistics.median(waits[part]), min(waits[part]), max(waits[part])]
        computed = f"{statistics.median(work[part]):.2f} s, {max(work[part]):.2f} s"
        print(f"| {part} | {' | '.join(f'{time:.2f} s' for time in times)} | {computed} |")


if __name__ == "__main__":
    main()
