// SPDX-License-Identifier: Apache-2.0
// The log of an executor, live: each answer says where the next one begins, and waits for the first new line.
import { html, useEffect, useMemo, useRef, useState } from '../vendor/htm/standalone.module.js';
import { ProblemBox, save, setQuery } from '../parts.js';
import { get, Problem } from '../transport.js';
import { pieces, plural, shown } from '../text.js';

const KEPT = 5000; // lines in the page
const TAIL = 262144;
const WAIT = 15e6;

function useLog(job, role, index, attempt) {
  const [log, setLog] = useState({ lines: [], dropped: 0, end: false, problem: null });
  useEffect(() => {
    const stop = new AbortController();
    let lines = [], rest = '', dropped = 0;
    const add = text => {
      const parts = (rest + text).split('\n');
      rest = parts.pop();
      lines = lines.concat(parts);
      if (lines.length > KEPT) { dropped += lines.length - KEPT; lines = lines.slice(-KEPT); }
    };
    async function follow() {
      let cursor = '';
      for (;;) {
        const asked = new URLSearchParams({ role, index, attempt, cursor, wait: cursor ? WAIT : 0, ...(cursor ? {} : { tail: TAIL }) });
        try {
          const answer = await get(`jobs/${job}/log?${asked}`, { signal: stop.signal });
          if (stop.signal.aborted) return;
          add(answer.text);
          setLog({ lines: rest ? [...lines, rest] : lines, dropped, end: answer.end, problem: null });
          if (answer.end) return;
          cursor = answer.next;
        } catch (problem) {
          if (stop.signal.aborted) return;
          setLog(l => ({ ...l, problem }));
          if (problem instanceof Problem && problem.status >= 400 && problem.status < 500 && problem.status !== 429) return;
          await new Promise(f => setTimeout(f, 2000));
        }
      }
    }
    setLog({ lines: [], dropped: 0, end: false, problem: null });
    follow();
    return () => stop.abort();
  }, [job, role, index, attempt]);
  return log;
}

const Line = ({ text }) => html`<div>${pieces(text).map(p => (p.className ? html`<span class=${p.className}>${p.text}</span>` : p.text))}${'\n'}</div>`;

export function Logs({ job, query }) {
  const executors = job.executors, first = executors.find(e => e.state === 'FAILED') || executors[0];
  const role = query.role || first?.role || '', index = query.index ?? String(first?.index ?? 0);
  // The latest one as it is known, so that the log of the next attempt follows by itself.
  const attempt = query.attempt || String(executors.find(e => e.role === role && String(e.index) === index)?.attempt || 0);
  const log = useLog(job.job, role, index, attempt), box = useRef(null);
  const [follow, setFollow] = useState(true), [wrap, setWrap] = useState(true);
  const q = query.q || '';
  const lines = useMemo(() => (q ? log.lines.filter(l => l.toLowerCase().includes(q.toLowerCase())) : log.lines), [log.lines, q]);
  useEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines, follow]);
  if (!role) return html`<p class="empty">No executor has begun.</p>`;
  const choose = e => { const [r, i] = e.target.value.split('/'); setQuery({ role: r, index: i, attempt: null }); };
  return html`<form class="filters" onSubmit=${e => e.preventDefault()}>
      <label>Executor <select onChange=${choose}>${executors.slice(0, 2000).map(e => html`<option value=${`${e.role}/${e.index}`} selected=${e.role === role && String(e.index) === index}>${shown(e.role)}/${e.index} ${e.state}</option>`)}</select></label>
      <label>Search <input type="search" value=${q} maxlength="200" onInput=${e => setQuery({ q: e.target.value })} /></label>
      <label class="check"><input type="checkbox" checked=${follow} onChange=${e => setFollow(e.target.checked)} /> follow</label>
      <label class="check"><input type="checkbox" checked=${wrap} onChange=${e => setWrap(e.target.checked)} /> wrap</label>
      <button onClick=${() => save(`job-${job.job}-${role}-${index}.log`, 'text/plain', `${log.lines.join('\n')}\n`)}>Save</button></form>
    <${ProblemBox} problem=${log.problem} />
    ${log.dropped > 0 && html`<p class="dim">${plural(log.dropped, 'line')} before these: <code>primusctl logs ${job.job}</code></p>`}
    <div class="log ${wrap ? 'wrap' : ''}" ref=${box} tabindex="0" role="log" aria-live="off" aria-label=${`Log of ${role}/${index}`}>${lines.map((l, i) => html`<${Line} key=${i} text=${l} />`)}
      ${lines.length === 0 && html`<span class="dim">${q ? 'No line has that.' : log.end ? 'It printed nothing.' : 'Nothing yet.'}</span>`}</div>
    <p class="dim" role="status">${log.end ? 'It has ended; this is all.' : 'Live.'}</p>`;
}
