"use strict";

/** For whoever runs a blind comparison: links, how far raters are, and on request the results. */
{
  const { make, many, ask } = sightline;
  const page = document.getElementById("page");
  page.classList.add("blind");
  const percent = ({ mean, low, high }) => (mean === null ? "-" : `${(100 * mean).toFixed(0)} % (${(100 * low).toFixed(0)} to ${(100 * high).toFixed(0)})`);
  const table = (id, header, rows) => make("div", { class: "wide", tabindex: 0, role: "region", "aria-labelledby": id },
    make("table", { class: "numbers" }, make("thead", {}, make("tr", {}, header.map((cell) => make("th", { scope: "col" }, cell)))),
      make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell, n) => make(n ? "td" : "th", n ? {} : { scope: "row" }, cell)))))));

  const results = make("div", { id: "results" });
  const reveal = async () => {
    try {
      const { systems: [first, second], questions } = await ask("/blind/results");
      results.replaceChildren(
        make("p", {}, `First is ${first}, second is ${second}. Percent of answers, with 95 % intervals over pictures.`),
        table("results-title", ["Question", "First wins", "Ties", "Second wins", "α", "Answers"], Object.entries(questions).map(([name, of]) => [
          name, percent(of.wins), percent(of.ties), percent(of.losses),
          of.alpha.value === null ? "-" : of.alpha.value.toFixed(2), String(of.answers)])));
    } catch (error) { results.replaceChildren(make("p", { role: "alert" }, error.message)); }
  };
  ask("/blind/state").then((state) => {
    page.replaceChildren(
      make("header", { class: "top" }, make("h1", { class: "title-small" }, "Blind comparison")),
      make("p", { class: "quiet" }, many(state.pairs, "pair") + (state.identical ? `; for ${state.identical} more the two captions are the same, which counts as a tie` : "")),
      make("section", {}, make("h2", { id: "raters-title" }, "Raters"),
        make("p", { class: "quiet" }, "Send each rater their own link. Whoever has a link can answer for that rater."),
        table("raters-title", ["Rater", "Link", "Answered", "Attention checks"], state.raters.map((rater) => [
          rater.name,
          make("a", { href: rater.link }, `${location.origin}${rater.link}`),
          `${rater.done} of ${rater.of}`,
          rater.checks.asked ? `${rater.checks.right} of ${rater.checks.asked} right${rater.counted ? "" : ": not counted"}` : "-"]))),
      make("section", {}, make("h2", { id: "results-title" }, "Results"),
        make("p", { class: "quiet" }, "They name the systems. Look at them when everybody is done."),
        make("div", { class: "acts" },
          make("button", { class: "plain", id: "reveal", onclick: reveal }, "Show results"),
          make("a", { href: "/blind/tables/csv", download: "" }, "Answers as CSV"),
          make("a", { href: "/blind/tables/jsonl", download: "" }, "Answers as JSONL")),
        results));
  }).catch((error) => page.replaceChildren(make("p", { role: "alert" }, error.message)));
}
