package operator

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Counts is what an operator has done so far.
type Counts struct {
	// Reconciles have ended. Some of them made no request, and some returned an error.
	Reconciles int `json:"reconciles,omitempty"`
	Idle       int `json:"idle,omitempty"`
	Errors     int `json:"errors,omitempty"`
	// Requests are counted by verb. Refused are those that were answered with 4xx or 5xx, or not
	// at all.
	Requests map[string]int `json:"requests,omitempty"`
	Refused  int            `json:"refused,omitempty"`
	// UnixNano is when the last request was made or answered, or the last reconcile began or
	// ended. The end of a watch does not count.
	UnixNano int64 `json:"unixNano,omitempty"`
	// Busy is the number of reconciles under way.
	Busy int `json:"busy,omitempty"`
}

// Less returns the counts since earlier counts of the same operator.
func (c Counts) Less(before Counts) Counts {
	c.Reconciles -= before.Reconciles
	c.Idle -= before.Idle
	c.Errors -= before.Errors
	c.Refused -= before.Refused
	c.Requests = maps.Clone(c.Requests)
	for verb, n := range before.Requests {
		if c.Requests[verb] -= n; c.Requests[verb] == 0 {
			delete(c.Requests, verb)
		}
	}
	return c
}

// Total returns the number of requests.
func (c Counts) Total() (n int) {
	for _, of := range c.Requests {
		n += of
	}
	return n
}

// Meter counts what an operator does. The zero value is ready. Its methods may be called
// concurrently.
type Meter struct {
	mu     sync.Mutex
	counts Counts
}

// requestsKey is the context key for the count of requests.
type requestsKey struct{}

// Reconcile counts a reconcile and the requests that are made with its context.
func (m *Meter) Reconcile(ctx context.Context, f func(context.Context) error) error {
	var requests atomic.Int64
	m.note(func(c *Counts) { c.Busy++ })
	failed := true // stays true after a panic
	defer m.note(func(c *Counts) {
		c.Busy--
		c.Reconciles++
		if requests.Load() == 0 {
			c.Idle++
		}
		if failed {
			c.Errors++
		}
	})
	err := f(context.WithValue(ctx, requestsKey{}, &requests))
	failed = err != nil
	return err
}

// Counts returns the counts so far.
func (m *Meter) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts
	c.Requests = maps.Clone(c.Requests)
	return c
}

func (m *Meter) note(f func(*Counts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.counts)
	m.counts.UnixNano = time.Now().UnixNano()
}

// Through returns a configuration whose requests are counted and not rate-limited.
func (m *Meter) Through(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{m, next} })
	return c
}

type counting struct {
	meter *Meter
	next  http.RoundTripper
}

// RoundTrip counts a request.
func (c counting) RoundTrip(q *http.Request) (*http.Response, error) {
	if n, ok := q.Context().Value(requestsKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
	verb := verbOf(q)
	c.meter.note(func(c *Counts) {
		if c.Requests == nil {
			c.Requests = make(map[string]int)
		}
		c.Requests[verb]++
	})
	answer, err := c.next.RoundTrip(q)
	c.meter.note(func(c *Counts) {
		if err != nil || answer.StatusCode >= http.StatusBadRequest {
			c.Refused++
		}
	})
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.next }

// These are the verbs, in the order of tables. Every write of a status is a [VerbStatus],
// whatever its method.
const (
	VerbDiscover = "discover"
	VerbGet      = "get"
	VerbList     = "list"
	VerbWatch    = "watch"
	VerbCreate   = "create"
	VerbUpdate   = "update"
	VerbPatch    = "patch"
	VerbApply    = "apply"
	VerbStatus   = "status"
	VerbDelete   = "delete"
)

// Verbs are all verbs.
var Verbs = []string{
	VerbDiscover, VerbGet, VerbList, VerbWatch, VerbCreate, VerbUpdate, VerbPatch, VerbApply, VerbStatus, VerbDelete,
}

func verbOf(q *http.Request) string {
	resource := resourceOf(q.URL.Path)
	switch {
	case len(resource) == 0:
		return VerbDiscover
	case len(resource) > 2 && resource[2] == "status" && q.Method != http.MethodGet:
		return VerbStatus
	}
	switch q.Method {
	case http.MethodPost:
		return VerbCreate
	case http.MethodPut:
		return VerbUpdate
	case http.MethodDelete:
		return VerbDelete
	case http.MethodPatch:
		if strings.HasPrefix(q.Header.Get("Content-Type"), "application/apply-patch") {
			return VerbApply
		}
		return VerbPatch
	}
	if w := q.URL.Query().Get("watch"); w == "true" || w == "1" {
		return VerbWatch
	}
	if len(resource) > 1 {
		return VerbGet
	}
	return VerbList
}

// resourceOf returns the segments of a path from the resource on: resource, name, subresource. A
// discovery path has none.
func resourceOf(path string) []string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case segments[0] == "api" && len(segments) > 2:
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		segments = segments[3:]
	default:
		return nil
	}
	if segments[0] == "namespaces" && len(segments) > 2 {
		segments = segments[2:]
	}
	return segments
}
