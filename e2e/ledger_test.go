package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/kates"
)

// ledger has the calls of own writers. Each request of a call carries the call's number to the
// API servers, whose audit logs tell what became of it. A nil ledger keeps nothing.
type ledger struct {
	client string // as in the user's name

	mu    sync.Mutex
	calls map[int]*ownCall
	last  int
	over  int // the calls up to this one are judged and forgotten
}

// ownCall is one call of an own writer.
type ownCall struct {
	verb         string
	id           id
	began, ended time.Time
	err          error
	sent         int // requests that write
	landed       int // of these, how many the audit logs say were answered with success
}

type callNumber struct{}

// begin enters a call, whose requests are to have the context that o has then.
func (l *ledger) begin(o *ownWrite, verb string) (ended func(error)) {
	if l == nil {
		return func(error) {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	c := &ownCall{verb: verb, id: o.id, began: time.Now()}
	l.calls[l.last] = c
	o.ctx = context.WithValue(o.ctx, callNumber{}, l.last)
	return func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.ended, c.err = time.Now(), err
	}
}

// numbered is a transport that writes the call's number into each request that writes.
type numbered struct {
	*ledger
	next http.RoundTripper
}

const auditHeader = "Audit-ID"

func (n numbered) RoundTrip(r *http.Request) (*http.Response, error) {
	number, ok := r.Context().Value(callNumber{}).(int)
	if ok && r.Method != http.MethodGet {
		n.mu.Lock()
		c := n.calls[number]
		c.sent++
		name := fmt.Sprintf("%s-%d-%d", n.client, number, c.sent)
		n.mu.Unlock()
		r = r.Clone(r.Context())
		r.Header.Set(auditHeader, name)
	}
	return n.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport whose connections it closes.
func (n numbered) WrappedRoundTripper() http.RoundTripper { return n.next }

// audit enters what an API server's log says. A write of the client that no call has made is an
// error.
func (l *ledger) audit(e auditEvent) error {
	if e.User.Username != l.client || e.ResponseStatus == nil || e.ResponseStatus.Code >= 300 || strings.Contains(e.RequestURI, "dryRun=") {
		return nil
	}
	number, ok := strings.CutPrefix(e.AuditID, l.client+"-")
	number, _, _ = strings.Cut(number, "-")
	n, err := strconv.Atoi(number)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok && err == nil && 0 < n && n <= l.over {
		return nil // it returned an error, and a server that was paused or slow has written its log late
	}
	c := l.calls[n]
	if !ok || err != nil || c == nil {
		return fmt.Errorf("audit: nobody asked %s for this: %s %s (%s)", l.client, e.Verb, e.RequestURI, e.AuditID)
	}
	c.landed++
	return nil
}

// silent are the verbs that may end well without a write that the ledger knows of.
var silent = map[string]bool{"list": true, "observe": true, "dry run": true, "delete what the server named": true}

// judge compares what the calls returned with what the audit logs say, and forgets the calls. cut
// reports whether a server may have been killed, between two times, before it wrote its log.
func (l *ledger) judge(cut func(from, to time.Time) bool) (judged, unknown int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for n, c := range l.calls {
		said := fmt.Sprintf("audit: %s-%d, %s of %v, %d requests, %d with success, returned %v", l.client, n, c.verb, c.id, c.sent, c.landed, c.err)
		switch {
		case c.ended.IsZero():
			errs = append(errs, fmt.Errorf("%s: it has not ended", said))
		case (c.verb == "create" || c.verb == "create again" || c.verb == "generateName") && c.landed > 1:
			errs = append(errs, fmt.Errorf("%s: a create was repeated", said))
		case c.err == nil && c.verb == "upsert" && c.sent == 0: // the client knew that nothing would change
		case c.err == nil && c.landed == 0 && !silent[c.verb] && !cut(c.began, c.ended):
			errs = append(errs, fmt.Errorf("%s: nothing was written", said))
		case c.err != nil && refused(c.err) && c.landed > 0:
			errs = append(errs, fmt.Errorf("%s: it was written", said))
		case c.err == nil && c.landed == 0 && !silent[c.verb]:
			unknown++
		}
		judged++
	}
	return judged, unknown, errors.Join(errs...)
}

// forget drops all calls, which have ended and were judged.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.calls)
	l.over = l.last
}

// refused reports whether an error says that nothing was written.
func refused(err error) bool {
	return kates.IsNotFound(err) || apierrors.IsAlreadyExists(err) || kates.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

func TestTheAuditLogsTellWhatBecameOfEachCall(t *testing.T) {
	conflict := apierrors.NewConflict(configMaps.GroupResource(), "a", errors.New("another version"))
	for name, c := range map[string]struct {
		ownCall
		cut  bool
		want string
	}{
		"it was made":                       {ownCall: ownCall{verb: "update", landed: 1}},
		"it was not made":                   {ownCall: ownCall{verb: "update"}, want: "nothing was written"},
		"the server was killed meanwhile":   {ownCall: ownCall{verb: "update"}, cut: true},
		"it writes nothing":                 {ownCall: ownCall{verb: "dry run"}},
		"nothing was to be changed":         {ownCall: ownCall{verb: "upsert"}},
		"it was sent, and not made":         {ownCall: ownCall{verb: "upsert", sent: 1}, want: "nothing was written"},
		"it was refused":                    {ownCall: ownCall{verb: "update", err: conflict}},
		"it was refused, and made":          {ownCall: ownCall{verb: "update", err: conflict, landed: 1}, want: "it was written"},
		"its outcome is unknown":            {ownCall: ownCall{verb: "create", err: io.EOF, landed: 1}},
		"it was made twice":                 {ownCall: ownCall{verb: "generateName", landed: 2}, want: "a create was repeated"},
		"its end is unknown, and was twice": {ownCall: ownCall{verb: "create", err: io.EOF, landed: 2}, want: "a create was repeated"},
	} {
		c.began, c.ended = time.Now(), time.Now()
		l := &ledger{client: "me", calls: map[int]*ownCall{1: &c.ownCall}}
		_, _, err := l.judge(func(time.Time, time.Time) bool { return c.cut })
		if c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.want, name)
		}
	}
}

func TestAWriteThatNobodyAskedForIsNoticed(t *testing.T) {
	l := &ledger{client: "me", calls: map[int]*ownCall{7: {}}}
	event := auditEvent{Verb: "create", AuditID: "me-7-1"}
	event.User.Username = "me"
	event.ResponseStatus = &struct {
		Code int32 `json:"code"`
	}{201}
	require.NoError(t, l.audit(event))
	assert.Equal(t, 1, l.calls[7].landed)
	event.AuditID = "me-8-1"
	require.ErrorContains(t, l.audit(event), "nobody asked")
	event.AuditID = "its own"
	require.ErrorContains(t, l.audit(event), "nobody asked")
	event.User.Username = "another"
	require.NoError(t, l.audit(event))

	l.last = 7
	l.forget()
	event.User.Username, event.AuditID = "me", "me-7-1"
	require.NoError(t, l.audit(event), "the log of a call that is forgotten comes late")
	event.AuditID = "me-8-1"
	require.ErrorContains(t, l.audit(event), "nobody asked")
}
