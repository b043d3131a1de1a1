// A signaling server and a host, as processes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { CLI } from './agent.js';

class Process {
  #child;
  #lines;
  #notes = '';

  constructor(args) {
    this.#child = spawn(CLI, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, CROSSDESK_LOG: 'warn' } });
    this.#child.stderr.on('data', (text) => { this.#notes = (this.#notes + text).slice(-4000); });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  async line() {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`it ended: ${this.#notes}`);
    return value;
  }

  get notes() {
    return this.#notes;
  }

  async exit() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}

// Starts both; `url` is the server's, `id` and `password` are the host's.
export async function shared(source) {
  const data = await mkdtemp(path.join(tmpdir(), 'crossdesk-remote-'));
  const server = new Process(['signal', '--plain', '--listen', '127.0.0.1:0', '--data', path.join(data, 'signal')]);
  const url = (await server.line()).replace('listening on ', '');
  const { port } = new URL(url);
  const host = new Process([
    'host', '--json', '--plain', '--server', '127.0.0.1', '--port', port, '--data', path.join(data, 'host'), '--source', source,
  ]);
  const { id, password } = JSON.parse(await host.line());
  return {
    url,
    id,
    password,
    host,
    async close() {
      await host.exit();
      await server.exit();
      await rm(data, { recursive: true, force: true });
    },
  };
}
