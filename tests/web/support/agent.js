// Drives one `crossdesk-cli agent` process over its protocol.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';

// The newest build, unless the caller names one.
const BUILDS = ['release', 'debug'].map((profile) => fileURLToPath(new URL(`../../../target/${profile}/crossdesk-cli`, import.meta.url)));
const builtAt = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
export const CLI = process.env.CROSSDESK_CLI ?? BUILDS.reduce((best, file) => (builtAt(file) > builtAt(best) ? file : best));
// The protocol has callers poll `status`; 20 ms is a picture and a half.
const POLL_MS = 20;
const REPLY_MS = 20_000;
const READY_MS = 20_000;
const EXIT_MS = 5_000;

export const newId = () => randomBytes(24).toString('base64url');

export class AgentError extends Error {
  constructor(error) {
    super(`${error.code} (${JSON.stringify(error)})`);
    this.code = error.code;
  }
}

export class Agent {
  #child;
  #waiting = new Map();
  #lastId = 0;
  #diagnostics = '';

  constructor(source) {
    const args = ['agent', '--stdio', '--password-fd', '3', '--video-ws', '--source', source];
    this.#child = spawn(CLI, args, { stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
    this.#child.stdio[3].on('error', () => {});
    // A file needs no password, but a descriptor that promises one has to keep it.
    this.#child.stdio[3].end('unused\n');
    this.#child.stdin.on('error', () => {});
    this.#child.stderr.on('data', (text) => { this.#diagnostics = (this.#diagnostics + text).slice(-4000); });
    this.#child.on('error', (error) => this.#fail(error));
    this.#child.on('exit', (code) => this.#fail(new Error(`the agent ended with ${code}: ${this.#diagnostics}`)));
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#reply(line));
  }

  // An agent whose session shows `source`.
  static async connected(source, decodePath = 'browser') {
    const agent = new Agent(source);
    try {
      await agent.request('hello', { protocol: 'crossdesk-automation/1' });
      const where = { device: '123456789', mode: 'observe', display: 0 };
      await agent.request('connect', { ...where, decode_path: decodePath, decoder: 'auto' });
      await agent.until((status) => status.state === 'ready', READY_MS);
    } catch (error) {
      await agent.exit();
      throw error;
    }
    return agent;
  }

  request(method, fields = {}) {
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve, reject } = withResolvers();
    const timer = setTimeout(() => reject(new Error(`no reply to ${method}: ${this.#diagnostics}`)), REPLY_MS);
    this.#waiting.set(id, { resolve, reject, timer });
    this.#child.stdin.write(`${JSON.stringify({ id, method, ...fields })}\n`);
    return promise;
  }

  // Polls `status` until `done` says so.
  async until(done, limitMs) {
    const end = Date.now() + limitMs;
    for (;;) {
      const status = await this.request('status');
      if (done(status)) return status;
      if (status.state === 'failed') throw new Error(`the session failed: ${JSON.stringify(status.error)}`);
      if (Date.now() > end) throw new Error(`status stays ${JSON.stringify(status)}`);
      await delay(POLL_MS);
    }
  }

  // Authorises one viewer; the result is what a page needs to open its socket.
  async grant(origin, { view = newId(), viewGeneration = 1, session = newId(), apps = false } = {}) {
    const ticket = newId();
    const fields = { ticket, view, view_generation: viewGeneration, session, origin, apps };
    const { url, protocol } = await this.request('video_open', fields);
    return { url, protocol, ticket, view, session };
  }

  async exit() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode;
    const ended = once(this.#child, 'exit');
    this.#child.stdin.end();
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), EXIT_MS);
    const [code] = await ended;
    clearTimeout(killer);
    return code;
  }

  #reply(line) {
    const message = JSON.parse(line);
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    clearTimeout(waiting.timer);
    if (message.ok) waiting.resolve(message.result);
    else waiting.reject(new AgentError(message.error));
  }

  #fail(error) {
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.#waiting.clear();
  }
}

function withResolvers() {
  const out = {};
  out.promise = new Promise((resolve, reject) => Object.assign(out, { resolve, reject }));
  return out;
}
