// SPDX-License-Identifier: Apache-2.0
import { html, useState } from '../vendor/htm/standalone.module.js';
import { address, Loaded, onJobs, ProblemBox, setQuery, Since, State, Table, Time, useLive } from '../parts.js';
import { readOnly, send } from '../transport.js';
import { isEnded } from '../sentence.js';
import { shown } from '../text.js';

const PAGE = 50;
// masterd knows users by number: those of one are looked for among so many.
const LOOKED = 1000;
const STATES = ['SUBMITTED', 'QUEUED', 'STARTING', 'RUNNING', 'SUSPENDED', 'STOPPING', 'SUCCEEDED', 'FAILED', 'KILLED'];

const numberOf = j => (j.array ? `${j.array}[${j.index ?? 'searcher'}]` : j.elements ? `${j.job}[]` : `${j.job}`);

const columns = [
  { key: 'job', title: 'Job', right: true, cell: j => html`<a href=${address(['job', j.job])}>${numberOf(j)}</a>` },
  { key: 'name', title: 'Name', cell: j => html`<a href=${address(['job', j.job])}>${shown(j.name)}</a>` },
  { key: 'state', title: 'State', cell: j => html`<${State} state=${j.state} />` },
  { key: 'user', title: 'User' },
  { key: 'pool', title: 'Pool', cell: j => shown(j.pool) },
  { key: 'running', title: 'Executors', right: true, cell: j => `${j.running}/${j.wanted}` },
  { key: 'submitted', title: 'Submitted', cell: j => html`<${Time} at=${j.submitted} />` },
  { key: 'time', title: 'Time', right: true, value: j => (j.ended || 8e15) - (j.started || j.submitted), cell: j => html`<${Since} from=${j.started || j.submitted} to=${j.ended} />` },
  { key: 'reason', title: 'What holds it up', wide: true, cell: j => shown(j.reason) },
];

export function JobTable({ jobs, sort, onSort, empty, chosen, onChoose }) {
  const choose = onChoose && {
    key: 'chosen', title: '', value: null,
    cell: j => html`<input type="checkbox" aria-label=${`Choose job ${j.job}`} checked=${chosen.has(j.job)} disabled=${isEnded(j.state)} onChange=${e => onChoose(j.job, e.target.checked)} />`,
  };
  return html`<${Table} label="Jobs" columns=${choose ? [choose, ...columns] : columns} rows=${jobs} sort=${sort} onSort=${onSort} keyOf=${j => j.job} empty=${empty} />`;
}

// Kills what was chosen, one after the other; what was refused is said, and the rest goes on.
function KillChosen({ chosen, onDone }) {
  const [sure, setSure] = useState(false), [problem, setProblem] = useState(null);
  if (chosen.size === 0) return null;
  const run = async () => {
    setSure(false);
    for (const job of chosen) {
      try {
        await send('POST', `jobs/${job}/kill`, { reason: 'from the page' });
      } catch (e) {
        setProblem(e);
      }
    }
    onDone();
  };
  return html`<p class="buttons">${sure ? html`<span>Kill ${chosen.size === 1 ? 'this job' : `these ${chosen.size} jobs`}?</span>
    <button onClick=${() => setSure(false)}>No</button><button class="danger primary" onClick=${run}>Kill</button>`
    : html`<button class="danger" onClick=${() => setSure(true)}>Kill ${chosen.size} chosen</button>`}</p><${ProblemBox} problem=${problem} />`;
}

export function Jobs({ query }) {
  const [chosen, setChosen] = useState(new Set());
  const asked = new URLSearchParams({ limit: query.user ? LOOKED : PAGE + 1 });
  for (const key of ['state', 'name', 'before', 'array']) if (query[key]) asked.set(key, query[key]);
  if (query.all || (query.state && isEnded(query.state))) asked.set('all', 'true');
  const answer = useLive(`jobs?${asked}`, { on: onJobs, every: 30000 });
  const choose = (job, on) => setChosen(old => { const set = new Set(old); if (on) set.add(job); else set.delete(job); return set; });
  // { rows: of this page, older: the last of them where there are more }
  const page = list => {
    const mine = query.user ? list.filter(j => j.user === query.user) : list;
    const more = mine.length > PAGE || (query.user && list.length === LOOKED);
    return { rows: mine.slice(0, PAGE), older: more && (mine.length > PAGE ? mine[PAGE - 1] : list[list.length - 1]).job };
  };
  return html`<h1>Jobs</h1>
    <form class="filters" role="search" onSubmit=${e => e.preventDefault()}>
      <label>Name <input value=${query.name || ''} maxlength="100" onChange=${e => setQuery({ name: e.target.value, before: null })} /></label>
      <label>User <input value=${query.user || ''} maxlength="64" onChange=${e => setQuery({ user: e.target.value })} /></label>
      <label>State <select value=${query.state || ''} onChange=${e => setQuery({ state: e.target.value, before: null })}>
        <option value="">any</option>${STATES.map(s => html`<option value=${s} selected=${s === query.state}>${s}</option>`)}</select></label>
      <label class="check"><input type="checkbox" checked=${!!query.all} onChange=${e => setQuery({ all: e.target.checked ? 1 : null, before: null })} /> also those that have ended</label>
    </form>
    <${Loaded} answer=${answer}>${({ jobs }) => {
    const { rows, older } = page(jobs);
    return html`
      <${KillChosen} chosen=${chosen} onDone=${() => setChosen(new Set())} />
      <${JobTable} jobs=${rows} sort=${query.sort} onSort=${sort => setQuery({ sort })} chosen=${chosen} onChoose=${readOnly ? null : choose} empty="No job is like that." />
      <p class="buttons">${query.before && html`<a class="button" href=${address(['jobs'], { ...query, before: null })}>Newest</a>`}
        ${older && html`<a class="button" href=${address(['jobs'], { ...query, before: older })}>Older</a>`}</p>`;
  }}<//>`;
}
