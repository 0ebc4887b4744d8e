// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useMemo, useState } from '../vendor/htm/standalone.module.js';
import { ProblemBox } from '../parts.js';
import { asProblem, get, send } from '../transport.js';
import { plural, shown } from '../text.js';
import { Hosts, Place, Suggestions } from './why.js';

const FIRST = `{
  "name": "hello",
  "role": [
    { "roleName": "worker", "num": 2, "vcores": 1, "memoryMb": 256, "command": "echo I am rank $PRIMUS_RANK; sleep 30" }
  ]
}
`;

function Editor({ text, onText, problem }) {
  const lines = text.split('\n').length;
  return html`<div class="editor"><pre aria-hidden="true">${Array.from({ length: lines }, (_, i) => html`<span class=${problem?.line === i + 1 ? 'wrong' : ''}>${i + 1}${'\n'}</span>`)}</pre>
    <textarea aria-label="The job's configuration, JSON" spellcheck="false" rows=${Math.max(12, lines)} value=${text} onInput=${e => onText(e.target.value)}></textarea></div>`;
}

const to = query => (Object.keys(query).length ? `jobs?${new URLSearchParams(query)}` : 'jobs');
const PAUSE = 600; // after the last key that was pressed

// What masterd says of the job as it stands there: { text, trial } or { text, problem }.
function useTrial(text, query) {
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    if (!text.trim()) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setAnswer({ text, trial: await send('POST', to({ dryRun: 1, ...query }), text, {}, stop.signal) });
      } catch (e) {
        // What is wrong with it; who cannot be asked now is asked when it is submitted.
        if (!stop.signal.aborted && e.status >= 400 && e.status < 500) setAnswer({ text, problem: e });
      }
    }, PAUSE);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text, query.savepoint]);
  return answer?.text === text ? answer : null;
}

function Trial({ trial }) {
  const first = trial.elements ? `The first of its ${plural(trial.elements, 'element')}` : 'It';
  const later = trial.executors > 0 ? `then, as things are now, it would start: ${plural(trial.executors, 'executor')}` : `then, as things are now: ${trial.summary}`;
  if (trial.ends) return html`<p class="sentence bad" role="status">${first} would end at once: ${shown(trial.reason)}</p>`;
  return html`<section aria-label="What would become of it" role="status">
    <p class="sentence ${trial.starts ? 'ok' : 'warn'}">${trial.starts ? `${first} would start now: ${plural(trial.executors, 'executor')}.`
      : `${first} would wait: ${shown(trial.reason || trial.summary)}${trial.reason ? `; ${shown(later)}` : ''}`}</p>
    ${trial.warnings.length > 0 && html`<ul>${trial.warnings.map(w => html`<li>${shown(w)}</li>`)}</ul>`}
    <${Place} why=${trial}>${trial.victims > 0 && html`<dt>Stopped for it</dt><dd>${plural(trial.victims, 'job')}</dd>`}
      ${trial.savepoint && html`<dt>Goes on from</dt><dd>savepoint ${shown(trial.savepoint)}</dd>`}<//>
    <${Hosts} why=${trial} /><${Suggestions} why=${trial} /></section>`;
}

// The same text that is sent twice is one job.
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, '0')).join('');

// A job as JSON; from another one with changes: #/submit?from=418, and from where its data stood: &savepoint=NAME.
export function Submit({ query }) {
  const [text, setText] = useState(query.from ? '' : FIRST), [refused, setRefused] = useState(null), [busy, setBusy] = useState(false);
  const [warnings, setWarnings] = useState(null);
  const key = useMemo(newKey, [text]);
  const options = query.savepoint ? { savepoint: query.savepoint } : {}, answer = useTrial(text, options);
  useEffect(() => {
    if (query.from) get(`jobs/${encodeURIComponent(query.from)}/config`).then(c => setText(JSON.stringify(c, null, 2) + '\n'), setRefused);
  }, [query.from]);
  const problem = refused || answer?.problem;
  const change = t => { setRefused(null); setText(t); };
  const submit = async () => {
    setBusy(true);
    setRefused(null);
    try {
      const result = await send('POST', to(options), text, { 'Idempotency-Key': key });
      if (result.warnings.length) setWarnings(result);
      else location.hash = `#/job/${result.job}`;
    } catch (e) {
      setRefused(asProblem(e));
    }
    setBusy(false);
  };
  if (warnings) return html`<h1>Job ${warnings.job} was submitted</h1><ul>${warnings.warnings.map(w => html`<li>${shown(w)}</li>`)}</ul><p><a href=${`#/job/${warnings.job}`}>To the job</a></p>`;
  return html`<h1>Submit a job${query.from ? `, again with changes (from job ${query.from})` : ''}</h1>
    ${query.savepoint && html`<p>Its data goes on from savepoint <strong>${shown(query.savepoint)}</strong>.</p>`}
    <p class="dim">JSON, as <code>primusctl submit</code> takes it. Files cannot be sent along from here: commands run in the job's own directory, or in one that all hosts share.</p>
    <${Editor} text=${text} onText=${change} problem=${problem} />
    <${ProblemBox} problem=${problem} />
    <p class="buttons"><button class="primary" disabled=${busy || !text.trim()} onClick=${submit}>Submit</button></p>
    ${!problem && answer?.trial && html`<${Trial} trial=${answer.trial} />`}`;
}
