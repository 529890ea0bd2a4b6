package inspect

import (
	"slices"
	"time"

	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/kates"
)

// Of returns what a client does and has done. It does not wait for the server.
func Of(c *kates.Client) *Report {
	status := c.Status()
	r := &Report{At: time.Now(), Server: doors.Client(c).Host(), Leaders: status.Leaders, Shards: status.Shards}
	streams := doors.Client(c).Streams
	for _, w := range collect.Of(streams) {
		r.Watches = append(r.Watches, watchOf(w))
	}
	slices.SortFunc(r.Watches, func(a, b *Watch) int { return int(a.ID - b.ID) })
	for _, s := range streams.Inspect() {
		r.Streams = append(r.Streams, streamOf(s))
	}
	r.Loops = loopsOf(c)
	return r
}

// Objects returns the names of the objects of a query that the last snapshot has, or leaves out as
// invalid, by namespace and name. For a lister it is what the watch has. It returns nil if there
// is no such query. It takes a few milliseconds for 100,000 objects.
func (w *Watch) Objects(query string) []ObjectKey {
	if w.of == nil {
		return nil
	}
	names := w.of.Names(query)
	if names == nil {
		return nil
	}
	keys := make([]ObjectKey, len(names))
	for i, key := range names {
		keys[i] = ObjectKey(key)
	}
	return keys
}

// Object returns what the watch has of an object of a query. It reports false if there is no such
// query.
func (w *Watch) Object(query string, key ObjectKey) (Object, bool) {
	if w.of == nil {
		return Object{}, false
	}
	e, ok := w.of.Examine(query, object.Key(key))
	if !ok {
		return Object{}, false
	}
	o := Object{Shown: objectOf(e.Shown)}
	if e.Err != nil {
		o.Invalid = e.Err.Error()
	}
	for _, s := range e.Streams {
		in := ObjectInStream{Stream: s.Stream, Watched: objectOf(s.Watched), Current: objectOf(s.Current), Untaken: s.Untaken}
		if s.Write != nil {
			w := writeOf(*s.Write)
			in.Write = &w
		}
		o.Streams = append(o.Streams, in)
	}
	return o, true
}

// Invalid returns some of the objects of a query that the last snapshot leaves out: limit of them
// at most, by namespace and name. [Query] says how many there are.
func (w *Watch) Invalid(query string, limit int) (all []InvalidObject) {
	if w.of == nil {
		return nil
	}
	for _, i := range w.of.LeftOut(query, limit) {
		key := ObjectKey{Namespace: i.Object.GetNamespace(), Name: i.Object.GetName()}
		all = append(all, InvalidObject{ObjectKey: key, Why: i.Err.Error()})
	}
	return all
}

// objectOf is nil for no object, and the metadata for one that did not decode.
func objectOf(o object.Object) kates.Object {
	if o == nil {
		return nil
	}
	return o
}

func watchOf(of collect.Watch) *Watch {
	in := of.Inspect()
	w := &Watch{
		ID: in.ID, Name: in.Name, Kind: kindOf(in), Opened: in.Opened, Completed: in.Completed,
		Signals: in.Signals, Updates: in.Updates, Snapshots: in.Snapshots, Changes: in.Changes,
		Signalled: in.Signalled, Updated: in.Updated, of: of,
	}
	if in.Incomplete != nil {
		w.Incomplete = in.Incomplete.Error()
	}
	for _, q := range in.Queries {
		w.Queries = append(w.Queries, queryOf(q))
	}
	if in.Keys != nil {
		w.Keys = keysOf(in.Keys)
	}
	return w
}

func kindOf(in collect.Inspection) WatchKind {
	switch {
	case in.Silent:
		return OfLister
	case in.Keys != nil:
		return OfPartitions
	}
	return OfSnapshots
}

func queryOf(in collect.QueryInspection) *Query {
	q := &Query{QueryStatus: doors.Queries([]query.Status{in.Status}).([]kates.QueryStatus)[0]}
	for _, l := range in.Listeners {
		q.Streams = append(q.Streams, l.Stream)
		q.Bytes += l.Bytes
		q.Events += l.Events
		q.Coalesced += l.Coalesced
		q.Untaken += l.Untaken
		if !l.UntakenSince.IsZero() && (q.UntakenSince.IsZero() || l.UntakenSince.Before(q.UntakenSince)) {
			q.UntakenSince = l.UntakenSince
		}
	}
	return q
}

func keysOf(in *collect.KeysInspection) *Keys {
	k := &Keys{
		All: in.All, Waiting: in.Waiting, Ready: in.Ready, Running: in.Running, Resting: in.Resting, ReadySince: in.ReadySince,
	}
	for _, one := range in.Some {
		k.Some = append(k.Some, Key{
			Key: one.Key, State: KeyState(one.State), Since: one.Since, Failures: one.Failures, Until: one.Until,
		})
	}
	return k
}

func streamOf(in stream.Inspection) *Stream {
	s := &Stream{
		ID: in.ID, Resource: resourceOf(in.Resource), Namespace: in.Namespace, Labels: in.Labels, Fields: in.Fields, AnyOf: in.AnyOf,
		Form: in.Form, State: kates.State(in.State), Since: in.Since, Error: in.Error, Heard: in.Heard, Version: in.PositionRV,
		Objects: in.Objects, Bytes: in.Bytes, Listing: in.Listing, Listeners: in.Listeners,
		Events: in.Events, Bookmarks: in.Bookmarks, Undecodable: in.Undecodable,
		Lists: byReason[ListReason](in.Lists), Watches: byReason[WatchReason](in.Watches),
		Pending: in.Pending, Unsettled: in.Unsettled, PendingSince: in.PendingSince,
	}
	for _, w := range in.Writes {
		s.Writes = append(s.Writes, writeOf(w))
	}
	return s
}

// resourceOf writes a resource as kubectl does, with its version.
func resourceOf(r object.Resource) string {
	name := r.GroupVersionResource.Resource + "." + r.Version
	if r.Group != "" {
		name += "." + r.Group
	}
	return name
}

func writeOf(w stream.OwnWrite) OwnWrite {
	return OwnWrite{
		Namespace: w.Key.Namespace, Name: w.Key.Name, Since: w.Since, Version: w.Version, Gone: w.Gone, Unsettled: w.Unsettled,
	}
}

func byReason[R ~string](counts map[string]uint64) map[R]uint64 {
	all := make(map[R]uint64, len(counts))
	for reason, n := range counts {
		all[R(reason)] = n
	}
	return all
}
