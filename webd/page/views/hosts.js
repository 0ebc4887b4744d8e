// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { address, Bar, Loaded, onNodes, setQuery, State, Table, Time, useLive } from '../parts.js';
import { bytes, number, shown } from '../text.js';

const used = (n, key) => n[key] - n[`${key}Free`];
const cell = (key, show) => n => (n[key] ? html`<span class="pair">${show(used(n, key))}/${show(n[key])} <${Bar} share=${used(n, key) / n[key]} label=${`${show(used(n, key))} of ${show(n[key])} held`} /></span>` : html`<span class="dim">–</span>`);

const columns = [
  { key: 'name', title: 'Host', cell: n => html`<a href=${address(['host', n.name])}>${n.name}</a>` },
  { key: 'state', title: 'State', cell: n => html`<${State} state=${n.state} />` },
  { key: 'cpus', title: 'Processors', right: true, value: n => used(n, 'cpus'), cell: cell('cpus', number) },
  { key: 'memory', title: 'Memory', right: true, value: n => used(n, 'memory'), cell: cell('memory', bytes) },
  { key: 'gpus', title: 'GPUs', right: true, value: n => used(n, 'gpus'), cell: cell('gpus', number) },
  { key: 'executors', title: 'Executors', right: true },
  { key: 'reason', title: 'Held, and what is not well', wide: true, value: n => n.reason || n.conditions, cell: n => shown([n.reason, n.conditions].filter(Boolean).join('; ')) },
  { key: 'labels', title: 'Labels', value: n => (n.labels || []).join(' '), cell: n => shown((n.labels || []).join(' ')) },
];

const MADE = [
  { key: 'node', title: 'Host', cell: i => (['WANTED', 'STARTING'].includes(i.state) ? shown(i.node) : html`<a href=${address(['host', i.node])}>${shown(i.node)}</a>`) },
  { key: 'state', title: 'State', cell: i => html`<${State} state=${i.state} />` },
  { key: 'since', title: 'Since', cell: i => html`<${Time} at=${i.since} />` },
  { key: 'provider', title: 'Provider', cell: i => shown(i.provider) },
  { key: 'shape', title: 'Shape', cell: i => shown(i.shape) },
  { key: 'job', title: 'For job', right: true, cell: i => (i.job ? html`<a href=${address(['job', i.job])}>${i.job}</a>` : html`<span class="dim">–</span>`) },
  { key: 'text', title: 'Why it is kept, or leaves', wide: true, cell: i => shown(i.text) },
];

// Hosts that were made because jobs waited; nothing where none was.
function Made() {
  const { data } = useLive('instances', { on: onNodes, every: 10000 });
  return data?.instances.length > 0 && html`<h2>Hosts by demand</h2><${Table} label="Hosts by demand" columns=${MADE} rows=${data.instances} keyOf=${i => i.token} />`;
}

export function Hosts({ query }) {
  const answer = useLive('nodes', { on: onNodes, every: 15000 });
  const fits = n => !query.name || n.name.includes(query.name) || (n.labels || []).some(l => l.includes(query.name));
  return html`<h1>Hosts</h1>
    <form class="filters" role="search" onSubmit=${e => e.preventDefault()}>
      <label>Name or label <input value=${query.name || ''} maxlength="100" onInput=${e => setQuery({ name: e.target.value })} /></label></form>
    <${Loaded} answer=${answer}>${({ nodes }) => html`<${Table} label="Hosts" columns=${columns} rows=${nodes.filter(fits)} sort=${query.sort || 'name'} onSort=${sort => setQuery({ sort })}
      keyOf=${n => n.name} empty=${nodes.length ? 'No host is like that.' : 'No host has joined yet.'} />`}<//><${Made} />`;
}
