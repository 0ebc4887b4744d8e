// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { address, Bar, Loaded, onNodes, setQuery, State, Table, useLive } from '../parts.js';
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

export function Hosts({ query }) {
  const answer = useLive('nodes', { on: onNodes, every: 15000 });
  const fits = n => !query.name || n.name.includes(query.name) || (n.labels || []).some(l => l.includes(query.name));
  return html`<h1>Hosts</h1>
    <form class="filters" role="search" onSubmit=${e => e.preventDefault()}>
      <label>Name or label <input value=${query.name || ''} maxlength="100" onInput=${e => setQuery({ name: e.target.value })} /></label></form>
    <${Loaded} answer=${answer}>${({ nodes }) => html`<${Table} label="Hosts" columns=${columns} rows=${nodes.filter(fits)} sort=${query.sort || 'name'} onSort=${sort => setQuery({ sort })}
      keyOf=${n => n.name} empty=${nodes.length ? 'No host is like that.' : 'No host has joined yet.'} />`}<//>`;
}
