// A page that is opened from disk may not start workers: the search then runs in a hidden frame of the page.
(() => {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const load = (src) =>
        new Promise((resolve, reject) => {
          const script = this.inside.document.createElement("script");
          Object.assign(script, { src, onload: resolve, onerror: reject });
          this.inside.document.body.append(script);
        });
      this.inside.importScripts = (...scripts) => scripts.reduce((before, src) => before.then(() => load(src)), Promise.resolve());
      this.inside.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      this.ready = load(new URL(url, document.baseURI).href);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  }
  if (location.protocol === "file:") window.IFrameWorker = window.Worker = IFrameWorker;
})();
