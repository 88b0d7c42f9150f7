// Ratings on their way: kept on this device until the server has them. The server takes each once, by its client id.
import { call } from "/static/rate_calls.js";

const FIRST_PAUSE_MS = 1000;
const LAST_PAUSE_MS = 30 * 1000;
const MOST = 50;

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  // `onSent(entry)`, `onRefused(entry, error)`, `onWaiting(count)`. Each rater of a shared browser has a box of their own.
  constructor(rater, on) {
    this.key = "workstead.outbox." + rater;
    this.on = on;
    this.memory = []; // where a browser keeps nothing
    this.pause = FIRST_PAUSE_MS;
    this.timer = 0;
    this.busy = false;
    addEventListener("online", () => this.soon(0));
  }

  entries() {
    try {
      return JSON.parse(localStorage.getItem(this.key)) || this.memory;
    } catch {
      return this.memory;
    }
  }

  keep(entries) {
    this.memory = entries.slice(-MOST);
    try {
      localStorage.setItem(this.key, JSON.stringify(this.memory));
    } catch {
      // Full, or forbidden: it lasts as long as the page.
    }
  }

  has(assignment) {
    return this.entries().some((entry) => entry.assignment === assignment);
  }

  put(assignment, body) {
    this.keep([...this.entries().filter((entry) => entry.assignment !== assignment), { assignment, body }]);
    this.soon(0);
  }

  drop(assignment) {
    this.keep(this.entries().filter((entry) => entry.assignment !== assignment));
  }

  soon(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), ms);
  }

  async flush() {
    if (this.busy) return;
    this.busy = true;
    try {
      for (const entry of this.entries()) await this.send(entry);
      this.pause = FIRST_PAUSE_MS;
    } catch {
      this.on.onWaiting(this.entries().length);
      this.soon(this.pause);
      this.pause = Math.min(this.pause * 2, LAST_PAUSE_MS);
    } finally {
      this.busy = false;
    }
  }

  // Throws what may go better later.
  async send(entry) {
    try {
      await call("POST", "/v1/rate/" + encodeURIComponent(entry.assignment) + "/submit", entry.body);
    } catch (error) {
      if (error.passing || error.status === 401) throw error;
      this.drop(entry.assignment);
      this.on.onRefused(entry, error);
      return;
    }
    this.drop(entry.assignment);
    this.on.onSent(entry);
  }
}
