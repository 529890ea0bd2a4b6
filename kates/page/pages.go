package page

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// maxRows bounds the rows of a table. A fleet has more: its clusters can be looked at one by one.
const maxRows = 500

// kindOfPage is one of the pages.
type kindOfPage struct {
	name, title string
	data        func(p *Page, s *state, ask url.Values) any
	// hidden: it has no place in the navigation.
	hidden bool
	// form: the page is about what its own form asks for.
	form bool
}

var pages = []kindOfPage{
	{name: "", title: "Overview", data: overview},
	{name: "queries", title: "Queries", data: queries},
	{name: "snapshots", title: "Snapshots", data: snapshots},
	{name: "objects", title: "Objects", data: objectsData, form: true},
	{name: "streams", title: "Streams", data: streams},
	{name: "journal", title: "Journal", data: journal},
	{name: "partitions", title: "Partitions", data: partitions},
	{name: "loops", title: "Controllers", data: loops},
	{name: "derived", title: "Derived", data: derivedData, form: true},
	{name: "leaders", title: "Leaders", data: leaders},
	{name: "requests", title: "Requests", data: requestsData},
	{name: "object", title: "Object", data: objectData, hidden: true, form: true},
}

// Overview is the first page.
type Overview struct {
	Problems []Problem            `json:"problems"`
	Clients  []ClientRow          `json:"clients"`
	Sources  []fleet.SourceStatus `json:"sources,omitempty"`
	Timeline Chart                `json:"timeline"`
	// Names of the client, if there is one, whose timeline it is.
	Of string `json:"of,omitempty"`
}

// ClientRow is a client, or a cluster of a fleet.
type ClientRow struct {
	Name     string        `json:"name"`
	Server   string        `json:"server,omitempty"`
	Health   *fleet.Health `json:"health,omitempty"`
	Watches  int           `json:"watches"`
	Complete int           `json:"complete"`
	Queries  int           `json:"queries"`
	// Incomplete queries are not open; Empty ones neither, but they are optional, and count as
	// empty.
	Incomplete int      `json:"incomplete,omitempty"`
	Empty      int      `json:"empty,omitempty"`
	Streams    int      `json:"streams"`
	Objects    int      `json:"objects"`
	Bytes      int64    `json:"bytes"`
	Pending    int      `json:"pending"`
	Problems   int      `json:"problems"`
	Events     *float64 `json:"eventsPerSecond,omitempty"`
	Snapshots  *float64 `json:"snapshotsPerSecond,omitempty"`
}

func overview(p *Page, s *state, ask url.Values) any {
	to := Overview{Problems: s.problems}
	health := map[string]*fleet.Health{}
	for _, f := range s.fleets {
		to.Sources = append(to.Sources, f.Sources...)
		for _, c := range f.Clusters {
			health[c.Name] = &c.Health
		}
	}
	var in, away, out, changed [][]point
	span := spanOf(ask)
	for _, c := range s.asked {
		to.Clients = append(to.Clients, p.clientRow(c, s, health[c.member.name]))
		delete(health, c.member.name)
		for what, lines := range map[string]*[][]point{
			"events": &in, "coalesced": &away, "snapshots": &out, "changes": &changed,
		} {
			*lines = append(*lines, rates(p.history.line(clientSeries(c.member.name, what), span, s.at)))
		}
	}
	if ask.Get("client") == "" {
		for name, h := range health { // clusters without a client
			to.Clients = append(to.Clients, ClientRow{Name: name, Health: h})
		}
	} else {
		to.Of = ask.Get("client")
		to.Problems = slices.DeleteFunc(slices.Clone(s.problems), func(p Problem) bool { return p.Client != to.Of })
	}
	slices.SortStableFunc(to.Clients, func(a, b ClientRow) int {
		return cmp.Or(cmp.Compare(b.Problems, a.Problems), cmp.Compare(a.Name, b.Name))
	})
	if to.Problems == nil {
		to.Problems = []Problem{}
	}
	to.Clients = cut(to.Clients)
	to.Timeline = shedding(s.at, span, summed(in), summed(away), summed(out), summed(changed))
	return to
}

func (p *Page) clientRow(c clientState, s *state, h *fleet.Health) ClientRow {
	row := ClientRow{
		Name: c.member.name, Server: c.Report.Server, Health: h,
		Watches: len(c.Report.Watches), Streams: len(c.Report.Streams),
		Events:    p.rate(clientSeries(c.member.name, "events"), s.at),
		Snapshots: p.rate(clientSeries(c.member.name, "snapshots"), s.at),
	}
	for _, w := range c.Report.Watches {
		row.Queries += len(w.Queries)
		for _, q := range w.Queries {
			if q.Absent {
				row.Empty++
			} else if q.State != kates.StateSynced {
				row.Incomplete++
			}
		}
		if !w.Completed.IsZero() {
			row.Complete++
		}
	}
	for _, of := range c.Report.Streams {
		row.Objects, row.Bytes, row.Pending = row.Objects+of.Objects, row.Bytes+of.Bytes, row.Pending+of.Pending
	}
	for _, of := range s.problems {
		if of.Client == row.Name && of.Effect != Note {
			row.Problems++
		}
	}
	return row
}

// rate is nil if it is not known yet.
func (p *Page) rate(series string, now time.Time) *float64 {
	if v, known := p.history.rate(series, now); known {
		return &v
	}
	return nil
}

func cut[T any](all []T) []T { return all[:min(len(all), maxRows)] }

// WatchRow is a watch with its rates.
type WatchRow struct {
	Client string `json:"client"`
	*inspect.Watch
	SnapshotRate *float64   `json:"snapshotsPerSecond,omitempty"`
	EventRate    *float64   `json:"eventsPerSecond,omitempty"`
	Rows         []QueryRow `json:"queries"`
	Timeline     *Chart     `json:"timeline,omitempty"`
	Element      string     `json:"-"`
}

// QueryRow is a query with its rate.
type QueryRow struct {
	*inspect.Query
	// Silent: a watch of it has brought nothing for too long.
	Silent    bool     `json:"silent,omitempty"`
	EventRate *float64 `json:"eventsPerSecond,omitempty"`
	Element   string   `json:"-"`
}

// maxCharts bounds the timelines of the page of queries.
const maxCharts = 20

func queries(p *Page, s *state, ask url.Values) any {
	to := []WatchRow{}
	span := spanOf(ask)
	for _, c := range s.asked {
		for _, w := range c.Report.Watches {
			row := WatchRow{
				Client: c.member.name, Watch: w, Element: watchID(w),
				SnapshotRate: p.rate(watchSeries(w.ID, "snapshots"), s.at), EventRate: p.rate(watchSeries(w.ID, "events"), s.at),
			}
			for _, q := range w.Queries {
				silent := slices.ContainsFunc(q.Streams, func(id int64) bool {
					of := streamOf(c.Report, id)
					return of != nil && p.isSilent(of, s.at)
				})
				row.Rows = append(row.Rows, QueryRow{q, silent, p.rate(querySeries(w.ID, q.Name, "events"), s.at), queryID(w, q)})
			}
			if len(to) < maxCharts && w.Kind != inspect.OfLister {
				line := func(what string) []point { return rates(p.history.line(watchSeries(w.ID, what), span, s.at)) }
				chart := shedding(s.at, span, line("events"), line("coalesced"), line("snapshots"), line("changes"))
				row.Timeline = &chart
			}
			to = append(to, row)
		}
	}
	return cut(to)
}

// StreamsPage has the streams, and how old each is.
type StreamsPage struct {
	Streams   []StreamRow `json:"streams"`
	Staleness Chart       `json:"staleness"`
}

// StreamRow is a stream with its rate.
type StreamRow struct {
	Client string `json:"client"`
	*inspect.Stream
	// Silent: it has brought nothing for too long. Empty: all its queries are optional, and count
	// as empty.
	Silent    bool     `json:"silent,omitempty"`
	Empty     bool     `json:"empty,omitempty"`
	EventRate *float64 `json:"eventsPerSecond,omitempty"`
	Element   string   `json:"-"`
}

func streams(p *Page, s *state, ask url.Values) any {
	to := StreamsPage{Streams: []StreamRow{}}
	for _, c := range s.asked {
		empty := emptyStreams(c.Report)
		for _, of := range c.Report.Streams {
			to.Streams = append(to.Streams, StreamRow{
				Client: c.member.name, Stream: of, Silent: p.isSilent(of, s.at), Empty: empty[of.ID],
				EventRate: p.rate(streamSeries(of.ID, "events"), s.at), Element: streamID(of),
			})
		}
	}
	to.Staleness = p.staleness(s.at, spanOf(ask), to.Streams)
	to.Streams = cut(to.Streams)
	return to
}

// JournalPage has the own writes that no watch has shown yet.
type JournalPage struct {
	Streams []StreamRow    `json:"streams"` // that have some
	Writes  []PendingWrite `json:"writes"`
}

// PendingWrite is an own write, and why it is pending.
type PendingWrite struct {
	inspect.OwnWrite
	Client   string `json:"client"`
	Stream   int64  `json:"stream"`
	Resource string `json:"resource,omitempty"`
	Why      string `json:"why"`
}

func journal(_ *Page, s *state, _ url.Values) any {
	to := JournalPage{Streams: []StreamRow{}, Writes: []PendingWrite{}}
	for _, c := range s.asked {
		for _, of := range c.Report.Streams {
			if of.Pending == 0 && of.Unsettled == 0 && len(of.Writes) == 0 {
				continue
			}
			to.Streams = append(to.Streams, StreamRow{Client: c.member.name, Stream: of, Element: streamID(of)})
			for _, w := range of.Writes {
				to.Writes = append(to.Writes, PendingWrite{w, c.member.name, of.ID, nameOf(of), whyPending(w, of)})
			}
		}
	}
	slices.SortStableFunc(to.Writes, func(a, b PendingWrite) int { return a.Since.Compare(b.Since) })
	to.Streams, to.Writes = cut(to.Streams), cut(to.Writes)
	return to
}

func partitions(_ *Page, s *state, _ url.Values) any {
	to := []WatchRow{}
	for _, c := range s.asked {
		for _, w := range c.Report.Watches {
			if w.Keys != nil {
				to = append(to, WatchRow{Client: c.member.name, Watch: w, Element: watchID(w)})
			}
		}
	}
	return cut(to)
}

// LoopRow is a loop of a client.
type LoopRow struct {
	Client string `json:"client"`
	*inspect.Loop
	Element string `json:"-"`

	FailingKeys []failingKey `json:"-"`
}

// failingKey is a key that fails, and until when it rests.
type failingKey struct {
	inspect.Failure
	Until time.Time
}

func loops(_ *Page, s *state, _ url.Values) any {
	to := []LoopRow{}
	for _, c := range s.asked {
		for _, l := range c.Report.Loops {
			row := LoopRow{Client: c.member.name, Loop: l, Element: loopID(l)}
			for _, of := range l.Failing {
				row.FailingKeys = append(row.FailingKeys, failingKey{of, restsUntil(c.Report, l, of.Key)})
			}
			to = append(to, row)
		}
	}
	return cut(to)
}

// LeadersPage has elections, and places among shards.
type LeadersPage struct {
	Leaders []LeaderRow `json:"leaders"`
	Shards  []ShardRow  `json:"shards"`
}

// LeaderRow is an election of a client.
type LeaderRow struct {
	Client string `json:"client"`
	kates.LeaderStatus
}

// ShardRow is a place of a client among shards.
type ShardRow struct {
	Client string `json:"client"`
	kates.ShardStatus
}

func leaders(_ *Page, s *state, _ url.Values) any {
	to := LeadersPage{Leaders: []LeaderRow{}, Shards: []ShardRow{}}
	for _, c := range s.asked {
		for _, l := range c.Report.Leaders {
			to.Leaders = append(to.Leaders, LeaderRow{c.member.name, l})
		}
		for _, of := range c.Report.Shards {
			to.Shards = append(to.Shards, ShardRow{c.member.name, of})
		}
	}
	to.Leaders, to.Shards = cut(to.Leaders), cut(to.Shards)
	return to
}

// snapshotsPage has the last snapshots, and the watches to choose from. Its JSON is that of the
// snapshots.
type snapshotsPage struct {
	Rows    []Snapshot
	Watches []Snapshot // one of each
	Chosen  int64
}

func (s snapshotsPage) MarshalJSON() ([]byte, error) { return json.Marshal(s.Rows) }

func snapshots(_ *Page, s *state, ask url.Values) any {
	to := snapshotsPage{Rows: []Snapshot{}}
	to.Chosen, _ = strconv.ParseInt(ask.Get("watch"), 10, 64)
	known := map[int64]bool{}
	for _, of := range s.recent {
		if name := ask.Get("client"); name != "" && name != of.Client {
			continue
		}
		if !known[of.ID] {
			known[of.ID] = true
			to.Watches = append(to.Watches, of)
		}
		if to.Chosen == 0 || to.Chosen == of.ID {
			to.Rows = append(to.Rows, of)
		}
	}
	slices.SortFunc(to.Watches, func(a, b Snapshot) int { return cmp.Compare(a.ID, b.ID) })
	return to
}

func requestsData(_ *Page, s *state, ask url.Values) any {
	to := []RequestRow{}
	for _, r := range s.requests {
		r.Empty = countsAsEmpty(s, &r)
		if name := ask.Get("client"); name == "" || name == r.Client {
			to = append(to, r)
		}
	}
	return cut(to)
}

func objectsData(p *Page, s *state, ask url.Values) any { return p.objectsPage(s.clients, ask) }

func objectData(p *Page, s *state, ask url.Values) any { return p.objectPage(s.clients, ask) }
