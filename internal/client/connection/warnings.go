package connection

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// Warnings logs what an API server warns of: a deprecated version, a field that it does not know.
// Each text is logged once, because the server repeats it with each request. See
// https://kubernetes.io/blog/2020/09/03/warnings/
type Warnings struct {
	log    logr.Logger
	logged sync.Map // texts
	texts  atomic.Int64
}

// NewWarnings returns the handler of a connection.
func NewWarnings(log logr.Logger) *Warnings { return &Warnings{log: log} }

// mostWarnings is how many texts are remembered. Texts may quote what was sent, so there is no
// end of them.
const mostWarnings = 1000

// mostWarning is how many bytes of a text are logged, and remembered.
const mostWarning = 1 << 10

// HandleWarningHeader implements rest.WarningHandler. Only 299 is a warning of the server.
func (w *Warnings) HandleWarningHeader(code int, _ string, text string) {
	if code != 299 || text == "" {
		return
	}
	if len(text) > mostWarning {
		text = strings.ToValidUTF8(text[:mostWarning], "") + "…"
	}
	if _, known := w.logged.Load(text); known {
		return
	}
	if w.texts.Load() < mostWarnings {
		if _, known := w.logged.LoadOrStore(text, true); known {
			return
		}
		w.texts.Add(1)
	}
	w.log.Info("the server warns", "warning", text)
}
