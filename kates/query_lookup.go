package kates

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/snapshot"
)

// Lookup is a field of a snapshot whose objects are looked up: what other objects refer to.
//
//	type Snapshot struct {
//	    Ingresses []*networkingv1.Ingress
//	    Secrets   kates.Lookup[*corev1.Secret]
//	    Hosts     kates.Lookup[map[string]any] `kates:"hosts.getambassador.io"`
//	}
//
// T is whatever a slice may have as elements (see [Client.Watch]). In the snapshots of [Watch] and [Run] it is a field like any
// other: a query, whose objects are all held, and each change of which is a change of the snapshot.
//
// In those of [WatchEach] and [RunEach] the kind belongs to no partition (a [Query.Key] for it is an error): every turn may read all of it, and what a
// turn reads is recorded until it is done, by name or by selector, absence included. When an object that was asked
// for comes, changes or goes, or one starts or ceases to be selected, the key has another turn; also when that happens, or is this client's own
// doing, while the turn is under way. What the latest turn of the key has read counts, whatever came of it: what is not read any more activates no
// more. A change of an object costs nothing for keys that have asked for others by name. It is held against each different selector that keys have
// selected by in its namespace, or in all: where thousands of keys have one of their own, names are the cheaper way. A field of []*[Delta] has changes of what the key's
// last turn had read; one of [][Invalid] has none of these objects, which are in Status and told to [WithInvalid].
// In a turn of a key that is gone it can be read as ever.
//
// It shows one state, that of its snapshot, for as long as somebody holds it. It may be copied, and read by several goroutines at a
// time, also after the turn is done: then that is not recorded. Two are equal (==) only if they show the very same. What it returns is shared and read-only, as all
// objects in snapshots are.
type Lookup[T any] struct{ lookup[T] }

type lookup[T any] = snapshot.Lookup[T]

// Get returns the object of that name, and whether there is one. The namespace is empty for kinds that have none. It takes time in the logarithm of the
// number of objects.
func (l Lookup[T]) Get(namespace, name string) (T, bool) { return l.lookup.Get(namespace, name) }

// Select returns the objects in a namespace, or, with "", in all, whose labels the selector selects; nil selects all of them. They are in order of
// namespace, then name. The slice is the caller's. It takes time in the number of objects in the namespace, and so does the turn's end, if one of the
// kind has changed meanwhile.
func (l Lookup[T]) Select(namespace string, selector labels.Selector) []T {
	return l.lookup.Select(namespace, selector)
}

// Available is false while the query is optional and its kind is not there: nothing is found then, though that says nothing of what
// there is.
func (l Lookup[T]) Available() bool { return l.lookup.Available() }
