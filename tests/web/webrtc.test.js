// Our WebRTC host and a real Chromium: the connection, pictures, messages.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { HOOK_MS, launch } from './support/browser.js';
import { Host } from './support/host.js';
import { serve } from './support/site.js';

const CLIP = fileURLToPath(new URL('../data/h264/Adobe_PDF_sample_a_1024x768_50Frms.264', import.meta.url));

let browser;
let site;

before(async () => {
  [browser, site] = await Promise.all([launch(), serve()]);
}, { timeout: HOOK_MS });

after(async () => {
  await Promise.all([browser?.close(), site?.close()]);
}, { timeout: HOOK_MS });

test('Chromium answers our offer, shows every picture and gets its messages back', async (t) => {
  const host = new Host(CLIP);
  t.after(() => host.exit());
  const page = await browser.context.newPage();
  t.after(() => page.close());
  await page.goto(`${site.origin}/`);
  await page.addScriptTag({ url: '/guest.js' });
  const answer = await page.evaluate((given) => window.startGuest(given), await host.until(({ offer }) => offer));
  host.send({ answer });
  const connected = await page.evaluate(() => window.guest.connected);
  t.diagnostic(`connected in ${connected.toFixed(0)} ms`);

  const stats = await page.evaluate(() => window.decoded(90));
  assert.deepEqual([stats.frameWidth, stats.frameHeight], [1024, 768]);
  assert.equal(stats.framesDropped, 0);
  assert.equal(stats.packetsLost, 0);
  t.diagnostic(`${stats.framesDecoded} pictures, ${stats.pliCount} requests for a key frame, ${stats.freezeCount} freezes`);
  assert.deepEqual(await page.evaluate(() => window.guest.tracks), ['video Display1', 'audio audio-stream']);

  const text = await page.evaluate(() => window.echo('{"type":0}'));
  assert.deepEqual(text, { label: 'ping-pong', data: '{"type":0}' });

  await page.evaluate(() => window.guest.peer.close());
  await host.until(({ event }) => event === 'closed' || event === 'failed');
  assert.equal(host.events.at(-1).event, 'closed', JSON.stringify(host.events));
  assert.ok(host.events.some(({ event }) => event === 'connected'));
});
