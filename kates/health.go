package kates

import (
	"fmt"
	"net/http"
	"time"

	"github.com/kates-go/kates/internal/base/health"
)

// defaultHang is how long a step may take before the client is unhealthy.
const defaultHang = 2 * time.Minute

// Readyz is a readiness probe, an [http.HandlerFunc]: it answers 200 once [Client.ReadyCheck] is
// nil, and 500 before that. As that of the API server it answers "ok", or with ?verbose, or if it
// fails, a line for each watch and each Lease:
//
//	[+]watch main.Snapshot ok
//	[-]watch main.Others failed: query "Quotas" (resourcequotas) is forbidden
//	readyz check failed
//
// The text names watches, queries and kinds. It has nothing of objects, and no errors of the
// server: those are in [Client.Status]. It answers GET and HEAD.
func (c *Client) Readyz(w http.ResponseWriter, r *http.Request) {
	health.Serve(w, r, "readyz", c.core.ReadyChecks)
}

// Healthz is a liveness probe, an [http.HandlerFunc]: it answers 500 while [Client.HealthCheck] is
// an error, else 200. Its text is as that of [Client.Readyz].
func (c *Client) Healthz(w http.ResponseWriter, r *http.Request) {
	health.Serve(w, r, "healthz", c.core.HealthChecks)
}

// ReadyCheck says what the client still waits for. It is nil once [Client.Ready] is nil with one
// watch open at least, and from then on for ever: an outage, a watch that is opened later, and
// Close change nothing. So a roll-out stops at a program that cannot read what it needs, and a
// program that is in service stays there. It has the form of a healthz.Checker of
// controller-runtime and of k8s.io/apiserver.
//
// Watches count that are open when it is asked: open those that the program needs before it serves
// Readyz, or soon after. A program without watches has nothing to wait for, and needs no
// ReadyCheck.
func (c *Client) ReadyCheck(*http.Request) error { return health.Errors(c.core.ReadyChecks()) }

// HealthCheck says what hangs: what takes no time unless something is broken, and has taken longer
// than [WithHangTimeout]. A restart may help then. These are
//
//   - a step of a stream: it takes in an event, or an object of a list, and runs Where,
//     Transform and Signal
//   - a reader's turn: Update, or the search for the next key, with predicates, Key, Refs and the
//     function of [WithOnInvalid]
//   - a method of an [Observer]
//   - a call of the function of a Run, a RunEach or a controller, if [WithUnhealthyAfter] says so
//
// An outage of the server, a backoff, and a program that does not call Update are none of these. A
// client that is closed is healthy. A step is looked at when somebody asks, and counts from the
// first time: it is found if HealthCheck is asked every few seconds, as a kubelet does.
func (c *Client) HealthCheck(*http.Request) error { return health.Errors(c.core.HealthChecks()) }

// WithHangTimeout sets how long a step may take before the client is unhealthy, see
// [Client.HealthCheck]. Default: 2 minutes.
func WithHangTimeout(d time.Duration) Option {
	return option(func(s *settings) {
		s.hang = d
		least0(&s.refusal, "WithHangTimeout", d, "is the default, 2m")
	})
}

// WithUnhealthyAfter makes the client unhealthy ([Client.HealthCheck]) while a call of the
// function of this [Run], [RunEach] or controller takes longer than that. By default a call may
// take as long as it likes.
func WithUnhealthyAfter(d time.Duration) RunOption {
	return runOption(func(s *runSettings) {
		if s.unhealthyAfter = d; d <= 0 {
			s.reject(fmt.Errorf("WithUnhealthyAfter is %s: it must be positive; without the option a call may take as long as it likes", d))
		}
	})
}
