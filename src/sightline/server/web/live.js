"use strict";

/** A report of one picture that a server computes: it grows, can be cancelled, and asked again. */
sightline.liveReport = (root, status, { model, seen }) => {
  const { make } = sightline;
  let picture = null; // { name, file or number, kept }
  let asked = { caption: null, why_not: [], methods: [] };
  let running = null; // what cancels the request under way
  let [data, state, beam] = [null, null, []];
  let own = null; // the captioner's first caption

  // --- the caption: edited, or another of the beam ---------------------------------------------
  const field = make("input", { type: "text", id: "edit", autocomplete: "off", maxlength: 600,
    oninput: () => { clearTimeout(pause); pause = setTimeout(check, 900); } });
  let pause = null;
  const check = () => {
    clearTimeout(pause);
    const text = field.value.trim();
    if (data && text !== data.caption.text) ask({ caption: text || null });
  };
  const editing = make("form", { class: "edit", onsubmit: (event) => { event.preventDefault(); check(); } },
    make("label", { for: "edit" }, "Edit the caption, and the check follows"),
    make("span", { class: "row" }, field, make("button", { type: "submit" }, "Check")));
  const others = make("details", { class: "beam" });
  const showBeam = () => {
    others.replaceChildren(
      make("summary", {}, `${beam.length} captions to choose from`),
      make("ol", {}, beam.map((text) => make("li", {}, make("button", {
        type: "button", class: "plain", "aria-pressed": String(text === data.caption.text), onclick: () => ask({ caption: text }),
      }, text)))),
    );
  };

  // --- progress ----------------------------------------------------------------------------------
  const tell = (text, { done = null, of = null, problem = false } = {}) => {
    const bar = of ? make("progress", { max: of, value: done, "aria-label": "Progress" }) : null;
    const cancel = of ? make("button", { type: "button", class: "plain", onclick: () => running?.abort() }, "Cancel") : null;
    status.replaceChildren(...(text ? [make("span", { class: problem ? "problem" : null }, text), bar, cancel].filter(Boolean) : []));
  };

  // --- showing -------------------------------------------------------------------------------------
  const show = () => {
    const before = document.activeElement;
    const place = [...root.querySelectorAll("button.word")].indexOf(before);
    const pressed = before?.id;
    const { method, pinned, opacity, contrast, grey, common } = state?.values ?? {};
    const kept = state ? { method, pinned, opacity, contrast, grey, common } : {};
    if (pinned >= data.words.length) kept.pinned = null;
    if (document.activeElement !== field) field.value = data.caption.text;
    state = sightline.showReport(root, data, { ask: whyNot, tools: [editing, others], values: kept });
    state.follow(({ method: chosen }) => lacking(chosen));
    showBeam();
    if (place >= 0) root.querySelectorAll("button.word")[place]?.focus();
    else if (pressed) document.getElementById(pressed)?.focus();
    sightline.state = state;
  };
  const whyNot = (word) => ask({ why_not: [...new Set([...asked.why_not, word])] }, word);
  /** A method that was chosen but not computed. */
  const lacking = (method) => {
    if (running || !data || data.growing || data.explanations.some((why) => why.method === method)) return;
    if (data.skipped.some((line) => line.startsWith(data.methods.find(({ name }) => name === method).label))) return;
    more(method);
  };

  // --- asking --------------------------------------------------------------------------------------
  const form = (methods) => {
    const fields = new FormData();
    if (picture.kept) fields.append("kept", picture.kept);
    else if (picture.file) fields.append("image", picture.file, picture.name);
    else fields.append("number", String(picture.number));
    fields.append("model", model());
    if (asked.caption) fields.append("caption", asked.caption);
    for (const word of asked.why_not) fields.append("why_not", word);
    for (const method of methods) fields.append("method", method);
    return fields;
  };

  /** Ask the server, and give each line of its answer to `take`. */
  const request = async (methods, take) => {
    running?.abort();
    const mine = (running = new AbortController());
    let failed = true;
    tell("Sending the picture", { done: 0, of: 1 });
    try {
      let answer = await fetch("/desk/explain", { method: "POST", body: form(methods), signal: mine.signal });
      if (answer.status === 410) { // the server keeps only a few
        picture.kept = null;
        answer = await fetch("/desk/explain", { method: "POST", body: form(methods), signal: mine.signal });
      }
      if (!answer.ok) throw new Error((await answer.json()).detail);
      for await (const line of sightline.lines(answer.body)) {
        if (line.problem) throw new Error(line.problem);
        if (line.kept) picture.kept = line.kept;
        take(line);
        tell(line.doing, line);
      }
      tell(null);
      failed = false;
    } catch (error) {
      if (mine !== running) return; // another question took its place
      if (error.name === "AbortError") tell("Cancelled. What was found so far is shown.");
      else tell(`${error.message}`, { problem: true });
    } finally {
      if (mine === running) {
        if (data) data.growing = false;
        if (failed) state?.set({}); // still running: a method that is lacking is not asked for again
        running = null;
        if (!failed) state?.set({});
      }
    }
  };

  const ask = (changes, word = null) => {
    asked = { ...asked, ...changes };
    return request([], (line) => {
      if (line.report) {
        [data, beam] = [line.report, line.beam];
        show();
        if (word) {
          const unsaid = data.words.map(({ kind, text }, index) => [kind, text, index]).filter(([kind]) => kind === "unsaid");
          const at = unsaid.find(([, text]) => text === word) ?? unsaid.at(-1);
          if (at) state.set({ pinned: at[2] });
        }
        seen(picture, data);
      }
      if (line.checked) {
        Object.assign(data, line.checked);
        show();
        seen(picture, data);
      }
      if (line.grown) state.grow(line.grown);
    });
  };
  /** One more method of the same report. */
  const more = (method) => {
    data.growing = true;
    state.set({});
    return request([method], (line) => line.grown && state.grow(line.grown));
  };

  return {
    /** Show a picture: `{ name, file }`, or `{ name, number }` of the folder. */
    open(chosen) {
      picture = chosen;
      asked = { caption: null, why_not: [], methods: [] };
      state = null;
      return ask({});
    },
    /** The same picture by another captioner. */
    again: () => picture && ask({ caption: null, why_not: [] }),
  };
};

/** The lines of a stream, each read as JSON. */
sightline.lines = async function* (stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
  if (rest) yield JSON.parse(rest);
};
