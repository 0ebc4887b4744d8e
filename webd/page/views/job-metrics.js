// SPDX-License-Identifier: Apache-2.0
// What executors do: a plot for each number, and all ranks against time, where the odd one out is seen.
import { html, useEffect, useMemo, useRef } from '../vendor/htm/standalone.module.js';
import { address, Loaded, setQuery, useLive } from '../parts.js';
import { Chart } from '../chart.js';
import { isEnded } from '../sentence.js';
import { bytes, number, percent, shown } from '../text.js';

const rate = n => `${bytes(n)}/s`;
// The number, its title, how it is shown, and the least that its axis reaches up to.
const NUMBERS = [
  ['steps', 'Steps a second', number, 1], ['cpu', 'Processors in use', number, 1], ['gpu', 'GPU busy', percent, 1], ['gpuMemory', 'GPU memory', percent, 1], ['memory', 'Memory', bytes, 1 << 20],
  ['dataWait', 'Waits for data', percent, 1], ['pressure', 'Pressure', percent, 0.1], ['read', 'Reads', rate, 1024], ['write', 'Writes', rate, 1024], ['netRx', 'Network, in', rate, 1024], ['netTx', 'Network, out', rate, 1024],
];

// [{ label, points }] of a number, mean and worst of each role.
function seriesOf(roles, key, n) {
  const result = [];
  for (const role of roles) {
    const [mean, max] = role.history?.[key] || [];
    if (!mean || !mean.some(x => x != null)) continue;
    const padded = list => [...Array(Math.max(0, n - list.length)).fill(null), ...list.slice(-n)];
    result.push({ label: `${role.name}, mean`, points: padded(mean) });
    if (role.executors > 1) result.push({ label: `${role.name}, highest`, points: padded(max), dash: [4, 3] });
  }
  return result;
}

function Plots({ telemetry, job, ended }) {
  const n = Math.max(0, ...telemetry.roles.flatMap(r => Object.values(r.history || {}).map(([mean]) => mean.length)));
  const times = useMemo(() => Array.from({ length: n }, (_, i) => (telemetry.at - (n - 1 - i) * telemetry.interval) / 1e6), [telemetry]);
  const charts = useMemo(() => NUMBERS.map(([key, title, show, least]) => ({ key, title, show, least, series: seriesOf(telemetry.roles, key, n) })).filter(c => c.series.length), [telemetry]);
  if (charts.length === 0) {
    return ended ? html`<p class="empty">Nothing of that range was kept: it ran for less, or before the master was started. <a href=${address(['job', job.job])}>What each executor used</a> is there.</p>`
      : html`<p class="empty">Nothing has been measured yet; the first figures are there after some seconds.</p>`;
  }
  return html`<div class="charts">${charts.map(c => html`<${Chart} key=${c.key} title=${c.title} times=${times} series=${c.series} show=${c.show} least=${c.least} binary=${c.show === bytes || c.show === rate} sync=${`job-${job.job}`} />`)}</div>`;
}

// ---- ranks × time ----

const COLUMNS = 120;

// What was seen since the page is open: a column for each answer, newest last.
function useColumns(telemetry, key) {
  const kept = useRef({ key: null, columns: [] });
  return useMemo(() => {
    if (kept.current.key !== key) kept.current = { key, columns: [] };
    if (telemetry) kept.current.columns = [...kept.current.columns, new Map(telemetry.executors.map(e => [`${e.role}/${e.index}`, e.rates?.[key]]))].slice(-COLUMNS);
    return kept.current.columns;
  }, [telemetry, key]);
}

function HeatMap({ telemetry, job, query }) {
  const present = NUMBERS.filter(([k]) => telemetry.executors.some(e => e.rates?.[k] != null));
  const key = present.some(([k]) => k === query.number) ? query.number : present[0]?.[0];
  const columns = useColumns(telemetry, key), canvas = useRef(null);
  const ranks = useMemo(() => [...telemetry.executors].sort((a, b) => a.rank - b.rank), [telemetry]);
  const odd = new Set(job.verdicts.filter(v => v.role).map(v => `${v.role}/${v.index}`));
  const [, title, show] = NUMBERS.find(([k]) => k === key) || [];
  const height = Math.max(4, Math.min(16, Math.floor(400 / Math.max(1, ranks.length))));
  useEffect(() => {
    const c = canvas.current;
    if (!c || !key) return;
    const width = Math.max(2, Math.floor(c.parentElement.clientWidth / COLUMNS));
    c.width = width * COLUMNS;
    c.height = height * ranks.length;
    const draw = c.getContext('2d'), highest = Math.max(1e-9, ...columns.flatMap(m => [...m.values()].filter(x => x != null)));
    const tone = getComputedStyle(document.documentElement).getPropertyValue('--heat').trim();
    columns.forEach((column, i) => ranks.forEach((e, y) => {
      const v = column.get(`${e.role}/${e.index}`);
      if (v == null) return;
      draw.fillStyle = `hsl(${tone} / ${0.08 + 0.92 * Math.min(1, v / highest)})`;
      draw.fillRect((COLUMNS - columns.length + i) * width, y * height, width, height - (height > 5 ? 1 : 0));
    }));
  }, [columns, ranks, key, height]);
  if (!key) return null;
  const latest = columns[columns.length - 1], values = ranks.map(e => latest?.get(`${e.role}/${e.index}`)).filter(x => x != null);
  const named = ranks.filter(e => odd.has(`${e.role}/${e.index}`));
  return html`<h2>All ranks</h2><form class="filters" onSubmit=${e => e.preventDefault()}><label>Number <select onChange=${e => setQuery({ number: e.target.value })}>${present.map(([k, t]) => html`<option value=${k} selected=${k === key}>${t}</option>`)}</select></label></form>
    <figure class="heat" aria-label=${`${title} of ${ranks.length} ranks`}><figcaption>${title}: a row for each rank, since this page is open; now ${values.length ? `${show(Math.min(...values))} to ${show(Math.max(...values))}` : 'not known'}</figcaption><canvas ref=${canvas} aria-hidden="true"></canvas></figure>
    ${named.length > 0 && html`<p>The odd one out: ${named.map(e => html`<a href=${address(['job', job.job, 'logs'], { role: e.role, index: e.index })}>${shown(e.role)}/${e.index}</a> (<a href=${address(['job', job.job, 'inside'], { role: e.role, index: e.index })}>its stacks</a>) on <a href=${address(['host', e.node])}>${e.node}</a> `)}</p>`}`;
}

export function Metrics({ job, query }) {
  const range = query.range === '4h' ? '4h' : '10min', ended = isEnded(job.state);
  const answer = useLive(`jobs/${job.job}/telemetry?history=${range}&noValues=true`, { on: () => false, every: ended ? 0 : 5000 });
  return html`<p class="buttons">${[['10min', '10 minutes'], ['4h', '4 hours']].map(([k, t]) => html`<button aria-pressed=${range === k} onClick=${() => setQuery({ range: k })}>${t}</button>`)}${ended && html`<span class="dim">before the end of its latest attempt</span>`}</p>
    <${Loaded} answer=${answer}>${telemetry => html`<${Plots} key=${range} telemetry=${telemetry} job=${job} ended=${ended} /><${HeatMap} telemetry=${telemetry} job=${job} query=${query} />`}<//>`;
}
