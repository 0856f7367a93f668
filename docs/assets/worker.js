// A page that is opened from a disk may not start workers, and the search runs in one. This one
// runs in a hidden frame instead, so that the search works without a server or a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.deliver = (data) => this.waiting.push(data);
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = frame.contentDocument.createElement("script");
          script.src = source;
          script.onload = loaded;
          script.onerror = failed;
          frame.contentDocument.body.append(script);
        });
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      load(new URL(address, location.href).href).then(() => {
        this.deliver = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.deliver);
      });
    }

    postMessage(data) {
      this.deliver(data);
    }

    terminate() {}
  };
}
