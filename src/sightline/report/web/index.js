"use strict";

/** Show an index over several pictures in an element: thumbnails, verdicts, and what to show of them. */
sightline.showIndex = (root, data) => {
  const { make, spoken } = sightline;
  const kinds = {
    all: ["All", () => true],
    unsupported: ["With words not supported", ({ tone }) => tone === "unsupported"],
    doubtful: ["With doubtful words", ({ words }) => words.some(({ verdict }) => verdict === "doubtful")],
    seen: ["Everything seen", ({ tone }) => tone === "seen"],
    unchecked: ["Not checked", ({ tone }) => tone === "unchecked"],
    unfamiliar: ["Unfamiliar pictures", ({ unfamiliar }) => Boolean(unfamiliar)],
  };
  const orders = {
    worst: ["Worst first", (a, b) => b.doubt - a.doubt],
    best: ["Best first", (a, b) => a.doubt - b.doubt],
    name: ["By name", (a, b) => a.name.localeCompare(b.name, "en", { numeric: true })],
  };
  const state = sightline.share({ kind: "all", order: "worst", text: "" });
  const items = new Map(data.pictures.map((picture) => [picture, make("li", {},
    make("a", { href: picture.address, class: "entry" },
      make("img", { src: picture.thumbnail, width: picture.width, height: picture.height, alt: "", loading: "lazy" }),
      make("span", { class: "line" },
        picture.words.flatMap(({ text, verdict, known }) => [
          make("span", { class: `word ${known ? (sightline.toneOf(verdict) ?? "") : "unknown"}` },
            make("span", { class: "text" }, text),
            verdict ? make("span", { class: "mark", "aria-hidden": "true" }, sightline.marks[verdict]) : null,
            verdict && verdict !== "seen" ? spoken(`, ${verdict}`) : null),
          " ",
        ])),
      make("span", { class: `verdict-line ${picture.tone}` }, picture.verdict),
      picture.unfamiliar ? make("span", { class: "banner" }, picture.unfamiliar) : null,
      picture.readers_own ? make("span", { class: "own" }, "Your own caption") : null,
      make("span", { class: "quiet" }, picture.name)))]));
  const list = make("ul", { class: "gallery", id: "gallery" });
  const count = make("p", { id: "count", role: "status", class: "quiet" });
  const present = Object.entries(kinds).filter(([name, [, test]]) => name === "all" || data.pictures.some(test));
  const filters = make("fieldset", { class: "filters" }, make("legend", {}, "Show"),
    present.map(([name, [label, test]]) => make("label", {},
      make("input", { type: "radio", name: "kind", value: name, checked: name === "all", onchange: () => state.set({ kind: name }) }),
      ` ${label} (${data.pictures.filter(test).length})`)));
  const search = make("input", { type: "search", id: "search", oninput: () => state.set({ text: search.value }) });
  const order = sightline.choose("Order", Object.entries(orders).map(([name, [label]]) => [name, label]), "worst",
    (name) => state.set({ order: name }));
  order.select.id = "order";
  state.follow(({ kind, order: by, text }) => {
    const sought = text.trim().toLowerCase();
    const matches = (picture) => `${picture.name} ${picture.words.map((word) => word.text).join(" ")}`.toLowerCase().includes(sought);
    const shown = data.pictures.filter((picture) => kinds[kind][1](picture) && matches(picture)).sort(orders[by][1]);
    list.replaceChildren(...shown.map((picture) => items.get(picture)));
    count.textContent = `${shown.length} of ${sightline.many(data.pictures.length, "picture")}`;
  });
  root.replaceChildren(
    make("header", { class: "top" }, make("p", { class: "brand" }, "Sightline")),
    make("h1", { class: "title" }, "Captions you can check"),
    make("div", { class: "bar" }, filters, make("label", { for: "search" }, "Find "), search, order),
    count,
    list,
  );
  return state;
};
