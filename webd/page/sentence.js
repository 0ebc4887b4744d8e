// SPDX-License-Identifier: Apache-2.0
// What a job does now and what holds it up, in one sentence. Pure. In this order: what is wrong with its executors, why it
// waits, its slowest source of data, how far it is.
import { duration, number, percent, plural, shown } from './text.js';

const ENDED = { SUCCEEDED: 'ok', FAILED: 'bad', KILLED: 'off' };
export const isEnded = state => state in ENDED;

function progress(data) {
  if (!data || !data.tasks) return '';
  const share = data.bytes > 0 && data.scanned ? data.acked / data.bytes : data.done / data.tasks;
  const slowest = data.sources.filter(s => s.etaUsec != null && s.done < s.tasks).sort((a, b) => b.etaUsec - a.etaUsec)[0];
  const left = slowest ? `, about ${duration(slowest.etaUsec)} left` : '';
  const name = slowest && data.sources.length > 1 ? `; the slowest source is ${shown(slowest.name)}` : '';
  return `${percent(share)} of its data is through${left}${name}`;
}

function running(job) {
  const roles = job.roles.filter(r => r.wanted > 0);
  const some = roles.filter(r => r.running < r.wanted && r.pending > 0);
  if (some.length) return `Starting: ${some.map(r => `${r.running} of ${r.wanted} ${shown(r.name)}`).join(', ')} run`;
  const n = roles.reduce((sum, r) => sum + r.running, 0);
  return `${plural(n, 'executor')} run${n === 1 ? 's' : ''}`;
}

// { text, tone: ok, bad, warn, busy or off }. why: of a job that waits, or null.
export function sentence(job, why) {
  const verdict = (job.verdicts || [])[0];
  if (isEnded(job.state)) {
    const took = job.started && job.ended ? ` after ${duration(job.ended - job.started)}` : '';
    const reason = job.reason ? `: ${shown(job.reason)}` : '';
    return { tone: ENDED[job.state], text: `${job.state === 'SUCCEEDED' ? 'Succeeded' : job.state === 'FAILED' ? 'Failed' : 'Killed'}${took}${reason}` };
  }
  if (verdict) return { tone: 'warn', text: shown(verdict.text) + (verdict.action ? ` (${shown(verdict.action)})` : '') };
  if (job.state === 'SUSPENDED') return { tone: 'warn', text: `Suspended${job.reason ? `: ${shown(job.reason)}` : ''}` };
  if (job.state === 'QUEUED' || job.state === 'SUBMITTED') {
    const place = why && why.position > 0 ? `; it is number ${number(why.position)} in the queue` : '';
    return { tone: 'warn', text: shown((why && (why.comes || why.summary || why.reason)) || job.reason || 'It waits for a place') + place };
  }
  const text = [running(job), progress(job.data)].filter(Boolean).join('; ');
  return { tone: 'busy', text: job.reason ? `${text}. ${shown(job.reason)}` : text };
}

// Shares of the time in which trainers waited for data and computed; null where nothing is measured.
export function bound(executors) {
  let data = 0, trainer = 0;
  for (const e of executors) {
    data += e.dataWaitUsec || 0;
    trainer += e.trainerWaitUsec || 0;
  }
  return data + trainer > 0 ? { data: data / (data + trainer), trainer: trainer / (data + trainer) } : null;
}
