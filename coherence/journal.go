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
	// New says that the server made Version for this very request: a create, or a list. See
	// rule 4 of the package documentation.
	New bool
}

// Ticket marks the moment at which a request began.
type Ticket struct{ begun uint64 }

// Record is a write with its place in the order of requests. Every [View] of the
// resource gets it.
type Record struct {
	Write
	begun, ended uint64
}

// Fresh reports whether the record's version was certainly given after the moment
// since.
func (r Record) fresh(since uint64) bool {
	return r.New && r.begun > since && Comparable(r.Version)
}

// Journal is the client's side of coherence: the floor under each resource, and
// the order in which requests began and were answered. What it holds is bounded by
// the number of resources. The zero Journal is ready for use. It is not safe for
// concurrent use: its owner guards it.
type Journal struct {
	tick   uint64
	floors map[string]string
}

// Begin is called before a request is sent.
func (j *Journal) Begin() Ticket {
	j.tick++
	return Ticket{begun: j.tick}
}

// Commit is called when a write has succeeded. It raises the floor of the resource
// (its stored form, by whatever name the owner knows it) and returns the record for
// the resource's views. A write that failed, or whose outcome is unknown, is not
// committed at all: the watch will tell.
func (j *Journal) Commit(resource string, t Ticket, w Write) Record {
	j.tick++
	if Newer(w.Version, j.floors[resource]) {
		if j.floors == nil {
			j.floors = make(map[string]string)
		}
		j.floors[resource] = w.Version
	}
	return Record{Write: w, begun: t.begun, ended: j.tick}
}

// Floor returns the version that a list of the resource must not be older than, ""
// if there is none.
func (j *Journal) Floor(resource string) string { return j.floors[resource] }

// Lower forgets the floor of a resource whose history started anew (rule 6).
func (j *Journal) Lower(resource string) { delete(j.floors, resource) }
