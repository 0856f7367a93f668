"use strict";

/** What a rater sees: a picture, two captions, the questions. Nothing here knows the systems. */
{
  const { make, ask } = sightline;
  const base = location.pathname.replace(/\/$/, "");
  const page = document.getElementById("page");
  page.classList.add("rate");
  const choices = [["left", "Left"], ["tie", "Same"], ["right", "Right"]];
  const note = make("p", { id: "note", role: "status", class: "quiet" });
  const sheet = { place: 0, shown: 0 };

  const next = () => {
    for (let step = 1; step <= sheet.pairs; step += 1) {
      const place = (sheet.place + step) % sheet.pairs;
      if (!sheet.given[place]) return place;
    }
    return null;
  };
  const done = () => Object.keys(sheet.given).length;

  const show = async (place) => {
    sheet.place = place;
    const pair = await ask(`${base}/pairs/${place}`);
    sheet.shown = performance.now();
    const chosen = { ...(sheet.given[place] ?? {}) };
    const save = make("button", { type: "submit", class: "plain go", id: "save" }, "Save and go on ", make("kbd", { "aria-hidden": "true" }, "Enter"));
    const ready = () => { save.disabled = sheet.questions.some(({ name }) => !chosen[name]); };
    const questions = sheet.questions.map(({ name, text }, number) => make("fieldset", { class: "question", "data-question": name },
      make("legend", {}, text),
      make("div", { class: "answers" }, choices.map(([value, label]) => make("label", { class: "answer" },
        make("input", { type: "radio", name: `question-${number}`, value, checked: chosen[name] === value, onchange: () => { chosen[name] = value; ready(); } }),
        ` ${label}`)))));
    const form = make("form", { id: "pair", onsubmit: async (event) => {
      event.preventDefault();
      if (save.disabled) return;
      save.disabled = true;
      try {
        const seconds = Math.round(performance.now() - sheet.shown) / 1000;
        await ask(`${base}/answers`, { place, choices: chosen, seconds });
        sheet.given[place] = chosen;
        note.textContent = "";
        await proceed(next());
      } catch (error) {
        note.textContent = error.message;
        ready();
      }
    } }, questions, make("div", { class: "acts" },
      make("button", { type: "button", class: "plain", id: "back", disabled: place === 0 && !done(), onclick: () => proceed((place + sheet.pairs - 1) % sheet.pairs) }, "Back"),
      save));
    const side = (name, text) => make("section", { class: "caption-side", id: name, "aria-label": `${name === "left" ? "Left" : "Right"} caption` },
      make("h2", { class: "quiet" }, name === "left" ? "Left" : "Right"),
      make("p", { class: "in-hand" }, text || "(no caption)"));
    page.replaceChildren(
      make("header", { class: "top" }, make("h1", { class: "title-small" }, "Which caption is better?"),
        make("progress", { max: sheet.pairs, value: done(), "aria-label": "Answered" }),
        make("p", { class: "quiet", id: "count" }, `${done()} of ${sheet.pairs} answered`)),
      note,
      make("div", { class: "judged" }, make("img", { src: `${base}/pictures/${place}`, alt: "The picture that both captions are about", id: "picture-shown" })),
      make("div", { class: "sides" }, side("left", pair.left), side("right", pair.right)),
      form);
    ready();
    form.querySelector("input")?.focus({ preventScroll: true });
    const after = next();
    if (after !== null) new Image().src = `${base}/pictures/${after}`;
  };
  const proceed = async (place) => {
    if (place === null) {
      page.replaceChildren(make("header", { class: "top" }, make("h1", { class: "title-small" }, "Thank you")),
        make("p", { id: "finished", role: "status" }, `All ${sheet.pairs} pairs are answered, and your answers are saved. You can close this page.`),
        make("button", { class: "plain", onclick: () => show(sheet.pairs - 1) }, "Look at my answers again"));
      return;
    }
    await show(place);
    scrollTo({ top: 0 });
  };
  ask(`${base}/sheet`).then((given) => {
    Object.assign(sheet, given, { place: given.pairs - 1 });
    return proceed(next());
  }).catch((error) => page.replaceChildren(make("h1", { class: "title-small" }, "Compare captions"), make("p", { role: "alert" }, error.message)));
}
