// The streams the tests play, written to a folder that goes away with the test.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { nalOf, unescape } from './bits.js';
import { markedStream } from './marks.js';

const DESKTOP = new URL('../../data/desktop/desktop-1080p30.h264', import.meta.url);
const SPS_HEADER = 0x67;

export async function folder() {
  const directory = await mkdtemp(path.join(tmpdir(), 'crossdesk-clips-'));
  const write = async (name, bytes) => {
    const file = path.join(directory, name);
    await writeFile(file, bytes);
    return `file:${file}`;
  };
  return {
    marked: (options) => write('marked.h264', markedStream(options)),
    // The recorded desktop, 1920x1080, played at twice its speed: 60 pictures a second.
    desktop60: async () => write('desktop-1080p60.h264', doubleRate(await readFile(DESKTOP))),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function doubleRate(stream) {
  const out = [];
  const startCode = Buffer.from([0, 0, 0, 1, SPS_HEADER]);
  let at = 0;
  for (let sps = stream.indexOf(startCode); sps >= 0; sps = stream.indexOf(startCode, at)) {
    const from = sps + startCode.length;
    const end = stream.indexOf(Buffer.from([0, 0, 0, 1]), from);
    const faster = replaceTiming(unescape(stream.subarray(from, end)), [1, 60], [1, 120]);
    out.push(stream.subarray(at, sps), nalOf(SPS_HEADER, faster));
    at = end;
  }
  out.push(stream.subarray(at));
  return Buffer.concat(out);
}

// num_units_in_tick and time_scale are 64 bits in a row at some bit position.
function replaceTiming(payload, before, after) {
  const bits = payload.map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const pattern = (numbers) => numbers.map((number) => number.toString(2).padStart(32, '0')).join('');
  const changed = bits.replace(pattern(before), pattern(after));
  if (changed === bits) throw new Error('the SPS does not say 30 pictures a second');
  return changed.match(/.{8}/g).map((byte) => parseInt(byte, 2));
}
