// Asks for this page again every two seconds, and changes what differs. So the focus, the selection
// and what is unfolded stay. Nothing is asked for while nobody sees the page.
'use strict';
(() => {
  const every = 2000;
  const pause = document.getElementById('pause');
  let paused = false;
  let failed = false;

  // become makes an element like another one, and leaves alone what is the same.
  function become(now, then) {
    for (const name of now.getAttributeNames()) {
      if (!then.hasAttribute(name) && !(now.localName === 'details' && name === 'open')) now.removeAttribute(name);
    }
    for (const name of then.getAttributeNames()) {
      if (now.getAttribute(name) !== then.getAttribute(name)) now.setAttribute(name, then.getAttribute(name));
    }
    children(now, then);
  }

  // alike reports whether one node can become the other.
  function alike(a, b) {
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || '') === (b.id || '');
  }

  function children(now, then) {
    let at = now.firstChild;
    for (const wanted of [...then.childNodes]) {
      let found = at;
      if (wanted.id) {
        while (found && found.id !== wanted.id) found = found.nextSibling;
      } else if (found && !alike(found, wanted)) {
        found = null;
      }
      if (!found || !alike(found, wanted)) {
        now.insertBefore(document.importNode(wanted, true), at);
        continue;
      }
      while (at !== found) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      at = found.nextSibling;
      change(found, wanted);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  function change(now, then) {
    if (now.nodeType !== Node.ELEMENT_NODE) {
      if (now.nodeValue !== then.nodeValue) now.nodeValue = then.nodeValue;
    } else if (now.localName !== 'form') { // somebody may be typing
      become(now, then);
    }
  }

  async function refresh() {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-store'});
      if (!answer.ok) throw new Error(answer.status);
      const then = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (paused) return;
      for (const id of ['main', 'nav', 'at', 'said']) {
        const now = document.getElementById(id);
        const wanted = then.getElementById(id);
        if (now && wanted) become(now, wanted);
      }
      document.title = then.title;
      if (failed) pause.textContent = 'Pause';
      failed = false;
    } catch {
      failed = true;
      pause.textContent = 'No answer: pause';
    }
  }

  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    pause.textContent = paused ? 'Go on' : 'Pause';
    if (!paused) refresh();
  });
  document.addEventListener('visibilitychange', refresh);
  (async () => {
    for (;;) {
      await new Promise((done) => setTimeout(done, every));
      await refresh();
    }
  })();
})();
