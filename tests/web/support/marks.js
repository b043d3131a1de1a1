// A stream whose every marked pixel is known without any decoder: marks are I_PCM macroblocks, which carry samples
// as they are. Each picture shows its own number as a row of black and white squares.

import { BitWriter } from './bits.js';

const MACROBLOCK = 16;
const PCM_IN_I = 25;
const PCM_IN_P = 5 + PCM_IN_I;
const INTRA_16X16_DC = 3;
const MARK_MACROBLOCKS = 4;
const BIT_MACROBLOCKS = 2;
export const NUMBER_BITS = 8;

// BT.709, limited range: what the SPS says.
const BLACK = [16, 128, 128];
const WHITE = [235, 128, 128];
// Not the corners of the colour cube, where clipping would hide a wrong matrix, and little blue difference, because
// Chromium without a GPU converts BT.709 with libyuv, which rounds the factor of Cb from 2.11 to 2.
const COLOURS = {
  red: [200, 45, 40],
  green: [60, 170, 90],
  blue: [70, 85, 140],
  orange: [210, 130, 80],
  grey: [119, 119, 119],
};

function toSamples([red, green, blue]) {
  const [r, g, b] = [red / 255, green / 255, blue / 255];
  const luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const cb = (b - luma) / 1.8556;
  const cr = (r - luma) / 1.5748;
  return [16 + 219 * luma, 128 + 224 * cb, 128 + 224 * cr].map(Math.round);
}

// Where marks lie and what they show, for pictures of `size`.
export function layout(size) {
  const columns = Math.ceil(size.width / MACROBLOCK);
  const centre = (column, row, edge) => ({ x: (column + edge / 2) * MACROBLOCK, y: (row + edge / 2) * MACROBLOCK });
  const marks = Object.entries(COLOURS).map(([name, rgb], index) => {
    const column = 1 + index * (MARK_MACROBLOCKS + 1);
    return { name, rgb, samples: toSamples(rgb), column, row: 1, ...centre(column, 1, MARK_MACROBLOCKS) };
  });
  const bits = Array.from({ length: NUMBER_BITS }, (_, index) => {
    const column = 1 + index * (BIT_MACROBLOCKS + 1);
    return { column, row: 7, ...centre(column, 7, BIT_MACROBLOCKS) };
  });
  return { columns, rows: Math.ceil(size.height / MACROBLOCK), marks, bits };
}

function sps(size, rate) {
  const columns = Math.ceil(size.width / MACROBLOCK);
  const rows = Math.ceil(size.height / MACROBLOCK);
  const crop = { right: (columns * MACROBLOCK - size.width) / 2, bottom: (rows * MACROBLOCK - size.height) / 2 };
  const w = new BitWriter();
  // Constrained Baseline, level 4.2.
  w.u(8, 66).u(8, 0xc0).u(8, 42).ue(0);
  // frame_num in 4 bits; output order is decoding order; one reference picture; no gaps.
  w.ue(0).ue(2).ue(1).u(1, 0);
  w.ue(columns - 1).ue(rows - 1).u(1, 1).u(1, 1);
  const cropped = crop.right > 0 || crop.bottom > 0;
  w.u(1, cropped ? 1 : 0);
  if (cropped) w.ue(0).ue(crop.right).ue(0).ue(crop.bottom);
  // VUI: no aspect ratio, no overscan; limited range, BT.709 primaries and matrix, sRGB transfer; no chroma place.
  w.u(1, 1).u(1, 0).u(1, 0).u(1, 1).u(3, 5).u(1, 0).u(1, 1).u(8, 1).u(8, 13).u(8, 1).u(1, 0);
  w.u(1, 1).u(32, 1).u(32, 2 * rate).u(1, 1);
  // No HRD, no picture structure, and no reorder statement: a player must not wait for it.
  w.u(1, 0).u(1, 0).u(1, 0).u(1, 0);
  return w.nal(0x67);
}

function pps() {
  const w = new BitWriter();
  w.ue(0).ue(0).u(1, 0).u(1, 0).ue(0).ue(0).ue(0).u(1, 0).u(2, 0).se(0).se(0).se(0);
  // Deblocking can be switched off per slice, so that marks keep their samples.
  w.u(1, 1).u(1, 0).u(1, 0);
  return w.nal(0x68);
}

function pcm(w, [luma, cb, cr]) {
  w.alignZero().bytes(Array(256).fill(luma)).bytes(Array(64).fill(cb)).bytes(Array(64).fill(cr));
}

// Macroblock index to samples, for picture `number`.
function paint({ columns, marks, bits }, number, withMarks) {
  const painted = new Map();
  const fill = ({ column, row }, edge, samples) => {
    for (let y = row; y < row + edge; y += 1) {
      for (let x = column; x < column + edge; x += 1) painted.set(y * columns + x, samples);
    }
  };
  if (withMarks) marks.forEach((mark) => fill(mark, MARK_MACROBLOCKS, mark.samples));
  bits.forEach((bit, index) => fill(bit, BIT_MACROBLOCKS, (number >> index) & 1 ? WHITE : BLACK));
  return painted;
}

// The code for "no coefficients" depends on the blocks to the left and above; a PCM macroblock counts as 16.
function emptyBlock(w, painted, columns, index) {
  const count = (neighbour) => (painted.has(neighbour) ? 16 : 0);
  const left = index % columns > 0 ? count(index - 1) : null;
  const above = index >= columns ? count(index - columns) : null;
  const both = left !== null && above !== null;
  const context = both ? (left + above + 1) >> 1 : (left ?? above ?? 0);
  if (context >= 8) w.u(6, 3);
  else w.u(1, 1);
}

function idr(shape) {
  const painted = paint(shape, 0, true);
  const w = new BitWriter();
  w.ue(0).ue(7).ue(0).u(4, 0).ue(0).u(1, 0).u(1, 0).se(0).ue(1);
  for (let index = 0; index < shape.columns * shape.rows; index += 1) {
    const samples = painted.get(index);
    if (samples) {
      w.ue(PCM_IN_I);
      pcm(w, samples);
    } else {
      w.ue(INTRA_16X16_DC).ue(0).se(0);
      emptyBlock(w, painted, shape.columns, index);
    }
  }
  return w.nal(0x65);
}

function delta(shape, number) {
  const painted = paint(shape, number, false);
  const w = new BitWriter();
  w.ue(0).ue(5).ue(0).u(4, number % 16).u(1, 0).u(1, 0).u(1, 0).se(0).ue(1);
  let next = 0;
  for (const index of [...painted.keys()].sort((a, b) => a - b)) {
    w.ue(index - next).ue(PCM_IN_P);
    pcm(w, painted.get(index));
    next = index + 1;
  }
  const rest = shape.columns * shape.rows - next;
  if (rest > 0) w.ue(rest);
  return w.nal(0x41);
}

// One IDR picture followed by `pictures - 1` that refer to it, as an Annex B stream.
export function markedStream({ size, rate, pictures }) {
  const shape = layout(size);
  const units = [sps(size, rate), pps(), idr(shape)];
  for (let number = 1; number < pictures; number += 1) units.push(delta(shape, number));
  return Buffer.concat(units);
}
