"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const words = [...document.querySelectorAll(".word")]; // in the order of data.words
const decoded = new Map(); // an explanation -> a promise of the pixels of its heatmap
let pinned = data.first; // the selected word
let pointed = null; // the word under the pointer, or with the focus
let drawing = 0;

const shown = () => pointed ?? pinned;
const method = () => document.querySelector('input[name="method"]:checked').value;
const explanationOf = (index) =>
  data.explanations.find((why) => why.word === index && why.method === method());

/** An element with text and children; everything is text, nothing is ever read as HTML. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** Rows of a name, a bar (its length from -1 to 1) and a number. */
function bars(rows) {
  const list = make("dl", "bars");
  for (const { name, length, number, sign } of rows) {
    const bar = make("span", sign ?? "");
    bar.style.width = `${Math.min(Math.abs(length), 1) * 100}%`;
    const cell = make("dd", "bar", bar);
    cell.setAttribute("aria-hidden", "true");
    list.append(make("dt", "", name), cell, make("dd", "number", number));
  }
  return list;
}

function describe(index, why) {
  const word = data.words[index];
  const parts = [make("h2", "", word.heading), make("p", "", word.likelihood)];
  if (word.support) {
    parts.push(make("p", `verdict ${word.support.style}`, word.support.text));
    parts.push(make("p", "quiet", word.support.evidence));
  }
  if (!why) {
    parts.push(make("p", "quiet", "No explanation of this word was requested."));
  } else if (why.shares) {
    parts.push(make("h3", "", "Sources of relevance"), bars(why.shares));
    parts.push(make("p", "quiet", "Computed after evidence for and against the word is added up."));
    parts.push(make("h3", "", "The previous words"), bars(why.before));
  }
  parts.push(make("h3", "", "Alternatives at this position"), bars(word.alternatives));
  if (why?.parts) {
    parts.push(make("h3", "", "Where the score comes from"), bars(why.parts));
  }
  find("details").replaceChildren(...parts);
}

/** Underline the previous words: as thick as their relevance, solid for the word, dashed against it. */
function underline(index, why) {
  const place = index === null ? 0 : data.words[index].place;
  [find("start"), ...words].forEach((element, position) => {
    const weight = position <= place && why ? (why.underlines[position] ?? 0) : 0;
    const visible = Math.abs(weight) >= 0.02;
    element.toggleAttribute("data-sign", visible);
    if (visible) element.dataset.sign = weight > 0 ? "for" : "against";
    element.style.setProperty("--thickness", `${1 + 5 * Math.abs(weight)}px`);
  });
}

async function decode(why) {
  const image = new Image();
  image.src = why.map;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, image.width, image.height);
}

function levels(why) {
  if (!decoded.has(why)) decoded.set(why, decode(why));
  return decoded.get(why);
}

/** Colour the heatmap: level 128 is nothing, above it speaks for the word, below against it. */
async function colour(why) {
  const turn = ++drawing;
  const heat = find("heat");
  find("picture").classList.toggle("lit", Boolean(why));
  heat.hidden = !why;
  if (!why) return;
  const source = await levels(why);
  if (turn !== drawing) return; // another word was asked for meanwhile
  const scales = data.explanations.filter((other) => other.method === why.method);
  const largest = Math.max(...scales.map((other) => other.scale));
  const factor = Number(find("contrast").value) * (find("common").checked ? why.scale / largest : 1);
  const target = new ImageData(source.width, source.height);
  for (let i = 0; i < source.data.length; i += 4) {
    const value = (source.data[i] - 128) / 127;
    const [red, green, blue] = value > 0 ? data.colours.for : data.colours.against;
    target.data.set([red, green, blue, 255 * Math.min(Math.abs(value) * factor, 1)], i);
  }
  [heat.width, heat.height] = [source.width, source.height];
  heat.getContext("2d").putImageData(target, 0, 0);
}

function show() {
  const index = shown();
  const why = index === null ? undefined : explanationOf(index);
  const replaced = index !== null && !data.words[index].said ? data.words[index].place : null;
  words.forEach((element, i) => {
    element.setAttribute("aria-pressed", String(i === pinned));
    element.classList.toggle("shown", i === index);
    element.classList.toggle("replaced", i === replaced && data.words[i].said);
  });
  const chosen = data.methods.find((one) => one.name === method());
  find("sentence").textContent = chosen.sentence;
  find("summary").textContent = why ? why.summary : "The picture without a heatmap.";
  if (index === null) find("details").replaceChildren(make("p", "quiet", "No word is selected."));
  else describe(index, why);
  underline(index, why);
  colour(why);
}

words.forEach((element, index) => {
  const point = (at) => () => {
    pointed = at;
    show();
  };
  element.addEventListener("pointerenter", point(index));
  element.addEventListener("pointerleave", point(null));
  element.addEventListener("focus", point(index));
  element.addEventListener("blur", point(null));
  element.addEventListener("click", () => {
    pinned = pinned === index ? null : index;
    show();
  });
});

find("caption").addEventListener("keydown", (event) => {
  const here = words.indexOf(document.activeElement);
  const last = words.length - 1;
  const next = {
    ArrowRight: Math.min(here + 1, last),
    ArrowLeft: Math.max(here - 1, 0),
    Home: 0,
    End: last,
  }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    pinned = next;
    words[next].focus();
    show();
  } else if (event.key === "Escape") {
    pinned = pointed = null;
    show();
  }
});

find("methods").addEventListener("change", show);
for (const id of ["contrast", "common"]) find(id).addEventListener("input", show);
find("grey").addEventListener("input", () =>
  find("picture").classList.toggle("grey", find("grey").checked),
);
const setOpacity = () => {
  find("heat").style.opacity = find("opacity").value / 100;
};
find("opacity").addEventListener("input", setOpacity);
setOpacity();
show();
