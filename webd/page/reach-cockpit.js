// SPDX-License-Identifier: Apache-2.0
// How the page reaches the gateway in Cockpit's frame: by cockpit-bridge, which runs as the person who has logged in, and that person's own
// socket. Cockpit's administrative access is never asked for: rights are masterd's and polkit's to give.
const { cockpit } = window;
const RETRY_MS = 2000;

const http = cockpit.user().then(user => cockpit.http(`/run/user/${user.id}/primus/web.sock`));

// Nothing has to be enabled: who opens the page has a manager, which has the socket's unit.
let starting = null;
const start = () => {
  starting ||= Promise.resolve(cockpit.spawn(['systemctl', '--user', 'start', 'primus-web.socket'], { err: 'message' })).finally(() => { starting = null; });
  return starting;
};

// cockpit's promises give two values, and it changes the options that it is given, so it is wrapped: { status, ok, text }, or what cockpit says
// is wrong.
const once = (client, options, signal) => new Promise((resolve, reject) => {
  let status = 0;
  const asked = client.request({ ...options }).response(code => { status = code; });
  asked.then(text => resolve({ status, ok: true, text }), (e, text) => (e.status || status ? resolve({ status: e.status || status, ok: false, text: text || '' }) : reject(e)));
  signal?.addEventListener('abort', () => asked.close('cancelled'));
});

export async function request(method, path, { body = '', headers, signal } = {}) {
  const options = { method, path: `/v1/${path}`, body, headers: { Host: 'primus', ...headers } }, client = await http;
  try {
    return await once(client, options, signal);
  } catch (e) {
    if (signal?.aborted || e.problem !== 'not-found') throw e;
    await start();
    return once(client, options, signal);
  }
}

// Server-sent events (WHATWG HTML, 9.2.6), as far as the gateway writes them: lines end with \n, data has one.
function parser(onEvent) {
  let rest = '', event = {};
  return chunk => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const colon = line.indexOf(':');
      if (!line) {
        onEvent(event);
        event = {};
      } else if (colon > 0) {
        event[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '');
      }
    }
  };
}

export function stream(path, names, onEvent, onState) {
  let last = null, over = false, asked = null;
  const open = async () => {
    const client = await http, headers = { Host: 'primus', ...(last && { 'Last-Event-ID': last }) };
    const again = () => {
      if (over) return;
      onState('away');
      setTimeout(open, RETRY_MS);
    };
    if (over) return;
    const parse = parser(({ id, event, data }) => {
      last = id ?? last;
      if (names.includes(event)) onEvent(event, data);
    });
    asked = client.request({ method: 'GET', path: `/v1/${path}`, body: '', headers }).response(status => { if (status === 200) onState('live'); }).stream(parse);
    asked.then(again, e => (e.problem === 'not-found' && !over ? start().then(open, again) : again()));
  };
  open();
  return () => {
    over = true;
    asked?.close('cancelled');
  };
}

// Cockpit's own switch: "light", "dark", or as the browser has it.
const dark = [...document.querySelectorAll('link[media]')].find(link => link.media.includes('dark'));
const schemes = new Set();
function dress() {
  const style = localStorage.getItem('shell:style') || 'auto';
  dark.media = { light: 'not all', dark: 'all' }[style] || '(prefers-color-scheme: dark)';
  document.documentElement.style.colorScheme = { light: 'light', dark: 'dark' }[style] || '';
  for (const f of [...schemes]) f();
}
dress();
window.addEventListener('storage', e => { if (e.key === 'shell:style') dress(); });
window.addEventListener('cockpit-style', dress);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', dress);

export function onScheme(f) {
  schemes.add(f);
  return () => schemes.delete(f);
}
