// What turns frames into `VideoFrame`s: WebCodecs for compressed video, a constructor for raw pictures.

import { codecOf } from './frames.js';

// In `step` mode a frame is fed only after the picture of the frame before came out; a decoder that holds a picture
// back then never gets the next one, and the hold shows.
const STALL_MS = 2000;

export class CompressedPlayer {
  #decoder = null;
  #codec = '';
  #fed = new Map();
  #queue = [];
  #stall = null;
  #options;
  #emit;
  #fail;
  fedCount = 0;
  outputCount = 0;
  held = 0;
  late = 0;
  errors = [];
  codecs = [];

  constructor(options, emit, fail) {
    this.#options = options;
    this.#emit = emit;
    this.#fail = fail;
  }

  take(frame) {
    if (this.fedCount > this.outputCount) this.late += 1;
    this.#queue.push(frame);
    this.#pump();
  }

  #pump() {
    while (this.#queue.length > 0 && !(this.#options.step && this.#fed.size > 0)) this.#feed(this.#queue.shift());
  }

  #feed(frame) {
    if (frame.key) this.#configure(codecOf(frame.data));
    if (!this.#decoder) throw new Error('the first frame is no keyframe');
    this.fedCount += 1;
    // Only a name for the way through the decoder; access units of one burst may share their receive time.
    const timestamp = this.fedCount * 1000;
    this.#fed.set(timestamp, frame);
    this.#decoder.decode(new EncodedVideoChunk({ type: frame.key ? 'key' : 'delta', timestamp, data: frame.data }));
    if (this.#options.step) this.#stall = setTimeout(() => { this.held += 1; }, STALL_MS);
  }

  #configure(codec) {
    if (codec === this.#codec) return;
    this.#codec = codec;
    this.codecs.push(codec);
    this.#decoder ??= new VideoDecoder({
      output: (picture) => this.#output(picture),
      error: (error) => {
        this.errors.push(String(error));
        this.#fail(String(error));
      },
    });
    this.#decoder.configure({ codec, optimizeForLatency: true });
  }

  #output(picture) {
    clearTimeout(this.#stall);
    this.outputCount += 1;
    const frame = this.#fed.get(picture.timestamp);
    this.#fed.delete(picture.timestamp);
    this.#emit(picture, frame);
    this.#pump();
  }

  close() {
    clearTimeout(this.#stall);
    if (this.#decoder?.state !== 'closed') this.#decoder?.close();
  }
}

// Raw pictures are limited-range BT.601.
export class RawPlayer {
  #emit;
  errors = [];

  constructor(_options, emit) {
    this.#emit = emit;
  }

  take(frame) {
    const colorSpace = { matrix: 'smpte170m', primaries: 'bt709', transfer: 'iec61966-2-1', fullRange: false };
    const size = { codedWidth: frame.width, codedHeight: frame.height };
    this.#emit(new VideoFrame(frame.data, { format: 'NV12', ...size, timestamp: frame.time, colorSpace }), frame);
  }

  close() {}
}
