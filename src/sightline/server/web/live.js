"use strict";

/** What names a picture to the server: its key, its file, or its number in the folder. */
sightline.formOf = (picture, model) => {
  const fields = new FormData();
  if (picture.kept) fields.append("kept", picture.kept);
  else if (picture.file) fields.append("image", picture.file, picture.name);
  else fields.append("number", String(picture.number));
  fields.append("model", model);
  return fields;
};

/** Ask about a picture. The server keeps only a few: one that it no longer has is sent again. */
sightline.askAbout = async (path, picture, form, signal) => {
  const answer = await fetch(path, { method: "POST", body: form(), signal });
  if (answer.status !== 410) return answer;
  picture.kept = null;
  return fetch(path, { method: "POST", body: form(), signal });
};

/**
 * A report of one picture that a server computes: it grows, can be cancelled, and asked again.
 * `seen` is told the picture and the data whenever its caption or verdicts have come, `ended` when
 * nothing more comes, with the problem if there was one.
 */
sightline.liveReport = (root, status, { model, seen, ended }) => {
  const { make } = sightline;
  let picture = null; // { name, file or number, kept }
  let asked = { caption: null, why_not: [], methods: [] };
  let running = null; // what cancels the request under way
  let [data, state, beam] = [null, null, []];
  let early = false; // its verdicts have not come yet
  let stopped = null; // the method shown when a request was cancelled or failed: chosen anew, it is asked for

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
  const saying = make("span", { role: "status" }); // told once, and not with every step of the bar
  const bar = make("progress", { "aria-label": "Progress" });
  const cancel = make("button", { type: "button", class: "plain", onclick: () => running?.abort() }, "Cancel");
  status.replaceChildren(saying, bar, cancel);
  const tell = (text, { done = null, of = null, problem = false } = {}) => {
    if (saying.textContent !== (text ?? "")) saying.textContent = text ?? "";
    saying.classList.toggle("problem", problem);
    status.classList.toggle("idle", !text);
    bar.hidden = cancel.hidden = !of || !text;
    if (of) Object.assign(bar, { max: of, value: done });
  };
  tell(null);

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
    if (method !== stopped) stopped = null;
    if (stopped || running || !data || data.growing || data.explanations.some((why) => why.method === method)) return;
    if (data.skipped.some((line) => line.startsWith(data.methods.find(({ name }) => name === method).label))) return;
    more(method);
  };

  // --- asking --------------------------------------------------------------------------------------
  const form = (methods) => {
    const fields = sightline.formOf(picture, model());
    if (asked.caption) fields.append("caption", asked.caption);
    for (const word of asked.why_not) fields.append("why_not", word);
    for (const method of methods) fields.append("method", method);
    return fields;
  };

  /** Ask the server, and give each line of its answer to `take`. */
  const request = async (methods, take) => {
    running?.abort();
    stopped = null;
    const mine = (running = new AbortController());
    let failed = true;
    let problem = null;
    tell("Sending the picture", { done: 0, of: 1 });
    try {
      const answer = await sightline.askAbout("/desk/explain", picture, () => form(methods), mine.signal);
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
      else tell((problem = sightline.sentenceOf(error)), { problem: true });
    } finally {
      if (mine === running) {
        early = false;
        if (data) data.growing = false;
        running = null;
        if (failed) stopped = state?.values.method ?? null;
        state?.set({});
        ended(picture, problem);
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
        early = false;
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
      [picture, data, early] = [chosen, null, true];
      asked = { caption: null, why_not: [], methods: [] };
      state = null;
      return ask({});
    },
    /** The same picture by another captioner. */
    again: () => picture && ask({ caption: null, why_not: [] }),
    isEarly: () => early,
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
