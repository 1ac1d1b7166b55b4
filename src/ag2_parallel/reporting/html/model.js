// What the page shows: the embedded data as objects, and how values are written.

const DATA = JSON.parse(document.getElementById("data").textContent);
const STATUSES = ["succeeded", "failed", "timed out", "cancelled", "skipped"];
const TONES = ["succeeded", "failed", "timed_out", "cancelled", "skipped"];
const KINDS = ["attempt", "call", "wait", "tool", "backoff"];
const KIND_NAMES = { call: "model calls", wait: "waiting", tool: "tools", backoff: "between attempts" };
const [ATTEMPT, CALL, WAIT, TOOL, BACKOFF] = [0, 1, 2, 3, 4];

const TASKS = DATA.tasks.map((given, place) => ({
  place, name: given.n, index: given.i, status: given.s, reason: DATA.words[given.r], group: DATA.words[given.g],
  start: given.t, end: given.t === null ? null : given.t + given.d, queued: given.q, duration: given.d, waited: given.w,
  attempts: given.a, sent: given.u[0], made: given.u[1], calls: given.u[2], again: given.u[3], unreported: given.u[4],
  cost: given.c, error: given.e, raw: given.x, dropped: given.y, texts: given.m, cause: null, spans: null,
}));
DATA.causes.forEach((cause, number) => cause[3].forEach((place) => { TASKS[place].cause = number; }));
const END = TASKS.reduce((last, task) => Math.max(last, task.end || 0), 1);

// Numbers of five make a span: kind, label, detail, start, duration; times in ms, from here on from the run's start.
function spansOf(task) {
  if (task.spans === null) {
    task.spans = [];
    for (let at = 0; at < task.raw.length; at += 5) {
      const [kind, label, detail, start, length] = task.raw.slice(at, at + 5);
      const from = (task.start || 0) + start;
      task.spans.push({ kind, label: DATA.words[label], detail: DATA.words[detail], start: from, end: from + length });
    }
  }
  return task.spans;
}

// ---- elements: text is only ever set as text

function el(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") made.textContent = value;
    else if (name === "on") for (const [event, action] of Object.entries(value)) made.addEventListener(event, action);
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const byId = (id) => document.getElementById(id);

// ---- how values are written

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function count(value) { return WHOLE.format(value); }

function many(value, one, more = `${one}s`) { return `${count(value)} ${value === 1 ? one : more}`; }

function short(value) {
  if (value < 100000) return count(value);
  return value < 1e6 ? `${(value / 1e3).toFixed(0)} k` : `${(value / 1e6).toFixed(value < 1e7 ? 2 : 1)} M`;
}

function time(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "0 s";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)} min`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)} h`;
}

function money(value) {
  if (value === null || value === undefined) return "unknown";
  if (value === 0) return "$0";
  return value < 0.01 ? `$${value.toPrecision(2)}` : `$${value.toFixed(value < 1 ? 4 : 2)}`;
}

function tick(ms, step) {
  const seconds = ms / 1000;
  if (step < 1000) return step < 1 ? `${ms.toFixed(1)} ms` : END < 1000 ? `${Math.round(ms)} ms` : `${seconds.toFixed(step < 10 ? 3 : step < 100 ? 2 : 1)} s`;
  if (END < 120000) return `${Math.round(seconds)} s`;
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.round(seconds) % 60];
  return END < 3600000 ? `${minutes}:${two(rest)}` : `${hours}:${two(minutes)}${step < 60000 ? `:${two(rest)}` : ""}`;
}

function told(span) {
  const what = span.kind === CALL ? `model call to ${span.label}` : span.kind === WAIT ? `waiting for ${span.label}`
    : span.kind === TOOL ? `tool ${span.label}` : span.kind === BACKOFF ? `waiting ${span.label}` : span.label;
  return `${what}, ${time(span.end - span.start)}, from ${time(span.start)}${span.detail ? `; ${span.detail}` : ""}`;
}

function summary(task) {
  const parts = [STATUSES[task.status]];
  if (task.start === null) parts.push("never started");
  else parts.push(time(task.duration), many(task.attempts, "attempt"));
  if (task.error && task.error[1]) parts.push(task.error[1]);
  return `${task.name}: ${parts.join(", ")}`;
}
