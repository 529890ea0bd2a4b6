package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// patience is how long a step may take. Only a failure takes that long.
	patience = 2 * time.Minute
	// pause is between two tries of a step that waits for something.
	pause = 50 * time.Millisecond
)

// Server is what the cases run on.
type Server struct {
	// Config is for a user with all rights.
	Config *rest.Config
	// Compact makes the server's storage forget all versions but the newest. Without it the cases
	// that need it fail.
	Compact func(context.Context) error
	// Immediate: what a request does is done with its answer. A step that waits asks once.
	Immediate bool
}

// run is a case that is being run.
type run struct {
	server    Server
	client    *http.Client
	base      *url.URL
	script    Case
	namespace string
	each      string
	answers   map[string]any
	watches   map[string]*watch
	entries   []entry
}

// entry is what is known after a step.
type entry struct {
	step   *step
	code   int
	header []string // lines
	body   any      // decoded, or a string, or nil
	events []event
}

var namespaces atomic.Int64

// Run runs a case, and returns its answers as text, with what differs between two runs masked.
// The case gets a namespace of its own, which stays.
func Run(ctx context.Context, server Server, c Case) (answers string, err error) {
	r := &run{server: server, script: c, answers: map[string]any{}, watches: map[string]*watch{}}
	defer func() {
		for _, w := range r.watches {
			w.close()
		}
	}()
	if err := r.connect(); err != nil {
		return "", err
	}
	if err := r.newNamespace(ctx); err != nil {
		return "", err
	}
	for i := range c.steps {
		s := &c.steps[i]
		if err := r.step(ctx, s); err != nil {
			return "", fmt.Errorf("%s: %s: %w", c.ID(), s.line, err)
		}
	}
	return r.transcript(), nil
}

// connect makes the client.
func (r *run) connect() (err error) {
	if r.client, err = rest.HTTPClientFor(r.server.Config); err != nil {
		return err
	}
	r.base, _, err = rest.DefaultServerUrlFor(r.server.Config)
	return err
}

// newNamespace makes the case's namespace. Its name is new, also on a server that has run cases
// before.
func (r *run) newNamespace(ctx context.Context) error {
	for {
		r.namespace = fmt.Sprintf("case-%05d", namespaces.Add(1))
		made, err := r.ask(ctx, request{method: http.MethodPost, target: "/api/v1/namespaces",
			body: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + r.namespace + `"}}`)})
		if err != nil || made.code == http.StatusCreated {
			return err
		}
		if made.code != http.StatusConflict {
			return fmt.Errorf("make a namespace: %d %v", made.code, made.body)
		}
	}
}

// step runs a step, once for each of its texts.
func (r *run) step(ctx context.Context, s *step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it took too long"))
	defer cancel()
	texts := s.after("for")
	if texts == nil {
		texts = []string{""}
	}
	for _, r.each = range texts {
		e, err := r.once(ctx, s)
		if err != nil {
			return err
		}
		e.step = s
		r.entries = append(r.entries, e)
		if s.save != "" && e.body != nil {
			r.answers[s.save] = e.body
		}
	}
	r.each = ""
	return nil
}

func (r *run) once(ctx context.Context, s *step) (entry, error) {
	switch s.verb {
	case "WATCH":
		return r.open(s)
	case "NEXT", "UNTIL", "BOOKMARK", "END", "CLOSE":
		return r.read(ctx, s)
	case "COMPACT":
		if r.server.Compact == nil {
			return entry{}, errors.New("this server cannot compact its storage")
		}
		return entry{}, r.server.Compact(ctx)
	}
	return r.repeat(ctx, s)
}

// repeat sends the step's request, again and again if the step waits for something.
func (r *run) repeat(ctx context.Context, s *step) (entry, error) {
	wanted := s.after("until")
	for i := range wanted {
		text, err := r.expand(wanted[i])
		if err != nil {
			return entry{}, err
		}
		wanted[i] = text
	}
	for {
		q, err := r.request(s)
		if err != nil {
			return entry{}, err
		}
		e, err := r.ask(ctx, q)
		if err != nil || wanted == nil || r.server.Immediate || e.is(wanted) {
			return e, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return entry{}, fmt.Errorf("%w: the last answer is %d %v", context.Cause(ctx), e.code, e.body)
		}
	}
}
