// What a PromptExplorer tells: a bar while the model runs, one line always. Its controls are Jupyter's own.

/** Keep plain keys from JupyterLab, where b adds a cell and x cuts one; keys with Ctrl, Alt or Meta go on. */
export function keepKeys(event) {
  if (!event.ctrlKey && !event.altKey && !event.metaKey) event.stopPropagation();
}

/** Call back with the box around `el` as soon as it has one: Jupyter draws a widget first and puts it in place then. */
function whenPlaced(el, callback) {
  const observer = new ResizeObserver(() => {
    const box = el.closest(".pd-explorer");
    if (!box) return;
    observer.disconnect();
    callback(box);
  });
  observer.observe(el);
  return observer;
}

function render({ model, el }) {
  const bar = el.appendChild(document.createElement("progress"));
  bar.setAttribute("aria-label", "Passes");
  const line = el.appendChild(document.createElement("p"));
  line.setAttribute("role", "status");
  const show = () => {
    bar.max = Math.max(1, model.get("passes"));
    bar.value = model.get("passed");
    bar.hidden = model.get("passes") === 0;
    line.textContent = model.get("line");
  };
  model.on("change", show);
  show();
  const observer = whenPlaced(el, (box) => box.addEventListener("keydown", keepKeys));
  return () => {
    observer.disconnect();
    model.off("change", show);
  };
}

export default { render };
