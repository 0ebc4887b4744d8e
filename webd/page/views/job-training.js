// SPDX-License-Identifier: Apache-2.0
// What trainers say of their training: a curve for each name, beside those of other jobs where one asks for them.
import { html, useEffect, useMemo, useState } from '../vendor/htm/standalone.module.js';
import { address, Loaded, setQuery, Table, Time, useLive, visible } from '../parts.js';
import { Chart } from '../chart.js';
import { isEnded } from '../sentence.js';
import { get } from '../transport.js';
import { number, shown } from '../text.js';

const LINES = 12, CHARTS = 12, JOBS = 8, POINTS = 256, AGAIN = 2000;
export const digits = x => (x == null ? '–' : String(Number(x.toPrecision(6))));

// Points of a name of several jobs, one after the other: masterd looks into the store for one of a user's questions at a time,
// and may be asked another one now. What has ended is asked for until there is an answer.
export function usePoints(jobs, name, every) {
  const [found, setFound] = useState(new Map());
  const key = `${name}\n${jobs.map(j => j.job).join()}`;
  useEffect(() => {
    let over = false, running = false, again = null;
    const kept = new Map();
    async function ask() {
      clearTimeout(again);
      if (running) return;
      running = true;
      for (const j of jobs) {
        if (over || !visible() || (kept.has(j.job) && j.ended)) continue;
        try {
          kept.set(j.job, (await get(`jobs/${j.job}/metrics/points?name=${encodeURIComponent(name)}&points=${POINTS}`)).series);
        } catch (problem) {
          // One that one may not look into, or that is not there, has no curve.
          if ([403, 404].includes(problem.status)) kept.set(j.job, []);
        }
        if (!over) setFound(new Map(kept));
      }
      running = false;
      if (!over && jobs.some(j => !kept.has(j.job))) again = setTimeout(ask, AGAIN);
    }
    ask();
    const clock = every ? setInterval(ask, every) : null;
    return () => { over = true; clearInterval(clock); clearTimeout(again); };
  }, [key, every]);
  return found;
}

// Lines over the steps of all of them.
export function linesOf(found, jobs, label) {
  const lines = jobs.flatMap(j => (found.get(j.job) || []).map(s => ({ label: label(j, s), steps: s.step, values: s.last, strong: j.strong })));
  const shownLines = lines.slice(0, jobs.length > 1 && lines.length > LINES ? Math.max(LINES, jobs.length) : LINES);
  const steps = [...new Set(shownLines.flatMap(l => l.steps))].sort((a, b) => a - b), at = new Map(steps.map((s, i) => [s, i]));
  return { steps, lines: lines.length, series: shownLines.map(l => {
    const points = Array(steps.length).fill(null);
    l.steps.forEach((s, i) => { points[at.get(s)] = l.values[i]; });
    return { label: l.label, points, strong: l.strong };
  }) };
}

function Curve({ name, jobs, orders, ended }) {
  const found = usePoints(jobs, name, ended ? 0 : 5000);
  const several = jobs.length > 1;
  const { steps, series, lines } = useMemo(() => linesOf(found, jobs, (j, s) => `${several ? `${j.job} ` : ''}${shown(s.role)}/${s.index}${s.local ? `.${s.local}` : ''}`), [found]);
  if (!series.length) return null;
  return html`<div><${Chart} title=${shown(name)} times=${steps} series=${series} show=${digits} steps orders=${orders} sync=${`training-${jobs[0].job}`} />
    ${lines > series.length && html`<p class="fine dim">The first ${series.length} of ${number(lines)} processes; <code>primusctl metrics --csv</code> has all.</p>`}</div>`;
}

const columns = [
  { key: 'name', title: 'Name', cell: m => shown(m.name) },
  { key: 'role', title: 'Role', cell: m => shown(m.role) },
  { key: 'series', title: 'Processes', right: true, cell: m => number(m.series) },
  { key: 'step', title: 'Step', right: true, cell: m => number(m.step) },
  { key: 'last', title: 'Last', right: true, cell: m => html`<strong>${digits(m.last)}</strong>` },
  { key: 'min', title: 'Lowest', right: true, cell: m => digits(m.min) },
  { key: 'max', title: 'Highest', right: true, cell: m => digits(m.max) },
  { key: 'reports', title: 'Reports', right: true, cell: m => number(m.reports) },
  { key: 'at', title: 'Said', cell: m => html`<${Time} at=${m.at} />` },
];

const numbersOf = text => [...new Set((text || '').split(/[ ,]+/).filter(w => /^\d{1,9}$/.test(w)).map(Number))].slice(0, JOBS - 1);

export function Training({ job, query }) {
  const ended = isEnded(job.state), answer = useLive(`jobs/${job.job}/metrics`, { on: () => false, every: ended ? 0 : 5000 });
  const others = numbersOf(query.with), orders = query.axis === 'log';
  const jobs = useMemo(() => [{ job: job.job, ended }, ...others.map(n => ({ job: n, ended: false }))], [job.job, ended, others.join()]);
  return html`<form class="filters" onSubmit=${e => { e.preventDefault(); setQuery({ with: numbersOf(new FormData(e.target).get('with')).join() }); }}>
      <label>Beside jobs <input name="with" value=${others.join()} placeholder="417,415" pattern="[0-9, ]*" /></label><button>Compare</button>
      <button type="button" aria-pressed=${orders} onClick=${() => setQuery({ axis: orders ? '' : 'log' })}>By orders of size</button>${others.map(n => html` <a href=${address(['job', n])}>${n}</a>`)}</form>
    <${Loaded} answer=${answer}>${({ metrics }) => {
      if (!metrics.length) return html`<p class="empty">Its trainers have said nothing. <code>from primus import metrics; metrics.report(step, loss=…)</code> is all that it takes; see primus(3).</p>`;
      const names = [...new Set(metrics.map(m => m.name))];
      return html`<div class="charts">${names.slice(0, CHARTS).map(name => html`<${Curve} key=${name} name=${name} jobs=${jobs} orders=${orders} ended=${ended} />`)}</div>
        ${names.length > CHARTS && html`<p class="dim">The first ${CHARTS} of ${number(names.length)} names.</p>`}
        <h2>All of them</h2><${Table} label="Metrics" columns=${columns} rows=${metrics} sort=${query.sort || 'name'} onSort=${sort => setQuery({ sort })} keyOf=${m => `${m.role}/${m.name}`} empty="" />`;
    }}<//>`;
}
