// One number, the step, and the ways to move it: buttons, a slider, keys, time.

import { byId } from "./dom.js";

const MILLISECONDS = 420;
const MOVES = {
  ArrowLeft: (step) => step - 1,
  ArrowRight: (step) => step + 1,
  PageUp: (step) => step - 10,
  PageDown: (step) => step + 10,
  Home: () => 0,
  End: () => Infinity,
};

/** A player over `steps` steps. Calls `draw(step)` when it moves. */
export class Player {
  constructor(draw) {
    this.draw = draw;
    this.step = 0;
    this.steps = 0;
    this.timer = null;
    for (const [id, move] of [["first", MOVES.Home], ["back", MOVES.ArrowLeft], ["next", MOVES.ArrowRight], ["last", MOVES.End]]) {
      byId(id).addEventListener("click", () => this.stopAt(move(this.step)));
    }
    byId("slider").addEventListener("input", () => this.stopAt(byId("slider").valueAsNumber));
    byId("play").addEventListener("click", () => this.toggle());
    byId("blocks").addEventListener("click", (event) => {
      const block = event.target.closest(".block");
      if (block) this.stopAt(Number(block.dataset.step));
    });
    byId("blocks").addEventListener("keydown", (event) => this.key(event));
  }

  /** Among the blocks the arrows move the step, and the focus with it. The slider knows its keys itself. */
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " ") this.toggle();
    else if (event.key in MOVES) {
      this.stopAt(MOVES[event.key](this.step));
      byId("blocks").querySelector('[tabindex="0"]')?.focus();
    } else return;
    event.preventDefault();
  }

  show(steps, step) {
    this.pause();
    this.steps = steps;
    byId("slider").max = String(steps);
    this.go(step);
  }

  go(step) {
    this.step = Math.max(0, Math.min(this.steps, step));
    byId("slider").value = String(this.step);
    this.draw(this.step);
  }

  stopAt(step) {
    this.pause();
    this.go(step);
  }

  toggle() {
    if (this.timer !== null) return this.pause();
    if (this.step >= this.steps) this.go(0);
    this.timer = setInterval(() => {
      this.go(this.step + 1);
      if (this.step >= this.steps) this.pause();
    }, MILLISECONDS);
    return this.label(true);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.label(false);
  }

  label(plays) {
    byId("play").textContent = plays ? "❚❚ Pause" : "▶ Play";
    byId("play").setAttribute("aria-pressed", String(plays));
    // Read aloud, steps that come by themselves would only cut each other short.
    byId("now").setAttribute("aria-live", plays ? "off" : "polite");
  }
}
