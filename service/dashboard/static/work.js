// The page of a person's assignment: take it, work on the screen, stop the clock, finish.
import { Viewer, call, onEvent } from "/static/viewer.js";

const BEAT_MS = 10 * 60 * 1000;
const OVER = new Set(["collecting", "grading", "done"]);
const place = document.getElementById("screen");
const problem = document.getElementById("work-problem");
const path = "/v1/runs/" + encodeURIComponent(place.dataset.run);
const key = "workstead.lease." + place.dataset.run;
const buttons = Object.fromEntries(["take", "pause", "resume", "release", "finish", "clip"].map((id) => [id, document.getElementById(id)]));
let phase = document.getElementById("facts").dataset.phase;
let viewer = null;

function lease() {
  return localStorage.getItem(key);
}

function arrange() {
  const mine = lease() !== null && !OVER.has(phase);
  const shown = {
    take: lease() === null && phase === "running",
    pause: mine && phase === "running",
    resume: mine && phase === "paused",
    release: mine && phase === "running",
    finish: mine && (phase === "running" || phase === "paused"),
    clip: mine,
  };
  for (const [id, yes] of Object.entries(shown)) buttons[id].hidden = !yes;
  place.classList.toggle("paused", phase === "paused");
}

function follow() {
  if (viewer === null || viewer.over) {
    place.replaceChildren();
    viewer = new Viewer(place, lease());
    viewer.onForbidden = lost;
  }
  arrange();
}

function lost() {
  localStorage.removeItem(key);
  arrange();
}

// Does one thing at a time; what goes wrong is said in words.
function act(id, work) {
  buttons[id].addEventListener("click", async () => {
    buttons[id].disabled = true;
    problem.textContent = "";
    try {
      await work();
    } catch (error) {
      if (error.type === "lease_lost") lost();
      problem.textContent = error.message;
    } finally {
      buttons[id].disabled = false;
      arrange();
    }
  });
}

act("take", async () => {
  const taken = await call("POST", path + "/claim", { holder: "a person, by this page" });
  localStorage.setItem(key, taken.lease);
  if (viewer) viewer.stop("taken");
  follow();
});
act("pause", async () => { phase = (await call("POST", path + "/pause", undefined, lease())).phase; });
act("resume", async () => { phase = (await call("POST", path + "/resume", undefined, lease())).phase; });
act("release", async () => {
  await call("POST", path + "/release", undefined, lease());
  if (viewer) viewer.stop("given back");
  lost();
});
act("finish", async () => {
  if (!confirm("Finish? What is in the output folder is delivered, and nothing can be changed any more.")) return;
  await call("POST", path + "/finish", { status: "success" }, lease());
  if (viewer) viewer.stop("the run is over");
  lost();
});
act("clip", async () => {
  if (viewer && viewer.rfb) viewer.rfb.clipboardPasteFrom(document.getElementById("clipboard").value);
});

onEvent((event) => {
  if (event.type !== "run.phase") return;
  phase = event.payload.phase;
  if (OVER.has(phase) && viewer) viewer.stop("the run is over");
  else if (phase === "running" && lease() !== null) follow();
  arrange();
});
setInterval(() => {
  if (lease() !== null && !OVER.has(phase)) call("POST", path + "/heartbeat", undefined, lease()).catch((error) => { if (error.type === "lease_lost") lost(); });
}, BEAT_MS);
arrange();
if (lease() !== null && (phase === "running" || phase === "paused")) follow();
else document.getElementById("screen-state").textContent = OVER.has(phase) ? "the run is over" : "take the assignment to see it";
