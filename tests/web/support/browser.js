// One Chromium for a test file, and pages of our own origin in it.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const EXECUTABLE = process.env.CROSSDESK_CHROMIUM ?? '/usr/bin/chromium';
// A browser that does not start or end within this time never will.
export const HOOK_MS = 60_000;
const SWITCHES = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Peers meet on this machine.
  '--allow-loopback-in-peer-connection',
];

export async function launch() {
  const profile = await mkdtemp(path.join(tmpdir(), 'crossdesk-web-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath: EXECUTABLE, args: SWITCHES });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

// A page that plays what `grant` allows.
export async function viewer(browser, site, options = {}) {
  const page = await browser.context.newPage();
  await page.goto(`${site.origin}/`);
  await page.evaluate((given) => window.startViewer(given), options);
  return {
    page,
    open: (grant) => page.evaluate((given) => window.viewer.open(given), grant),
    close: () => page.close(),
    // Resolves once `count` pictures were shown since the socket was opened.
    shown: (count) => page.evaluate((given) => window.viewer.shown(given), count),
    report: () => page.evaluate(() => window.viewer.report()),
    reset: () => page.evaluate(() => window.viewer.reset()),
    closed: () => page.evaluate(() => window.viewer.closed),
    setClock: async () => page.evaluate((given) => window.viewer.setClock(given), await clockOffset(page)),
  };
}

// Microseconds to add to the page's clock to get CLOCK_MONOTONIC, which `process.hrtime` reads. The reading with the
// shortest way to the page and back errs least.
async function clockOffset(page) {
  let best = { way: Infinity, offset: 0 };
  for (let round = 0; round < 12; round += 1) {
    const before = Number(process.hrtime.bigint() / 1000n);
    const there = await page.evaluate(() => performance.now() * 1000);
    const after = Number(process.hrtime.bigint() / 1000n);
    if (after - before < best.way) best = { way: after - before, offset: (before + after) / 2 - there };
  }
  return best.offset;
}
