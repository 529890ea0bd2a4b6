// Package health answers health checks over HTTP, in the words of the API server
// (https://kubernetes.io/docs/reference/using-api/health-checks/).
package health

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/loops/keyed"
)

// Check is one thing that was checked.
type Check struct {
	Name string // of what: "watch pods"
	// Err is what is wrong, nil if nothing is. Brief is the same for whoever may ask over HTTP: it
	// has nothing of an object, and no text of a server's answer.
	Err   error
	Brief string
}

// Errors are what is wrong.
func Errors(all []Check) error {
	var errs []error
	for _, c := range all {
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, c.Err))
		}
	}
	return errors.Join(errs...)
}

// Serve answers a request: 200 if nothing is wrong, else 500. The text has one line for each check
// if something is wrong, or the query has verbose. name is that of the whole, like "readyz".
func Serve(w http.ResponseWriter, r *http.Request, name string, check func() []Check) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache, private")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	text, ok := textOf(name, check())
	if !ok {
		w.WriteHeader(http.StatusInternalServerError)
	} else if _, verbose := r.URL.Query()["verbose"]; !verbose {
		text = "ok"
	}
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, text)
	}
}

// OfCalls checks the calls of a loop, which have to end in time.
func OfCalls(o keyed.Overdue) Check {
	check := Check{Name: "run " + o.Loop}
	if o.Calls > 0 {
		check.Brief = fmt.Sprintf("%d of its calls have not ended in time, one for %s (reconcileID %s)",
			o.Calls, o.Longest.Truncate(time.Second), o.ID)
		check.Err = errors.New(check.Brief)
	}
	return check
}

func textOf(name string, all []Check) (text string, ok bool) {
	var b strings.Builder
	result := "passed"
	for _, c := range all {
		if c.Err == nil {
			plain.Fprintf(&b, "[+]%s ok\n", c.Name)
			continue
		}
		result = "failed"
		plain.Fprintf(&b, "[-]%s failed: %s\n", c.Name, c.Brief)
	}
	fmt.Fprintf(&b, "%s check %s\n", name, result)
	return b.String(), result == "passed"
}
