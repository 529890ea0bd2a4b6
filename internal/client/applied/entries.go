package applied

import (
	"maps"
	"reflect"
	"strconv"
	"strings"
	"unique"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Entries remember which fields one manager has applied of each object that streams of Go types
// have brought. Such streams drop the managedFields; what the manager has applied is read before
// that, from the same bytes. So a program that starts among objects that it has applied before
// needs no request to find that nothing is to be done.
//
// An entry is about one version of an object and is never wrong, whatever the streams show. There
// is one for each object with the annotation for what was applied. It takes some hundred bytes:
// most objects of a kind have the same fields, which are in memory once. Entries of objects that
// nobody holds are dropped from time to time. The zero value is empty.
type Entries struct {
	mu    lockorder.Mutex[lockorder.Entries]
	of    map[types.UID]entry
	sweep int // the number of entries at which the next sweep is due
	sets  map[unique.Handle[string]]*fieldpath.Set
}

// mostSets bounds how many fields are held as sets. A kind has few of them.
const mostSets = 256

// entry is what a manager has applied of one version of an object.
type entry struct {
	atRV   string
	fields unique.Handle[string] // without the UIDs of the object's owners
	object weak.Pointer[byte]    // nil as soon as nobody holds the object
}

// Put remembers the fields of a version of an object, in the form of the managedFields. The object
// is a pointer to a value of a Go type.
func (e *Entries) Put(o Object, fields []byte) {
	uid, rv := o.GetUID(), o.GetResourceVersion()
	if uid == "" || rv == "" {
		return
	}
	now := entry{
		atRV: rv, fields: unique.Make(ownerless(string(fields), o.GetOwnerReferences())),
		object: weak.Make((*byte)(reflect.ValueOf(o).UnsafePointer())),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil {
		e.of = make(map[types.UID]entry)
	}
	if was, ok := e.of[uid]; ok && was.atRV == rv && was.object.Value() != nil {
		return // a stream keeps the object of a version that it has
	}
	e.of[uid] = now
	if len(e.of) < max(e.sweep, 1024) {
		return
	}
	maps.DeleteFunc(e.of, func(_ types.UID, e entry) bool { return e.object.Value() == nil })
	e.sweep = 2 * len(e.of)
}

// Entry has the fields that a manager has applied of a version of an object.
type Entry struct {
	of     *Entries
	fields unique.Handle[string]
	owners []metav1.OwnerReference
}

// Of returns what the manager has applied of this version of an object. It is false if nothing is
// known.
func (e *Entries) Of(now metav1.Object) (_ Entry, known bool) {
	e.mu.Lock()
	at, ok := e.of[now.GetUID()]
	e.mu.Unlock()
	if !ok || at.atRV != now.GetResourceVersion() {
		return Entry{}, false
	}
	return Entry{e, at.fields, now.GetOwnerReferences()}, true
}

// Fields returns them in the form of the managedFields.
func (e Entry) Fields() []byte { return []byte(withOwners(e.fields.Value(), e.owners)) }

// theOwner stands for the UID of the only owner in sets that many objects have.
const theOwner = "owner"

// shared returns the set of the fields, with theOwner in place of the UID of the only owner. It is
// nil if the object has another number of owners, if the UID is not just that of the owner, and if
// the fields cannot be read.
func (e Entry) shared() *fieldpath.Set {
	text := e.fields.Value()
	if len(e.owners) != 1 || strings.Count(text, placeOf(0)) != 1 {
		return nil
	}
	e.of.mu.Lock()
	known, ok := e.of.sets[e.fields]
	e.of.mu.Unlock()
	if ok {
		return known
	}
	set := new(fieldpath.Set)
	if set.FromJSON(strings.NewReader(strings.ReplaceAll(text, placeOf(0), theOwner))) != nil {
		set = nil
	}
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if e.of.sets == nil || len(e.of.sets) >= mostSets {
		e.of.sets = make(map[unique.Handle[string]]*fieldpath.Set)
	}
	e.of.sets[e.fields] = set
	return set
}

// ownerless returns fields without the UIDs of the owners, by which the fields of one object
// differ from those of the next.
func ownerless(fields string, owners []metav1.OwnerReference) string {
	for i, owner := range owners {
		if owner.UID != "" {
			fields = strings.ReplaceAll(fields, string(owner.UID), placeOf(i))
		}
	}
	return fields
}

// withOwners puts the UIDs back in.
func withOwners(fields string, owners []metav1.OwnerReference) string {
	for i, owner := range owners {
		fields = strings.ReplaceAll(fields, placeOf(i), string(owner.UID))
	}
	return fields
}

// placeOf stands for the UID of an owner. No JSON has a zero byte.
func placeOf(i int) string { return "\x00" + strconv.Itoa(i) + "\x00" }
