// SPDX-License-Identifier: Apache-2.0
// Inside an executor that runs: what its threads do now, and how long what it does takes, counted in its host's kernel for as
// long as this is open.
import { html, useEffect, useRef, useState } from '../vendor/htm/standalone.module.js';
import { ProblemBox, setQuery, Table } from '../parts.js';
import { asProblem, send } from '../transport.js';
import { bytes, duration, number, shown } from '../text.js';

// ---- threads ----

const columns = [
  { key: 'tid', title: 'Thread', right: true },
  { key: 'name', title: 'Name', cell: t => shown(t.name) },
  { key: 'waits', title: 'Waits for' },
  { key: 'call', title: 'In the system call', cell: t => shown(t.call) },
  { key: 'kernel', title: 'In the kernel', wide: true, cell: t => shown(t.kernel) },
];

function Stacks({ job, role, index }) {
  const [answer, setAnswer] = useState(null), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  useEffect(() => { setAnswer(null); setProblem(null); }, [role, index]);
  const look = async () => {
    setBusy(true);
    try {
      setAnswer(await send('POST', `jobs/${job.job}/stacks`, { role, index }));
      setProblem(null);
    } catch (e) {
      setProblem(asProblem(e));
    }
    setBusy(false);
  };
  const programs = answer?.info.programs || [];
  return html`<h2>Stacks</h2><p class="buttons"><button class="primary" disabled=${busy} onClick=${look}>${answer ? 'Look again' : 'Look now'}</button>
      <span class="dim">Where its threads are; programs that catch the job's signal for it write their own stacks.</span></p>
    <${ProblemBox} problem=${problem} />
    ${programs.map(p => html`<pre class="stack" aria-label=${`Process ${p.pid}`}>${shown(p.text)}</pre>`)}
    ${answer && html`<${Table} label="Threads" columns=${columns} rows=${answer.threads} keyOf=${t => t.tid} empty="No thread was seen." />
      ${answer.info.note && html`<p class="dim">${shown(answer.info.note)}</p>`}`}`;
}

// ---- histograms ----

const LEASE = 5e6, EVERY = 2000;

// What was counted between two answers, by name: { count, time, bytes, slots }; slot i is from 2^i ns up.
function difference(now, first) {
  const before = new Map((first || []).map(h => [h[0], h]));
  return now.map(([name, count, time, size, slots]) => {
    const b = before.get(name);
    return { name, count: count - (b ? b[1] : 0), time: time - (b ? b[2] : 0), size: size - (b ? b[3] : 0), slots: slots.map((n, i) => n - (b?.[4][i] || 0)) };
  }).filter(h => h.count > 0);
}

const nanoseconds = n => (n < 1e3 ? `${n} ns` : n < 1e6 ? `${Math.round(n / 1e3)} µs` : duration(n / 1e3));

function Histogram({ h }) {
  const from = h.slots.findIndex(n => n > 0), to = h.slots.findLastIndex(n => n > 0), most = Math.max(...h.slots);
  const slots = h.slots.slice(from, to + 1), width = 460, height = 18;
  const at = i => nanoseconds(2 ** (from + i));
  return html`<figure class="chart" aria-label=${`${h.name}: ${number(h.count)} in ${nanoseconds(h.time)}`}>
    <figcaption><strong>${shown(h.name)}</strong> ${number(h.count)} times, ${nanoseconds(h.time)} in all${h.size ? `, ${bytes(h.size)}` : ''}</figcaption>
    <svg viewBox="0 0 ${width} ${slots.length * height}" role="img" aria-label=${`How long each took, from ${at(0)} on`}>${slots.map((n, i) => html`
      <text x="76" y=${i * height + 13} text-anchor="end">${at(i)}</text><rect class="busy" x="84" y=${i * height + 2} height=${height - 4} rx="2" width=${Math.max(n > 0 ? 2 : 0, (width - 180) * n / most)} />
      ${n > 0 && html`<text x=${92 + (width - 180) * n / most} y=${i * height + 13}>${number(n)}</text>`}`)}</svg></figure>`;
}

function Trace({ job, role, index, kind }) {
  const [histograms, setHistograms] = useState(null), [problem, setProblem] = useState(null), first = useRef(null);
  useEffect(() => {
    let over = false, timer = null;
    first.current = null;
    setHistograms(null);
    async function ask() {
      try {
        const answer = await send('POST', `jobs/${job.job}/trace`, { role, index, kind, lease: LEASE });
        if (over) return;
        first.current ||= answer.histograms;
        setHistograms(difference(answer.histograms, first.current));
        setProblem(null);
        timer = setTimeout(ask, EVERY);
      } catch (e) {
        if (!over) setProblem(asProblem(e));
      }
    }
    if (kind) ask();
    // Nothing of it stays on the host when nobody looks.
    return () => {
      over = true;
      clearTimeout(timer);
      if (kind) send('POST', `jobs/${job.job}/trace`, { role, index, kind, lease: 0 }).catch(() => {});
    };
  }, [job.job, role, index, kind]);
  return html`<${ProblemBox} problem=${problem} />${kind && !problem && (histograms?.length ? html`<div class="charts">${histograms.map(h => html`<${Histogram} key=${h.name} h=${h} />`)}</div>`
    : html`<p class="empty" role="status">Counting …</p>`)}`;
}

export function Inside({ job, query }) {
  const running = job.executors.filter(e => e.state === 'RUNNING');
  const chosen = running.find(e => e.role === query.role && String(e.index) === query.index) || running[0];
  if (!chosen) return html`<p class="empty">No executor runs.</p>`;
  const choose = e => { const [role, index] = e.target.value.split('/'); setQuery({ role, index }); };
  const kind = ['io', 'runqueue'].includes(query.kind) ? query.kind : '';
  return html`<form class="filters" onSubmit=${e => e.preventDefault()}><label>Executor <select onChange=${choose}>${running.slice(0, 2000).map(e => html`
      <option value=${`${e.role}/${e.index}`} selected=${e === chosen}>${shown(e.role)}/${e.index} on ${e.node}</option>`)}</select></label></form>
    <${Stacks} job=${job} role=${chosen.role} index=${chosen.index} />
    <h2>How long it takes</h2>
    <p class="buttons">${[['', 'Off'], ['io', 'Reads, writes, sends'], ['runqueue', 'Waits for a processor']].map(([k, t]) => html`<button aria-pressed=${kind === k} onClick=${() => setQuery({ kind: k })}>${t}</button>`)}</p>
    <${Trace} job=${job} role=${chosen.role} index=${chosen.index} kind=${kind} />`;
}
