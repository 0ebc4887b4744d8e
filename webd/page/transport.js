// SPDX-License-Identifier: Apache-2.0
// What the page asks the gateway: get, send and one stream of events, which all open pages of a browser share.
// By which way stands in reach.js and reach-cockpit.js.
const { request, stream, onScheme } = await import(window.cockpit ? './reach-cockpit.js' : './reach.js');
export { onScheme };

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

async function answer(method, path, options) {
  let response;
  try {
    response = await request(method, path, options);
  } catch (e) {
    console.warn(e.message);
    throw new Problem(0, { detail: 'The gateway does not answer.' });
  }
  const { status, ok, text } = response;
  if (!ok) {
    let body = {};
    try { body = JSON.parse(text); } catch { /* not one of ours */ }
    throw new Problem(status, body);
  }
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => answer('GET', path, options);

export const send = (method, path, body = {}, headers = {}, signal = undefined) => answer(method, path, {
  signal,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { 'Content-Type': 'application/json', 'Primus-Request': '1', ...headers },
});

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
  return stream('events', ['changes', 'reset'], (kind, data) => {
    const body = JSON.parse(data || '{}');
    say({ kind, jobs: body.jobs || [], nodes: body.nodes || [] });
  }, now => say({ kind: 'state', state: now }));
}

const hidden = () => new Promise(resolve => {
  const look = () => {
    if (document.visibilityState !== 'hidden') return;
    document.removeEventListener('visibilitychange', look);
    resolve();
  };
  document.addEventListener('visibilitychange', look);
  look();
});

// One page of the browser that can be seen holds the stream, and another takes over when it is closed or hidden: browsers open
// six connections to a host, over all pages. While all are hidden there is none; who is seen again asks for everything.
async function lead() {
  const hold = async () => {
    if (document.visibilityState === 'hidden') return;
    const close = open();
    await hidden();
    close();
  };
  if (navigator.locks) await navigator.locks.request('primus-events', hold);
  else await hold();
  if (document.visibilityState === 'hidden') document.addEventListener('visibilitychange', lead, { once: true });
  else lead();
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
