// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { address, Amount, Empty, Loaded, onJobs, onNodes, State, useLive } from '../parts.js';
import { readOnly } from '../transport.js';
import { bytes, number, plural, shown } from '../text.js';
import { JobTable } from './jobs.js';

function Capacity({ nodes }) {
  const sum = key => nodes.filter(n => n.state !== 'LOST').reduce((a, n) => a + n[key], 0);
  return html`<section class="cards" aria-label="Capacity">
    <${Amount} name="Processors" all=${sum('cpus')} held=${sum('cpus') - sum('cpusFree')} show=${number} />
    <${Amount} name="Memory" all=${sum('memory')} held=${sum('memory') - sum('memoryFree')} show=${bytes} />
    <${Amount} name="GPUs" all=${sum('gpus')} held=${sum('gpus') - sum('gpusFree')} show=${number} /></section>`;
}

const ailing = n => n.state !== 'READY' || n.reason || n.conditions;

function Hosts({ nodes }) {
  const bad = nodes.filter(ailing);
  if (bad.length === 0) return html`<p class="fine">${nodes.length === 1 ? 'The host is' : `All ${number(nodes.length)} hosts are`} ready, and nothing is held.</p>`;
  return html`<ul class="plain">${bad.slice(0, 20).map(n => html`<li key=${n.name}><a href=${address(['host', n.name])}>${n.name}</a> <${State} state=${n.state} /> ${shown([n.reason, n.conditions].filter(Boolean).join('; '))}</li>`)}</ul>
    ${bad.length > 20 && html`<p><a href="#/hosts">${plural(bad.length - 20, 'more host')}</a></p>`}`;
}

const MOST = 1000;

function counts(jobs) {
  const states = {};
  for (const j of jobs) states[j.state] = (states[j.state] || 0) + 1;
  return Object.entries(states);
}

export function Overview() {
  const nodes = useLive('nodes', { on: onNodes, every: 15000 }), jobs = useLive(`jobs?limit=${MOST}`, { on: onJobs, every: 15000 });
  return html`<h1>Overview</h1>
    <${Loaded} answer=${nodes}>${({ nodes: list }) => (list.length === 0
    ? html`<${Empty}>No host has joined yet. On a host: <code>primusctl token create</code> here, then <code>primus-join</code> there.<//>`
    : html`<${Capacity} nodes=${list} />`)}<//>
    <h2>Jobs that have not ended</h2>
    <${Loaded} answer=${jobs}>${({ jobs: list }) => html`
      ${list.length > 0 && html`<p class="counts">${counts(list).map(([s, n]) => html`<a href=${address(['jobs'], { state: s })}><${State} state=${s} /> ${number(n)}</a>`)}</p>`}
      <${JobTable} jobs=${list.slice(0, 15)} empty=${html`Nothing runs and nothing waits. ${readOnly ? 'Look' : html`<a href="#/submit">Submit a job</a>, or look`} at <a href="#/jobs?all=1">those that have ended</a>.`} />
      ${list.length > 15 && html`<p><a href="#/jobs">All ${number(list.length)}${list.length === MOST ? ' and more' : ''}</a></p>`}`}<//>
    <h2>Hosts</h2>
    <${Loaded} answer=${nodes}>${({ nodes: list }) => html`<${Hosts} nodes=${list} />`}<//>`;
}
