// A run's screen in a page: tickets, the connection, and another try while the run goes on.
import RFB from "/static/vendor/novnc/core/rfb.js";

const RUN_OVER = 4004; // codes of close frames: service/api/viewing.py
const FORBIDDEN = 4003;
const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 8000;
const FOR_GOOD = new Set(["no_screen", "not_person", "not_found", "bad_credentials", "scope_missing"]);

export class Failed extends Error {
  constructor(type, detail) {
    super(detail || type);
    this.type = type;
  }
}

// Calls the API with this page's session; throws Failed.
export async function call(method, path, body, lease) {
  const headers = { "Content-Type": "application/json" };
  if (lease) headers["Workstead-Lease"] = lease;
  const options = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  const found = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Failed(String(found.type || "").split(":").pop(), found.detail);
  return found;
}

export class Viewer {
  // `lease`: act on the screen too, by this secret; null: only watch.
  constructor(place, lease) {
    this.place = place;
    this.lease = lease;
    this.words = document.getElementById("screen-state");
    this.path = "/v1/runs/" + encodeURIComponent(place.dataset.run);
    this.pause = FIRST_PAUSE_MS;
    this.rfb = null;
    this.over = false;
    this.onForbidden = () => {};
    addEventListener("pagehide", () => this.stop("left"));
    this.open();
  }

  say(words) {
    this.words.textContent = words;
    this.place.dataset.state = words;
  }

  stop(words) {
    this.over = true;
    this.say(words);
    if (this.rfb) this.rfb.disconnect();
  }

  async open() {
    if (this.over) return;
    try {
      const made = await call("POST", this.path + "/desktop/ticket", { control: this.lease !== null }, this.lease);
      if (!this.over) this.show(made);
    } catch (error) {
      if (error.type === "lease_lost") this.forbidden();
      else if (FOR_GOOD.has(error.type)) this.stop(error.message);
      else this.again();
    }
  }

  show(made) {
    const url = location.origin.replace(/^http/, "ws") + made.path + "?ticket=" + encodeURIComponent(made.ticket);
    const socket = new WebSocket(url, ["binary"]);
    socket.addEventListener("close", (event) => this.closed(event.code));
    this.rfb = new RFB(this.place, socket, { shared: true });
    this.rfb.viewOnly = this.lease === null;
    this.rfb.scaleViewport = true;
    this.rfb.resizeSession = false;
    this.rfb.background = "transparent";
    this.rfb.addEventListener("connect", () => {
      this.pause = FIRST_PAUSE_MS;
      this.say("live");
      if (this.lease !== null) this.rfb.focus();
    });
  }

  closed(code) {
    this.rfb = null;
    if (this.over) return;
    if (code === RUN_OVER) this.stop("the run is over");
    else if (code === FORBIDDEN) this.forbidden();
    else this.again();
  }

  forbidden() {
    this.stop("not yours any more");
    this.onForbidden();
  }

  again() {
    this.say("reconnecting");
    setTimeout(() => this.open(), this.pause);
    this.pause = Math.min(this.pause * 2, LAST_PAUSE_MS);
  }
}

// Calls `take` with every event of the run that live.js hears.
export function onEvent(take) {
  document.addEventListener("run-event", (event) => take(event.detail));
}
