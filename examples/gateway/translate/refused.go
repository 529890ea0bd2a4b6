package translate

import "github.com/kates-go/kates/kates"

// current returns the version of an object that is served: the object itself; if nginx has refused
// this version, the last one that it took; or nil if there is none. A refusal is a problem of the
// object.
func (t *translation) current(o kates.Object) kates.Object {
	refusal, refused := t.Refused[o.GetUID()]
	if !refused || refusal.Version != o.GetResourceVersion() {
		return o
	}
	served := "nothing of it is served"
	if refusal.LastGood != nil {
		served = "its last good version is served"
	}
	t.problem(o, "Refused", "nginx refuses it, and %s: %s", served, refusal.Message)
	return refusal.LastGood
}
