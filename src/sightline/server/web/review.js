"use strict";

/** The page over a folder under review: a grid, the picture in hand, and what can be decided. */
{
  const { make, many, spoken, ask } = sightline;
  const entries = new Map();
  const wanted = new Set();
  const view = { filter: "open", order: "doubt", text: "", state: null };
  const names = {
    all: "All", open: "To decide", waiting: "Not captioned yet", marked: "With marked words",
    unfamiliar: "Unfamiliar pictures", accepted: "Accepted", edited: "Edited", rejected: "Rejected", failed: "Cannot be read",
  };
  const orders = { doubt: "Most doubtful first", name: "By name", recent: "Last decided first" };
  const signs = { open: "", accepted: "✓ accepted", edited: "✎ edited", rejected: "✗ rejected" };

  const said = (entry) => (entry.text === null ? entry.caption : entry.text);
  const line = (entry) => {
    if (entry.error) return [make("span", { class: "quiet" }, entry.error)];
    if (entry.text !== null && entry.text !== entry.caption) return [entry.text];
    if (entry.caption === null) return [make("span", { class: "quiet" }, "Not captioned yet")];
    if (!entry.words.length) return [entry.caption];
    return entry.words.flatMap(({ text, verdict }) => [
      make("span", { class: `word ${sightline.toneOf(verdict) ?? ""}` },
        make("span", { class: "text" }, text),
        verdict && verdict !== "seen" ? make("span", { class: "mark", "aria-hidden": "true" }, sightline.marks[verdict]) : null,
        verdict && verdict !== "seen" ? spoken(`, ${verdict}`) : null),
      " ",
    ]);
  };

  const note = make("p", { id: "note", role: "status", class: "quiet" });
  const say = (text) => { note.textContent = text; };
  const count = make("p", { id: "count", class: "quiet" });
  const bar = make("progress", { id: "progress", max: 1, value: 0, "aria-label": "Decided" });
  const pause = make("button", { class: "plain", id: "pause", onclick: () => run(!view.state.captioning) });
  const again = make("button", { class: "plain", id: "again", hidden: true, onclick: () => load() }, "Sort again");

  const card = (id) => {
    const entry = entries.get(id);
    const element = make("div", { class: `tile ${entry ? entry.state : ""}`, "data-id": id });
    if (!entry) {
      want(id);
      element.append(make("span", { class: "quiet" }, "…"));
      return element;
    }
    element.append(
      entry.error ? make("div", { class: "no-picture", "aria-hidden": "true" }, "✗") : make("img", { src: `/review/pictures/${id}`, alt: "", loading: "lazy" }),
      make("span", { class: "line" }, line(entry)),
      make("span", { class: "under" },
        entry.unfamiliar ? make("span", { class: "flag" }, "unfamiliar ") : null,
        signs[entry.state] ? make("span", { class: "sign" }, signs[entry.state]) : null,
        make("span", { class: "quiet name" }, entry.name)));
    return element;
  };

  // Cards ask for what they show; the questions of one moment are put together.
  let asking = null;
  const want = (id) => {
    wanted.add(id);
    asking ??= setTimeout(async () => {
      const ids = [...wanted].slice(0, 200);
      for (const id of ids) wanted.delete(id);
      asking = null;
      try {
        for (const entry of await ask(`/review/entries?ids=${ids.join(",")}`)) keep(entry);
      } catch (error) { say(error.message); }
      if (wanted.size) want([...wanted][0]);
    }, 20);
  };
  const keep = (entry) => {
    // An answer from before a decision that was made meanwhile.
    if (entry.decision < (entries.get(entry.id)?.decision ?? 0)) return;
    entries.set(entry.id, entry);
    grid.renew(entry.id);
    if (grid.ids[grid.current] === entry.id) present();
  };
  const grid = sightline.grid("Pictures", card, () => present());

  // --- the picture in hand ---
  const picture = make("img", { id: "large", alt: "" });
  const caption = make("p", { class: "in-hand", id: "caption" });
  const name = make("p", { class: "quiet" });
  const status = make("p", { class: "sign", id: "decided" });
  const text = make("textarea", { id: "text", rows: 3, maxlength: 5000 });
  const button = (label, key, act, id) => make("button", { class: "plain", id, "aria-keyshortcuts": key, onclick: act }, `${label} `, make("kbd", { "aria-hidden": "true" }, key));
  const hand = make("section", { class: "hand", "aria-label": "The picture in hand" },
    make("div", { class: "large" }, picture),
    make("div", { class: "decide" }, caption, status, name,
      make("label", { for: "text" }, "Caption to keep"), text,
      make("div", { class: "acts" },
        button("Accept", "A", () => accept(), "accept"),
        button("Save edit", "Enter", () => edit(), "save"),
        button("Reject", "R", () => decide("rejected"), "reject"),
        button("Undo", "U", () => undo(), "undo")),
      make("p", { class: "quiet" }, "Arrow keys move. E edits; Enter saves, Escape leaves it.")));
  let presented = null;
  const present = () => {
    const entry = entries.get(grid.ids[grid.current]);
    hand.hidden = !entry;
    if (!entry) return;
    const key = `${entry.id} ${entry.decision} ${entry.caption}`;
    if (key === presented) return;
    // What somebody is writing is not replaced by a caption that arrives.
    const writing = document.activeElement === text && presented?.startsWith(`${entry.id} `);
    presented = key;
    picture.hidden = Boolean(entry.error);
    if (!entry.error) {
      picture.src = `/review/pictures/${entry.id}?side=1600`;
      picture.alt = said(entry) ?? "A picture without a caption yet";
    }
    caption.replaceChildren(...line(entry));
    name.textContent = entry.name;
    status.textContent = [signs[entry.state], entry.unfamiliar ? "The captioner does not know pictures like this one." : ""].filter(Boolean).join(" · ");
    if (!writing) text.value = said(entry) ?? "";
  };

  const past = [];
  const deciding = new Set(); // their answers are still to come
  const decide = async (state, words = null, id = grid.ids[grid.current]) => {
    const entry = entries.get(id);
    if (!entry || deciding.has(id)) return;
    deciding.add(id);
    try {
      const { entry: kept, counts } = await ask("/review/decisions", { id, state, text: words, after: entry.decision });
      if (state !== "open") past.push(id);
      const inHand = grid.ids[grid.current] === id;
      if (inHand) presented = null;
      keep(kept);
      view.state.counts = counts;
      tell();
      say(`${kept.name}: ${signs[state] || "open again"}`);
      if (!inHand) return; // whoever has gone elsewhere meanwhile stays there
      if (state !== "open" && grid.current < grid.ids.length - 1) grid.move(grid.current + 1);
      else if (document.activeElement === text) grid.move(grid.current);
    } catch (error) {
      say(error.message);
      if (error.status === 409) want(id);
    } finally {
      deciding.delete(id);
    }
  };
  const edit = () => decide("edited", text.value);
  /** Accept the caption to keep: one that somebody has changed is an edit, and not thrown away. */
  const accept = () => {
    const entry = entries.get(grid.ids[grid.current]);
    return entry && text.value !== (said(entry) ?? "") ? edit() : decide("accepted");
  };
  /** Take back the last decision, whether its picture is still shown or not. */
  const undo = () => {
    const id = past.pop() ?? grid.ids[grid.current];
    const place = grid.ids.indexOf(id);
    if (place >= 0) grid.move(place);
    return decide("open", null, id);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === text) {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        edit();
      } else if (event.key === "Escape") {
        presented = null;
        grid.move(grid.current);
      }
      return;
    }
    if (event.target.closest("input, select, textarea")) return;
    const act = { a: accept, r: () => decide("rejected"), u: undo, e: () => { text.focus(); text.select(); } }[event.key.toLowerCase()];
    if (act) {
      event.preventDefault();
      if (!event.repeat) act(); // a key that is held decides once
    }
  });

  // --- what is shown, and how far it is ---
  const filter = sightline.choose("Show", Object.entries(names), view.filter, (value) => { view.filter = value; load(); });
  filter.select.id = "filter";
  const order = sightline.choose("Order", Object.entries(orders), view.order, (value) => { view.order = value; load(); });
  order.select.id = "order";
  const search = make("input", { type: "search", id: "search", "aria-label": "Find in names and captions", placeholder: "Find" });
  let typing = null;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { view.text = search.value; load(); }, 200);
  });

  const tell = () => {
    const { counts, captioning, error } = view.state;
    for (const option of filter.select.options) option.textContent = `${names[option.value]} (${counts[option.value]})`;
    const decided = counts.accepted + counts.edited + counts.rejected;
    bar.max = Math.max(1, counts.all);
    bar.value = decided;
    const captioned = counts.all - counts.waiting;
    count.textContent = `${decided} of ${counts.all} decided` +
      (counts.waiting ? ` · ${captioned} captioned${captioning ? ", and going on" : ""}` : "") + ` · ${grid.ids.length} shown`;
    pause.hidden = !counts.waiting && !captioning;
    pause.textContent = captioning ? "Pause captioning" : "Caption the rest";
    if (error) say(error);
  };
  let loads = 0;
  const load = async () => {
    const mine = (loads += 1);
    try {
      const query = new URLSearchParams({ filter: view.filter, order: view.order, text: view.text });
      const { ids, ...state } = await ask(`/review/order?${query}`);
      if (mine !== loads) return; // another question took its place
      view.state = state;
      view.sorted = state.counts.all - state.counts.waiting;
      again.hidden = true;
      presented = null;
      grid.fill(ids);
      tell();
      present();
      document.querySelector(".empty").hidden = ids.length > 0;
    } catch (error) { say(error.message); }
  };
  const run = async (wish) => {
    try {
      view.state = { ...view.state, ...(await ask("/review/captioning", { run: wish })) };
      tell();
      if (wish) watch();
    } catch (error) { say(error.message); }
  };
  let watching = false;
  /** While captions come: fill the cards that wait, and say that there are more to sort. */
  const watch = async () => {
    if (watching) return;
    watching = true;
    for (;;) {
      await new Promise((done) => setTimeout(done, 1500));
      try {
        view.state = { ...view.state, ...(await ask("/review/state")) };
      } catch (error) { say(error.message); continue; }
      const captioned = view.state.counts.all - view.state.counts.waiting;
      for (const id of grid.shown()) if (entries.get(id)?.caption === null) want(id);
      // Nobody has begun yet: then it is sorted at once.
      if (captioned > view.sorted) {
        if (!past.length && grid.current === 0 && document.activeElement !== text) await load();
        else again.hidden = false;
      }
      tell();
      if (!view.state.captioning) break;
    }
    watching = false;
  };

  const link = (text, href) => make("a", { href, download: "" }, text);
  const beside = async (format) => {
    try {
      const { written, unchanged, kept } = await ask(`/review/sidecars/${format}`, {});
      say(`${many(written, "sidecar")} written, ${unchanged} up to date` +
        (kept.length ? `, ${kept.length} left alone because somebody else wrote them: ${kept.slice(0, 3).join(", ")}${kept.length > 3 ? " …" : ""}` : "") + ".");
    } catch (error) { say(error.message); }
  };
  const exports = make("details", { class: "exports" }, make("summary", {}, "Export"),
    make("p", { class: "quiet" }, "Captions that were accepted or edited. Sidecars are written beside the pictures; texts of other people stay."),
    make("div", { class: "acts" },
      link("CSV", "/review/tables/csv"), link("JSONL", "/review/tables/jsonl"),
      link("CSV of all pictures", "/review/tables/csv?undecided=true"),
      make("button", { class: "plain", id: "export-txt", onclick: () => beside("txt") }, "Text sidecars"),
      make("button", { class: "plain", id: "export-xmp", onclick: () => beside("xmp") }, "XMP sidecars")));

  const page = document.getElementById("page");
  page.classList.add("review");
  page.replaceChildren(
    make("header", { class: "top" }, make("h1", { class: "title-small" }, "Review"), bar, count, pause, again),
    make("div", { class: "bar" }, filter, order, search, exports),
    note,
    make("div", { class: "desk-of-review" },
      make("div", { class: "pictures" }, grid.element, make("p", { class: "empty quiet", hidden: true }, "No picture is shown here.")),
      hand));
  load().then(() => { if (view.state?.captioning) watch(); });
}
