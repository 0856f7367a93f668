"use strict";

/**
 * Show a report in an element. `data` is what page_data.py makes. Where there is a server to ask,
 * `ask` is told a word that the page cannot answer "why not …?" for, `tools` are elements below the
 * verdict, and `values` are those of the state before. The state that is given back can `grow` by
 * what a method has added.
 */
sightline.showReport = (root, data, { ask = null, tools = [], values = {} } = {}) => {
  const { make } = sightline;
  const heat = sightline.heat(data);
  const state = sightline.share({
    pinned: null, // the word that was chosen
    pointed: null, // the word under the pointer, or with the focus
    method: data.methods[0].name,
    opacity: data.colours.opacity,
    contrast: 1,
    grey: true,
    common: false,
    ...values,
  });
  const { caption, unsaid } = sightline.captionPart(data, state);
  const own = data.caption.readers_own ? "Your own caption. The captioner did not write it, but reads it word by word." : null;
  const marks = Object.entries(sightline.marks).map(([verdict, mark]) => `${mark} ${verdict}`).join(", ");
  // What is below the first screen is made anew when the report grows.
  const below = make("div", { class: "below" });
  let lower = null;
  const showBelow = () => {
    lower = sightline.share(state.values);
    const shown = { values: state.values, set: state.set, follow: lower.follow };
    below.replaceChildren(
      ...[
        sightline.glancePart(data, shown, heat),
        sightline.influencePart(data, shown),
        sightline.comparePart(data, shown, heat),
        sightline.methodsPart(data, shown, heat),
        sightline.section("reading", "How to read this page", null, make("ul", {},
          [
            `Marks after words say whether the picture supports them: ${marks}. Words without a mark were not checked: they name nothing that can be seen.`,
            "A mark is a judgement from the evidence, and can be wrong. A thing can be in the picture although its word is not supported: then the captioner did not get the word from it.",
            "While a word is shown, the words before it are tinted by how much they speak for it (orange) or against it (blue, with a dashed line).",
            "Colours show where the evidence lies, and not how much of it there is in all: each map has a scale of its own, unless you put all on one scale.",
          ].map((line) => make("li", {}, line)))),
      ].filter(Boolean),
    );
  };
  showBelow();
  root.replaceChildren(
    make("header", { class: "top" },
      make("p", { class: "brand" }, "Sightline"),
      make("p", { class: "quiet" }, data.name),
      data.index ? make("a", { href: data.index, class: "home" }, "All pictures") : null),
    make("div", { class: "first" },
      sightline.picturePart(data, state, heat),
      make("div", { class: "beside" },
        data.unfamiliar ? make("p", { class: "banner", role: "note" }, data.unfamiliar) : null,
        own ? make("p", { class: "own" }, own) : null,
        caption,
        make("p", { class: `verdict-line ${data.caption.tone}`, id: "verdict" }, data.caption.verdict),
        ...tools,
        sightline.wordPart(data, state),
        sightline.whyNotPart(data, state, unsaid, ask))),
    below,
  );
  state.follow(() => lower.set({}));
  state.grow = ({ method, explanations, skipped, featured }) => {
    if (!data.methods.some(({ name }) => name === method.name)) data.methods.push(method);
    data.explanations.push(...explanations);
    Object.assign(data, { skipped, featured });
    showBelow();
    state.set({});
  };
  return state;
};
