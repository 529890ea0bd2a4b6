package kates

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/snapshot"
)

// Lookup is a field of a snapshot in which a program looks up the objects that others refer to.
//
//	type Snapshot struct {
//	    Ingresses []*networkingv1.Ingress
//	    Secrets   kates.Lookup[*corev1.Secret]
//	    Hosts     kates.Lookup[map[string]any] `kates:"hosts.getambassador.io"`
//	}
//
// T is whatever the elements of a slice may be (see [Client.Watch]). In the snapshots of [Watch]
// and [Run] it is a field like any other: a query that holds all its objects. Each change of one
// of them is a change of the snapshot.
//
// In the snapshots of [WatchEach] and [RunEach] the kind belongs to no partition (a [Query.Key]
// for it is an error). Every turn may read all of it. What a turn reads is recorded until the
// turn is done: by name or by selector, absence included. The key has another turn when an object
// that it looked up comes, changes or goes, or when an object begins or ceases to match a
// selector that it used. That includes changes while the turn is under way, and the client's own
// writes. Only what the key's latest turn has read counts, whatever its result: what is not read
// any more causes no more turns.
//
// A change of an object costs nothing for keys that looked up other names. It is compared with
// each different selector that keys have used in its namespace, or in all namespaces. Where
// thousands of keys have a selector of their own, names are cheaper. A field of []*[Delta] has
// the changes of what the key's last turn had read. A field of [][Invalid] has none of these
// objects: they are in Status, and [WithInvalid] reports them. A turn of a key that is gone can
// read a Lookup as ever.
//
// A Lookup shows one state, that of its snapshot, for as long as somebody holds it. It may be
// copied, and several goroutines may read it at a time. It may be read after the turn is done,
// but such reads are not recorded. Two are equal (==) only if they show the very same objects.
// What it returns is shared and read-only, like all objects in snapshots.
type Lookup[T any] struct{ lookup[T] }

type lookup[T any] = snapshot.Lookup[T]

// Get returns the object of that name, and whether there is one. The namespace is empty for kinds
// without one. Its cost is logarithmic in the number of objects.
func (l Lookup[T]) Get(namespace, name string) (T, bool) { return l.lookup.Get(namespace, name) }

// Select returns the objects whose labels match the selector, in one namespace, or with "" in
// all. A nil selector matches all objects. They are in order of namespace, then name. The slice
// is the caller's. The cost is linear in the number of objects in the namespace. If an object of
// the kind changes meanwhile, the end of the turn costs as much.
func (l Lookup[T]) Select(namespace string, selector labels.Selector) []T {
	return l.lookup.Select(namespace, selector)
}

// Available is false while the query is optional and the server does not serve its kind. Then
// nothing is found, which says nothing about what exists.
func (l Lookup[T]) Available() bool { return l.lookup.Available() }
