package coherence

import "k8s.io/apimachinery/pkg/types"

// Object is the part of an object that the rules read.
type Object interface {
	GetUID() types.UID
	GetResourceVersion() string
}

// Write is what a write of this client did to one object, as the server's answer says.
type Write struct {
	Key types.NamespacedName
	// UID is that of the object written, or deleted.
	UID types.UID
	// Version is that of the content, or of the deletion. It is empty if the answer had none.
	Version string
	// Object is the content written, nil if the object is gone. It is shared: nobody writes to it
	// again.
	Object Object
}

// Journal is the client's side of coherence: the floor under each resource. Its size is bounded by
// the number of resources. The zero Journal is ready for use. It is not safe for concurrent use:
// its owner guards it.
type Journal struct{ floors map[string]string }

// Commit is called when a write has succeeded, before the resource's views record it. It raises
// the floor of the resource: of its stored form, under the name that the owner has for it. A write
// that failed, or whose outcome is unknown, is not committed: the watch will show what became of
// it.
func (j *Journal) Commit(resource string, w Write) {
	if Newer(w.Version, j.floors[resource]) {
		if j.floors == nil {
			j.floors = make(map[string]string)
		}
		j.floors[resource] = w.Version
	}
}

// Floor returns the oldest version that a list of the resource may have, "" if any will do.
func (j *Journal) Floor(resource string) string { return j.floors[resource] }

// Lower removes the floor of a resource whose history started anew (rule 8).
func (j *Journal) Lower(resource string) { delete(j.floors, resource) }
