// Calls of the rater's pages, by their session cookie.
export class Failed extends Error {
  // `type` is empty where there was no answer at all.
  constructor(type, detail, status) {
    super(detail || type || "no connection");
    this.type = type;
    this.status = status;
  }

  // Whether the same call may go better later.
  get passing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export async function call(method, path, body) {
  const options = { method, headers: { "Content-Type": "application/json" }, credentials: "same-origin", cache: "no-store", keepalive: true };
  if (body !== undefined) options.body = JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Failed("", "", 0);
  }
  const found = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Failed(String(found.type || "unknown").split(":").pop(), found.detail, answer.status);
  return found;
}
