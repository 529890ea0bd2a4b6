package page

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// maxRequestKinds bounds the kinds of requests that are counted. There are as many as verbs and
// resources: a name is none.
const maxRequestKinds = 2000

// requestKind is what the requests of one row have in common.
type requestKind struct {
	Client, Verb, Group, Version, Resource, Subresource string
}

// RequestRow is how the requests of one kind have ended.
type RequestRow struct {
	Client   string         `json:"client"`
	Verb     string         `json:"verb"`
	Resource string         `json:"resource,omitempty"`
	All      uint64         `json:"all"`
	Failed   uint64         `json:"failed"`
	Codes    map[int]uint64 `json:"codes"` // 0: no answer
	// Mean and Longest are in seconds, to the header of the answer.
	Mean    float64 `json:"mean"`
	Longest float64 `json:"longest"`
	// LastFailed is when the last one has failed, with LastCode.
	LastFailed time.Time `json:"lastFailed,omitzero"`
	LastCode   int       `json:"lastCode,omitempty"`
	// FailedLately have failed since Lately, which is five to ten minutes ago.
	FailedLately uint64    `json:"failedLately"`
	Lately       time.Time `json:"lately,omitzero"`
	// Empty: it lists or watches what counts as empty for the program.
	Empty bool `json:"empty,omitempty"`

	spans
}

// spans are those in which failures are counted as recent: the present one, and the one before.
type spans struct {
	total       time.Duration
	failedNow   uint64 // since turned
	failedThen  uint64 // in the span before
	turned      time.Time
	turnedThen  time.Time
	failedFirst time.Time // of the failures that are counted
}

// requests counts requests. It keeps no names of objects and no texts.
type requests struct {
	mu  lockorder.Mutex[lockorder.PageRequests]
	all map[requestKind]*RequestRow
}

// lately is the span in which failures count as recent.
const lately = 5 * time.Minute

func (r *requests) add(of requestKind, at time.Time, result kates.RequestResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.all[of]
	if row == nil {
		if len(r.all) >= maxRequestKinds {
			return
		}
		if r.all == nil {
			r.all = map[requestKind]*RequestRow{}
		}
		row = &RequestRow{
			Client: of.Client, Verb: of.Verb, Resource: resourceOf(of), Codes: map[int]uint64{}, spans: spans{turned: at, turnedThen: at},
		}
		r.all[of] = row
	}
	row.turn(at)
	row.All++
	row.Codes[result.Code]++
	row.total += result.Duration
	row.Longest = max(row.Longest, result.Duration.Seconds())
	if failed(of.Verb, result.Code) {
		if row.failedNow+row.failedThen == 0 {
			row.failedFirst = at
		}
		row.Failed++
		row.failedNow++
		row.LastFailed, row.LastCode = at, result.Code
	}
}

// turn begins a new span if the present one is over.
func (r *RequestRow) turn(at time.Time) {
	switch over := at.Sub(r.turned); {
	case over >= 2*lately:
		r.failedThen, r.failedNow, r.turnedThen, r.turned = 0, 0, at, at
	case over >= lately:
		r.failedThen, r.failedNow, r.turnedThen, r.turned = r.failedNow, 0, r.turned, at
	}
}

// failed reports whether an answer is a failure. That there is no object is what a get asks for.
func failed(verb string, code int) bool {
	return code == 0 || code >= 400 && !(code == 404 && (verb == "get" || verb == "delete"))
}

func resourceOf(k requestKind) string {
	if k.Resource == "" {
		return ""
	}
	name := strings.TrimSuffix(k.Resource+"."+k.Version+"."+k.Group, ".")
	if k.Subresource != "" {
		name += "/" + k.Subresource
	}
	return name
}

// rows returns what was counted, by client, resource and verb.
func (r *requests) rows(now time.Time) []RequestRow {
	r.mu.Lock()
	var all []RequestRow
	for _, row := range r.all {
		row.turn(now)
		to := *row
		to.Codes = maps.Clone(row.Codes)
		to.Mean = row.total.Seconds() / float64(max(1, row.All))
		to.FailedLately, to.Lately = row.failedNow+row.failedThen, row.turnedThen
		all = append(all, to)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b RequestRow) int {
		return strings.Compare(a.Client+"\x00"+a.Resource+"\x00"+a.Verb, b.Client+"\x00"+b.Resource+"\x00"+b.Verb)
	})
	return all
}

// countsAsEmpty reports whether requests list or watch what is optional, and counts as empty.
func countsAsEmpty(s *state, r *RequestRow) bool {
	if r.Verb != "list" && r.Verb != "watch" {
		return false
	}
	for _, c := range s.clients {
		if c.member.name != r.Client {
			continue
		}
		empty := emptyStreams(c.Report)
		of := func(s *inspect.Stream) bool { return s.Resource == r.Resource }
		return slices.ContainsFunc(c.Report.Streams, func(s *inspect.Stream) bool { return of(s) && empty[s.ID] }) &&
			!slices.ContainsFunc(c.Report.Streams, func(s *inspect.Stream) bool { return of(s) && !empty[s.ID] })
	}
	return false
}

// forget drops the rows of a client that has left.
func (r *requests) forget(client string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.all, func(k requestKind, _ *RequestRow) bool { return k.Client == client })
}
