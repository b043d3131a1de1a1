// Serves the test page on a loopback port of its own; the address is the origin a ticket is bound to.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';

const FILES = {
  '/': ['index.html', 'text/html'],
  '/viewer.js': ['viewer.js', 'text/javascript'],
  '/players.js': ['players.js', 'text/javascript'],
  '/frames.js': ['frames.js', 'text/javascript'],
  '/webclient.js': ['webclient.js', 'text/javascript'],
  '/guest.js': ['guest.js', 'text/javascript'],
};

export async function serve() {
  const server = createServer(async (request, response) => {
    const [name, type] = FILES[request.url] ?? [];
    if (!name) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store', 'access-control-allow-origin': '*' });
    response.end(await readFile(new URL(`../page/${name}`, import.meta.url)));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}
