"""What the page's script does, in a browser: only where there is one (Chromium or Chrome)."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sightline.report.page import render_page

pytestmark = pytest.mark.browser

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

# What a person would do, and what they would find, kept in an attribute that Python reads.
VISIT = """
<script>
const states = {};
const pause = () => new Promise((done) => setTimeout(done, 1));
const press = (key) =>
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const heat = document.getElementById("heat");
function look() {
  const at = (x) => [...heat.getContext("2d").getImageData(x, 20, 1, 1).data];
  return {
    pressed: words.map((word) => word.getAttribute("aria-pressed") === "true"),
    signs: [document.getElementById("start"), ...words].map((word) => word.dataset.sign ?? ""),
    summary: document.getElementById("summary").textContent,
    details: document.getElementById("details").textContent,
    replaced: words.findIndex((word) => word.classList.contains("replaced")),
    focus: words.indexOf(document.activeElement),
    left: heat.hidden ? null : at(5),
    right: heat.hidden ? null : at(55),
    opacity: heat.style.opacity,
    grey: getComputedStyle(document.querySelector("#picture img")).filter,
  };
}
async function step(name, act) {
  act();
  await pause();
  states[name] = look();
}
const set = (id, value) => {
  const input = document.getElementById(id);
  if (input.type === "checkbox") input.checked = value;
  else input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
(async () => {
  // Pictures are decoded in real time, timers run in virtual time: wait in small steps.
  let ready = false;
  Promise.all(data.explanations.map(levels)).then(() => { ready = true; });
  while (!ready) await pause();
  await step("first", () => {});
  await step("home", () => { words[3].focus(); press("Home"); });
  await step("right", () => press("ArrowRight"));
  await step("end", () => press("End"));
  await step("left", () => press("ArrowLeft"));
  await step("escape", () => press("Escape"));
  await step("hover", () => { words[1].dispatchEvent(new PointerEvent("pointerenter")); });
  await step("leave", () => { words[1].dispatchEvent(new PointerEvent("pointerleave")); });
  await step("click", () => words[1].click());
  await step("common", () => set("common", true));
  await step("contrast", () => { set("common", false); set("contrast", 2); });
  await step("opacity", () => { set("contrast", 1); set("opacity", 30); set("grey", false); });
  await step("attention", () => document.querySelector('[value="attention"]').click());
  states.wicked = window.wicked === undefined;
  document.body.dataset.states = JSON.stringify(states);
})();
</script>
"""


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory):
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome here")

    def run(page: str) -> dict:
        folder: Path = tmp_path_factory.mktemp("page")
        (folder / "page.html").write_text(
            page.replace("</body>", f"{VISIT}</body>"), encoding="utf-8"
        )
        done = subprocess.run(
            [
                *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu"),
                *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=100000"),
                *("--dump-dom", (folder / "page.html").as_uri()),
            ],
            capture_output=True,
            text=True,
            timeout=180,
        )
        content = re.search(r'<body data-states="([^"]*)"', done.stdout)
        assert content is not None, done.stderr
        return json.loads(html.unescape(content[1]))

    return run


ORANGE, BLUE = [255, 128, 0], [30, 110, 255]


def test_a_visit(make_report, browse) -> None:
    states = browse(render_page(make_report()))

    first = states["first"]
    assert first["pressed"] == [False, False, False, True]  # the word that was asked for
    assert first["summary"].startswith("LRP of “dog”: strongest for the word at the top left")
    assert "Why not “dog”?Probability as word 2, instead of “cat” (40 %)" in first["details"]
    assert first["replaced"] == 1
    assert first["signs"] == ["for", "against", "", "", ""]
    assert first["left"] == [*ORANGE, 255]
    assert first["right"][:3] == pytest.approx(BLUE, abs=2)
    assert first["right"][3] == pytest.approx(128, abs=2)
    assert (first["opacity"], first["grey"]) == ("0.85", "grayscale(1)")

    assert states["home"]["pressed"].index(True) == states["home"]["focus"] == 0
    assert states["home"]["signs"] == ["for", "", "", "", ""]
    assert states["right"]["pressed"].index(True) == states["right"]["focus"] == 1
    assert states["end"]["focus"] == 3
    assert states["left"]["focus"] == 2
    assert states["left"]["signs"] == ["for", "against", "for", "", ""]
    assert "✗ Not supported: support 0.10" in states["left"]["details"]

    for state in ("escape", "leave"):
        assert not any(states[state]["pressed"])
        assert states[state]["summary"] == "The picture without a heatmap."
        assert states[state]["left"] is None
        assert states[state]["grey"] == "none"
    assert states["hover"]["summary"].startswith("LRP of “cat”")
    assert not any(states["hover"]["pressed"])
    assert states["click"]["pressed"] == [False, True, False, False]

    # On the scale of "sleeps", which has half as much again, "cat" is paler.
    assert states["common"]["left"][3] == pytest.approx(255 * 2 / 3, abs=2)
    assert states["contrast"]["right"][3] == pytest.approx(255, abs=2)
    assert (states["opacity"]["opacity"], states["opacity"]["grey"]) == ("0.3", "none")
    assert states["attention"]["summary"].startswith("Attention of “cat”")
    assert states["attention"]["right"][:3] == pytest.approx(ORANGE, abs=2)
    assert states["attention"]["signs"] == [""] * 5
    assert "Sources of relevance" not in states["attention"]["details"]


def test_a_wicked_caption_stays_text(make_report, browse) -> None:
    wicked = ("</script><script>wicked=1</script>", '"><img src=x onerror=wicked=2>', "<!--")
    states = browse(render_page(make_report(said=wicked)))
    assert states["wicked"]
    assert wicked[1] in states["click"]["details"]
