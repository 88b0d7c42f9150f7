// The lead's page of a campaign: what is done by a call, and invitations, which are shown once.
import { call } from "/static/rate_calls.js";

const said = document.getElementById("said");
const form = document.getElementById("add");

function show(link) {
  const field = document.getElementById("link");
  document.getElementById("invitation").hidden = false;
  field.value = link;
  field.focus();
  field.select();
}

async function act(work, button) {
  said.textContent = "";
  button.disabled = true;
  try {
    const link = await work();
    if (link) show(new URL(link, location.origin).href);
    else location.reload();
  } catch (error) {
    said.textContent = error.type === "" ? "No connection." : error.message;
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-call]");
  if (!button || (button.dataset.sure && !confirm(button.dataset.sure))) return;
  const [method, path] = button.dataset.call.split(" ");
  act(async () => {
    const found = await call(method, path);
    return button.hasAttribute("data-link") ? found.link : null;
  }, button);
});
if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(async () => {
      const body = { raters: [{ name: form.elements.namedItem("name").value }] };
      const made = (await call("POST", form.dataset.path, body)).data[0];
      form.reset();
      return made.link;
    }, form.querySelector("button"));
  });
}
