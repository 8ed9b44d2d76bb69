// Mounts each widget of a built page on its static picture. There is no kernel: a widget's state is the JSON in its
// own markup, and all that its module computes with.
(() => {
  "use strict";
  const widgets = {};

  // A module that cannot be loaded must not take the others with it.
  function load(name, module) {
    try {
      module();
    } catch (error) {
      console.error(`widget ${name} could not be loaded`, error);
    }
  }

  /* the widgets */

  const twin = /* the twin */ "";

  // The part of an anywidget model that a module may use.
  function modelFrom(state) {
    const listeners = new Map();
    const model = {
      get: (name) => state[name],
      set(name, value) {
        if (Object.is(state[name], value)) return;
        state[name] = value;
        for (const event of [`change:${name}`, "change"]) {
          for (const listener of [...(listeners.get(event) ?? [])]) listener(model, value);
        }
      },
      on(event, listener) {
        if (!listeners.has(event)) listeners.set(event, new Set());
        listeners.get(event).add(listener);
      },
      off(event, listener) {
        const events = event == null ? [...listeners.keys()] : [event];
        for (const name of events) {
          if (listener == null) listeners.delete(name);
          else listeners.get(name)?.delete(listener);
        }
      },
      save_changes() {},
    };
    return model;
  }

  // The picture becomes the widget in place. If that fails, a copy of the picture takes its place again.
  async function mount(root) {
    const name = root.dataset.widget;
    const picture = root.cloneNode(true);
    taken.add(root).add(picture);
    try {
      const state = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      await widgets[name].render({ model: modelFrom(state), el: root, page: { widgets, modelFrom, twin } });
    } catch (error) {
      root.replaceWith(picture);
      console.error(`widget ${name} stays a picture`, error);
    }
  }

  const taken = new WeakSet();

  // A root is complete once the browser has read anything after it.
  function isRead(root) {
    if (document.readyState !== "loading") return true;
    for (let node = root; node; node = node.parentNode) if (node.nextSibling) return true;
    return false;
  }

  function mountRead() {
    for (const root of document.querySelectorAll("[data-widget]")) if (!taken.has(root) && isRead(root)) mount(root);
  }

  // A long page is still being read when its first widget is there; that one does not wait for the end.
  function mountWhileReading() {
    const reading = new MutationObserver(mountRead);
    const finish = () => {
      reading.disconnect();
      mountRead();
    };
    reading.observe(document, { childList: true, subtree: true });
    document.addEventListener("readystatechange", finish, { once: true });
  }

  mountRead();
  if (document.readyState === "loading") mountWhileReading();
})();
