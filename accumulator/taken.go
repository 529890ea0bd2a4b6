package accumulator

import "github.com/kates-go/kates/accumulator/stream"

// taken is what is new of a field.
type taken struct {
	changes []stream.Change
	// whole: these are all objects. What the reader knows besides is gone.
	whole bool
	// loud are the keys whose change is worth a signal. With whole, all are.
	loud map[Key]bool
	// anew: versions do not compare with those that the reader knows.
	anew bool
	// reshaped: one version of an object may look different now.
	reshaped bool
	// ok is false where there is nothing that may be shown yet.
	ok bool
}

// takenOf is what a batch of one stream says.
func takenOf(b stream.Batch) taken {
	return taken{
		changes: b.Changes, whole: b.Extent == stream.Everything, loud: b.Signals,
		anew: b.NewHistory, ok: b.Extent != stream.Unknown,
	}
}
