// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { Loaded, save, setQuery, Table, useLive } from '../parts.js';
import { number, shown } from '../text.js';

const HOUR = 3600e6;
const KEYS = ['user', 'pool', 'day', 'job', 'role'];
const hours = (key, per = HOUR) => ({ value: r => r[key], cell: r => (r[key] == null ? '–' : number(r[key] / per)), right: true });
const figures = [
  { key: 'cpuHeldUsec', title: 'Processor hours held', ...hours('cpuHeldUsec') },
  { key: 'cpuUsedUsec', title: 'used', ...hours('cpuUsedUsec') },
  { key: 'memoryHeldMibMsec', title: 'GiB hours held', ...hours('memoryHeldMibMsec', 1024 * 3600e3) },
  { key: 'gpuHeldUsec', title: 'GPU hours held', ...hours('gpuHeldUsec') },
  { key: 'gpuUsedUsec', title: 'busy', ...hours('gpuUsedUsec') },
  { key: 'attempts', title: 'Attempts', right: true },
];

function csv(rows, columns) {
  const field = v => { const s = String(v ?? ''); return /[",\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s; };
  return [columns.map(c => c.key), ...rows.map(r => columns.map(c => r[c.key]))].map(line => line.map(field).join(',')).join('\r\n') + '\r\n';
}

export function Usage({ query }) {
  const by = (query.by || 'user').split(',').filter(k => KEYS.includes(k)), days = Number(query.days) || 30;
  const since = Math.floor((Date.now() / 86400000 - days + 1)) * 86400e6;
  const answer = useLive(`usage?by=${by.join(',')}&since=${since}`, { on: () => false, every: 60000 });
  const columns = [...by.map(k => ({ key: k, title: k[0].toUpperCase() + k.slice(1), cell: r => shown(r[k]) })), ...figures];
  const toggle = k => setQuery({ by: (by.includes(k) ? by.filter(x => x !== k) : [...by, k]).join(',') || 'user' });
  return html`<h1>Usage</h1>
    <form class="filters" onSubmit=${e => e.preventDefault()}><fieldset><legend>By</legend>${KEYS.map(k => html`<label class="check"><input type="checkbox" checked=${by.includes(k)} onChange=${() => toggle(k)} /> ${k}</label>`)}</fieldset>
      <label>Days <input type="number" min="1" max="3650" value=${days} onChange=${e => setQuery({ days: e.target.value })} /></label></form>
    <${Loaded} answer=${answer}>${({ rows }) => html`<${Table} label="Usage" columns=${columns} rows=${rows} sort=${query.sort || '-cpuHeldUsec'} onSort=${sort => setQuery({ sort })}
      keyOf=${r => by.map(k => r[k]).join('/')} empty="Nothing was used." />
      ${rows.length > 0 && html`<p class="buttons"><button onClick=${() => save('usage.csv', 'text/csv', csv(rows, columns))}>Save as CSV</button></p>`}`}<//>`;
}
