// Files side by side: a choice in a list shows the file beside it; documents that run do so in a frame of their own.
import { call } from "/static/rate_calls.js";

async function show(pane, link) {
  const view = pane.querySelector(".view");
  for (const other of pane.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  view.setAttribute("aria-busy", "true");
  // An answer may come after that of a later choice.
  const passed = () => !link.hasAttribute("aria-current");
  try {
    const answer = await fetch(link.href, { credentials: "same-origin", cache: "no-store" });
    if (!answer.ok || answer.redirected) throw new Error("status " + answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (passed()) return;
    view.replaceChildren(document.adoptNode(page.getElementById("file")));
  } catch {
    if (passed()) return;
    const said = document.createElement("p");
    said.className = "alert";
    said.textContent = "This file could not be loaded. Choose it again to try again.";
    view.replaceChildren(said);
  }
  view.removeAttribute("aria-busy");
  view.scrollTop = 0;
}

function stop(button) {
  const place = button.closest(".run");
  place.querySelector("iframe").remove();
  place.querySelector("[data-run]").hidden = false;
  button.remove();
}

async function run(button) {
  const place = button.closest(".run");
  const said = place.querySelector("[role=status]");
  said.textContent = "";
  try {
    const made = await call("POST", button.dataset.run);
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("referrerpolicy", "no-referrer");
    frame.title = button.dataset.title;
    frame.src = made.url;
    const end = document.createElement("button");
    end.type = "button";
    end.className = "plain";
    end.dataset.stop = "";
    end.textContent = "Close it";
    button.hidden = true;
    place.append(end, frame);
    frame.focus();
  } catch (error) {
    said.textContent = error.type === "" ? "No connection." : error.message;
  }
}

export function arrange(root) {
  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-file]");
    if (link && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      show(link.closest(".pane"), link);
    }
    const start = event.target.closest("[data-run]");
    if (start) run(start);
    const end = event.target.closest("[data-stop]");
    if (end) stop(end);
    const wide = event.target.closest("[data-wide]");
    if (wide) {
      const on = wide.closest(".pane").classList.toggle("wide");
      wide.setAttribute("aria-pressed", String(on));
    }
  });
  for (const pane of root.querySelectorAll(".pane")) {
    const first = pane.querySelector("a[data-file][data-first]") || pane.querySelector("a[data-file]");
    if (first) show(pane, first);
  }
}

// The next file, or the one before, of the pane that is in use.
export function step(by) {
  const pane = (document.activeElement && document.activeElement.closest(".pane")) || document.querySelector(".pane.main") || document.querySelector(".pane");
  if (!pane) return;
  const links = Array.from(pane.querySelectorAll("a[data-file]"));
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = links[at + by];
  if (next) {
    next.focus();
    show(pane, next);
  }
}
