package coherence

import "k8s.io/apimachinery/pkg/types"

// Sighting is an object at one version; the zero value is no object.
type Sighting struct {
	UID     types.UID
	Version string
}

// Testimony is what is known of a witness (W3): what the file has, what the server has answered
// before the watch had reached the present, and what file and watch together have in the end.
type Testimony struct{ Kept, Answered, Now Sighting }

// Verdict is what witnesses say of a file.
type Verdict int

const (
	// Unknown: no witness is still as the file has it.
	Unknown Verdict = iota
	// Confirmed: some are, and the server says so of all of them.
	Confirmed
	// Contradicted: the server has another history.
	Contradicted
)

// Judge is W3.
func Judge(all []Testimony) Verdict {
	verdict := Unknown
	for _, t := range all {
		switch {
		case t.Now != t.Kept: // the watch has changed it
		case t.Answered != t.Kept:
			return Contradicted
		default:
			verdict = Confirmed
		}
	}
	return verdict
}
