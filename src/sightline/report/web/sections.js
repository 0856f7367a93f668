"use strict";

/** What comes below the first screen: everything at a glance, and side by side. */
sightline.section = (id, title, text, ...children) =>
  sightline.make(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    sightline.make("h2", { id: `${id}-title` }, title),
    text ? sightline.make("p", { class: "quiet" }, text) : null,
    children,
  );

/** A small picture with a heatmap, and what is said of it. */
sightline.card = (data, title, ...more) => {
  const canvas = sightline.make("canvas", { role: "img", "aria-label": title, width: data.picture.width, height: data.picture.height });
  const card = sightline.make("figure", { class: "card" }, canvas, sightline.make("figcaption", {}, more));
  card.canvas = canvas;
  return card;
};

/** Every word at a glance. */
sightline.glancePart = (data, state, heat) => {
  const explained = data.words.map((_, index) => index).filter((index) => data.explanations.some((why) => why.word === index));
  const cards = explained.map((index) => {
    const word = data.words[index];
    const tone = sightline.toneOf(word.verdict);
    const title = word.kind === "unsaid" ? `not: ${word.text}` : word.text;
    const mark = word.verdict ? sightline.make("span", { class: `verdict ${tone}` }, ` ${sightline.marks[word.verdict]}`, sightline.spoken(` ${word.verdict}`)) : null;
    const card = sightline.card(data, title, sightline.make("span", {}, title, mark));
    card.index = index;
    return card;
  });
  state.follow((values) => {
    for (const card of cards) {
      const why = sightline.explained(data, values, card.index);
      card.canvas.setAttribute("aria-label", why?.summary ?? "no explanation");
      heat.small(card.canvas, why, values);
    }
  });
  if (!cards.length) return null;
  return sightline.section("glance", "Every word at a glance", data.legend, sightline.make("div", { class: "cards small" }, cards));
};

/** How the words lean on each other: a row for each word, a column for what it leans on. */
sightline.influencePart = (data, state) => {
  const { make, spoken } = sightline;
  const said = data.words.filter(({ kind }) => kind !== "unsaid");
  const box = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of influence" });
  const cell = (share, row, column) => {
    const dot = make("span", { class: `dot ${share > 0 ? "for" : "against"}` });
    dot.style.setProperty("--size", Math.sqrt(Math.min(Math.abs(share), 1)).toFixed(3));
    const percent = `${share > 0 ? "+" : "−"}${Math.round(100 * Math.abs(share))} %`;
    return make("td", { title: `${row} from ${column}: ${percent}` }, Math.abs(share) < 0.005 ? null : dot, spoken(percent));
  };
  state.follow((values) => {
    const rows = said.map((word, index) => ({ word, index, why: sightline.explained(data, values, index) }));
    const { label, adds_up: whole } = data.methods.find(({ name }) => name === values.method);
    if (!rows.some(({ why }) => why?.previous.some((value) => value))) {
      box.replaceChildren(make("p", {}, `${label} says nothing about the previous words: choose another method.`));
      return;
    }
    const columns = [...(whole ? ["the picture"] : []), "(start)", ...said.slice(0, -1).map(({ text }) => text)];
    box.replaceChildren(
      make("table", { class: "influence" },
        make("caption", { class: "spoken" }, `What each word owes to ${whole ? "the picture and to " : ""}the words before it, by ${label}`),
        make("thead", {}, make("tr", {}, make("td", {}), columns.map((name) => make("th", { scope: "col" }, make("span", {}, name))))),
        make("tbody", {}, rows.filter(({ why }) => why).map(({ word, index, why }) => {
          const parts = [...(whole ? [why.image] : []), ...why.previous];
          const sum = parts.reduce((total, value) => total + Math.abs(value), 0) || 1;
          return make("tr", { class: index === sightline.shown(values) ? "shown" : null },
            make("th", { scope: "row" }, word.text),
            parts.map((value, column) => cell(value / sum, word.text, columns[column])),
            columns.slice(parts.length).map(() => make("td", {})));
        })),
      ),
    );
  });
  return sightline.section("influence", "How the words lean on each other",
    "A row for each word, a column for what it leans on. The larger the dot, the larger its part; a full dot speaks for the word, a ring against it.", box);
};

/** Two words side by side, on one scale. */
sightline.comparePart = (data, state, heat) => {
  const { make } = sightline;
  const options = data.words.map((word, index) => [String(index), word.kind === "unsaid" ? `not: ${word.text}` : `${word.place + 1}. ${word.text}`])
    .filter(([index]) => data.explanations.some((why) => why.word === Number(index)));
  if (options.length < 2) return null;
  const first = data.featured[0] ?? Number(options[0][0]);
  const second = data.featured[1] ?? Number(options.find(([index]) => Number(index) !== first)[0]);
  const chosen = [first, second];
  const sides = ["First word", "Second word"].map((label, side) => {
    const sentence = make("p", {});
    const choice = sightline.choose(label, options, String(chosen[side]), (index) => {
      chosen[side] = Number(index);
      draw();
    });
    const card = sightline.card(data, label, choice, sentence);
    return { card, sentence };
  });
  const draw = (values = state.values) => {
    const among = chosen.map((word) => sightline.explained(data, values, word)).filter(Boolean);
    sides.forEach(({ card, sentence }, side) => {
      const why = sightline.explained(data, values, chosen[side]);
      sentence.textContent = why?.why ?? "This method does not explain it.";
      card.canvas.setAttribute("aria-label", why?.summary ?? "no explanation");
      heat.small(card.canvas, why, { ...values, common: true, among });
    });
  };
  state.follow(draw);
  return sightline.section("compare", "Two words side by side", "Both are on one scale: the paler map has less relevance.",
    make("div", { class: "cards pair" }, sides.map(({ card }) => card)));
};

/** One word by every method, with what the benchmark says of each. */
sightline.methodsPart = (data, state, heat) => {
  const { make } = sightline;
  const explained = data.methods.filter(({ name }) => data.explanations.some((why) => why.method === name));
  if (explained.length < 2) return null;
  const heading = make("p", { class: "quiet" });
  const cards = explained.map((method) => {
    const use = make("button", { type: "button", class: "plain", onclick: () => state.set({ method: method.name }) }, `Use ${method.label}`);
    const sentence = make("p", {});
    const card = sightline.card(data, method.label, make("h3", {}, method.label), sentence,
      make("p", { class: "quiet" }, method.sentence), make("p", { class: "benchmark" }, method.benchmark), use);
    return { method, card, sentence, use };
  });
  state.follow((values) => {
    const word = values.pinned ?? data.featured[0];
    heading.textContent = `“${data.words[word].text}” by each method. ${data.benchmark}`;
    for (const { method, card, sentence, use } of cards) {
      const why = sightline.explained(data, values, word, method.name);
      sentence.textContent = why?.why ?? sightline.unexplained(data);
      card.canvas.setAttribute("aria-label", why?.summary ?? "no explanation");
      use.setAttribute("aria-pressed", String(values.method === method.name));
      heat.small(card.canvas, why, { ...values, common: false });
    }
  });
  return sightline.section("methods", "Methods side by side", null, heading, make("div", { class: "cards" }, cards.map(({ card }) => card)),
    data.skipped.map((sentence) => make("p", { class: "quiet" }, sentence)));
};
