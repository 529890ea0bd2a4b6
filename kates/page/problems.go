package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// Effect is what a problem does to snapshots.
type Effect string

// The effects, the worst first.
const (
	Wrong     Effect = "wrong"     // something is missing, failing, or not as it should be
	Late      Effect = "late"      // something is older than it should be
	Expensive Effect = "expensive" // it costs more than it should
	Note      Effect = "note"      // nothing is to be done, unless it is not meant so
)

var effects = []Effect{Wrong, Late, Expensive, Note}

// Problem is a cause of a late, wrong or expensive snapshot.
type Problem struct {
	// Cause is a word for programs: "forbidden", "half-open".
	Cause  string `json:"cause"`
	Effect Effect `json:"effect"`
	Client string `json:"client,omitempty"`
	// What is wrong, in plain words, since when, and what to do.
	What  string    `json:"what"`
	Since time.Time `json:"since,omitzero"`
	Do    string    `json:"do"`
	// ID of a call, which its lines of the log have. Do names it.
	ID string `json:"id,omitempty"`
	// Detail is the text of an error, or the like.
	Detail string `json:"detail,omitempty"`
	// Link to the page that has the details.
	Link string `json:"link,omitempty"`
}

// When something is worth a word.
const (
	slowFirst    = 10 * time.Second  // a first list, or a first snapshot
	quietWatch   = 125 * time.Second // the first bookmark of a server may take nearly two minutes
	slowWrite    = 10 * time.Second  // an own write that no watch has shown
	slowReader   = 10 * time.Second  // changes that no Update has taken
	slowWorker   = 10 * time.Second  // a key that waits for a worker
	hungCall     = time.Minute
	slowUpdate   = time.Second
	manyLists    = 3 // in five minutes
	manyWatches  = 15
	oftenFailing = 3 // requests, in five minutes
	maxProblems  = 200
)

// finder collects problems.
type finder struct {
	page *Page
	at   time.Time
	all  []Problem
}

func (f *finder) add(p Problem) { f.all = append(f.all, p) }

// age is how long ago a time was; 0 if it is not known.
func (f *finder) age(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return f.at.Sub(t)
}

// problems returns what is wrong, the worst first, and then what has lasted longest.
func (p *Page) problems(s *state) []Problem {
	f := &finder{page: p, at: s.at}
	for _, of := range s.fleets {
		f.fleet(of)
	}
	for _, c := range s.clients {
		f.client(c)
	}
	for _, of := range s.graphs {
		f.derived(of)
	}
	f.requests(s.requests)
	f.updates(s.recent)
	slices.SortStableFunc(f.all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(slices.Index(effects, a.Effect), slices.Index(effects, b.Effect)), a.Since.Compare(b.Since))
	})
	if n := len(f.all); n > maxProblems {
		f.all = append(f.all[:maxProblems], Problem{
			Cause: "more", Effect: Note, What: fmt.Sprintf("There are %d more problems.", n-maxProblems),
			Do: "Look at those above first.",
		})
	}
	return f.all
}

func (f *finder) client(c clientState) {
	if c.unhealthy != "" {
		f.add(Problem{
			Cause: "unhealthy", Effect: Wrong, Client: c.member.name, Detail: c.unhealthy, Link: link("loops", "client", c.member.name),
			What: "The client is not healthy: something hangs that nothing else ends.",
			Do:   "A goroutine dump shows where. A liveness probe on Client.Healthz restarts the program.",
		})
	}
	for _, s := range c.Report.Streams {
		f.stream(c, s)
	}
	for _, w := range c.Report.Watches {
		f.watch(c, w)
		for _, q := range w.Queries {
			f.query(c, w, q)
		}
	}
	for _, l := range c.Report.Loops {
		f.loop(c, l)
	}
	f.leases(c)
}

// query says what is wrong with the state of a query.
func (f *finder) query(c clientState, w *inspect.Watch, q *inspect.Query) {
	p := Problem{
		Effect: Wrong, Client: c.member.name, Since: q.Since, Detail: q.Error,
		Link: link("queries", "client", c.member.name) + "#" + queryID(w, q),
	}
	what := fmt.Sprintf("%s (query %s of %s)", q.Kind, quoted(q.Name), w.Name)
	incomplete := w.Completed.IsZero()
	stays := " What was shown stays, and grows old."
	if incomplete {
		stays = " The first snapshot waits for it."
	}
	switch q.State {
	case kates.StateForbidden:
		p.Cause, p.What = "forbidden", fmt.Sprintf("The server forbids this client to list or watch %s.", what)
		p.Do = fmt.Sprintf("Grant the verbs list and watch on it to the program's service account "+
			"(kubectl auth can-i list %s%s --as=…). The program tries again by itself.", q.Kind, inNamespace(q))
	case kates.StateMissing:
		p.Cause, p.What = "missing-kind", fmt.Sprintf("The server does not serve %s.", what)
		p.Do = "Install its CustomResourceDefinition or its API service, or correct the name of the kind (kubectl api-resources). " +
			"The program checks again by itself, no restart is needed."
	case kates.StateRetrying:
		p.Cause, p.What = "retrying", fmt.Sprintf("The last request for %s has failed.", what)
		p.Do = "Look at the error below, and at the API server or the network. The program tries again by itself."
	case kates.StateWaiting, kates.StateListing:
		if f.age(q.Since) < slowFirst {
			return
		}
		p.Effect = Late
		p.Cause, p.What = "slow-first-list", fmt.Sprintf("The first list of %s takes long: %s so far.", what, objects(q.Objects))
		p.Do = "For a large kind, wait. Else look at the API server's load and its flow control (429)."
	default:
		f.complete(c, w, q, p)
		return
	}
	if q.Absent {
		p.Effect = Note
		p.What += " The query is optional, so it counts as empty."
		p.Do = "If the program does not need this kind, do nothing. If it does: " + strings.ToLower(p.Do[:1]) + p.Do[1:]
	} else {
		p.What += stays
	}
	f.add(p)
}

// complete says what is wrong with a query whose watch is open.
func (f *finder) complete(c clientState, w *inspect.Watch, q *inspect.Query, p Problem) {
	p.Detail = ""
	if age := f.age(q.UntakenSince); age >= slowReader && w.Kind == inspect.OfSnapshots && !w.Completed.IsZero() {
		p := p
		p.Cause, p.Effect, p.Since = "slow-reader", Late, q.UntakenSince
		p.What = fmt.Sprintf("The program does not take snapshots of %s: %s changed in %s and wait for an Update.",
			w.Name, objectsHave(q.Untaken), quoted(q.Name))
		p.Do = "Look at what the program does with the last snapshot: it is slow, or hangs (a goroutine dump shows where). " +
			"Nothing is lost: the next Update has everything."
		f.add(p)
	}
	if q.Changing && f.age(q.Since) >= slowFirst {
		p := p
		p.Cause, p.Effect = "changing", Late
		p.What = fmt.Sprintf("Query %s of %s was changed, and the new one is not complete yet.", quoted(q.Name), w.Name)
		p.Do = "It waits until it, and all that were changed with it, are complete. Look at the queries' states."
		f.add(p)
	}
	if q.Invalid > 0 {
		p := p
		p.Cause, p.Since, p.Detail = "invalid", time.Time{}, f.oneInvalid(c, w, q)
		p.What = fmt.Sprintf("The snapshots of %s leave out %s of %s, which did not decode or were rejected.",
			w.Name, objects(q.Invalid), quoted(q.Name))
		p.Do = "Correct the objects, or change the program's code that refuses them. The link lists them, with the reason for each."
		p.Link = link("objects", "client", c.member.name, "watch", w.ID, "query", q.Name, "invalid", 1)
		f.add(p)
	}
}

// saysWhy reports whether a query is a problem that holds the first snapshot up.
func saysWhy(q *inspect.Query) bool { return q.State != kates.StateSynced && !q.Absent }

// watch says what is wrong with a watch as a whole.
func (f *finder) watch(c clientState, w *inspect.Watch) {
	if w.Completed.IsZero() && f.age(w.Opened) >= slowFirst && !slices.ContainsFunc(w.Queries, saysWhy) {
		f.add(Problem{
			Cause: "incomplete", Effect: Late, Client: c.member.name, Since: w.Opened, Detail: w.Incomplete,
			What: fmt.Sprintf("%s has no first snapshot yet.", w.Name),
			Do:   "A snapshot is complete or does not come: see which query is missing, and what its state says. An optional kind does not hold it up.",
			Link: link("queries", "client", c.member.name) + "#" + watchID(w),
		})
	}
	k := w.Keys
	if k == nil {
		return
	}
	if age := f.age(k.ReadySince); age >= slowWorker {
		f.add(Problem{
			Cause: "no-worker", Effect: Late, Client: c.member.name, Since: k.ReadySince,
			What: fmt.Sprintf("%s: %d keys are ready and wait for a worker; %d run.", w.Name, k.Ready, k.Running),
			Do:   "More workers, or shorter calls. The page of partitions has the keys that run, and since when.",
			Link: link("partitions", "client", c.member.name) + "#" + watchID(w),
		})
	}
	fails := func(l *inspect.Loop) bool { return l.Name == w.Name && l.FailingAll > 0 } // which is said
	if k.Resting > 0 && !slices.ContainsFunc(c.Report.Loops, fails) {
		f.add(Problem{
			Cause: "resting", Effect: Late, Client: c.member.name,
			What: fmt.Sprintf("%s: %s after failures, and will be tried again.", w.Name, count(k.Resting, "key rests", "keys rest")),
			Do:   "See Controllers for the errors of the calls. The program tries again by itself.",
			Link: link("partitions", "client", c.member.name) + "#" + watchID(w),
		})
	}
}

// stream says what is wrong with a stream beneath its queries.
func (f *finder) stream(c clientState, s *inspect.Stream) {
	p := Problem{Effect: Late, Client: c.member.name, Link: link("streams", "client", c.member.name) + "#" + streamID(s)}
	f.silence(c, s, p)
	if age := f.age(s.PendingSince); s.Pending > 0 && age >= slowWrite {
		p := p
		p.Cause, p.Since = "pending-writes", s.PendingSince
		p.What = fmt.Sprintf("The watch of %s has not shown %s yet. Snapshots show them meanwhile.",
			nameOf(s), count(s.Pending, "own write", "own writes"))
		p.Do = "The watch is late, or not open: look at its state. The journal has the writes. After a while the client lists again."
		p.Link = link("journal", "client", c.member.name) + "#" + streamID(s)
		f.add(p)
	}
	if s.Unsettled > 0 {
		p := p
		p.Cause = "unsettled"
		p.What = fmt.Sprintf("The server could not be asked what %s to %s means here.", count(s.Unsettled, "own write", "own writes"), nameOf(s))
		p.Do = "The write has succeeded, and is shown when the watch brings it. Look at failing requests (get, list)."
		p.Link = link("journal", "client", c.member.name) + "#" + streamID(s)
		f.add(p)
	}
	f.costs(s, p)
}

// costs says what a stream does too often.
func (f *finder) costs(s *inspect.Stream, p Problem) {
	h := &f.page.history
	p.Effect = Expensive
	if n := h.grown(streamSeries(s.ID, "undecodable"), fineSpan, f.at); n > 0 {
		p := p
		p.Cause, p.Effect = "undecodable", Wrong
		p.What = fmt.Sprintf("%s of %s did not decode, in the last minutes.", objects(int(n)), nameOf(s))
		p.Do = "Correct the objects, or change the Go type. The invalid objects of its queries have the reasons."
		f.add(p)
	}
	if s.State != kates.StateSynced {
		return // its state is a problem already
	}
	if n := h.grown(streamSeries(s.ID, "lists"), fineSpan, f.at); n >= manyLists {
		p := p
		p.Cause = "relists"
		p.What = fmt.Sprintf("%s was listed %s times in the last minutes: each is the whole kind.", nameOf(s), number3(n))
		p.Do = "Look at the reasons of its lists: " + reasons(s.Lists) + ". \"expired\" means that the server forgets versions early; " +
			"\"no_room\" that WithMaxObjects is too small."
		f.add(p)
	}
	if n := h.grown(streamSeries(s.ID, "watches"), fineSpan, f.at); n >= manyWatches {
		p := p
		p.Cause = "rewatches"
		p.What = fmt.Sprintf("The watch of %s was opened %s times in the last minutes.", nameOf(s), number3(n))
		p.Do = "Look at the reasons: " + reasons(s.Watches) + ". Something ends watches early: the server, or a proxy with a short time-out."
		f.add(p)
	}
}

func inNamespace(q *inspect.Query) string {
	if q.Namespace == "" {
		return " --all-namespaces"
	}
	return " --namespace=" + q.Namespace
}

func nameOf(s *inspect.Stream) string {
	name := s.Resource
	if s.Namespace != "" {
		name += " in " + s.Namespace
	}
	if selectors := strings.Trim(s.Labels+" "+s.Fields+" "+s.AnyOf, " "); selectors != "" {
		name += " (" + selectors + ")"
	}
	return name
}
