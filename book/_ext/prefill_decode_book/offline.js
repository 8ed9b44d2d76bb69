// Lets the pages of a reader who has loaded the model open without a network. The network comes first: no page is
// older than the site. What was fetched is kept; the model itself is kept by the widget, which checks it.
const STORE = "prefill-decode";

onactivate = (event) => event.waitUntil(clients.claim());

onfetch = (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || pathname.endsWith(".gguf")) return;
  event.respondWith(fromNetwork(request).catch(async (error) => {
    const kept = await caches.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }));
};

async function fromNetwork(request) {
  const response = await fetch(request);
  if (response.ok) await (await caches.open(STORE)).put(request, response.clone()).catch(() => {}); // no room: not kept
  return response;
}
