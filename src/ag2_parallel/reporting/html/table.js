// The tasks and the models as tables.

// As many digits behind the point for all, so that they stand below each other.
const DEAREST = TASKS.reduce((found, task) => Math.max(found, task.cost || 0), 0);
const CENTS = DEAREST < 0.01 ? 5 : DEAREST < 1 ? 4 : DEAREST < 100 ? 3 : 2;

const COLUMNS = [
  { name: "Task", key: "name", of: (task) => task.index },
  { name: "Status", key: "status", of: (task) => task.status, left: true },
  { name: "Started", key: "start", of: (task) => task.start, show: (task) => time(task.start) },
  { name: "Duration", key: "duration", of: (task) => (task.start === null ? null : task.duration), show: (task) => (task.start === null ? "–" : time(task.duration)) },
  { name: "Waiting", key: "waited", of: (task) => task.waited, show: (task) => (task.waited ? time(task.waited) : "–") },
  { name: "Attempts", key: "attempts", of: (task) => task.attempts, show: (task) => count(task.attempts) },
  { name: "Calls", key: "calls", of: (task) => task.calls, show: (task) => count(task.calls) },
  { name: "Tokens in", key: "sent", of: (task) => task.sent, show: (task) => count(task.sent) },
  { name: "Tokens out", key: "made", of: (task) => task.made, show: (task) => count(task.made) },
  { name: "Cost", key: "cost", of: (task) => task.cost, show: (task) => (task.cost === null ? "unknown" : task.cost === 0 ? "$0" : `$${task.cost.toFixed(CENTS)}`) },
];
const AT_FIRST = 100;
const table = { tasks: TASKS, shown: AT_FIRST, key: null, down: false };

function cell(task, column) {
  if (column.key === "name") {
    return el("td", {}, el("button", { type: "button", text: task.name, title: task.name, on: { click: () => openDetails(task) } }));
  }
  if (column.key === "status") {
    const made = el("td", { class: "left" }, el("span", { class: `status s${task.status}`, text: STATUSES[task.status] }));
    if (task.error && task.error[1]) made.append(el("span", { class: "kind", text: `  ${task.error[1].replaceAll("_", " ")}` }));
    return made;
  }
  const text = column.show(task);
  return el("td", { class: ["–", "0", "unknown", "$0"].includes(text) ? "none" : null, text });
}

function sorted() {
  const column = COLUMNS.find((each) => each.key === table.key);
  if (!column) return table.tasks;
  const way = table.down ? -1 : 1;
  const value = (task) => column.of(task) ?? -1;
  return [...table.tasks].sort((a, b) => way * (value(a) - value(b)) || a.index - b.index);
}

function drawTable() {
  const part = document.querySelector("#tasks table");
  part.tHead.rows[0].replaceChildren(...COLUMNS.map((column) => el("th", {
    scope: "col", class: column.left ? "left" : null, "aria-sort": column.key === table.key ? (table.down ? "descending" : "ascending") : null,
  }, el("button", { type: "button", text: column.name, "data-key": column.key, on: { click: () => sortBy(column.key) } }))));
  const shown = sorted().slice(0, table.shown);
  part.tBodies[0].replaceChildren(...shown.map((task) => el("tr", { "data-place": task.place }, ...COLUMNS.map((column) => cell(task, column)))));
  const left = table.tasks.length - shown.length, more = byId("more");
  more.hidden = left <= 0;
  more.textContent = `Show ${count(Math.min(left, 1000))} more of ${count(left)}`;
  const sum = (key) => table.tasks.reduce((total, task) => total + task[key], 0);
  const cost = table.tasks.some((task) => task.cost === null) ? null : sum("cost");
  part.tFoot.replaceChildren(el("tr", {}, el("td", { text: many(table.tasks.length, "task") }), el("td"), el("td"),
    ...[time(sum("duration")), sum("waited") ? time(sum("waited")) : "–", count(sum("attempts")), count(sum("calls")), count(sum("sent")), count(sum("made")), money(cost)].map((text) => el("td", { text }))));
}

function sortBy(key) {
  const numbers = !["name", "status", "start"].includes(key);
  if (table.key === key) {
    if (table.down === numbers) table.down = !table.down;
    else table.key = null;
  } else { table.key = key; table.down = numbers; }
  drawTable();
  document.querySelector(`#tasks th button[data-key="${key}"]`).focus();
}

function startTable() {
  byId("more").addEventListener("click", () => { table.shown += 1000; drawTable(); });
  drawTable();
}

function drawModels() {
  const names = Object.keys(DATA.models);
  if (!names.length) return;
  const part = document.querySelector("#models table");
  part.tHead.append(el("tr", {}, ...["Model", "Calls", "Tried again", "Tokens in", "Tokens out", "From cache", "Cost"].map((name) => el("th", { scope: "col", text: name }))));
  names.sort((a, b) => DATA.models[b].total_tokens - DATA.models[a].total_tokens);
  for (const name of names) {
    const used = DATA.models[name];
    part.tBodies[0].append(el("tr", {}, ...[name, count(used.calls), count(used.retried_calls), count(used.prompt_tokens), count(used.completion_tokens), count(used.cached_tokens), money(used.cost)].map((text) => el("td", { text }))));
  }
  byId("models").hidden = false;
}
