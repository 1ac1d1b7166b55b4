// The tasks over time. Only what is in sight is drawn; the rows' names are elements, the bars a canvas.

const AXIS = 26;
const gantt = {
  box: byId("gantt"), tasks: TASKS, zoom: 1, active: -1, span: -1,
  get rowHeight() { return TASKS.length <= 14 ? 34 : 22; },
  get gutter() { return this.box.clientWidth < 620 ? 116 : 230; },
  get margin() { return this.box.clientWidth < 620 ? 14 : 64; },
  get plot() { return Math.max(50, Math.floor(this.box.clientWidth - this.gutter - this.margin)); },
  get scale() { return (this.plot * this.zoom) / END; },
  get from() { return this.box.scrollLeft / this.scale; },
  get sight() { return Math.max(50, Math.floor(this.box.clientWidth - this.gutter)); },
  get to() { return (this.box.scrollLeft + this.sight) / this.scale; },
  x(ms) { return this.gutter + ms * this.scale - this.box.scrollLeft; },
  y(row) { return AXIS + row * this.rowHeight - this.box.scrollTop; },
};
const MOST_ZOOM = 5000;

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawGantt(); drawLoad(gantt); });
}

function layOut() {
  const { box, tasks } = gantt;
  box.style.height = `${Math.min(AXIS + tasks.length * gantt.rowHeight + 10, Math.max(240, window.innerHeight * 0.62))}px`;
  const space = box.querySelector(".space"), stage = box.querySelector(".stage");
  space.style.width = `${gantt.gutter + gantt.plot * gantt.zoom + (gantt.zoom > 1 ? gantt.margin : 0)}px`;
  space.style.height = `${AXIS + tasks.length * gantt.rowHeight + 2}px`;
  stage.style.width = `${box.clientWidth}px`;
  stage.style.height = `${box.clientHeight}px`;
  redraw();
}

function drawGantt() {
  const { box, tasks, rowHeight, gutter } = gantt;
  const canvas = box.querySelector("canvas");
  canvas.style.width = `${box.clientWidth}px`; canvas.style.height = `${box.clientHeight}px`;
  const { context, width, height } = fitted(canvas, box.clientWidth, box.clientHeight);
  const colour = colours();
  context.font = "12px " + getComputedStyle(document.body).fontFamily;
  const first = Math.max(0, Math.floor(box.scrollTop / rowHeight)), last = Math.min(tasks.length, Math.ceil((box.scrollTop + height) / rowHeight));
  context.save();
  context.beginPath(); context.rect(0, AXIS, width, height); context.clip();
  if (tasks[gantt.active]) { context.fillStyle = colour.soft; context.fillRect(0, gantt.y(gantt.active), width, rowHeight); }
  context.restore();
  drawAxis(context, width, height, colour);
  context.save();
  context.beginPath(); context.rect(gutter, AXIS, width - gutter, height); context.clip();
  for (let row = first; row < last; row++) drawTask(context, tasks[row], row, width, colour);
  context.restore();
  drawNames(first, last);
}

function drawAxis(context, width, height, colour) {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000, 3600000, 7200000, 14400000, 43200000, 86400000]
    .find((each) => each * gantt.scale >= 84) || 604800000;
  context.textAlign = "left"; context.fillStyle = colour.muted; context.strokeStyle = colour.line; context.lineWidth = 1;
  context.beginPath();
  for (let moment = Math.floor(gantt.from / step) * step; moment <= gantt.to; moment += step) {
    const x = Math.round(gantt.x(moment)) + 0.5;
    if (x < gantt.gutter) continue;
    context.moveTo(x, 8); context.lineTo(x, height);
    if (x < width - 50) context.fillText(tick(moment, step), x + 5, 17);
  }
  context.moveTo(0, AXIS - 0.5); context.lineTo(width, AXIS - 0.5);
  context.stroke();
}

function box(context, x, y, w, h, radius) {
  context.beginPath();
  if (w < 4) context.rect(x, y, w, h); else context.roundRect(x, y, w, h, radius);
}

function drawTask(context, task, row, width, colour) {
  const { rowHeight } = gantt;
  const y = gantt.y(row), pad = rowHeight > 30 ? 8 : 4, h = rowHeight - 2 * pad;
  const tone = colour[TONES[task.status]];
  if (task.start === null) return;
  const spans = spansOf(task);
  for (const kind of [ATTEMPT, BACKOFF, CALL, TOOL, WAIT]) {
    let drawnTo = -1;
    for (const span of spans) {
      if (span.kind !== kind) continue;
      const x = gantt.x(span.start), w = Math.max(1, gantt.x(span.end) - x);
      if (x > width || x + w < gantt.gutter || (w <= 1 && x < drawnTo)) continue;
      drawnTo = x + 1;
      drawSpan(context, kind, x, y + pad, w, h, colour);
    }
  }
  const end = Math.max(gantt.x(task.end), gantt.x(task.start) + 1);
  if (task.status !== 0) { context.fillStyle = tone; context.fillRect(end - 1, y + pad - 2, 3, h + 4); }
  if (end < width - 54 && end > gantt.gutter - 8) {
    context.fillStyle = task.status === 0 ? colour.muted : tone;
    context.fillText(task.status === 0 ? time(task.duration) : `${time(task.duration)}, ${task.error && task.error[1] ? task.error[1].replaceAll("_", " ") : STATUSES[task.status]}`, end + 8, y + rowHeight / 2 + 4);
  }
  if (row === gantt.active && spans[gantt.span]) {
    const span = spans[gantt.span];
    context.strokeStyle = colour.focus; context.lineWidth = 2;
    context.strokeRect(gantt.x(span.start) - 1, y + pad - 2, Math.max(3, (span.end - span.start) * gantt.scale) + 2, h + 4);
  }
}

function drawSpan(context, kind, x, y, w, h, colour) {
  const [left, right] = [Math.max(x, gantt.gutter - 20), Math.min(x + w, gantt.box.clientWidth + 20)];
  [x, w] = [left, right - left];
  if (kind === ATTEMPT) {
    context.fillStyle = colour.attempt; box(context, x, y, w, h, 3); context.fill();
    if (w > 3) { context.strokeStyle = colour.own; context.lineWidth = 1; box(context, x + 0.5, y + 0.5, w - 1, h - 1, 3); context.stroke(); }
  } else if (kind === CALL || kind === TOOL) {
    context.fillStyle = kind === CALL ? colour.call : colour.tool;
    const gap = w > 5 ? 0.5 : 0;
    box(context, x + gap, y + 2, w - 2 * gap, h - 4, 2); context.fill();
  } else {
    const thin = kind === BACKOFF ? h / 3 : h - 4, top = kind === BACKOFF ? y + h / 3 : y + 2;
    if (kind === WAIT) { context.fillStyle = colour.surface; box(context, x, top, w, thin, 1); context.fill(); }
    context.save();
    box(context, x, top, w, thin, 1); context.clip();
    context.strokeStyle = colour.wait; context.lineWidth = 2.4; context.beginPath();
    if (w < 4) { context.fillStyle = colour.wait; context.fillRect(x, top, w, thin); }
    for (let at = x - thin; at < x + w; at += 5) { context.moveTo(at, top + thin); context.lineTo(at + thin, top); }
    context.stroke(); context.restore();
  }
}

function drawNames(first, last) {
  const rows = gantt.box.querySelector(".rows");
  const made = [];
  for (let row = first; row < last; row++) {
    const task = gantt.tasks[row];
    const y = gantt.y(row);
    const name = el("div", {
      class: `row s${task.status}`, id: `row-${row}`, role: "option", "aria-label": summary(task), "aria-setsize": gantt.tasks.length,
      "aria-posinset": row + 1, "aria-selected": row === gantt.active, title: task.name,
    }, el("span", { text: task.name }));
    Object.assign(name.style, { top: `${y}px`, height: `${gantt.rowHeight}px`, width: `${gantt.gutter}px` });
    if (y < AXIS) name.style.clipPath = `inset(${AXIS - y}px 0 0 0)`;
    made.push(name);
  }
  rows.replaceChildren(...made);
  if (gantt.active < 0) gantt.box.removeAttribute("aria-activedescendant");
  else gantt.box.setAttribute("aria-activedescendant", `row-${gantt.active}`);
}

// ---- moving about

function zoomTo(zoom, ms = (gantt.from + gantt.to) / 2, at = gantt.plot / 2) {
  gantt.zoom = Math.min(MOST_ZOOM, Math.max(1, zoom));
  layOut();
  gantt.box.scrollLeft = ms * gantt.scale - at;
  byId("out").disabled = byId("all").disabled = gantt.zoom === 1;
  redraw();
}

function activate(row, { scroll = true } = {}) {
  const { box, tasks, rowHeight } = gantt;
  if (!tasks.length) return;
  gantt.active = Math.min(tasks.length - 1, Math.max(0, row));
  gantt.span = -1;
  const top = gantt.active * rowHeight;
  if (scroll && top < box.scrollTop) box.scrollTop = top;
  else if (scroll && top + rowHeight + AXIS > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight + AXIS - box.clientHeight + 2;
  const task = tasks[gantt.active];
  if (scroll && task.start !== null && (task.end < gantt.from || task.start > gantt.to)) gantt.box.scrollLeft = task.start * gantt.scale - 40;
  byId("readout").textContent = summary(task);
  redraw();
}

function activateSpan(step) {
  const task = gantt.tasks[gantt.active];
  const spans = task ? spansOf(task) : [];
  if (!spans.length) return;
  gantt.span = Math.min(spans.length - 1, Math.max(0, gantt.span + step));
  const span = spans[gantt.span];
  const [left, right] = [span.start * gantt.scale, span.end * gantt.scale];
  if (left < gantt.box.scrollLeft || left > gantt.box.scrollLeft + gantt.sight - 20) gantt.box.scrollLeft = (left + Math.min(right, left + gantt.plot)) / 2 - gantt.plot / 2;
  byId("readout").textContent = `${task.name}: ${told(span)}`;
  redraw();
}

function underPointer(event) {
  const frame = gantt.box.getBoundingClientRect();
  const [x, y] = [event.clientX - frame.left - gantt.box.clientLeft, event.clientY - frame.top - gantt.box.clientTop];
  const row = Math.floor((y - AXIS + gantt.box.scrollTop) / gantt.rowHeight);
  if (y < AXIS || row >= gantt.tasks.length || row < 0) return null;
  const task = gantt.tasks[row];
  const [ms, near] = [(x - gantt.gutter + gantt.box.scrollLeft) / gantt.scale, 3 / gantt.scale];
  const hit = x < gantt.gutter ? [] : spansOf(task).filter((span) => span.start - near <= ms && ms <= span.end + near);
  hit.sort((a, b) => (a.end - a.start) - (b.end - b.start));
  return { row, task, span: hit[0] };
}

function hover(event) {
  const found = underPointer(event), tip = byId("tip");
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = `${summary(found.task)}${found.span ? `\n${told(found.span)}` : ""}`;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 12))}px`;
  tip.style.top = `${event.clientY + 20 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 20}px`;
}

function ganttKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const page = Math.max(1, Math.floor(gantt.box.clientHeight / gantt.rowHeight) - 2);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in moves) activate(Math.min(gantt.tasks.length - 1, Math.max(0, gantt.active + moves[event.key])));
  else if (event.key === "ArrowRight") activateSpan(1);
  else if (event.key === "ArrowLeft") activateSpan(-1);
  else if (event.key === "Enter" || event.key === " ") openDetails(gantt.tasks[gantt.active]);
  else if (event.key === "+" || event.key === "=") zoomTo(gantt.zoom * 1.6);
  else if (event.key === "-") zoomTo(gantt.zoom / 1.6);
  else if (event.key === "0") zoomTo(1);
  else return;
  event.preventDefault();
}

function startGantt() {
  const { box } = gantt;
  box.addEventListener("scroll", redraw);
  box.addEventListener("keydown", ganttKey);
  box.addEventListener("focus", () => activate(gantt.active));
  box.addEventListener("pointermove", hover);
  box.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
  box.addEventListener("click", (event) => {
    const found = underPointer(event);
    if (found) { activate(found.row, { scroll: false }); openDetails(found.task); }
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = event.clientX - box.getBoundingClientRect().left - gantt.gutter;
    zoomTo(gantt.zoom * Math.exp(-event.deltaY / 300), gantt.from + at / gantt.scale, at);
  }, { passive: false });
  byId("in").addEventListener("click", () => zoomTo(gantt.zoom * 2));
  byId("out").addEventListener("click", () => zoomTo(gantt.zoom / 2));
  byId("all").addEventListener("click", () => zoomTo(1));
  new ResizeObserver(layOut).observe(document.body);
  zoomTo(1);
}
