"use strict";

/** Show an audit in an element: what the judge says of one or two systems' captions, worst first. */
sightline.showAudit = (root, data) => {
  const { make } = sightline;
  root.replaceChildren(
    make("header", { class: "top" }, make("p", { class: "brand" }, "Sightline"),
      make("p", { class: "quiet" }, `judged by ${data.judge.name}, which knows ${data.judge.words.toLocaleString("en")} words`)),
    make("h1", { class: "title" }, data.title),
    make("p", { class: "lead" }, data.headline),
    ...data.notes.map((note) => make("p", { class: "banner" }, note)),
    sightline.auditSystems(data),
    ...[sightline.auditComparison(data), sightline.auditMadeUp(data), sightline.auditKinds(data), sightline.auditCalibration(data),
      sightline.auditUnknown(data), sightline.auditProblems(data)].filter((section) => section !== null),
  );
  const [section, state] = sightline.auditGallery(data);
  root.append(section);
  return state;
};

sightline.auditVerdicts = [["seen", "seen"], ["doubtful", "doubtful"], ["not supported", "unsupported"], ["unknown", "unknown"]];
sightline.percent = (share) => `${(100 * share).toFixed(share !== 0 && Math.abs(share) < 0.0995 ? 1 : 0)} %`;

/** A bar of four verdicts; the numbers stand beside it as text. */
sightline.auditBar = (counts) => {
  const bar = sightline.make("span", { class: "stack", "aria-hidden": "true" });
  for (const [verdict, tone] of sightline.auditVerdicts) {
    if (!counts[verdict]) continue;
    const part = sightline.make("span", { class: tone });
    part.style.setProperty("flex-grow", counts[verdict]);
    bar.append(part);
  }
  return bar;
};

sightline.auditSection = (title, ...children) =>
  sightline.make("section", { class: "audited" }, sightline.make("h2", {}, title), ...children);

sightline.auditTable = (header, rows, kind = "") => {
  const { make } = sightline;
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": header[0] },
    make("table", { class: `audit ${kind}` },
      make("thead", {}, make("tr", {}, header.map((cell) => make("th", { scope: "col" }, cell)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, n) => (n === 0 ? make("th", { scope: "row" }, cell) : make("td", {}, cell))))))));
};

/** How often words have each verdict, of each system. */
sightline.auditSystems = (data) => {
  const { make, percent } = sightline;
  const labels = { seen: "seen", doubtful: "doubtful", "not supported": "not supported", unknown: "unknown to the judge" };
  return make("section", { class: "systems" }, data.systems.map((system) => make("article", { class: "panel" },
    make("h2", {}, system.name),
    make("p", { class: "quiet" }, system.sentence),
    sightline.auditBar(system),
    make("ul", { class: "legend" }, sightline.auditVerdicts.map(([verdict, tone]) => make("li", { class: tone },
      make("span", { class: "swatch", "aria-hidden": "true" }),
      make("strong", {}, system.words ? percent(system[verdict] / system.words) : "–"),
      ` ${labels[verdict]} `, make("span", { class: "quiet" }, `(${system[verdict].toLocaleString("en")})`)))),
    Object.keys(system.metrics).length ? make("p", { class: "quiet" }, "By the references: ",
      Object.entries(system.metrics).map(([name, value]) => `${name} ${value === null ? "–" : (100 * value).toFixed(1)}`).join(" · ")) : null)));
};

sightline.auditComparison = (data) => {
  if (!data.comparison.length) return null;
  const show = (value, sign) => (value === null ? "–" : `${sign && value > 0 ? "+" : ""}${(100 * value).toFixed(1)}`);
  return sightline.auditSection("Side by side",
    sightline.make("p", { class: "quiet" }, data.comparison_note),
    sightline.auditTable(["", data.systems[0].name, data.systems[1].name, "difference", "95 % interval", "p"], data.comparison.map((row) => [
      row.name, show(row.value), show(row.other), show(row.difference, true),
      row.low === null ? "–" : `${show(row.low, true)} to ${show(row.high, true)}`, row.p === null ? "–" : row.p.toFixed(4)]), "figures"));
};

sightline.auditMadeUp = (data) => {
  const { make } = sightline;
  const shown = new Set(data.pictures.map(({ number }) => number));
  const tables = data.systems.filter(({ made_up }) => made_up.length).map((system) => make("div", {},
    data.systems.length > 1 ? make("h3", {}, system.name) : null,
    sightline.auditTable(["word", "kind", "not supported", "the judge would rather say", "examples"], system.made_up.map((row) => [
      row.text, row.kind, `${row.unsupported} of ${row.said}`, row.instead.join(", ") || "–",
      make("span", {}, row.examples.filter(([picture]) => shown.has(picture)).flatMap(([picture], n) => [
        n ? ", " : null, make("a", { href: `#picture-${picture}` }, `${picture + 1}`)]))]))));
  return tables.length ? sightline.auditSection("Words most often made up", ...tables) : null;
};

sightline.auditKinds = (data) => {
  const { make, percent } = sightline;
  const rows = data.systems.flatMap((system) => system.kinds.map((row) => [
    data.systems.length > 1 ? `${row.kind} · ${system.name}` : row.kind,
    row.words.toLocaleString("en"), sightline.auditBar(row), percent(row.seen / row.words), percent(row.doubtful / row.words),
    percent(row["not supported"] / row.words), percent(row.unknown / row.words)]));
  return sightline.auditSection("By kind of word",
    sightline.auditTable(["kind", "words", "", "seen", "doubtful", "not supported", "unknown"], rows, "figures"));
};

sightline.auditCalibration = (data) => {
  const systems = data.systems.filter(({ calibration }) => calibration);
  const tables = systems.length
    ? systems.map((system) => [data.systems.length > 1 ? system.name : null, system.calibration])
    : data.judge.calibration ? [[null, data.judge.calibration]] : [];
  if (!tables.length) return null;
  const { make } = sightline;
  return sightline.auditSection("Calibration", make("p", { class: "quiet" }, data.calibration_note),
    ...tables.map(([name, bins]) => make("div", {}, name ? make("h3", {}, name) : null, sightline.auditPlot(bins))));
};

/** Bars of the share that is right, for each bin of support, with the support as a line. */
sightline.auditPlot = (bins) => {
  const { make, percent } = sightline;
  return make("ol", { class: "bins" }, bins.map((bin) => {
    const bar = make("span", { class: "bar-right" });
    bar.style.setProperty("block-size", `${100 * bin.right}%`);
    const mark = make("span", { class: "bar-support" });
    mark.style.setProperty("inset-block-end", `${100 * bin.support}%`);
    return make("li", {},
      make("span", { class: "column", "aria-hidden": "true" }, bar, mark),
      make("span", {}, percent(bin.right)),
      make("span", { class: "quiet" }, `${Math.round(100 * bin.low)}–${Math.round(100 * bin.high)}`),
      make("span", { class: "quiet" }, sightline.many(bin.words, "word")));
  }));
};

sightline.auditUnknown = (data) => {
  const { make } = sightline;
  const counts = new Map();
  for (const { text, read_as, said } of data.systems.flatMap(({ unknown_words }) => unknown_words)) {
    counts.set(text, { read_as, said: said + (counts.get(text)?.said ?? 0) });
  }
  if (!counts.size) return null;
  return sightline.auditSection("Words that the judge does not know",
    make("p", { class: "quiet" }, "They are counted apart: they are neither supported nor made up. Where a known word is near in form or meaning, it was read instead."),
    make("ul", { class: "unknown-words" }, [...counts].sort(([, a], [, b]) => b.said - a.said).slice(0, 60).map(([text, { read_as, said }]) =>
      make("li", {}, text, read_as ? make("span", { class: "quiet" }, ` read as ${read_as}`) : null, said > 1 ? make("span", { class: "quiet" }, ` × ${said}`) : null))));
};

sightline.auditProblems = (data) => {
  const { make } = sightline;
  if (!data.problems.length) return null;
  return sightline.auditSection("Not judged", make("ul", {}, data.problems.slice(0, 100).map(({ picture, why }) => make("li", {}, `${picture}: ${why}`))));
};

/** One caption with its verdicts; a word tells what the judge would rather have said. */
sightline.auditLine = (caption) => sightline.make("span", { class: "line" }, caption.words.flatMap((word) => {
  const tone = word.verdict === "unknown" ? "unknown-word" : sightline.toneOf(word.verdict) ?? "";
  const said = word.verdict === "unknown" ? ", unknown to the judge" : word.verdict && word.verdict !== "seen" ? `, ${word.verdict}` : null;
  return [sightline.make("span", { class: `word ${tone}`, title: word.note },
    sightline.make("span", { class: "text" }, word.text),
    word.verdict ? sightline.make("span", { class: "mark", "aria-hidden": "true" }, sightline.marks[word.verdict] ?? "–") : null,
    said ? sightline.spoken(said) : null), " "];
}));

sightline.auditGallery = (data) => {
  const { make } = sightline;
  const has = (verdict) => ({ captions }) => captions.some(({ words }) => words.some((word) => word.verdict === verdict));
  const kinds = {
    all: ["All", () => true],
    unsupported: ["With words not supported", has("not supported")],
    doubtful: ["With doubtful words", has("doubtful")],
    unknown: ["With unknown words", has("unknown")],
    unfamiliar: ["Unfamiliar pictures", ({ unfamiliar }) => unfamiliar],
  };
  const state = sightline.share({ kind: "all", text: "" });
  const items = new Map(data.pictures.map((picture) => {
    const image = make("img", { src: picture.thumbnail, width: picture.width, height: picture.height, alt: "", loading: "lazy" });
    return [picture, make("li", { id: `picture-${picture.number}` }, make("div", { class: "entry" },
      picture.page ? make("a", { href: picture.page, "aria-label": `Why? The explanation page of ${picture.name}` }, image) : image,
      picture.captions.map((caption) => make("div", {},
        data.systems.length > 1 ? make("span", { class: "quiet system" }, data.systems[caption.system].name) : null,
        sightline.auditLine(caption),
        caption.note ? make("span", { class: "note" }, caption.note) : null)),
      picture.unfamiliar ? make("span", { class: "banner" }, "This picture is unlike those that the judge knows: its verdicts may be wrong.") : null,
      picture.references.length ? make("details", { class: "quiet" }, make("summary", {}, "References"),
        make("ul", {}, picture.references.map((text) => make("li", {}, text)))) : null,
      make("span", { class: "quiet" }, `${picture.number + 1} · ${picture.name}`, picture.page ? " · " : null,
        picture.page ? make("a", { href: picture.page }, "why?") : null)))];
  }));
  const list = make("ul", { class: "gallery", id: "gallery" });
  const count = make("p", { id: "count", role: "status", class: "quiet" });
  const present = Object.entries(kinds).filter(([name, [, test]]) => name === "all" || data.pictures.some(test));
  const search = make("input", { type: "search", id: "search", oninput: () => state.set({ text: search.value }) });
  state.follow(({ kind, text }) => {
    const sought = text.trim().toLowerCase();
    const matches = ({ name, captions }) => `${name} ${captions.map((caption) => caption.text).join(" ")}`.toLowerCase().includes(sought);
    const shown = data.pictures.filter((picture) => kinds[kind][1](picture) && matches(picture));
    list.replaceChildren(...shown.map((picture) => items.get(picture)));
    count.textContent = `${shown.length} of the ${data.pictures.length} worst pictures; ${data.audited.toLocaleString("en")} were judged`;
  });
  return [sightline.auditSection("Captions, worst first",
    make("div", { class: "bar" },
      make("fieldset", { class: "filters" }, make("legend", {}, "Show"), present.map(([name, [label, test]]) => make("label", {},
        make("input", { type: "radio", name: "kind", value: name, checked: name === "all", onchange: () => state.set({ kind: name }) }),
        ` ${label} (${data.pictures.filter(test).length})`))),
      make("label", { for: "search" }, "Find "), search),
    count, list), state];
};
