// SPDX-License-Identifier: Apache-2.0
// What views are made of: live answers, tables, states, dialogs.
import { html, useEffect, useRef, useState } from './vendor/htm/standalone.module.js';
import { asProblem, get, listen, linkState, Problem, readOnly } from './transport.js';
import { duration, shown, time, iso } from './text.js';

// ---- addresses: #/jobs?state=RUNNING&sort=-submitted ----

export function parseAddress(hash) {
  const [path, query] = hash.replace(/^#/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(query || '')) };
}

export function address(path, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, v]) => v != null && v !== '' && v !== false)).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

// Changes the query of where one is, without another entry in the history.
export function setQuery(changes) {
  const { path, query } = parseAddress(location.hash);
  history.replaceState(null, '', address(path, { ...query, ...changes }));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

// ---- answers that stay right ----

export const visible = () => document.visibilityState === 'visible';

// The answer of GET path, asked again when on(event) says so, at most once in `apart` ms, and every `every` ms while the page is seen.
// null as path: nothing is asked.
export function useLive(path, { on = () => true, every = 0, apart = 700 } = {}) {
  const [result, setResult] = useState({ path: null, data: null, problem: null });
  useEffect(() => {
    if (path == null) return undefined;
    let over = false, running = false, again = false, refused = false, timer = null, last = 0;
    async function ask() {
      timer = null;
      if (running) { again = true; return; }
      running = true;
      last = Date.now();
      try {
        const data = await get(path);
        refused = false;
        if (!over) setResult({ path, data, problem: null });
      } catch (problem) {
        refused = problem.status === 403 || problem.status === 404; // asked again when something changes
        if (!over && problem instanceof Problem) setResult(r => ({ path, data: r.path === path ? r.data : null, problem }));
      }
      running = false;
      if (again && !over) { again = false; soon(); }
    }
    const soon = () => { if (!timer && !over) timer = setTimeout(ask, Math.max(0, last + apart - Date.now())); };
    const stop = listen(event => {
      if (event.kind === 'state' ? event.state === 'live' : event.kind === 'reset' || on(event)) if (visible()) soon();
    });
    const seen = () => { if (visible()) soon(); };
    document.addEventListener('visibilitychange', seen);
    const clock = every ? setInterval(() => { if (visible() && !refused) soon(); }, every) : null;
    ask();
    return () => {
      over = true;
      stop();
      clearTimeout(timer);
      clearInterval(clock);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [path, every]);
  return result.path === path ? result : { data: null, problem: null };
}

export const onJobs = e => e.jobs?.length > 0;
export const onJob = n => e => e.jobs?.includes(n);
export const onNodes = e => e.nodes?.length > 0;

// Every second, for what shows how long something takes.
export function useNow(step = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const clock = setInterval(() => { if (visible()) setNow(Date.now()); }, step);
    return () => clearInterval(clock);
  }, [step]);
  return now;
}

export function LinkState() {
  const [state, setState] = useState(linkState());
  useEffect(() => listen(e => { if (e.kind === 'state') setState(e.state); }), []);
  return html`<span class="link ${state}" role="status" title="Events of masterd">${state === 'live' ? 'live' : state === 'away' ? 'trying again' : 'connecting'}</span>`;
}

// ---- small things ----

const SHAPES = {
  RUNNING: ['busy', '●'], STARTING: ['busy', '◐'], STOPPING: ['off', '◑'], QUEUED: ['warn', '○'], SUBMITTED: ['warn', '○'], SUSPENDED: ['warn', '‖'],
  SUCCEEDED: ['ok', '✓'], FAILED: ['bad', '✕'], KILLED: ['off', '■'], LOST: ['bad', '?'], PENDING: ['warn', '○'], PLACED: ['warn', '◔'],
  READY: ['ok', '●'], SUSPECT: ['warn', '◐'], JOINING: ['off', '○'], CORDONED: ['warn', '‖'], DRAINING: ['warn', '◑'],
};

export function State({ state }) {
  const [tone, shape] = SHAPES[state] || ['off', '·'];
  return html`<span class="state ${tone}"><span aria-hidden="true">${shape}</span> ${state}</span>`;
}

export const Time = ({ at }) => (at ? html`<time datetime=${iso(at)} title=${iso(at)}>${time(at)}</time>` : html`<span class="dim">–</span>`);

export function Since({ from, to }) {
  const now = useNow(to ? 3600e3 : 1000);
  return from ? html`<span>${duration((to || now * 1000) - from)}</span>` : html`<span class="dim">–</span>`;
}

export function Bar({ share, label, tone = 'busy' }) {
  const percent = Math.max(0, Math.min(100, 100 * (share || 0)));
  return html`<span class="bar ${tone}" role="img" aria-label=${label}><span style=${{ width: `${percent}%` }}></span></span>`;
}

// How much of something is held. Nothing where there is none of it.
export function Amount({ name, held, all, show }) {
  if (!all) return null;
  return html`<div class="amount"><h3>${name}</h3><p class="big">${show(held)} <span class="dim">of ${show(all)}</span></p>
    <${Bar} share=${held / all} label=${`${name}: ${show(held)} of ${show(all)} held`} /></div>`;
}

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export function ProblemBox({ problem }) {
  if (!problem) return null;
  return html`<div class="problem" role="alert"><strong>${problem.title || 'That did not work'}</strong> ${shown(problem.message)}</div>`;
}

// What is there already stays while it is asked again; without anything, the problem or a word of patience.
export function Loaded({ answer, children }) {
  if (!answer.data) return answer.problem ? html`<${ProblemBox} problem=${answer.problem} />` : html`<p class="empty" role="status">Loading …</p>`;
  return html`${answer.problem && html`<${ProblemBox} problem=${answer.problem} />`}${children(answer.data)}`;
}

// A file of what the page has, to where the browser puts files.
export function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type })), a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// ---- tables ----

// columns: [{ key, title, value(row) for sorting, cell(row), right, wide }]. sort: "key" or "-key", kept in the address.
export function Table({ columns, rows, sort, onSort, keyOf, label, empty }) {
  if (rows.length === 0) return html`<${Empty}>${empty}<//>`;
  const down = sort?.startsWith('-'), key = sort?.replace(/^-/, '');
  const column = columns.find(c => c.key === key);
  const value = column && (column.value || (row => row[column.key]));
  const sorted = !value ? rows : [...rows].sort((a, b) => {
    const x = value(a), y = value(b);
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x ?? '').localeCompare(String(y ?? ''), 'en', { numeric: true });
    return down ? -order : order;
  });
  const head = c => {
    const state = c.key !== key ? 'none' : down ? 'descending' : 'ascending';
    const name = onSort && c.value !== null
      ? html`<button class="sort" onClick=${() => onSort(c.key === key && !down ? `-${c.key}` : c.key)}>${c.title}<span aria-hidden="true">${c.key === key ? (down ? ' ↓' : ' ↑') : ''}</span></button>`
      : c.title;
    return html`<th scope="col" aria-sort=${state} class=${c.right ? 'right' : ''}>${name}</th>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${columns.map(head)}</tr></thead>
    <tbody>${sorted.map(row => html`<tr key=${keyOf(row)}>${columns.map(c => html`<td class="${c.right ? 'right' : ''} ${c.wide ? 'wide' : ''}">${c.cell ? c.cell(row) : shown(row[c.key])}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

// ---- doing something ----

// A button that asks first, with fields; what masterd refuses stands in the dialog, which stays open.
// fields: [{ name, label, value, type, hint, min, required }]; type: an input's, or textarea. run(values) returns a promise.
export function Action(props) {
  return readOnly ? null : html`<${Doing} ...${props} />`;
}

function Doing({ label, title, text, fields = [], run, danger, done }) {
  const dialog = useRef(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const submit = async event => {
    event.preventDefault();
    const values = Object.fromEntries(fields.map(f => {
      const input = event.target.elements[f.name];
      return [f.name, f.type === 'checkbox' ? input.checked : f.type === 'number' ? (input.value === '' ? null : Number(input.value)) : input.value];
    }));
    setBusy(true);
    try {
      const result = await run(values);
      dialog.current.close();
      done?.(result);
    } catch (e) {
      setProblem(asProblem(e));
    }
    setBusy(false);
  };
  const field = f => html`<label class=${f.type === 'checkbox' ? 'check' : ''}><span>${f.label}</span>
    ${f.type === 'textarea' ? html`<textarea name=${f.name} rows="8" spellcheck="false" required=${f.required}>${f.value ?? ''}</textarea>` : html`<input name=${f.name} type=${f.type || 'text'} defaultValue=${f.value ?? ''} defaultChecked=${f.type === 'checkbox' && f.value} min=${f.min} required=${f.required} maxlength="1000" />`}
    ${f.hint && html`<small>${f.hint}</small>`}</label>`;
  return html`<button class=${danger ? 'danger' : ''} onClick=${() => { setProblem(null); dialog.current.showModal(); }}>${label}</button>
    <dialog ref=${dialog} aria-label=${title}><form method="dialog" onSubmit=${submit}>
      <h2>${title}</h2>${text && html`<p>${text}</p>`}${fields.map(field)}
      <${ProblemBox} problem=${problem} />
      <div class="buttons"><button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="submit" class=${danger ? 'danger primary' : 'primary'} disabled=${busy}>${label}</button></div>
    </form></dialog>`;
}

// What is wanted seldom, behind a word.
export function More({ children }) {
  return readOnly ? null : html`<details class="more"><summary>More</summary><div class="buttons">${children}</div></details>`;
}

// As it stands in a field; what is wrong with it is said in the dialog.
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new Problem(0, { detail: `This is no JSON: ${e.message}` });
  }
}

export function Tabs({ base, tabs, current }) {
  return html`<nav class="tabs" aria-label="Parts of this page">${tabs.map(([key, title]) =>
    html`<a href=${address(key ? [...base, key] : base)} aria-current=${key === current ? 'page' : undefined}>${title}</a>`)}</nav>`;
}
