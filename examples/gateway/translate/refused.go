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

// refusal is what nginx said when it refused this version of an object. It is empty if it did not.
func (t *translation) refusal(o kates.Object) string {
	if r, refused := t.Refused[o.GetUID()]; refused && r.Version == o.GetResourceVersion() {
		return r.Message
	}
	return ""
}
