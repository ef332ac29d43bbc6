// The page begins here.

import { byId, chosen } from "./dom.js";
import { startMetrics } from "./metrics.js";
import { askJson, onKey } from "./server.js";
import { prepareTalk, startTalk } from "./talk.js";
import { startTrace, traceAgain } from "./trace.js";

let begun = false;

function startTheme() {
  chosen("theme", document.documentElement.dataset.theme ?? "auto");
  byId("theme").addEventListener("change", () => {
    const theme = chosen("theme");
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("detok-theme", theme);
    } catch {
      // Then it lasts as long as the page.
    }
  });
}

async function begin() {
  try {
    const setup = await askJson("page/setup");
    byId("notice").hidden = true;
    begun = true;
    // First, since what stands above the metrics decides whether they are seen.
    await startTrace(setup);
    startMetrics(setup.metrics);
    await startTalk(setup.models);
  } catch (error) {
    byId("notice").textContent = `The server does not answer: ${error.message}`;
    byId("notice").hidden = false;
  }
}

startTheme();
prepareTalk();
onKey(async () => {
  if (!begun) return begin();
  traceAgain();
  return startTalk(true);
});
begin();
