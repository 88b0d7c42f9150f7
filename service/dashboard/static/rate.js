// The way in: an invitation's code, from the address's fragment or typed, becomes a session.
import { call } from "/static/rate_calls.js";

const form = document.getElementById("enter");
const code = document.getElementById("code");
const problem = document.getElementById("problem");

async function enter(secret) {
  problem.textContent = "";
  try {
    await call("POST", "/rate/session", { code: secret.trim() });
    location.replace("/rate/work");
  } catch (error) {
    problem.textContent = error.type === "" ? "No connection. Try again." : error.message;
    code.focus();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  enter(code.value);
});
const given = decodeURIComponent(location.hash.slice(1));
if (given) {
  // Out of the address bar and the history before anything else: it is a secret, though it works once.
  history.replaceState(null, "", location.pathname);
  enter(given);
}
