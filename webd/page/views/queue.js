// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { address, Loaded, onJobs, Since, State, Table, Time, useLive } from '../parts.js';
import { bytes, number, shown } from '../text.js';

const needs = j => [j.cpus && `${number(j.cpus)} processors`, j.memory && bytes(j.memory), j.gpus && `${number(j.gpus)} GPUs`].filter(Boolean).join(', ');
const columns = [
  { key: 'position', title: 'Place', right: true, cell: j => j.position || '–' },
  { key: 'job', title: 'Job', right: true, cell: j => html`<a href=${address(['job', j.job])}>${j.job}</a>` },
  { key: 'name', title: 'Name', cell: j => html`<a href=${address(['job', j.job, 'why'])}>${shown(j.name)}</a>` },
  { key: 'pool', title: 'Pool' },
  { key: 'priority', title: 'Priority', right: true },
  { key: 'state', title: 'State', cell: j => html`<${State} state=${j.state} />` },
  { key: 'since', title: 'Waits', right: true, cell: j => html`<${Since} from=${j.since} />` },
  { key: 'executors', title: 'Needs', cell: j => html`${number(j.executors)} × <span class="dim">${needs(j)}</span>` },
  { key: 'startsBy', title: 'Starts by', cell: j => html`<${Time} at=${j.startsBy} />` },
  { key: 'reason', title: 'Why', wide: true, cell: j => shown(j.reason) },
];

const amount = a => [a.cpus != null && `${number(a.cpus)} processors`, a.memory != null && bytes(a.memory), a.gpus != null && `${number(a.gpus)} GPUs`].filter(Boolean).join(', ') || 'no limit';
const poolColumns = [
  { key: 'name', title: 'Pool', cell: p => html`${shown(p.name)}${p.open ? '' : ' (closed)'}` },
  { key: 'weight', title: 'Weight', right: true },
  { key: 'running', title: 'Run', right: true },
  { key: 'waiting', title: 'Wait', right: true },
  { key: 'held', title: 'Held', cell: p => amount(p.held) },
  { key: 'guarantee', title: 'Guaranteed', cell: p => amount(p.guarantee) },
  { key: 'limit', title: 'At most', cell: p => amount(p.limit) },
  { key: 'users', title: 'Users', right: true, cell: p => p.users.length },
];

export function Queue({ query }) {
  const queue = useLive('queue', { on: onJobs, every: 20000, apart: 2000 }), pools = useLive('pools', { on: onJobs, every: 20000, apart: 2000 });
  return html`<h1>Queue</h1><p class="dim">In the order in which jobs are tried.</p>
    <${Loaded} answer=${queue}>${({ jobs }) => html`<${Table} label="Queue" columns=${columns} rows=${jobs.slice(0, 500)} keyOf=${j => j.job} empty="Nothing waits." />
      ${jobs.length > 500 && html`<p class="dim">and ${number(jobs.length - 500)} more</p>`}`}<//>
    <h2>Pools</h2>
    <${Loaded} answer=${pools}>${({ pools: list }) => html`<${Table} label="Pools" columns=${poolColumns} rows=${list} keyOf=${p => p.name} empty="There are no pools." />`}<//>`;
}
