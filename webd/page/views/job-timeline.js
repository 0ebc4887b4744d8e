// SPDX-License-Identifier: Apache-2.0
// A row for each executor, a bar for each attempt.
import { html } from '../vendor/htm/standalone.module.js';
import { Loaded, onJob, Table, State, Time, Since, useLive, useNow } from '../parts.js';
import { duration, plural, shown, time } from '../text.js';

const ROW = 16, LEFT = 130, WIDTH = 1000, ROWS = 400;
const TONE = { SUCCEEDED: 'ok', FAILED: 'bad', LOST: 'bad', KILLED: 'off', RUNNING: 'busy' };

function Bars({ rows, from, to }) {
  const x = at => LEFT + (WIDTH - LEFT) * (at - from) / Math.max(1, to - from);
  const marks = [0, 0.25, 0.5, 0.75, 1].map(f => from + f * (to - from));
  return html`<svg class="timeline" viewBox="0 0 ${WIDTH} ${rows.length * ROW + 24}" role="img" aria-label=${`Attempts of ${rows.length} executors from ${time(from)} to ${time(to)}`}>
    ${marks.map((m, i) => html`<line x1=${x(m)} x2=${x(m)} y1="0" y2=${rows.length * ROW} class="grid" /><text x=${x(m)} y=${rows.length * ROW + 16} text-anchor=${i === 4 ? 'end' : 'middle'}>${time(m)}</text>`)}
    ${rows.map(([name, attempts], y) => html`<text x=${LEFT - 6} y=${y * ROW + 12} text-anchor="end">${shown(name)}</text>
      ${attempts.filter(e => e.started).map(e => html`<rect class=${TONE[e.state] || 'warn'} x=${x(e.started)} y=${y * ROW + 2} width=${Math.max(2, x(e.ended || to) - x(e.started))} height=${ROW - 4} rx="2">
        <title>${`${name}, attempt ${e.attempt} on ${e.node}: ${e.state}, ${duration((e.ended || to) - e.started)} ${shown(e.result)}`}</title></rect>`)}`)}</svg>`;
}

const columns = [
  { key: 'role', title: 'Executor', cell: e => `${shown(e.role)}/${e.index}` },
  { key: 'attempt', title: 'Attempt', right: true },
  { key: 'node', title: 'Host' },
  { key: 'state', title: 'State', cell: e => html`<${State} state=${e.state} />` },
  { key: 'started', title: 'Started', cell: e => html`<${Time} at=${e.started} />` },
  { key: 'time', title: 'Time', right: true, value: e => (e.ended || 8e15) - (e.started || 8e15), cell: e => html`<${Since} from=${e.started} to=${e.ended} />` },
  { key: 'result', title: 'How it ended', wide: true, cell: e => shown(e.result) },
];

export function Timeline({ job }) {
  const answer = useLive(`jobs/${job.job}?attempts=true`, { on: onJob(job.job), every: 30000, apart: 3000 });
  const now = useNow(5000) * 1000;
  return html`<${Loaded} answer=${answer}>${({ executors, submitted, ended }) => {
    const byName = new Map();
    for (const e of executors) {
      const name = `${e.role}/${e.index}`;
      if (!byName.has(name)) byName.set(name, []);
      byName.get(name).push(e);
    }
    // Those with most attempts first, when not all can be shown: that is where something happened.
    let rows = [...byName];
    if (rows.length > ROWS) rows = rows.sort((a, b) => b[1].length - a[1].length).slice(0, ROWS);
    const restarted = executors.filter(e => e.attempt > 1);
    return html`${byName.size > ROWS && html`<p class="dim">The ${ROWS} executors with most attempts, of ${byName.size}.</p>`}
      <${Bars} rows=${rows} from=${submitted} to=${ended || now} />
      <h2>${plural(executors.length, 'attempt')}</h2><${Table} label="Attempts" columns=${columns} rows=${(restarted.length ? restarted : executors).slice(0, 200)} keyOf=${e => `${e.role}/${e.index}/${e.attempt}`} empty="Nothing has begun." />`;
  }}<//>`;
}
