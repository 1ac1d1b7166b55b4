// One task: its figures, its error, what took its time, its transcript.

const dialog = byId("details");
let shownTask = null, openedFrom = null;

function figure(name, value, more) {
  const shown = el("dd", { text: value });
  if (more) shown.append(el("small", { text: more }));
  return el("div", {}, el("dt", { text: name }), shown);
}

function openDetails(task) {
  if (!task) return;
  if (!dialog.open) { openedFrom = document.activeElement; dialog.showModal(); }
  shownTask = task;
  byId("tip").hidden = true;
  byId("details-status").className = `status s${task.status}`;
  byId("details-status").textContent = STATUSES[task.status] + (task.reason ? `, ${task.reason.replaceAll("_", " ")}` : "");
  byId("details-name").textContent = task.name;
  const body = byId("details-body");
  body.replaceChildren(figuresOf(task), ...errorOf(task), ...outputOf(task), ...timeOf(task), ...transcriptOf(task));
  body.scrollTop = 0;
  byId("details-name").focus();
  const at = gantt.tasks.indexOf(task);
  byId("previous").disabled = at <= 0;
  byId("next").disabled = at < 0 || at === gantt.tasks.length - 1;
  if (at >= 0) activate(at);
}

function figuresOf(task) {
  const figures = el("dl", { class: "figures" });
  if (task.start !== null) figures.append(figure("Duration", time(task.duration)), figure("Started", time(task.start), task.queued >= 1 ? `waited ${time(task.queued)} for a worker` : ""));
  if (task.waited) figures.append(figure("Waiting", time(task.waited)));
  figures.append(figure("Attempts", count(task.attempts)));
  figures.append(figure("Model calls", count(task.calls), [task.again ? `${count(task.again)} tried again` : "", task.unreported ? `${count(task.unreported)} without usage` : ""].filter(Boolean).join(", ")));
  figures.append(figure("Tokens", count(task.sent + task.made), `${count(task.sent)} in, ${count(task.made)} out`), figure("Cost", money(task.cost)));
  if (task.group) figures.append(figure("Group", task.group));
  return figures;
}

const texts = (task, kind) => task.texts.filter((text) => text[0] === kind);

function errorOf(task) {
  const message = texts(task, "error")[0];
  if (!task.error && !message) return [];
  const [type, kind, agent, tool, status] = task.error || [];
  const told = [kind && `kind ${kind.replaceAll("_", " ")}`, agent && `agent ${agent}`, tool && `tool ${tool}`, status && `HTTP ${status}`].filter(Boolean).join(", ");
  const made = [el("div", { class: "error", text: `${type || "Error"}${message ? `: ${message[2]}` : ""}` }, el("small", { text: told }))];
  const trace = texts(task, "traceback")[0];
  if (trace) made.push(el("details", {}, el("summary", { text: "Traceback" }), el("pre", { class: "text code", text: trace[2] })));
  return made;
}

function outputOf(task) {
  const output = texts(task, "output")[0];
  return output ? [el("h3", { text: "Output" }), el("div", { class: "text", text: output[2] })] : [];
}

function timeOf(task) {
  const spans = spansOf(task);
  const figures = el("dl", { class: "figures" });
  for (const kind of [CALL, TOOL, WAIT, BACKOFF]) {
    const found = spans.filter((span) => span.kind === kind);
    const total = found.reduce((sum, span) => sum + span.end - span.start, 0);
    if (found.length) figures.append(figure(KIND_NAMES[KINDS[kind]], time(total), kind === BACKOFF ? "" : found.length === 1 ? "once" : `${count(found.length)} times, longest ${time(Math.max(...found.map((span) => span.end - span.start)))}`));
  }
  const made = figures.childElementCount ? [el("h3", { text: "Where its time went" }), figures] : [];
  if (spans.length) {
    const list = el("ol", { class: "text" }, ...spans.slice(0, 500).map((span) => el("li", { text: told(span) })));
    const more = spans.length - 500 + task.dropped;
    if (more > 0) list.append(el("li", { text: `and ${count(more)} shorter ones, which are not on this page` }));
    made.push(el("details", {}, el("summary", { text: `Step by step (${count(spans.length)})` }), list));
  }
  return made;
}

function transcriptOf(task) {
  const messages = task.texts.filter((text) => ["said", "called", "answered"].includes(text[0]));
  if (!messages.length) return [];
  const verbs = { said: "", called: " calls a tool", answered: " returns" };
  return [el("h3", { text: `Transcript (${many(messages.length, "message")})` }), ...messages.map(([kind, who, text]) =>
    el("article", { class: `message ${kind}` }, el("p", {}, el("b", { text: DATA.words[who] || "message" }), verbs[kind]), el("pre", { class: "text", text })))];
}

function step(by) {
  const at = gantt.tasks.indexOf(shownTask) + by;
  if (gantt.tasks[at]) openDetails(gantt.tasks[at]);
}

function startDetails() {
  byId("close").addEventListener("click", () => dialog.close());
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { if (openedFrom) openedFrom.focus(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.target !== byId("details-body") && (event.key === "ArrowDown" || event.key === "ArrowUp")) { step(event.key === "ArrowDown" ? 1 : -1); event.preventDefault(); }
  });
}
