// SPDX-License-Identifier: Apache-2.0
// How a browser reaches the gateway that the page itself came from.

// The page may lie below a path (a proxy's), so addresses are relative.
const base = new URL('v1/', document.baseURI).pathname;

// { status, ok, text }. Throws where nobody answers.
export async function request(method, path, { body, headers, signal } = {}) {
  const response = await fetch(base + path, { method, body, headers, signal, cache: 'no-store' });
  return { status: response.status, ok: response.ok, text: await response.text() };
}

// onEvent(name, data) for each event, onState('live' or 'away'), until what it returns is called.
export function stream(path, names, onEvent, onState) {
  let source = null, timer = null;
  const open = () => {
    source = new EventSource(base + path);
    for (const name of names) source.addEventListener(name, e => onEvent(name, e.data));
    source.onopen = () => onState('live');
    source.onerror = () => {
      onState('away');
      // The browser tries again by itself, but for an answer that is none.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 2000);
    };
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

// f() when the colours have changed; returns what ends it.
export function onScheme(f) {
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', f);
  return () => scheme.removeEventListener('change', f);
}
