// How one step looks: its block, what it holds, what came out, what is wrong beside it.

import { count, hex, make, visible } from "./dom.js";

/** What stands beside a step: the text, and what is to be said against it. */
export function beside(row, compares) {
  if (compares) return { text: row.compared ?? "", fault: row.deviation === "wrong" ? "wrong" : "", late: row.deviation === "late" };
  const fault = row.fault ?? (row.past_end && row.naive && !row.dropped ? "part of the stop" : "");
  return { text: row.naive, fault, late: false };
}

/** What is held after a step, as a chip; null if nothing is. */
export function heldChip(row, stops) {
  if (!row.held_because) return null;
  const chip = make("span", { className: "chip", title: row.held_because });
  if (row.candidate) {
    const stop = stops.find((one) => one.startsWith(row.candidate)) ?? row.candidate;
    chip.classList.add("of-stop");
    const ahead = make("span", { className: "ahead" }, visible(stop.slice(row.candidate.length)));
    chip.append(make("b", {}, visible(row.candidate)), "|", ahead);
  }
  const bytes = row.held.bytes;
  const size = new TextEncoder().encode(row.candidate).length;
  if (bytes !== undefined) chip.append(hex(bytes.slice(2 * size)) + (row.held_size > bytes.length / 2 ? " …" : ""));
  else chip.append(visible(row.held.slice(row.candidate.length)) + (row.held_size > row.held.length ? " …" : ""));
  return chip;
}

/** What a token is called: as the vocabulary writes it. */
export const pieceText = (row) => (row.id === null ? "end" : row.unknown ? "no such id" : visible(row.piece));

/** What a step did, in a word or two. */
export function state(row) {
  if (row.dropped) return "dropped";
  if (row.ends) return "stop";
  if (row.text) return `→ ${visible(row.text)}`;
  if (row.held_because) return row.candidate ? "held: stop?" : "held";
  return row.special ? "special" : "nothing";
}

export function stateClass(row) {
  if (row.dropped) return "is-dropped";
  if (row.ends || row.candidate) return "is-stop";
  if (row.special || row.added) return "is-special";
  return row.held_because && !row.text ? "is-held" : row.held_because ? "is-out holds-rest" : "is-out";
}

/** The block of one token. The step behind it is one more than its place. */
export function block(row) {
  const label = `token ${row.position + 1}, id ${row.id}, ${pieceText(row)}, bytes ${hex(row.bytes) || "none"}, ${state(row)}`;
  const button = make(
    "button",
    { type: "button", className: `block ${stateClass(row)}`, tabIndex: -1, data: { step: row.position + 1 }, aria: { label } },
    make("bdi", { className: "piece" }, pieceText(row)),
    make("span", { className: "bytes" }, shortHex(row.bytes)),
    make("span", { className: "id" }, String(row.id)),
    make("bdi", { className: "state" }, state(row)),
  );
  return make("li", {}, button);
}

const shortHex = (bytes) => (bytes.length > 12 ? `${hex(bytes.slice(0, 10))} …` : hex(bytes) || "–");

/** One line of the timeline. */
export function tableRow(row, stops, compares) {
  const other = beside(row, compares);
  const said = other.fault || (other.late ? "late" : "");
  return make(
    "tr",
    { data: { step: row.position + 1 } },
    make("td", { className: "number" }, String(row.position + 1)),
    make("td", { className: "number" }, row.id === null ? "" : String(row.id)),
    make("td", {}, make("bdi", {}, pieceText(row))),
    make("td", { className: "mono" }, hex(row.bytes)),
    make("td", {}, heldChip(row, stops) ?? "", row.held_because ? ` ${row.held_because}` : ""),
    make("td", {}, row.text ? make("bdi", { className: "given" }, visible(row.text)) : row.dropped ? "dropped" : ""),
    make("td", { className: said ? "fault" : "" }, make("bdi", {}, visible(other.text)), said ? ` ✗ ${said}` : ""),
  );
}

/** Terms and what is said of them, for the step that is looked at. */
export function facts(row, stops, compares, otherName) {
  if (!row) return [["Before the first token", "nothing is given, nothing is held"]];
  const other = beside(row, compares);
  const token = row.id === null ? "the stream ends" : make("span", {}, make("bdi", {}, pieceText(row)), ` · id ${row.id}`);
  const chip = heldChip(row, stops);
  const out = row.text ? make("bdi", { className: "given" }, visible(row.text)) : make("span", { className: "none" }, nothing(row));
  const why = row.candidate ? `${row.held_because}: ${count(row.candidate.length, "character")} of it came` : row.held_because;
  return [
    [row.id === null ? "End" : `Token ${row.position + 1}`, token],
    ["Bytes", hex(row.bytes) || "–"],
    ["Came out", out],
    ["Held, and why", chip ? make("span", {}, chip, ` ${why}`) : make("span", { className: "none" }, "nothing")],
    [otherName, verdict(other)],
  ];
}

function nothing(row) {
  if (row.id === null) return "nothing was left";
  if (row.dropped) return "nothing: it stands behind the stop";
  if (row.ends) return "nothing: the stop is complete";
  if (row.special) return "nothing: special tokens are left out";
  return row.unknown ? "nothing: there is no such token" : "nothing yet";
}

function verdict({ text, fault, late }) {
  const shown = make("bdi", {}, text ? visible(text) : "nothing");
  if (fault) return make("span", { className: "fault" }, shown, ` ✗ ${fault}`);
  return make("span", {}, shown, late ? " … late" : " ✓");
}
