package fleet

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/kates-go/kates/kates"
)

// logging calls a function with each line that a fleet logs.
func logging(line func(string)) Options {
	return Options{Logger: funcr.New(func(_, args string) { line(args) }, funcr.Options{})}
}

func TestANameThatComesAgainWhileAnotherClusterTakesItHasItsOwnIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *Fleet
		k, other := newCluster(t, "1"), newCluster(t, "3")
		again := false
		var answers atomic.Bool
		onGet(other, func() (bool, error) { return !answers.Load(), errors.New("no answer") })
		f = newFleet(t, logging(func(line string) {
			if !again && strings.Contains(line, "another cluster has taken a name") {
				again = true
				f.Remove("a")
				_ = f.Set(Member{Name: "a", Client: other.Client})
				time.Sleep(time.Second) // it has been asked
			}
		}))
		_ = f.Set(Member{Name: "a", Client: k.Client})
		synctest.Wait()
		system := &kates.Namespace{}
		system.Name = "kube-system"
		if err := k.Client.Delete(t.Context(), system, nil); err != nil {
			t.Fatal(err)
		}
		system.UID = "2"
		if err := k.Client.Create(t.Context(), system, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second) // more than the time between two probes
		synctest.Wait()
		first := f.Cluster("a")
		if h := first.Health(); h.Phase == Up || first.UID() != "" {
			t.Errorf("it has never answered: %+v, its UID is %q", h, first.UID())
		}
		answers.Store(true)
		atRest()
		if c := f.Cluster("a"); !again || c != first || c.UID() != "3" {
			t.Errorf("again: %t, the same: %t, its UID is %s", again, c == first, c.UID())
		}
	})
}
