package translate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// refused is a refusal of an object.
type refused struct {
	uid types.UID
	Refusal
}

// refused are the refusals, in order.
func (in *input) refused() (all []refused) {
	for uid, r := range in.Refused {
		all = append(all, refused{uid, r})
	}
	slices.SortFunc(all, func(a, b refused) int { return strings.Compare(string(a.uid), string(b.uid)) })
	return all
}

// current returns the version of an object that is served: the object itself; if nginx has refused
// this version, the last one that it took; or nil if there is none. A refusal is a problem of the
// object.
func (t *translation) current(o kates.Object) kates.Object {
	refusal, err := t.refusals.Get(t.r, o.GetUID())
	if err != nil || refusal.Version != o.GetResourceVersion() {
		return o
	}
	served := "nothing of it is served"
	if refusal.LastGood != nil {
		served = "its last good version is served"
	}
	reason := "Refused"
	if refusal.Held {
		reason = "Held"
	}
	t.problem(o, reason, "%s, and %s: %s", refusal.what(), served, refusal.Message)
	return refusal.LastGood
}

func (r Refusal) what() string {
	if r.Held {
		return "nginx refuses others of its namespace"
	}
	return "nginx refuses it"
}

// refusal says why this version of an object is not served. It is empty if nginx did not refuse it.
func (t *translation) refusal(o kates.Object) string {
	if r, err := t.refusals.Get(t.r, o.GetUID()); err == nil && r.Version == o.GetResourceVersion() {
		return r.what() + ": " + r.Message
	}
	return ""
}
