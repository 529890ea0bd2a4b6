package kates

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/coherence"
)

// applyMarks remembers what was applied, to tell when doing so again would change nothing. Server-side apply is a
// function of what is sent, of the object, and of the fields that the manager owns in it. So one that was answered
// with a version changes nothing while the object is at that version; nor while it differs from it in nothing but
// the status, which was not sent, and in what other managers own. The second needs all of the object and its
// managedFields, which watches of Go types and of metadata do not have: there only the version counts, and what has
// another one is applied again, which the server answers without a new version if nothing changes.
//
// It holds some hundred bytes for each object that streams of this client show; what they do not show any more is
// forgotten from time to time. The zero value is empty.
type applyMarks struct {
	mu    sync.Mutex
	marks map[storedKey]applied
	sweep int // the number of marks at which to look for those that are no longer needed
}

// mark says what is applied, and as whom.
type mark struct {
	manager string
	sum     [sha256.Size]byte
	status  bool // the status is applied, too
}

// applied is one apply that has succeeded.
type applied struct {
	mark
	resource accumulator.Resource
	uid      types.UID
	version  string
	content  [sha256.Size]byte // of the object, less what does not matter; zero if unknown
}

func (a *ownedApply) mark(o *object) (mark, error) {
	data, err := json.Marshal([]any{o.Object, a.options.force})
	_, status := o.Object["status"]
	return mark{a.options.fieldManager, sha256.Sum256(data), status}, err
}

// knownUnchanged returns the object if it is known that to apply it again would change nothing.
func (a *ownedApply) knownUnchanged(o *object, m mark) (Object, bool) {
	streams, marks := a.client.core.streams, &a.client.core.applied
	known, _ := streams.Lookup(o.resource, o.key(), accumulator.Version)
	if known != nil && marks.at(o, m, known) {
		return known, true
	}
	if known, _ = streams.Lookup(o.resource, o.key(), accumulator.All); known != nil && marks.holds(o, m, known) { // nobody has shown a newer one
		return known, true
	}
	return nil, false
}

// took takes in the answer to an apply.
func (a *ownedApply) took(o *object, m mark, live Object, got *Unstructured) {
	done := &a.result.Applied
	if same, ok := live.(*Unstructured); ok && same == got ||
		live != nil && live.GetResourceVersion() != "" && live.GetResourceVersion() == got.GetResourceVersion() {
		done = &a.result.Unchanged
	}
	*done = append(*done, referenceOf(o.resource, got))
	if a.options.dryRun == nil {
		a.client.core.applied.put(a.client.core.streams, o, m, got)
	}
}

// at reports whether the object is at the version that the same apply was answered with.
func (a *applyMarks) at(o *object, m mark, now Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ok := a.marks[o.stored()]
	return ok && was.mark == m && was.uid == now.GetUID() && was.version == now.GetResourceVersion()
}

// holds is at, or that nothing that matters has changed since.
func (a *applyMarks) holds(o *object, m mark, now Object) bool {
	if a.at(o, m, now) {
		return true
	}
	a.mu.Lock()
	was, ok := a.marks[o.stored()]
	a.mu.Unlock()
	u, whole := now.(*Unstructured)
	if !ok || !whole || was.mark != m || m.status || was.uid != now.GetUID() || was.content == (applied{}).content {
		return false
	}
	if was.content != content(u, m.manager) {
		return false
	}
	was.version = now.GetResourceVersion()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.marks[o.stored()].uid == was.uid {
		a.marks[o.stored()] = was
	}
	return true
}

// put remembers an apply by its answer.
func (a *applyMarks) put(streams *accumulator.Streams, o *object, m mark, got *Unstructured) {
	if !coherence.Comparable(got.GetResourceVersion()) || got.GetUID() == "" {
		return
	}
	done := applied{mark: m, resource: o.resource, uid: got.GetUID(), version: got.GetResourceVersion(), content: content(got, m.manager)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.marks == nil {
		a.marks = make(map[storedKey]applied)
	}
	a.marks[o.stored()] = done
	if len(a.marks) < max(a.sweep, 1024) {
		return
	}
	maps.DeleteFunc(a.marks, func(key storedKey, m applied) bool { return !streams.Holds(m.resource, key.Key, m.uid) })
	a.sweep = 2 * len(a.marks)
}

func (a *applyMarks) forget(key storedKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.marks, key)
}

// content is the sum of an object less its status, its version, and what managers other than this one have
// applied; zero if the object does not say what this one has.
func content(u *Unstructured, manager string) (sum [sha256.Size]byte) {
	var own *metav1.FieldsV1
	for _, entry := range u.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			own = entry.FieldsV1
		}
	}
	metadata, ok := u.Object["metadata"].(map[string]any)
	if own == nil || !ok {
		return sum
	}
	object, metadata := maps.Clone(u.Object), maps.Clone(metadata)
	delete(object, "status")
	delete(metadata, "resourceVersion")
	delete(metadata, "managedFields")
	object["metadata"] = metadata
	data, err := json.Marshal([]any{object, own})
	if err != nil {
		return sum
	}
	return sha256.Sum256(data)
}
