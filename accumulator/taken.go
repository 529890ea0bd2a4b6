package accumulator

import "github.com/kates-go/kates/accumulator/stream"

// taken is the changes of a field since the last take.
type taken struct {
	changes []stream.Change
	// whole: changes has all objects. Others that the reader knows are gone.
	whole bool
	// loud are the keys whose change is worth a signal. With whole, all are.
	loud map[Key]bool
	// anew: the versions do not compare with those that the reader knows.
	anew bool
	// reshaped: one version of an object may look different now.
	reshaped bool
	// ok is false if there is nothing that may be shown yet.
	ok bool
}

// takenOf converts a batch of one stream.
func takenOf(b stream.Batch) taken {
	return taken{
		changes: b.Changes, whole: b.Extent == stream.Everything, loud: b.Signals,
		anew: b.NewHistory, ok: b.Extent != stream.Unknown,
	}
}
