// A request to a model, streamed: what every client of this server sees.

import { byId, chosen, count, make } from "./dom.js";
import { Refusal, ask, askJson, events } from "./server.js";

let running = null;

/** Looks which models there are. */
export async function startTalk(hasModels) {
  const lead = byId("talk-lead");
  if (!hasModels) {
    lead.textContent = "This server has no model to talk to.";
    return;
  }
  try {
    const { data } = await askJson("v1/models");
    if (!data.length) throw new Error("there are none");
    byId("model").replaceChildren(...data.map(({ id }) => make("option", { value: id }, id)));
    lead.textContent = "Whatever the engine, its ids become text here, streamed as any client of the API sees it.";
    byId("talk-box").hidden = false;
  } catch (error) {
    lead.textContent = `The server does not say which models it has: ${error.message}`;
  }
}

export function prepareTalk() {
  byId("talk-form").addEventListener("submit", (event) => {
    event.preventDefault();
    talk();
  });
  byId("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("talk-form").requestSubmit();
  });
  byId("halt").addEventListener("click", () => running?.abort());
}

function question() {
  const what = {
    model: byId("model").value,
    max_tokens: byId("max-tokens").valueAsNumber || 128,
    stream: true,
    stream_options: { include_usage: true },
  };
  const prompt = byId("prompt").value;
  if (chosen("api") === "completion") return ["v1/completions", { ...what, prompt }];
  return ["v1/chat/completions", { ...what, messages: [{ role: "user", content: prompt }] }];
}

/** Sends, and shows what comes as it comes. */
async function talk() {
  running?.abort();
  const mine = (running = new AbortController());
  const [path, body] = question();
  const seen = { began: performance.now(), first: null, chunks: 0, empty: 0, usage: null, finish: null, stop: null, error: null };
  byId("answer").replaceChildren();
  busy(true);
  const told = setInterval(() => tell(seen), 250);
  try {
    const answer = await ask(path, { body: JSON.stringify(body), signal: mine.signal });
    for await (const data of events(answer)) {
      if (data === "[DONE]") break;
      take(JSON.parse(data), seen);
    }
  } catch (error) {
    if (error.name === "AbortError") seen.finish = "you stopped it";
    else seen.error = error.message;
  }
  clearInterval(told);
  if (running !== mine) return;
  running = null;
  tell(seen);
  busy(false);
}

function take(chunk, seen) {
  if (chunk.error) throw new Refusal(chunk.error.code, chunk.error.message);
  seen.usage = chunk.usage ?? seen.usage;
  for (const choice of chunk.choices ?? []) {
    const text = choice.text ?? choice.delta?.content ?? "";
    const aside = choice.delta?.reasoning_content ?? choice.delta?.reasoning ?? "";
    seen.chunks += 1;
    if (text || aside) seen.first ??= performance.now();
    else if (!choice.finish_reason) seen.empty += 1;
    if (aside) byId("answer").append(make("span", { className: "aside" }, aside));
    if (text) byId("answer").append(text);
    seen.finish = choice.finish_reason ?? seen.finish;
    seen.stop = choice.stop_reason ?? seen.stop;
  }
}

function tell({ began, first, chunks, empty, usage, finish, stop, error }) {
  const parts = [count(chunks, "chunk"), `${empty} empty`];
  if (first !== null) parts.push(`first text after ${Math.round(first - began)} ms`);
  if (usage) parts.push(count(usage.completion_tokens, "token"));
  if (finish) parts.push(`ended: ${finish}${stop === null ? "" : ` (${JSON.stringify(stop)})`}`);
  byId("answer-verdict").replaceChildren(
    error ? make("span", { className: "bad" }, `✗ ${error}`) : "",
    error && chunks === 0 ? "" : `${error ? " · " : ""}${parts.join(" · ")}`,
  );
}

function busy(is) {
  byId("send").disabled = is;
  byId("halt").disabled = !is;
  byId("answer").setAttribute("aria-busy", String(is));
}
