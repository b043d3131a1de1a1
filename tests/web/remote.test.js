// The public web client's documented behaviour, in a real Chromium, against our signaling server and our host.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HOOK_MS, launch } from './support/browser.js';
import { folder } from './support/clips.js';
import { layout } from './support/marks.js';
import { assertColour } from './support/measure.js';
import { shared } from './support/remote.js';
import { serve } from './support/site.js';

const SIZE = { width: 640, height: 360 };
// The browser's own conversion rounds.
const TOLERANCE = 5;

let browser;
let site;
let clips;
let remote;

before(async () => {
  [browser, site, clips] = await Promise.all([launch(), serve(), folder()]);
  remote = await shared(await clips.marked({ size: SIZE, rate: 30, pictures: 64 }));
}, { timeout: HOOK_MS });

after(async () => {
  await remote?.close();
  await Promise.all([browser?.close(), site?.close(), clips?.remove()]);
}, { timeout: HOOK_MS });

async function guest(t, options = {}) {
  const page = await browser.context.newPage();
  t.after(() => page.close());
  await page.goto(`${site.origin}/`);
  await page.addScriptTag({ url: '/webclient.js' });
  const { url, id, password } = remote;
  await page.evaluate((given) => window.startWebClient(given), { url, id, password, trickles: true, ...options });
  return page;
}

for (const [generation, trickles] of [['August 2026, which gathers first', false], ['September 2026, which trickles', true]]) {
  test(`the web client of ${generation} sees the host`, async (t) => {
    const page = await guest(t, { trickles });
    await page.evaluate(() => window.webClient.joined);
    const { marks } = layout(SIZE);
    const { size, colours } = await page.evaluate((spots) => window.webClient.look(20, spots), marks);
    assert.deepEqual(size, SIZE);
    marks.forEach(({ name, rgb }, index) => assertColour(colours[index], rgb, TOLERANCE, name));

    await page.evaluate(() => window.webClient.opened);
    const { host_info: info } = await page.evaluate(() => window.webClient.told(3));
    assert.equal(info.display_num, info.displays.length);
    const { channels, tracks } = await page.evaluate(() => {
      const { channels: count, tracks: seen } = window.webClient;
      return { channels: count, tracks: seen };
    });
    assert.equal(channels, 1, 'the web client talks on the last of several channels, so there is one');
    assert.deepEqual(tracks, ['video Display1']);

    // A host without input, and displays that are not there, ignore what they cannot do; pictures go on.
    await page.evaluate(() => {
      window.webClient.send({ type: 0, mouse: { x: 0.5, y: 0.5, s: 0, flag: 1 } });
      window.webClient.send({ type: 4, display_id: 7 });
      window.webClient.send({ type: 99 });
      window.webClient.channel.send('no JSON');
    });
    await page.evaluate(() => window.webClient.look(20, []));
    await page.evaluate(() => window.webClient.leave());
  });
}

test('a wrong password is refused', async (t) => {
  const page = await guest(t, { password: 'wrong1' });
  const reason = await page.evaluate(() => window.webClient.joined.then(() => 'joined', ({ message }) => message));
  assert.equal(reason, 'Authentication failed');
});

test('two guests see the host at once', async (t) => {
  const pages = await Promise.all([guest(t), guest(t)]);
  for (const page of pages) {
    // A page in the background is drawn once a second.
    await page.bringToFront();
    await page.evaluate(() => window.webClient.joined);
    const { size } = await page.evaluate(() => window.webClient.look(10, []));
    assert.deepEqual(size, SIZE);
  }
});
