// What the server counts, read as Prometheus reads it, and drawn while somebody looks.

import { byId, make } from "./dom.js";
import { ask } from "./server.js";

const SECONDS = 2;
const WHEN_ABSENT = 15;
const KEPT = 60;
const SVG = "http://www.w3.org/2000/svg";

const past = new Map();
let inView = false;
let paused = false;
let timer = null;
let drawn = "";

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The families of a text in Prometheus' form: name, help, kind, and a value for each set of labels. */
export function parse(text) {
  const families = new Map();
  const family = (name) => families.get(name) ?? families.set(name, { name, help: "", kind: "untyped", series: new Map() }).get(name);
  for (const line of text.split("\n")) {
    const [, what, name, rest] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (what) family(name)[what === "HELP" ? "help" : "kind"] = rest;
    const [, sample, labels = "", value] = (!line.startsWith("#") && SAMPLE.exec(line)) || [];
    if (sample) add(families, family, sample, labels, Number(value.replace("Inf", "Infinity")));
  }
  return [...families.values()].filter(({ series }) => series.size);
}

/** A histogram or summary has samples by other names; of these the sum and the count are kept. */
function add(families, family, sample, labels, value) {
  const [, base, part] = /^(.*)_(bucket|sum|count)$/.exec(sample) ?? [];
  const kind = families.get(base)?.kind;
  const isPart = kind === "histogram" || kind === "summary";
  if ((isPart && part === "bucket") || families.get(sample)?.kind === "summary") return;
  const { series } = family(isPart ? base : sample);
  const shown = Array.from(labels.matchAll(LABEL), ([, name, text]) => `${name}=${unescape(text)}`).join(" ");
  const at = series.get(shown) ?? series.set(shown, {}).get(shown);
  at[isPart ? part : "value"] = value;
}

const unescape = (text) => text.replace(/\\(.)/g, (_, char) => (char === "n" ? "\n" : char));

/** Begins to look whenever the section is seen. */
export function startMetrics(hasMetrics) {
  if (!hasMetrics) {
    byId("metrics-lead").textContent = "This server counts nothing.";
    return;
  }
  new IntersectionObserver(([entry]) => {
    inView = entry.isIntersecting;
    if (inView) poll();
  }).observe(byId("metrics"));
  document.addEventListener("visibilitychange", poll);
  byId("pause").addEventListener("click", () => {
    paused = !paused;
    byId("pause").textContent = paused ? "Go on" : "Pause";
    byId("pause").setAttribute("aria-pressed", String(paused));
    poll();
  });
}

async function poll() {
  clearTimeout(timer);
  if (!inView || paused || document.hidden) return;
  let seconds = SECONDS;
  try {
    const text = await (await ask("metrics")).text();
    take(parse(text), performance.now() / 1000);
    byId("metrics-lead").textContent = `As Prometheus reads them, every ${SECONDS} seconds while you look.`;
    byId("pause").hidden = false;
  } catch (error) {
    seconds = WHEN_ABSENT;
    byId("metrics-lead").textContent = `No metrics: ${error.message}. Asked again in ${WHEN_ABSENT} seconds.`;
  }
  clearTimeout(timer);
  timer = setTimeout(poll, seconds * 1000);
}

function take(families, now) {
  const lines = families.flatMap((family) => [...family.series].map(([labels, value]) => ({ family, labels, value })));
  const keys = lines.map(({ family, labels }) => `${family.name} ${labels}`);
  if (keys.join("\n") !== drawn) {
    byId("meters").replaceChildren(...lines.map(({ family, labels }) => meter(family, labels)));
    drawn = keys.join("\n");
  }
  lines.forEach(({ family, value }, place) => {
    const points = past.get(keys[place]) ?? past.set(keys[place], []).get(keys[place]);
    points.push({ now, ...value });
    if (points.length > KEPT) points.shift();
    update(byId("meters").children[place], family, points);
  });
}

function meter({ name, help }, labels) {
  const line = document.createElementNS(SVG, "svg");
  line.setAttribute("viewBox", "0 0 100 20");
  line.setAttribute("preserveAspectRatio", "none");
  line.setAttribute("aria-hidden", "true");
  line.append(document.createElementNS(SVG, "polyline"));
  const value = make("p", { className: "value" }, make("b", {}), make("span", { className: "hint" }));
  const label = labels && make("p", { className: "label" }, labels);
  return make("li", { className: "card meter" }, make("p", { className: "name" }, name), label, value, line, make("p", { className: "help" }, help));
}

/** How fast a number grew between two readings; one that fell was begun anew. */
const rate = (points, field, place) => {
  const [before, after] = [points[place - 1], points[place]];
  return before ? Math.max(0, after[field] - before[field]) / (after.now - before.now) : 0;
};

function update(element, { name, kind }, points) {
  const unit = /_seconds(_total)?$/.test(name) ? "s" : /_bytes(_total)?$/.test(name) ? "B" : "";
  const last = points.at(-1);
  const places = points.map((_, place) => place);
  const [big, small] = element.querySelector(".value").children;
  if (kind === "histogram" || kind === "summary") {
    big.textContent = `${short(last.sum / (last.count || 1), unit)} mean`;
    small.textContent = `${short(last.count)} in all, ${short(rate(points, "count", points.length - 1))}/s`;
    draw(element, places.map((place) => rate(points, "count", place)));
  } else if (kind === "counter") {
    big.textContent = short(last.value, unit);
    small.textContent = `${short(rate(points, "value", points.length - 1))}/s`;
    draw(element, places.map((place) => rate(points, "value", place)));
  } else {
    big.textContent = short(last.value, unit);
    draw(element, points.map(({ value }) => value));
  }
}

function draw(element, values) {
  const top = Math.max(...values, 0) || 1;
  const at = values.map((value, place) => `${(100 * (KEPT - values.length + place + 1)) / KEPT},${(19 - (17 * value) / top).toFixed(2)}`);
  const line = element.querySelector("polyline");
  for (const [name, value] of [["points", at.join(" ")], ["fill", "none"], ["stroke", "currentColor"], ["stroke-width", "1.5"], ["vector-effect", "non-scaling-stroke"]]) {
    line.setAttribute(name, value);
  }
}

const LARGE = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
const SMALL = [[0.1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

/** A number in a few characters: 12.3k, 4.5 µs. */
export function short(value, unit = "") {
  const isWhole = Number.isInteger(value);
  const [least, prefix] = (isWhole ? LARGE : [...LARGE, ...SMALL]).find(([from]) => Math.abs(value) >= from) ?? [1, ""];
  const factor = prefix === "k" ? 1e3 : prefix ? least : 1;
  const shown = isWhole && factor === 1 ? value.toLocaleString("en") : String(Number((value / factor).toPrecision(3)));
  return unit ? `${shown} ${prefix}${unit}` : shown + prefix;
}
