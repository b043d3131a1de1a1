// Percentiles and comparisons shared by the tests.

import assert from 'node:assert/strict';

export function percentile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Infinity;
}

export const median = (samples) => percentile(samples, 0.5);

// Colours may differ by `tolerance` per channel: conversions round.
export function assertColour(actual, expected, tolerance, what) {
  const off = Math.max(...actual.map((value, channel) => Math.abs(value - expected[channel])));
  assert.ok(off <= tolerance, `${what}: ${actual} instead of ${expected}`);
}

// Which number a picture shows in its row of squares.
export function numberIn(spots) {
  return spots.reduce((number, [red], index) => number + (red > 127 ? 2 ** index : 0), 0);
}
