"use strict";

/**
 * Pictures in small. One is open, and explained; the others are captioned in the background, and
 * each says how far it is. `open` shows one, `model` is the captioner, `hold` says whether the
 * background has to wait.
 */
sightline.tray = ({ open, model, hold }) => {
  const { make, spoken } = sightline;
  const together = 2; // enough to be computed together, few enough not to be in the way
  const pictures = [];
  const list = make("ul", { class: "tray", "aria-label": "Pictures" });
  const saying = make("span");
  const bar = make("progress", { "aria-label": "Pictures captioned" });
  const cancel = make("button", { type: "button", class: "plain", onclick: () => stop() }, "Cancel");
  const background = make("div", { class: "status background", hidden: true }, saying, bar, cancel);
  let current = null;

  // --- what a picture says of itself ---------------------------------------------------------------
  const waits = { waiting: "Waiting", working: "Being captioned …", stopped: "Not captioned" };
  const say = (picture, state, ...content) => {
    picture.state = state;
    picture.button.dataset.state = state ?? "";
    picture.label.replaceChildren(...(content.length ? content : [waits[state] ?? picture.name]));
    count();
  };
  const captioned = (picture, { words, unfamiliar }) => say(picture, "captioned",
    ...words.flatMap(({ text, verdict }) => [
      make("span", { class: `word ${sightline.toneOf(verdict) ?? ""}` }, make("span", { class: "text" }, text),
        verdict ? make("span", { class: "mark", "aria-hidden": "true" }, sightline.marks[verdict]) : null,
        verdict && verdict !== "seen" ? spoken(`, ${verdict}`) : null),
      " "]),
    ...(unfamiliar ? [make("span", { class: "quiet" }, "Unfamiliar picture")] : []));
  const count = () => {
    const given = pictures.filter(({ file }) => file);
    const left = given.filter(({ state }) => state === "waiting" || state === "working").length;
    background.hidden = !left;
    if (!left) return;
    saying.textContent = `Captioning the others: ${given.length - left} of ${given.length} done`;
    Object.assign(bar, { max: given.length, value: given.length - left });
  };
  const entry = (picture, source) => {
    picture.image = make("img", { alt: "", src: source, loading: "lazy", onerror: () => { picture.image.hidden = true; } });
    picture.label = make("span", { class: "line" });
    picture.button = make("button", { type: "button", "aria-pressed": "false", title: picture.name, onclick: () => show(picture) },
      make("span", { class: "frame" }, picture.image), picture.label);
    pictures.push(picture);
    say(picture, null);
    return make("li", {}, picture.button);
  };
  /** A file that the browser cannot show (HEIC), as the server shows it. */
  const showFromServer = (picture) => {
    if (!picture.image.hidden || !picture.kept) return;
    picture.image.src = `/desk/kept/${picture.kept}`;
    picture.image.hidden = false;
  };

  // --- captions in the background ------------------------------------------------------------------
  const caption = async (picture) => {
    const mine = (picture.running = new AbortController());
    say(picture, "working");
    try {
      const answer = await sightline.askAbout("/desk/caption", picture, () => sightline.formOf(picture, model()), mine.signal);
      if (answer.status === 503) { // busy: again, a little later
        await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get("Retry-After") ?? 1)));
        if (picture.running === mine) say(picture, "waiting");
      } else {
        const content = await answer.json();
        if (picture.running !== mine) return;
        if (!answer.ok) throw new Error(content.detail);
        picture.kept = content.kept;
        captioned(picture, content);
        showFromServer(picture);
      }
    } catch (error) {
      if (picture.running === mine && error.name !== "AbortError") say(picture, "failed", sightline.sentenceOf(error));
    } finally {
      if (picture.running === mine) picture.running = null;
      pump();
    }
  };
  const pump = () => {
    if (hold()) return;
    const free = together - pictures.filter(({ running }) => running).length;
    for (const picture of pictures.filter(({ state }) => state === "waiting").slice(0, Math.max(free, 0))) caption(picture);
  };
  const drop = (picture, state) => {
    picture.running?.abort();
    picture.running = null;
    say(picture, state);
  };
  const stop = () => {
    for (const picture of pictures) if (["waiting", "working"].includes(picture.state)) drop(picture, "stopped");
  };

  const show = (picture) => {
    if (current?.state === "open") say(current, current.file ? "waiting" : null);
    current = picture;
    for (const other of pictures) other.button.setAttribute("aria-pressed", String(other === picture));
    if (["waiting", "working", "stopped", "failed", null].includes(picture.state)) drop(picture, "open");
    open(picture);
  };

  return {
    list, background, entry, pump,
    /** Files that were dropped, pasted or chosen: the first is shown, all are captioned. */
    add(files) {
      const some = files.filter(({ size }) => size).map((file) => ({ name: file.name || "pasted picture", file }));
      for (const picture of some) {
        list.append(entry(picture, URL.createObjectURL(picture.file)));
        say(picture, "waiting");
      }
      if (some.length) show(some[0]);
    },
    /** The report of the open picture has come this far. */
    seen(picture, data) {
      captioned(picture, { words: data.words.filter(({ kind }) => kind !== "unsaid"), unfamiliar: data.unfamiliar });
      showFromServer(picture);
      pump();
    },
    /** Nothing more comes of the open picture; if nothing has come, `problem` may say why. */
    ended(picture, problem) {
      if (picture.state === "open") say(picture, ...(problem ? ["failed", problem] : ["stopped"]));
      pump();
    },
    /** By another captioner: what was captioned is captioned anew. */
    again() {
      for (const picture of pictures) if (picture.file && picture !== current) drop(picture, "waiting");
      pump();
    },
  };
};

/** All files of a drop, those in folders included. */
sightline.filesOf = async (given) => {
  const entries = [...given.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some(({ isDirectory }) => isDirectory)) return [...given.files];
  const isPicture = ({ name, type }) => type.startsWith("image/") || /\.(heic|heif|avif)$/i.test(name);
  const walk = async (entry) => {
    if (entry.isFile) return [await new Promise((resolve, reject) => entry.file(resolve, reject))].filter(isPicture);
    const reader = entry.createReader();
    const inside = [];
    for (;;) { // a reader gives a part of a folder at a time
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) break;
      inside.push(...some);
    }
    inside.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    return (await Promise.all(inside.map(walk))).flat();
  };
  return (await Promise.all(entries.map(walk))).flat();
};
