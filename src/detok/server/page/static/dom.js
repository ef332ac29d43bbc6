// The few ways in which anything gets onto the page. Text goes in as text, never as HTML.

export const byId = (id) => document.getElementById(id);

/** Makes an element. Properties go by their names in the DOM; children are nodes or strings. */
export function make(tag, properties = {}, ...children) {
  const { data = {}, aria = {}, ...others } = properties;
  const element = Object.assign(document.createElement(tag), others);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** The value of the chosen one of some radio buttons, or chooses the one that has it. */
export function chosen(name, value) {
  if (value !== undefined) document.querySelector(`input[name="${name}"][value="${value}"]`).checked = true;
  return document.querySelector(`input[name="${name}"]:checked`).value;
}

const SIGNS = { "\n": "⏎", "\t": "⇥", "\r": "␍" };

/** Text in which nothing is invisible, turns the direction, or stands on what is before it. */
export function visible(text, space = "␣") {
  const shown = Array.from(text, (char) => {
    if (char === " ") return space;
    if (char in SIGNS) return SIGNS[char];
    return /[\p{C}\p{Z}]/u.test(char) ? `[${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]` : char;
  }).join("");
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown;
}

/** "e280a6" as "E2 80 A6". */
export const hex = (bytes) => (bytes.match(/../g) ?? []).join(" ").toUpperCase();

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
