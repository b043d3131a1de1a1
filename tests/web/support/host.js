// Drives one `webrtc-host`: a WebRTC peer of ours that offers a clip.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const BUILDS = ['release', 'debug'].map((profile) => fileURLToPath(new URL(`../../../target/${profile}/examples/webrtc-host`, import.meta.url)));
const builtAt = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
const HOST = BUILDS.reduce((best, file) => (builtAt(file) > builtAt(best) ? file : best));

export class Host {
  #child;
  #lines;
  events = [];

  constructor(clip) {
    this.#child = spawn(HOST, [clip], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => {});
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  // The first message that `wanted` gives something for.
  async until(wanted) {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`the host ended after ${JSON.stringify(this.events)}`);
      const message = JSON.parse(value);
      if (message.event) this.events.push(message);
      const found = wanted(message);
      if (found) return found;
    }
  }

  async exit() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.stdin.end();
    await ended;
  }
}
