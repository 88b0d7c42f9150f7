// Seconds of work: counted only while the page is seen, has the focus, and was used lately.
const IDLE_MS = 60 * 1000;
const ELSEWHERE_MS = 10 * 60 * 1000;
const BEAT_S = 30;

export class WorkingTime {
  // `beat(seconds)` is called now and then while there is something new to tell.
  constructor(seconds, beat) {
    this.seconds = seconds;
    this.told = seconds;
    this.beat = beat;
    this.used = Date.now();
    this.last = performance.now();
    for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "input"]) {
      addEventListener(name, () => { this.used = Date.now(); }, { passive: true, capture: true });
    }
    this.timer = setInterval(() => this.tick(), 1000);
    document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") this.tell(); });
  }

  get working() {
    if (document.visibilityState !== "visible" || !document.hasFocus()) return false;
    const idle = Date.now() - this.used;
    return idle < IDLE_MS || (idle < ELSEWHERE_MS && this.elsewhere());
  }

  // Work that this document hears nothing of: in a preview's frame, or listening and watching.
  elsewhere() {
    const inside = document.activeElement && document.activeElement.tagName === "IFRAME";
    return inside || Array.from(document.querySelectorAll("audio, video")).some((media) => !media.paused);
  }

  tick() {
    const now = performance.now();
    // A machine that slept did no work.
    if (this.working) this.seconds += Math.min((now - this.last) / 1000, 2);
    this.last = now;
    if (this.seconds - this.told >= BEAT_S) this.tell();
  }

  tell() {
    if (this.seconds - this.told < 1) return;
    this.told = this.seconds;
    this.beat(Math.round(this.seconds * 10) / 10);
  }

  stop() {
    clearInterval(this.timer);
  }
}
