package page

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// dataOf is the data of a page's JSON.
func dataOf[T any](t *testing.T, url string) T {
	t.Helper()
	var of struct {
		Data T `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(ok(t, url, "Accept", "application/json")), &of))
	return of.Data
}

// rowOf is the row of a table that has an ID or a text.
func rowOf(t *testing.T, body, has string) string {
	t.Helper()
	for _, row := range regexp.MustCompile(`(?s)<tr.*?</tr>`).FindAllString(body, -1) {
		if strings.Contains(row, has) {
			return row
		}
	}
	require.Fail(t, "there is no such row", has)
	return ""
}

func TestAFailingCallSaysSinceWhenItFailsAndWhenItIsTriedAgain(t *testing.T) {
	f := full()
	f.made.Loops[0].Failing[0].Since = time.Now().Add(-7 * time.Minute)
	p, base := serve(t, client("one", f))
	of := causes(p)["failing-call"]
	assert.Equal(t, f.made.Loops[0].Failing[0].Since, of.Since)
	assert.Contains(t, of.What, "3 times in a row, last 1.")
	assert.Contains(t, of.Do, "tries again by itself in 5")
	assert.Contains(t, of.Do, "the pauses get longer")
	assert.Contains(t, ok(t, base), "Search the log for <code>c2</code>")
	assert.Contains(t, ok(t, base+"loops"), "7 min 0 s")
}

func TestTheSnapshotsColumnOfAnObjectThatIsLeftOutSaysSo(t *testing.T) {
	f := withConfigMap()
	key := inspect.ObjectKey{Namespace: "prod", Name: "a"}
	o := f.has[key]
	o.Invalid = "spec.size: want int"
	o.Shown = o.Streams[0].Watched
	o.Streams[0].Current, o.Streams[0].Write = o.Streams[0].Watched, nil
	f.has[key] = o
	_, base := serve(t, client("one", f))
	address := base + "object?query=Services&watch=2&namespace=prod&name=a"
	of := dataOf[ObjectPage](t, address)
	assert.Equal(t, Version{Title: "snapshot", Why: "left out"}, of.Versions[0])
	assert.Zero(t, of.Differing)
	body := ok(t, address)
	assert.NotContains(t, body, "fields are the same")
	assert.Contains(t, body, "left out")

	changed := o.Streams[0].Watched.(*kates.Unstructured).DeepCopy()
	changed.SetLabels(map[string]string{"another": "value"})
	o.Streams[0].Current = changed
	assert.Positive(t, dataOf[ObjectPage](t, address).Differing, "the own write")
}

func TestAWatchIsSilentOnlyAfterTheTimeOfARealServersFirstBookmark(t *testing.T) {
	for _, c := range []struct {
		heard time.Duration
		is    bool
	}{{115 * time.Second, false}, {126 * time.Second, true}} {
		f := full()
		f.made.Streams[0].Heard = time.Now().Add(-c.heard)
		p, _ := serve(t, client("one", f))
		_, is := causes(p)["half-open"]
		assert.Equal(t, c.is, is, c.heard)
	}
}

func TestASilentWatchSaysWhetherOthersGetBookmarksAndItsRowsAreWarnings(t *testing.T) {
	f := full()
	s := f.made.Streams[0]
	s.Events, s.Bookmarks = 0, 0
	p, base := serve(t, client("one", f))
	of := causes(p)["half-open"]
	assert.Equal(t, s.Since, of.Since, "nothing has ever come")
	assert.Contains(t, of.Do, "A server that sends no bookmarks looks like this")
	assert.Contains(t, of.What, "snapshots lack what has changed since", "what a reader has of it")
	f.made.Streams[1].Bookmarks = 4
	of = causes(p)["half-open"]
	assert.Contains(t, of.Do, "Other watches of this client get bookmarks")
	assert.NotContains(t, of.Do, "A server that sends no bookmarks")
	s.Events = 1
	assert.Equal(t, s.Heard, causes(p)["half-open"].Since)

	for _, page := range []string{"streams", "queries"} {
		assert.Contains(t, rowOf(t, ok(t, base+page), "services"), `class="state quiet"`, page)
		assert.Contains(t, rowOf(t, ok(t, base+page), "secrets"), `class="state synced"`, page)
	}
}

func TestAQueryThatCountsAsEmptyIsNoFailureOnAnyPage(t *testing.T) {
	f := full()
	f.made.Streams = append(f.made.Streams, &inspect.Stream{ID: 4, Resource: "mappings.v2.getambassador.io", State: kates.StateForbidden})
	p, base := serve(t, client("one", f))
	p.requests.add(requestKind{"one", "list", "getambassador.io", "v2", "mappings", ""}, time.Now(), kates.RequestResult{Code: 403})
	p.requests.add(requestKind{"one", "list", "getambassador.io", "v2", "hosts", ""}, time.Now(), kates.RequestResult{Code: 403})
	for _, page := range []string{"queries", "streams"} {
		row := rowOf(t, ok(t, base+page), "mappings")
		assert.Contains(t, row, `class="state empty"`, page)
		assert.Contains(t, row, "counts as empty", page)
	}
	row := rowOf(t, ok(t, base+"requests"), "mappings")
	assert.NotContains(t, row, "bad")
	assert.Contains(t, row, "counts as empty")
	assert.Contains(t, rowOf(t, ok(t, base+"requests"), "hosts"), "bad")
	assert.Contains(t, rowOf(t, ok(t, base), "10.0.0.1"), "2 incomplete, 1 counts as empty")
}

func TestTheCardOfInvalidObjectsNamesOne(t *testing.T) {
	f := full()
	f.bad = append(f.bad, inspect.InvalidObject{ObjectKey: inspect.ObjectKey{Namespace: "prod", Name: "b"}, Why: "x"})
	p, base := serve(t, client("one", f))
	of := causes(p)["invalid"]
	assert.Equal(t, "prod/bad: spec.replicas: want int32\nand 1 more", of.Detail)
	assert.Contains(t, rowOf(t, ok(t, base+"queries"), "services"), "of which 2 invalid")
	body := ok(t, base+"objects?query=Services&watch=2")
	assert.Regexp(t, `prod/b</a> <span class="bad">`, body)
	assert.NotRegexp(t, `prod/a</a> <span class="bad">`, body)

	hides, _ := serve(t, client("one", f), RedactText(func(string) string { return "nothing" }))
	assert.Equal(t, "prod/bad: nothing\nand 1 more", causes(hides)["invalid"].Detail)
}

func TestTheOnlyClientIsNotNamedIfItHasNoName(t *testing.T) {
	_, alone := serve(t, client("", full()))
	_, named := serve(t, client("eu", full()))
	for _, page := range []string{"", "queries", "streams", "loops", "journal", "requests"} {
		assert.NotRegexp(t, `>client[,<]`, ok(t, alone+page), page)
	}
	assert.Contains(t, ok(t, named), ">eu<")
}

func TestSnapshotsCanBeThoseOfOneWatchAndQuickOnesDoNotPushTheOthersOut(t *testing.T) {
	p, base := serve(t, client("one", empty()), Snapshots(4))
	for i := range 20 {
		p.recent.add("one", time.Now(), &kates.UpdateInfo{Watch: "each", ID: 1, Key: string(rune('a' + i)), Changes: 1})
		if i < 2 {
			p.recent.add("one", time.Now(), &kates.UpdateInfo{Watch: "whole", ID: 2, Changes: 7})
		}
	}
	assert.Len(t, dataOf[[]Snapshot](t, base+"snapshots"), 4)
	whole := dataOf[[]Snapshot](t, base+"snapshots?watch=2")
	require.Len(t, whole, 2, "each watch keeps its share")
	assert.Equal(t, "whole", whole[0].Watch)
	body := ok(t, base+"snapshots?watch=1")
	assert.Contains(t, body, `href="./snapshots?watch=2"`)
	assert.Contains(t, body, `href="./snapshots"`)
	assert.Equal(t, []string{"t", "s"}, []string{
		dataOf[[]Snapshot](t, base+"snapshots?watch=1")[0].Key, dataOf[[]Snapshot](t, base+"snapshots?watch=1")[1].Key,
	})
}

func TestThePagesOfQueriesAndStreamsExplainTheirWords(t *testing.T) {
	_, base := serve(t, client("one", full()))
	for _, page := range []string{"queries", "streams"} {
		body := ok(t, base+page)
		for _, word := range []string{"Words on this page", "Coalesced", "Lag", "Signals", "Half-open", "Typed from protobuf"} {
			assert.Contains(t, body, word, page)
		}
		for _, reason := range []string{
			string(inspect.ListExpired), string(inspect.ListOwnWrites), string(inspect.ListNoRoom), string(inspect.WatchIdle), string(inspect.WatchShort),
		} {
			assert.Contains(t, body, "<code>"+reason+"</code>", page)
		}
	}
}

func TestACallWithoutAKeySaysSo(t *testing.T) {
	f := full()
	f.made.Loops[0].Running[0].Key = ""
	_, base := serve(t, client("one", f))
	assert.Contains(t, ok(t, base+"loops"), "(it has no keys)")
	f.made.Loops[0].Running[0].Key = "shop"
	assert.NotContains(t, ok(t, base+"loops"), "(it has no keys)")
}

func TestOnceIsNotATime(t *testing.T) {
	assert.Equal(t, "once", times(1))
	assert.Equal(t, "2 times", times(2))
}

func TestAMomentAgoIsNow(t *testing.T) {
	now := time.Now()
	assert.Equal(t, "now", past(now, now))
	assert.Equal(t, "1.0 s ago", past(now, now.Add(-time.Second)))
	assert.Equal(t, "now", ago(now, now.Add(time.Second)))
}

func TestANameBreaksAtDotsAndSlashesAndIsEscaped(t *testing.T) {
	assert.Equal(t, "a.<wbr>b/<wbr>&lt;c&gt;", string(breaks("a.b/<c>")))
}
