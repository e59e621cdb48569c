// The pages of the server. What they show is made by the server; this fetches it, and sends what people type.
"use strict";

const STORED = "pacpredict-key";
const $ = (id) => document.getElementById(id);
const parts = [...document.querySelectorAll("[data-part]")];
let isLocked = false;
let visit = 0; // counts keys that were given or forgotten: what was asked with another is not shown

// Ask the server, with the key if there is one. It stands in a header, never in an address.
async function call(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem(STORED);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  const reply = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  // A late reply to a key that was exchanged meanwhile says nothing about the new one.
  if (reply.status === 401 && key === sessionStorage.getItem(STORED)) lock(Boolean(key));
  return reply;
}

function errorOf(reply, text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return `the server said ${reply.status}`;
  }
}

// Scripts in what is parsed this way do not run, and the page's policy allows none anyway.
function parse(html) {
  return new DOMParser().parseFromString(html, "text/html").body;
}

function say(text) {
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

function lock(wasWrong) {
  if (isLocked) return;
  isLocked = true;
  visit += 1;
  document.body.dataset.loaded = "false";
  sessionStorage.removeItem(STORED);
  for (const part of parts) part.replaceChildren();
  $("forget").hidden = true;
  $("key-form").hidden = false;
  say(wasWrong ? "This key is not valid, or not any more." : "");
  $("key").value = "";
  $("key").focus();
}

async function load(part, fresh = false) {
  const mine = visit;
  let reply, text;
  try {
    reply = await call(part.dataset.part);
    text = await reply.text();
  } catch {
    say("The server does not answer. What you see is what it said last.");
    return;
  }
  if (reply.status === 401 || mine !== visit) return;
  part.hidden = reply.status === 403; // not for this key
  if (part.hidden) return;
  if (!reply.ok) {
    say(errorOf(reply, text));
    return;
  }
  say("");
  const content = parse(text);
  const live = part.querySelectorAll("[data-live]");
  if (fresh || !live.length) {
    part.replaceChildren(...content.childNodes);
  } else {
    // What people typed stays; only what changes by itself is exchanged.
    for (const old of live) old.replaceWith(content.querySelector(`[data-live="${old.dataset.live}"]`));
  }
}

async function loadAll() {
  isLocked = false;
  visit += 1;
  $("key-form").hidden = true;
  const [first, ...others] = parts;
  await load(first, true); // may find out that a key is needed: the others then need not be asked for
  if (!isLocked) await Promise.all(others.map((part) => load(part, true)));
  $("forget").hidden = isLocked || !sessionStorage.getItem(STORED);
  document.body.dataset.loaded = String(!isLocked);
}

function reload() {
  return Promise.all(parts.filter((part) => part.id !== "planner").map((part) => load(part)));
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(STORED, $("key").value.trim());
  loadAll();
});

$("forget").addEventListener("click", () => lock(false));

for (const part of parts) {
  if (!part.dataset.every) continue;
  setInterval(() => {
    if (!isLocked && !part.hidden && document.visibilityState === "visible") load(part);
  }, 1000 * part.dataset.every);
}

// What stands in a control: of a file its bytes in base64, as JSON has them.
async function valueOf(control) {
  if (control.type !== "file") return control.value === "" ? null : control.value;
  const reader = new FileReader();
  const isRead = new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(reader.error);
  });
  reader.readAsDataURL(control.files[0]);
  await isRead;
  return reader.result.slice(reader.result.indexOf(",") + 1);
}

// Try a query: values go as they were typed, and the server reads them as it reads all queries.
async function ask(form) {
  const answer = $("answer");
  const controls = [...form.querySelectorAll("[data-column]")];
  const values = await Promise.all(
    controls.map(async (control) => [control.dataset.column, await valueOf(control)]),
  );
  const csv = form.querySelector("[data-csv]");
  const [type, body] = csv
    ? ["text/csv", csv.value]
    : ["application/json", JSON.stringify({ dataframe_records: [Object.fromEntries(values)] })];
  const reply = await call("invocations", { method: "POST", headers: { "Content-Type": type }, body });
  if (reply.status === 401) return;
  if (!reply.ok) {
    answer.textContent = errorOf(reply, await reply.text());
    answer.className = "refused";
    return;
  }
  const { predictions, parameters } = await reply.json();
  answer.replaceChildren(
    ...predictions.flatMap((label, i) => {
      const strong = document.createElement("strong");
      strong.textContent = label;
      const line = document.createElement("p");
      const charge = parameters.charge_nats[i];
      line.append(strong, ` number ${parameters.sequence[i]}, charged ${charge ? `${charge} nats` : "nothing"}`);
      return [line];
    }),
  );
  answer.className = "";
  await reload();
}

// A server that is gone, or a file that went away after it was chosen.
function fail(problem) {
  $("answer").textContent = `This did not work: ${problem.message}`;
  $("answer").className = "refused";
}

// The planner asks the library as one types; of several replies the last question's counts.
let latest = 0;
async function plan(form) {
  const number = ++latest;
  const shown = $("plan");
  await new Promise((resolve) => setTimeout(resolve, 120));
  if (number !== latest) return;
  const reply = await call(`page/plan?${new URLSearchParams(new FormData(form))}`);
  const text = await reply.text();
  if (number !== latest) return;
  shown.replaceChildren(...(reply.ok ? parse(text).childNodes : [errorOf(reply, text)]));
  shown.className = reply.ok ? "" : "refused";
}

document.addEventListener("submit", (event) => {
  if (event.target.id !== "ask" && event.target.id !== "plan-form") return;
  event.preventDefault();
  if (event.target.id === "ask") ask(event.target).catch(fail);
  else plan(event.target);
});

document.addEventListener("input", (event) => {
  if (event.target.form?.id === "plan-form") plan(event.target.form);
});

loadAll();
