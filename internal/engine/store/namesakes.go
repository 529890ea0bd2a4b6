package store

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// namesakes are objects of a server that have one key here. A server stores some names that are no
// UTF-8, and JSON has U+FFFD in place of each byte that is none: two names become one. While
// several objects have a key, the key is invalid. All of them are kept, so the key is right again
// as soon as one object is left, without a list. So nobody
// can force others to list by making such names.
type namesakes struct {
	of   map[object.Key]map[types.UID]object.Object // two or more for each key
	more int                                        // objects beside the first of each key
}

// errNamesakes is the fault of an object that stands for several.
var errNamesakes = errors.New("the server has several objects with this name: their names differ in bytes " +
	"that are no UTF-8, and JSON has U+FFFD for each of these")

// add takes in an object beside what is held of its key. It returns what is held then.
func (n *namesakes) add(key object.Key, held, o object.Object) object.Object {
	all := n.of[key]
	if all == nil {
		if held == nil || !object.Ambiguous(key) || !differ(held, o) {
			return o
		}
		if n.of == nil {
			n.of = make(map[object.Key]map[types.UID]object.Object)
		}
		all = map[types.UID]object.Object{held.GetUID(): held}
		n.of[key] = all
	}
	if all[o.GetUID()] == nil {
		n.more++
	}
	all[o.GetUID()] = o
	if held == nil {
		held = o
	}
	return standIn(o, held)
}

// drop takes out an object, or, with nil, all that have the key. It returns what is held of the key
// then, nil for nothing.
func (n *namesakes) drop(key object.Key, held, o object.Object) object.Object {
	all := n.of[key]
	switch {
	case o == nil:
		n.more -= max(len(all)-1, 0)
		delete(n.of, key)
		return nil
	case all == nil && held != nil && object.Ambiguous(key) && differ(held, o):
		return held
	case all == nil:
		return nil
	case all[o.GetUID()] == nil:
		return held
	}
	delete(all, o.GetUID())
	n.more--
	if len(all) > 1 {
		return held
	}
	delete(n.of, key)
	for _, last := range all {
		held = last
	}
	return held
}

// Name is a name that no two objects have, where their keys may be the same.
func Name(key object.Key, uid types.UID) object.Key {
	if object.Ambiguous(key) {
		key.Name += "/" + string(uid)
	}
	return key
}

// differ reports whether it is certain that two are not versions of one object.
func differ(a, b object.Object) bool {
	return a.GetUID() != "" && b.GetUID() != "" && a.GetUID() != b.GetUID()
}

// standIn stands for several objects of one key. It has the newest version of them.
func standIn(a, b object.Object) object.Object {
	o := a
	if coherence.Newer(b.GetResourceVersion(), a.GetResourceVersion()) {
		o = b
	}
	id := object.IDAs(o, o.GetObjectKind().GroupVersionKind())
	id.UID = ""
	return object.Reject(id, nil, object.Original{}, errNamesakes)
}

// StandsForSeveral reports whether an object that is left out stands for several of the server.
func StandsForSeveral(o object.Object) bool { return errors.Is(object.Fault(o), errNamesakes) }
