"use strict";

/** What went wrong, as a sentence. A fetch fails with a TypeError if nobody answers. */
sightline.sentenceOf = (error) => {
  const text = error instanceof TypeError ? "The server does not answer. Is it still running?" : error.message;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!…]$/.test(text) ? "" : "."}`;
};

/** Ask the server; with a body, tell it something. What goes wrong is an Error with one sentence. */
sightline.ask = async (path, body) => {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch (error) {
    throw Object.assign(new Error(sightline.sentenceOf(error)), { status: 0 });
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const problem = new Error(content.detail ?? `the server says ${response.status}`);
    throw Object.assign(new Error(sightline.sentenceOf(problem)), { status: response.status });
  }
  return content;
};
