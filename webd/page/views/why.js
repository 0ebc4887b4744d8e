// SPDX-License-Identifier: Apache-2.0
import { html } from '../vendor/htm/standalone.module.js';
import { Time } from '../parts.js';
import { plural, shown } from '../text.js';

// Of a job that waits, or would: what masterd says of its place and of the hosts. More: further rows of the facts.
export function Place({ why, children }) {
  return html`<dl class="facts"><dt>Pool</dt><dd>${shown(why.pool)}</dd><dt>Priority</dt><dd>${why.priority}</dd>
    ${why.position > 0 && html`<dt>Place in the queue</dt><dd>${why.position}</dd>`}
    ${why.startsBy > 0 && html`<dt>Starts by</dt><dd><${Time} at=${why.startsBy} /></dd>`}${children}</dl>`;
}

export function Hosts({ why }) {
  return why.hosts.length > 0 && html`<h2>Hosts</h2><ul class="plain">${why.hosts.map(h => html`<li>${plural(h.hosts, 'host')}: ${shown(h.text)}</li>`)}</ul>`;
}

// What would make it start now; each is given to button, which may have something to say to it.
export function Suggestions({ why, button }) {
  return why.suggestions.length > 0 && html`<h2>It would start now with</h2><ul class="plain">${why.suggestions.map(s => html`<li class="buttons"><code>${shown(s)}</code>${button?.(s)}</li>`)}</ul>`;
}
