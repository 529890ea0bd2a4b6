package e2e

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// journal keeps the log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// count counts the lines that contain all of the words.
func (j *journal) count(words ...string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
line:
	for line := range strings.Lines(j.text.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue line
			}
		}
		n++
	}
	return n
}

// own writes an object of the follower's kind through its client, and checks that every Update
// shows it.
func (f *follower) own(name string) *kates.Unstructured {
	f.t.Helper()
	made := &kates.Unstructured{}
	require.NoError(f.t, f.client.Create(f.t.Context(), object(f.kind, f.ns, name, nil), made))
	f.update()
	require.Equal(f.t, identityOf(made), f.shown[f.ns+"/"+name], "G4: %s", name)
	return made
}

// label makes a name from words.
func label(words string) string { return strings.NewReplacer(" ", "", ",", "-").Replace(words) }

// restoring is a cluster that goes back in time while it is watched.
type restoring struct {
	t    *testing.T
	c    *cluster.Cluster
	log  journal
	all  together
	late *follower // it shows its client's writes; its watch brings nothing
}

func newRestoring(t *testing.T) *restoring {
	t.Helper()
	r := &restoring{t: t, c: breakable(t)}
	logged := kates.WithLogger(slog.New(secrecy.Handler(slog.NewTextHandler(&r.log, nil))))
	r.all = watching(t, r.c.Config, r.c.Config, nil, logged)
	r.late = newFollowerOf(t, r.c.Config, "ns", secrets, nil, logged)
	r.late.start()
	r.late.arrive()
	r.late.own("kept")
	r.late.arrive()
	return r
}

var secretWatches = katestest.Match{Verb: "watch", Resource: "secrets"}

// outlive makes the backup, and then writes what the backup lacks.
func (r *restoring) outlive() cluster.Backup {
	r.t.Helper()
	backup, err := r.c.Backup()
	require.NoError(r.t, err)
	r.late.now(secretWatches).Delay(time.Hour) // it does not even reach the backup
	for name, f := range r.all {
		f.own("lost-" + label(name))
		if f.kind == hosts && strings.HasSuffix(name, "streamed") {
			require.NoError(r.t, f.client.Delete(r.t.Context(), object(f.kind, "ns", "o-0-2", nil), nil))
			f.update()
			require.NotContains(r.t, f.shown, "o-0-2")
		}
	}
	for round := range 12 { // so that the new history does not reach these versions at once
		r.all.change(1 + round)
	}
	r.all.each(func(f *follower) {
		f.arrive()
		lost := 0
		for name := range f.shown {
			lost += strings.Count(name, "lost-")
		}
		require.Equal(r.t, 2, lost, "its own, and the one of the other client of its kind")
	})
	r.late.own("lost")
	require.Equal(r.t, 1, r.late.acc.Status().Queries[0].Pending)
	return backup
}

// begun checks that all followers have begun a new history.
func (r *restoring) begun() {
	r.t.Helper()
	r.everybody(func(f *follower) {
		f.anew = true
		f.arrive()
		f.anew = false
		for name := range f.shown {
			assert.NotContains(r.t, name, "lost")
		}
		if f != r.late {
			assert.Contains(r.t, f.shown, f.ns+"/o-0-2", "this was never deleted")
		}
		assert.Zero(r.t, f.acc.Status().Queries[0].Pending, "G6")
		assert.NoError(r.t, f.acc.Ready())
		f.quiet()
	})
	assert.Equal(r.t, 5, r.log.count("level=ERROR", "restored from a backup"), "once by each client: %s", &r.log.text)
}

func (r *restoring) everybody(do func(*follower)) {
	r.all.each(do)
	do(r.late)
}

// coherent checks that the client's writes are shown ahead of its watch.
func (f *follower) coherent(name string) {
	f.t.Helper()
	f.now(katestest.Match{Verb: "watch", Resource: f.kind.Resource}).Delay(time.Second)
	f.own(name)
	require.NoError(f.t, f.client.Delete(f.t.Context(), object(f.kind, f.ns, name, nil), nil))
	f.update()
	require.NotContains(f.t, f.shown, f.ns+"/"+name, "G4")
}

// The restore is noticed when the server is back, whatever version the watch had reached.
// What the client wrote and the backup lacks is gone. After that everything holds as before.
func TestG5AClusterRestoredFromABackupStartsANewHistory(t *testing.T) {
	t.Parallel()
	r := newRestoring(t)
	backup := r.outlive()
	require.NoError(t, r.c.Restore(backup))
	r.late.now(secretWatches).Cut(0)
	r.begun()

	for name, f := range r.all {
		f.coherent("new-" + label(name))
	}
	r.late.own("lost")
	for round := range 14 { // beyond the end of the old history
		r.all.change(1 + round)
	}
	r.everybody(func(f *follower) {
		f.arrive()
		f.quiet()
		assert.Zero(t, f.acc.Status().Queries[0].Pending, "G6")
	})
	assert.Equal(t, 5, r.log.count("level=ERROR"), "and all is well: %s", &r.log.text)
}
