"use strict";

/** The parts that pages are made of. They are told what to show as data; see page_data.py. */
const sightline = {};

/** An element. Children are elements or text: nothing is ever read as HTML. */
sightline.make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
};

/** A number of things: "1 pair", "2 pairs". */
sightline.many = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

/** Text that only a screen reader reads. */
sightline.spoken = (text) => sightline.make("span", { class: "spoken" }, text);

/** The mark of a verdict: never a colour alone. */
sightline.marks = { seen: "✓", doubtful: "?", "not supported": "✗" };
sightline.toneOf = (verdict) => (verdict === "not supported" ? "unsupported" : verdict);

/** Values that parts of a page share; each part is told when they change. */
sightline.share = (values) => {
  const listeners = [];
  return {
    values,
    set(changes) {
      Object.assign(values, changes);
      for (const listener of listeners) listener(values);
    },
    follow(listener) {
      listeners.push(listener);
      listener(values);
    },
  };
};

/** A labelled choice among options, each a value and its text. */
sightline.choose = (label, options, value, change) => {
  const select = sightline.make(
    "select",
    { onchange: () => change(select.value) },
    options.map(([name, text]) => sightline.make("option", { value: name }, text)),
  );
  select.value = value;
  const box = sightline.make("label", { class: "choice" }, `${label} `, select);
  box.select = select;
  return box;
};
