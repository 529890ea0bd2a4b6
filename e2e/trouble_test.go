package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates/katestest"
)

// trouble makes faults at random. Each lasts for a while.
type trouble struct {
	faults  *katestest.Faults
	network *katestest.Network

	mu    sync.Mutex
	made  map[string]int               // network faults, by name
	rules map[string][]*katestest.Rule // by name
}

// note keeps a rule, to count its hits, and stops it after a while.
func (c *trouble) note(ctx context.Context, name string, r *rand.Rand, rule *katestest.Rule) {
	c.mu.Lock()
	c.rules[name] = append(c.rules[name], rule)
	c.mu.Unlock()
	pause(ctx, time.Duration(r.IntN(700))*time.Millisecond)
	rule.Stop()
}

func (c *trouble) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[name]++
}

// counts returns how often each fault has hit, and the sum.
func (c *trouble) counts() (text string, sum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.made)
	for name, rules := range c.rules {
		for _, r := range rules {
			all[name] += r.Hits()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf(", %s %d", name, all[name])
		sum += all[name]
	}
	return strings.TrimPrefix(text, ", "), sum
}

// make makes faults until ctx ends.
func (c *trouble) make(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		resource := []string{"pods", "configmaps", "hosts", "namespaces"}[r.IntN(4)]
		switch r.IntN(8) {
		case 0, 1, 2:
			c.ofWatches(ctx, r, resource)
		case 3, 4:
			c.ofReads(ctx, r, resource)
		case 5, 6:
			c.ofWrites(ctx, r, resource)
		case 7:
			c.ofNetwork(ctx, r)
		}
		pause(ctx, time.Duration(r.IntN(300))*time.Millisecond)
	}
}

// inJSON matches the answers that may be garbled. In protobuf, garbage can look like an object.
func inJSON(m katestest.Match) katestest.Match {
	m.Where = func(r katestest.Request) bool {
		return r.Resource != "namespaces" && !strings.Contains(r.Query.Get("labelSelector"), inProtobuf)
	}
	return m
}

// ofWatches makes a fault in open watches.
func (c *trouble) ofWatches(ctx context.Context, r *rand.Rand, resource string) {
	m := katestest.Match{Resource: resource, Verb: "watch"}
	some := c.faults.Now(m).Probability([]float64{0.3, 1}[r.IntN(2)])
	n := int64(r.IntN(2) * r.IntN(3000))
	switch r.IntN(6) {
	case 0:
		c.note(ctx, "watch delayed", r, some.Delay(time.Duration(r.IntN(1000))*time.Millisecond))
	case 1:
		c.note(ctx, "watch cut", r, some.Cut(n))
	case 2:
		c.note(ctx, "watch truncated", r, some.Truncate(n))
	case 3:
		c.note(ctx, "watch garbled", r, c.faults.Now(inJSON(m)).Corrupt(n))
	case 4:
		c.note(ctx, "watch stalled", r, some.Stall(n))
	case 5:
		rule := c.faults.On(katestest.Match{Resource: resource, Where: func(r katestest.Request) bool { return r.Verb == "watch" && !r.StreamedList() }}).
			Times(1+r.IntN(3)).Status(http.StatusGone, metav1.StatusReasonExpired, 0)
		some.Cut(n)
		c.note(ctx, "watch expired", r, rule)
	}
}

// ofReads makes a fault in future lists and watches, and causes some.
func (c *trouble) ofReads(ctx context.Context, r *rand.Rand, resource string) {
	m := katestest.Match{Resource: resource, Where: func(r katestest.Request) bool { return r.Verb == "list" || r.Verb == "watch" }}
	some := c.faults.On(m).Times(1 + r.IntN(6)).Probability(0.7)
	n := int64(r.IntN(2000))
	var name string
	var rule *katestest.Rule
	switch kind := r.IntN(7); kind {
	case 0, 1:
		code := []int{500, 503, 504, 502}[r.IntN(4)]
		name, rule = fmt.Sprint("read ", code), some.Status(code, "", 0)
	case 2:
		name, rule = "read 429", some.Status(http.StatusTooManyRequests, "", time.Duration(r.IntN(2))*time.Second)
	case 3:
		name, rule = "read lost", some.Lose()
	case 4:
		name, rule = "read delayed", some.Delay(time.Duration(r.IntN(1000))*time.Millisecond)
	case 5:
		name, rule = "read cut", some.Cut(n)
	case 6:
		name, rule = "read refused", some.Fail(nil)
	}
	if r.IntN(2) == 0 { // the client has to list
		expired := c.faults.On(katestest.Match{Resource: resource, Where: func(r katestest.Request) bool { return r.Verb == "watch" && !r.StreamedList() }}).
			Times(2).Status(http.StatusGone, metav1.StatusReasonExpired, 0)
		defer expired.Stop()
	}
	c.faults.Now(katestest.Match{Resource: resource, Verb: "watch"}).Cut(0)
	c.note(ctx, name, r, rule)
}

// ofWrites makes a fault in future writes. Writes that were sent have happened.
func (c *trouble) ofWrites(ctx context.Context, r *rand.Rand, resource string) {
	m := katestest.Match{Resource: resource, Where: func(r katestest.Request) bool {
		return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete"
	}}
	some := c.faults.On(m).Times(1 + r.IntN(3))
	n := int64(r.IntN(2) * r.IntN(400))
	switch r.IntN(8) {
	case 0, 1:
		c.note(ctx, "write's answer lost", r, some.Lose())
	case 2:
		c.note(ctx, "write's answer cut", r, some.Cut(n))
	case 3:
		c.note(ctx, "write's answer truncated", r, some.Truncate(n))
	case 4:
		c.note(ctx, "write's answer garbled", r, some.Corrupt(n))
	case 5:
		c.note(ctx, "write's answer held", r, some.HoldAnswer())
	case 6:
		code := []int{500, 503, 429}[r.IntN(3)]
		c.note(ctx, fmt.Sprint("write ", code), r, some.Status(code, "", time.Duration(r.IntN(2))*time.Second))
	case 7:
		c.note(ctx, "write held", r, some.Hold())
	}
}

// ofNetwork makes a fault in connections.
func (c *trouble) ofNetwork(ctx context.Context, r *rand.Rand) {
	heal := func() {}
	switch r.IntN(4) {
	case 0:
		c.count("connections frozen")
		heal = c.network.Freeze()
	case 1:
		c.count("connections reset")
		c.network.Reset()
	case 2:
		c.count("connections refused")
		heal = c.network.Refuse()
		c.network.Reset()
	case 3:
		c.count("network slow")
		c.network.Delay(time.Duration(r.IntN(100)) * time.Millisecond)
		heal = func() { c.network.Delay(0) }
	}
	pause(ctx, time.Duration(r.IntN(1000))*time.Millisecond)
	heal()
}

// byFault reports whether a write failed because of a fault, so that its outcome is unknown.
func byFault(err error) bool {
	var request *url.Error
	var connection net.Error
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) ||
		strings.Contains(err.Error(), "invalid character") || strings.Contains(err.Error(), "unexpected end of JSON") ||
		strings.Contains(err.Error(), "the server's answer ") || // it is no object, or no JSON
		strings.Contains(err.Error(), "0-length response") || // nothing is left of the answer
		strings.Contains(err.Error(), "reading response body") || // it ended in the middle, in HTTP/2 as well
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &request) || errors.As(err, &connection)
}

func TestAWriteIsOfUnknownOutcomeWhereItsAnswerEndsInTheMiddle(t *testing.T) {
	lost := errors.New("http2: client connection lost") // of no type that tells a fault
	assert.True(t, byFault(fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", lost)))
	assert.False(t, byFault(errors.New("no answer was read")))
}
