// SPDX-License-Identifier: Apache-2.0
// Numbers, times and foreign texts as people read them. Pure.

const SECOND = 1e6;

// "3 min 20 s", the two largest units, of microseconds.
export function duration(usec) {
  if (usec == null || !isFinite(usec)) return '–';
  const units = [['d', 86400 * SECOND], ['h', 3600 * SECOND], ['min', 60 * SECOND], ['s', SECOND]];
  if (usec < SECOND) return usec <= 0 ? '0 s' : `${Math.round(usec / 1000)} ms`;
  const parts = [];
  for (const [name, size] of units) {
    const n = Math.floor(usec / size);
    if (n > 0 && parts.length < 2) parts.push(`${n} ${name}`);
    else if (parts.length) break;
    usec -= n * size;
  }
  return parts.join(' ');
}

export function bytes(n) {
  if (n == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

export function number(n) {
  if (n == null || !isFinite(n)) return '–';
  if (Number.isInteger(n)) return n.toLocaleString('en');
  return n >= 100 ? n.toFixed(0) : n >= 1 ? n.toFixed(1) : n.toFixed(2);
}

export const percent = x => (x == null || !isFinite(x) ? '–' : `${Math.round(100 * x)} %`);

const two = n => String(n).padStart(2, '0');
// "14:02:11" of today, "Nov 27 14:02" of other days; of microseconds since 1970.
export function time(usec, now = Date.now()) {
  if (!usec) return '–';
  const d = new Date(usec / 1000), today = new Date(now);
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (d.toDateString() === today.toDateString()) return `${clock}:${two(d.getSeconds())}`;
  const month = d.toLocaleString('en', { month: 'short' });
  return d.getFullYear() === today.getFullYear() ? `${month} ${d.getDate()} ${clock}` : `${month} ${d.getDate()} ${d.getFullYear()}`;
}

export const iso = usec => (usec ? new Date(usec / 1000).toISOString() : '');

// What users wrote: control characters and those that turn the direction of text are shown, not obeyed.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
export const shown = s => String(s ?? '').replace(HIDDEN, c => `‹${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}›`);

export const plural = (n, word, more = `${word}s`) => `${number(n)} ${n === 1 ? word : more}`;

// ---- logs ----

const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

function apply(codes, style) {
  for (const c of codes.length ? codes : [0]) {
    if (c === 0) style = { color: '', bold: false };
    else if (c === 1) style = { ...style, bold: true };
    else if (c === 22) style = { ...style, bold: false };
    else if (c >= 30 && c <= 37) style = { ...style, color: COLORS[c - 30] };
    else if (c >= 90 && c <= 97) style = { ...style, color: COLORS[c - 90] };
    else if (c === 39) style = { ...style, color: '' };
  }
  return style;
}

// A line with the escapes of ECMA-48 as [{text, className}]; of what a bar of progress wrote over itself with '\r' the last.
export function pieces(line) {
  const body = line.endsWith('\r') ? line.slice(0, -1) : line;
  const last = body.slice(body.lastIndexOf('\r') + 1);
  const result = [];
  let style = { color: '', bold: false }, at = 0;
  const put = text => {
    if (text) result.push({ text: shown(text), className: [style.color && `ansi-${style.color}`, style.bold && 'ansi-bold'].filter(Boolean).join(' ') });
  };
  for (const m of last.matchAll(/\x1b\[([0-9;]{0,32})([A-Za-z])/g)) {
    put(last.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[2] === 'm') style = apply(m[1].split(';').filter(Boolean).map(Number), style);
  }
  put(last.slice(at));
  return result;
}
