// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useState } from '../vendor/htm/standalone.module.js';
import { ProblemBox } from '../parts.js';
import { asProblem, get, send } from '../transport.js';
import { shown } from '../text.js';

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

// A job as JSON; from another one with changes: #/submit?from=418.
export function Submit({ query }) {
  const [text, setText] = useState(query.from ? '' : FIRST), [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const [warnings, setWarnings] = useState(null);
  useEffect(() => {
    if (query.from) get(`jobs/${encodeURIComponent(query.from)}/config`).then(c => setText(JSON.stringify(c, null, 2) + '\n'), setProblem);
  }, [query.from]);
  let broken = null;
  if (text.trim()) try { JSON.parse(text); } catch (e) { broken = e.message; }
  const submit = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const result = await send('POST', 'jobs', text);
      if (result.warnings.length) setWarnings(result);
      else location.hash = `#/job/${result.job}`;
    } catch (e) {
      setProblem(asProblem(e));
    }
    setBusy(false);
  };
  if (warnings) return html`<h1>Job ${warnings.job} was submitted</h1><ul>${warnings.warnings.map(w => html`<li>${shown(w)}</li>`)}</ul><p><a href=${`#/job/${warnings.job}`}>To the job</a></p>`;
  return html`<h1>Submit a job${query.from ? `, again with changes (from job ${query.from})` : ''}</h1>
    <p class="dim">JSON, as <code>primusctl submit</code> takes it. Files cannot be sent along from here: commands run in the job's own directory, or in one that all hosts share.</p>
    <${Editor} text=${text} onText=${setText} problem=${problem} />
    <${ProblemBox} problem=${problem} />
    <p class="buttons"><button class="primary" disabled=${busy || !!broken || !text.trim()} onClick=${submit}>Submit</button>${broken && html`<span class="dim" role="status">not JSON yet: ${shown(broken)}</span>`}</p>`;
}
