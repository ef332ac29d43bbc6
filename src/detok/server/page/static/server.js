// Everything that is asked of the server, and of nobody else.

import { byId } from "./dom.js";

let key = "";

/** What the server said no with, in its own words. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Asks, with the API key if there is one. A 401 shows the field for it. */
export async function ask(path, { body, signal } = {}) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  // Cookies are no part of this API, and a redirect would lead somewhere else.
  const answer = await fetch(path, { method, headers, body, signal, credentials: "omit", redirect: "error" });
  if (answer.ok) return answer;
  if (answer.status === 401) byId("key").hidden = false;
  throw new Refusal(answer.status, await reason(answer));
}

export const askJson = async (path, value, signal) =>
  (await ask(path, { body: value === undefined ? undefined : JSON.stringify(value), signal })).json();

async function reason(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return text.slice(0, 300) || `the server answered ${answer.status}`;
  }
}

/** Calls back when the reader has given a key. */
export function onKey(callback) {
  byId("key").addEventListener("submit", (event) => {
    event.preventDefault();
    key = byId("key-value").value.trim();
    byId("key").hidden = true;
    callback();
  });
}

/** The data of each event of a `text/event-stream`, as it comes. */
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? "";
    // An event ends with an empty line. A lone \r at the end may be the first half of a line end.
    const blocks = rest.split(/\r\n\r\n|\n\n|\r\r(?!$)/);
    rest = done ? "" : blocks.pop();
    for (const block of blocks) {
      const lines = block.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:"));
      if (lines.length) yield lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    }
    if (done) return;
  }
}
