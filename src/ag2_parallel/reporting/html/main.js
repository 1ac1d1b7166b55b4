// The head of the page, the causes of failures, which tasks are shown, light and dark.

const chosen = { text: "", statuses: new Set(), cause: null };

function drawHead() {
  const { metrics, usage, counts, total } = DATA;
  byId("run").textContent = DATA.run || "unnamed run";
  if (DATA.started) byId("product").append(` of ${DATA.started.slice(0, 16).replace("T", " ")} UTC`);
  const verdict = byId("verdict");
  verdict.append(counts[0] === total ? `All ${many(total, "task")} succeeded` : `${count(counts[0])} of ${many(total, "task")} succeeded`);
  const others = counts.map((value, status) => [value, status]).filter(([value, status]) => value && status > 0);
  if (others.length) verdict.append(", ", others.map(([value, status]) => `${count(value)} ${STATUSES[status]}`).join(", "));
  if (DATA.stopped) verdict.append(el("span", { class: "bad", text: `. The run was stopped early: ${DATA.stopped.replaceAll("_", " ")}` }));
  verdict.append(".");
  if (DATA.tasks.length < total) verdict.append(` This page shows ${count(DATA.tasks.length)} of them one by one.`);
  counts.forEach((value, status) => {
    if (!value) return;
    const part = el("i");
    part.style.flex = String(value);
    part.style.background = `var(--${TONES[status]})`;
    byId("shares").append(part);
  });
  const seconds = (value) => (value === undefined || value === null ? "–" : time(value * 1000));
  const figures = [
    ["Wall time", seconds(metrics.wall ?? END / 1000)],
    ["Speedup", metrics.speedup ? `${metrics.speedup.toFixed(1)} ×` : "–", metrics.task_seconds ? `${seconds(metrics.task_seconds)} one by one` : ""],
    ["At once", metrics.concurrency ? count(metrics.concurrency.peak) : "–", metrics.concurrency ? `${metrics.concurrency.mean.toFixed(1)} on average` : ""],
    ["Longest task", seconds(metrics.longest)],
    ["Waiting", metrics.waited ? seconds(metrics.waited) : "–", metrics.waited ? "for limits and retries" : ""],
    ["Model calls", count(usage.calls), usage.retried_calls ? `${count(usage.retried_calls)} tried again` : ""],
    ["Tokens", short(usage.total_tokens), `${short(usage.prompt_tokens)} in, ${short(usage.completion_tokens)} out`],
    ["Cost", money(usage.cost), usage.cost && counts[0] ? `${money(usage.cost / counts[0])} per success` : ""],
  ];
  byId("figures").append(...figures.map((each) => figure(...each)));
}

function drawCauses() {
  if (!DATA.causes.length) return;
  byId("causes").hidden = false;
  document.querySelector(".causes").append(...DATA.causes.map(([status, kind, pattern, places], number) => el("li", {}, el("button", {
    type: "button", "aria-pressed": "false", "data-cause": number, on: { click: () => choose({ cause: chosen.cause === number ? null : number }) },
  }, el("span", { class: "count", text: count(places.length) }), el("span", { class: `status s${TONES.indexOf(status)}`, text: kind.replaceAll("_", " ") }), el("span", { class: "pattern", text: pattern || "no message" })))));
}

function drawFilters() {
  byId("filters").hidden = DATA.tasks.length < 2;
  byId("search").addEventListener("input", (event) => choose({ text: event.target.value.trim().toLowerCase() }));
  byId("cause").addEventListener("click", () => { choose({ cause: null }); byId("search").focus(); });
  const there = STATUSES.map((_, status) => TASKS.filter((task) => task.status === status).length);
  if (there.filter(Boolean).length < 2) return;
  byId("statuses").append(...STATUSES.map((name, status) => [name, status]).filter(([, status]) => there[status]).map(([name, status]) => el("button", {
    type: "button", class: "chip", "aria-pressed": "false", text: `${name} ${count(there[status])}`, on: { click: (event) => {
      const wanted = !chosen.statuses.delete(status);
      if (wanted) chosen.statuses.add(status);
      event.target.setAttribute("aria-pressed", String(wanted));
      choose({});
    } },
  })));
}

function choose(change) {
  Object.assign(chosen, change);
  const { text, statuses, cause } = chosen;
  const fits = (task) => (!text || task.name.toLowerCase().includes(text)) && (!statuses.size || statuses.has(task.status)) && (cause === null || task.cause === cause);
  const found = TASKS.filter(fits);
  byId("matches").textContent = found.length === TASKS.length ? "" : `${count(found.length)} of ${many(TASKS.length, "task")}`;
  const label = cause === null ? "" : `${DATA.causes[cause][1].replaceAll("_", " ")}: ${DATA.causes[cause][2]}`;
  byId("cause").hidden = cause === null;
  byId("cause").textContent = `✕ ${label}`;
  byId("cause").setAttribute("aria-label", `Show all causes again, not only ${label}`);
  document.querySelectorAll("[data-cause]").forEach((each) => each.setAttribute("aria-pressed", String(Number(each.dataset.cause) === cause)));
  table.tasks = found;
  table.shown = AT_FIRST;
  drawTable();
  const order = byId("order").value;
  gantt.tasks = order === "given" ? found : [...found].sort(order === "start" ? (a, b) => (a.start ?? Infinity) - (b.start ?? Infinity) : (a, b) => b.duration - a.duration);
  gantt.active = -1; gantt.span = -1; gantt.box.scrollTop = 0;
  byId("readout").textContent = found.length ? "" : "No task fits.";
  layOut();
}

// ---- light and dark

const THEMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId("theme").textContent = THEMES[name];
  byId("theme").dataset.name = name;
  try { localStorage.setItem("ag2-parallel-theme", name); } catch { /* a page from a file may have no storage */ }
  palette = null;
  redraw();
}

function startTheme() {
  let kept = "auto";
  try { kept = localStorage.getItem("ag2-parallel-theme") || kept; } catch { /* as above */ }
  setTheme(kept in THEMES ? kept : "auto");
  const names = Object.keys(THEMES);
  byId("theme").addEventListener("click", () => setTheme(names[(names.indexOf(byId("theme").dataset.name) + 1) % names.length]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { palette = null; redraw(); });
}

drawHead();
drawCauses();
drawFilters();
startDetails();
startTable();
drawModels();
startGantt();
startTheme();
byId("order").addEventListener("change", () => choose({}));
requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.readyAfter = String(Math.round(performance.now())); }));
