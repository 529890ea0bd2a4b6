package warm

import "k8s.io/apimachinery/pkg/types"

// sighting is an object at one version; the zero value is no object.
type sighting struct {
	UID     types.UID
	Version string
}

// testimony is what is known of a witness (W3): what the file has, what the server has answered
// before the watch had reached the present, and what file and watch together have in the end.
type testimony struct{ Kept, Answered, Now sighting }

// verdict is what witnesses say of a file.
type verdict int

const (
	// unknown: no witness is still as the file has it.
	unknown verdict = iota
	// confirmed: some are, and the server says so of all of them.
	confirmed
	// contradicted: the server has another history.
	contradicted
)

// judge is W3.
func judge(all []testimony) verdict {
	verdict := unknown
	for _, t := range all {
		switch {
		case t.Now != t.Kept: // the watch has changed it
		case t.Answered != t.Kept:
			return contradicted
		default:
			verdict = confirmed
		}
	}
	return verdict
}
