// SPDX-License-Identifier: Apache-2.0
// The frame: which view an address is, and what stands around it.
import { html, render, useEffect, useErrorBoundary, useState } from './vendor/htm/standalone.module.js';
import { ask, enter, Problem, readOnly } from './transport.js';
import { shown } from './text.js';
import { address, LinkState, parseAddress, ProblemBox, useLive, onNodes } from './parts.js';
import { Overview } from './views/overview.js';
import { Jobs } from './views/jobs.js';
import { Job } from './views/job.js';
import { Hosts } from './views/hosts.js';
import { Host } from './views/host.js';
import { Queue } from './views/queue.js';
import { Usage } from './views/usage.js';
import { Savepoints } from './views/savepoints.js';
import { Checkpoints, Models } from './views/checkpoints.js';
import { Submit } from './views/submit.js';

const VIEWS = {
  '': ['Overview', Overview], jobs: ['Jobs', Jobs], queue: ['Queue', Queue], hosts: ['Hosts', Hosts], usage: ['Usage', Usage], models: ['Models', Models], submit: ['Submit', Submit],
  job: [null, Job], host: [null, Host], savepoints: [null, Savepoints], checkpoints: [null, Checkpoints],
};

function useAddress() {
  const [at, setAt] = useState(parseAddress(location.hash));
  useEffect(() => {
    const changed = () => setAt(parseAddress(location.hash));
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return at;
}

function View({ at, cluster }) {
  const [failure] = useErrorBoundary(e => console.error(e));
  const view = VIEWS[at.path[0] || ''];
  if (failure) return html`<${ProblemBox} problem=${new Problem(0, { detail: `This view failed: ${failure.message}` })} />`;
  if (!view) return html`<h1>There is no such page</h1><p><a href="#/">To the overview</a></p>`;
  return html`<${view[1]} args=${at.path.slice(1)} query=${at.query} cluster=${cluster} />`;
}

function App() {
  const at = useAddress();
  const cluster = useLive('cluster', { on: onNodes, every: 30000 });
  const here = at.path[0] || '';
  const title = VIEWS[here]?.[0] || (here === 'job' ? `Job ${at.path[1]}` : here === 'host' ? `Host ${at.path[1]}` : ({ savepoints: 'Savepoints', checkpoints: 'Checkpoints' })[here] || 'Primus');
  useEffect(() => { document.title = `${title} – Primus`; }, [title]);
  const current = { job: 'jobs', host: 'hosts', savepoints: 'jobs', checkpoints: 'models' }[here] || here;
  return html`<header><a class="brand" href="#/">Primus</a>
    <nav aria-label="Primus">${Object.entries(VIEWS).filter(([key, v]) => v[0] && !(readOnly && ['submit', 'models'].includes(key))).map(([key, v]) =>
    html`<a href=${address(key ? [key] : [])} aria-current=${key === current ? 'page' : undefined}>${v[0]}</a>`)}</nav>
    <span class="space"></span>${readOnly && html`<span class="dim">to look at</span>`}<${LinkState} /></header>
    ${cluster.data?.banner && html`<p class="sentence warn banner" role="status">${shown(cluster.data.banner)}</p>`}
    <main>${cluster.problem?.status === 401 ? html`<h1>This page is closed</h1><p>${cluster.problem.message}</p>`
    : html`<${View} key=${at.path.slice(0, 2).join('/')} at=${at} cluster=${cluster.data} />`}</main>`;
}

try {
  await enter();
  await ask();
} catch (e) {
  console.warn(e.message);
}
const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
