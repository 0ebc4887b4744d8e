// SPDX-License-Identifier: Apache-2.0
// What trainers have saved: of one job, or all that there is; and the models that some of it has become.
import { html } from '../vendor/htm/standalone.module.js';
import { Action, address, Loaded, setQuery, Table, Time, useLive } from '../parts.js';
import { readOnly, send } from '../transport.js';
import { bytes, number, plural, shown } from '../text.js';

const PAGE = 1000; // rows of one answer

const value = (metric, x) => (metric ? `${shown(metric)} ${x == null ? 'no number' : Number(x.toPrecision(6))}` : '–');
// A number of its own for the same metric: the best first, whichever way is better.
const rank = c => (c.value == null ? null : c.smaller ? c.value : -c.value);

function Buttons({ row: c }) {
  return html`<span class="buttons">
    <${Action} label=${c.pinned ? 'Unpin' : 'Pin'} title=${`${c.pinned ? 'Unpin' : 'Pin'} checkpoint ${c.checkpoint}`} text=${c.pinned ? 'A policy may have it removed again.' : 'It stays, whatever a policy says.'}
      run=${() => send('POST', 'checkpoints/pin', { checkpoint: c.checkpoint, pinned: !c.pinned })} />
    <${Action} label="Make it a model" title=${`Checkpoint ${c.checkpoint} as a model`} text="The next version of that name; jobs begin from it with primusctl submit --from=NAME."
      fields=${[{ name: 'name', label: 'Name', required: true }, { name: 'note', label: 'Note' }, { name: 'labels', label: 'Labels', hint: 'words with spaces between' }]}
      run=${v => send('POST', 'models', { checkpoint: c.checkpoint, name: v.name, ...(v.note && { note: v.note }), ...(v.labels && { labels: v.labels }) })} done=${() => { location.hash = address(['models']); }} /></span>`;
}

const COLUMNS = [
  { key: 'checkpoint', title: 'Number', right: true },
  { key: 'trial', title: 'Trial', right: true, cell: c => (c.trial == null ? '–' : c.trial) },
  { key: 'step', title: 'Step', right: true, cell: c => number(c.step) },
  { key: 'metric', title: 'Metric', right: true, value: rank, cell: c => value(c.metric, c.value) },
  { key: 'saved', title: 'Saved', cell: c => html`<${Time} at=${c.saved} />` },
  { key: 'bytes', title: 'Size', right: true, cell: c => html`<span title=${plural(c.files, 'file')}>${bytes(c.bytes)}</span>` },
  { key: 'path', title: 'Where', wide: true, cell: c => html`${shown(c.path)}${c.host && html` <span class="dim">from ${shown(c.host)}</span>`}` },
  { key: 'kept', title: '', value: null, cell: c => [c.pinned && 'pinned', c.marked && 'is being removed'].filter(Boolean).join(', ') },
];
const BUTTONS = { key: 'do', title: '', value: null, cell: c => html`<${Buttons} row=${c} />` };
const JOB = { key: 'job', title: 'Job', right: true, cell: c => html`<a href=${address(['job', c.job])}>${c.job}</a>` };

// A checkpoint is saved by a trainer, which changes nothing that the stream of events tells.
const useCheckpoints = job => useLive(`checkpoints?job=${job}`, { every: 5000 });

function List({ rows, columns, sort }) {
  return html`<${Table} label="Checkpoints" columns=${readOnly ? columns : [...columns, BUTTONS]} rows=${rows} sort=${sort || '-saved'} onSort=${to => setQuery({ sort: to })} keyOf=${c => c.checkpoint}
      empty="None is known. Those that primus.checkpoints saves are." />
    ${rows.length === PAGE && html`<p class="dim">The first ${number(PAGE)}; primusctl checkpoints list shows all.</p>`}`;
}

const count = (what, v) => (v == null ? {} : { [what]: v });

export function OfJob({ job, query }) {
  const whose = job.array?.of || job.job; // an element's are listed with those of its array
  const answer = useCheckpoints(whose);
  const collect = v => send('POST', 'checkpoints/collect', { job: whose, ...count('best', v.best), ...count('trialBest', v.trialBest), ...count('trialLatest', v.trialLatest) });
  return html`<${Loaded} answer=${answer}>${({ checkpoints }) => html`
    <${List} rows=${job.array?.of ? checkpoints.filter(c => c.run === job.job) : checkpoints} columns=${COLUMNS} sort=${query.sort} />
    ${checkpoints.length > 0 && html`<div class="buttons"><${Action} label="Clean up" danger title=${`Clean up the checkpoints of job ${whose}`}
        text="How many stay; the rest is removed by a job of yours. What is pinned, a model's, or of what still runs stays as well."
        fields=${[{ name: 'best', label: 'The best of all', type: 'number', min: 0, value: 1 }, { name: 'trialBest', label: 'The best of each trial', type: 'number', min: 0, value: 0 },
    { name: 'trialLatest', label: 'The latest of each trial', type: 'number', min: 0, value: 1 }]} run=${collect} /></div>`}
    <p><a href=${address(['checkpoints'])}>Checkpoints of all jobs</a>, <a href=${address(['models'])}>models</a></p>`}<//>`;
}

export function Checkpoints({ query }) {
  const answer = useCheckpoints(0);
  return html`<h1>Checkpoints</h1><${Loaded} answer=${answer}>${({ checkpoints }) => html`<${List} rows=${checkpoints} columns=${[COLUMNS[0], JOB, ...COLUMNS.slice(1)]} sort=${query.sort} />`}<//>`;
}

// ---- models ----

function Edit({ row: m }) {
  const edit = change => send('POST', 'models/edit', { name: m.name, version: m.version, ...change }), what = `${m.name}@${m.version}`;
  return html`<span class="buttons"><${Action} label="Edit" title=${`Model ${what}`} fields=${[{ name: 'note', label: 'Note', value: m.note }, { name: 'labels', label: 'Labels', value: m.labels }]} run=${v => edit({ note: v.note, labels: v.labels })} />
    <${Action} label=${m.archived ? 'Unarchive' : 'Archive'} title=${`${m.archived ? 'Unarchive' : 'Archive'} ${what}`} text=${m.archived ? 'It keeps its checkpoint again.' : 'It does not keep its checkpoint any more.'} run=${() => edit({ archived: !m.archived })} /></span>`;
}

const MODELS = [
  { key: 'name', title: 'Model', value: m => `${m.name}@${m.version}`, cell: m => html`<strong>${shown(m.name)}</strong>@${m.version}${m.archived && html` <span class="dim">archived</span>`}${m.gone && html` <span class="dim">its checkpoint is gone</span>`}` },
  { key: 'metric', title: 'Metric', right: true, value: m => m.value, cell: m => value(m.metric, m.value) },
  { key: 'step', title: 'Step', right: true, cell: m => number(m.step) },
  { key: 'registered', title: 'Registered', cell: m => html`<${Time} at=${m.registered} />` },
  { key: 'labels', title: 'Labels', cell: m => shown(m.labels) },
  { key: 'note', title: 'Note', wide: true, cell: m => shown(m.note) },
  { key: 'checkpoint', title: 'Checkpoint', right: true, cell: m => html`<span title=${shown(m.path)}>${m.checkpoint}</span>` },
];
const EDIT = { key: 'do', title: '', value: null, cell: m => html`<${Edit} row=${m} />` };

export function Models({ query }) {
  const answer = useLive('models', { every: 5000 });
  const { archived } = query;
  return html`<div class="title"><h1>Models</h1><span class="space"></span><a href=${address(['checkpoints'])}>Checkpoints</a></div>
    <form class="filters"><label class="check"><input type="checkbox" checked=${!!archived} onChange=${e => setQuery({ archived: e.target.checked ? 1 : null })} /> archived ones too</label></form>
    <${Loaded} answer=${answer}>${({ models }) => html`
    <${Table} label="Models" columns=${readOnly ? MODELS : [...MODELS, EDIT]} rows=${models.filter(m => archived || !m.archived)} sort=${query.sort || 'name'} onSort=${to => setQuery({ sort: to })} keyOf=${m => `${m.name}@${m.version}`}
      empty="There is none. A job's checkpoint becomes one under Checkpoints, or with primusctl model register." />`}<//>`;
}
