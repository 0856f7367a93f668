"use strict";

/** The picture, under the heatmap of the word that is shown. */
sightline.picturePart = (data, state, heat) => {
  const { make } = sightline;
  const { source, width, height } = data.picture;
  const canvas = make("canvas", { id: "heat", "aria-hidden": "true", hidden: true });
  const image = make("img", { src: source, width, height, alt: `The picture: ${data.caption.text}` });
  const scale = make(
    "div",
    { class: "scale", "aria-hidden": "true" },
    make("span", {}),
    make("span", { class: "ramp" }),
    make("span", {}),
  );
  const frame = make("div", { id: "picture" }, image, canvas, scale);
  frame.style.setProperty("--shape", width / height);
  const summary = make("p", { class: "spoken", id: "summary" });
  const range = (label, name, attributes) =>
    make(
      "label",
      {},
      `${label} `,
      make("input", { type: "range", id: name, value: state.values[name], ...attributes,
        oninput: (event) => state.set({ [name]: Number(event.target.value) }) }),
    );
  const tick = (label, name) =>
    make(
      "label",
      {},
      make("input", { type: "checkbox", id: name, checked: state.values[name],
        onchange: (event) => state.set({ [name]: event.target.checked }) }),
      ` ${label}`,
    );
  const method = sightline.choose(
    "Explained by",
    data.methods.map(({ name, label }) => [name, label]),
    state.values.method,
    (name) => state.set({ method: name }),
  );
  method.select.id = "method";
  const controls = make(
    "details",
    { class: "view" },
    make("summary", {}, "Display"),
    make("div", {},
      range("Opacity", "opacity", { min: 0, max: 1, step: 0.05 }),
      range("Contrast", "contrast", { min: 1, max: 5, step: 0.25 }),
      tick("Grey picture under a heatmap", "grey"),
      tick("One scale for all words", "common"),
    ),
  );
  state.follow((values) => {
    const why = sightline.explained(data, values);
    frame.classList.toggle("lit", Boolean(why));
    frame.classList.toggle("grey", values.grey);
    const { signed } = data.methods.find(({ name }) => name === values.method);
    scale.hidden = !why;
    scale.classList.toggle("signed", signed);
    scale.firstChild.textContent = signed ? "against the word" : "less";
    scale.lastChild.textContent = signed ? "for the word" : "more";
    canvas.hidden = !why;
    canvas.style.opacity = values.opacity;
    summary.textContent = why?.summary ?? "";
    if (method.select.value !== values.method) method.select.value = values.method;
    if (why) heat.over(canvas, why, values);
  });
  return make("figure", { class: "picture" }, frame, summary,
    make("div", { class: "controls" }, method, controls));
};

/** The word that is shown: pointed at, or else chosen. */
sightline.shown = ({ pointed, pinned }) => pointed ?? pinned;
sightline.explained = (data, values, word = sightline.shown(values), method = values.method) =>
  data.explanations.find((why) => why.word === word && why.method === method);

/** What to say of a word without a heatmap. */
sightline.unexplained = (data) =>
  data.growing ? "Its explanation is still being computed." : "No explanation of this word was asked for.";

/** The caption, word by word, then the words that one asked about. */
sightline.captionPart = (data, state) => {
  const { make, spoken } = sightline;
  const buttons = data.words.map((word, index) => {
    const tone = word.kind === "unknown" ? "unknown" : sightline.toneOf(word.verdict);
    const mark = sightline.marks[word.verdict] ?? (word.kind === "unknown" ? "∅" : null);
    const said = word.kind === "unknown" ? "a word it does not know" : word.verdict;
    return make(
      "button",
      {
        type: "button",
        class: ["word", tone, word.kind].filter(Boolean).join(" "),
        "aria-pressed": "false",
        onpointerenter: () => state.set({ pointed: index }),
        onpointerleave: () => state.set({ pointed: null }),
        onfocus: () => state.set({ pointed: index }),
        onblur: () => state.set({ pointed: null }),
        onclick: () => state.set({ pinned: state.values.pinned === index ? null : index }),
      },
      make("span", { class: "text" }, word.text),
      mark ? make("span", { class: "mark", "aria-hidden": "true" }, mark) : null,
      said ? spoken(`, ${said}`) : null,
    );
  });
  const move = (event) => {
    const here = buttons.indexOf(document.activeElement);
    const last = buttons.length - 1;
    const next = { ArrowRight: Math.min(here + 1, last), ArrowLeft: Math.max(here - 1, 0), Home: 0, End: last }[event.key];
    if (event.key === "Escape") state.set({ pinned: null, pointed: null });
    else if (next !== undefined && here >= 0) {
      event.preventDefault();
      buttons[next].focus();
    }
  };
  state.follow((values) => {
    const index = sightline.shown(values);
    const why = sightline.explained(data, values);
    const largest = why ? Math.max(...why.previous.map(Math.abs)) || 1 : 1;
    const unsaid = index !== null && data.words[index].kind === "unsaid";
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(i === values.pinned));
      button.classList.toggle("shown", i === index);
      button.classList.toggle("replaced", unsaid && i === data.words[index].place && data.words[i].kind !== "unsaid");
      // A previous word is tinted by its relevance; the first of `previous` is the start.
      const weight = data.words[i].kind === "unsaid" ? 0 : ((why?.previous[i + 1] ?? 0) / largest);
      button.dataset.sign = Math.abs(weight) < 0.05 ? "" : weight > 0 ? "for" : "against";
      button.style.setProperty("--weight", Math.abs(weight).toFixed(3));
    });
  });
  const spaced = (some) => some.flatMap((button) => [button, " "]);
  const said = buttons.filter((_, i) => data.words[i].kind !== "unsaid");
  const unsaid = buttons.filter((_, i) => data.words[i].kind === "unsaid");
  return {
    caption: make("h1", { class: "caption", id: "caption", onkeydown: move }, spaced(said)),
    unsaid: unsaid.length ? make("p", { class: "unsaid", onkeydown: move }, "Why not ", spaced(unsaid)) : null,
  };
};

/** What is said of the word that is shown. */
sightline.wordPart = (data, state) => {
  const { make } = sightline;
  const checked = data.words.some(({ verdict }) => verdict);
  const sentences = make("div", { id: "why", "aria-live": "polite" });
  const table = make("table", { class: "numbers" });
  const numbers = make("details", { id: "numbers" }, make("summary", {}, "Numbers"), table);
  const rows = (list) =>
    list.map(({ name, value, meaning }) =>
      make("tr", {}, make("th", { scope: "row" }, name.replaceAll("_", " ")), make("td", {}, value), make("td", {}, meaning)));
  state.follow((values) => {
    const index = sightline.shown(values);
    numbers.hidden = index === null;
    if (index === null) {
      sentences.replaceChildren(
        make("p", {}, "Point at a word, tab to it or tap it to see what it is based on."),
        ...(checked ? [make("ul", { class: "key" }, Object.entries(sightline.marks).map(([verdict, mark]) =>
          make("li", { class: sightline.toneOf(verdict) }, make("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${verdict}`)))] : []),
      );
      return;
    }
    const word = data.words[index];
    const why = sightline.explained(data, values);
    const missing = word.kind === "unknown" ? null : sightline.unexplained(data);
    const heading = word.kind === "unsaid" ? `Why not “${word.text}”?` : `“${word.text}”`;
    const parts = [
      make("h2", {}, heading, word.verdict
        ? make("span", { class: `verdict ${sightline.toneOf(word.verdict)}` }, `${sightline.marks[word.verdict]} ${word.verdict}`)
        : null),
    ];
    const lead = word.kind === "unsaid" ? [word.otherwise, why?.why ?? missing] : [why?.why ?? missing, word.otherwise];
    for (const sentence of [...lead, word.support]) if (sentence) parts.push(make("p", {}, sentence));
    sentences.replaceChildren(...parts);
    table.replaceChildren(
      make("thead", {}, make("tr", {}, ...["number", "value", "what it means"].map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, rows([...word.numbers, ...(why?.numbers ?? [])]),
        word.alternatives.map(({ text, shown }) =>
          make("tr", {}, make("th", { scope: "row" }, `“${text}”`), make("td", {}, shown), make("td", {}, "how likely this word was here instead")))),
    );
  });
  return make("section", { class: "panel", "aria-label": "The word" }, sentences, numbers);
};
