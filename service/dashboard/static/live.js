// Live events of one run. Everything an agent wrote is put in as text, never as markup.
"use strict";

const MAX_NODES = 4000; // pieces of text kept in the page
const MAX_CHARS = 512 * 1024; // characters kept in the page
const REFRESH_ON = new Set(["run.phase", "attempt.started", "attempt.ended", "deliverable.sealed", "verdict"]);
// Controls (but tab and line feed), bidi, zero-width: shown by name, so that nothing moves, hides or turns text.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const log = document.getElementById("log");
const note = document.getElementById("stream-state");
const follow = document.getElementById("follow");
let chars = 0;
let cut = false;
let pending = [];
let refreshTimer = 0;
let refreshing = false;
let behind = false;

function inert(text) {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (c) => {
    const code = c.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return "\u27e8U+" + code.toString(16).toUpperCase().padStart(4, "0") + "\u27e9";
  });
}

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 2000 ? text.slice(0, 2000) + " \u2026" : text;
}

function pieceOf(event) {
  const payload = event.payload || {};
  if (event.type === "output") {
    return [payload.stream === "stderr" ? "stderr" : "stdout", inert(String(payload.text || ""))];
  }
  if (event.type === "resources") return null;
  if (event.type === "desktop.action" && payload.actions) return ["sys", inert("[" + event.seq + "] " + batch(payload)) + "\n"];
  const parts = Object.entries(payload).filter(([, v]) => v !== null).map(([k, v]) => k + "=" + short(v));
  return ["sys", inert("[" + event.seq + "] " + event.type + " " + parts.join(" ")) + "\n"];
}

// One line for what was done on the screen.
function batch(payload) {
  const done = payload.actions.map((action) => {
    const at = action.x === undefined || action.x === null ? "" : " " + action.x + "," + action.y;
    const more = [action.keys && action.keys.join("+"), action.text, action.dx || action.dy ? action.dx + "," + action.dy : ""];
    return action.type + at + more.filter(Boolean).map((text) => " " + short(text)).join("");
  });
  const failed = (payload.results || []).filter((result) => result.error).map((result) => " \u2717 " + result.error);
  return done.join(" \u00b7 ") + failed.join("") + (payload.title ? " \u2014 " + short(payload.title) : "");
}

// The latest recorded picture, and what the active window calls itself.
function screen(payload) {
  const title = document.getElementById("window-title");
  if (title && payload.title) title.textContent = inert(short(payload.title));
  const picture = document.getElementById("thumbnail");
  if (!picture || !payload.after || !payload.after.sha256) return;
  picture.onload = () => { picture.hidden = false; };
  picture.onerror = () => { picture.hidden = true; };
  picture.src = "/v1/runs/" + encodeURIComponent(log.dataset.run) + "/desktop/pictures/" + encodeURIComponent(payload.after.sha256);
}

function flush() {
  const atEnd = follow.checked;
  const fragment = document.createDocumentFragment();
  for (const [kind, text] of pending) {
    const last = fragment.lastChild || log.lastChild;
    const lineOpen = kind === "sys" && last && !last.textContent.endsWith("\n");
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = (lineOpen ? "\n" : "") + text;
    chars += span.textContent.length;
    fragment.append(span);
  }
  pending = [];
  log.append(fragment);
  trim();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function trim() {
  while (log.childNodes.length > MAX_NODES || (chars > MAX_CHARS && log.childNodes.length > 1)) {
    const oldest = cut ? log.childNodes[1] : log.firstChild;
    chars -= oldest.textContent.length;
    oldest.remove();
    if (!cut) {
      cut = true;
      const mark = document.createElement("span");
      mark.className = "cut";
      mark.textContent = "earlier output is not shown here; the raw log has all of it\n";
      log.prepend(mark);
    }
  }
}

function add(event) {
  const piece = pieceOf(event);
  if (piece === null) return;
  if (pending.length === 0) requestAnimationFrame(flush);
  pending.push(piece);
  if (pending.length > MAX_NODES) pending.splice(0, pending.length - MAX_NODES);
}

// One after the other: an older answer that came last would stay.
async function refresh() {
  refreshTimer = 0;
  behind = refreshing;
  if (refreshing) return;
  refreshing = true;
  try {
    await load();
  } finally {
    refreshing = false;
    if (behind) refreshSoon();
  }
}

async function load() {
  const answer = await fetch(location.pathname, { credentials: "same-origin", cache: "no-store" });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ["facts", "results", "stop"]) {
    const now = document.getElementById(id);
    const next = page.getElementById(id);
    if (now && next) now.replaceWith(document.adoptNode(next));
    else if (now) now.remove();
  }
  tick();
}

function refreshSoon() {
  if (!refreshTimer) refreshTimer = setTimeout(refresh, 300);
}

function tick() {
  for (const clock of document.querySelectorAll("[data-since]")) {
    const s = Math.max(0, (Date.now() - Date.parse(clock.dataset.since)) / 1000);
    clock.textContent = s < 60 ? s.toFixed(0) + " s" : Math.floor(s / 60) + " min " + String(Math.floor(s % 60)).padStart(2, "0") + " s";
  }
  for (const clock of document.querySelectorAll("[data-until]")) {
    const s = Math.max(0, (Date.parse(clock.dataset.until) - Date.now()) / 1000);
    clock.textContent = "in " + (s < 120 ? s.toFixed(0) + " s" : Math.floor(s / 60) + " min");
  }
}

function listen() {
  const types = log.dataset.types ? "&types=" + encodeURIComponent(log.dataset.types) : "";
  const url = "/v1/runs/" + encodeURIComponent(log.dataset.run) + "/events?after=" + encodeURIComponent(log.dataset.after) + types;
  const source = new EventSource(url);
  source.onopen = () => { note.textContent = "live"; };
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    add(event);
    if (event.type === "desktop.action") screen(event.payload || {});
    if (REFRESH_ON.has(event.type)) refreshSoon();
    document.dispatchEvent(new CustomEvent("run-event", { detail: event }));
  };
  source.addEventListener("end", () => {
    source.close();
    note.textContent = "ended";
    refreshSoon();
  });
  source.onerror = () => {
    note.textContent = source.readyState === EventSource.CLOSED ? "ended" : "reconnecting";
  };
}

setInterval(tick, 1000);
tick();
listen();
