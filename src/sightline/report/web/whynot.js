"use strict";

/** The answer to "why not …?" for any word, known or not, from what the page knows. */
sightline.answerWhyNot = (data, asked) => {
  const word = asked.trim().toLowerCase();
  const said = data.words.filter(({ kind }) => kind !== "unsaid");
  const at = data.words.findIndex(({ text }) => text === word);
  if (!word) return null;
  if (at >= 0 && data.words[at].kind === "unsaid") return { word: at, sentence: null };
  if (at >= 0) return { word: at, sentence: `The caption does say “${word}”, as word ${data.words[at].place + 1}.` };
  const asked_for = data.unknown.find(({ text }) => text === word);
  if (asked_for) {
    const nearest = data.words.findIndex(({ text }) => text === asked_for.nearest);
    return { word: nearest >= 0 ? nearest : null, sentence: asked_for.sentence };
  }
  if (/\s/.test(word)) return { word: null, sentence: "Ask about one word at a time." };
  const known = data.vocabulary.words.split(" ");
  if (!known.includes(word)) {
    const [meant] = Object.entries(data.neighbours ?? {}).find(([, others]) => ` ${others} `.includes(` ${word} `)) ?? [];
    const near = meant ? null : sightline.nearestSpelling(word, known);
    const count = data.vocabulary.count.toLocaleString("en");
    const spelt = near ? `spelt most like it is “${near}”.` : "it knows none that is spelt like it.";
    const nearest = meant ? `the nearest that it knows is “${meant}”.` : spelt;
    return { word: null, sentence: `“${word}” is not among its ${count} words; ${nearest}` };
  }
  const more = `For its heatmap: ${data.command} --why-not ${word} -o why.html`;
  const chance = data.vocabulary.chances[word];
  if (!chance) return { word: null, sentence: `It knows “${word}”, but found it very unlikely everywhere: less than 0.01 %.`, more };
  const [place, likelihood] = chance;
  const instead = place < said.length ? `where it said “${said[place].text}”` : "where the caption ends";
  return { word: null, sentence: `“${word}” was likeliest as word ${place + 1}, ${instead}: ${likelihood}.`, more };
};

/** The known word with the fewest letters changed, if no more than a quarter of them are. */
sightline.nearestSpelling = (word, known) => {
  let [best, fewest] = [null, Math.max(word.length / 4, 1) + 0.001];
  for (const other of known) {
    if (other.length < 3 || Math.abs(other.length - word.length) >= fewest) continue;
    let row = [...Array(other.length + 1).keys()];
    for (let i = 1; i <= word.length; i += 1) {
      const next = [i];
      for (let j = 1; j <= other.length; j += 1) {
        next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (word[i - 1] === other[j - 1] ? 0 : 1)));
      }
      row = next;
    }
    if (row[other.length] < fewest) [best, fewest] = [other, row[other.length]];
  }
  return best;
};

/** The question, and its answer. What the page cannot answer with a heatmap a server may: `ask`. */
sightline.whyNotPart = (data, state, unsaid, ask) => {
  const { make } = sightline;
  const field = make("input", { type: "text", id: "whynot", autocomplete: "off", autocapitalize: "none", spellcheck: "false", size: 14 });
  const answer = make("div", { id: "answer", "aria-live": "polite" });
  const submit = (event) => {
    event.preventDefault();
    const found = sightline.answerWhyNot(data, field.value);
    if (ask && found && found.word === null && !/\s/.test(field.value.trim())) {
      ask(field.value.trim().toLowerCase());
      return;
    }
    answer.replaceChildren(
      ...(found?.sentence ? [make("p", {}, found.sentence)] : []),
      ...(found?.more ? [make("p", { class: "quiet command" }, found.more)] : []),
    );
    if (found && found.word !== null) state.set({ pinned: found.word, pointed: null });
  };
  const asked = data.unknown.filter(({ text }) => !data.words.some((word) => word.text === text));
  return make(
    "section",
    { class: "whynot", "aria-label": "Words that it does not say" },
    asked.map(({ sentence }) => make("p", { class: "unknown" }, sentence)),
    unsaid,
    make("form", { onsubmit: submit }, make("label", { for: "whynot" }, "Why not "), field, make("button", { type: "submit" }, "Ask")),
    answer,
  );
};
