// SPDX-License-Identifier: Apache-2.0
// How the page reaches the gateway: get, send and one stream of events, which all open pages of a browser share.

// The page may lie below a path (a proxy's), so addresses are relative.
const base = new URL('v1/', document.baseURI).pathname;

// What went wrong, as RFC 9457 has it.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || `${status}`);
    this.status = status;
    this.title = body.title || '';
    this.line = body.line;
    this.column = body.column;
  }
}

// Of whatever was thrown.
export const asProblem = e => (e instanceof Problem ? e : new Problem(0, { detail: String(e) }));

async function answer(promise) {
  let response;
  try {
    response = await promise;
  } catch {
    throw new Problem(0, { detail: 'The gateway does not answer.' });
  }
  const text = await response.text();
  if (!response.ok) {
    let body = {};
    try { body = JSON.parse(text); } catch { /* not one of ours */ }
    throw new Problem(response.status, body);
  }
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => answer(fetch(base + path, { cache: 'no-store', ...options }));

export const send = (method, path, body = {}, headers = {}, signal = null) => answer(fetch(base + path, {
  method,
  signal,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { 'Content-Type': 'application/json', 'Primus-Request': '1', ...headers },
}));

// Whether this is the door at which nothing is changed: what would change something is not shown then.
export let readOnly = false;

export async function ask() {
  readOnly = (await get('me')).readOnly;
}

// The token of the address that "primusctl web" printed: it opens the door once, and then leaves the address.
export async function enter() {
  const match = location.hash.match(/^#token=([0-9a-f]{64})$/);
  if (!match) return;
  history.replaceState(null, '', location.pathname + location.search + '#/');
  await send('POST', 'session', { token: match[1] });
}

// ---- events ----

const listeners = new Set();
const channel = 'BroadcastChannel' in window ? new BroadcastChannel('primus') : null;
let source = null;
let state = 'connecting'; // connecting, live, away

function tell(event) {
  for (const f of [...listeners]) f(event);
}

function hear(event) {
  if (event.kind === 'state') state = event.state;
  tell(event);
}

function say(event) {
  hear(event);
  channel?.postMessage(event);
}

function open() {
  source = new EventSource(base + 'events');
  const changed = kind => e => {
    const body = JSON.parse(e.data || '{}');
    say({ kind, jobs: body.jobs || [], nodes: body.nodes || [] });
  };
  source.addEventListener('changes', changed('changes'));
  source.addEventListener('reset', changed('reset'));
  source.onopen = () => say({ kind: 'state', state: 'live' });
  source.onerror = () => {
    say({ kind: 'state', state: 'away' });
    // The browser tries again by itself, but for an answer that is none.
    if (source.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(open, 2000);
    }
  };
}

// One page of the browser holds the stream, and another takes over when it closes: browsers open six connections to a
// host, over all pages.
function lead() {
  if (!navigator.locks) { open(); return; }
  navigator.locks.request('primus-events', () => { open(); return new Promise(() => {}); });
}

let leading = false;
export function listen(f) {
  listeners.add(f);
  if (!leading) {
    leading = true;
    if (channel) channel.onmessage = e => hear(e.data);
    lead();
    // Another page of this browser has it already, maybe.
    get('cluster').then(() => { if (state === 'connecting') hear({ kind: 'state', state: 'live' }); }, () => {});
  }
  return () => listeners.delete(f);
}

export const linkState = () => state;
