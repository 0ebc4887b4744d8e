// SPDX-License-Identifier: Apache-2.0
// The trials of a search: its best, its rungs, what each parameter did, and all of them.
import { html, useMemo } from '../vendor/htm/standalone.module.js';
import { address, Loaded, onJob, setQuery, Table, useLive } from '../parts.js';
import { Chart } from '../chart.js';
import { isEnded } from '../sentence.js';
import { number, plural, shown } from '../text.js';
import { digits, linesOf, usePoints } from './job-training.js';

// {"net": {"width": 8}} as {"net.width": 8}.
function flat(params, prefix = '') {
  return Object.entries(params).flatMap(([name, value]) => (value && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length
    ? flat(value, `${prefix}${name}.`) : [[prefix + name, value]]));
}
const text = value => (typeof value === 'string' ? value : typeof value === 'number' ? digits(value) : JSON.stringify(value));

// ---- where a value stands: 0 to 1 ----

// Numbers by size (by orders of it where they span three), everything else in the order of its words.
function scaleOf(values) {
  const numbers = values.filter(v => typeof v === 'number');
  if (numbers.length && numbers.length === values.length) {
    const orders = Math.min(...numbers) > 0 && Math.max(...numbers) / Math.min(...numbers) >= 1000, to = orders ? Math.log10 : x => x;
    const low = to(Math.min(...numbers)), high = to(Math.max(...numbers));
    return { at: v => (high > low ? (to(v) - low) / (high - low) : .5), low: digits(Math.min(...numbers)), high: digits(Math.max(...numbers)), orders };
  }
  const words = [...new Set(values.map(text))].sort();
  return { at: v => (words.length > 1 ? words.indexOf(text(v)) / (words.length - 1) : .5), low: words[0] ?? '', high: words.at(-1) ?? '' };
}

const WIDE = 220, HIGH = 120, EDGE = 8, SHOWN = 1000;

// How good trials were (upwards is better), by one parameter.
function Scatter({ name, points, scale, best }) {
  return html`<figure class="chart"><figcaption>${shown(name)}${scale.orders ? ' (by orders)' : ''}</figcaption>
    <svg viewBox="0 0 ${WIDE} ${HIGH}" role="img" aria-label=${`How good trials were, by ${name}`}>
      ${points.map(p => html`<circle class=${p.trial === best ? 'best' : 'point'} cx=${EDGE + scale.at(p.value) * (WIDE - 2 * EDGE)} cy=${HIGH - EDGE - p.good * (HIGH - 2 * EDGE)} r=${p.trial === best ? 4 : 2.5}><title>${`trial ${p.trial}: ${text(p.value)}, ${digits(p.best)}`}</title></circle>`)}
    </svg><p class="fine ends"><span>${shown(scale.low)}</span><span>${shown(scale.high)}</span></p></figure>`;
}

const TALL = 220, STEP = 160;

// A line for each trial through all its parameters, to how good it was. One that a trial has not ends the line, which goes on behind it.
function Parallel({ search, there, plots }) {
  const axes = [...plots.map(p => ({ name: p.name, low: p.scale.low, high: p.scale.high, at: t => (t.values.has(p.name) ? p.scale.at(t.values.get(p.name)) : null) })),
    { name: search.metric, low: 'worst', high: 'best', at: t => t.good }];
  const width = 2 * EDGE + STEP * (axes.length - 1) + 100, x = i => EDGE + 40 + i * STEP, y = v => TALL - 24 - v * (TALL - 48);
  const pathOf = t => axes.map((a, i) => [i, a.at(t)]).map(([i, v], k, all) => (v == null ? '' : `${k > 0 && all[k - 1][1] != null ? 'L' : 'M'}${x(i)} ${y(v)}`)).join('');
  const lines = [...there].sort((a, b) => (a.trial === search.best) - (b.trial === search.best));
  return html`<figure class="chart parallel"><figcaption>All of them beside each other</figcaption><div class="wide"><svg viewBox="0 0 ${width} ${TALL}" width=${width} role="img" aria-label="A line for each trial through its parameters, to how good it was">
    ${lines.map(t => html`<path class=${t.trial === search.best ? 'best' : 'line'} stroke-opacity=${t.trial === search.best ? 1 : 0.15 + 0.6 * t.good} d=${pathOf(t)}><title>${`trial ${t.trial}: ${digits(t.best)}`}</title></path>`)}
    ${axes.map((a, i) => html`<g><line x1=${x(i)} x2=${x(i)} y1=${y(0)} y2=${y(1)} /><text x=${x(i)} y="12" text-anchor="middle">${shown(a.name)}</text><text x=${x(i) + 4} y=${y(1) + 4}>${shown(a.high)}</text><text x=${x(i) + 4} y=${y(0)}>${shown(a.low)}</text></g>`)}
  </svg></div></figure>`;
}

// With how good it was, the best is 1: places and not sizes, since a few that are far off would press all others together.
function judged(trials, smaller) {
  const there = trials.filter(t => t.best != null && t.state !== 'invalid').slice(-SHOWN), last = Math.max(there.length - 1, 1);
  const places = new Map(there.map(t => t.best).sort((a, b) => (smaller ? b - a : a - b)).map((best, i) => [best, i / last]));
  return there.map(t => ({ trial: t.trial, best: t.best, good: places.get(t.best), values: new Map(flat(t.params)) }));
}

function Parameters({ search, trials }) {
  const there = judged(trials, search.smaller), names = [...new Set(there.flatMap(t => [...t.values.keys()]))].sort();
  const plots = names.map(name => {
    const points = there.filter(t => t.values.has(name)).map(t => ({ ...t, value: t.values.get(name) }));
    return { name, points, scale: scaleOf(points.map(p => p.value)) };
  }).filter(p => p.scale.low !== p.scale.high);
  if (there.length < 2 || !plots.length) return null;
  return html`<h2>What the parameters did</h2><p class="dim">Upwards is better: places by the best ${shown(search.metric)} of each trial.</p>
    <section class="charts">${plots.map(p => html`<${Scatter} ...${p} best=${search.best} />`)}</section>
    ${plots.length > 1 && html`<${Parallel} search=${search} there=${there} plots=${plots} />`}`;
}

const CURVES = 30;

// The curves of the best trials, as far as they came; the best of all stands out.
function Curves({ search, trials, ended }) {
  const chosen = trials.filter(t => t.best != null).sort((a, b) => (search.smaller ? a.best - b.best : b.best - a.best)).slice(0, CURVES);
  const key = chosen.map(t => t.job).sort((a, b) => a - b).join();
  const jobs = useMemo(() => chosen.sort((a, b) => a.trial - b.trial).map(t => ({ job: t.job, trial: t.trial, ended: t.state !== 'runs', strong: t.trial === search.best })), [key, search.best]);
  const found = usePoints(jobs, search.metric, ended ? 0 : 10000);
  const { steps, series } = useMemo(() => linesOf(found, jobs, j => `trial ${j.trial}`), [found, jobs]);
  if (!series.length) return null;
  return html`<h2>How they went</h2><div class="charts"><${Chart} title=${`${shown(search.metric)} by step${chosen.length === CURVES ? `, the best ${CURVES}` : ''}`} times=${steps} series=${series} show=${digits} steps /></div>`;
}

const columns = (job, metric, none) => [
  { key: 'trial', title: 'Trial', right: true, cell: t => (t.job ? html`<a href=${address(['job', t.job])} title=${`element ${t.trial} of job ${job.job}`}>${t.trial}</a>` : t.trial) },
  { key: 'state', title: 'State' },
  { key: 'rungs', title: 'Rungs', right: true },
  { key: 'step', title: 'Step', right: true, cell: t => (t.metric == null && !t.step ? '–' : number(t.step)) },
  { key: 'metric', title: metric, right: true, value: t => t.metric ?? none, cell: t => digits(t.metric) },
  { key: 'best', title: 'Best', right: true, value: t => t.best ?? none, cell: t => html`<strong>${digits(t.best)}</strong>` },
  { key: 'bestStep', title: 'at', right: true, cell: t => (t.best == null ? '–' : number(t.bestStep)) },
  { key: 'params', title: 'Parameters', wide: true, value: null, cell: t => flat(t.params).map(([name, value]) => `${shown(name)}=${shown(text(value))}`).join('  ') },
];

export function Trials({ job, query }) {
  const answer = useLive(`jobs/${job.job}/trials`, { on: onJob(job.job), every: 5000 });
  const s = job.search, rung = g => html`<div class="amount"><h3>${s.rungs.some(r => r.bracket) ? `Bracket ${g.bracket}, rung ${g.rung}` : `Rung ${g.rung}`}, at ${number(g.units)}</h3>
    <p class="big">${g.trials} <span class="dim">came; ${g.expected} expected</span></p></div>`;
  return html`<p>${shown(s.method)}: ${plural(s.made, 'trial')} of ${number(s.trials)} made${s.invalid ? `, ${s.invalid} invalid` : ''}.
      ${s.best != null && html` The best is <strong>trial ${s.best}</strong>: ${shown(s.metric)} ${digits(s.bestMetric)} at ${number(s.bestStep)}.`}</p>
    <section class="cards">${s.rungs.map(rung)}</section>
    <${Loaded} answer=${answer}>${({ trials }) => html`${s.metric && html`<${Curves} search=${s} trials=${trials} ended=${isEnded(job.state)} />`}<${Parameters} search=${s} trials=${trials} />
      <h2>Trials</h2><${Table} label="Trials" columns=${columns(job, s.metric ? shown(s.metric) : 'Metric', s.smaller ? Infinity : -Infinity)} rows=${trials} sort=${query.sort || (s.smaller ? 'best' : '-best')} onSort=${sort => setQuery({ sort })} keyOf=${t => t.trial} empty="No trial was made yet." />
      ${trials.length < s.made && html`<p class="dim">The first ${number(trials.length)}; <code>primusctl search show ${job.job}</code> shows all.</p>`}`}<//>`;
}
