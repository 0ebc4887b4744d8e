// SPDX-License-Identifier: Apache-2.0
// What is written down about a job: events, configuration.
import { html } from '../vendor/htm/standalone.module.js';
import { Loaded, onJob, Table, Time, useLive } from '../parts.js';
import { shown } from '../text.js';

const columns = [
  { key: 'time', title: 'Time', cell: e => html`<${Time} at=${e.time} />` },
  { key: 'kind', title: 'Kind' },
  { key: 'who', title: 'Executor', cell: e => (e.role ? `${shown(e.role)}/${e.index}` : '') },
  { key: 'text', title: 'What', wide: true, cell: e => shown(e.text) },
];

export function Events({ job }) {
  const answer = useLive(`jobs/${job.job}/events`, { on: onJob(job.job), every: 15000, apart: 1500 });
  return html`<${Loaded} answer=${answer}>${({ events }) => html`<${Table} label="Events" columns=${columns} rows=${[...events].reverse().slice(0, 1000)} keyOf=${e => e.sequence} empty="Nothing has happened." />`}<//>`;
}

export function Config({ job }) {
  const answer = useLive(`jobs/${job.job}/config`, { on: onJob(job.job), apart: 3000 });
  return html`<p class="dim">The configuration in effect, version ${job.version}; <code>primusctl config ${job.job}</code> says where each value comes from.</p>
    <${Loaded} answer=${answer}>${config => html`<pre class="config" tabindex="0">${shown(JSON.stringify(config, null, 2))}</pre>`}<//>`;
}
