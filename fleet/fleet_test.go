package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func names(f *Fleet) (all []string) {
	for _, c := range f.Clusters() {
		all = append(all, c.Name())
	}
	return all
}

// onGet has a fake answer each Get by a function, until it returns false.
func onGet(k *katestest.Fake, answer func() (bool, error)) {
	k.Dynamic.Lock()
	defer k.Dynamic.Unlock()
	k.Dynamic.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		handled, err := answer()
		return handled, nil, err
	})
}

func TestClustersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1"), newCluster(t, "2")
		for name, k := range map[string]*katestest.Fake{"b": b, "a": a} {
			if err := f.Set(Member{Name: name, Client: k.Client, Labels: map[string]string{"name": name}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := names(f); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("the clusters are %v", got)
		}
		one := f.Cluster("a")
		if one.Client() != a.Client || one.UID() != "1" || one.Labels()["name"] != "a" || one.Health().Phase != Up {
			t.Errorf("cluster a: UID %s, labels %v, %+v", one.UID(), one.Labels(), one.Health())
		}
		if err := errors.Join(f.Ready(), f.Status().Err()); err != nil {
			t.Error(err)
		}
		if !f.Remove("a") || f.Remove("a") {
			t.Error("Remove does not say whether there was a cluster")
		}
		<-one.Done()
		synctest.Wait()
		if got := names(f); !slices.Equal(got, []string{"b"}) {
			t.Errorf("the clusters are %v", got)
		}
	})
}

func TestMembersThatMakeNoSenseAreErrors(t *testing.T) {
	f := newFleet(t, Options{})
	k := newCluster(t, "1")
	if err := f.Add("x", nil); err == nil {
		t.Error("no configuration is accepted")
	}
	for _, m := range []Member{
		{Client: k.Client}, {Name: "x"}, {Name: "x", Client: k.Client, Config: &rest.Config{}}, {Name: "x", Err: errors.New("broken")},
	} {
		if err := f.Set(m); err == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
	for _, o := range []Options{{Deadline: -1}, {Interval: -1}, {Probe: -1}, {Timeout: -1}, {Sources: []Source{nil}}} {
		if f, err := New(o); err == nil {
			f.Close()
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestAClusterThatDoesNotAnswerIsStaleSinceItsLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a, b := newCluster(t, "1"), newCluster(t, "2")
		var broken atomic.Bool
		onGet(a, func() (bool, error) { return broken.Load(), errors.New("connection refused") })
		_ = f.Set(Member{Name: "a", Client: a.Client})
		_ = f.Set(Member{Name: "b", Client: b.Client})
		synctest.Wait()
		c := f.Cluster("a")
		broken.Store(true)
		eventually(t, f, "it is stale", func() bool { return c.Health().Phase == Stale })
		h := c.Health()
		if h.Since != h.Heard || time.Since(h.Heard) > 30*time.Second || !strings.Contains(h.Error, "refused") {
			t.Errorf("%+v", h)
		}
		if f.Cluster("b").Health().Phase != Up || f.Cluster("a") != c {
			t.Error("the other is not up, or the stale one is not the same any more")
		}
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), `cluster "a" is stale`) {
			t.Errorf("the status: %v", err)
		}
		broken.Store(false)
		eventually(t, f, "it is up", func() bool { return c.Health().Phase == Up })
		if h := c.Health(); h.Error != "" {
			t.Errorf("%+v", h)
		}
	})
}

// One request may fail by chance.
func TestAClusterIsUpUntilTwoRequestsInARowHaveFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		a := newCluster(t, "1", configMap("x"))
		var asked, fails atomic.Int32
		onGet(a, func() (bool, error) {
			asked.Add(1)
			return fails.Add(-1) >= 0, errors.New("connection refused")
		})
		_ = f.Set(Member{Name: "a", Client: a.Client})
		s := watchThings(t, f)
		expect(t, settled(t, s), "a/x")
		since := f.Cluster("a").Health().Since
		for range 5 {
			fails.Store(1)
			before := asked.Load()
			for asked.Load() == before {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			if h := f.Cluster("a").Health(); h.Phase != Up || h.Error == "" || !h.Since.Equal(since) {
				t.Errorf("after one failure: %+v", h)
			}
			expect(t, settled(t, s), "a/x")
		}
	})
}

// A refusal, as any answer, says that the server works.
func TestAClusterThatRefusesToShowItsIdentityIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		k := katestest.New(t) // has no kube-system
		_ = f.Set(Member{Name: "a", Client: k.Client})
		synctest.Wait()
		if h := f.Cluster("a").Health(); h.Phase != Up {
			t.Errorf("%+v", h)
		}
	})
}

func TestAHungClusterDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		well := newCluster(t, "2")
		_ = f.Add("a", hung())
		_ = f.Set(Member{Name: "b", Client: well.Client})
		eventually(t, f, "the other is up", func() bool {
			c := f.Cluster("b")
			return c != nil && c.Health().Phase == Up
		})
		synctest.Wait()
		if h := f.Cluster("a").Health(); h.Phase != Connecting {
			t.Errorf("%+v", h)
		}
		f.Remove("b")
		synctest.Wait()
		if got := names(f); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the clusters are %v", got)
		}
	})
}

func TestAnotherClusterUnderANameStartsANewHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{})
		k := newCluster(t, "1")
		_ = f.Set(Member{Name: "a", Client: k.Client})
		synctest.Wait()
		old := f.Cluster("a")
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
		if f.Cluster("a") == old {
			t.Fatal("the former one has the name")
		}
		if c := f.Cluster("a"); c.UID() != "2" || c.Health().Phase != Up {
			t.Errorf("what has answered: %q, %+v", c.UID(), c.Health())
		}
		<-old.Done()
		if old.UID() != "1" {
			t.Errorf("the former one has become %s", old.UID())
		}
	})
}

func TestWhatASourceSaysIsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := make(scripted), make(scripted)
		f := newFleet(t, Options{Sources: []Source{one, two}})
		synctest.Wait()
		if f.Ready() == nil {
			t.Error("ready before the sources have said anything")
		}
		a, b := newCluster(t, "1"), newCluster(t, "2")
		one <- []Member{{Name: "x", Client: a.Client}}
		two <- []Member{{Name: "x", Client: b.Client}, {Name: "y", Client: b.Client}}
		synctest.Wait()
		if f.Ready() != nil || f.Cluster("x").Client() != a.Client || f.Cluster("y").Client() != b.Client {
			t.Fatalf("%v %s", f.Ready(), f.Status())
		}
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), `cluster "x" is that of a script`) {
			t.Errorf("the status: %v", err)
		}
		// A configuration that cannot be used takes nothing away.
		x := f.Cluster("x")
		one <- []Member{{Name: "x", Err: errors.New("it does not parse")}, {Name: "z", Err: errors.New("nor does this")}}
		synctest.Wait()
		if f.Cluster("x") != x || x.Health().Rotation != "it does not parse" || f.Cluster("z") != nil {
			t.Errorf("%s", f.Status())
		}
		if text := f.Status().String(); !strings.Contains(text, "nor does this") {
			t.Error(text)
		}
		one <- nil
		synctest.Wait()
		if f.Cluster("x").Client() != b.Client {
			t.Error("the later source does not count where the earlier one says nothing")
		}
	})
}

// failing says its members once, and fails.
type failing struct {
	scripted
	members []Member
	runs    atomic.Int32
}

func (s *failing) Run(ctx context.Context, set func([]Member)) error {
	if s.runs.Add(1)%2 == 0 {
		panic("it panics")
	}
	set(s.members)
	return errors.New("it fails")
}

func TestASourceThatFailsKeepsItsClustersAndRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCluster(t, "1")
		s := &failing{members: []Member{{Name: "a", Client: k.Client}}}
		f := newFleet(t, Options{Sources: []Source{s}})
		synctest.Wait()
		c := f.Cluster("a")
		if c == nil {
			t.Fatal("its cluster has left")
		}
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), "it fails") {
			t.Errorf("the status: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), "the source panicked: it panics") {
			t.Errorf("the status: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if n := s.runs.Load(); f.Cluster("a") != c || n < 5 || n > 30 {
			t.Errorf("%d runs, and the cluster stays: %t", n, f.Cluster("a") == c)
		}
	})
}

// troubled cannot say what is wrong with it.
type troubled struct{ scripted }

func (troubled) Err() error { panic("it panics") }

func TestG8ASourceThatCannotSayWhatIsWrongIsItselfWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := newCluster(t, "1"), troubled{make(scripted)}
		f := newFleet(t, Options{Sources: []Source{s}})
		s.scripted <- []Member{{Name: "a", Client: k.Client}}
		synctest.Wait()
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), "the source's Err panicked") || f.Cluster("a") == nil {
			t.Errorf("the status: %v", err)
		}
	})
}

func TestSameConnection(t *testing.T) {
	k, other := newCluster(t, "1").Client, newCluster(t, types.UID("2")).Client
	config := func() *rest.Config { return &rest.Config{Host: "a", BearerToken: "t"} }
	for _, c := range []struct {
		a, b Member
		same bool
	}{
		{Member{Config: config()}, Member{Config: config()}, true},
		{Member{Config: config()}, Member{Config: &rest.Config{Host: "b"}}, false},
		{Member{Config: config(), Version: "1"}, Member{Config: config(), Version: "2"}, false},
		{Member{Config: config(), Version: "1"}, Member{Config: &rest.Config{}, Version: "1"}, true},
		{Member{Client: k}, Member{Client: k}, true},
		{Member{Client: k}, Member{Client: other}, false},
		{Member{Client: k}, Member{Config: config()}, false},
	} {
		if c.a.sameConnection(c.b) != c.same {
			t.Errorf("%+v and %+v: not %t", c.a, c.b, c.same)
		}
	}
}
