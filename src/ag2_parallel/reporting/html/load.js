// How many tasks run, and how many model calls are under way, at each moment.

function most(values) { return values.reduce((found, value) => Math.max(found, value), 0); }

// Times are written to a tenth of a millisecond: what ends and what follows it must not seem to overlap.
const ROUNDED = 0.25;

// Sorted moments and the count from each of them on.
function steps(spans) {
  const changes = [];
  for (const [from, to] of spans) changes.push([from, 1], [Math.max(from, to - ROUNDED), -1]);
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const moments = [0], counts = [0];
  for (const [moment, change] of changes) {
    const last = counts.length - 1;
    if (moment === moments[last]) counts[last] += change;
    else { moments.push(moment); counts.push(counts[last] + change); }
  }
  return { moments, counts };
}

const LOAD = (() => {
  const running = [], calling = [];
  for (const task of TASKS) {
    for (let at = 0; at < task.raw.length; at += 5) {
      const from = (task.start || 0) + task.raw[at + 3];
      const span = [from, from + task.raw[at + 4]];
      if (task.raw[at] === ATTEMPT) running.push(span);
      else if (task.raw[at] === CALL) calling.push(span);
    }
  }
  return { running: steps(running), calling: steps(calling) };
})();

// The highest count in each pixel column of a stretch of time.
function columns(line, from, to, width) {
  const found = new Float64Array(width);
  const { moments, counts } = line;
  let at = 0;
  let low = 0, high = moments.length - 1;
  while (low < high) { const mid = (low + high + 1) >> 1; if (moments[mid] <= from) low = mid; else high = mid - 1; }
  at = low;
  for (let x = 0; x < width; x++) {
    const until = from + ((x + 1) * (to - from)) / width;
    let most = counts[at];
    while (at + 1 < moments.length && moments[at + 1] < until) { at += 1; if (counts[at] > most) most = counts[at]; }
    found[x] = most;
  }
  return found;
}

function drawLoad(view) {
  const canvas = byId("load");
  const { context, width, height } = fitted(canvas, canvas.clientWidth, canvas.clientHeight);
  const colour = colours();
  const [top, bottom] = [8, height - 4];
  const running = columns(LOAD.running, view.from, view.to, view.sight), calling = columns(LOAD.calling, view.from, view.to, view.sight);
  const peak = Math.max(1, most(LOAD.running.counts), most(LOAD.calling.counts));
  const y = (value) => bottom - ((bottom - top) * value) / peak;
  context.font = "12px " + getComputedStyle(document.body).fontFamily;
  context.textAlign = "right";
  context.fillStyle = colour.muted;
  context.fillText(count(peak), view.gutter - 10, top + 9);
  context.fillText("0", view.gutter - 10, bottom);
  context.textAlign = "left";
  context.fillText(view.gutter > 200 ? "tasks at once" : "tasks", 12, top + 9);
  context.fillStyle = colour.call;
  context.fillText(view.gutter > 200 ? "model calls" : "calls", 12, top + 27);
  context.strokeStyle = colour.line;
  context.beginPath(); context.moveTo(view.gutter, bottom + 0.5); context.lineTo(width, bottom + 0.5);
  context.moveTo(view.gutter, top + 0.5); context.lineTo(width, top + 0.5); context.stroke();
  context.beginPath(); context.moveTo(view.gutter, bottom);
  running.forEach((value, x) => context.lineTo(view.gutter + x, y(value)));
  context.lineTo(view.gutter + view.sight, bottom); context.closePath();
  context.fillStyle = colour.attempt; context.fill();
  context.beginPath();
  calling.forEach((value, x) => context.lineTo(view.gutter + x, y(value) - 0.5));
  context.strokeStyle = colour.call; context.lineWidth = 1.5; context.lineJoin = "round"; context.stroke();
  canvas.setAttribute("aria-label", `At most ${most(LOAD.running.counts)} tasks ran at once, with at most ${most(LOAD.calling.counts)} model calls under way.`);
}

// ---- what both drawings share

// A canvas of that size, sharp on any screen.
function fitted(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

let palette = null;

function colours() {
  if (palette === null) {
    const style = getComputedStyle(document.documentElement);
    palette = {};
    for (const name of ["surface", "ink", "muted", "line", "soft", "focus", "call", "tool", "wait", "attempt", "own", ...TONES]) palette[name] = style.getPropertyValue(`--${name}`).trim();
  }
  return palette;
}
