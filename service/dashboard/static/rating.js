// A rater's page: files, time, the form with its draft, and ratings that wait for a connection.
import { call } from "/static/rate_calls.js";
import { Outbox, newId } from "/static/outbox.js";
import { WorkingTime } from "/static/working_time.js";
import { arrange, step } from "/static/panes.js";

const place = document.getElementById("work");
const said = document.getElementById("said");
const problem = document.getElementById("problem");
const form = document.getElementById("rating");
const assignment = place.dataset.assignment || "";
const path = "/v1/rate/" + encodeURIComponent(assignment);
const draftKey = "workstead.draft." + assignment;
const readKey = "workstead.instruction." + place.dataset.instruction;
let time = null;

function gone(error) {
  if (error.status === 401) location.assign("/rate?over=1");
  problem.textContent = error.type === "" ? "No connection. Try again when there is one." : error.message;
}

async function next() {
  try {
    const found = await call("POST", "/v1/rate/next");
    location.assign("/rate/work" + (found.id ? "" : "?none=1"));
  } catch (error) {
    gone(error);
  }
}

const outbox = new Outbox(place.dataset.rater, {
  onSent: (entry) => {
    localStorage.removeItem("workstead.draft." + entry.assignment);
    if (entry.assignment === assignment) next();
    else if (!assignment) location.reload();
    else said.textContent = "";
  },
  onRefused: (entry, error) => {
    lock(false);
    if (form) agree();
    said.textContent = "";
    problem.textContent = "A rating was not taken: " + error.message;
    if (entry.assignment !== assignment) localStorage.removeItem("workstead.draft." + entry.assignment);
  },
  onWaiting: (count) => {
    said.textContent = "Not sent yet: there is no connection. " + (count > 1 ? count + " ratings are" : "Your rating is") +
      " kept on this device and will be sent as soon as there is one. Leave this page open or come back to it later.";
  },
});

function lock(on) {
  if (form) for (const field of form.elements) field.disabled = on;
}

// --- the form ---------------------------------------------------------------------------------------------------------
function values() {
  const data = new FormData(form);
  if (form.dataset.form === "pairwise") {
    return { completion: data.get("completion"), quality: data.get("quality"), notes: data.get("notes") || "" };
  }
  const early = data.get("failed_early") !== null;
  return {
    rating: data.get("rating") === null ? null : Number(data.get("rating")),
    failed_early: early,
    reason: early ? data.get("reason") || "" : "",
    tags: data.getAll("tags"),
    notes: data.get("notes") || "",
  };
}

function missing(rating) {
  if (form.dataset.form === "pairwise") {
    if (rating.completion === null) return ["completion", "Say which is closer to the brief."];
    if (rating.quality === null) return ["quality", "Say which is better on the whole."];
    return null;
  }
  if (rating.rating === null) return ["rating", "Choose 1, 2 or 3."];
  if (rating.failed_early && rating.reason.trim() === "") return ["reason", "Name the flaw that made you stop."];
  return null;
}

function keepDraft() {
  try {
    localStorage.setItem(draftKey, JSON.stringify(values()));
  } catch {
    problem.textContent = "This browser keeps no drafts: do not leave this page before you submit.";
  }
}

function fill() {
  let draft = null;
  try {
    draft = JSON.parse(localStorage.getItem(draftKey));
  } catch {
    localStorage.removeItem(draftKey);
  }
  if (!draft) return;
  for (const field of form.elements) {
    const value = draft[field.name];
    if (field.type === "radio") field.checked = String(value) === field.value;
    else if (field.name === "tags") field.checked = (value || []).includes(field.value);
    else if (field.type === "checkbox") field.checked = value === true;
    else if (typeof value === "string") field.value = value;
  }
}

function agree() {
  const early = form.elements.namedItem("failed_early");
  if (!early) return;
  document.getElementById("why").hidden = !early.checked;
  if (early.checked) form.querySelector("[name=rating][value='1']").checked = true;
  for (const one of form.querySelectorAll("[name=rating]")) one.disabled = early.checked && one.value !== "1";
}

function submit() {
  const rating = values();
  const lacks = missing(rating);
  if (lacks) {
    problem.textContent = lacks[1];
    form.querySelector("[name=" + lacks[0] + "]").focus();
    return;
  }
  problem.textContent = "";
  said.textContent = "Sending\u2026";
  const body = { client_id: newId(), rating, active_s: time ? Math.round(time.seconds * 10) / 10 : 0 };
  lock(true);
  outbox.put(assignment, body);
}

async function giveBack(way, body) {
  problem.textContent = "";
  try {
    await call("POST", path + "/" + way, body);
    localStorage.removeItem(draftKey);
    if (way === "skip") await next();
    else location.assign("/rate/work");
  } catch (error) {
    gone(error);
  }
}

function skip() {
  const reason = document.getElementById("skip-reason");
  if (reason.value.trim() === "") {
    problem.textContent = "Say why you skip this one.";
    reason.focus();
    return;
  }
  giveBack("skip", { reason: reason.value.trim() });
}

// --- keys -------------------------------------------------------------------------------------------------------------
function typing(target) {
  return target.closest("textarea, select, iframe, [contenteditable]") || (target.tagName === "INPUT" && target.type === "text");
}

function press(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
    return;
  }
  if (!(event.target instanceof Element) || typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "]") return step(1);
  if (event.key === "[") return step(-1);
  const field = form.querySelector("[data-key='" + CSS.escape(event.key.toLowerCase()) + "']");
  if (!field || field.disabled) return;
  event.preventDefault();
  field.focus();
  if (field.type === "radio" || field.type === "checkbox") field.click();
}

// --- time -------------------------------------------------------------------------------------------------------------
function clock(soft, begun) {
  const shown = document.getElementById("timer");
  const words = (s) => Math.floor(s / 60) + ":" + String(Math.floor(s % 60)).padStart(2, "0");
  const tick = () => {
    const passed = (performance.now() - begun) / 1000;
    shown.textContent = words(passed) + " of about " + Math.round(soft / 60) + " min";
    shown.classList.toggle("part", passed > soft);
  };
  setInterval(tick, 1000);
  tick();
}

function begin() {
  arrange(document);
  fill();
  agree();
  clock(Number(place.dataset.soft), performance.now() - Number(place.dataset.elapsed) * 1000);
  time = new WorkingTime(Number(place.dataset.active), (seconds) => {
    call("POST", path + "/beat", { active_s: seconds }).catch((error) => {
      if (!error.passing && !outbox.has(assignment)) problem.textContent = error.message;
    });
  });
  form.addEventListener("input", () => { agree(); keepDraft(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  document.getElementById("skip").addEventListener("click", skip);
  document.getElementById("release").addEventListener("click", () => giveBack("release"));
  document.addEventListener("keydown", press);
  if (outbox.has(assignment)) lock(true);
}

function instruct() {
  const instruction = document.getElementById("instruction");
  const read = localStorage.getItem(readKey) !== null;
  if (instruction.tagName === "DETAILS") {
    instruction.open = !read;
    instruction.addEventListener("toggle", () => { if (!instruction.open) localStorage.setItem(readKey, "read"); });
  }
}

async function leave() {
  if (outbox.entries().length && !confirm("A rating was not sent yet. It stays on this device. Leave all the same?")) return;
  try {
    await call("DELETE", "/rate/session");
    location.assign("/rate");
  } catch (error) {
    gone(error);
  }
}

document.getElementById("leave").addEventListener("click", leave);
instruct();
if (assignment) {
  begin();
} else {
  const start = document.getElementById("next");
  if (start) {
    start.addEventListener("click", () => { localStorage.setItem(readKey, "read"); next(); });
    start.focus({ preventScroll: true });
  }
}
outbox.soon(0);
