"use strict";

/** The page for one's own pictures: dropped, pasted, chosen, or of the folder of the server. */
(async () => {
  const { make } = sightline;
  const root = document.getElementById("page");
  const about = await (await fetch("/desk/about")).json();
  let captioner = about.models[0];
  const model = () => captioner;

  const files = make("input", { type: "file", id: "files", accept: "image/*,.heic,.heif,.avif", multiple: true, class: "spoken",
    onchange: () => { tray.add([...files.files]); files.value = ""; } });
  const choose = make("label", { for: "files", class: "button" }, "Choose pictures");
  const models = about.models.length > 1
    ? sightline.choose("Captioner", about.models.map((name) => [name, name]), captioner, (name) => { captioner = name; live.again(); tray.again(); })
    : null;
  if (models) models.select.id = "captioner";
  const greeting = make("div", { class: "greeting" },
    make("h1", {}, "What is in your picture?"),
    make("p", {}, "Drop pictures anywhere on this page, paste one, or choose some. They stay on this machine."));
  const status = make("div", { class: "status", id: "progress" });
  const zone = make("div", { class: "zone" }, greeting, make("div", { class: "row" }, files, choose, models, status));
  const report = make("div", { id: "report" });
  const folder = make("div", { class: "folder" });

  const live = sightline.liveReport(report, status, {
    model,
    seen: (picture, data) => tray.seen(picture, data),
    ended: (picture, problem) => tray.ended(picture, problem),
  });
  const tray = sightline.tray({
    model,
    hold: live.isEarly, // until the open picture has its verdicts, it comes first
    open(picture) {
      greeting.hidden = true;
      report.replaceChildren();
      live.open(picture);
    },
  });
  root.replaceChildren(zone, tray.list, tray.background, report, folder);

  // The folder that the server was started with.
  if (about.folder.length) {
    const all = about.folder.map((name, number) => ({ name, number }));
    const shown = 60;
    const list = make("ul", { class: "tray wide" });
    const grow = (from) => {
      for (const picture of all.slice(from, from + shown)) list.append(tray.entry(picture, `/desk/thumbnails/${picture.number}`));
      if (from + shown < all.length) {
        const button = make("button", { type: "button", class: "plain", onclick: () => { button.remove(); grow(from + shown); } }, `Show more of ${all.length + about.more}`);
        folder.append(button);
      }
    };
    folder.append(make("h2", {}, "In the folder"), list);
    grow(0);
  }

  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    tray.add(await sightline.filesOf(event.dataTransfer));
  });
  document.addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length) { event.preventDefault(); tray.add(pasted); }
  });
})();
