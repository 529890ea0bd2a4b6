package recording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// history is what a recording knows of one list and its watches. It is never changed once it is
// made.
//
//	list ─▶ segment: base, then entries in order of versions
//	list that the entries so far lead to: only a version
//	list that they do not lead to: something was missed, another segment begins
//
// An entry has a time: when a client had it at the latest. What a later version shows was there
// already, so times never go back in the order of versions. The state at a position of the replay
// is the base of its segment with the entries up to then.
type history struct {
	key      key
	segments []segment
	// is says what the objects are, and the name of their list.
	apiVersion, kind, listKind string
	protobuf                   bool // everything came in protobuf
	// refused is why nothing of this is played; "" if it is.
	refused string
	// failure is the latest answer that was an error, if there is nothing else.
	failure *Exchange
}

type segment struct {
	at      time.Duration
	version string
	listed  bool // the base is known; a watch alone has none
	base    state
	entries []entry
}

// entry is an event, or a version that a list has shown.
type entry struct {
	at      time.Duration
	version string
	event   *event // nil: a version alone
}

// name is the identity of an object in a list.
type name struct{ namespace, name string }

type state map[name]item

func (i *item) name() name { return name{i.id.Namespace, i.id.Name} }

// apply does what an event says.
func (s state) apply(e *event) {
	switch {
	case e == nil:
	case e.kind == watch.Deleted:
		delete(s, e.name())
	case e.kind != watch.Bookmark:
		s[e.name()] = e.item
	}
}

// same reports whether two states have the same objects at the same versions.
func (s state) same(as state) bool {
	if len(s) != len(as) {
		return false
	}
	for name, i := range s {
		if o, there := as[name]; !there || i.id != o.id {
			return false
		}
	}
	return true
}

// sorted returns the objects in the order of a list.
func (s state) sorted() []item {
	all := make([]item, 0, len(s))
	for _, i := range s {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b item) int {
		return cmp.Or(strings.Compare(a.id.Namespace, b.id.Namespace), strings.Compare(a.id.Name, b.id.Name))
	})
	return all
}

// compareVersions compares two versions: integers of any length, without leading zeros.
func compareVersions(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// isVersion reports whether a text is such an integer above zero.
func isVersion(s string) bool {
	return s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// in returns the segment of a position, and its number.
func (h *history) in(at time.Duration) (*segment, int) {
	n := 0
	for n+1 < len(h.segments) && h.segments[n+1].at <= at {
		n++
	}
	return &h.segments[n], n
}

// reached returns how many entries have happened at a position, and the version that they lead to.
func (s *segment) reached(at time.Duration) (n int, version string) {
	n, _ = slices.BinarySearchFunc(s.entries, at, func(e entry, at time.Duration) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	return n, s.versionAt(n)
}

func (s *segment) versionAt(n int) string {
	if n == 0 {
		return s.version
	}
	return s.entries[n-1].version
}

// after returns the number of the first entry that is newer than a version.
func (s *segment) after(version string) int {
	n, _ := slices.BinarySearchFunc(s.entries, version, func(e entry, v string) int {
		if compareVersions(e.version, v) <= 0 {
			return -1
		}
		return 1
	})
	return n
}

// stateAt returns the objects after n entries.
func (s *segment) stateAt(n int) state {
	now := make(state, len(s.base))
	for name, i := range s.base {
		now[name] = i
	}
	for _, e := range s.entries[:n] {
		now.apply(e.event)
	}
	return now
}

// newest is the newest version that the recording has of these objects.
func (h *history) newest() string {
	last := &h.segments[len(h.segments)-1]
	return last.versionAt(len(last.entries))
}

// encodings says how the objects can be sent to a client that accepts a media type.
func (h *history) encodings(media string) (frames.Encoding, bool) {
	switch media {
	case mediaProtobuf:
		return frames.Protobuf, h.protobuf
	case mediaJSON:
		return frames.JSON, h.inJSON()
	case mediaAny, "application/*":
		if h.inJSON() {
			return frames.JSON, true
		}
		return frames.Protobuf, h.protobuf
	}
	return "", false
}

// inJSON reports whether all objects can be sent in JSON. Those of unknown kinds in protobuf
// cannot.
func (h *history) inJSON() bool {
	probe := item{encoding: frames.Protobuf, apiVersion: h.apiVersion, kind: h.kind}
	_, err := probe.decode()
	return err == nil || !h.protobuf
}

// in brings an object into an encoding.
func (i *item) in(e frames.Encoding) (item, error) {
	if e == i.encoding {
		return *i, nil
	}
	if e != frames.JSON {
		return item{}, fmt.Errorf("an object in JSON is asked for in %s", e)
	}
	return i.json()
}
