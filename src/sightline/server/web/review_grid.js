"use strict";

/**
 * A list of any number of cards of one size, of which only those near the screen are made.
 * `card(id, place)` makes one; `choose(place)` is told when another one becomes the current one.
 */
sightline.grid = (label, card, choose) => {
  const { make } = sightline;
  const space = make("div", { class: "space", role: "listbox", "aria-label": label, tabindex: "-1" });
  const view = make("div", { class: "view-of-grid" }, space);
  const made = new Map();
  let ids = [];
  let current = 0;
  let columns = 1;
  let width = 1;
  let height = 1;

  const measure = () => {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const room = Math.max(view.clientWidth, 1);
    columns = Math.max(room < 30 * rem ? 2 : 1, Math.floor(room / (14.5 * rem)));
    width = room / columns;
    height = Math.round(Math.min(width * 0.72, 13 * rem) + 7.2 * rem);
  };
  const position = (element, place) => {
    element.style.transform = `translate(${(place % columns) * width}px, ${Math.floor(place / columns) * height}px)`;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
  };
  const show = (place) => {
    const element = card(ids[place], place);
    for (const [name, value] of Object.entries({
      role: "option", id: `card-${place}`, "aria-posinset": place + 1, "aria-setsize": ids.length,
      "aria-selected": place === current, tabindex: place === current ? 0 : -1,
    })) element.setAttribute(name, value);
    element.addEventListener("click", () => move(place));
    position(element, place);
    return element;
  };
  const draw = () => {
    const rows = Math.ceil(ids.length / columns);
    space.style.height = `${rows * height}px`;
    const first = Math.max(0, Math.floor(view.scrollTop / height) - 2) * columns;
    const last = Math.min(ids.length, (Math.ceil((view.scrollTop + view.clientHeight) / height) + 2) * columns);
    for (const [place, element] of made) {
      if ((place < first || place >= last) && place !== current) {
        element.remove();
        made.delete(place);
      }
    }
    for (let place = first; place < last; place += 1) {
      if (!made.has(place)) {
        made.set(place, show(place));
        space.append(made.get(place));
      }
    }
    if (ids.length && !made.has(current)) {
      made.set(current, show(current));
      space.append(made.get(current));
    }
  };
  const clear = () => {
    for (const element of made.values()) element.remove();
    made.clear();
  };
  const reveal = () => {
    const top = Math.floor(current / columns) * height;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + height > view.scrollTop + view.clientHeight) view.scrollTop = top + height - view.clientHeight;
  };
  /** Make another card the current one. */
  const move = (place, focus = true) => {
    if (!ids.length) return;
    const before = made.get(current);
    if (before) {
      before.setAttribute("aria-selected", "false");
      before.tabIndex = -1;
    }
    current = Math.min(Math.max(place, 0), ids.length - 1);
    reveal();
    draw();
    const element = made.get(current);
    element.setAttribute("aria-selected", "true");
    element.tabIndex = 0;
    if (focus) element.focus({ preventScroll: true });
    choose(current);
  };
  view.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  view.addEventListener("keydown", (event) => {
    const page = columns * Math.max(1, Math.floor(view.clientHeight / height));
    const steps = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns,
      PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity,
    };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(event.key === "Home" ? 0 : event.key === "End" ? ids.length - 1 : current + steps[event.key]);
  });
  new ResizeObserver(() => {
    measure();
    for (const [place, element] of made) position(element, place);
    draw();
  }).observe(view);
  return {
    element: view,
    move,
    get current() { return current; },
    get ids() { return ids; },
    /** Show other pictures; the current one stays if it is among them, and keeps the focus. */
    fill(next) {
      const focused = space.contains(document.activeElement);
      const kept = next.indexOf(ids[current]);
      ids = next;
      current = Math.max(kept, 0);
      clear();
      measure();
      if (kept < 0) view.scrollTop = 0;
      draw();
      if (focused) move(current);
    },
    /** Make the card of a picture anew, where it is shown. */
    renew(id) {
      for (const [place, old] of [...made]) {
        if (ids[place] === id) {
          const focused = document.activeElement === old;
          const element = show(place);
          old.replaceWith(element);
          made.set(place, element);
          if (focused) element.focus({ preventScroll: true });
        }
      }
    },
    shown: () => [...made.keys()].map((place) => ids[place]),
  };
};
