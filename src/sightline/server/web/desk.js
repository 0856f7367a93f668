"use strict";

/** The page for one's own pictures: dropped, pasted, chosen, or of the folder of the server. */
(async () => {
  const { make } = sightline;
  const root = document.getElementById("page");
  const about = await (await fetch("/desk/about")).json();
  let captioner = about.models[0];

  const files = make("input", { type: "file", id: "files", accept: "image/*,.heic,.heif,.avif", multiple: true, class: "spoken",
    onchange: () => { add([...files.files]); files.value = ""; } });
  const choose = make("label", { for: "files", class: "button" }, "Choose pictures");
  const models = about.models.length > 1
    ? sightline.choose("Captioner", about.models.map((name) => [name, name]), captioner, (name) => { captioner = name; live.again(); })
    : null;
  if (models) models.select.id = "captioner";
  const greeting = make("div", { class: "greeting" },
    make("h1", {}, "What is in your picture?"),
    make("p", {}, "Drop pictures anywhere on this page, paste one, or choose some. They stay on this machine."));
  const zone = make("div", { class: "zone" }, greeting, make("div", { class: "row" }, files, choose, models));
  const tray = make("ul", { class: "tray", "aria-label": "Pictures" });
  const status = make("div", { class: "status", role: "status" });
  const report = make("div", { id: "report" });
  const folder = make("div", { class: "folder" });
  root.replaceChildren(zone, tray, status, report, folder);

  const pictures = [];
  const live = sightline.liveReport(report, status, {
    model: () => captioner,
    seen(picture, data) {
      picture.image?.setAttribute("src", data.picture.source);
      picture.image?.removeAttribute("hidden");
      picture.label.textContent = data.caption.text;
    },
  });
  const open = (picture) => {
    greeting.hidden = true;
    for (const other of pictures) other.button.setAttribute("aria-pressed", String(other === picture));
    report.replaceChildren();
    live.open(picture);
  };
  const entry = (picture, source) => {
    picture.image = make("img", { alt: "", src: source, onerror: () => { picture.image.hidden = true; } }); // a browser may not know HEIC
    picture.label = make("span", {}, picture.name);
    picture.button = make("button", { type: "button", "aria-pressed": "false", onclick: () => open(picture) }, picture.image, picture.label);
    return make("li", {}, picture.button);
  };
  const add = (chosen) => {
    const some = chosen.filter(({ size }) => size).map((file) => ({ name: file.name || "pasted picture", file }));
    for (const picture of some) {
      pictures.push(picture);
      tray.append(entry(picture, URL.createObjectURL(picture.file)));
    }
    if (some.length) open(some[0]);
  };

  // The folder that the server was started with.
  if (about.folder.length) {
    const all = about.folder.map((name, number) => ({ name, number }));
    const shown = 60;
    const list = make("ul", { class: "tray wide" });
    const grow = (from) => {
      for (const picture of all.slice(from, from + shown)) {
        pictures.push(picture);
        const item = entry(picture, `/desk/thumbnails/${picture.number}`);
        picture.image.setAttribute("loading", "lazy");
        list.append(item);
      }
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
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    add([...event.dataTransfer.files]);
  });
  document.addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length) { event.preventDefault(); add(pasted); }
  });
})();
