package recording

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// builder makes the history of one key from its exchanges, in the order in which they were asked.
type builder struct {
	h      history
	lists  []listed
	events []entry
	starts []entry         // versions at which watches began that are no streamed lists
	pages  map[string]list // by the token of the next page
	mixed  bool
}

// listed is a whole list: of one or several pages, or streamed.
type listed struct {
	at      time.Duration
	version string
	state   state
}

// historyOf makes a history.
func historyOf(k key, exchanges []*Exchange) *history {
	b := &builder{h: history{key: k}, pages: map[string]list{}}
	for _, e := range exchanges {
		b.add(e)
	}
	b.h.protobuf = !b.mixed
	b.build()
	if len(b.h.segments) == 0 && b.h.failure == nil && b.h.refused == "" {
		b.h.refused = "no answer to it was recorded to its end"
	}
	return &b.h
}

func (b *builder) refuse(format string, args ...any) {
	if b.h.refused == "" {
		b.h.refused = fmt.Sprintf(format, args...)
	}
}

// add takes an exchange in.
func (b *builder) add(e *Exchange) {
	switch {
	case e.Withheld != "":
		b.refuse("a part of it is withheld: %s", e.Withheld)
	case e.Status == 0:
	case !succeeded(e.Status):
		b.h.failure = e
	case isTrue(e.Query, "watch"):
		b.watch(e)
	case len(e.Parts) > 0:
		b.list(e)
	}
}

// list takes a list in, or a page. One that was cut shows nothing.
func (b *builder) list(e *Exchange) {
	l, err := readList(e.Parts[0].Data)
	if err != nil {
		if e.Ended && e.Cause == causeServer {
			b.refuse("a list in it cannot be read: %v", err)
		}
		return
	}
	if token := e.Query.Get("continue"); token != "" {
		first, there := b.pages[token]
		if !there {
			return
		}
		first.items = append(slices.Clip(first.items), l.items...)
		first.meta.Continue = l.meta.Continue
		l = first
	}
	b.mixed = b.mixed || l.encoding != frames.Protobuf
	b.h.apiVersion, b.h.kind = l.of()
	b.h.listKind = l.kind
	if l.meta.Continue != "" {
		b.pages[l.meta.Continue] = l
		return
	}
	b.take(e.Parts[0].At, l.meta.ResourceVersion, l.items)
}

// take takes the items of a whole list in.
func (b *builder) take(at time.Duration, version string, items []item) {
	if !isVersion(version) {
		b.refuse("its version %.20q is not a number", version)
		return
	}
	of := listed{at, version, make(state, len(items))}
	for _, i := range items {
		b.is(&i)
		of.state[i.name()] = i
	}
	b.lists = append(b.lists, of)
}

// is notes what the objects are.
func (b *builder) is(i *item) {
	b.mixed = b.mixed || i.encoding != frames.Protobuf
	if i.kind != "" {
		b.h.apiVersion, b.h.kind = i.apiVersion, i.kind
	}
}

// watch takes the events of a watch in.
func (b *builder) watch(e *Exchange) {
	initial := isTrue(e.Query, "sendInitialEvents")
	if v := e.Query.Get("resourceVersion"); !initial && isVersion(v) {
		b.starts = append(b.starts, entry{at: e.Answered, version: v})
	}
	var items []item
	for _, p := range e.Parts {
		ev, err := readEvent(p.Data)
		switch {
		case err != nil:
			b.refuse("an event in it cannot be read: %v", err)
			return
		case ev.kind == watch.Error:
			continue // what the objects are, is known without it
		case initial && ev.kind != watch.Bookmark:
			items = append(items, ev.item)
			continue
		}
		b.is(&ev.item)
		if initial {
			// The first bookmark of a streamed list is the one that ends it.
			initial = false
			b.take(p.At, ev.id.Version, items)
			continue
		}
		if !isVersion(ev.id.Version) {
			b.refuse("the version %.20q of an object is not a number", ev.id.Version)
			return
		}
		b.events = append(b.events, entry{p.At, ev.id.Version, &ev})
	}
}

// build puts everything in order.
func (b *builder) build() {
	slices.SortStableFunc(b.lists, func(x, y listed) int { return int(x.at - y.at) })
	slices.SortStableFunc(b.events, byVersion)
	b.events = once(b.events)
	if len(b.lists) == 0 {
		b.bare()
		return
	}
	s := segment{at: b.lists[0].at, version: b.lists[0].version, listed: true, base: b.lists[0].state}
	for _, l := range b.lists[1:] {
		if compareVersions(l.version, s.version) <= 0 {
			continue // from a server's old cache, or the same again
		}
		all := segment{base: s.base, entries: between(b.events, s.version, l.version)}
		if all.stateAt(len(all.entries)).same(l.state) {
			b.events = append(b.events, entry{at: l.at, version: l.version})
			slices.SortStableFunc(b.events, byVersion)
			continue
		}
		early := func(e entry) bool { return e.at >= l.at }
		b.end(s, slices.DeleteFunc(all.entries, early))
		s = segment{at: l.at, version: l.version, listed: true, base: l.state}
	}
	b.end(s, between(b.events, s.version, ""))
}

// bare makes the history of watches without a list.
func (b *builder) bare() {
	if len(b.starts) == 0 {
		return
	}
	first := slices.MinFunc(b.starts, byVersion)
	b.end(segment{at: first.at, version: first.version}, between(b.events, first.version, ""))
}

// end ends a segment: what a later version shows had happened already.
func (b *builder) end(s segment, entries []entry) {
	for n := len(entries) - 2; n >= 0; n-- {
		entries[n].at = min(entries[n].at, entries[n+1].at)
	}
	s.entries = entries
	b.h.segments = append(b.h.segments, s)
}

// between returns copies of the entries that are newer than a version, and not newer than another
// unless that is empty.
func between(all []entry, after, upTo string) []entry {
	s := segment{entries: all}
	end := len(all)
	if upTo != "" {
		end = s.after(upTo)
	}
	return slices.Clone(all[s.after(after):end])
}

// once drops what several watches have shown: the earliest counts.
func once(sorted []entry) []entry {
	type seen struct {
		version  string
		bookmark bool
		name
	}
	first := map[seen]int{}
	var kept []entry
	for _, e := range sorted {
		is := seen{e.version, e.event.kind == watch.Bookmark, e.event.name()}
		if n, there := first[is]; there {
			kept[n].at = min(kept[n].at, e.at)
			continue
		}
		first[is] = len(kept)
		kept = append(kept, e)
	}
	return kept
}

// byVersion orders entries by version. A bookmark is behind the event of its version.
func byVersion(x, y entry) int {
	if c := compareVersions(x.version, y.version); c != 0 {
		return c
	}
	return rank(x) - rank(y)
}

func rank(e entry) int {
	switch {
	case e.event == nil:
		return 2
	case e.event.kind == watch.Bookmark:
		return 1
	}
	return 0
}

// list is the answer to a list: the objects after n entries.
func (h *history) list(s *segment, n int, version string, e frames.Encoding) ([]byte, error) {
	l := list{
		encoding: e, apiVersion: h.apiVersion, kind: h.listKind, items: s.stateAt(n).sorted(),
		meta: metav1.ListMeta{ResourceVersion: version},
	}
	if l.kind == "" {
		l.kind = h.kind + "List"
	}
	for n := range l.items {
		var err error
		if l.items[n], err = l.items[n].in(e); err != nil {
			return nil, err
		}
	}
	return l.encode()
}
