package page

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kates-go/kates/kates/inspect"
)

// Bounds of a page of the object browser.
const (
	objectsPerPage = 100
	maxPerPage     = 1000
)

// Place says which query of which client a page is about.
type Place struct {
	Client  string `json:"client,omitempty"`
	Watch   string `json:"watch,omitempty"`
	WatchID int64  `json:"watchID,omitempty"`
	Query   string `json:"query,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

// ObjectsPage is a page of the objects of a query.
type ObjectsPage struct {
	Queries []QueryChoice `json:"queries"`
	Place
	// Namespace and Name are what was looked for: a namespace, and a part of a name.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// All is the number of objects that the watch holds.
	All     int                     `json:"all"`
	Objects []ObjectRow             `json:"objects"`
	Invalid []inspect.InvalidObject `json:"invalid,omitempty"`
	// Next is the object after which the next page begins, if there is one.
	Next *inspect.ObjectKey `json:"next,omitempty"`
	// Wrong is why there is nothing.
	Wrong string `json:"wrong,omitempty"`
}

// ObjectRow is the name of an object.
type ObjectRow struct {
	inspect.ObjectKey
	// Invalid: snapshots leave it out.
	Invalid bool `json:"invalid,omitempty"`
}

// QueryChoice is a query whose objects can be looked at.
type QueryChoice struct {
	Client  string `json:"client"`
	Watch   string `json:"watch"`
	WatchID int64  `json:"watchID"`
	Query   string `json:"query"`
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	Invalid int    `json:"invalid"`
	Chosen  bool   `json:"chosen,omitempty"`
}

// place is a query of a client, as the URL names it.
type place struct {
	member *member
	report *inspect.Report
	watch  *inspect.Watch
	query  *inspect.Query
}

// find returns the query that a request is about. Without a watch it is the first one of its name.
func find(all []clientState, ask url.Values) (place, bool) {
	id, _ := strconv.ParseInt(ask.Get("watch"), 10, 64)
	for _, c := range all {
		if name := ask.Get("client"); name != "" && name != c.member.name {
			continue
		}
		for _, w := range c.Report.Watches {
			if id != 0 && w.ID != id {
				continue
			}
			if q := queryOf(w, ask.Get("query")); q != nil {
				return place{c.member, c.Report, w, q}, true
			}
		}
	}
	return place{}, false
}

func choices(all []clientState, chosen place) (to []QueryChoice) {
	for _, c := range all {
		for _, w := range c.Report.Watches {
			for _, q := range w.Queries {
				to = append(to, QueryChoice{
					Client: c.member.name, Watch: w.Name, WatchID: w.ID, Query: q.Name, Kind: q.Kind,
					Objects: q.Objects, Invalid: q.Invalid, Chosen: q == chosen.query,
				})
			}
		}
	}
	return to
}

// objectsPage looks for the objects that a request asks for.
func (p *Page) objectsPage(all []clientState, ask url.Values) ObjectsPage {
	at, found := find(all, ask)
	to := ObjectsPage{
		Queries: choices(all, at), Namespace: ask.Get("namespace"), Name: ask.Get("name"), Objects: []ObjectRow{},
	}
	if !found {
		if ask.Get("query") != "" {
			to.Wrong = "There is no such query now. Its watch has ended, perhaps."
		}
		return to
	}
	to.Client, to.Watch, to.WatchID = at.member.name, at.watch.Name, at.watch.ID
	to.Query, to.Kind, to.All = at.query.Name, at.query.Kind, at.query.Objects
	limit := objectsPerPage
	if n, err := strconv.Atoi(ask.Get("limit")); err == nil && n > 0 {
		limit = min(n, maxPerPage)
	}
	if ask.Get("invalid") != "" {
		to.Invalid = at.member.invalid(at.watch, at.query.Name, limit)
		for i := range to.Invalid {
			to.Invalid[i].Why = p.invalidText(at, to.Invalid[i])
		}
		return to
	}
	after := inspect.ObjectKey{Namespace: ask.Get("afterNamespace"), Name: ask.Get("after")}
	if after == (inspect.ObjectKey{}) {
		after.Namespace = to.Namespace // before its first object
	}
	to.search(at.member.objects(at.watch, at.query.Name), after, limit)
	to.mark(at)
	return to
}

// mark marks the objects of the page that the snapshots leave out.
func (o *ObjectsPage) mark(at place) {
	if at.query.Invalid == 0 {
		return
	}
	invalid := map[inspect.ObjectKey]bool{}
	for _, of := range at.member.invalid(at.watch, at.query.Name, at.query.Invalid) {
		invalid[of.ObjectKey] = true
	}
	for i := range o.Objects {
		o.Objects[i].Invalid = invalid[o.Objects[i].ObjectKey]
	}
}

// search fills the page from the names of all objects, which are in order. It looks at no object.
func (o *ObjectsPage) search(keys []inspect.ObjectKey, after inspect.ObjectKey, limit int) {
	at, found := slices.BinarySearchFunc(keys, after, func(a, b inspect.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if found {
		at++
	}
	for _, k := range keys[at:] {
		if o.Namespace != "" && k.Namespace != o.Namespace {
			return
		}
		if !strings.Contains(k.Name, o.Name) {
			continue
		}
		if len(o.Objects) == limit {
			o.Next = &o.Objects[limit-1].ObjectKey
			return
		}
		o.Objects = append(o.Objects, ObjectRow{ObjectKey: k})
	}
}

// leftOut is why a snapshot does not have an invalid object.
const leftOut = "left out"

// ObjectPage is an object in its versions.
type ObjectPage struct {
	Place
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Found     bool           `json:"found"`
	Secret    bool           `json:"secret,omitempty"`
	Invalid   string         `json:"invalid,omitempty"`
	Writes    []PendingWrite `json:"writes,omitempty"`
	Untaken   bool           `json:"untaken,omitempty"`
	Versions  []Version      `json:"versions"`
	Fields    []Field        `json:"fields"`
	Differing int            `json:"differing"`
	AllFields int            `json:"allFields"`
	OnlyThose bool           `json:"onlyDiffering,omitempty"`
	Wrong     string         `json:"wrong,omitempty"`
}

// objectPage compares what the snapshot, the streams and the own writes have of an object.
func (p *Page) objectPage(all []clientState, ask url.Values) ObjectPage {
	at, found := find(all, ask)
	to := ObjectPage{
		Place: Place{Client: ask.Get("client"), Query: ask.Get("query")}, Namespace: ask.Get("namespace"), Name: ask.Get("name"),
		OnlyThose: ask.Get("only") != "",
	}
	if !found {
		to.Wrong = "There is no such query now. Its watch has ended, perhaps."
		return to
	}
	to.Client, to.Watch, to.WatchID = at.member.name, at.watch.Name, at.watch.ID
	to.Kind, to.Secret = at.query.Kind, secretQuery(at.report, at.query)
	o, found := at.member.object(at.watch, at.query.Name, inspect.ObjectKey{Namespace: to.Namespace, Name: to.Name})
	if !found {
		to.Wrong = "There is no such query now. Its watch has ended, perhaps."
		return to
	}
	to.Versions = append(to.Versions, p.versionOf("snapshot", o.Shown, to.Secret))
	for _, s := range o.Streams {
		of := ""
		if len(o.Streams) > 1 {
			of = " " + strconv.FormatInt(s.Stream, 10)
		}
		isSecret := to.Secret || secretStream(at.report, s.Stream)
		to.Versions = append(to.Versions,
			p.versionOf("watch"+of, s.Watched, isSecret), p.versionOf("watch"+of+" with own writes", s.Current, isSecret))
		if s.Write != nil {
			to.Writes = append(to.Writes, PendingWrite{
				OwnWrite: *s.Write, Client: to.Client, Stream: s.Stream, Why: whyPending(*s.Write, streamOf(at.report, s.Stream)),
			})
		}
		to.Untaken = to.Untaken || s.Untaken
	}
	for _, v := range to.Versions {
		to.Found = to.Found || v.Is || v.Why != ""
	}
	to.Found = to.Found || o.Invalid != ""
	to.Invalid = scrub(p.text(o.Invalid), to.Versions)
	if to.Invalid != "" {
		to.Versions[0] = Version{Title: to.Versions[0].Title, Why: leftOut}
	}
	to.Fields, to.Differing, to.AllFields = fieldsOf(to.Versions, to.OnlyThose)
	if !to.Found {
		to.Wrong = "Neither the snapshot nor a watch has an object of this name."
	}
	return to
}

// invalidText is why an object is left out, without what nobody may see of it.
func (p *Page) invalidText(at place, i inspect.InvalidObject) string {
	o, _ := at.member.object(at.watch, at.query.Name, i.ObjectKey)
	isSecret := secretQuery(at.report, at.query)
	versions := []Version{p.versionOf("", o.Shown, isSecret)}
	for _, s := range o.Streams {
		versions = append(versions, p.versionOf("", s.Watched, isSecret), p.versionOf("", s.Current, isSecret))
	}
	return scrub(p.text(i.Why), versions)
}

func streamOf(r *inspect.Report, id int64) *inspect.Stream {
	for _, s := range r.Streams {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// secretStream reports whether a stream is of Secrets, or might be.
func secretStream(r *inspect.Report, id int64) bool {
	s := streamOf(r, id)
	return s != nil && isSecrets(s.Resource)
}

func isNil(v any) bool {
	of := reflect.ValueOf(v)
	return of.Kind() == reflect.Pointer && of.IsNil()
}
