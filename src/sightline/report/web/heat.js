"use strict";

/** Heatmaps in colour: grey level 128 is nothing, above it speaks for the word, below against it. */
sightline.heat = (data) => {
  const decoded = new Map(); // a data URI -> a promise of its pixels
  const turns = new WeakMap(); // a canvas -> the number of its latest drawing

  async function decode(source, width) {
    const image = new Image();
    image.src = source;
    await image.decode();
    const height = Math.round((image.height * (width ?? image.width)) / image.width);
    const canvas = sightline.make("canvas", { width: width ?? image.width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return context.getImageData(0, 0, canvas.width, canvas.height);
  }

  function pixels(source, width) {
    const key = `${width ?? ""} ${source}`;
    if (!decoded.has(key)) decoded.set(key, decode(source, width));
    return decoded.get(key);
  }

  /** How strong colours are: on a scale that is common to several words, those with less relevance are paler. */
  function strength(why, { contrast, common, among = data.explanations }) {
    const scales = among.filter((other) => other.method === why.method).map((other) => other.scale);
    return contrast * (common ? why.scale / Math.max(...scales) : 1);
  }

  async function colour(why, view) {
    const levels = await pixels(why.map);
    const factor = strength(why, view);
    const target = new ImageData(levels.width, levels.height);
    for (let i = 0; i < levels.data.length; i += 4) {
      const value = (levels.data[i] - 128) / 127;
      const [red, green, blue] = value > 0 ? data.colours.for : data.colours.against;
      target.data.set([red, green, blue, 255 * Math.min(Math.abs(value) * factor, 1)], i);
    }
    return target;
  }

  /** Keep a drawing only if no later one was asked of the same canvas. */
  async function latest(canvas, draw) {
    const turn = (turns.get(canvas) ?? 0) + 1;
    turns.set(canvas, turn);
    const drawn = await draw();
    if (turns.get(canvas) !== turn) return;
    [canvas.width, canvas.height] = [drawn.width, drawn.height];
    canvas.getContext("2d").drawImage(drawn, 0, 0);
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn ?? 0) + 1);
  }

  function onCanvas(image) {
    const canvas = sightline.make("canvas", { width: image.width, height: image.height });
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  return {
    /** The heatmap alone, to lie over the picture. */
    over: (canvas, why, view) => latest(canvas, async () => onCanvas(await colour(why, view))),

    /** The picture in grey and the heatmap on it, small. */
    small: (canvas, why, view) =>
      latest(canvas, async () => {
        const picture = await pixels(data.picture.source, Math.min(data.picture.width, 480));
        const grey = new ImageData(picture.width, picture.height);
        for (let i = 0; i < picture.data.length; i += 4) {
          const [red, green, blue] = picture.data.subarray(i, i + 3);
          const level = 0.299 * red + 0.587 * green + 0.114 * blue;
          grey.data.set([level, level, level, 255], i);
        }
        const drawn = onCanvas(grey);
        const context = drawn.getContext("2d");
        context.globalAlpha = data.colours.opacity;
        if (why) context.drawImage(onCanvas(await colour(why, view)), 0, 0, grey.width, grey.height);
        return drawn;
      }),
  };
};
