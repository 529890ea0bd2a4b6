package inspect

import "github.com/kates-go/kates/kates"

// reader is what reads a watch.
type reader interface {
	// keys appends the keys of a query's objects in the last snapshot, in order.
	keys(query string) []ObjectKey
	object(query string, key ObjectKey) (Object, bool)
}

// Of returns what a client does and has done. It does not wait for the server.
func Of(c *kates.Client) *Report {
	_ = c
	return &Report{}
}

// Objects returns the names of the objects of a query that the last snapshot has, or leaves out as
// invalid, by namespace and name: those after a key (the zero key: from the first), limit of them
// at most (0: all). It returns nil if there is no such query. For partitions it is what the watch
// has.
func (w *Watch) Objects(query string, after ObjectKey, limit int) []ObjectKey {
	_, _, _ = query, after, limit
	return nil
}

// Object returns what the watch has of an object of a query. It reports false if there is no such
// query.
func (w *Watch) Object(query string, key ObjectKey) (Object, bool) {
	if w.of == nil {
		return Object{}, false
	}
	return w.of.object(query, key)
}
