// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { Action, Bar, Loaded, onJob, parsed, Table, useLive } from '../parts.js';
import { send } from '../transport.js';
import { bound, isEnded } from '../sentence.js';
import { bytes, duration, number, percent, plural, shown } from '../text.js';

const share = s => (s.bytes > 0 ? s.acked / s.bytes : s.tasks ? s.done / s.tasks : 0);

const sourceColumns = job => [
  { key: 'name', title: 'Source', cell: s => html`${shown(s.name)}${s.paused ? ' (paused)' : s.removed ? ' (removed)' : s.ended ? ' (ended)' : ''}` },
  { key: 'kind', title: 'Kind' },
  { key: 'share', title: 'Through', value: share, cell: s => html`<span class="pair"><${Bar} share=${share(s)} label=${`${percent(share(s))} is through`} /> ${s.bytes ? percent(share(s)) : `${s.done}/${s.tasks}`}</span>` },
  { key: 'acked', title: 'Acknowledged', right: true, cell: s => bytes(s.acked) },
  { key: 'records', title: 'Records', right: true, cell: s => number(s.records) },
  { key: 'rate', title: 'Rate', right: true, cell: s => `${bytes(s.rate)}/s` },
  { key: 'etaUsec', title: 'Left', right: true, value: s => s.etaUsec ?? 8e15, cell: s => (s.etaUsec == null ? '–' : duration(s.etaUsec)) },
  { key: 'failed', title: 'Given up', right: true },
  { key: 'do', title: '', value: null, cell: s => (isEnded(job.state) || s.ended || s.removed ? null
    : html`<${Action} label=${s.paused ? 'Resume' : 'Pause'} title=${`${s.paused ? 'Resume' : 'Pause'} ${s.name}`} run=${() => send('POST', `jobs/${job.job}/sources/steer`, { source: s.name, state: s.paused ? 'running' : 'paused' })} />`) },
];

const taskColumns = job => [
  { key: 'task', title: 'Task' },
  { key: 'state', title: 'State' },
  { key: 'source', title: 'Source', cell: t => shown(t.source) },
  { key: 'path', title: 'What', wide: true, cell: t => shown(t.path) },
  { key: 'acked', title: 'Acknowledged up to', right: true, cell: t => number(t.acked) },
  { key: 'holder', title: 'Held by' },
  { key: 'failures', title: 'Failures', right: true },
  { key: 'error', title: 'Latest error', wide: true, cell: t => shown(t.error) },
  { key: 'do', title: '', value: null, cell: t => (t.state !== 'FAILED' || isEnded(job.state) || !/^\d+$/.test(t.task) ? null : html`
      <${Action} label="Retry" title=${`Try task ${t.task} again`} run=${() => send('POST', `jobs/${job.job}/tasks/retry`, { task: Number(t.task) })} />
      <${Action} label="Skip" title=${`Skip task ${t.task}`} text="It counts as done, whatever is left of it." run=${() => send('POST', `jobs/${job.job}/tasks/skip`, { task: Number(t.task) })} />`) },
];

// Of what trainers did with their time: data-bound or compute-bound.
function BoundBar({ job }) {
  const b = bound(job.executors);
  if (!b) return null;
  return html`<p>Trainers waited for data <strong>${percent(b.data)}</strong> of the time and computed <strong>${percent(b.trainer)}</strong>:
    this job is bound by ${b.data > 0.5 ? 'its data' : 'computing'}.</p>
    <span class="bar wide busy" role="img" aria-label=${`${percent(b.data)} waiting for data`}><span class="warn" style=${{ width: `${100 * b.data}%` }}></span></span>`;
}

export function Data({ job }) {
  const on = onJob(job.job);
  const tasks = useLive(`jobs/${job.job}/tasks?limit=200`, { on, every: 5000, apart: 2000 });
  const d = job.data;
  if (!d) return html`<p class="empty">This job is not fed with data.</p>`;
  return html`<section class="cards">
      <div class="amount"><h3>Tasks</h3><p class="big">${number(d.done)} <span class="dim">of ${number(d.tasks)} done</span></p><${Bar} share=${d.tasks ? d.done / d.tasks : 0} label="tasks done" />
        <p class="dim">${plural(d.leased, 'task')} in work${d.failed ? `, ${number(d.failed)} given up` : ''}${d.scanned ? '' : ', still listing'}</p></div>
      <div class="amount"><h3>Bytes</h3><p class="big">${bytes(d.acked)} <span class="dim">${d.bytes ? `of ${bytes(d.bytes)}` : ''} acknowledged</span></p>${d.bytes > 0 && html`<${Bar} share=${d.acked / d.bytes} label="bytes acknowledged" />`}</div>
      <div class="amount"><h3>Records</h3><p class="big">${number(d.records)}</p><p class="dim">${d.waiting ? `${plural(d.waiting, 'executor')} without a task` : ' '}</p></div></section>
    <${BoundBar} job=${job} />
    <h2>Sources</h2><${Table} label="Sources" columns=${sourceColumns(job)} rows=${d.sources} keyOf=${s => s.name} empty="There are no sources." />
    ${!isEnded(job.state) && html`<div class="buttons"><${Action} label="Add a source" title="Add a source of data" text="One of inputManager.fileConfig.inputs of the configuration, JSON."
      fields=${[{ name: 'source', label: 'Source', type: 'textarea', required: true, value: '{ "name": "more", "spec": { "pathPattern": "/data/*.txt", "textInput": {} } }' }]}
      run=${v => send('POST', `jobs/${job.job}/sources`, { source: parsed(v.source) }, { 'If-Match': `"${job.version}"` })} /></div>`}
    <h2>Tasks that are not done</h2>
    <${Loaded} answer=${tasks}>${({ tasks: list }) => html`<${Table} label="Tasks" columns=${taskColumns(job)} rows=${list} keyOf=${t => t.task} empty="All are done." />`}<//>`;
}
