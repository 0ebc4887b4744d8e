// SPDX-License-Identifier: Apache-2.0
// Where the data of jobs stood: of one job, or all that there are.
import { html } from '../vendor/htm/standalone.module.js';
import { Action, address, Loaded, setQuery, Table, Time, useLive } from '../parts.js';
import { readOnly, send } from '../transport.js';
import { bytes, number, shown } from '../text.js';

const COLUMNS = [
  { key: 'name', title: 'Name', cell: s => shown(s.name) },
  { key: 'created', title: 'Written', cell: s => html`<${Time} at=${s.created} />` },
  { key: 'done', title: 'Tasks done', right: true, cell: s => number(s.done) },
  { key: 'partial', title: 'Begun', right: true, cell: s => number(s.partial) },
  { key: 'failed', title: 'Given up', right: true, cell: s => number(s.failed) },
  { key: 'acked', title: 'Acknowledged', right: true, cell: s => bytes(s.acked) },
  { key: 'records', title: 'Records', right: true, cell: s => number(s.records) },
  { key: 'do', title: '', value: null, cell: s => !readOnly && html`<span class="buttons"><a class="button" href=${address(['submit'], { from: s.job, savepoint: s.name })}>Go on from it</a>
      <${Action} label="Delete" danger title=${`Delete savepoint ${s.name}`} text="Jobs that have gone on from it keep what they have." run=${() => send('DELETE', `savepoint?${new URLSearchParams({ name: s.name })}`)} /></span>` },
];
const JOB = { key: 'job', title: 'Job', right: true, cell: s => html`<a href=${address(['job', s.job])} title=${shown(s.jobName)}>${s.job}</a>` };

function List({ rows, columns, sort }) {
  return html`<${Table} label="Savepoints" columns=${columns} rows=${rows} sort=${sort || '-created'} onSort=${to => setQuery({ sort: to })} keyOf=${s => s.name} empty="There is none." />`;
}

// A savepoint is written by its job, which changes nothing that the stream of events tells.
const useSavepoints = () => useLive('savepoints', { every: 5000 });

export function OfJob({ job, query }) {
  const answer = useSavepoints();
  return html`<${Loaded} answer=${answer}>${({ savepoints }) => html`
    <${List} rows=${savepoints.filter(s => s.job === job.job)} columns=${COLUMNS} sort=${query.sort} />
    <p><a href=${address(['savepoints'])}>Savepoints of all jobs</a></p>`}<//>`;
}

export function Savepoints({ query }) {
  const answer = useSavepoints();
  return html`<h1>Savepoints</h1><${Loaded} answer=${answer}>${({ savepoints }) => html`<${List} rows=${savepoints} columns=${[COLUMNS[0], JOB, ...COLUMNS.slice(1)]} sort=${query.sort} />`}<//>`;
}
