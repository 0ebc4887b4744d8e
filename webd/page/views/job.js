// SPDX-License-Identifier: Apache-2.0
// A job: its sentence, what can be done to it, and a tab for each way to look at it.
import { html } from '../vendor/htm/standalone.module.js';
import { Action, address, Bar, Loaded, More, onJob, parsed, setQuery, Since, State, Table, Tabs, Time, useLive } from '../parts.js';
import { readOnly, send } from '../transport.js';
import { bound, isEnded, sentence } from '../sentence.js';
import { bytes, duration, percent, plural, shown } from '../text.js';
import { Data } from './job-data.js';
import { Logs } from './job-logs.js';
import { Metrics } from './job-metrics.js';
import { Timeline } from './job-timeline.js';
import { Inside } from './job-inside.js';
import { Config, Events } from './job-record.js';
import { OfJob as Savepoints } from './savepoints.js';
import { OfJob as Checkpoints } from './checkpoints.js';
import { Training } from './job-training.js';
import { Trials } from './job-trials.js';
import { Hosts, Place, Suggestions } from './why.js';

const TABS = [['', 'Executors'], ['trials', 'Trials'], ['data', 'Data'], ['savepoints', 'Savepoints'], ['training', 'Training'], ['checkpoints', 'Checkpoints'], ['metrics', 'Metrics'], ['timeline', 'Timeline'], ['logs', 'Logs'], ['inside', 'Inside'], ['events', 'Events'], ['config', 'Configuration'], ['why', 'Why']];

// ---- what can be done ----

function scaleFields(job) {
  return job.roles.map((r, i) => ({ name: `role${i}`, label: r.name, type: 'number', min: 0, value: r.wanted }));
}

function Actions({ job }) {
  const post = (what, body, headers) => send('POST', `jobs/${job.job}/${what}`, body, headers), ended = isEnded(job.state);
  const match = { 'If-Match': `"${job.version}"` };
  const trials = job.search && !['grid', 'list', 'external'].includes(job.search.method) && html`<${Action} label="More trials" title="More trials for this search" text="Those that there were stay, and the new ones are held against them."
    fields=${[{ name: 'trials', label: 'Altogether', type: 'number', min: job.search.trials + 1, value: 2 * job.search.trials, required: true }]} run=${v => post('rerun', { continue: v.trials })} />`;
  const again = html`<a class="button" href=${address(['submit'], { from: job.job })}>Again, with changes</a>${trials}`;
  if (ended) {
    return html`<div class="buttons">${again}<${Action} label="Rerun" title="Run it again" run=${() => post('rerun', {})} done=${r => { location.hash = address(['job', r.job]); }} />
      <${Action} label="Delete" danger title="Delete its record" text="Its events, logs and figures are gone then." run=${() => send('DELETE', `jobs/${job.job}`)} done=${() => { location.hash = '#/jobs'; }} /></div>`;
  }
  return html`<div class="buttons">${again}
    ${job.state === 'SUSPENDED' ? html`<${Action} label="Resume" title="Let it go on" run=${() => post('resume', {})} />`
    : html`<${Action} label="Suspend" title="Hold it" text="data: it gets no more data. freeze: its processes stand still and keep what they hold. stop: they are stopped, and it waits in the queue until it is resumed."
        fields=${[{ name: 'mode', label: 'How', value: 'data' }]} run=${v => post('suspend', { mode: v.mode })} />`}
    ${!job.array && html`<${Action} label="Scale" title="Other numbers of executors" fields=${scaleFields(job)}
      run=${v => post('scale', { roles: Object.fromEntries(job.roles.map((r, i) => [r.name, v[`role${i}`] ?? r.wanted])) }, match)} />`}
    <${Action} label="Change" title="Change the configuration" text="One key and its value, as they would stand in the configuration." fields=${[{ name: 'key', label: 'Key', value: 'priority' }, { name: 'value', label: 'Value' }]}
      run=${v => send('PATCH', `jobs/${job.job}`, { [v.key]: v.value }, match)} />
    ${job.data && html`<${Action} label="Savepoint" title="Write down where its data stands" fields=${[{ name: 'name', label: 'Name', hint: 'empty: the job’s number and a count' }]} run=${v => post('savepoints', { name: v.name })} />`}
    <${Action} label="Requeue" title="Put it back into the queue" text="It is stopped and waits again; acknowledged data stays done." fields=${[{ name: 'reason', label: 'Reason' }]} run=${v => post('requeue', { reason: v.reason })} />
    <${More}>
      <${Action} label="Restart executors" title="Start executors again" text="They are stopped and started again, as far as the job's failover has it." fields=${[{ name: 'role', label: 'Role', hint: 'empty: all' }, { name: 'index', label: 'Index', type: 'number', min: 0, hint: 'empty: all of the role' },
    { name: 'batch', label: 'So many at a time', type: 'number', min: 1, hint: 'empty: all at once' }]} run=${v => post('restart', { role: v.role, index: v.index ?? -1, batch: v.batch ?? 0 })} />
      <${Action} label="Move off a host" title="Move its executors off a host" text="They go on elsewhere, and the job keeps off that host." fields=${[{ name: 'node', label: 'Host', required: true }]} run=${v => post('replace', { node: v.node })} />
      <${Action} label="Let onto a host" title="Let it onto a host again" text="From which it was moved, or which it was kept off since it failed there." fields=${[{ name: 'node', label: 'Host', required: true }]} run=${v => post('allow', { node: v.node })} />
      <${Action} label="Add a role" title="Add a role" text="One member of role of the configuration, JSON." fields=${[{ name: 'role', label: 'Role', type: 'textarea', required: true, value: '{ "roleName": "eval", "num": 1, "vcores": 1, "memoryMb": 256, "command": "" }' }]}
        run=${v => post('roles', { role: parsed(v.role) }, match)} />
      <${Action} label="Remove a role" danger title="Remove a role" text="Its executors are stopped." fields=${[{ name: 'name', label: 'Role', required: true }]} run=${v => post('roles/remove', { name: v.name }, match)} />
      <${Action} label="End as a success" danger title="It is good enough" text="It is stopped, and counts as succeeded." fields=${[{ name: 'reason', label: 'Reason' }]} run=${v => post('succeed', { reason: v.reason })} /><//>
    <${Action} label="Kill" danger title=${`Kill job ${job.job}`} fields=${[{ name: 'reason', label: 'Reason' }]} run=${v => post('kill', { reason: v.reason })} /></div>`;
}

// ---- executors ----

function Bound({ executor }) {
  const b = bound([executor]);
  if (!b) return html`<span class="dim">–</span>`;
  return html`<span class="pair"><${Bar} share=${b.data} tone="warn" label=${`waits for data ${percent(b.data)} of the time`} /> ${percent(b.data)}</span>`;
}

const columns = job => [
  { key: 'rank', title: 'Rank', right: true },
  { key: 'role', title: 'Executor', value: e => `${e.role}/${e.index}`, cell: e => html`<a href=${address(['job', job.job, 'logs'], { role: e.role, index: e.index })}>${shown(e.role)}/${e.index}</a>` },
  { key: 'state', title: 'State', cell: e => html`<${State} state=${e.state} />` },
  { key: 'node', title: 'Host', cell: e => e.node && html`<a href=${address(['host', e.node])}>${e.node}</a>` },
  { key: 'attempt', title: 'Attempt', right: true },
  { key: 'time', title: 'Time', right: true, value: e => (e.ended || 8e15) - (e.started || 8e15), cell: e => html`<${Since} from=${e.started} to=${e.ended} />` },
  { key: 'memoryPeak', title: 'Memory, most', right: true, value: e => e.memoryPeak || 0, cell: e => bytes(e.memoryPeak) },
  { key: 'cpuUsec', title: 'Processor time', right: true, value: e => e.cpuUsec || 0, cell: e => duration(e.cpuUsec) },
  ...(job.data ? [{ key: 'bound', title: 'Waits for data', value: e => bound([e])?.data || 0, cell: e => html`<${Bound} executor=${e} />` }] : []),
  { key: 'result', title: 'How it ended, or why it waits', wide: true, cell: e => shown(e.result) },
];

const SHOWN = 200;

function Executors({ job, query }) {
  const list = job.executors.filter(e => (!query.role || e.role === query.role) && (!query.only || !['RUNNING', 'SUCCEEDED'].includes(e.state)));
  const first = query.sort ? list : [...list].sort((a, b) => a.rank - b.rank);
  const n = Number(query.show) || SHOWN;
  return html`<section class="cards">${job.roles.map(r => html`<div class="amount"><h3>${shown(r.name)}</h3>
      <p class="big">${r.running} <span class="dim">of ${r.wanted} run</span></p>
      <p class="dim">${[r.pending && `${r.pending} wait`, r.succeeded && `${r.succeeded} succeeded`, r.failed && `${r.failed} failed`, r.killed && `${r.killed} killed`, r.lost && `${r.lost} lost`, r.restarts && plural(r.restarts, 'restart')].filter(Boolean).join(', ') || ' '}</p></div>`)}</section>
    ${job.executors.length > 20 && html`<form class="filters" onSubmit=${e => e.preventDefault()}>
      <label>Role <select onChange=${e => setQuery({ role: e.target.value })}><option value="">all</option>${job.roles.map(r => html`<option value=${r.name} selected=${r.name === query.role}>${shown(r.name)}</option>`)}</select></label>
      <label class="check"><input type="checkbox" checked=${!!query.only} onChange=${e => setQuery({ only: e.target.checked ? 1 : null })} /> only those that neither run nor have succeeded</label></form>`}
    <${Table} label="Executors" columns=${columns(job)} rows=${query.sort ? list.slice(0, Math.max(n, 0)) : first.slice(0, n)} sort=${query.sort} onSort=${sort => setQuery({ sort })} keyOf=${e => `${e.role}/${e.index}/${e.attempt}`} empty="No executor is like that." />
    ${list.length > n && html`<p><a href=${address(['job', job.job], { ...query, show: list.length })}>${plural(list.length - n, 'more executor')}</a></p>`}`;
}

// Of an array, which has no executors of its own; of an element, whose it is.
function ArrayOf({ job }) {
  const a = job.array;
  if (a.of) return html`<p>${a.index === undefined ? 'Searcher' : `Element ${a.index}`} of <a href=${address(['job', a.of])}>job ${a.of}</a>.</p>`;
  const states = ['waiting', 'running', 'succeeded', 'failed', 'killed'].filter(s => a[s]).map(s => `${a[s]} ${s}`);
  return html`<p>${plural(a.size, 'element')}: ${states.join(', ')}. <a href=${address(['jobs'], { array: job.job, all: 1 })}>All of them</a>${a.searcher ? html`, <a href=${address(['job', a.searcher])}>its searcher</a>` : ''}</p>`;
}

// Of a job that was submitted from inside another one.
function ChildOf({ job }) {
  return html`<p>Submitted from inside <a href=${address(['job', job.parent])}>job ${job.parent}</a>${job.withParent && !isEnded(job.state) ? ', with which it ends' : ''}.</p>`;
}

// ---- why ----

// "worker vcores 1 (instead of 1.9)", as a change of the job that is filled in already.
function Suggestion({ job, text }) {
  const match = text.match(/^(\w+) (\w+) (\S+) \(instead of (\S+)\)$/);
  if (!match) return null;
  const [, role, key, value, now] = match;
  return html`<${Action} label="Change it so" title=${`${role}.${key}: ${value}, not ${now}`} text="The job keeps its place in the queue."
    run=${() => send('PATCH', `jobs/${job.job}`, { [`${role}.${key}`]: value }, { 'If-Match': `"${job.version}"` })} />`;
}

function Why({ job, why }) {
  if (!why) return html`<p class="empty">It has ended: its events say how.</p>`;
  return html`<p class="sentence ${why.summary ? 'warn' : 'busy'}">${shown(why.summary || why.reason || 'It waits for nothing.')}</p>
    ${why.comes && html`<p class="sentence busy">${shown(why.comes)}</p>`}
    <${Place} why=${why}>${why.requeues > 0 && html`<dt>Put back</dt><dd>${plural(why.requeues, 'time')}</dd>`}<//>
    <${Hosts} why=${why} />
    <${Suggestions} why=${why} button=${s => html`<${Suggestion} job=${job} text=${s} />`} />`;
}

// ---- all of it ----

function Verdicts({ job }) {
  return (job.verdicts || []).slice(1).map(v => html`<p class="sentence warn" key=${v.kind + v.found}><strong>${v.kind}</strong> ${shown(v.text)}</p>`);
}

function Body({ job, tab, query, why }) {
  switch (tab) {
    case '': return html`<${Executors} job=${job} query=${query} />`;
    case 'trials': return job.search ? html`<${Trials} job=${job} query=${query} />` : html`<p class="empty">It is no search.</p>`;
    case 'data': return html`<${Data} job=${job} />`;
    case 'savepoints': return html`<${Savepoints} job=${job} query=${query} />`;
    case 'checkpoints': return html`<${Checkpoints} job=${job} query=${query} />`;
    case 'training': return html`<${Training} job=${job} query=${query} />`;
    case 'metrics': return html`<${Metrics} job=${job} query=${query} />`;
    case 'timeline': return html`<${Timeline} job=${job} />`;
    case 'logs': return html`<${Logs} job=${job} query=${query} />`;
    case 'inside': return html`<${Inside} job=${job} query=${query} />`;
    case 'events': return html`<${Events} job=${job} />`;
    case 'config': return html`<${Config} job=${job} />`;
    case 'why': return html`<${Why} job=${job} why=${why} />`;
    default: return html`<p class="empty">There is no such part of a job.</p>`;
  }
}

export function Job({ args: [text, tab = ''], query }) {
  const number = Number(text), on = onJob(number);
  const answer = useLive(/^\d+$/.test(text || '') ? `jobs/${number}` : null, { on, every: 5000 });
  const waits = answer.data && !isEnded(answer.data.state);
  const why = useLive(waits ? `jobs/${number}/why` : null, { on, every: 10000, apart: 2000 });
  if (!number) return html`<h1>There is no such job</h1><p><a href="#/jobs">To the jobs</a></p>`;
  return html`<${Loaded} answer=${answer}>${job => {
    const said = sentence(job, why.data);
    return html`<div class="title"><h1><span class="dim">${job.job}</span> ${shown(job.name)}</h1><${State} state=${job.state} /><span class="space"></span><${Actions} job=${job} /></div>
      <p class="sentence ${said.tone}" role="status">${said.text}</p><${Verdicts} job=${job} />
      ${job.firstError && html`<pre class="first-error" aria-label="The first error of an executor">${shown(job.firstError)}</pre>`}
      ${(job.warnings || []).map(w => html`<p class="sentence off">${shown(w)}</p>`)}
      <p class="dim">Submitted <${Time} at=${job.submitted} />${job.started ? html`, runs since <${Time} at=${job.started} />` : ''}${job.ended ? html`, ended <${Time} at=${job.ended} />` : ''}, attempt ${job.attempt}, version ${job.version}</p>
      ${job.array && html`<${ArrayOf} job=${job} />`}
      ${job.parent && html`<${ChildOf} job=${job} />`}
      <${Tabs} base=${['job', number]} tabs=${TABS.filter(([k]) => (k !== 'trials' || job.search) && (k !== 'training' || !job.array) && (!['data', 'savepoints'].includes(k) || job.data) && (k !== 'why' || waits) && (k !== 'inside' || (waits && !readOnly)) && (k !== 'checkpoints' || !readOnly))} current=${tab} />
      <${Body} job=${job} tab=${tab} query=${query} why=${why.data} />`;
  }}<//>`;
}
