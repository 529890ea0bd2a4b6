package coherence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// A quiet resource's bookmark may repeat an old version.
func TestG5APositionNeverGoesBack(t *testing.T) {
	v := coherence.NewView(coherence.Options{Whole: true})
	v.Advance("20")
	v.Advance("10")
	v.List("15", func(coherence.Key) types.UID { return "" })
	v.Advance("")
	assert.Equal(t, "20", v.Position())
	x := &thing{key: coherence.Key{Name: "x"}, uid: "x", rev: 15}
	v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: "15", Object: x}, nil, time.Time{})
	assert.Nil(t, v.Read(x.key, nil), "the watch has been past it, and does not show it")
	assert.Zero(t, v.Pending())
}

// Answers do not come back in the order in which the server made them.
func TestG4AFloorNeverSinks(t *testing.T) {
	var j coherence.Journal
	for _, version := range []string{"9", "100", "20", "", "0"} {
		j.Commit("things", coherence.Write{Version: version})
	}
	assert.Equal(t, "100", j.Floor("things"))
	assert.Empty(t, j.Floor("others"))
	j.Lower("things")
	assert.Empty(t, j.Floor("things"))
}

func TestG3OneKeyWrittenOverAndOverIsOneEntry(t *testing.T) {
	v := coherence.NewView(coherence.Options{Whole: true})
	for rev := 1; rev <= 100_000; rev++ {
		x := &thing{key: coherence.Key{Name: "x"}, uid: "x", rev: rev}
		v.Record(coherence.Write{Key: x.key, UID: x.uid, Version: version(rev), Object: x}, nil, time.Time{})
	}
	assert.Equal(t, 1, v.Pending())
	assert.Len(t, v.Advance("100000"), 1)
	assert.Zero(t, v.Pending())
}
