package testserver

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// collector is what a cluster's controllers do with namespaces that are deleted, and with
// objects that have owners. It follows the store as a watch does, and keeps an index of who owns
// whom. What a change may concern is due; what is due is looked at as it is stored then. All of
// it runs in one goroutine.
//
//	store ──▶ note ──▶ due ──▶ look ──▶ store
type collector struct {
	s     *Server
	at    int64 // everything up to this version is noted
	nodes map[store.Key]node
	keys  map[types.UID]store.Key
	owned map[types.UID]set // the dependents of an owner
	in    map[string]set    // the objects of a namespace
	due   []store.Key
}

// node is what is known of an object.
type node struct {
	uid         types.UID
	owners      []types.UID
	terminating bool
}

type set map[store.Key]struct{}

// sorted are the keys in an order that is always the same.
func (s set) sorted() []store.Key {
	return slices.SortedFunc(maps.Keys(s), func(a, b store.Key) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Path(), b.Path()))
	})
}

func add[K comparable](index map[K]set, at K, key store.Key) {
	if index[at] == nil {
		index[at] = set{}
	}
	index[at][key] = struct{}{}
}

func remove[K comparable](index map[K]set, at K, key store.Key) {
	if delete(index[at], key); len(index[at]) == 0 {
		delete(index, at)
	}
}

func newCollector(s *Server) *collector {
	c := &collector{s: s}
	c.forget()
	return c
}

func (c *collector) forget() {
	c.nodes, c.keys = map[store.Key]node{}, map[types.UID]store.Key{}
	c.owned, c.in = map[types.UID]set{}, map[string]set{}
}

// run goes on until the server is closed.
func (c *collector) run() {
	var known *serving
	for {
		serving := c.s.serving.Load()
		more := c.follow()
		if known != serving {
			c.ownedDue()
		}
		known = serving
		c.lookAtDue()
		select {
		case <-more:
		case <-serving.over:
		case <-c.s.ctx.Done():
			return
		}
	}
}

// follow notes what has changed. The channel is closed at the next change.
func (c *collector) follow() (more <-chan struct{}) {
	changes, until, more, err := c.s.store.Since("", "", c.at)
	if err != nil { // the store has forgotten what came after that
		c.forget()
		changes, until, more = c.s.store.Everything()
	}
	for _, change := range changes {
		c.note(change)
	}
	c.at = until
	return more
}

func (c *collector) lookAtDue() {
	due := c.due
	c.due = nil
	seen := set{}
	for _, key := range due {
		if _, again := seen[key]; again || c.s.ctx.Err() != nil {
			continue
		}
		seen[key] = struct{}{}
		c.look(key)
	}
}

// note keeps the index, and finds what is due after a change.
func (c *collector) note(change store.Change) {
	key, was := change.Key, c.nodes[change.Key]
	o := unstructured.Unstructured{Object: change.New.Content}
	if was.uid != "" {
		c.drop(key, was)
		if was.uid != o.GetUID() {
			c.due = append(c.due, c.owned[was.uid].sorted()...)
		}
	}
	namespace := store.Key{Resource: namespacesStored, Name: key.Namespace}
	if change.New.Content == nil {
		c.due = append(c.due, namespace)
		return
	}
	is := node{uid: o.GetUID(), terminating: o.GetDeletionTimestamp() != nil}
	for _, r := range o.GetOwnerReferences() {
		is.owners = append(is.owners, r.UID)
	}
	c.keep(key, is)
	c.due = append(c.due, key)
	if is.terminating {
		c.due = append(c.due, c.owned[is.uid].sorted()...)
	}
	if c.nodes[namespace].terminating {
		c.due = append(c.due, namespace)
	}
}

// ownedDue makes all objects due that have owners: these may be of a kind that is served by now.
func (c *collector) ownedDue() {
	for _, dependents := range c.owned {
		c.due = append(c.due, dependents.sorted()...)
	}
}

// keep adds a node to the index. Its owners are due.
func (c *collector) keep(key store.Key, n node) {
	c.nodes[key], c.keys[n.uid] = n, key
	for _, owner := range n.owners {
		add(c.owned, owner, key)
	}
	if key.Namespace != "" {
		add(c.in, key.Namespace, key)
	}
	c.ownersDue(n)
}

// drop removes a node from the index. Those that were its owners are due.
func (c *collector) drop(key store.Key, n node) {
	delete(c.nodes, key)
	delete(c.keys, n.uid)
	for _, owner := range n.owners {
		remove(c.owned, owner, key)
	}
	remove(c.in, key.Namespace, key)
	c.ownersDue(n)
}

func (c *collector) ownersDue(n node) {
	for _, owner := range n.owners {
		if key, there := c.keys[owner]; there {
			c.due = append(c.due, key)
		}
	}
}

// item is a stored object.
type item struct {
	kind   *kinds.Kind
	key    store.Key
	object *unstructured.Unstructured // nobody changes it
	rv     int64
}

// item returns an object as it is stored now.
func (s *Server) item(key store.Key) (o item, there bool) {
	stored, there := s.store.Get(key)
	o = item{kind: s.kindOf(key.Resource), key: key, object: &unstructured.Unstructured{Object: stored.Content}, rv: stored.RV}
	return o, there && o.kind != nil
}

// look does what is to be done about an object. An object that is newer than the index waits
// until its change is noted: the index may lack dependents that are older than that change.
func (c *collector) look(key store.Key) {
	o, there := c.s.item(key)
	if there && o.rv > c.at {
		return
	}
	switch {
	case !there:
	case o.object.GetDeletionTimestamp() == nil:
		c.owners(o)
	case slices.Contains(o.object.GetFinalizers(), metav1.FinalizerOrphanDependents):
		c.orphan(o)
	case slices.Contains(o.object.GetFinalizers(), metav1.FinalizerDeleteDependents):
		c.foreground(o)
	}
	if there && key.Resource == namespacesStored && o.object.GetDeletionTimestamp() != nil {
		c.empty(o)
	}
}
