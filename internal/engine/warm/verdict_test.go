package warm

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestW3AWitnessThatTheWatchHasNotChangedMustBeOnTheServer(t *testing.T) {
	kept, newer, other := sighting{"a", "5"}, sighting{"a", "9"}, sighting{"b", "5"}
	older, gone := sighting{"a", "4"}, sighting{}
	for name, c := range map[string]struct {
		all  []testimony
		want verdict
	}{
		"nobody":                         {nil, unknown},
		"as it was":                      {[]testimony{{kept, kept, kept}}, confirmed},
		"changed, and the watch says it": {[]testimony{{kept, newer, newer}}, unknown},
		"changed after it was asked for": {[]testimony{{kept, kept, newer}}, unknown},
		"deleted, and the watch says it": {[]testimony{{kept, gone, gone}}, unknown},
		"made anew":                      {[]testimony{{kept, gone, other}}, unknown},
		"newer, and the watch is silent": {[]testimony{{kept, newer, kept}}, contradicted},
		"older":                          {[]testimony{{kept, older, kept}}, contradicted},
		"of another UID":                 {[]testimony{{kept, other, kept}}, contradicted},
		"gone, and the watch is silent":  {[]testimony{{kept, gone, kept}}, contradicted},
		"one of two":                     {[]testimony{{kept, kept, kept}, {other, gone, other}}, contradicted},
		"one, and one that has changed":  {[]testimony{{kept, newer, newer}, {other, other, other}}, confirmed},
	} {
		assert.Equal(t, c.want, judge(c.all), name)
	}
}

// A history is a row of versions, one of which each object has. The server's is that of the file
// up to a version, and then another one, if that is before the file's.
func TestW3NoHistoryThatHoldsIsContradictedAndNoWitnessIsConfirmedFromAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type state map[string]sighting
		uids := 0
		step := func(s state, version int, who string) {
			name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, who)
			v := fmt.Sprint(version, " of the ", who) // no version is in two histories by chance
			was, is := s[name]
			switch {
			case is && rapid.Bool().Draw(t, "deletes"):
				delete(s, name)
			case is:
				s[name] = sighting{was.UID, v}
			default:
				uids++
				s[name] = sighting{types.UID(fmt.Sprint("u", uids)), v}
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
		var all []testimony
		for name, o := range file {
			all = append(all, testimony{Kept: o, Answered: answered[name], Now: seen[name]})
		}
		verdict := judge(all)
		if backup == position && verdict == contradicted {
			t.Fatalf("one history: %v", all)
		}
		for _, one := range all {
			if judge([]testimony{one}) == confirmed && shared[nameOf(file, one.Kept)] != one.Kept && backup < position {
				t.Fatalf("another history confirms %v", one)
			}
		}
		if backup < position && verdict != contradicted {
			for name, o := range seen {
				if fileHas := file[name]; fileHas == o && shared[name] != o {
					t.Fatalf("%s is not on the server, and nobody has noticed: %v", name, all)
				}
			}
		}
	})
}

func nameOf(file map[string]sighting, o sighting) string {
	for name, kept := range file {
		if kept == o {
			return name
		}
	}
	return ""
}
