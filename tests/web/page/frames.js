// The binary messages of live video and the little of H.264 a page has to read.

const CDV1 = 0x43445631;
const CDN1 = 0x43444e31;
const CDV1_BYTES = 24;
const CDN1_BYTES = 32;
const SPS = 7;
const PPS = 8;
const IDR = 5;

export function parseFrame(buffer) {
  const view = new DataView(buffer);
  const magic = view.getUint32(0);
  if (magic !== CDV1 && magic !== CDN1) throw new Error(`unknown magic ${magic.toString(16)}`);
  const frame = {
    generation: view.getUint32(4),
    sequence: view.getUint32(8),
    time: Number(view.getBigUint64(12)),
    flags: view.getUint32(20),
  };
  if (magic === CDV1) return { ...frame, key: frame.flags === 1, data: new Uint8Array(buffer, CDV1_BYTES) };
  const [width, height] = [view.getUint32(24), view.getUint32(28)];
  const data = new Uint8Array(buffer, CDN1_BYTES);
  if (data.length !== (width * height * 3) / 2) throw new Error(`${data.length} bytes for ${width}x${height}`);
  return { ...frame, key: true, width, height, data };
}

// Where the NAL units of an Annex B access unit begin: the index of each header byte.
function* nalStarts(data) {
  for (let at = data.indexOf(1, 2); at > 0; at = data.indexOf(1, at + 1)) {
    if (data[at - 1] === 0 && data[at - 2] === 0) yield at + 1;
  }
}

// The WebCodecs name of the stream, from the SPS of a keyframe; throws when SPS, PPS or IDR slice is missing.
export function codecOf(data) {
  const found = new Map();
  for (const start of nalStarts(data)) {
    const kind = data[start] & 31;
    if (!found.has(kind)) found.set(kind, start);
    if (kind === IDR) break;
  }
  for (const kind of [SPS, PPS, IDR]) {
    if (!found.has(kind)) throw new Error(`a keyframe without NAL unit type ${kind}`);
  }
  const sps = found.get(SPS);
  const hex = [...data.subarray(sps + 1, sps + 4)].map((byte) => byte.toString(16).padStart(2, '0'));
  return `avc1.${hex.join('')}`;
}
