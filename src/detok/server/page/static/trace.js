// The trace: what is asked, and the views of what came back.

import { byId, chosen, count, make } from "./dom.js";
import { beside, block, facts, heldChip, tableRow } from "./pieces.js";
import { Player } from "./player.js";
import { askJson } from "./server.js";

// So long after the last key the text is traced.
const PATIENCE = 180;

let shown = null;
let player = null;
let typing = null;
let running = null;

/** Fills the form from what the server offers, and traces the first example. */
export function startTrace(setup) {
  byId("tokenizer").append(...setup.tokenizers.map(({ name, description }) => make("option", { value: name, title: description }, name)));
  byId("beside").append(...setup.strategies.map((name) => make("option", { value: name }, NAMES[name] ?? name)));
  byId("example").append(...setup.examples.map(({ name }, place) => make("option", { value: String(place) }, name)));
  byId("input").maxLength = setup.limits.text;
  player ??= new Player(draw);
  byId("example").addEventListener("change", () => {
    if (byId("example").value !== "") useExample(setup.examples[Number(byId("example").value)]);
  });
  for (const id of ["input", "stop"]) byId(id).addEventListener("input", () => later());
  for (const id of ["tokenizer", "include-stop", "keep-special", "eager", "beside"]) byId(id).addEventListener("change", run);
  byId("kind").addEventListener("change", changeKind);
  byId("ask").addEventListener("submit", (event) => event.preventDefault());
  byId("example").value = "0";
  return useExample(setup.examples[0]);
}

const AS_LIBRARY = {
  true: "✓ equals the one-shot decode of the tokenizer's library",
  false: "not the one-shot decode of the tokenizer's library",
  null: "the tokenizer's library fails at these ids",
};
const NAMES = { window: "vLLM's window", "window+printable": "SGLang's window", decodestream: "tokenizers' DecodeStream" };

function useExample({ text, stop }) {
  chosen("kind", "text");
  byId("input").value = text;
  byId("stop").value = stop.map((one) => one.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")).join("\n");
  byId("keep-special").checked = text.includes("<|");
  return run();
}

function later() {
  byId("example").value = "";
  clearTimeout(typing);
  typing = setTimeout(run, PATIENCE);
}

/** From a text to its ids; from ids to the text that they are. */
function changeKind() {
  if (shown) byId("input").value = chosen("kind") === "ids" ? shown.ids.join(" ") : shown.right;
  byId("example").value = "";
  run();
}

const stops = () =>
  byId("stop").value.split("\n").filter((line) => line !== "")
    .map((line) => line.replace(/\\(n|t|\\)/g, (_, char) => ({ n: "\n", t: "\t", "\\": "\\" })[char]));

/** The body of the request. Ids may stand as they are printed anywhere: with spaces, commas or brackets. */
function asked() {
  const input = byId("input").value;
  const what = {
    tokenizer: byId("tokenizer").value,
    stop: stops(),
    include_stop_str_in_output: byId("include-stop").checked,
    skip_special_tokens: !byId("keep-special").checked,
    byte_fallback: byId("eager").checked ? "eager" : "exact",
    strategy: byId("beside").value,
  };
  if (chosen("kind") === "text") return { ...what, text: input };
  const words = input.split(/[\s,;[\]()]+/).filter((word) => word !== "");
  const odd = words.find((word) => !/^-?\d+$/.test(word) || !Number.isSafeInteger(Number(word)));
  if (odd !== undefined) throw new Error(`“${odd}” is no token id; ids are integers, like 17 1024 33`);
  return { ...what, ids: words.map(Number) };
}

/** Traces what the form says. An answer that was overtaken by a newer question is not shown. */
async function run() {
  clearTimeout(typing);
  running?.abort();
  const mine = (running = new AbortController());
  try {
    const [question, input] = [asked(), byId("input").value];
    const answer = await askJson("page/trace", question, mine.signal);
    if (running === mine) show(question, answer, input);
  } catch (error) {
    if (running !== mine || error.name === "AbortError") return;
    byId("error").textContent = error.message;
    byId("error").hidden = false;
    byId("result").hidden = true;
  }
}

/** Traces again: with the key that the reader has just given, say. */
export const traceAgain = run;

function show(question, answer, input) {
  const { rows } = answer;
  const end = rows.find((row) => !row.dropped && row.position + 1 === answer.tokens_kept);
  if (end && answer.stop_reason !== null) end.ends = true;
  const compares = question.strategy !== "alone";
  const otherName = compares ? (NAMES[question.strategy] ?? question.strategy) : "each token decoded alone";
  shown = { ...answer, stops: question.stop, compares, otherName, ids: rows.slice(0, -1).map((row) => row.id), at: null };
  byId("error").hidden = true;
  byId("result").hidden = false;
  byId("other-title").textContent = otherName;
  byId("other-column").textContent = compares ? otherName : "alone";
  byId("input-hint").textContent = `${count(shown.ids.length, "token")}, ${count(Array.from(shown.right).length, "character")}`;
  byId("blocks").replaceChildren(...rows.slice(0, -1).map(block));
  byId("blocks").dataset.of = input;
  byId("rows").replaceChildren(...rows.map((row) => tableRow(row, question.stop, compares)));
  verdicts();
  player.show(rows.length, rows.length);
}

/** What is to be said of the whole texts. */
function verdicts() {
  const { rows, stops: wanted, stop_reason: stop, compares } = shown;
  const behind = count(rows.filter(({ dropped }) => dropped).length, "token");
  const ended = stop === null ? (wanted.length ? "no stop came" : "") : `${behind} dropped behind the stop`;
  byId("ours-verdict").replaceChildren(
    make("span", { className: shown.as_library ? "good" : "" }, AS_LIBRARY[shown.as_library]),
    ended && ` · ${ended}`,
  );
  const others = rows.map((row) => beside(row, compares));
  const faults = others.filter(({ fault }) => fault);
  const late = others.filter((other) => other.late).length;
  const wrong = compares ? "not the same text" : `${faults.length} of ${count(rows.length - 1, "token")} wrong: ${kinds(faults)}`;
  const parts = [...(faults.length ? [wrong] : []), ...(late ? [`late after ${count(late, "token")}`] : [])];
  byId("other-verdict").replaceChildren(
    parts.length
      ? make("span", { className: faults.length ? "bad" : "" }, `${faults.length ? "✗" : "…"} ${parts.join(", ")}`)
      : make("span", { className: "good" }, compares ? "✓ the same text, never late" : "✓ no faults: here it happens to be right"),
  );
}

/** "broken character, lost space"; how often each, if there are several. */
function kinds(faults) {
  const counts = new Map();
  for (const { fault } of faults) counts.set(fault, (counts.get(fault) ?? 0) + 1);
  return counts.size === 1 ? faults[0].fault : [...counts].map(([fault, often]) => `${often} × ${fault}`).join(", ");
}

/** Draws the step: all of it once, and from then on only what changes between two steps. */
function draw(step) {
  const { rows, stops: wanted, compares, otherName } = shown;
  const row = rows[step - 1];
  byId("where").textContent = step === rows.length ? `end, after ${count(step - 1, "token")}` : `token ${step} of ${rows.length - 1}`;
  byId("slider").setAttribute("aria-valuetext", byId("where").textContent);
  drawOurs(rows.slice(0, step), row);
  drawOther(rows, step);
  byId("now").replaceChildren(
    ...facts(row, wanted, compares, otherName).map(([term, said]) => make("div", {}, make("dt", {}, term), make("dd", {}, said))),
  );
  for (const [list, lines] of [["blocks", ".block"], ["rows", "tr"]]) mark([...byId(list).querySelectorAll(lines)], step);
  shown.at = step;
}

/** The text so far, the newest part of it, and what is held. The rest keeps its place, unseen, so that nothing jumps. */
function drawOurs(past, row) {
  const text = past.map((one) => one.text).join("");
  const fresh = row?.text ?? "";
  const ended = past.some((one) => one.ends);
  byId("ours").replaceChildren(
    text.slice(0, text.length - fresh.length),
    fresh && make("span", { className: "new" }, fresh),
    (row && heldChip(row, shown.stops)) ?? "",
    ended ? make("span", { className: "ended" }, "stop") : "",
    make("span", { className: "later", ariaHidden: "true" }, shown.text.slice(text.length)),
  );
}

function drawOther(rows, step) {
  const parts = rows.map((row, place) => {
    const { text, fault, late } = beside(row, shown.compares);
    const kind = place >= step ? "later" : row.dropped ? "past" : fault ? "wrong" : late ? "late" : "";
    // What is late, or lost as a whole, has no text to mark.
    const seen = text || (kind === "late" || kind === "wrong" ? "\u2009" : "");
    return seen && make("span", { className: kind, title: place < step ? fault : "" }, seen);
  });
  byId("other").replaceChildren(...parts.filter(Boolean));
}

function mark(lines, step) {
  const from = shown.at === null ? 0 : Math.min(shown.at, step) - 1;
  const to = shown.at === null ? lines.length : Math.max(shown.at, step);
  for (let place = Math.max(0, from); place < Math.min(lines.length, to); place++) {
    lines[place].classList.toggle("is-later", place >= step);
    lines[place].classList.toggle("is-now", place === step - 1);
    if (lines[place].matches(".block")) lines[place].tabIndex = place === step - 1 ? 0 : -1;
  }
  // Where no line stands for the step, the nearest one can be reached with the keyboard.
  if (lines[0]?.matches(".block") && (step < 1 || step > lines.length)) lines.at(step < 1 ? 0 : -1).tabIndex = 0;
  lines[step - 1]?.setAttribute("aria-current", "step");
  if (shown.at !== null && shown.at !== step) lines[shown.at - 1]?.removeAttribute("aria-current");
  if (shown.at !== null) keepInView(lines[Math.max(0, step - 1)]);
}

/** Scrolls the list, and never the page. */
function keepInView(line) {
  const list = line?.closest(".blocks, .scroll");
  if (!list || list.scrollHeight <= list.clientHeight) return;
  const [inner, outer] = [line.getBoundingClientRect(), list.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) list.scrollTop += inner.top - outer.top - list.clientHeight / 3;
}
