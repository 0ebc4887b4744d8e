// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { Action, address, Amount, Empty, Loaded, More, State, Table, Time, useLive } from '../parts.js';
import { send } from '../transport.js';
import { bytes, number, shown } from '../text.js';

function Facts({ node }) {
  const rows = [['Address', node.address], ['System', node.os], ['Kernel', node.kernel], ['Agent', node.version], ['Limits', node.limits ? 'enforced' : 'not enforced'],
    ['Labels', (node.labels || []).join(' ')], ['Link', node.link], ['Provider', node.provider && `${node.provider}, shape ${node.shape}; ${node.kept}`]];
  return html`<dl class="facts">${rows.filter(([, v]) => v).map(([k, v]) => html`<dt>${k}</dt><dd>${shown(v)}</dd>`)}</dl>`;
}

// What a person fills in is the browser's time; masterd takes microseconds since 1970.
const moment = local => new Date(local).getTime() * 1000;

function Windows({ name, windows = [] }) {
  const post = (what, body) => send('POST', `nodes/${encodeURIComponent(name)}/${what}`, body);
  return html`<h2>Maintenance</h2>${windows.length === 0 ? html`<${Empty}>No window is set.<//>` : html`<ul class="plain">${windows.map(w => html`<li key=${w.from}><${Time} at=${w.from} /> to <${Time} at=${w.to} /> ${shown(w.reason)}
      <${Action} label="Cancel this window" danger title="Cancel the window" text="One that has begun ends now." run=${() => post('maintenance/cancel', { from: w.from })} /></li>`)}</ul>`}
    <div class="buttons"><${Action} label="Set a window" title=${`A window for ${name}`} text="Jobs that would run into it are not placed there; what still runs when it begins goes on elsewhere."
      fields=${[{ name: 'from', label: 'From', type: 'datetime-local', required: true }, { name: 'to', label: 'To', type: 'datetime-local', required: true }, { name: 'reason', label: 'Reason' }]}
      run=${v => post('maintenance', { from: moment(v.from), to: moment(v.to), reason: v.reason })} /></div>`;
}

const eventColumns = [
  { key: 'time', title: 'Time', cell: e => html`<${Time} at=${e.time} />` },
  { key: 'kind', title: 'Kind' },
  { key: 'text', title: 'What', wide: true, cell: e => shown(e.text) },
];
const SHOWN = 50;

function Events({ name, all }) {
  const answer = useLive(`nodes/${encodeURIComponent(name)}/events`, { on: e => e.nodes?.includes(name), apart: 1500 });
  return html`<h2>What has happened to it</h2><${Loaded} answer=${answer}>${({ events }) => html`
    <${Table} label="Events" columns=${eventColumns} rows=${events.slice(all ? 0 : -SHOWN).reverse()} keyOf=${e => e.sequence} empty="Nothing yet." />
    ${!all && events.length > SHOWN && html`<p><a href=${address(['host', name], { events: 'all' })}>${number(events.length - SHOWN)} earlier ones</a></p>`}`}<//>`;
}

function Gpus({ name, node }) {
  const post = (what, body) => send('POST', `nodes/${encodeURIComponent(name)}/gpus/${what}`, body), off = new Map((node.gpusOff || []).map(g => [g.uuid, g]));
  if ((node.gpuList || []).length === 0) return null;
  return html`<h2>GPUs</h2><ul class="plain">${node.gpuList.map(g => html`<li key=${g.uuid}>${shown(g.model)} <span class="dim">${shown(g.uuid)}</span> ${bytes(g.memory)} ${g.mig} ${off.has(g.uuid) ? `out of use: ${shown(off.get(g.uuid).reason)}` : g.taken ? 'held' : 'free'}
    ${off.has(g.uuid) ? html`<${Action} label="Enable" title=${`GPU ${g.uuid} in use again`} run=${() => post('enable', { gpu: g.uuid })} />`
    : html`<${Action} label="Disable" danger title=${`GPU ${g.uuid} out of use`} text="Nobody gets it any more; what runs on it goes on." fields=${[{ name: 'reason', label: 'Reason' }]} run=${v => post('disable', { gpu: g.uuid, reason: v.reason })} />`}</li>`)}</ul>`;
}

const executorColumns = [
  { key: 'job', title: 'Job', right: true, cell: e => html`<a href=${address(['job', e.job])}>${e.job}</a>` },
  { key: 'role', title: 'Executor', cell: e => `${shown(e.role)}/${e.index}` },
  { key: 'state', title: 'State', cell: e => html`<${State} state=${e.state} />` },
  { key: 'attempt', title: 'Attempt', right: true },
  { key: 'startedAt', title: 'Started', cell: e => html`<${Time} at=${e.startedAt} />` },
];

function Actions({ name, node }) {
  const post = (what, body) => send('POST', `nodes/${encodeURIComponent(name)}/${what}`, body);
  const held = (node.holds || []).length > 0;
  return html`<div class="buttons">
    ${held ? html`<${Action} label="Uncordon" title=${`Let ${name} take work again`} run=${() => post('uncordon', {})} />`
    : html`<${Action} label="Cordon" title=${`Place nothing new on ${name}`} text="What runs there runs on." fields=${[{ name: 'reason', label: 'Reason' }]} run=${v => post('cordon', v)} />`}
    <${Action} label="Labels" title=${`Labels of ${name}`} text="Over those that its agent reports." fields=${[{ name: 'changes', label: 'Changes', hint: 'rack=b7 sets one, rack- takes away what was set here; blanks between', required: true }]}
      run=${v => post('labels', { changes: v.changes.split(/\s+/).filter(Boolean) })} />
    <${Action} label="Drain" danger title=${`Empty ${name}`} text="What runs there is stopped and goes on elsewhere; it counts as no failure." fields=${[{ name: 'reason', label: 'Reason' },
    { name: 'minutes', label: 'Wait so many minutes for what ends by itself', type: 'number', min: 0, hint: 'empty: it is moved now' }]}
      run=${v => post('drain', { reason: v.reason, ...(v.minutes ? { deadline: Math.round((Date.now() + v.minutes * 60000) * 1000) } : {}) })} />
    <${More}>${['SUSPECT', 'LOST'].includes(node.state) && html`<${Action} label="Declare dead" danger title=${`${name} is dead`} text="What ran there goes on elsewhere at once. Only where it is certain that nothing runs there any more." run=${() => post('dead', {})} />`}
      <${Action} label="Remove" danger title=${`Take ${name} out of the cluster`} text="Its certificate is revoked; to come back it joins anew." run=${() => send('POST', 'nodes/remove', { name })} done=${() => { location.hash = '#/hosts'; }} /><//></div>`;
}

export function Host({ args: [name], query }) {
  const answer = useLive(`nodes/${encodeURIComponent(name)}`, { on: e => e.nodes?.includes(name) || e.jobs?.length > 0, every: 10000, apart: 1500 });
  return html`<${Loaded} answer=${answer}>${node => html`
    <div class="title"><h1>${name}</h1><${State} state=${node.state} /><span class="space"></span><${Actions} name=${name} node=${node} /></div>
    ${node.reason && html`<p class="sentence warn">${shown(node.reason)}</p>`}
    ${(node.conditions || []).map(c => html`<p class="sentence ${c.severity === 'ok' ? 'ok' : 'warn'}"><strong>${shown(c.kind)}</strong> ${shown(c.text)}, since <${Time} at=${c.since} /></p>`)}
    <section class="cards">${[['Processors', 'cpus', number], ['Memory', 'memory', bytes], ['GPUs', 'gpus', number]].map(([title, k, show]) => html`
      <${Amount} name=${title} all=${node[k]} held=${node[k] - node[`${k}Free`]} show=${show} />`)}</section>
    <h2>Executors</h2><${Table} label="Executors" columns=${executorColumns} rows=${node.executors || []} keyOf=${e => `${e.job}/${e.role}/${e.index}`} empty="Nothing runs here." />
    <${Gpus} name=${name} node=${node} />
    <${Windows} name=${name} windows=${node.windows} />
    <${Events} name=${name} all=${query.events === 'all'} />
    <h2>About it</h2><${Facts} node=${node} />`}<//>`;
}
