// Opens the socket, acknowledges every message, plays it and keeps the books the tests read.

import { parseFrame } from './frames.js';
import { CompressedPlayer, RawPlayer } from './players.js';

// Arrays of samples stop growing here; the tests look at a few hundred pictures at most.
const MAX_SAMPLES = 5000;
// A wait in which not one picture came for this long will not end; a busy machine is slower than the protocol's limits.
const STARVED_MS = 20_000;

// `options.spots` are read back from each picture, [{x, y}, …] in its pixels; without them only pictures the screen can
// show are drawn.
class Viewer {
  #options;
  #canvas = document.querySelector('canvas');
  #socket = null;
  #player = null;
  #next = null;
  #clock = 0;
  #ticketSent = 0;
  #waiting = [];
  #starved = null;
  #opened = false;
  #books;
  closed = new Promise((resolve) => { this.resolveClosed = resolve; });

  constructor(options) {
    this.#options = options;
    this.reset();
  }

  open({ url, protocol, ticket }) {
    const Player = protocol === 'nv12/1' ? RawPlayer : CompressedPlayer;
    this.#player = new Player(this.#options, (picture, frame) => this.#show(picture, frame), (error) => this.#giveUp(error));
    this.closed = new Promise((resolve) => { this.resolveClosed = resolve; });
    this.reset();
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#opened = false;
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      this.#opened = true;
      this.#ticketSent = performance.now();
      socket.send(JSON.stringify({ ticket }));
    };
    socket.onmessage = ({ data }) => this.#message(data);
    socket.onclose = ({ code, reason }) => {
      this.resolveClosed({ code, reason, opened: this.#opened, shown: this.#books.shown });
      this.#player.close();
      this.#giveUp(`the socket was closed with ${code} ${reason}`);
    };
  }

  disconnect() {
    this.#socket.close();
    return this.closed;
  }

  setClock(offset) {
    this.#clock = offset;
  }

  reset() {
    const samples = { decodeMs: [], ageMs: [], arrivalAgeMs: [], pictures: [] };
    this.#books = { received: 0, shown: 0, firstPictureMs: null, firstKey: null, size: null, errors: [], ...samples };
  }

  // Resolves once `count` pictures were shown; rejects when that cannot happen any more.
  shown(count) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ count, resolve, reject });
      this.#wake();
    });
  }

  report() {
    const { fedCount, outputCount, held, late, errors, codecs } = this.#player;
    const all = [...this.#books.errors, ...errors];
    return { ...this.#books, fedCount, outputCount, held, late, codecs, errors: all };
  }

  #message(data) {
    const arrival = performance.now();
    try {
      const frame = { ...parseFrame(data), arrival };
      const { generation, sequence } = frame;
      this.#socket.send(JSON.stringify({ type: 'ack', generation, sequence }));
      this.#books.firstKey ??= frame.key;
      this.#books.received += 1;
      this.#note('arrivalAgeMs', (arrival * 1000 + this.#clock - frame.time) / 1000);
      this.#player.take(frame);
    } catch (error) {
      this.#books.errors.push(String(error));
      this.#giveUp(String(error));
    }
  }

  #show(picture, frame) {
    const books = this.#books;
    books.firstPictureMs ??= performance.now() - this.#ticketSent;
    books.size = { width: picture.displayWidth, height: picture.displayHeight };
    this.#note('decodeMs', performance.now() - frame.arrival);
    books.shown += 1;
    if (this.#options.spots) this.#present(picture, frame);
    else this.#presentNext(picture, frame);
    this.#wake();
  }

  // As a real page does: whatever is newest when the screen is drawn next.
  #presentNext(picture, frame) {
    if (this.#next) this.#next.picture.close();
    else requestAnimationFrame(() => this.#present(this.#next.picture, this.#next.frame));
    this.#next = { picture, frame };
  }

  #present(picture, { sequence, generation, time, key }) {
    const spots = this.#draw(picture);
    this.#next = null;
    this.#note('ageMs', (performance.now() * 1000 + this.#clock - time) / 1000);
    this.#note('pictures', { sequence, generation, key, spots });
  }

  // Draws the picture, gives it back and reads the spots asked for.
  #draw(picture) {
    const { width, height } = this.#books.size;
    const canvas = this.#canvas;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const spots = this.#options.spots ?? [];
    const context = canvas.getContext('2d', { willReadFrequently: spots.length > 0 });
    context.drawImage(picture, 0, 0);
    picture.close();
    return spots.map(({ x, y }) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3));
  }

  #note(name, value) {
    if (this.#books[name].length < MAX_SAMPLES) this.#books[name].push(value);
  }

  #wake() {
    const ready = this.#waiting.filter(({ count }) => this.#books.shown >= count);
    this.#waiting = this.#waiting.filter(({ count }) => this.#books.shown < count);
    ready.forEach(({ resolve }) => resolve());
    clearTimeout(this.#starved);
    if (this.#waiting.length > 0) this.#starved = setTimeout(() => this.#giveUp(`no picture for ${STARVED_MS} ms`), STARVED_MS);
  }

  #giveUp(reason) {
    const { received, shown } = this.#books;
    const { fedCount, outputCount, held, errors } = this.#player ?? {};
    const state = JSON.stringify({ received, shown, fedCount, outputCount, held, errors });
    this.#waiting.forEach(({ count, reject }) => reject(new Error(`${reason}, while waiting for ${count} pictures: ${state}`)));
    this.#waiting = [];
    clearTimeout(this.#starved);
  }
}

window.startViewer = (options) => { window.viewer = new Viewer(options); };
