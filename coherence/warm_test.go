package coherence

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestW3AWitnessThatTheWatchHasNotChangedMustBeOnTheServer(t *testing.T) {
	kept, newer, other := Sighting{"a", "5"}, Sighting{"a", "9"}, Sighting{"b", "5"}
	older, gone := Sighting{"a", "4"}, Sighting{}
	for name, c := range map[string]struct {
		all  []Testimony
		want Verdict
	}{
		"nobody":                         {nil, Unknown},
		"as it was":                      {[]Testimony{{kept, kept, kept}}, Confirmed},
		"changed, and the watch says it": {[]Testimony{{kept, newer, newer}}, Unknown},
		"changed after it was asked for": {[]Testimony{{kept, kept, newer}}, Unknown},
		"deleted, and the watch says it": {[]Testimony{{kept, gone, gone}}, Unknown},
		"made anew":                      {[]Testimony{{kept, gone, other}}, Unknown},
		"newer, and the watch is silent": {[]Testimony{{kept, newer, kept}}, Contradicted},
		"older":                          {[]Testimony{{kept, older, kept}}, Contradicted},
		"of another UID":                 {[]Testimony{{kept, other, kept}}, Contradicted},
		"gone, and the watch is silent":  {[]Testimony{{kept, gone, kept}}, Contradicted},
		"one of two":                     {[]Testimony{{kept, kept, kept}, {other, gone, other}}, Contradicted},
		"one, and one that has changed":  {[]Testimony{{kept, newer, newer}, {other, other, other}}, Confirmed},
	} {
		assert.Equal(t, c.want, Judge(c.all), name)
	}
}

// A history is a row of versions, one of which each object has. The server's is that of the file
// up to a version, and then another one, if that is before the file's.
func TestW3NoHistoryThatHoldsIsContradictedAndNoWitnessIsConfirmedFromAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type state map[string]Sighting
		uids := 0
		step := func(s state, version int, who string) {
			name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, who)
			v := fmt.Sprint(version, " of the ", who) // no version is in two histories by chance
			was, is := s[name]
			switch {
			case is && rapid.Bool().Draw(t, "deletes"):
				delete(s, name)
			case is:
				s[name] = Sighting{was.UID, v}
			default:
				uids++
				s[name] = Sighting{types.UID(fmt.Sprint("u", uids)), v}
			}
		}
		copied := func(s state) state { return maps.Clone(s) }
		position := rapid.IntRange(1, 20).Draw(t, "position")
		backup := rapid.IntRange(0, position).Draw(t, "backup")
		file, shared := state{}, state{}
		for v := 1; v <= position; v++ {
			if v == backup+1 {
				shared = copied(file)
			}
			step(file, v, "file")
		}
		if backup == position {
			shared = copied(file)
		}
		server := copied(shared)
		present := rapid.IntRange(position, position+10).Draw(t, "present")
		seen := copied(file) // file and watch
		answered := state{}
		asked := rapid.IntRange(position, present).Draw(t, "asked")
		for v := backup + 1; v <= present; v++ {
			before := copied(server)
			step(server, v, "server")
			if v > position { // the watch brings it
				for name := range before {
					if _, is := server[name]; !is {
						delete(seen, name)
					}
				}
				for name, o := range server {
					if before[name] != o {
						seen[name] = o
					}
				}
			}
			if v == asked {
				answered = copied(server)
			}
		}
		if asked <= backup {
			answered = copied(server)
		}
		var all []Testimony
		for name, o := range file {
			all = append(all, Testimony{Kept: o, Answered: answered[name], Now: seen[name]})
		}
		verdict := Judge(all)
		if backup == position && verdict == Contradicted {
			t.Fatalf("one history: %v", all)
		}
		for _, one := range all {
			if Judge([]Testimony{one}) == Confirmed && shared[nameOf(file, one.Kept)] != one.Kept && backup < position {
				t.Fatalf("another history confirms %v", one)
			}
		}
		if backup < position && verdict != Contradicted {
			for name, o := range seen {
				if fileHas := file[name]; fileHas == o && shared[name] != o {
					t.Fatalf("%s is not on the server, and nobody has noticed: %v", name, all)
				}
			}
		}
	})
}

func nameOf(file map[string]Sighting, o Sighting) string {
	for name, kept := range file {
		if kept == o {
			return name
		}
	}
	return ""
}
