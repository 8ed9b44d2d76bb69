// Lets pages that a reader has opened since loading the model open without a network. The network (or the browser's
// own cache of it) comes first; what it answers is kept. The model itself is kept by the widget, which checks it.
const STORE = "prefill-decode";

onactivate = (event) => event.waitUntil(clients.claim());

onfetch = (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || pathname.endsWith(".gguf")) return;
  event.respondWith(fromNetwork(request).catch(async (error) => {
    const kept = (await caches.match(request)) ?? (await caches.match(request, { ignoreSearch: true }));
    if (kept) return kept;
    throw error;
  }));
};

async function fromNetwork(request) {
  const response = await fetch(request);
  if (response.ok) await keep(request, response.clone()).catch(() => {}); // no room: not kept
  return response;
}

/** Keep an answer in the place of older ones, which have another version after the question mark. */
async function keep(request, response) {
  if (!(await caches.has(STORE))) return; // forgotten: this worker lives on until its pages are closed
  const store = await caches.open(STORE);
  await store.delete(request, { ignoreSearch: true });
  await store.put(request, response);
}
