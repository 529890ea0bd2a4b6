package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// ask tells an observer of a request and its answer.
func ask(t testing.TB, o kates.Observer, verb, resource, subresource string, code int) {
	info := kates.RequestInfo{Verb: verb, Resource: resource, Subresource: subresource}
	if resource != "" {
		info.Version = "v1"
	}
	_, answered := o.Request(t.Context(), info)
	answered(kates.RequestResult{Code: code})
}

func TestRequestsForWhatNobodyServesAreCountedAsOne(t *testing.T) {
	m := New()
	o, _ := m.add("", (&reporting{}).now)
	for i := range 3000 {
		ask(t, o, "get", fmt.Sprint("nonsense", i), "", 404)
		ask(t, o, "get", fmt.Sprint("nonsense", i), fmt.Sprint("sub", i), 403)
		ask(t, o, fmt.Sprint("verb", i), "pods", "", 405)
	}
	ask(t, o, "get", "pods", "", 200)
	ask(t, o, "get", "pods", "", 404)
	ask(t, o, "get", "pods", "status", 200)
	ask(t, o, "get", "pods", "status", 409)
	ask(t, o, "get", "pods", "nonsense", 404)
	ask(t, o, "get", "", "", 200)
	ask(t, o, "get", "pods", "", 0)
	ask(t, o, "get", "pods", "", 99999)
	assert.Equal(t, map[string]float64{
		",get,other,404": 3001, ",get,other,403": 3000, ",other,other,405": 3000,
		",get,pods.v1,200": 1, ",get,pods.v1,404": 1, ",get,pods.v1/status,200": 1, ",get,pods.v1/status,409": 1,
		",get,,200": 1, ",get,pods.v1,<error>": 1, ",get,pods.v1,other": 1,
	}, values(t, m, requests))
}

func TestARequestForWhatAStreamReadsHasItsNameThoughItIsRefused(t *testing.T) {
	m := New()
	r := &reporting{}
	r.Streams = []*inspect.Stream{{ID: 1, Resource: "secrets.v1"}}
	o, _ := m.add("", r.now)
	gathered(t, m)
	ask(t, o, "list", "secrets", "", 403)
	assert.Equal(t, map[string]float64{",list,secrets.v1,403": 1}, values(t, m, requests))
}

func TestNamesAreBoundedAndFitForPrometheus(t *testing.T) {
	m := New()
	r := &reporting{}
	o, _ := m.add("bad \xff name", r.now)
	long := strings.Repeat("ä", 1000)
	for i := range 1000 {
		w := watchOf(int64(i), fmt.Sprint("\xff", i, long), 1)
		w.Queries = []*inspect.Query{{QueryStatus: kates.QueryStatus{Name: w.Name}}}
		r.Watches = append(r.Watches, w)
		r.Loops = append(r.Loops, &inspect.Loop{Name: w.Name})
		r.Streams = append(r.Streams, &inspect.Stream{ID: int64(i), Resource: w.Name, Form: w.Name})
		o.Updated(kates.UpdateInfo{Watch: w.Name})
		_, returned := o.Call(t.Context(), kates.CallInfo{Loop: w.Name})
		returned(kates.CallResult{Outcome: kates.CallSucceeded})
	}
	signals := values(t, m, watchSignals)
	assert.Len(t, signals, maxNames+1)
	assert.Equal(t, float64(1000-maxNames), signals["bad ? name,other"], "the rest is counted together")
	for _, family := range gathered(t, m) {
		assert.LessOrEqual(t, len(family.GetMetric()), 8*(maxResources+1), family.GetName())
		for _, one := range family.GetMetric() {
			for _, l := range one.GetLabel() {
				assert.LessOrEqual(t, len(l.GetValue()), maxLength)
				assert.True(t, utf8.ValidString(l.GetValue()))
			}
		}
	}
}

func TestAKnownNameAllocatesNothing(t *testing.T) {
	l := newLabel(1)
	l.admit("a")
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.admit("a") }))
	assert.Equal(t, other, l.admit("b"))
}
