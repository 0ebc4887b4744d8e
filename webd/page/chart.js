// SPDX-License-Identifier: Apache-2.0
// A plot of numbers over time. What is not known is a gap. For who does not see it, a table of some of its points.
import { html, useEffect, useRef } from './vendor/htm/standalone.module.js';
import uPlot from './vendor/uplot/uPlot.esm.js';
import { number, time } from './text.js';
import { onScheme } from './transport.js';

const COLORS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5', '--series-6'];
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);
const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// series: [{ label, points }], points as long as times (seconds since 1970); least: the axis reaches up to there at least;
// binary: its steps are powers of two. steps: times are steps of a training; the axis of values is as they are, orders: by orders
// of size. A series that is strong stands out.
export function Chart({ title, times, series, show, least, binary, sync, steps, orders }) {
  const box = useRef(null), plot = useRef(null);
  const shape = series.map(s => s.label + (s.strong ? '!' : '')).join('\n');
  const when = steps ? number : t => time(t * 1e6), byOrders = orders && series.every(s => s.points.every(v => v == null || v > 0));
  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      const axis = { stroke: color('--dim'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line'), width: 1 } };
      plot.current = new uPlot({
        width: box.current.clientWidth || 300, height: 160, cursor: { sync: { key: sync } }, legend: { show: series.length > 1 && series.length <= 8 },
        axes: [{ ...axis, space: 70, size: 34, values: (_, v) => v.map(when) }, { ...axis, size: 72, ...(binary && { incrs: POWERS }), values: (_, v) => v.map(show) }],
        scales: steps ? { x: { time: false }, ...(byOrders && { y: { distr: 3 } }) }
          : { y: { range: (_, min, max) => [Math.min(0, min ?? 0), Math.max(least, (max ?? 0) * 1.05)] } },
        series: [{ label: steps ? 'Step' : 'Time', value: (_, t) => (t == null ? '–' : when(t)) }, ...series.map((s, i) => ({ label: s.label, stroke: color(COLORS[i % COLORS.length]), width: s.strong ? 3 : 1.5, spanGaps: !!steps, dash: s.dash, points: { show: s.points.filter(x => x != null).length < 3 }, value: (_, v) => (v == null ? '–' : show(v)) }))],
      }, [times, ...series.map(s => s.points)], box.current);
    };
    make();
    const colours = onScheme(make), size = new ResizeObserver(() => plot.current?.setSize({ width: box.current?.clientWidth || 300, height: 160 }));
    size.observe(box.current);
    return () => {
      colours();
      size.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, sync, byOrders]);
  // What one has zoomed into stays when new points come.
  useEffect(() => {
    const p = plot.current;
    if (!p) return;
    // Both are null until the first drawing.
    const { min, max } = p.scales.x, zoomed = min != null && (min > p.data[0][0] || max < p.data[0][p.data[0].length - 1]);
    p.setData([times, ...series.map(s => s.points)], !zoomed);
    if (zoomed) p.redraw();
  }, [times, series]);
  const step = Math.max(1, Math.floor(times.length / 12));
  return html`<figure class="chart" aria-label=${title}><figcaption>${title}</figcaption><div ref=${box} aria-hidden="true"></div>
    <table class="unseen"><caption>${title}</caption><thead><tr><th>${steps ? 'Step' : 'Time'}</th>${series.map(s => html`<th>${s.label}</th>`)}</tr></thead>
      <tbody>${times.filter((_, i) => i % step === 0).map((t, i) => html`<tr><td>${when(t)}</td>${series.map(s => html`<td>${s.points[i * step] == null ? 'not known' : show(s.points[i * step])}</td>`)}</tr>`)}</tbody></table></figure>`;
}
