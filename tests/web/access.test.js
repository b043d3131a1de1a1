// Who may watch: late joiners, revoked and replaced views, strangers.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Agent, newId } from './support/agent.js';
import { HOOK_MS, launch, viewer } from './support/browser.js';
import { folder } from './support/clips.js';
import { layout } from './support/marks.js';
import { numberIn } from './support/measure.js';
import { serve } from './support/site.js';

const SIZE = { width: 640, height: 360 };
const PICTURES = 200;
const { bits: SPOTS } = layout(SIZE);

let browser;
let site;
let stranger;
let clips;
let agent;

before(async () => {
  [browser, site, stranger, clips] = await Promise.all([launch(), serve(), serve(), folder()]);
  // One keyframe in 200 pictures: who joins later depends on what the agent kept.
  agent = await Agent.connected(await clips.marked({ size: SIZE, rate: 30, pictures: PICTURES }));
}, { timeout: HOOK_MS });

after(async () => {
  await agent?.exit();
  await Promise.all([browser?.close(), site?.close(), stranger?.close(), clips?.remove()]);
}, { timeout: HOOK_MS });

async function watching(t, grant, home = site) {
  const view = await viewer(browser, home, { spots: SPOTS });
  t.after(() => view.close());
  await view.open(grant);
  return view;
}

function assertTrue(report) {
  assert.deepEqual(report.errors, []);
  assert.equal(report.firstKey, true);
  for (const { sequence, spots } of report.pictures) {
    assert.equal(numberIn(spots), (sequence - 1) % PICTURES, `picture ${sequence}`);
  }
}

test('a viewer that joins in the middle of a group starts at a complete keyframe', async (t) => {
  const early = await watching(t, await agent.grant(site.origin));
  await early.shown(40);
  const late = await watching(t, await agent.grant(site.origin));
  await late.shown(20);
  assertTrue(await early.report());
  assertTrue(await late.report());
});

test('a revoked view is closed, its ticket is spent, and a new ticket plays again', async (t) => {
  const grant = await agent.grant(site.origin);
  const view = await watching(t, grant);
  await view.shown(10);
  const closed = view.closed();
  await agent.request('video_revoke', { view: grant.view });
  assert.equal((await closed).opened, true);

  await view.open(grant);
  const replay = await view.closed();
  assert.equal(replay.shown, 0, 'a ticket works once');

  await view.open(await agent.grant(site.origin, { view: grant.view, session: grant.session, viewGeneration: 2 }));
  await view.shown(10);
  assertTrue(await view.report());
});

test('revoking everything closes every viewer', async (t) => {
  const views = [await watching(t, await agent.grant(site.origin)), await watching(t, await agent.grant(site.origin))];
  await Promise.all(views.map((view) => view.shown(3)));
  const closed = views.map((view) => view.closed());
  await agent.request('video_revoke');
  assert.deepEqual((await Promise.all(closed)).map(({ opened }) => opened), [true, true]);
  const status = await agent.until(({ video_output: output }) => output.viewers === 0, 5000);
  assert.equal(status.video_output.unacknowledged_bytes, 0);
});

test('another display generation closes its viewers as going away, not as turned away', async (t) => {
  const view = await watching(t, await agent.grant(site.origin));
  await view.shown(3);
  const closed = view.closed();
  await agent.request('display', { index: 0 });
  assert.equal((await closed).code, 1001);
  await agent.until(({ state }) => state === 'ready', 10000);
});

test('a page of another origin cannot use a ticket, and does not spend it', async (t) => {
  const grant = await agent.grant(site.origin);
  const foreign = await watching(t, grant, stranger);
  const refused = await foreign.closed();
  assert.equal(refused.shown, 0);
  const own = await watching(t, grant);
  await own.shown(3);
});

test('a ticket nobody granted shows nothing', async (t) => {
  const { url, protocol } = await agent.grant(site.origin);
  const view = await watching(t, { url, protocol, ticket: newId() });
  assert.equal((await view.closed()).shown, 0);
});

test('an opaque origin needs a ticket that allows apps', async (t) => {
  const page = await browser.context.newPage();
  t.after(() => page.close());
  await page.goto(`${site.origin}/`);
  assert.equal(await framesInSandbox(page, await agent.grant(site.origin)), 0);
  assert.equal(await framesInSandbox(page, await agent.grant(site.origin, { apps: true })), 1);
});

// Messages a sandboxed frame (its origin is `null`) gets before the socket closes, one at most.
function framesInSandbox(page, grant) {
  return page.evaluate(({ url, ticket }) => new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.sandbox = 'allow-scripts';
    frame.srcdoc = `<script>
      const socket = new WebSocket(${JSON.stringify(url)});
      socket.onopen = () => socket.send(${JSON.stringify(JSON.stringify({ ticket }))});
      socket.onmessage = () => { parent.postMessage(1, '*'); socket.close(); };
      socket.onclose = () => parent.postMessage(0, '*');
    </script>`;
    window.addEventListener('message', ({ data }) => resolve(data), { once: true });
    document.body.append(frame);
  }), grant);
}
