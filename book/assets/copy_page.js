// The link to a page's Markdown copies it where the browser can: from a server, with a clipboard. Elsewhere, and when
// something fails, it stays the link that it is.
for (const link of document.querySelectorAll("a.pd-markdown")) {
  if (!navigator.clipboard || location.protocol === "file:") continue;
  const name = link.textContent = "Copy as Markdown";
  link.ariaLive = "polite"; // "Copied" is said, this first name is not
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(`${link.href}: ${answer.status}`);
      await navigator.clipboard.writeText(await answer.text());
      link.textContent = "Copied";
      setTimeout(() => { link.textContent = name; }, 2000);
    } catch {
      location.assign(link.href);
    }
  });
}
