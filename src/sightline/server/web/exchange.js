"use strict";

/** Ask the server; with a body, tell it something. What goes wrong is an Error with one sentence. */
sightline.ask = async (path, body) => {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw Object.assign(new Error("The server does not answer. Is it still running?"), { status: 0 });
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(content.detail ?? `The server says ${response.status}.`), { status: response.status });
  return content;
};
