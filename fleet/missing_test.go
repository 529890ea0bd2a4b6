package fleet

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// The status of a watch names the clusters that its snapshots lack, as the struct does, whether or
// not there is a snapshot yet.
func TestTheStatusOfAWatchSaysWhoIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b, c := newCluster(t, "1", configMap("x")), newCluster(t, "2"), newCluster(t, "3", configMap("z"))
		var slow, down atomic.Bool
		slow.Store(true)
		on(b, "list", "services", &slow, errors.New("not now"))
		on(c, "*", "*", &down, errors.New("connection refused"))
		for name, k := range map[string]*katestest.Fake{"a": a, "b": b, "c": c} {
			_ = f.Set(Member{Name: name, Client: k.Client})
		}
		s := watchThings(t, f)
		says := func(want map[string]string) {
			t.Helper()
			status := s.Status()
			for _, c := range status.Clusters {
				if text := want[c.Name]; (c.Missing == "") != (text == "") || !strings.Contains(c.Missing, text) {
					t.Errorf("cluster %s: %q, not %q", c.Name, c.Missing, text)
				}
				if text := want[c.Name]; text != "" && (!strings.Contains(status.Err().Error(), text) || !strings.Contains(status.String(), text)) {
					t.Errorf("%v\n%s", status.Err(), status)
				}
			}
			if len(want) == 0 && status.Err() != nil {
				t.Error(status.Err())
			}
		}
		synctest.Wait()
		says(map[string]string{"b": "Services"}) // before the first snapshot
		time.Sleep(30 * time.Second)
		expect(t, settled(t, s), "a/x, c/z, missing b (false)")
		says(map[string]string{"b": "Services"})
		down.Store(true)
		time.Sleep(30 * time.Second)
		expect(t, settled(t, s), "a/x, c/z, missing b (false), missing c (true)")
		says(map[string]string{"b": "Services", "c": "connection refused"})
		if text, err := json.Marshal(s.Status()); err != nil || !strings.Contains(string(text), `"missing":"read the UID`) {
			t.Errorf("%s %v", text, err)
		}
		if f.Status().Clusters[1].Missing != "" {
			t.Error("the fleet's own status is not that of a watch")
		}
		slow.Store(false)
		down.Store(false)
		time.Sleep(2 * time.Minute)
		expect(t, settled(t, s), "a/x, b/-, c/z")
		says(nil)
	})
}

// lateMapper knows nothing of a group until it is served.
type lateMapper struct {
	meta.RESTMapper
	group  string
	served *atomic.Bool
}

func (m lateMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	if r.Group == m.group && !m.served.Load() {
		return nil, &meta.NoResourceMatchError{PartialResource: r}
	}
	return m.RESTMapper.KindsFor(r)
}

func (m lateMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Group == m.group && !m.served.Load() {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// A watch that cannot start is retried, and visible: in the struct, in the status, and once in the
// log.
func TestAClusterThatDoesNotServeAKindIsMissingUntilItDoes(t *testing.T) {
	type gates struct {
		Maps    map[string][]map[string]any `kates:"configmaps"`
		Gates   map[string][]map[string]any `kates:"gates.example.com"`
		Missing []Missing
	}
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		f := newFleet(t, Options{Logger: logr.FromSlogHandler(slog.NewTextHandler(&logged, nil))})
		kind := katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Gate"})
		well, late := katestest.New(t, kind), katestest.New(t, kind)
		var served atomic.Bool
		client, err := kates.NewClientFromDynamic(late.Dynamic, lateMapper{late.Mapper, "example.com", &served})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_ = f.Set(Member{Name: "a", Client: well.Client})
		_ = f.Set(Member{Name: "b", Client: client})
		s, err := Watch[gates](t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		signalled(t, s.Changed())
		var snap gates
		if _, err := s.Update(t.Context(), &snap); err != nil || len(snap.Missing) != 1 || snap.Missing[0].Cluster != "b" {
			t.Fatalf("%+v %v", snap, err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for what, text := range map[string]string{
			"the struct": snap.Missing[0].Err.Error(), "the status": s.Status().Clusters[1].Missing,
			"its error": s.Status().Err().Error(), "the table": s.Status().String(), "the log": logged.String(),
		} {
			if !strings.Contains(text, "gates.example.com") {
				t.Errorf("%s does not say so: %s", what, text)
			}
		}
		if n := strings.Count(logged.String(), "a cluster is missing"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
		served.Store(true)
		time.Sleep(2 * time.Minute) // the pauses grow to one
		synctest.Wait()
		if _, err := s.Update(t.Context(), &snap); err != nil || len(snap.Missing) != 0 || len(snap.Gates) != 2 {
			t.Errorf("%+v %v", snap, err)
		}
		if err := s.Status().Err(); err != nil {
			t.Error(err)
		}
	})
}

// The pauses between attempts to start a watch grow to a minute, but for a cluster that answers
// again.
func TestAWatchStartsAsSoonAsItsClusterAnswersAgain(t *testing.T) {
	type gates struct {
		Gates map[string][]map[string]any `kates:"gates.example.com"`
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		k := katestest.New(t, katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Gate"}), katestest.WithObjects(systemOf("1")))
		var served, down atomic.Bool
		client, err := kates.NewClientFromDynamic(k.Dynamic, lateMapper{k.Mapper, "example.com", &served})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		onGet(k, func() (bool, error) { return down.Load(), errors.New("connection refused") })
		_ = f.Set(Member{Name: "a", Client: client})
		s, err := Watch[gates](t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		time.Sleep(time.Hour)
		down.Store(true)
		eventually(t, f, "it does not answer", func() bool { return f.Cluster("a").Health().Phase == Stale })
		served.Store(true)
		down.Store(false)
		eventually(t, f, "it answers", func() bool { return f.Cluster("a").Health().Phase == Up })
		time.Sleep(time.Second)
		synctest.Wait()
		var snap gates
		if _, err := s.Update(t.Context(), &snap); err != nil || len(snap.Gates) != 1 {
			t.Errorf("%v %v: %s", snap, err, s.Status())
		}
	})
}
