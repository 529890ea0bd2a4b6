package page

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// causes are the problems of a page by cause.
func causes(p *Page) map[string]Problem {
	all := map[string]Problem{}
	for _, of := range p.stateNow("").problems {
		all[of.Cause] = of
	}
	return all
}

func TestEachCauseIsSaidInWordsWithWhatToDo(t *testing.T) {
	f := full()
	f.sick = errors.New("a predicate does not end")
	f.made.Watches = append(f.made.Watches,
		&inspect.Watch{ID: 4, Name: "app.Third", Opened: time.Now().Add(-time.Minute), Incomplete: "Pods wait"},
		&inspect.Watch{ID: 5, Name: "each", Completed: time.Now(), Keys: &inspect.Keys{Resting: 1}})
	p, base := serve(t, client("one", f))
	for range 3 {
		p.requests.add(requestKind{"one", "patch", "apps", "v1", "deployments", ""}, time.Now(), kates.RequestResult{Code: 409})
	}
	p.requests.add(requestKind{"one", "create", "", "v1", "events", ""}, time.Now(), kates.RequestResult{Err: errors.New("refused")})
	p.recent.add("one", time.Now(), &kates.UpdateInfo{Watch: "app.Other", ID: 2, Duration: 3 * time.Second, Changes: 5})
	found := causes(p)
	for cause, says := range map[string]string{
		"forbidden": "forbids", "missing-kind": "does not serve", "retrying": "has failed", "incomplete": "no first snapshot",
		"half-open": "half-open", "pending-writes": "has not shown", "unsettled": "could not be asked", "invalid": "leave out",
		"slow-reader": "does not take snapshots", "no-worker": "wait for a worker", "resting": "rests after failures",
		"failing-call": "fails for key", "hung-call": "has not returned", "unhealthy": "hangs", "lease": "cannot lead", "failing-requests": "failed in the last minutes",
		"slow-update": "took 3.0 s",
	} {
		of, is := found[cause]
		if assert.True(t, is, cause) {
			assert.Contains(t, of.What, says)
			assert.NotEmpty(t, of.Do, cause)
			assert.NotEmpty(t, of.Link, cause)
			assert.Equal(t, "one", of.Client, cause)
		}
	}
	assert.Equal(t, Note, found["missing-kind"].Effect, "an optional kind is no failure")
	assert.Contains(t, found["half-open"].What, "3 min")
	body := ok(t, base)
	assert.Less(t, strings.Index(body, "forbids"), strings.Index(body, "has no first snapshot yet"), "what is wrong goes before what is late")
	for cause := range found {
		assert.Contains(t, body, "<code>"+cause+"</code>")
	}
}

func TestTheDocumentSaysWhatEachCauseMeans(t *testing.T) {
	document, err := os.ReadFile("../../docs/status-page.md")
	require.NoError(t, err)
	files, err := filepath.Glob("problems*.go")
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, of := range regexp.MustCompile(`Cause(: |[a-z., A-Z]* = )"([a-z-]+)"`).FindAllSubmatch(source, -1) {
			found++
			if cause := string(of[2]); cause != "more" {
				assert.Contains(t, string(document), "`"+cause+"`")
			}
		}
	}
	assert.Greater(t, found, 20)
}

func TestACauseIsSaidOnce(t *testing.T) {
	p, _ := serve(t, client("one", full()))
	found := causes(p)
	assert.NotContains(t, found, "incomplete", "its forbidden query is said")
	assert.NotContains(t, found, "resting", "its failing call is said")
}

func TestNothingIsWrongWithAClientThatDoesWell(t *testing.T) {
	now := time.Now()
	query := &inspect.Query{QueryStatus: kates.QueryStatus{Name: "Services", State: kates.StateSynced, Since: now.Add(-time.Hour), Heard: now}}
	absent := &inspect.Query{QueryStatus: kates.QueryStatus{Name: "Hosts", State: kates.StateListing, Since: now}}
	well := &fabricated{made: &inspect.Report{
		Watches: []*inspect.Watch{{
			ID: 1, Kind: inspect.OfSnapshots, Opened: now.Add(-time.Hour), Completed: now, Queries: []*inspect.Query{query, absent},
		}},
		Streams: []*inspect.Stream{{ID: 1, State: kates.StateSynced, Heard: now.Add(-time.Minute), Pending: 3, PendingSince: now}},
		Leaders: []kates.LeaderStatus{{Lease: "ns/l", Holder: "another"}},
		Loops:   []*inspect.Loop{{Name: "l", Running: []inspect.Call{{Since: now}}}},
	}}
	p, base := serve(t, client("one", well))
	p.requests.add(requestKind{"one", "get", "", "v1", "pods", ""}, time.Now(), kates.RequestResult{Code: 404})
	assert.Empty(t, causes(p))
	assert.Contains(t, ok(t, base), "Nothing: every watch is open")
}

// after is what is wrong when a stream has changed so, from one sample to the next, four times.
func after(t *testing.T, change func(s *inspect.Stream)) (found map[string]Problem) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := full()
		f.made.Streams = f.made.Streams[1:2]
		p := New(client("one", f))
		p.Close() // no samples but these
		p.history.series = nil
		for range 4 {
			time.Sleep(2 * time.Second)
			change(f.made.Streams[0])
			p.takeSample(time.Now())
		}
		found = causes(p)
	})
	return found
}

func TestTooManyListsAreExpensive(t *testing.T) {
	of := after(t, func(s *inspect.Stream) {
		s.Lists = map[inspect.ListReason]uint64{inspect.ListExpired: s.Lists[inspect.ListExpired] + 2}
	})["relists"]
	assert.Equal(t, Expensive, of.Effect)
	assert.Contains(t, of.Do, "expired")
}

func TestListsThatAreRefusedAreNotExpensive(t *testing.T) {
	found := after(t, func(s *inspect.Stream) {
		s.Lists = map[inspect.ListReason]uint64{inspect.ListFirst: 1, inspect.ListAgain: s.Lists[inspect.ListAgain] + 5}
	})
	assert.NotContains(t, found, "relists")
}

func TestAWatchThatWasHalfOpenIsAProblemForSomeMinutes(t *testing.T) {
	found := after(t, func(s *inspect.Stream) {
		s.Watches = map[inspect.WatchReason]uint64{inspect.WatchListed: 1, inspect.WatchIdle: s.Watches[inspect.WatchIdle] + 1}
		s.Heard = time.Now()
	})
	assert.Contains(t, found["half-open"].What, "opened again 3 times")
	assert.Contains(t, found["half-open"].What, "its changes come late", "what a reader has of it")
	assert.NotContains(t, after(t, func(s *inspect.Stream) { s.Heard = time.Now() }), "half-open")
}

func TestTheFirstListDoesNotFlattenATimeline(t *testing.T) {
	var line []point
	for i := range 100 {
		line = append(line, point{float64(i), 10})
	}
	line[0].value = 5000
	now := time.Unix(100, 0)
	p := panel("in", "per second", now, fineSpan, namedLine{"events in", line, true, rateText})
	assert.Equal(t, []float64{10, 5000}, []float64{p.Max, p.Peak})
	line[0].value = 40
	p = panel("in", "per second", now, fineSpan, namedLine{"events in", line, true, rateText})
	assert.Equal(t, []float64{50, 0}, []float64{p.Max, p.Peak})
}

func TestAFleetOfProblemsIsBounded(t *testing.T) {
	var options []Option
	for range 60 {
		options = append(options, client("c", full()))
	}
	p, base := serve(t, options...)
	assert.Len(t, p.stateNow("").problems, maxProblems+1)
	assert.Contains(t, ok(t, base), "more problems")
}

func TestSamplesComeEachSecondWhileSomebodyLooksAndSeldomOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := full()
		p := New(client("one", f))
		defer p.Close()
		samples := func() int {
			synctest.Wait()
			return len(p.history.line(clientSeries("one", "events"), coarseSpan-time.Second, time.Now())) +
				len(p.history.line(clientSeries("one", "events"), fineSpan, time.Now()))
		}
		samples()
		fine := func() int { return len(p.history.line(clientSeries("one", "events"), fineSpan, time.Now())) }
		time.Sleep(time.Minute)
		samples()
		assert.Equal(t, 7, fine())
		p.isLooked()
		time.Sleep(time.Minute)
		samples()
		assert.InDelta(t, 67, fine(), 2)
		time.Sleep(10 * time.Minute)
		samples()
		assert.InDelta(t, 30, fine(), 2, "nobody has looked for long")
	})
}

func TestATimelineHasTheRateOfTheLastSecondsAndTheHour(t *testing.T) {
	var h history
	began := time.Unix(1_000_000, 0)
	for i := range 4000 {
		h.add(began.Add(time.Duration(i)*time.Second), map[string]float64{"a": float64(i * 3), "b": 1})
	}
	now := began.Add(3999 * time.Second)
	fine, coarse := h.line("a", fineSpan, now), h.line("a", coarseSpan, now)
	assert.Len(t, fine, 300)
	assert.InDelta(t, 360, len(coarse), 1)
	rate, known := h.rate("a", now)
	assert.True(t, known)
	assert.InDelta(t, 3, rate, 0.001)
	for _, p := range append(rates(fine), rates(coarse)...) {
		require.InDelta(t, 3, p.value, 0.001)
	}
	assert.InDelta(t, 897, h.grown("a", fineSpan, now), 3)

	h.add(now.Add(time.Second), map[string]float64{"a": 0})
	assert.Nil(t, h.line("b", fineSpan, now), "what has ended is forgotten")
	for _, p := range rates(h.line("a", fineSpan, now.Add(time.Second))) {
		assert.GreaterOrEqual(t, p.value, 0.0, "a counter that begins anew does not go back")
	}
	_, known = h.rate("nothing", now)
	assert.False(t, known)
}

func TestTheNumberOfTimelinesIsBounded(t *testing.T) {
	var h history
	values := map[string]float64{}
	for i := range maxSeries + 50 {
		values[strings.Repeat("x", i)] = 1
	}
	for i := range 3 {
		h.add(time.Unix(int64(i), 0), values)
	}
	assert.Len(t, h.series, maxSeries)
	assert.True(t, h.isFull())
	h.add(time.Unix(9, 0), map[string]float64{"x": 1})
	assert.False(t, h.isFull())
}

func TestTheLastSnapshotsAreRememberedAndNoMore(t *testing.T) {
	p := New(Snapshots(3))
	defer p.Close()
	o, closed := p.join("one", empty())
	deltas := func(yield func(q, ns, n string, t kates.DeltaType) bool) {
		for range 1000 {
			if !yield("Services", "prod", "a", kates.ObjectUpdate) {
				return
			}
		}
	}
	for i := range 5 {
		o.Updated(kates.UpdateInfo{Watch: "w", ID: int64(i), Changes: 1000, Each: deltas})
	}
	o.Updated(kates.UpdateInfo{Watch: "w", ID: 9, Key: "k"}) // is tried again
	var ids []int64
	for _, s := range p.recent.last() {
		ids = append(ids, s.ID)
		assert.Len(t, s.Deltas, maxChanges)
		assert.Equal(t, 1000, s.Changes)
	}
	assert.Equal(t, []int64{4, 3, 2}, ids)
	closed()
	o.Updated(kates.UpdateInfo{ID: 10, Changes: 1})
	assert.Len(t, p.recent.last(), 3)
	assert.False(t, slices.ContainsFunc(p.recent.last(), func(s Snapshot) bool { return s.ID == 10 }))
	none := New(Snapshots(0))
	defer none.Close()
	o, _ = none.join("", empty())
	o.Updated(kates.UpdateInfo{ID: 10, Changes: 1})
	assert.Empty(t, none.recent.last())
}

func TestFailuresOfRequestsAreRecentForSomeMinutes(t *testing.T) {
	var r requests
	k := requestKind{"one", "patch", "apps", "v1", "deployments", "status"}
	at := time.Unix(1_000_000, 0)
	for range 4 {
		r.add(k, at, kates.RequestResult{Code: 409, Duration: time.Second})
		at = at.Add(time.Minute)
	}
	row := r.rows(at)[0]
	assert.Equal(t, "deployments.v1.apps/status", row.Resource)
	assert.Equal(t, []any{uint64(4), uint64(4), uint64(4), 409}, []any{row.All, row.Failed, row.FailedLately, row.LastCode})
	assert.InDelta(t, 1, row.Mean, 0.001)
	assert.EqualValues(t, 4, r.rows(at.Add(4 * time.Minute))[0].FailedLately)
	row = r.rows(at.Add(time.Hour))[0]
	assert.Equal(t, []uint64{0, 4}, []uint64{row.FailedLately, row.Failed})
	r.forget("one")
	assert.Empty(t, r.rows(at))
	for i := range maxRequestKinds + 10 {
		r.add(requestKind{Verb: strings.Repeat("x", i)}, at, kates.RequestResult{Code: 200})
	}
	assert.Len(t, r.rows(at), maxRequestKinds)
}
