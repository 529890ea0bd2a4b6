package coherence

import "k8s.io/apimachinery/pkg/types"

// Key names an object within a resource.
type Key = types.NamespacedName

// Object is what the rules need to know of an object.
type Object interface {
	GetUID() types.UID
	GetResourceVersion() string
}

// Write is what a write of this client did to one object, as far as the server's
// answer tells.
type Write struct {
	Key Key
	// UID of the object written; of the one deleted, where Object is nil.
	UID types.UID
	// Version of the content, or of the deletion. Empty where the answer had none.
	Version string
	// Object is the content written, nil if the object is gone. It is shared from
	// here on: nobody writes to it again.
	Object Object
}

// Journal is the client's side of coherence: the floor under each resource. What it
// holds is bounded by the number of resources. The zero Journal is ready for use. It is
// not safe for concurrent use: its owner guards it.
type Journal struct{ floors map[string]string }

// Commit is called when a write has succeeded, before the resource's views get it. It raises
// the floor of the resource (its stored form, by whatever name the owner knows it).
// A write that failed, or whose outcome is unknown, is not committed at all: the
// watch will tell.
func (j *Journal) Commit(resource string, w Write) {
	if Newer(w.Version, j.floors[resource]) {
		if j.floors == nil {
			j.floors = make(map[string]string)
		}
		j.floors[resource] = w.Version
	}
}

// Floor returns the version that a list of the resource must not be older than, ""
// if there is none.
func (j *Journal) Floor(resource string) string { return j.floors[resource] }

// Lower forgets the floor of a resource whose history started anew (rule 8).
func (j *Journal) Lower(resource string) { delete(j.floors, resource) }
